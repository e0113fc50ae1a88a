r"""Cross-fitting: networks trained without one fold each, and predictions for rows that took no
part in training.

.. math:: \text{held-out}(x_n) = f_{-k}(x_n), \qquad x_n \in \text{fold } k

Held-out rows may also select, such as the step at which training stops. The least loss on rows is
too low an estimate if the same rows have selected it. `Selection` therefore divides held-out rows
into parts, and the prediction for each part is that of the step which the other parts select.

The log-loss of a class posterior measures discrimination and calibration at once. Mixtures in more
than a few dimensions are overconfident, and the more so the better they discriminate; the log-loss
then prefers a blurred network to a sharp one. Networks are therefore compared by their *tempered*
loss, the log-loss at the best temperature of each,

.. math:: \min_\beta\; \frac{\sum_n w_n\, (-\log P_\beta(C_{y_n} \mid x_n))}{\sum_n w_n}, \qquad
    P_\beta(C_k \mid x) \propto (P(C_k)\, p(x \mid C_k))^\beta
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.utils import _safe_indexing

from ..errors import without_column_warnings
from .folds import stratified_folds

HIGHEST_LOSS = 1e6
"""The loss of a row whose class has probability zero: losses are added and subtracted."""

N_PARTS = 5
"""Parts of held-out rows that select for each other."""

COLDEST, HOTTEST = 1e-4, 2.0
"""Bounds of beta; mixtures of full kernels in a hundred dimensions want a hundredth and less."""


def cross_fit(
    fit: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, np.ndarray]],
    data: tuple[Any, ...],
    fold: np.ndarray,
    *,
    only: Sequence[int] | None = None,
    n_jobs: int | None = None,
) -> tuple[list[Any], np.ndarray]:
    """One network for each fold, and the held-out predictions of all rows.

    Parameters
    ----------
    fit : callable
        ``fit(train, held_out) -> (network, predictions)`` trains on some rows and predicts the
        others. Both are parts of `data`; the predictions are log-probabilities (n, K), or any array
        with an entry for each held-out row. Where held-out rows select anything of the network,
        their predictions must be those of `Selection`.
    data : tuple of arrays, frames or None
        Rows, labels, weights, ...: all of the same length.
    fold : ndarray of shape (n,)
        The fold of each row (`stratified_folds`); -1 for rows that always train.
    only : sequence of int, default=None
        Folds for which a network is trained; None for all of them.
    n_jobs : int, default=None
        Networks that are trained at a time, in threads.

    Returns
    -------
    networks : list
        In the order of the folds.
    held_out : ndarray of shape (n, ...)
        NaN for rows in none of the folds.
    """
    folds = np.unique(fold[fold >= 0]).tolist() if only is None else list(only)

    def fitted(f: int) -> tuple[Any, np.ndarray]:
        parts = (take_rows(data, np.flatnonzero(part)) for part in (fold != f, fold == f))
        with without_column_warnings(f != folds[0]):
            return fit(*parts)

    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fitted)(f) for f in folds)
    shape = results[0][1].shape[1:] if results else ()
    held_out = np.full((len(fold), *shape), np.nan)
    for f, (_, predictions) in zip(folds, results, strict=True):
        held_out[fold == f] = predictions
    return [network for network, _ in results], held_out


def take_rows(data: tuple[Any, ...], at: np.ndarray) -> tuple[Any, ...]:
    """Some rows of several arrays or frames, by position."""
    return tuple(None if part is None else _safe_indexing(part, at) for part in data)


class Selection:
    """Held-out rows that select one of several steps, and their predictions at the step that other
    rows select.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Classes; -1 for rows without one.
    weight : ndarray of shape (n,)
        Weights of the rows.
    key : ndarray of shape (n,), default=None
        Numbers by which rows are divided into parts (`row_keys`); None for one part, whose
        predictions are then those of the first step.
    gain : float, default=0.0
        A step is better if it lowers the loss by more than this fraction.
    """

    def __init__(
        self,
        codes: np.ndarray,
        weight: np.ndarray,
        key: np.ndarray | None = None,
        gain: float = 0.0,
    ) -> None:
        self.codes, self.weight, self.gain = codes, np.where(codes >= 0, weight, 0.0), gain
        self.part = np.zeros(len(codes), int)
        if key is not None:
            fold = stratified_folds(codes, N_PARTS, key=key, spare_single=False)
            self.part = np.maximum(fold, 0)
        self.log_proba = np.empty((len(codes), 0))
        """log P(C_k|x) of each row at the step that the other parts select, (n, K)."""
        self._least = np.full(int(self.part.max(initial=0)) + 1, np.inf)

    def add(self, log_proba: np.ndarray) -> float:
        """Take the predictions of one step, (n, K); return its log-loss per row, on all rows."""
        own = log_proba[np.arange(len(self.codes)), self.codes]
        loss = -self.weight * np.maximum(own, -HIGHEST_LOSS)
        loss_of, weight_of = (
            np.bincount(self.part, a, minlength=len(self._least)) for a in (loss, self.weight)
        )
        others = (loss.sum() - loss_of) / np.maximum(self.weight.sum() - weight_of, 1e-300)
        better = others < (1 - self.gain) * self._least
        self._least = np.where(better, others, self._least)
        kept = self.log_proba if self.log_proba.shape == log_proba.shape else log_proba
        self.log_proba = np.where(better[self.part][:, None], log_proba, kept)
        return float(loss.sum() / max(self.weight.sum(), 1e-300))


# -- losses on held-out rows ------------------------------------------------------------------------


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
