"""Held-out rows that choose when training stops, or with which setting, and are judged without a say of their own.

The least loss on rows promises too much if the same rows have chosen it. So held-out rows are in parts, and what is said of
each part is what a network says at the step that suits the others best.
"""

import numpy as np

HIGHEST_LOSS = 1e6
"""A class that a network rules out costs so much, and not infinitely much: losses are added and taken away."""


class Judging:
    """Rows that take no part in training, and what is said of them by networks that others of them have chosen.

    `codes` (n,) are -1 without a class; `part` (n,) numbers the parts, None for one of all. A step that lowers a loss by less
    than `gain`, as a part of it, is no better.
    """

    def __init__(
        self,
        codes: np.ndarray,
        weight: np.ndarray,
        part: np.ndarray | None = None,
        gain: float = 0.0,
    ) -> None:
        self.codes, self.weight = codes, np.where(codes >= 0, weight, 0.0)
        self.part, self.gain = np.zeros(len(codes), int) if part is None else part, gain
        self.log_proba = np.empty((len(codes), 0))
        """log P(C_k|x), (n, K)."""
        self._least = np.full(int(self.part.max(initial=0)) + 1, np.inf)

    def see(self, log_proba: np.ndarray) -> float:
        """Take notice of what is said at one step, (n, K); its log-loss a row on all rows."""
        loss = -self.weight * np.maximum(
            log_proba[np.arange(len(self.codes)), self.codes], -HIGHEST_LOSS
        )
        loss_of, weight_of = (
            np.bincount(self.part, a, minlength=len(self._least)) for a in (loss, self.weight)
        )
        others = (loss.sum() - loss_of) / np.maximum(self.weight.sum() - weight_of, 1e-300)
        better = others < (1 - self.gain) * self._least
        self._least = np.where(better, others, self._least)
        kept = self.log_proba if self.log_proba.shape == log_proba.shape else log_proba
        self.log_proba = np.where(better[self.part][:, None], log_proba, kept)
        return float(loss.sum() / max(self.weight.sum(), 1e-300))
