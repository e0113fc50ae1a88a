r"""Losses on held-out rows, samples of rows on the host, and rows that are held out where they are.

The log-loss of a class posterior measures discrimination and calibration at once. Mixtures in more
than a few dimensions are overconfident, and the more so the better they discriminate; the log-loss
then prefers a blurred network to a sharp one. Networks are therefore compared by their *tempered*
loss, the log-loss at the best temperature of each,

.. math:: \min_\beta\; \frac{\sum_n w_n\, (-\log P_\beta(C_{y_n} \mid x_n))}{\sum_n w_n}, \qquad
    P_\beta(C_k \mid x) \propto (P(C_k)\, p(x \mid C_k))^\beta

Of the networks within one standard error of the best by that measure, those within one standard
error of the lowest plain log-loss are taken, and of these the smallest.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from ..arrays import Array, as_float64, device, match_array, namespace, to_numpy
from ..rows import Block, Frame, Rows, as_rows, with_missing
from ..starts.sample import Sample, content_key, drawn_rows
from .prepare import TrainingData
from .shared_kernel import Settings

MOST_ROWS = 20_000
"""Rows are drawn to the host up to about this many."""

FEWEST = 20
"""Rows of a class from which on some are held out where rows stay where they live."""

COLDEST, HOTTEST = 1e-4, 2.0
"""Bounds of beta; mixtures of full kernels in a hundred dimensions want a hundredth and less."""

T = TypeVar("T")


@dataclass(frozen=True)
class Loss:
    """Held-out losses of one network (or of its copies, one a fold), row by row."""

    plain: np.ndarray
    """-log P(C_y|x), (n,)."""
    tempered: np.ndarray
    """The same at the temperature that suits the network best, (n,)."""
    wrong: np.ndarray
    """Whether the row is misclassified, (n,)."""
    beta: float
    weight: np.ndarray
    """(n,)."""

    def mean(self, values: np.ndarray) -> float:
        """Weighted mean over the rows."""
        return float(self.weight @ values / self.weight.sum())

    def behind(self, other: "Loss", kind: str = "tempered") -> tuple[float, float]:
        """By how much this loss is above another on the same rows, and the standard error of
        that.
        """
        difference = getattr(self, kind) - getattr(other, kind)
        mean = self.mean(difference)
        return mean, float(np.sqrt(self.mean((difference - mean) ** 2) / self.weight.sum()))


def held_out_loss(log_joint: np.ndarray, code: np.ndarray, weight: np.ndarray) -> Loss:
    """From log P(C_k|x) up to a constant of the row, (n, K), of held-out rows of classes `code`."""
    log_joint = log_joint - log_joint.max(axis=1, keepdims=True)
    log_joint = np.maximum(log_joint, -1e8)

    def loss_at(beta: float) -> np.ndarray:
        scaled = beta * log_joint
        return np.asarray(logsumexp(scaled, axis=1) - scaled[np.arange(len(code)), code])

    found = minimize_scalar(
        lambda log_beta: weight @ loss_at(np.exp(log_beta)),
        bounds=(np.log(COLDEST), np.log(HOTTEST)),
        method="bounded",
        options={"xatol": 0.01},
    )
    beta = float(np.exp(found.x))
    return Loss(loss_at(1.0), loss_at(beta), log_joint.argmax(axis=1) != code, beta, weight)


def choose(losses: list[Loss], sizes: Sequence[tuple[float, ...]]) -> int:
    """The smallest of the best calibrated of those that discriminate best.

    "Best" is within a standard error of the lowest loss: first by the tempered loss, of these by
    the plain loss. `sizes` are compared entry by entry. Of several that are smallest, the one with
    the lowest plain loss is taken, and the earliest of equals (to six places: the rest is
    rounding).
    """
    sharp = _lowest(list(range(len(losses))), losses, "tempered")
    calm = _lowest(sharp, losses, "plain")
    return min(calm, key=lambda i: (sizes[i], round(losses[i].mean(losses[i].plain), 6), i))


def _lowest(among: list[int], losses: list[Loss], kind: str) -> list[int]:
    """Those whose loss of this kind is within a standard error of the lowest."""
    best = min((losses[i] for i in among), key=lambda loss: loss.mean(getattr(loss, kind)))
    ahead = {i: losses[i].behind(best, kind) for i in among}
    return [i for i in among if ahead[i][0] <= ahead[i][1]]


# -- rows and folds --------------------------------------------------------------------------------


class SampledRows(NamedTuple):
    """Rows on the host, in the units of the data."""

    x: np.ndarray
    """(n, d); NaN where a cell is missing."""
    code: np.ndarray
    """(n,); -1 without a label."""
    weight: np.ndarray
    """(n,)."""
    key: np.ndarray
    """A number in (0, 1) made from the content of the row, (n,)."""


def draw_rows(data: TrainingData, seed: int, most_rows: int = MOST_ROWS) -> SampledRows:
    """Rows on the host; of each class, and of the rows without one, no more than its part of
    `most_rows`.
    """
    unit = _unit(data)
    most = max(most_rows // (len(data.classes) + 1), most_rows // 20)
    drawn = data.rows.total(_of_block, seed, most, data.mean, unit)
    order = np.argsort(drawn.key * drawn.weight, kind="stable")
    x, code, weight = (
        drawn.x[order],
        drawn.code[order],
        _as_common(drawn.code[order], drawn.weight[order], most, data),
    )
    return SampledRows(x, code, weight, content_key((x - data.mean) / unit, seed))


def rows_apart(
    x: np.ndarray, code: np.ndarray, weight: np.ndarray, data: TrainingData
) -> SampledRows:
    """Rows that are not among the training data."""
    return SampledRows(x, code, weight, content_key((x - data.mean) / _unit(data), 0))


def _as_common(code: np.ndarray, weight: np.ndarray, most: int, data: TrainingData) -> np.ndarray:
    """Weights that make each class as common in the sample as it is in the data."""
    drawn = np.bincount(code + 1, minlength=len(data.classes) + 1)  # rows of no class come first
    if (drawn < most).all():
        return weight
    # a row was drawn the more often the more it weighs: among those drawn of a class all count
    # alike
    total = np.concatenate([[data.unlabeled_weight], data.class_weight])
    return np.asarray((total / np.maximum(drawn, 1) * (drawn.sum() / total.sum()))[code + 1])


def _unit(data: TrainingData) -> np.ndarray:
    """By which features are divided, so that numbers made from the content of rows are the same in
    any units, (d,).
    """
    return np.sqrt(np.where(data.variance > 0, data.variance, 1.0))


def _of_block(block: Block, seed: int, most: int, mean: np.ndarray, unit: np.ndarray) -> Sample:
    x, code = block.x if block.missing is None else with_missing(block), to_numpy(block.y)
    weight = (
        np.ones(len(code))
        if block.weight is None
        else np.asarray(to_numpy(block.weight), dtype=np.float64)
    )
    content = (as_float64(x) - as_float64(match_array(mean, like=x))) / as_float64(
        match_array(unit, like=x)
    )
    # as in starts.sample, but rows without a label are drawn too
    return drawn_rows(x, content, code, weight, np.flatnonzero(weight > 0), seed, most)


def fold_data(data: TrainingData, rows: SampledRows, n_jobs: int | None) -> TrainingData:
    """The training data less the rows that are held out: `rows` are those that train."""
    labeled, known = rows.code >= 0, ~np.isnan(rows.x) * rows.weight[:, None]
    return replace(
        data,
        rows=as_rows(rows.x, rows.code, rows.weight, n_jobs=n_jobs),
        observed=(
            None
            if data.observed is None
            else np.stack(
                [known[rows.code == code].sum(axis=0) for code in range(-1, len(data.classes))]
            )
        ),
        class_weight=np.bincount(
            rows.code[labeled], rows.weight[labeled], minlength=len(data.classes)
        ),
        unlabeled_weight=float(rows.weight[~labeled].sum()),
        n_rows=float(np.count_nonzero(rows.weight)),
    )


def limited(settings: Settings, rows: SampledRows, n_classes: int) -> Settings:
    """No more kernels than there are rows to train on, class by class where the settings say so."""
    n_kernels, start = settings.n_kernels, settings.start
    if n_kernels is None or start.owners is not None or start.means is not None:
        return settings
    if not hasattr(n_kernels, "__len__"):
        return replace(settings, n_kernels=min(int(n_kernels), len(rows.weight)))
    n_rows = [len(np.unique(rows.x[rows.code == k], axis=0)) for k in range(n_classes)]
    counts = [min(count, max(1, n)) for count, n in zip(n_kernels, n_rows, strict=False)]
    return replace(settings, n_kernels=counts)


@dataclass(frozen=True)
class Division:
    """Which rows are held out, decided row by row from their content, wherever they live."""

    seed: int
    share: float
    mean: np.ndarray
    """(d,)."""
    unit: np.ndarray
    """(d,)."""
    spared: np.ndarray
    """Whether the rows of a class always train, and (last) those without a class, (K + 1,)."""
    frame: Frame | None = None
    """In which the rows are seen."""

    def out(self, block: Block) -> Array:
        """One for the rows that are held out and zero for the others, (n,), in the type of the
        rows.
        """
        xp, x = (
            namespace(block.x),
            block.x if block.missing is None else match_array(with_missing(block), like=block.x),
        )
        frame = (
            Frame(np.zeros_like(self.mean), np.ones_like(self.mean))
            if self.frame is None
            else self.frame
        )
        seen = frame.like(x)  # as these rows are seen, in their float type
        offset = as_float64(seen.origin) - match_array(self.mean, like=as_float64(seen.origin))
        away = (as_float64(x) * as_float64(seen.unit) + offset) / match_array(
            self.unit, like=offset
        )
        # a thousandth of a deviation: in a frame of float32 rows are not known much more exactly
        # than that
        key = content_key(away * 2.0**-10, self.seed)
        code = xp.where(block.y < 0, (len(self.spared) - 1) * xp.ones_like(block.y), block.y)  # type: ignore[operator]
        spared = xp.take(xp.asarray(self.spared, device=device(x)), code, axis=0)
        return xp.astype((key < self.share) & ~spared, block.x.dtype)

    def drawn(self, block: Block) -> Sample:
        """The rows that are held out, on the host; a method, since parameters of a statistic are
        rounded to the rows' type.
        """
        x = block.x if block.missing is None else with_missing(block)
        weight = (
            np.ones(x.shape[0])
            if block.weight is None
            else np.asarray(to_numpy(block.weight), dtype=np.float64)
        )
        at = np.flatnonzero((to_numpy(self.out(block)) > 0) & (weight > 0))
        x = np.asarray(
            to_numpy(namespace(x).take(x, namespace(x).asarray(at, device=device(x)), axis=0)),
            dtype=np.float64,
        )
        return Sample(np.zeros(len(at)), to_numpy(block.y)[at], x, weight[at], sys.maxsize)


@dataclass(frozen=True)
class _OfTraining:
    """A statistic of the rows that are not held out."""

    statistic: Callable[..., Any]
    division: Division

    def __call__(self, block: Block, *params: Any) -> Any:
        return self.statistic(block.once("in training", self._in_training, 2), *params)

    def _in_training(self, block: Block) -> Block:
        kept = 1 - self.division.out(block)
        return block.weighted(kept if block.weight is None else block.weight * kept)


class RowsInTraining:
    """All rows, of which those that are held out count nothing."""

    def __init__(self, rows: Rows, division: Division) -> None:
        self.rows, self.division = rows, division
        self.n_features, self.backend, self.eps = rows.n_features, rows.backend, rows.eps

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        total: T = self.rows.total(_OfTraining(statistic, self.division), *params)
        return total

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self.rows.each(function, *params)

    def framed(self, frame: Frame, width: int) -> "RowsInTraining":
        return RowsInTraining(self.rows.framed(frame, width), replace(self.division, frame=frame))

    def by_class(self) -> "RowsInTraining":
        return RowsInTraining(self.rows.by_class(), self.division)


def divide(data: TrainingData, seed: int, most_rows: int) -> tuple[TrainingData, SampledRows]:
    """The training data less about `most_rows` rows, or a fifth of them, that are held out; and
    these, on the host.

    Unlike folds, it moves no other row to the host. Classes of few rows are not held out.
    """
    share = min(most_rows / max(data.n_rows, 1.0), 0.2)
    spared = np.append(data.class_weight * data.n_rows < FEWEST * data.weight, True)
    division = Division(seed, share, data.mean, _unit(data), spared)
    drawn = data.rows.total(division.drawn)
    order = np.lexsort((drawn.code, *drawn.x.T))
    out = SampledRows(drawn.x[order], drawn.code[order], drawn.weight[order], drawn.key[order])
    known = ~np.isnan(out.x) * out.weight[:, None]
    of_class = np.stack(
        [known[out.code == code].sum(axis=0) for code in range(-1, len(data.classes))]
    )
    return replace(
        data,
        rows=RowsInTraining(data.rows, division),
        observed=None if data.observed is None else data.observed - of_class,
        class_weight=data.class_weight
        - np.bincount(out.code, out.weight, minlength=len(data.classes)),
        n_rows=data.n_rows - len(out.code),
    ), out
