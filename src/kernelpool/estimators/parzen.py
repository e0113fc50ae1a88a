"""Parzen classifiers, full and reduced: scikit-learn shells of `kernelpool.training.parzen`."""

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, Float64, as_float64, device, is_numpy_array, namespace, safe_log
from ..errors import KernelpoolError
from ..inspection.describe import Description, Pool, classes_text, features_text
from ..inspection.marginals import Marginals, MixtureParams
from ..kernels import Kernels, Product, ProductKernels, Tied
from ..networks.parzen import ParzenParams, kernel_posterior, log_prior_scale
from ..networks.parzen_kernels import PROFILES, TILE, GaussianProfile, Profile, log_ways
from ..rows import Block, Frame, MissingCells, Rows
from ..tables.columns import Columns
from ..tables.words import Indicators
from ..text import plural
from ..training.held_out import split
from ..training.parzen import (
    LONGEST_ODDS,
    OCTAVE,
    FittedParzen,
    ParzenConfig,
    ParzenRows,
    ReducedParzen,
    Reduction,
    ReductionConfig,
    RoundInfo,
    build_trees,
    class_scores,
    fit_full_network,
    joint_or_counts,
    labeled,
    leave_one_out_scores,
    profile_of,
    tempered_scores,
    voting_params,
)
from ..training.parzen_size import SizeSearch
from ..training.parzen_width import choose_width
from ..training.prepare import class_prior_for, known_columns, validation_rows
from ..training.views import learned_metric
from .base import DensityClassifier, RowFunction, Transform, evidence, log_softmax
from .describing import describing_network, drawn_fillings

BLOCK_WIDTH = 4 * TILE
"""Scratch of a row: blocks of so few rows that what they make of a tile of kernels stays in the processor's caches."""


WORD_DISTANCES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Distances between two words that are tried, in units of the root-mean-square distance of two rows along a feature."""


class ParzenNetwork(DensityClassifier):
    """Kernels of one radius and answers from them; a subclass says which rows they are."""

    kernels_: np.ndarray
    kernel_classes_: np.ndarray
    kernel_weights_: np.ndarray
    radius_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions(set(PROFILES)), callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "class_prior": ["array-like", dict, StrOptions({"balanced"}), None],
        "standardize": ["boolean"],
        "missing": [StrOptions({"marginalize", "error"})],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
        "word_distance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "algorithm": [StrOptions({"auto", "tree", "blocks"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    @property
    def _takes_holes(self) -> bool:
        """A metric mixes what is missing with the rest, and nothing is known of the marginals of a gauge."""
        return (
            self.missing != "error"
            and isinstance(self.kernel, str)
            and getattr(self, "metric", None) is None
        )

    # -- the kernels ------------------------------------------------------------------------------------------------

    def _labeled(self, X: Any, y: Any, sample_weight: Any) -> ParzenRows:
        """Checked rows; missing cells are drawn given the class, and told of by `holed`."""
        data = labeled(self, X, y, sample_weight)
        self.columns_ = data.columns
        if data.levels is not None and not (
            isinstance(self.kernel, str) and getattr(self, "metric", None) is None
        ):
            raise KernelpoolError(
                "X has columns of words, which a learned metric and a kernel that is a function do not take; use "
                "kernel='gaussian' and metric=None."
            )
        x = np.asarray(data.x, np.float64)
        if not np.isnan(x).any():
            return data
        seed = int(check_random_state(self.random_state).randint(2**31))
        codes = np.unique(data.codes, return_inverse=True)[1]
        network = describing_network(x, data.weight, data.columns, seed, codes)
        (filled,) = drawn_fillings(network, x, codes, 1, seed)
        return replace(data, x=filled.astype(data.x.dtype), holed=data.x)

    def _seen(self, data: ParzenRows, distance: float | None = None) -> tuple[ParzenRows, Frame]:
        """The rows as distances are taken between them, and the frame that makes them so.

        `distance` is that between two words, in units of the root-mean-square distance of two rows along a feature.
        """
        if not self.standardize and data.levels is None:
            return data, data.frame
        frame = data.frame
        if self.standardize:
            frame = Frame(
                data.frame.origin, np.sqrt(np.where(data.variance > 0, data.variance, 1.0))
            )
        return data.seen(frame, word_distance=self._word_distance(data, frame, distance)), frame

    def _word_distance(self, data: ParzenRows, frame: Frame, distance: float | None) -> float:
        if not isinstance(self.word_distance, str):
            return float(self.word_distance)
        numbers = [i for i, n in enumerate(data.levels or ()) if not n]
        variance = (data.variance / frame.unit**2)[numbers]
        unit = math.sqrt(2 * variance.mean()) if variance.any() else 1.0
        return unit * (1.0 if distance is None else distance)

    def _judges(self, X_val: Any, y_val: Any, data: ParzenRows) -> ParzenRows:
        """Rows apart, as they were given."""
        x, codes = validation_rows(self, X_val, y_val, data.columns, data.classes)
        holed = x if np.isnan(x).any() else None
        return replace(
            data, x=x, codes=codes, weight=np.ones(len(x)), index=np.arange(len(x)), holed=holed
        )

    def _config(self, data: ParzenRows) -> ParzenConfig:
        """What the parameters say of every network of this fit."""
        return ParzenConfig(
            profile_of(self.kernel, data.x.shape[1]),
            None if isinstance(self.radius, str) else float(self.radius),
            None
            if self.class_prior is None
            else class_prior_for(self.class_prior, data.classes, _shares(data)),
            self.algorithm,
            self.n_jobs,
        )

    def _set_network(
        self,
        network: FittedParzen,
        data: ParzenRows,
        config: ParzenConfig,
        frame: Frame,
        metric: np.ndarray | None = None,
    ) -> None:
        """Set the attributes of a network, all that predictions need; `data` are the rows as they were given."""
        trees = build_trees(network.params(), config.profile, self.algorithm)
        self.classes_ = data.classes
        order = np.argsort(data.index)
        at = order[np.searchsorted(data.index, network.index, sorter=order)]
        self.kernels_ = data.x[at]
        self.kernel_weights_, self.kept_indices_ = network.weight, network.index
        self.kernel_classes_ = data.classes[network.codes]
        self.radius_ = network.radius
        self.temperature_ = 1.0
        optional = (
            "radii_",
            "radius_errors_",
            "radius_losses_",
            "metric_",
            "_fitted_prior",
            "word_distance_",
            "filled_",
        )
        for name in optional:
            self.__dict__.pop(name, None)
        if data.levels is not None:
            self.word_distance_ = network.word_distance
        if data.holed is not None:
            self.filled_ = np.isnan(data.holed[at]).astype(np.uint8)
        if metric is not None:
            self.metric_ = metric
        if network.choice is not None:
            self.radii_, self.radius_errors_ = network.choice.radii, network.choice.errors
        self._votes, self._prior_given = network.votes, network.class_prior is not None
        self.class_prior_ = (
            network.votes / network.votes.sum()
            if network.class_prior is None
            else network.class_prior
        )
        self._origin, self._unit = frame.origin, frame.unit
        self.scale_ = np.array(frame.unit) if self.standardize else np.ones_like(frame.unit)
        self._log_volume = config.profile.log_volume(self._n_numbers)
        self._trees = trees

    def _set_class_prior(self, class_prior: np.ndarray) -> None:
        self._fitted_prior = getattr(self, "_fitted_prior", self.class_prior_)
        self.class_prior_, self._prior_given = class_prior, True

    def _tempered_prior(self) -> np.ndarray:
        """Class priors inside the temperature: those of the fit, and what others are apart from them as if outside, (K,)."""
        fitted = getattr(self, "_fitted_prior", self.class_prior_)
        ratio = np.where(fitted > 0, self.class_prior_ / np.where(fitted > 0, fitted, 1.0), 0.0)
        return np.asarray(fitted * ratio ** getattr(self, "temperature_", 1.0))

    def _network(self, tempered: bool = False) -> ParzenParams:
        """The parameters in the frame; `tempered` where their scores are to be divided by the temperature."""
        center = (np.asarray(self.kernels_, np.float64) - self._origin) / self._unit
        metric, indicators = getattr(self, "metric_", None), self._indicators
        if indicators is not None:
            center = indicators.of(center, self._height)
        return voting_params(
            center if metric is None else center @ metric.T,
            np.searchsorted(self.classes_, self.kernel_classes_),
            self.kernel_weights_,
            self._votes,
            (self._tempered_prior() if tempered else self.class_prior_)
            if self._prior_given
            else None,
            self.radius_ / float(self._unit[0] / self._scale[0]),
            () if indicators is None else indicators.words,
            getattr(self, "word_distance_", 0.0) ** 2,
        )

    @property
    def _indicators(self) -> Indicators | None:
        """How words are seen, where there are any."""
        columns = known_columns(self)
        return None if columns is None else Indicators(columns.levels)

    @property
    def _height(self) -> float:
        """Of the indicators of words, so that two words are `word_distance_` apart."""
        return float(self.word_distance_) / math.sqrt(2)

    @property
    def _n_numbers(self) -> int:
        return self.n_features_in_ if self._indicators is None else len(self._indicators.numbers)

    @property
    def _log_norm(self) -> float:
        """log of the integral of a kernel in the units of the data, of words their sum."""
        log_norm = self._log_volume + self._n_numbers * math.log(self.radius_)
        if (self._scale != 1).any():
            log_norm += float(np.log(self._scale).sum())
        if self._indicators is not None:
            log_norm += float(np.logaddexp.reduce(self._log_slices()))
        return (
            log_norm
            if not hasattr(self, "metric_")
            else log_norm - float(np.linalg.slogdet(self.metric_)[1])
        )

    def _log_slices(self) -> np.ndarray:
        """log of the integral of a kernel over the numbers, summed over all rows in which 0, 1 ... words are not its own."""
        words = self._indicators.words  # type: ignore[union-attr]
        others = log_ways(words, np.ones((1, len(words))))[0]
        squared = np.arange(len(others)) * (self.word_distance_ / self.radius_) ** 2
        return np.asarray(others + safe_log(self._profile.left(squared, float(self._n_numbers))))

    @property
    def _scale(self) -> np.ndarray:
        """What features are divided by; ones for networks in files from before there was a choice."""
        return getattr(self, "scale_", np.ones_like(self._unit))

    @property
    def _frame(self) -> Frame:
        return Frame(self._origin, self._unit)

    @property
    def _profile(self) -> Profile:
        return profile_of(self.kernel, self.n_features_in_, self._log_volume)

    def _build_trees(self) -> Any:
        """Trees in which to count the kernels around a row, where that is worth while."""
        return build_trees(self._network(), self._profile, self.algorithm)

    # -- predictions ------------------------------------------------------------------------------------------------

    def _of_votes(
        self, rows: Rows, function: Callable[..., Array], params: ParzenParams, *before: Any
    ) -> RowFunction:
        trees = self._trees if is_numpy_array(getattr(rows, "x", None)) else None
        return self._in_metric(
            rows, function, *before, self._profile, params, self._log_norm, trees
        )

    def _in_metric(self, rows: Rows, function: Callable[..., Array], *params: Any) -> RowFunction:
        """`function` of rows in the frame, and in the metric where one was learned."""
        framed, indicators = rows.framed(self._frame, BLOCK_WIDTH), self._indicators
        if indicators is not None:
            return RowFunction(
                framed, _of_indicators, (function, indicators, self._height, *params)
            )
        if not hasattr(self, "metric_"):
            return RowFunction(framed, function, params)
        return RowFunction(framed, _of_mapped, (function, Float64(self.metric_), *params))

    def _map_scores(self, X: Any, transform: Transform) -> Array:
        rows, temperature = self._rows(X), getattr(self, "temperature_", 1.0)
        before = transform, temperature, safe_log(self.class_prior_)
        return self._of_votes(rows, _of_scores, self._network(tempered=True), *before)()

    def _density(self, rows: Rows) -> RowFunction:
        alone = log_prior_scale(np.ones_like(self._votes), self._votes)
        return self._of_votes(
            rows, _joint, replace(self._network(), log_scale=alone), *self._volumes()
        )

    def _volumes(self) -> tuple[np.ndarray, np.ndarray]:
        """log of the unit of each number, zero for words, (D,), and of the integral of a kernel over 0, 1 ... numbers."""
        unit, indicators = np.log(self._scale * self.radius_), self._indicators
        if indicators is not None:
            unit = np.where(np.array(indicators.levels) == 0, unit, 0.0)[indicators.sources]
        return unit, np.array(
            [self._profile.log_volume(n) if n else 0.0 for n in range(self._n_numbers + 1)]
        )

    def _marginals(self) -> Marginals | None:
        """Of Gaussian kernels: those are round in the metric, so that all have one covariance in the frame."""
        if not isinstance(self._profile, GaussianProfile):
            return None
        d, codes = self.n_features_in_, np.searchsorted(self.classes_, self.kernel_classes_)
        mixing = np.zeros((len(codes), len(self.classes_)))
        mixing[np.arange(len(codes)), codes] = self.kernel_weights_
        total = mixing.sum(axis=0)
        metric = getattr(self, "metric_", np.eye(d)) @ np.diag(self._unit / self._scale)
        covariance = self.radius_**2 * np.linalg.inv(metric.T @ metric)
        center = (np.asarray(self.kernels_, np.float64) - self._origin) / self._unit
        fitted = getattr(self, "_fitted_prior", self.class_prior_)
        family: Any = Tied(np.zeros(d))
        kernels, indicators = Kernels(center, covariance), self._indicators
        if indicators is not None:
            family, kernels = self._product(indicators, kernels)
        return Marginals(
            self._frame,
            (MixtureParams(family, kernels, mixing / np.where(total > 0, total, 1.0)),),
            np.zeros(1),
            safe_log(fitted),
            log_prior_shift=safe_log(self.class_prior_) - safe_log(fitted),
            temperature=getattr(self, "temperature_", 1.0),
            longest_odds=LONGEST_ODDS,
        )

    def _product(self, indicators: Indicators, kernels: Kernels) -> tuple[Product, ProductKernels]:
        """Gaussian kernels over the numbers, and over words a table: their own, and the rest for all others alike."""
        levels, numbers = indicators.levels, np.array(indicators.levels) == 0
        tables, odds = [], math.exp(-0.5 * (self.word_distance_ / self.radius_) ** 2)
        for i, n_levels in enumerate(levels):
            if n_levels:
                own = np.arange(n_levels) == kernels.mean[:, i : i + 1]
                tables.append(np.where(own, 1.0, odds) / (1 + (n_levels - 1) * odds))
        family = Product(Tied(np.zeros(int(numbers.sum()))), levels)
        covariance = np.where(np.outer(numbers, numbers), kernels.covariance, np.eye(len(numbers)))
        return family, ProductKernels(
            np.where(numbers, kernels.mean, 0.0), covariance, np.hstack(tables)
        )

    def _posterior(self, rows: Rows) -> RowFunction:
        return self._in_metric(rows, kernel_posterior, self._profile, self._network())

    def _evidence(self, rows: Rows) -> RowFunction:
        return self._of_votes(rows, _evidence, self._network(), *self._volumes())

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
        return self._rows_log_proba(self._rows(X))

    def _rows_log_proba(self, rows: Rows) -> Array:
        temperature = getattr(self, "temperature_", 1.0)
        return self._of_votes(
            rows,
            _log_probability,
            self._network(tempered=True),
            temperature,
            safe_log(self.class_prior_),
        )()

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
        return self._of_votes(self._rows(X), _covered, self._network())()

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        chosen = np.empty(len(codes), int)
        for k in np.unique(codes):
            in_class = np.flatnonzero(self.kernel_classes_ == self.classes_[k])
            share = self.kernel_weights_[in_class] / self.kernel_weights_[in_class].sum()
            chosen[codes == k] = rng.choice(in_class, size=(codes == k).sum(), p=share)
        if self._indicators is not None:
            return self._sample_words(chosen, rng)
        deviates = self._profile.sample(len(codes), self.n_features_in_, rng)
        if hasattr(self, "metric_"):
            deviates = np.linalg.solve(self.metric_, deviates.T).T
        return np.asarray(self.kernels_[chosen] + self.radius_ * deviates * self._scale)

    def _sample_words(self, chosen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Rows of the kernels `chosen`: how many words are others, which, and then the numbers of that slice of the kernel."""
        indicators, x = self._indicators, np.array(self.kernels_[chosen], np.float64)
        assert indicators is not None
        log_slices = self._log_slices()
        left = rng.choice(
            len(log_slices), size=len(x), p=np.exp(log_slices - np.logaddexp.reduce(log_slices))
        )
        squared = left * (self.word_distance_ / self.radius_) ** 2
        columns = [i for i, n in enumerate(indicators.levels) if n]
        for g in range(
            len(columns) - 1, -1, -1
        ):  # given how many are left among the first g + 1, whether this is one
            n_others = indicators.words[g] - 1.0
            ways = [log_ways(indicators.words[:n], np.ones((1, n)))[0] for n in (g, g + 1)]
            with np.errstate(divide="ignore"):
                log_share = np.append(-np.inf, ways[0])[left] + np.log(n_others) - ways[1][left]
            other = rng.uniform(size=len(x)) < np.exp(log_share)
            step = rng.randint(1, max(int(n_others), 1) + 1, size=len(x))
            x[other, columns[g]] = (x[other, columns[g]] + step[other]) % indicators.words[g]
            left = left - other
        scale = self.radius_ * self._scale[indicators.numbers]
        deviates = (
            self._profile.sample(len(x), len(scale), rng) if len(scale) else np.zeros((len(x), 0))
        )
        slice_scale = (
            np.ones(len(x))
            if isinstance(self._profile, GaussianProfile)
            else np.sqrt(np.maximum(1 - squared, 0))
        )
        x[:, indicators.numbers] += slice_scale[:, None] * deviates * scale
        return x

    def _kernel_pool(self) -> Pool:
        codes = np.searchsorted(self.classes_, self.kernel_classes_)
        prior = np.asarray(self.class_prior_)
        votes = np.bincount(codes, self.kernel_weights_, minlength=len(prior))
        share = self.kernel_weights_ * (prior / np.where(votes > 0, votes, 1))[codes]
        mean = np.asarray(self.kernels_, np.float64)
        back = np.diag(self._scale)  # from where distances are taken to the units of the data
        if hasattr(self, "metric_"):
            back = back @ np.linalg.inv(self.metric_)
        spread = self.radius_**2 * self._profile.variance(len(back)) * (back**2).sum(axis=1)
        variance = np.broadcast_to(spread, mean.shape)
        if any(self.columns_.levels):  # of categories: zeros and ones
            numbers = np.array(self.columns_.levels) == 0
            mean, variance = np.where(numbers, mean, 0.0), np.where(numbers, variance, 1.0)
        rows = np.asarray(self.kept_indices_)
        return Pool(share / share.sum(), np.eye(len(prior))[codes], mean, variance, rows=rows)


def _shares(data: ParzenRows) -> np.ndarray:
    """Of the classes, by weight, (K,)."""
    weight = np.bincount(data.codes, data.weight, minlength=len(data.classes))
    return np.asarray(weight / weight.sum())


def _of_mapped(
    block: Block, function: Callable[..., Array], metric: Float64, *params: Any
) -> Array:
    xp = namespace(block.x)
    return function(Block(xp.astype(as_float64(block.x) @ metric.value.T, block.x.dtype)), *params)


def _of_indicators(
    block: Block,
    function: Callable[..., Array],
    indicators: Indicators,
    height: float,
    *params: Any,
) -> Array:
    xp, other = namespace(block.x), Block(indicators.of(block.x, height))
    if block.missing is not None:
        sources = xp.asarray(indicators.sources, device=device(block.x))
        observed, patterns = (
            xp.take(a, sources, axis=1) for a in (block.missing.observed, block.missing.patterns)
        )
        other.missing = MissingCells(observed, patterns, block.missing.spans)
    return function(other, *params)


def _joint(block: Block, *params: Any) -> Array:
    """log P(C_k) p(x|C_k), (n, K), in the type of the rows."""
    joint = _of_known(block, *params)
    return namespace(joint).astype(joint, block.x.dtype)


def _evidence(block: Block, *params: Any) -> Array:
    total = evidence(_of_known(block, *params))
    return namespace(total).astype(total, block.x.dtype)


def _of_known(block: Block, log_unit: Array, log_volumes: Array, *params: Any) -> Array:
    """log P(C_k) p(x|C_k) of the cells that are known: kernels are integrated over the others, (n, K)."""
    joint = joint_or_counts(block, *params)
    if block.missing is None:
        return joint
    xp, missing, numbers = (
        namespace(joint),
        1 - as_float64(block.missing.observed),
        log_volumes.shape[0] - 1,
    )
    n_missing = xp.astype(xp.sum(missing[:, :numbers], axis=1), xp.int64)
    return (
        joint
        + (missing @ as_float64(log_unit) + xp.take(as_float64(log_volumes), n_missing))[:, None]
    )


def _covered(block: Block, *params: Any) -> Array:
    joint = joint_or_counts(block, *params)
    return namespace(joint).max(joint, axis=1) > -np.inf


def _tempered(block: Block, temperature: float, log_prior: Array, *params: Any) -> Array:
    """Class scores at the temperature, (n, K); the class priors where nothing is known."""
    scores = tempered_scores(class_scores(block, *params), temperature)
    if block.missing is None:
        return scores
    xp = namespace(scores)
    nothing = xp.sum(block.missing.observed, axis=1, keepdims=True) == 0
    return xp.where(nothing, as_float64(log_prior) + xp.zeros_like(scores), scores)


def _of_scores(block: Block, transform: Transform, *params: Any) -> Array:
    """What `transform` makes of the class scores at the temperature, numbers in the type of the rows."""
    result = transform(_tempered(block, *params))
    xp = namespace(result)
    return xp.astype(result, block.x.dtype) if xp.isdtype(result.dtype, "real floating") else result


def _log_probability(block: Block, *params: Any) -> Array:
    """Logarithm of the probability as it is rounded in the type of the rows."""
    log_probability = log_softmax(_tempered(block, *params))
    xp = namespace(log_probability)
    return safe_log(xp.astype(xp.exp(log_probability), block.x.dtype))


class ParzenClassifier(ParzenNetwork):
    r"""A kernel at every training row; the class with the most votes wins.

    The kernel-based network of Kraaijveld & Duin (1991), also known as probabilistic neural network:
    :math:`p(x|C_k) \propto \sum_{i: y_i = k} w_i K((x - x_i)/r)`. It is consistent: with more rows its error falls towards the
    Bayes error. Distances are Euclidean, between features of mean zero and variance one (`standardize`) or in a learned metric.

    By default kernels are Gaussian, and their width is the one at which the votes of the other rows tell the class of each row
    best. With ``kernel="hypersphere", radius="loo", standardize=False`` it is the network of the paper.

    Parameters
    ----------
    kernel : {"gaussian", "hypersphere", "epanechnikov"} or callable, default="gaussian"
        Shape of the kernels: the indicator of a ball (the paper), a Gaussian whose standard deviation is the radius,
        :math:`1 - u^2` within the radius; or a star-shaped set, given by its gauge: a function of differences, (n, d), that
        returns by what factor the set must be scaled to reach each, (n,). ``lambda u: np.abs(u).max(axis=1)`` is a cube.
    radius : float or {"conditional", "loo", "validation"}, default="conditional"
        The common radius; or how it is chosen. "conditional" takes the radius, and a temperature with it, at which the log-loss
        of training rows (a random 1,500 of them where there are more), each left out of the votes, is least; kernels other
        than Gaussian, whose votes end at the radius, are then chosen as by "loo". "loo" takes the radius with the fewest errors
        by leave-one-out on the training rows (a random 4,096), "validation" on rows set aside (the paper): see
        `validation_fraction`, and `X_val` of `fit`. The candidates of both are powers of :math:`2^{1/4}`. A radius is measured
        between standardized features where `standardize` is set, and in the learned metric where there is one.
    metric : {"learned"} or None, default=None
        "learned" maps the features linearly so that near rows are of one class: neighborhood components (Goldberger et al.
        2004), learned on a sample of 600 rows. Densities stay densities of the data.
    standardize : bool, default=True
        Whether distances are taken between features of mean zero and variance one. All that the network says stays in the units
        of the data.
    missing : {"marginalize", "error"}, default="marginalize"
        What NaN in X means, and None, pandas' NA and masked cells: a missing cell, or an error. A row is judged by the
        marginals of the kernels over the cells that are known, which are exact; a learned metric and a kernel that is a
        function have none and refuse such rows. A kernel at a training row with missing cells stands where these are drawn
        from a small mixture, given the class of the row.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words, as in `SharedKernelClassifier`. All words of a column are equally far from one another:
        a Gaussian kernel over numbers times the kernel of Aitchison & Aitken (1976) over each column of words.
    word_distance : float or "auto", default="auto"
        Distance between two words of a column, in the units of the radius: at a distance s a Gaussian kernel gives another
        word :math:`e^{-s^2/2r^2}` of what its own has. "auto" tries five with ``radius="conditional"`` and takes the one
        with the least log-loss; otherwise it is the root-mean-square distance of two rows along a feature.
    validation_fraction : float, default=0.25
        Share of the rows on which ``radius="validation"`` judges the others. All of them become kernels in the end.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes. None lets every kernel vote alike, so that they are the shares of the classes.
    algorithm : {"auto", "tree", "blocks"}, default="auto"
        How kernels around a row are found: by counting in one tree a class (hyperspheres of equal weight only), or by matrix
        products, a block at a time. The answers are the same; "auto" takes the faster one.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows left out or set aside, and of `sample`.
    n_jobs : int or None, default=None
        Threads, as in `SharedKernelClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        The radius in use.
    temperature_ : float
        What the logarithms of the votes are divided by in `predict_proba`, so that probabilities are as sure as they should be;
        1 unless `radius` is "conditional". Densities do not know it.
    radii_, radius_errors_, radius_losses_ : ndarray
        The candidates, where the radius was chosen, and of each the error on the rows left out, or for "conditional" their
        log-loss.
    scale_ : ndarray of shape (n_features,)
        What the features are divided by: their deviations, or ones.
    metric_ : ndarray of shape (n_features, n_features)
        The map of the scaled features, where a metric was learned.
    kernels_ : ndarray of shape (n_kernels, n_features)
        Centers, sorted by class; of words the positions in `categories_`.
    word_distance_ : float
        Distance between two words of a column; where there are words.
    filled_ : ndarray of shape (n_kernels, n_features)
        1 where a cell of a kernel was missing and has been drawn; where any were.
    categories_ : list of (ndarray of str or None)
        The words that are told apart in each column, the most frequent first, None for numbers; where there are such columns.
    kernel_classes_ : ndarray of shape (n_kernels,)
        Their classes.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Their votes.
    kept_indices_ : ndarray of shape (n_kernels,)
        The training rows that they are.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ReducedParzenClassifier : The same with few kernels.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.

    Examples
    --------
    >>> from kernelpool import ParzenClassifier
    >>> network = ParzenClassifier("hypersphere", 1.0, standardize=False).fit([[0.0], [0.5], [4.0]], ["a", "a", "b"])
    >>> network.predict([[0.2], [3.5], [9.0]])
    array(['a', 'b', 'b'], dtype='<U1')
    >>> network.covered([[0.2], [3.5], [9.0]])
    array([ True,  True, False])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ParzenNetwork._parameter_constraints,
        "radius": [
            StrOptions({"conditional", "loo", "validation"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "metric": [StrOptions({"learned"}), None],
    }

    def __init__(
        self,
        kernel: str | Callable[[np.ndarray], np.ndarray] = "gaussian",
        radius: float | str = "conditional",
        *,
        metric: str | None = None,
        standardize: bool = True,
        missing: str = "marginalize",
        categorical_features: Any = "from_dtype",
        word_distance: float | str = "auto",
        validation_fraction: float = 0.25,
        class_prior: Any = None,
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.radius = radius
        self.metric = metric
        self.standardize = standardize
        self.missing = missing
        self.categorical_features = categorical_features
        self.word_distance = word_distance
        self.validation_fraction = validation_fraction
        self.class_prior = class_prior
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Keep the rows and choose the radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; they become the kernels.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which the radius is chosen if it is "validation", for which None sets some of X aside, or "conditional".
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : ParzenClassifier
            The fitted estimator.
        """
        data = self._labeled(X, y, sample_weight)
        config = self._config(data)
        rng = check_random_state(self.random_state)
        seen, frame = self._seen(data)
        metric = None
        if self.metric == "learned":
            frame = frame if self.standardize else replace(frame, unit=np.ones_like(frame.unit))
            z, seed = data.seen(frame).x, rng.randint(2**31)
            metric = learned_metric(z, data.codes, data.weight, np.random.default_rng(seed))
            seen = data.seen(frame, metric)
        judges: ParzenRows | None = None
        if X_val is not None and self.radius in ("conditional", "validation"):
            judges = self._judges(X_val, y_val, data)
        if self.radius == "conditional" and isinstance(config.profile, GaussianProfile):
            seed = rng.randint(2**31) if data.levels is not None else 0
            tried = []
            for way in [seen] if data.levels is None else self._seen_at_distances(data):
                apart = (
                    judges
                    if judges is None or way is data
                    else judges.seen(frame, metric, way.word_distance)
                )
                draw = (
                    rng if data.levels is None else np.random.RandomState(seed)
                )  # the same rows judge every distance
                tried.append((choose_width(way, config.class_prior, draw, apart), way))
            choice, seen = min(tried, key=lambda one: np.nanmin(one[0].losses, initial=np.inf))
            network = fit_full_network(seen, replace(config, radius=choice.radius), rng)
            self._set_network(network, data, config, frame, metric)
            self.temperature_, self.radii_, self.radius_losses_ = (
                choice.temperature,
                choice.radii,
                choice.losses,
            )
            return self
        if judges is not None and seen is not data:
            judges = judges.seen(frame, metric, seen.word_distance)
        held_out: ParzenRows | np.ndarray | None = judges
        if self.radius == "validation" and judges is None:
            held_out = split(data.codes, self.validation_fraction, rng)[1]
        self._set_network(
            fit_full_network(seen, config, rng, held_out), data, config, frame, metric
        )
        return self

    def _seen_at_distances(self, data: ParzenRows) -> list[ParzenRows]:
        """The rows with words at several distances; where all are words, only the ratio to the radius counts."""
        one = not isinstance(self.word_distance, str) or min(data.levels or (0,)) > 0
        return [self._seen(data, distance)[0] for distance in ((None,) if one else WORD_DISTANCES)]

    def leave_one_out_log_proba(self) -> np.ndarray:
        """log P(C_k|x) of every training row by the votes of all other rows.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
            In the order of the training rows; those of weight zero are left out.
        """
        check_is_fitted(self)
        found = np.empty((len(self.kernels_), len(self.classes_)))
        order = np.argsort(np.argsort(self.kept_indices_))
        observed = None
        if hasattr(self, "filled_"):
            observed = 1.0 - self.filled_
            observed = (
                observed if self._indicators is None else observed[:, self._indicators.sources]
            )
        found[order] = leave_one_out_scores(
            self._profile, self._network(), self.temperature_, observed
        )
        return found

    def _describe(self) -> Description:
        return Description(
            f"A {self._profile.noun} of radius {self.radius_:.4g} at each of "
            f"{len(self.kernels_):,} training rows in {features_text(self)}; the one of "
            f"{classes_text(self)} with the most votes wins.",
            self._kernel_pool(),
        )


class ReducedParzenClassifier(ParzenNetwork):
    r"""A Parzen classifier with few kernels: edited, then reduced to those that best represent the rest.

    First the rows that lie among those of another class are edited away (`MultiEdit`): they cannot win a vote. Then, class by
    class, those K of the N kernels are kept whose density is closest to that of all of them, by Fukunaga's entropy criterion
    :math:`\sum_i \ln(p_K(x_i) / p_N(x_i))`. Few kernels represent a density best at a larger radius than many do: the densities
    are compared at multiples of the radius of the full network, up to 16, and the multiple is taken whose kernels then classify
    the training rows best, none voting for itself. A row that stands several times counts as one row of more weight.

    Parameters
    ----------
    n_kernels : int, float or "auto", default=0.05
        How many kernels to keep, in all, or what share of the distinct rows; they are dealt out to the classes in proportion to
        the rows left of each. "auto" takes the smallest number whose error is within `tolerance` of the full network's, by
        cross-validation; all rows where half of them are not enough.
    kernel : {"hypersphere", "gaussian", "epanechnikov"} or callable, default="hypersphere"
        As in `ParzenClassifier`.
    radius : float, "loo" or "validation", default="loo"
        The common radius. "loo" chooses one by leave-one-out for the full network, with which rows are edited, and one for the
        reduced network: the radius at which its kernels classify the training rows best. "validation" lets rows apart choose,
        `X_val` in `fit` or some of X that are set aside: the radius, and which of the subsets of kernels that were tried is
        kept. Their errors, `validation_error_`, are then those of the best of `n_tried_` networks (`bounds.certify`).
    edit : bool, "auto" or resampler, default="auto"
        Whether to edit first, as the paper does: with what the first round of `MultiEdit` leaves or with what is left at its
        end, whichever then classifies the training rows better. "auto" may take all rows as well. Or what edits, a `MultiEdit`
        or anything else with `fit_resample` and `sample_indices_`.
    method : {"entropy", "herding"}, default="entropy"
        Fukunaga's criterion with exchanges, started from herding; or kernel herding alone (Chen, Welling & Smola 2010), which
        is quicker.
    weights : {"equal", "em"}, default="equal"
        One vote a kernel, as in the paper; or votes fitted by EM to the same criterion. Only equal votes can be certified by
        `bounds.certify_by_compression`.
    tolerance : float, default=0.01
        For ``n_kernels="auto"``: by how much the error may exceed that of the full network. The excess found must stay below it
        by a standard error, or by half of the tolerance where that is less.
    validation_fraction : float, default=0.25
        For ``n_kernels="auto"``: share of the rows set aside while sizes are tried; all rows are, in turn. For
        ``radius="validation"`` without `X_val`: share of the rows set aside to choose.
    n_candidates : int, default=64
        Rows that are tried in the place of a kernel.
    max_sweeps : int, default=10
        Most passes of exchanges over the kernels.
    tol : float, default=1e-3
        Exchanges end when a pass adds less than this to the criterion, a mean over the rows.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes. None lets every kernel vote alike.
    standardize : bool, default=True
        As in `ParzenClassifier`. Certificates need False: the scale of the features depends on all rows, not on the kernels.
    missing : {"marginalize", "error"}, default="marginalize"
        As in `ParzenClassifier`; balls have marginals too.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words, as in `SharedKernelClassifier`. All words of a column are equally far from one another.
    word_distance : float or "auto", default="auto"
        Distance between two words of a column, in the units of the radius. "auto" takes the root-mean-square distance of two
        rows along a feature.
    algorithm : {"auto", "tree", "blocks"}, default="auto"
        As in `ParzenClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the editing, of the candidates, and of `sample`.
    n_jobs : int or None, default=None
        Threads, as in `SharedKernelClassifier`.
    verbose : int, default=0
        1 prints a line for each stage, 2 also one for each round of editing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        Radius of the kernels, between standardized features where `standardize` is set.
    temperature_ : float
        Always 1; see `ParzenClassifier`.
    scale_ : ndarray of shape (n_features,)
        What the features are divided by: their deviations, or ones.
    full_radius_ : float
        Radius of the full network, at which rows were edited.
    radii_, radius_errors_ : ndarray
        Candidates for `radius_` and their errors on the training rows, where it was chosen.
    kernels_, kernel_classes_, kernel_weights_ : ndarray
        The kernels kept, sorted by class, with their classes and votes; of words the positions in `categories_`.
    word_distance_ : float
        Distance between two words of a column; where there are words.
    filled_ : ndarray of shape (n_kernels, n_features)
        1 where a cell of a kernel was missing and has been drawn; where any were.
    categories_ : list of (ndarray of str or None)
        The words that are told apart in each column, the most frequent first, None for numbers; where there are such columns.
    kept_indices_ : ndarray of shape (n_kernels,)
        The training rows that they are.
    edited_indices_ : ndarray
        The training rows among which kernels were chosen: those that editing left, or all.
    criterion_ : ndarray of shape (n_classes,)
        Mean :math:`\ln(p_K / p_N)` over the edited rows of each class, with equal votes. The integral that it stands for is
        never positive, and zero where both densities agree; a mean over rows may exceed it and be positive.
    curve_ : list of (int, float)
        For ``n_kernels="auto"``: the sizes tried and their errors on rows set aside; of a hopeless size, on some of them.
    full_error_ : float
        For ``n_kernels="auto"``: that of the full network, each row left out of its own vote.
    n_rows_ : int
        Training rows.
    validation_error_ : float
        Where rows apart chose: share of them that the network misclassifies.
    n_tried_ : int
        Where rows apart chose: networks among which they may have chosen, for `bounds.certify`.
    n_choices_ : int or None
        Radii that might have been taken, for `bounds.certify_by_compression`; None where the network depends on more.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.
    K. Fukunaga and R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI 11(4), 1989.
    Y. Chen, M. Welling and A. Smola, "Super-samples from kernel herding", UAI 2010.

    Examples
    --------
    >>> from kernelpool import ReducedParzenClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(2000, random_state=0)
    >>> network = ReducedParzenClassifier(n_kernels=40, random_state=0).fit(X, y)
    >>> network.kernels_.shape
    (40, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ParzenNetwork._parameter_constraints,
        "n_kernels": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "radius": [StrOptions({"loo", "validation"}), Interval(Real, 0, None, closed="neither")],
        "edit": ["boolean", StrOptions({"auto"}), HasMethods("fit_resample")],
        "method": [StrOptions({"entropy", "herding"})],
        "weights": [StrOptions({"equal", "em"})],
        "tolerance": [Interval(Real, 0, 1, closed="left")],
        "n_candidates": [Interval(Integral, 2, None, closed="left")],
        "max_sweeps": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_kernels: int | float | str = 0.05,
        *,
        kernel: str | Callable[[np.ndarray], np.ndarray] = "hypersphere",
        radius: float | str = "loo",
        edit: Any = "auto",
        method: str = "entropy",
        weights: str = "equal",
        tolerance: float = 0.01,
        validation_fraction: float = 0.25,
        n_candidates: int = 64,
        max_sweeps: int = 10,
        tol: float = 1e-3,
        class_prior: Any = None,
        standardize: bool = True,
        missing: str = "marginalize",
        categorical_features: Any = "from_dtype",
        word_distance: float | str = "auto",
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.kernel = kernel
        self.radius = radius
        self.edit = edit
        self.method = method
        self.weights = weights
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.n_candidates = n_candidates
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.class_prior = class_prior
        self.standardize = standardize
        self.missing = missing
        self.categorical_features = categorical_features
        self.word_distance = word_distance
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Edit the rows, choose the kernels among those left, and choose their radius.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best network tried so far, if there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight zero take no part. Editing counts every distinct row once.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows apart, the paper's test set, on which the kernels are chosen and, with ``radius="validation"``, their radius.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : ReducedParzenClassifier
            The fitted estimator.
        """
        given = self._labeled(X, y, sample_weight).merge_duplicates()
        data, frame = self._seen(given)
        config = self._config(data)
        rng = check_random_state(self.random_state)
        judges: ParzenRows | None = None
        if X_val is not None:
            if self.radius == "loo":
                raise KernelpoolError(
                    'X_val needs radius="validation" or a number; got radius="loo".'
                )
            judges = self._judges(X_val, y_val, given)
            judges = (
                judges if data is given else judges.seen(frame, word_distance=data.word_distance)
            )
        elif self.radius == "validation":
            others, apart = split(data.codes, self.validation_fraction, rng)
            judges, data = data.part(apart), data.part(others)
        size = self._size(data)
        if judges is not None and size is None:
            raise KernelpoolError(
                'Rows apart choose among networks of one size; give n_kernels as a number, not "auto".'
            )
        on_round = _print_round if self.verbose > 1 else None
        if size is not None:
            reduction = Reduction(
                data, config, self._reduction_config(), rng, self._say, on_round, judges
            )
            try:
                found = reduction.reduce(size)
            except KeyboardInterrupt:
                if reduction.best_trial is None:
                    raise
                self._set_reduced(reduction.best_trial, given, config)
                raise KeyboardInterrupt(
                    "interrupted; the best network tried so far was kept"
                ) from None
            self._set_reduced(found, given, config)
            if judges is not None:
                self.validation_error_, self.n_tried_ = found.error, reduction.n_tried
            return self
        search = SizeSearch.prepare(
            data,
            config,
            self._reduction_config(),
            rng,
            tolerance=float(self.tolerance),
            validation_fraction=self.validation_fraction,
            say=self._say,
            on_round=on_round,
        )
        try:
            found = search.build()
        except KeyboardInterrupt:
            best = search.reduction.best_trial
            self._set_reduced(best or search.reduction.full_network(), given, config, search)
            which = "the best network tried so far" if best else "the full network, of all rows,"
            raise KeyboardInterrupt(
                f"interrupted while sizes were tried; {which} was kept"
            ) from None
        self._set_reduced(found, given, config, search)
        return self

    def _reduction_config(self) -> ReductionConfig:
        edit = self.edit if isinstance(self.edit, bool | str) else _resampler(self.edit)
        return ReductionConfig(
            self.method, self.weights, self.n_candidates, self.max_sweeps, self.tol, edit
        )

    def _set_reduced(
        self,
        found: ReducedParzen,
        data: ParzenRows,
        config: ParzenConfig,
        search: SizeSearch | None = None,
    ) -> None:
        self._set_network(found.network, data, config, self._seen(data)[1])
        self.full_radius_, self.criterion_, self.edited_indices_ = (
            found.full_radius,
            found.criterion,
            found.edited,
        )
        for name in ("curve_", "full_error_", "validation_error_", "n_tried_"):
            self.__dict__.pop(name, None)
        if search is not None:
            self.curve_, self.full_error_ = search.curve, search.full_error
        self.n_rows_ = data.n_rows
        simple = self.weights == "equal" and config.class_prior is None and not self.standardize
        simple = (
            simple
            and data.holed is None
            and (data.levels is None or not isinstance(self.word_distance, str))
        )
        in_list = config.radius is not None or 2.0**-32 <= self.radius_ < 2.0**32
        self.n_choices_ = (
            None if not (simple and in_list) else 1 if config.radius is not None else 64 * OCTAVE
        )

    def _size(self, data: ParzenRows) -> int | None:
        """How many kernels to keep; None if that is to be found."""
        n, n_classes = len(data.x), len(np.unique(data.codes))
        if self.n_kernels == "auto":
            return None
        size = (
            self.n_kernels
            if isinstance(self.n_kernels, Integral)
            else max(n_classes, round(float(self.n_kernels) * n))
        )
        if size > n:
            raise KernelpoolError(
                f"n_kernels must not exceed the number of distinct rows, {n}; got {size}."
            )
        if size < n_classes:
            raise KernelpoolError(
                f"n_kernels must be at least the number of classes, {n_classes}; got {size}."
            )
        return int(size)

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"ReducedParzenClassifier: {line}")

    def _describe(self) -> Description:
        edited = len(self.edited_indices_)
        left = "" if edited == self.n_rows_ else f", {edited:,} of which editing had left"
        return Description(
            f"{plural(len(self.kernels_), self._profile.noun)} of radius {self.radius_:.4g}, "
            f"chosen from {self.n_rows_:,} training rows{left}, for {classes_text(self)} in "
            f"{features_text(self)}.",
            self._kernel_pool(),
        )


def _resampler(editor: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The positions of the rows that a resampler keeps, as a function of rows and codes."""

    def kept(x: np.ndarray, codes: np.ndarray) -> np.ndarray:
        own = clone(editor) if isinstance(editor, BaseEstimator) else editor
        own.fit_resample(x, codes)
        if not hasattr(own, "sample_indices_"):
            raise KernelpoolError(
                f"edit must tell which rows it kept in sample_indices_; {type(own).__name__} does not."
            )
        return np.unique(own.sample_indices_)

    return kept


def _print_round(info: RoundInfo) -> bool:
    print(f"MultiEdit: round {info.round}, {info.n_dropped} dropped, {info.n_kept} left")
    return False
