r"""How well classes are told apart on rows that took no part in training.

The log-loss of a class posterior measures two things at once: whether the right class comes first, and whether the posterior
is as sure as it should be. Mixtures in more than a few dimensions are too sure, and the more so the better they tell classes
apart; the plain log-loss then prefers a blurred network to a sharp one. So networks are compared by their *tempered* loss, the
log-loss at the one temperature that suits each best,

.. math:: \min_\beta\; \frac{\sum_n w_n\, (-\log P_\beta(C_{y_n} \mid x_n))}{\sum_n w_n}, \qquad
    P_\beta(C_k \mid x) \propto (P(C_k)\, p(x \mid C_k))^\beta

and of those that are as good as the best by that measure (within one standard error of the difference, row by row) those are
taken whose plain log-loss is lowest, again up to one standard error, and of these the smallest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.model_selection import train_test_split

COLDEST, HOTTEST = 1 / 64, 2.0
"""Bounds of beta."""


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
        """By how much this loss is above another on the same rows, and the standard error of that."""
        difference = getattr(self, kind) - getattr(other, kind)
        mean = self.mean(difference)
        return mean, float(np.sqrt(self.mean((difference - mean) ** 2) / self.weight.sum()))


def loss_of(log_joint: np.ndarray, code: np.ndarray, weight: np.ndarray) -> Loss:
    """From log P(C_k) p(x|C_k), (n, K), of held-out rows of classes `code`."""
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
    """The smallest of the best calibrated of those that tell classes apart best.

    "Best" is within a standard error of the lowest loss: first by the tempered loss, of these by the plain loss. `sizes` are
    compared entry by entry. Of several that are smallest, the one with the lowest plain loss is taken, and the earliest of
    equals (to six places: the rest is rounding).
    """
    sharp = _lowest(list(range(len(losses))), losses, "tempered")
    calm = _lowest(sharp, losses, "plain")
    return min(calm, key=lambda i: (sizes[i], round(losses[i].mean(losses[i].plain), 6), i))


def _lowest(among: list[int], losses: list[Loss], kind: str) -> list[int]:
    """Those whose loss of this kind is within a standard error of the lowest."""
    best = min((losses[i] for i in among), key=lambda loss: loss.mean(getattr(loss, kind)))
    ahead = {i: losses[i].behind(best, kind) for i in among}
    return [i for i in among if ahead[i][0] <= ahead[i][1]]


def n_folds(weight: float) -> int:
    """Few rows need more folds: what is held out must be enough to tell networks apart."""
    return 5 if weight < 1500 else 3


def folds_of(key: np.ndarray, code: np.ndarray, weight: np.ndarray, n_folds: int) -> np.ndarray:
    """The fold in which each row is held out, (n,); -1 for those that always train.

    Rows are dealt out class by class in the order of `key`, a number made from their content: equal rows meet in one fold, a
    row of weight two is the same as the row twice, and the order of the rows means nothing. Rows without a label always train,
    and so does the only row of a class.
    """
    fold = np.full(len(key), -1)
    start = 0
    for k in np.unique(code[code >= 0]):
        mine = np.flatnonzero((code == k) & (weight > 0))
        distinct, place = np.unique(key[mine], return_inverse=True)
        if len(distinct) > 1:
            # the next class goes on where this one stopped, so that folds are of equal size
            fold[mine] = (start + place) % n_folds
            start += len(distinct)
    return fold


def split(codes: np.ndarray, fraction: float, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Positions of most rows, and of the rest, with the classes in the same shares where there are rows enough."""
    least = np.bincount(codes)[np.unique(codes)].min()
    n_judged = math.ceil(fraction * len(codes))
    enough = least > 1 and min(n_judged, len(codes) - n_judged) >= len(np.unique(codes))
    others, judged = train_test_split(
        np.arange(len(codes)), test_size=fraction, random_state=rng, stratify=codes if enough else None
    )
    return np.sort(others), np.sort(judged)


def folds(codes: np.ndarray, n_folds: int, rng: np.random.RandomState) -> list[np.ndarray]:
    """Positions of the rows in each of some parts, with the classes in the same shares as far as may be."""
    order = np.concatenate([rng.permutation(np.flatnonzero(codes == code)) for code in np.unique(codes)])
    return [np.sort(order[i::n_folds]) for i in range(min(n_folds, len(order)))]
