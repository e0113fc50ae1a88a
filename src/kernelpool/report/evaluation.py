"""How good a model is on rows with known answers: error with its interval, confusion, calibration, and what rejecting buys.

The interval is Clopper & Pearson's (`kernelpool.bounds`): whatever the error rate is, it covers it with at least the stated
confidence. Calibration and the reject curve are of the probability of the class that is named.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from ..arrays import to_numpy
from ..bounds import binomial_lower, binomial_upper
from ..estimators.reject_rules import ambiguity_of
from .records import Accepted, Bin, ClassScore, Confusion, Evaluation, Pair, Rate, Refused, Regression
from .table import Table, blocks
from .text import text_of

MOST_IN_MATRIX, MOST_PAIRS, MOST_SCORES, N_BINS, N_POINTS, MOST_POINTS = 12, 15, 20, 10, 100, 800
COVERAGES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5)


@dataclass(frozen=True)
class Answers:
    """What a classifier says of some rows, next to the truth; classes are codes of `classes`."""

    classes: np.ndarray
    """The model's own first, then those it never saw, (K,)."""
    n_seen: int
    true: np.ndarray
    """(n,)."""
    named: np.ndarray
    """(n,); of a row that was refused a name, the most probable class."""
    ambiguity: np.ndarray | None
    """1 - probability of the most probable class, (n,)."""
    likely: np.ndarray | None
    """That class, (n,)."""
    log_loss: float | None
    refusal: np.ndarray
    """0 where a class was named, -1 where the row was called ambiguous, -2 where novel, (n,)."""


def answers(model: Any, table: Table, at: np.ndarray, y: np.ndarray, refusals: dict[Any, int]) -> Answers:
    """`predict` and `predict_proba` of rows `at`, block by block."""
    seen = np.asarray(model.classes_)
    known = set(seen.tolist())
    unknown = [label for label in np.unique(y[at]).tolist() if label not in known]
    classes = np.concatenate([seen.astype(object), np.array(unknown, object)])
    codes = {label: code for code, label in enumerate(classes.tolist())} | refusals
    true = np.array([codes[label] for label in y[at].tolist()], np.int64)
    parts = [_answered(model, table.at(at[block]), true[block], codes, len(seen)) for block in blocks(len(at))]
    named = np.concatenate([part[0] for part in parts])
    ambiguity = likely = loss = None
    if parts[0][1] is not None:
        ambiguity, likely = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        loss = sum(part[3] for part in parts) / len(at)
    refusal = np.minimum(named, 0)
    return Answers(
        classes, len(seen), true, np.where(named < 0, 0 if likely is None else likely, named), ambiguity, likely, loss, refusal
    )


def _answered(model: Any, rows: Any, true: np.ndarray, codes: dict[Any, int], n_seen: int) -> tuple[Any, ...]:
    """Codes of `predict`; and of `predict_proba` ambiguity, most probable class, and log-loss summed."""
    named = np.array([codes[label] for label in np.asarray(model.predict(rows)).tolist()], np.int64)
    if not hasattr(model, "predict_proba"):
        return named, None, None, 0.0
    probability = to_numpy(model.predict_proba(rows))  # (n, K)
    given = probability[np.arange(len(true)), np.minimum(true, n_seen - 1)]
    given = np.where(true < n_seen, given, 0.0)
    loss = -float(np.log(np.maximum(given, np.finfo(np.float64).tiny)).sum())
    return named, ambiguity_of(probability), probability.argmax(axis=1), loss


def evaluation_of(found: Answers, reject_classifier: Any, held_out: bool, n_given: int, doubt: float) -> Evaluation:
    """All measures of the predictions; `reject_classifier` is the RejectClassifier that may have refused rows, or None."""
    counts = np.bincount(found.true, minlength=len(found.classes))
    calibration: tuple[Bin, ...] = ()
    curve: tuple[Accepted, ...] = ()
    choices: tuple[Accepted, ...] = ()
    if found.ambiguity is not None and found.likely is not None:
        right = found.likely == found.true
        calibration = _calibration(1 - found.ambiguity, right, doubt)
        curve = _curve(found.ambiguity, right, found.refusal != -2, doubt)
        choices = tuple(dict.fromkeys(_nearest(curve, coverage) for coverage in COVERAGES)) if curve else ()
    n = len(found.true)
    return Evaluation(
        held_out=held_out,
        rate=rate(int((found.true != found.named).sum()), n, doubt),
        guessing=1 - float(counts.max()) / n,
        confusion=_confusion(found),
        n_given=n_given,
        log_loss=found.log_loss,
        calibration=calibration,
        calibration_error=sum(b.n_rows * abs(b.accuracy - b.confidence) for b in calibration) / n if calibration else None,
        curve=curve,
        choices=choices,
        refused=None if reject_classifier is None else _refused(found, reject_classifier, doubt),
        unseen=tuple(text_of(label) for label in found.classes[found.n_seen :]),
    )


def rate(n_errors: int, n_rows: int, doubt: float) -> Rate:
    """A rate of errors between two one-sided bounds, each wrong with half of `doubt`."""
    low, high = binomial_lower(n_errors, n_rows, doubt / 2), binomial_upper(n_errors, n_rows, doubt / 2)
    return Rate(n_rows, n_errors, n_errors / n_rows, float(low), float(high), 1 - doubt)


def _refused(found: Answers, reject_classifier: Any, doubt: float) -> Refused:
    kept = found.refusal == 0
    n_errors, n = int((found.true != found.named)[kept].sum()), int(kept.sum())
    return Refused(
        n_ambiguous=int((found.refusal == -1).sum()),
        n_novel=int((found.refusal == -2).sum()),
        accepted=rate(n_errors, n, doubt) if n else None,
        coverage=n / len(kept),
        ambiguity=reject_classifier.ambiguity_threshold_,
        novelty=reject_classifier.novelty_threshold_,
        one_label=bool(reject_classifier.ambiguous_label_ == reject_classifier.novel_label_),
    )


def _confusion(found: Answers) -> Confusion:
    size, names = len(found.classes), [text_of(label) for label in found.classes]
    counts = np.bincount(found.true * size + found.named, minlength=size * size).reshape(size, size)
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
        named=tuple(names[: found.n_seen]) if small else (),
        counts=tuple(tuple(row[: found.n_seen]) for row in counts.tolist()) if small else (),
        scores=tuple(scores[:MOST_SCORES]),
        n_more_scores=max(0, size - MOST_SCORES),
        pairs=() if small else tuple(pairs),
        n_more_pairs=0 if small else max(0, len(worst) - MOST_PAIRS),
    )


def _calibration(confidence: np.ndarray, right: np.ndarray, doubt: float) -> tuple[Bin, ...]:
    """Bins of equal width that hold any row."""
    place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    bins = []
    for b in np.unique(place):
        mine = place == b
        n, n_right = int(mine.sum()), int(right[mine].sum())
        wrong = rate(n - n_right, n, doubt)
        ends = float(b / N_BINS), float((b + 1) / N_BINS)
        bins.append(Bin(*ends, float(confidence[mine].mean()), n_right / n, 1 - wrong.high, 1 - wrong.low, n))
    return tuple(bins)


def _curve(ambiguity: np.ndarray, right: np.ndarray, known: np.ndarray, doubt: float) -> tuple[Accepted, ...]:
    """Errors among the `known` rows up to each ambiguity: rows of one ambiguity are accepted or rejected together."""
    if not known.any():
        return ()
    ambiguity, right, n_all = ambiguity[known], right[known], len(known)
    order = np.argsort(ambiguity, kind="stable")
    rising, wrong, n = ambiguity[order], np.cumsum(~right[order]), len(order)
    ends = np.flatnonzero(np.append(rising[1:] > rising[:-1], True))  # the last row of each ambiguity
    wanted = np.searchsorted(ends, np.ceil(n * np.arange(1, N_POINTS + 1) / N_POINTS) - 1)
    return tuple(
        Accepted(1 - float(rising[i]), (i + 1) / n_all, rate(int(wrong[i]), i + 1, doubt))
        for i in ends[np.unique(wanted)].tolist()
    )


def _nearest(curve: tuple[Accepted, ...], coverage: float) -> Accepted:
    return min(curve, key=lambda point: abs(point.coverage - coverage))


def regression_of(
    model: Any, table: Table, at: np.ndarray, y: np.ndarray, held_out: bool, doubt: float
) -> tuple[Regression, ...]:
    """Errors of a regressor, output by output; the interval of the root mean squared error is asymptotic."""
    stds: np.ndarray | None = None
    try:
        parts = [model.predict(table.at(at[block]), return_std=True) for block in blocks(len(at))]
        mean, stds = (np.concatenate([np.asarray(part[i]) for part in parts]) for i in (0, 1))
    except TypeError:  # a regressor that gives no deviations
        mean = np.concatenate([np.asarray(model.predict(table.at(at[block]))) for block in blocks(len(at))])
    n = len(at)
    mean, true = mean.reshape(n, -1), y[at].reshape(n, -1).astype(np.float64)
    spread = None if stds is None else stds.reshape(n, -1)
    shown = np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int)
    records = []
    for o in range(true.shape[1]):
        miss = true[:, o] - mean[:, o]
        mse, total = float((miss**2).mean()), float(true[:, o].var())
        doubtful = float(norm.ppf(1 - doubt / 2)) * float((miss**2).std()) / n**0.5
        records.append(
            Regression(
                output=f"output {o}" if true.shape[1] > 1 else "",
                held_out=held_out,
                n_rows=n,
                rmse=mse**0.5,
                rmse_low=max(mse - doubtful, 0.0) ** 0.5,
                rmse_high=(mse + doubtful) ** 0.5,
                mae=float(np.abs(miss).mean()),
                r2=1 - mse / total if total > 0 else None,
                within=None if spread is None else float((np.abs(miss) <= 2 * spread[:, o]).mean()),
                points=tuple((float(a), float(b)) for a, b in zip(mean[shown, o], true[shown, o], strict=True)),
            )
        )
    return tuple(records)
