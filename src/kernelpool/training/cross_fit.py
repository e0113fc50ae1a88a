r"""Cross-fitting: networks trained without one fold each, and predictions for rows that took no
part in training.

.. math:: \text{held-out}(x_n) = f_{-k}(x_n), \qquad x_n \in \text{fold } k

Held-out rows may also select, such as the step at which training stops. The least loss on rows is
too low an estimate if the same rows have selected it. `Selection` therefore divides held-out rows
into parts, and the prediction for each part is that of the step which the other parts select.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import _safe_indexing

from .folds import stratified_folds

HIGHEST_LOSS = 1e6
"""The loss of a row whose class has probability zero: losses are added and subtracted."""

N_PARTS = 5
"""Parts of held-out rows that select for each other."""


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
        return fit(_take(data, fold != f), _take(data, fold == f))

    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fitted)(f) for f in folds)
    shape = results[0][1].shape[1:] if results else ()
    held_out = np.full((len(fold), *shape), np.nan)
    for f, (_, predictions) in zip(folds, results, strict=True):
        held_out[fold == f] = predictions
    return [network for network, _ in results], held_out


def _take(data: tuple[Any, ...], mask: np.ndarray) -> tuple[Any, ...]:
    at = np.flatnonzero(mask)
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
