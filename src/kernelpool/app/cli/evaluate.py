"""`kernelpool evaluate`: how good a model is on rows with known answers."""

from typing import Annotated, Any

import numpy as np

from ...inspection.metrics import DECISIONS, Metrics, RegressionError
from ...questions import FeatureImportance, feature_importance
from ...text import percent, plural, quoted
from ..readers.labels import Fingerprint, codes_and_classes
from ..readers.sources import Source, source
from . import options as o
from .output import CommandError, Exit, Screen
from .saved import Saved, decisions, open_saved

IMPORTANCE = "Say also how much the log-loss rises without each feature."
OWN_ROWS = "the model was fitted to these very rows: the error is too low an estimate."
MOST_CLASSES = 20
"""Of a confusion matrix on the screen."""


Answer = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Class codes of some rows, their probabilities, and what was decided of them where rows may be refused."""


def evaluate(
    model: o.ModelPath,
    data: o.Data,
    target: o.Target = None,
    drop: o.Drop = None,
    confidence: o.Confidence = 0.95,
    reject: o.Reject = False,
    ambiguity: o.Ambiguity = None,
    novelty: o.Novelty = None,
    importance: Annotated[bool, o.judging("--importance", help=IMPORTANCE)] = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Judge a model on rows whose classes are known.

    Prints the error with its confidence interval, log-loss, calibration and the confusion matrix; of a model that predicts
    numbers its root mean squared and its mean absolute error. If DATA are the rows that the model was fitted to, only those
    that were held out are counted.

    Example: kernelpool evaluate irises.safetensors irises.csv
    """
    saved = open_saved(model, screen, numeric=True)
    rows = source(data, style)
    if saved.numeric:
        saved.check_options(
            {
                "--reject": reject,
                "--ambiguity": ambiguity,
                "--novelty": novelty,
                "--importance": importance,
            }
        )
        _tell_numbers(
            *_judged_numbers(saved, rows, saved.target_of(target), list(drop or []), screen),
            1 - confidence,
            screen,
        )
        return
    wrapped = saved.rejecting(reject, ambiguity, novelty, screen)
    tally, counted = judged(saved, rows, saved.target_of(target), list(drop or []), wrapped, screen)
    if not tally.n_rows:
        raise CommandError(Exit.DATA, f"{rows.label}: no row has a class: nothing can be judged.")
    found = None
    if importance:
        if data == "-":
            raise CommandError(Exit.USAGE, "--importance reads DATA twice: name a file, not stdin.")
        found = _importance(
            saved, source(data, style), saved.target_of(target), list(drop or []), screen
        )
    _tell(tally, saved.classes, 1 - confidence, counted, wrapped is not None, screen, found)


def judged(
    saved: Saved, rows: Source, target: str, drop: list[str], wrapped: Any, screen: Screen
) -> tuple[Metrics, str]:
    """The counts, and which rows were counted."""
    model = wrapped.estimator_ if wrapped is not None else saved.model
    tally, kept = Metrics.none(len(saved.classes)), Kept(saved)
    for table, codes in saved.labeled(rows, target, screen, drop, "Judging"):
        found = codes, np.asarray(model.predict_proba(table)), decisions(wrapped, table)
        tally = tally + Metrics.of(found[0], found[1], decision=found[2])
        kept.add(table, found)
    return kept.only_held_out(tally, screen)


def _judged_numbers(
    saved: Saved, rows: Source, target: str, drop: list[str], screen: Screen
) -> tuple[np.ndarray, np.ndarray, str]:
    """True and predicted numbers of the rows that count, (n,) each, and which those are."""
    mark = Fingerprint(saved.features or [], saved.classes)
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for table, true in saved.labeled(rows, target, screen, drop, "Judging"):
        predicted, _ = saved.predict_numbers(table)
        if predicted.shape[1] > 1:
            raise CommandError(
                Exit.MODEL,
                f"The model predicts {predicted.shape[1]} outputs; evaluate judges one, that of column {quoted(target)}.",
            )
        known = np.flatnonzero(~np.isnan(true))
        if saved.features is not None:
            mark.add(table.take(known), true[known])
        parts.append((true[known], predicted[known, 0]))
    true, predicted = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(true):
        raise CommandError(
            Exit.DATA,
            f"{rows.label}: no row has a number in column {quoted(target)}: nothing can be judged.",
        )
    same, test = saved.split_of(mark.text(), true)
    if not same:
        return true, predicted, "all rows"
    if test is None or not test.any():
        screen.warn(OWN_ROWS)
        return true, predicted, "rows of the fit"
    screen.say(
        f"These are the rows of the fit; counted are the {int(test.sum()):,} that were held out."
    )
    return true[test], predicted[test], "rows held out"


def _tell_numbers(
    true: np.ndarray, predicted: np.ndarray, counted: str, doubt: float, screen: Screen
) -> None:
    found = RegressionError.of(true, predicted, doubt)
    screen.result(f"Root mean squared error:  {found}")
    screen.result(f"Mean absolute error:      {found.mae:.4g}")
    screen.answer({"counted": counted, **found.to_dict()})


class Kept:
    """What is needed to count held-out rows alone, should the rows turn out to be those of the fit.

    Which rows of a large table were held out is known while they are read, and they are counted at once; of others, answers are
    kept for as long as there are no more than the fit had.
    """

    def __init__(self, saved: Saved) -> None:
        self.saved, self.by_place = saved, saved.place_split()
        data = saved.summary.get("data")
        n_rows = data.get("n_rows") if isinstance(data, dict) else None
        self.most = n_rows if isinstance(n_rows, int) and saved.features is not None else 0
        self.mark = Fingerprint(saved.features or [], saved.classes)
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        self.held_out = Metrics.none(len(saved.classes))
        self.n_rows = 0

    def add(self, table: Any, found: Answer) -> None:
        """A batch."""
        codes = found[0]
        if self.saved.summary.get("unlabeled") == "drop" and (codes < 0).any():
            at = np.flatnonzero(codes >= 0)
            table, found = table.take(at), _at(found, at)
        first, self.n_rows = self.n_rows, self.n_rows + len(found[0])
        if self.n_rows > self.most:
            self.parts.clear()
            return
        self.mark.add(table, found[0])
        if self.by_place is None:
            self.parts.append(found)
            return
        codes, probability, decision = _at(
            found, np.flatnonzero(self.by_place.of(found[0], first)[0])
        )
        self.held_out += Metrics.of(codes, probability, decision=decision)

    def only_held_out(self, tally: Metrics, screen: Screen) -> tuple[Metrics, str]:
        """The counts that are worth anything."""
        data = self.saved.summary.get("data")
        if (
            self.n_rows != self.most
            or not isinstance(data, dict)
            or data.get("fingerprint") != self.mark.text()
        ):
            return tally, "all rows"
        held_out = self.held_out if self.by_place is not None else self._in_memory()
        if held_out is None or not held_out.n_rows:
            screen.warn(OWN_ROWS)
            return tally, "rows of the fit"
        screen.say(
            f"These are the rows of the fit; counted are the {held_out.n_rows:,} that were held out."
        )
        return held_out, "rows held out"

    def _in_memory(self) -> Metrics | None:
        codes = np.concatenate([part[0] for part in self.parts])
        _, test = self.saved.split_of(self.mark.text(), codes)
        if test is None or not test.any():
            return None
        probability = np.concatenate([part[1] for part in self.parts])
        decided = [part[2] for part in self.parts if part[2] is not None]
        decision = np.concatenate(decided)[test] if decided else None
        return Metrics.of(codes[test], probability[test], decision=decision)


def _at(found: Answer, at: np.ndarray) -> Answer:
    codes, probability, decision = found
    return codes[at], probability[at], None if decision is None else decision[at]


def _importance(
    saved: Saved, rows: Source, target: str, drop: list[str], screen: Screen
) -> FeatureImportance:
    """Of the features, on the rows that are counted."""
    table = saved.read(rows, target, screen, drop)
    codes, _ = codes_and_classes(table.labels)
    _, held = saved.split_of(table.fingerprint(), codes)
    at = np.flatnonzero((codes >= 0) & (held if held is not None and held.any() else True))
    with screen.working("Leaving out features"):
        features, labels = table.at(at)
        return feature_importance(saved.model, features, np.asarray(labels.tolist()))


def _tell(
    tally: Metrics,
    classes: np.ndarray,
    doubt: float,
    counted: str,
    refusing: bool,
    screen: Screen,
    importance: FeatureImportance | None = None,
) -> None:
    rate, accepted = tally.rate(doubt), tally.accepted(doubt)
    screen.result(f"Error:        {rate}")
    screen.result(f"Log-loss:     {tally.log_loss:.4f} (Brier score {tally.brier:.4f})")
    screen.result(
        f"Calibration:  probabilities are off by {percent(tally.calibration_error)} on average"
    )
    if refusing:
        n, wrong = tally.decisions[:, 0], tally.decisions[:, 1]
        told = ", ".join(
            f"{name} {percent(k / tally.n_rows)} ({plural(int(k), 'row')}, {int(w):,} wrong)"
            for name, k, w in zip(DECISIONS, n, wrong, strict=True)
        )
        screen.result(f"Decisions:    {told}")
        screen.result(
            f"Accepted:     {'all rows are refused' if accepted is None else f'error {accepted}'}"
        )
    if tally.n_unlabeled:
        screen.warn(f"{plural(tally.n_unlabeled, 'row')} without a class were left out.")
    screen.table(
        "Calibration: of rows named with a probability of ...",
        ["from", "to", "rows", "said", "right"],
        [
            [
                f"{b['from']:.1f}",
                f"{b['to']:.1f}",
                f"{b['n_rows']:,}",
                percent(b["said"]),
                percent(b["right"]),
            ]
            for b in tally.calibration()
        ],
    )
    names = [str(name) for name in classes.tolist()]
    if len(names) <= MOST_CLASSES:
        matrix = [
            [name, *(f"{n:,}" for n in row)]
            for name, row in zip(names, tally.confusion.tolist(), strict=True)
        ]
        screen.table(
            "Confusion: a row of the table for each true class, a column for each named",
            ["true", *names],
            matrix,
        )
    else:
        screen.table(
            "Most frequent confusions", ["true", "named", "rows"], _pairs(tally.confusion, names)
        )
    if importance is not None:
        how = "integrated out" if importance.method == "marginal" else "shuffled"
        order = np.argsort(-importance.importance, kind="stable")[:MOST_CLASSES]
        cells = [
            [importance.names[i], f"{importance.importance[i]:+.4f}", f"{importance.error[i]:.4f}"]
            for i in order
        ]
        screen.table(
            f"Rise of the log-loss where a feature is {how}", ["feature", "rise", "±"], cells
        )
    record = _record(tally, classes, doubt, counted, refusing)
    screen.answer(record if importance is None else {**record, "importance": importance.to_dict()})


def _pairs(confusion: np.ndarray, names: list[str]) -> list[list[str]]:
    off = confusion - np.diag(np.diag(confusion))
    order = np.argsort(off, axis=None, kind="stable")[::-1][:MOST_CLASSES]
    found = [divmod(int(at), len(names)) for at in order]
    return [[names[i], names[j], f"{off[i, j]:,}"] for i, j in found if off[i, j]]


def _record(
    tally: Metrics, classes: np.ndarray, doubt: float, counted: str, refusing: bool
) -> dict[str, Any]:
    record = {
        "counted": counted,
        **tally.rate(doubt).to_dict(),
        "log_loss": tally.log_loss,
        "brier": tally.brier,
        "calibration_error": tally.calibration_error,
        "calibration": tally.calibration(),
        "classes": classes.tolist(),
        "confusion": tally.confusion.tolist(),
        "unlabeled": int(tally.n_unlabeled),
    }
    if refusing:
        accepted = tally.accepted(doubt)
        record["decisions"] = dict(zip(DECISIONS, tally.decisions[:, 0].tolist(), strict=True))
        record["accepted"] = None if accepted is None else accepted.to_dict()
    return record
