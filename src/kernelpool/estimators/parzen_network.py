"""What the full and the reduced Parzen classifier share: kernels that are there, their radius, and answers from them."""

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..arrays import Array, is_numpy_array, namespace, safe_log
from ..networks.parzen import (
    Network,
    RadiusErrors,
    decided,
    kernel_posterior,
    log_joint,
    log_prior_scale,
    network,
    radius_errors,
)
from ..networks.parzen_kernels import PROFILES, TILE, Profile, StarShaped, ball_log_volume
from ..rows import ArrayRows, Block, Frame, Rows
from ..training.validation import Labeled
from ._base import Answer, DensityClassifier, Question, evidence, identity, log_softmax
from .neighbors import build_trees, count_votes, decided_by_trees
from .star_shaped import checked_gauge, directions

LOO_ROWS, LOO_PAIRS = 4096, 1 << 24
"""Rows that are left out, one at a time, to choose a radius: a random sample of so many, or of so many pairs with kernels."""

OCTAVE = 4
"""Radii are chosen from the powers of two to the 1/OCTAVE, a list that does not depend on the data."""

MOST_RADII = 48


class ParzenNetwork(DensityClassifier):
    """Kernels of one radius and answers from them; a subclass says which rows they are."""

    kernels_: np.ndarray
    kernel_classes_: np.ndarray
    kernel_weights_: np.ndarray
    radius_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions(set(PROFILES)), callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "class_prior": ["array-like", None],
        "algorithm": [StrOptions({"auto", "tree", "blocks"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    # -- the kernels ------------------------------------------------------------------------------------------------

    def _profile(self, d: int) -> Profile:
        if not callable(self.kernel):
            return PROFILES[self.kernel]()
        gauge = checked_gauge(self.kernel, directions(d))
        with np.errstate(divide="ignore"):
            log_volume = ball_log_volume(d) + float(np.log(np.mean(gauge ** -float(d))))
        return StarShaped(self.kernel, log_volume)

    def _set_kernels(self, data: Labeled, kept: np.ndarray, weight: np.ndarray, prior: np.ndarray | None) -> None:
        """Keep the rows `kept` as kernels, sorted by class, each with a `weight` of votes."""
        order = np.argsort(data.codes[kept], kind="stable")
        kept, weight = kept[order], weight[order]
        self.classes_ = data.classes
        self.kernels_, self.kernel_weights_, self.kept_indices_ = data.x[kept], weight, data.index[kept]
        codes = data.codes[kept]
        self.kernel_classes_ = data.classes[codes]
        votes = np.bincount(codes, weight, minlength=len(data.classes))
        self._votes = votes
        self._prior_given = prior is not None
        self.class_prior_ = votes / votes.sum() if prior is None else prior
        self._origin, self._unit = data.frame.origin, data.frame.unit
        self._log_volume = self._profile(data.x.shape[1]).log_volume(data.x.shape[1])

    def _network(self, radius: float | None = None) -> Network:
        """In the frame."""
        frame = self._frame
        codes = np.searchsorted(self.classes_, self.kernel_classes_)
        offsets = tuple(np.searchsorted(codes, np.arange(len(self.classes_) + 1)).tolist())
        if self._prior_given:
            log_scale = log_prior_scale(self.class_prior_, self._votes)
        else:  # every vote counts the same, to the last bit: a tie is a tie
            log_scale = np.where(self._votes > 0, -math.log(self._votes.sum()), -np.inf)
        radius = self.radius_ if radius is None else radius
        center = (np.asarray(self.kernels_, np.float64) - frame.origin) / frame.unit
        return network(center, self.kernel_weights_, offsets, log_scale, radius / float(frame.unit[0]))

    @property
    def _frame(self) -> Frame:
        return Frame(self._origin, self._unit)

    def _plant_trees(self) -> None:
        """Trees in which to count the kernels around a row, where that is worth while."""
        self._trees = build_trees(self._network(), self.kernel, self.algorithm)

    # -- the radius -------------------------------------------------------------------------------------------------

    def _radii(self, variance: np.ndarray, weight: float) -> np.ndarray:
        """Candidates, falling, from the fixed list: from the spread of the data to less than a row's distance from the next."""
        d = len(variance)
        spread = math.sqrt(variance.sum()) * (1.0 if self.kernel != "gaussian" else 1 / math.sqrt(d + 2))
        if not spread > 0:
            return np.ones(1)
        smallest = 0.5 * spread * max(weight, 2.0) ** (-1 / min(d, 2))
        high = math.floor(OCTAVE * math.log2(spread))
        low = max(math.floor(OCTAVE * math.log2(smallest)), high - MOST_RADII + 1)
        return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)

    def _best_radius(
        self, data: Labeled, query: Labeled, own: np.ndarray, rng: np.random.RandomState, ease: float = 0.0
    ) -> float:
        """The radius with the fewest errors on `query`; of several, the middle one. `own` tells which kernel a row itself is.

        With some `ease`, the largest radius whose errors are within so many standard errors of the fewest: it covers more.
        """
        radii = self._radii(data.variance, data.weight.sum())
        errors = self._radius_errors(radii, query, own, rng)
        self.radii_, self.radius_errors_ = radii, errors.wrong / errors.weight
        fewest = float(errors.wrong.min())
        if ease:
            allowed = fewest + ease * math.sqrt(fewest * (1 - fewest / float(errors.weight)))
            return float(radii[np.argmax(errors.wrong <= allowed)])
        best = np.flatnonzero(errors.wrong <= fewest * (1 + 1e-12))
        return float(radii[best[(len(best) - 1) // 2]])

    def _radius_errors(self, radii: np.ndarray, query: Labeled, own: np.ndarray, rng: np.random.RandomState) -> RadiusErrors:
        """What each radius costs on `query`, or on a random part of it where pairs of rows and kernels are too many."""
        at, most = np.arange(len(query.x)), max(LOO_ROWS, LOO_PAIRS // len(self.kernels_))
        if len(at) > most:
            at = np.sort(rng.choice(at, most, replace=False))
        profile = self._profile(query.x.shape[1])
        net = self._network(float(radii[-1]))
        rows = ArrayRows(query.x[at], np.arange(len(at)), query.weight[at], n_jobs=self.n_jobs).framed(self._frame, TILE)
        scaled = (radii / self._unit[0]).tolist()
        errors: RadiusErrors = rows.total(radius_errors, profile, net, scaled, query.codes[at], own[at])
        return errors

    # -- answers ----------------------------------------------------------------------------------------------------

    def _each(self, X: Any, answer: Answer) -> Array:
        return self._ask(X, lambda rows: self._votes_for(answer, rows, self._network()))

    def _density(self, rows: Rows) -> Question:
        alone = log_prior_scale(np.ones_like(self._votes), self._votes)
        return self._votes_for(identity, rows, replace(self._network(), log_scale=alone))

    def _votes_for(self, answer: Answer, rows: Rows, net: Network) -> Question:
        trees = self._trees if is_numpy_array(getattr(rows, "x", None)) else None
        d = self.n_features_in_
        log_norm = self._log_volume + d * math.log(self.radius_)
        return rows.framed(self._frame, TILE), _answered, (answer, self._profile(d), net, log_norm, trees)

    def _posterior(self, rows: Rows) -> Question:
        return rows.framed(self._frame, TILE), kernel_posterior, (self._profile(self.n_features_in_), self._network())

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`.

        Minus infinity where the probability is zero, or too small for a floating-point number, as those of narrow kernels
        often are. `log_density` still tells such classes apart.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return super().predict_log_proba(X)

    def covered(self, X: Any) -> Any:
        """Whether any kernel covers each row; where none does, `predict` names the class of the nearest kernel.

        `score_samples` is minus infinity there. Hyperspheres, Epanechnikov's kernels and star-shaped sets are zero beyond their
        radius; Gaussian kernels cover everything.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        covered : array of shape (n_samples,)
            Booleans.
        """
        return self._each(X, _covered)

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        chosen = np.empty(len(codes), int)
        for k in np.unique(codes):
            mine = np.flatnonzero(self.kernel_classes_ == self.classes_[k])
            share = self.kernel_weights_[mine] / self.kernel_weights_[mine].sum()
            chosen[codes == k] = rng.choice(mine, size=(codes == k).sum(), p=share)
        return np.asarray(self.kernels_[chosen] + self.radius_ * self._deviates(len(codes), rng))

    def _deviates(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws from a kernel of radius one at zero, (n, d)."""
        d = self.n_features_in_
        normal = rng.standard_normal((n, d))
        if self.kernel == "gaussian":
            return normal
        length = rng.uniform(size=(n, 1)) ** (1 / d)
        if self.kernel == "epanechnikov":
            length = np.sqrt(rng.beta(d / 2, 2, size=(n, 1)))
        if not callable(self.kernel):
            return np.asarray(length * normal / np.linalg.norm(normal, axis=1, keepdims=True))
        around = directions(d)
        gauge = checked_gauge(self.kernel, around)
        volume = gauge ** -float(d)  # a direction holds the more of the set the farther it reaches
        at = rng.choice(len(around), size=n, p=volume / volume.sum())
        return np.asarray(length * around[at] / gauge[at, None])


def _answered(block: Block, answer: Answer, profile: Profile, net: Network, log_norm: float, trees: Any) -> Array:
    joint = log_joint(block, profile, net, log_norm) if trees is None else count_votes(block, net, trees, log_norm)
    if answer not in (identity, _covered, evidence):
        joint = decided(joint, block, profile, net) if trees is None else decided_by_trees(joint, block, trees)
    result = answer(joint)
    xp = namespace(result)
    if answer is log_softmax:  # of what predict_proba says, rounded as it is
        result = safe_log(xp.astype(xp.exp(result), block.x.dtype))
    return xp.astype(result, block.x.dtype) if xp.isdtype(result.dtype, "real floating") else result


def _covered(joint: Array) -> Array:
    return namespace(joint).max(joint, axis=1) > -np.inf
