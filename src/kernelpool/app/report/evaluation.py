"""How good a model is on rows with known answers: error with its interval, confusion, calibration, and what rejecting buys.

The metrics and intervals are those of `kernelpool.inspection.metrics`. Calibration and the reject curve are of the probability
of the class that is named.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import to_numpy
from ...inspection.metrics import (
    N_BINS,
    Metrics,
    Rate,
    RegressionError,
    ambiguity_of,
    coverage_curve,
)
from ...text import text_of
from .data import Table, blocks
from .records import Accepted, Bin, ClassScore, Confusion, Evaluation, Pair, Refused, Regression

MOST_IN_MATRIX, MOST_PAIRS, MOST_SCORES, N_POINTS, MOST_POINTS = 12, 15, 20, 100, 800
COVERAGES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5)


@dataclass(frozen=True)
class Judged:
    """What a classifier says of some rows, next to the truth."""

    classes: np.ndarray
    """The model's own first, then those it never saw, (K_true,)."""
    n_seen: int
    metrics: Metrics
    """Of labels and probabilities; a row that was refused a label counts with its most probable class."""
    ambiguity: np.ndarray | None
    """1 - probability of the most probable class, (n,); None where the model gives no probabilities."""
    wrong: np.ndarray
    """Whether that class is not the true one, (n,)."""
    novel: np.ndarray
    """Whether the row was refused as novel, (n,)."""


def judge(
    model: Any, table: Table, at: np.ndarray, y: np.ndarray, refusals: dict[Any, int]
) -> Judged:
    """`predict` and `predict_proba` of rows `at`, block by block; `refusals` are the labels that are decisions, and which."""
    seen = np.asarray(model.classes_)
    known = set(seen.tolist())
    unknown = [label for label in np.unique(y[at]).tolist() if label not in known]
    classes = np.concatenate([seen.astype(object), np.array(unknown, object)])
    codes = {label: code for code, label in enumerate(classes.tolist())}
    parts = []
    for block in blocks(len(at)):
        rows, true = (
            table.at(at[block]),
            np.array([codes[label] for label in y[at[block]].tolist()], np.int64),
        )
        labels = np.asarray(model.predict(rows)).tolist()
        decision = np.array([refusals.get(label, 0) for label in labels], np.int64)
        named = np.array([codes.get(label, 0) for label in labels], np.int64)
        probability = (
            to_numpy(model.predict_proba(rows)) if hasattr(model, "predict_proba") else None
        )  # (n, K)
        likely = named if probability is None else probability.argmax(axis=1)
        named = np.where(decision > 0, likely, named)
        metrics = Metrics.of(
            true,
            probability,
            named=named,
            decision=decision,
            n_classes=len(seen),
            n_true=len(classes),
        )
        parts.append(
            (
                metrics,
                None if probability is None else ambiguity_of(probability),
                likely != true,
                decision == 2,
            )
        )
    every, ambiguity, wrong, novel = zip(*parts, strict=True)
    doubtful = None if ambiguity[0] is None else np.concatenate(ambiguity)
    return Judged(
        classes,
        len(seen),
        sum(every[1:], start=every[0]),
        doubtful,
        np.concatenate(wrong),
        np.concatenate(novel),
    )


def evaluation_of(
    judged: Judged, reject_classifier: Any, held_out: bool, n_given: int, doubt: float
) -> Evaluation:
    """All metrics of the predictions; `reject_classifier` is the RejectClassifier that may have refused rows, or None."""
    metrics, probable = judged.metrics, judged.ambiguity is not None
    n = int(metrics.n_rows)
    curve = _curve(judged, doubt) if probable else ()
    return Evaluation(
        held_out=held_out,
        rate=metrics.rate(doubt),
        guessing=1 - float(metrics.confusion.sum(axis=1).max()) / n,
        confusion=_confusion(judged),
        n_given=n_given,
        log_loss=metrics.log_loss if probable else None,
        calibration=_calibration(metrics.bins, doubt) if probable else (),
        calibration_error=metrics.calibration_error if probable else None,
        curve=curve,
        choices=tuple(dict.fromkeys(_nearest(curve, coverage) for coverage in COVERAGES))
        if curve
        else (),
        refused=None if reject_classifier is None else _refused(metrics, reject_classifier, doubt),
        unseen=tuple(text_of(label) for label in judged.classes[judged.n_seen :]),
    )


def _refused(metrics: Metrics, reject_classifier: Any, doubt: float) -> Refused:
    accepted, ambiguous, novel = metrics.decisions[:, 0].tolist()
    return Refused(
        n_ambiguous=ambiguous,
        n_novel=novel,
        accepted=metrics.accepted(doubt),
        coverage=accepted / int(metrics.n_rows),
        ambiguity=reject_classifier.ambiguity_threshold_,
        novelty=reject_classifier.novelty_threshold_,
        one_label=bool(reject_classifier.ambiguous_label_ == reject_classifier.novel_label_),
    )


def _confusion(judged: Judged) -> Confusion:
    size, names = len(judged.classes), [text_of(label) for label in judged.classes]
    counts = np.pad(judged.metrics.confusion, ((0, 0), (0, size - judged.n_seen)))
    down, across = counts.sum(axis=1), counts.sum(axis=0)
    scores = [
        ClassScore(
            names[k],
            int(down[k]),
            int(across[k]),
            float(counts[k, k] / down[k]) if down[k] else None,
            float(counts[k, k] / across[k]) if across[k] else None,
        )
        for k in range(size)
    ]
    off = counts - np.diag(np.diag(counts))
    worst = np.argsort(-off, axis=None, kind="stable")[: int((off > 0).sum())]
    pairs = [Pair(names[i // size], names[i % size], int(off.flat[i])) for i in worst[:MOST_PAIRS]]
    if size > MOST_SCORES:
        scores = sorted(scores, key=lambda score: (score.recall is None, score.recall))
    small = size <= MOST_IN_MATRIX
    return Confusion(
        true=tuple(names) if small else (),
        named=tuple(names[: judged.n_seen]) if small else (),
        counts=tuple(tuple(row[: judged.n_seen]) for row in counts.tolist()) if small else (),
        scores=tuple(scores[:MOST_SCORES]),
        n_more_scores=max(0, size - MOST_SCORES),
        pairs=() if small else tuple(pairs),
        n_more_pairs=0 if small else max(0, len(worst) - MOST_PAIRS),
    )


def _calibration(sums: np.ndarray, doubt: float) -> tuple[Bin, ...]:
    """Bins of equal width that hold any row."""
    bins = []
    for b, (n, confidence, n_right) in enumerate(sums.tolist()):
        if n:
            wrong, ends = Rate.of(int(n - n_right), int(n), doubt), (b / N_BINS, (b + 1) / N_BINS)
            bins.append(
                Bin(*ends, confidence / n, n_right / n, 1 - wrong.high, 1 - wrong.low, int(n))
            )
    return tuple(bins)


def _curve(judged: Judged, doubt: float) -> tuple[Accepted, ...]:
    """About a hundred points of the reject curve; novel rows are accepted nowhere."""
    n = len(judged.wrong)
    coverage, error, thresholds = coverage_curve(
        judged.ambiguity,  # type: ignore[arg-type]
        judged.wrong,
        np.ones(n),
        judged.novel,
    )
    if not len(coverage):
        return ()
    accepted = np.rint(coverage * n).astype(int)
    wrong = np.rint(error * accepted).astype(int)
    wanted = np.searchsorted(
        accepted, np.ceil(accepted[-1] * np.arange(1, N_POINTS + 1) / N_POINTS)
    )
    return tuple(
        Accepted(
            1 - float(thresholds[i]), int(accepted[i]) / n, Rate.of(wrong[i], accepted[i], doubt)
        )
        for i in np.unique(wanted).tolist()
    )


def _nearest(curve: tuple[Accepted, ...], coverage: float) -> Accepted:
    return min(curve, key=lambda point: abs(point.coverage - coverage))


def regression_of(
    model: Any, table: Table, at: np.ndarray, y: np.ndarray, held_out: bool, doubt: float
) -> tuple[Regression, ...]:
    """Errors of a regressor, output by output."""
    stds: np.ndarray | None = None
    try:
        parts = [model.predict(table.at(at[block]), return_std=True) for block in blocks(len(at))]
        mean, stds = (np.concatenate([np.asarray(part[i]) for part in parts]) for i in (0, 1))
    except TypeError:  # a regressor that gives no deviations
        mean = np.concatenate(
            [np.asarray(model.predict(table.at(at[block]))) for block in blocks(len(at))]
        )
    n = len(at)
    mean, true = mean.reshape(n, -1), y[at].reshape(n, -1).astype(np.float64)
    spread = None if stds is None else stds.reshape(n, -1)
    shown = np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int)
    records = []
    for o in range(true.shape[1]):
        found, miss = RegressionError.of(true[:, o], mean[:, o], doubt), true[:, o] - mean[:, o]
        records.append(
            Regression(
                output=f"output {o}" if true.shape[1] > 1 else "",
                held_out=held_out,
                n_rows=n,
                rmse=found.rmse,
                rmse_low=found.low,
                rmse_high=found.high,
                mae=found.mae,
                r2=found.r2,
                within=None if spread is None else float((np.abs(miss) <= 2 * spread[:, o]).mean()),
                points=tuple(
                    (float(a), float(b))
                    for a, b in zip(mean[shown, o], true[shown, o], strict=True)
                ),
            )
        )
    return tuple(records)
