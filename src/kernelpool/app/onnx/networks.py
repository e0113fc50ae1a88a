"""Networks as ONNX graphs: the answers of each estimator from rows, (n, d).

Distances are taken from x - mean, so that float32 loses no more than it must; squares are expanded
in float64 alone. The parts are those of the estimators: the same frame, the same floors of
probabilities, the same way out where no kernel covers a row.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import KernelpoolError
from ...estimators import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    EMLogRegressor,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from ...tables.columns import indicators_of
from .graph import Graph

LOG_2_PI = math.log(2 * math.pi)

LOWEST = math.log(1e-12)
"""Of log-probabilities in a pool, as in the estimator."""

FARTHEST, LARGEST, LONGEST_ODDS = 8.0, 300.0, math.log(1e12)
"""Bounds of warped features, of exponents, and of log-odds before they are divided by a
temperature, as in the estimators.
"""

Answers = dict[str, str]
"""What the graph makes, by the name under which it is returned: joint or probability, log_density,
score_samples ...
"""


def hstack(g: Graph, parts: list[str]) -> str:
    """Tensors side by side."""
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=1)


@dataclass(frozen=True)
class Frame:
    """x -> (x - origin) / unit, both (d,): where float32 loses least."""

    origin: np.ndarray
    unit: np.ndarray

    def rows(self, g: Graph, x: str) -> str:
        """Rows in the frame, within bounds whose squares cannot overflow."""
        bound = 1e100 if g.dtype == np.float64 else 1e12
        return g.clip(g.multiply(g.centered(x, self.origin), 1 / self.unit), -bound, bound)


def complete(g: Graph, x: str) -> str:
    """Rows for a network that takes complete ones: a run with a missing cell ends with an error."""
    if g.complete:
        return x
    g.complete = True
    some = g.cast(_any(g, g.cast(g.op("IsNaN", x), g.dtype)), np.int64)
    message = "A cell is missing, and the exported network takes complete rows only"
    return g.add(x, g.op("Gather", np.zeros(1), some, message=message))


def _any(g: Graph, counts: str) -> str:
    """Whether any entry is not zero, a scalar; there may be no rows."""
    total = g.op("ReduceSum", counts, keepdims=0)
    return g.op("Greater", total, 0.5)


# -- densities of rows with missing cells ----------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Kernels in the units of the data: Gaussians over numbers times tables of probabilities over
    categories.
    """

    mean: np.ndarray
    """(M, d); what it holds for categories means nothing."""
    covariance: np.ndarray
    """(M, d), or (M, d, d)."""
    levels: tuple[int, ...]
    probability: np.ndarray | None = None
    """Of all categories, (M, W)."""

    @classmethod
    def of(cls, model: Any, levels: tuple[int, ...] = ()) -> "Mixture":
        """From `means_`, `covariances_` and `covariance_type_`."""
        mean, covariance = np.asarray(model.means_), np.asarray(model.covariances_)
        m, d = mean.shape
        if model.covariance_type_ == "tied":
            covariance = np.broadcast_to(covariance, (m, d, d))
        if model.covariance_type_ == "spherical":
            covariance = np.broadcast_to(covariance[:, None], (m, d))
        levels = levels or (0,) * d
        return cls(mean, covariance, levels, model.probabilities_ if any(levels) else None)

    @property
    def variance(self) -> np.ndarray:
        """Along each feature, (M, d)."""
        full = self.covariance.ndim == 3
        return np.diagonal(self.covariance, axis1=1, axis2=2) if full else self.covariance

    def frame(self) -> Frame:
        """With unit variance over all kernels; categories stay codes."""
        unit = np.sqrt(self.variance.mean(axis=0) + self.mean.var(axis=0))
        number = np.array(self.levels) == 0
        return Frame(np.where(number, self.mean.mean(axis=0), 0.0), np.where(number, unit, 1.0))

    def log_densities(self, g: Graph, z: str, known: str | None, frame: Frame) -> str:
        """log p(x|j) of rows in a frame, (n, M); cells that are not `known` are integrated out."""
        found, start = [], 0
        for i, n in enumerate(self.levels):
            if n:
                table = np.log(self.probability[:, start : start + n].T)  # type: ignore[index]
                # the last row is that of a missing cell
                table = np.vstack([table, np.zeros(len(self.mean))])
                found.append(g.op("Gather", table, _code(g, z, i), axis=0))
                start += n
        numbers = [i for i, n in enumerate(self.levels) if not n]
        if numbers:
            origin, unit = frame.origin[numbers], frame.unit[numbers]
            mean = (self.mean[:, numbers] - origin) / unit
            if self.covariance.ndim == 3:
                covariance = self.covariance[:, numbers][:, :, numbers] / np.outer(unit, unit)
            else:
                covariance = self.covariance[:, numbers] / unit**2
            if len(numbers) < len(self.levels):
                at = numbers
                z = g.op("Gather", z, at, axis=1)
                known = None if known is None else g.op("Gather", known, at, axis=1)
            found.append(gaussian(g, z, mean, covariance, known))
        total = found[0]
        for part in found[1:]:
            total = g.add(total, part)
        return total


def gaussian(g: Graph, z: str, mean: np.ndarray, covariance: np.ndarray, known: str | None) -> str:
    """(6): log-densities of Gaussian kernels, (n, M), from z - mean."""
    if covariance.ndim == 2:
        deviate = g.multiply(g.subtract(g.unsqueeze(z, 1), mean), covariance**-0.5)  # (n, M, d)
        height = -0.5 * (np.log(covariance) + LOG_2_PI)
        by_feature = g.add(g.multiply(g.multiply(deviate, deviate), -0.5), height)
        if known is not None:
            by_feature = g.multiply(by_feature, g.unsqueeze(known, 1))
        return g.total(by_feature, 2)
    root = np.linalg.cholesky(covariance)

    def whole(g: Graph) -> str:
        """Of complete rows."""
        away = g.subtract(g.unsqueeze(z, 0), mean[:, None, :])  # (M, n, d)
        deviate = g.matmul(away, np.linalg.inv(root).swapaxes(-1, -2))
        squared = g.op("Transpose", g.total(g.multiply(deviate, deviate), 2), perm=[1, 0])
        log_size = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        height = -0.5 * (log_size + mean.shape[1] * LOG_2_PI)
        return g.add(g.multiply(str(squared), -0.5), height)

    if known is None:
        return whole(g)
    some = _any(g, g.subtract(1.0, known))
    return g.choose(some, lambda b: _eliminated(b, z, mean, covariance, known), whole)


def _eliminated(g: Graph, x: str, mean: np.ndarray, covariance: np.ndarray, known: str) -> str:
    """Log-densities of the known cells of rows, (n, M), by elimination of one feature after the
    other.

    Rows and columns of missing cells are those of the identity: they add nothing to the quadratic
    form or the determinant.
    """
    d = mean.shape[1]
    along, across = g.unsqueeze(g.unsqueeze(known, 1), 3), g.unsqueeze(g.unsqueeze(known, 1), 1)
    both = g.multiply(along, across)  # (n, 1, d, d)
    left = g.add(g.multiply(both, covariance), g.multiply(g.subtract(both, 1.0), -np.eye(d)))
    away = g.multiply(g.subtract(g.unsqueeze(x, 1), mean), g.unsqueeze(known, 1))  # (n, M, d)
    total = g.multiply(g.total(known, 1, keepdims=True), LOG_2_PI)  # (n, 1)
    for _ in range(d):
        column = g.first(left, 3)  # (n, M, d - i, 1)
        pivot, head = g.first(column, 2), g.first(away, 2)  # (n, M, 1, 1), (n, M, 1)
        factor = g.divide(column, pivot)
        flat = g.squeeze(pivot, 3)  # (n, M, 1)
        term = g.add(g.divide(g.multiply(head, head), flat), g.op("Log", flat))
        total = g.add(total, g.squeeze(term, 2))
        away = g.rest(g.subtract(away, g.multiply(g.squeeze(factor, 3), head)), 2)
        row = g.op("Transpose", column, perm=[0, 1, 3, 2])
        left = g.rest(g.rest(g.subtract(left, g.multiply(factor, str(row))), 2), 3)
    return g.multiply(total, -0.5)


# -- mixtures --------------------------------------------------------------------------------------


def _class_densities(g: Graph, z: str, known: str | None, model: Any, frame: Frame) -> str:
    """(2): log p(x|C_k) of rows in a frame, (n, K)."""
    by_kernel = Mixture.of(model, model.columns_.levels).log_densities(g, z, known, frame)
    return g.log_of_sum(g.add(g.unsqueeze(by_kernel, 2), g.safe_log(model.mixing_)), 1)


def _framed(g: Graph, x: str, model: Any, mixture: Any) -> tuple[Frame, str, str | None, Any]:
    """The frame of a mixture, rows in it, 1 for each known cell (None where all are), and the
    volume of its units.

    log p(x) = log p(x in the frame) - volume, which is that of the known cells.
    """
    levels = model.columns_.levels
    frame = Mixture.of(mixture, levels).frame()
    log_unit = np.log(frame.unit)
    if g.complete:
        return frame, frame.rows(g, x), None, log_unit.sum()
    missing = g.op("IsNaN", x)
    known = g.cast(g.op("Not", missing), g.dtype)
    # of categories the code after the last, for which tables have a row of zeros
    fill = np.where(np.array(levels) > 0, levels, frame.origin).astype(np.float64)
    rows = frame.rows(g, g.op("Where", missing, fill, x))
    return frame, rows, known, g.total(g.multiply(known, log_unit), 1, keepdims=True)


def shared_kernel(g: Graph, x: str, model: Any) -> Answers:
    """Answers of a SharedKernelClassifier."""
    frame, rows, known, volume = _framed(g, x, model, model)
    log_density = g.subtract(_class_densities(g, rows, known, model, frame), volume)
    answers = _from_density(g, log_density, model.class_prior_)
    networks = getattr(model, "discriminative_", ())
    if not networks:
        return answers
    parts = []
    for network in networks:
        joint = _class_densities(g, rows, known, network, frame)
        parts.append(g.softmax(g.add(joint, g.safe_log(network.class_prior_)), 1))
    share = np.asarray(model.class_shares_)
    shift = np.asarray(model.class_prior_) / np.where(share > 0, share, 1.0)
    weighted = g.multiply(_mean(g, parts), shift)
    probability = g.shares(weighted)
    if known is not None:
        nothing = g.op("Less", g.total(known, 1, keepdims=True), 0.5)
        prior = np.asarray(model.class_prior_, np.float64)
        probability = g.op("Where", nothing, prior, probability)
    return answers | {"scores": probability, "probabilities": probability}


def _mean(g: Graph, parts: list[str]) -> str:
    """Of several tensors of one shape."""
    if len(parts) == 1:
        return parts[0]
    return g.op("ReduceMean", _stacked(g, parts), [1], keepdims=0)


def sharing_average(g: Graph, x: str, model: Any) -> Answers:
    """(38): answers of a SharingAverageClassifier."""
    frame, rows, known, volume = _framed(g, x, model, model.estimators_[0])
    parts = [_class_densities(g, rows, known, member, frame) for member in model.estimators_]
    stacked = g.subtract(_stacked(g, parts), np.log(len(parts)))  # (n, L, K)
    log_density = g.log_of_sum(stacked, 1)
    return _from_density(g, g.subtract(log_density, volume), model.class_prior_)


def _from_density(g: Graph, log_density: str, class_prior: np.ndarray) -> Answers:
    joint = g.add(log_density, g.safe_log(np.asarray(class_prior)))
    return {
        "scores": joint,
        "probabilities": g.softmax(joint, 1),
        "log_density": log_density,
        "score_samples": g.log_of_sum(joint, 1),
    }


# -- pools -----------------------------------------------------------------------------------------


def pooled(g: Graph, x: str, model: Any) -> Answers:
    """Answers of a PooledClassifier, all of whose networks can be exported themselves."""
    x = complete(g, x)
    answers_of = _network_answers(g, x, model)
    log_proba = []
    for member in model.members_:
        parts = []
        for network, answers in zip(model.networks_, answers_of, strict=True):
            if network.member == member:
                raised = g.clip(answers["probabilities"], math.exp(LOWEST), None)
                parts.append(g.shares(raised))
        log_proba.append(g.clip(g.op("Log", _mean(g, parts)), LOWEST, None))
    stacked = _stacked(g, log_proba)  # (n, L, K)
    if model.pooling_ == "linear":
        scores = g.log_of_sum(g.add(stacked, g.safe_log(model.weights_)[:, None]), 1)
    else:
        scores = g.total(g.multiply(stacked, model.weights_[:, None]), 1)
    with np.errstate(divide="ignore"):
        shift = np.log(model.class_prior_) - np.log(model.class_shares_)
    scores = g.add(scores, np.where(np.isfinite(shift), shift, g.forbidden))
    answers = {"scores": scores, "probabilities": g.softmax(scores, 1)}
    used = [i for i, network in enumerate(model.networks_) if network.density_weight > 0]
    if used:
        weights = np.array([model.networks_[i].density_weight for i in used])
        densities = _stacked(g, [answers_of[i]["log_density"] for i in used])
        answers["log_density"] = log_density = g.log_of_sum(
            g.add(densities, g.safe_log(weights)[:, None]), 1
        )
        log_prior = g.safe_log(model.class_prior_)
        answers["score_samples"] = g.log_of_sum(g.add(log_density, log_prior), 1)
    return answers


def _stacked(g: Graph, parts: list[str]) -> str:
    return hstack(g, [g.unsqueeze(part, 1) for part in parts])


def _network_answers(g: Graph, x: str, model: Any) -> list[Answers]:
    """The answers of each network of a pool for the rows in its view."""
    views = {name: _seen(g, x, view) for name, view in model.views_.items()}
    found = []
    for network in model.networks_:
        kind = type(network.estimator)
        if kind not in CONVERTERS:
            raise KernelpoolError(
                f"A pool with a {kind.__name__} cannot be exported to ONNX: it has no converter."
            )
        found.append(CONVERTERS[kind](g, views.get(network.view, x), network.estimator))
    return found


def _indicators(g: Graph, x: str, levels: tuple[int, ...]) -> str:
    """`Columns.indicators` of encoded rows: the numbers, then an indicator for each category."""
    numbers = [i for i, n in enumerate(levels) if not n]
    parts = [g.op("Gather", x, numbers, axis=1)] if numbers else []
    for i, n_levels in enumerate(levels):
        if n_levels > 1:
            hot = indicators_of(np.arange(float(n_levels))[:, None], (n_levels,))
            parts.append(g.op("Gather", hot, _code(g, x, i), axis=0))
    return hstack(g, parts)


def _complete(g: Graph, x: str, model: Any) -> str:
    """Encoded rows, which must be complete, with indicators for their categories."""
    x, levels = complete(g, x), model.columns_.levels
    return _indicators(g, x, levels) if any(levels) else x


def _code(g: Graph, x: str, i: int) -> str:
    """The codes of a column of words, (n,)."""
    column = g.op("Gather", x, [i], axis=1)
    return g.cast(g.op("Squeeze", column, [1]), np.int64)


def coded(g: Graph, columns: list[str], model: Any) -> str:
    """Columns, each (n, 1), as encoded rows, (n, d): categories by their codes, NaN for a missing
    cell.
    """
    parts = []
    for column, words in zip(columns, model.columns_.categories, strict=True):
        if words is None:
            parts.append(g.cast(column, g.dtype))
            continue
        keys = [str(word) for word in words]
        values = [float(code) for code in range(len(keys))]
        if "" not in keys:
            keys, values = [*keys, ""], [*values, math.nan]
        code = g.op(
            "LabelEncoder",
            column,
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_floats=values,
            default_float=float(len(words)),
        )
        parts.append(g.cast(str(code), g.dtype))
    return hstack(g, parts)


def _seen(g: Graph, x: str, view: Any) -> str:
    """Rows in a view, (n, D)."""
    x = _indicators(g, x, view.levels) if any(view.levels) else x
    u = g.multiply(g.centered(x, view.center), 1 / view.scale)
    if view.exponent is None:
        return u
    sign, size = g.op("Sign", u), g.op("Log", g.add(g.op("Abs", u), 1.0))
    above = g.op("GreaterOrEqual", u, 0.0)
    power = g.op("Where", above, view.exponent, 2 - view.exponent)
    straight = g.op("Less", g.op("Abs", power), 1e-8)
    exponent = g.multiply(size, power)
    grown = g.multiply(
        g.op("Tanh", g.multiply(exponent, 0.5)), g.add(g.op("Exp", exponent), 1.0)
    )  # exp - 1
    divided = g.op("Div", grown, g.op("Where", straight, 1.0, power))
    psi = g.multiply(g.op("Where", straight, size, divided), sign)
    assert view.warped_scale is not None
    z = g.multiply(g.subtract(psi, view.warped_center), 1 / view.warped_scale)
    return g.clip(z, -FARTHEST, FARTHEST)


# -- Parzen ----------------------------------------------------------------------------------------


def parzen(g: Graph, x: str, model: Any) -> Answers:
    """Answers of a ParzenClassifier or a ReducedParzenClassifier with a named kernel."""
    if not isinstance(model.kernel, str):
        raise KernelpoolError(
            "kernel is an object, which ONNX cannot hold; fit with one of the named kernels "
            "instead."
        )
    fitted, net = model._fitted, model._fitted.params()
    # one scaling, with a bound behind it: a runtime may fold a bare factor into the next product,
    # and round it to float32
    frame = Frame(fitted.location, fitted.scale * fitted.unit * net.radius)
    rows = frame.rows(g, _complete(g, x, model))
    if fitted.metric is not None:
        rows = g.matmul(rows, fitted.metric.T)
    squared = _squared(g, rows, net.center / net.radius, net.narrow)  # (n, M)
    log_norm = fitted.log_norm(model._profile)
    ends = zip(net.offsets[:-1], net.offsets[1:], strict=True)
    counts = np.array([net.weight[start:stop].sum() for start, stop in ends])
    alone = -np.log(np.where(counts > 0, counts, np.inf)) - log_norm
    alone = np.where(counts > 0, alone, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(fitted.class_prior) - np.log(fitted.fitted_prior)
    shift = np.where(np.isnan(shift), 0.0, shift)
    together = net.log_scale - log_norm + shift
    if model.kernel == "gaussian":
        votes = _log_votes(g, squared, net)
        tempered, temperature = _shifted(g, votes, net.log_scale - log_norm), fitted.temperature
        if temperature != 1:
            away = g.subtract(tempered, g.most(tempered, 1, keepdims=True))
            tempered = g.multiply(g.clip(away, -LONGEST_ODDS, None), 1 / temperature)
        tempered = _shifted(g, tempered, shift)
        return {**_from_votes(g, votes, alone, together), "probabilities": g.softmax(tempered, 1)}
    # the slack that rounding asks for is that of the type
    slack = 1 + (1e-9 if g.dtype == np.float64 else 1e-6)
    if model.kernel == "hypersphere":
        height = g.cast(g.op("LessOrEqual", squared, slack), g.dtype)
    else:
        height = g.op("Relu", g.subtract(1.0, squared))
    votes = g.matmul(height, _by_class(net))  # (n, K)
    covered = g.op("Greater", g.most(votes, 1, keepdims=True), 0.0)
    some = g.op("Greater", votes, 0.0)
    log_votes = g.op("Log", g.op("Where", some, votes, 1.0))
    log_votes = g.op("Where", some, log_votes, g.forbidden)
    nearest = _nearest(g, squared, net)
    answers = _from_votes(g, log_votes, alone, together)
    answers["probabilities"] = g.op("Where", covered, g.softmax(answers["scores"], 1), nearest)
    answers["scores"] = g.op("Where", covered, answers["scores"], nearest)
    nothing = -np.inf
    answers["log_density"] = g.op("Where", some, answers["log_density"], nothing)
    somewhere = g.op("Squeeze", covered, [1])
    answers["score_samples"] = g.op("Where", somewhere, answers["score_samples"], nothing)
    return answers


def _squared(
    g: Graph, x: str, center: np.ndarray, narrow: bool = False, weight: np.ndarray | None = None
) -> str:
    """Squared distances, (n, M), along the features of each kernel where it has a `weight` for
    them.

    By products where the type can bear the cancellation, else a feature at a time.
    """
    weight = np.ones_like(center) if weight is None else weight
    if g.dtype == np.float64 and not narrow:
        squares = g.matmul(g.multiply(x, x), weight.T)
        constant = (center**2 * weight).sum(axis=1)
        return g.add(g.add(g.matmul(x, -2 * (center * weight).T), squares), constant)
    squared = None
    for i in range(center.shape[1]):
        away = g.subtract(g.op("Gather", x, [i], axis=1), center[:, i])
        square = g.multiply(g.multiply(away, away), weight[:, i])
        squared = square if squared is None else g.add(squared, square)
    assert squared is not None
    return squared


def _by_class(net: Any) -> np.ndarray:
    """The votes of each kernel in the column of its class, (M, K)."""
    table = np.zeros((len(net.weight), net.n_classes))
    for k in range(net.n_classes):
        mine = slice(net.offsets[k], net.offsets[k + 1])
        table[mine, k] = net.weight[mine]
    return table


def _classes_apart(g: Graph, a: str, net: Any, reduce: Any, absent: float) -> str:
    """`reduce` of the columns of each class, (n, K); `absent` for a class without kernels."""
    sizes = [net.offsets[k + 1] - net.offsets[k] for k in range(net.n_classes)]
    present = [n for n in sizes if n]
    parts = iter(g.split(a, present) if len(present) > 1 else [a])
    columns: list[str | None] = [g.unsqueeze(reduce(next(parts)), 1) if n else None for n in sizes]
    some = next(column for column in columns if column is not None)
    filled = [
        g.add(g.multiply(some, 0.0), absent) if column is None else column for column in columns
    ]
    return g.op("Concat", *filled, axis=1)


def _log_votes(g: Graph, squared: str, net: Any) -> str:
    terms = g.add(g.multiply(squared, -0.5), g.safe_log(np.asarray(net.weight, np.float64)))
    return _classes_apart(g, terms, net, lambda part: g.log_of_sum(part, 1), g.forbidden)


def _nearest(g: Graph, squared: str, net: Any) -> str:
    """One for the class of the nearest kernel, zero for the others, (n, K)."""
    axes = [1]
    least = _classes_apart(
        g, squared, net, lambda part: g.op("ReduceMin", part, axes, keepdims=0), -g.forbidden
    )
    code = g.op("ArgMin", least, axis=1, keepdims=0)
    return g.cast(g.op("Equal", g.unsqueeze(code, 1), np.arange(net.n_classes)[None, :]), g.dtype)


def _shifted(g: Graph, log_votes: str, log_scale: np.ndarray) -> str:
    return g.add(log_votes, np.where(np.isfinite(log_scale), log_scale, g.forbidden))


def _from_votes(g: Graph, log_votes: str, alone: np.ndarray, together: np.ndarray) -> Answers:
    joint = _shifted(g, log_votes, together)
    return {
        "scores": joint,
        "log_density": _shifted(g, log_votes, alone),
        "score_samples": g.log_of_sum(joint, 1),
    }


# -- RBF networks ----------------------------------------------------------------------------------


def _columns(g: Graph, x: str, model: Any) -> str:
    """Activations of the hidden layer of an EM-Log network, (n, M)."""
    mixture = Mixture.of(model)
    frame = mixture.frame()
    by_kernel = mixture.log_densities(g, frame.rows(g, x), None, frame)
    if model.activation == "normalized":
        return g.softmax(
            g.multiply(g.add(by_kernel, g.safe_log(model.mixing_)), 1 / model.temperature_), 1
        )
    log_scale = model.activation_log_scale_ + np.log(frame.unit).sum() / model.temperature_
    largest = LARGEST if g.dtype == np.float64 else 80.0
    log_column = g.subtract(g.multiply(by_kernel, 1 / model.temperature_), log_scale)
    return g.op("Exp", g.clip(log_column, None, largest))


def rbf_classifier(g: Graph, x: str, model: Any) -> Answers:
    """Answers of an RBFNetworkClassifier."""
    fitted, readout, n_kernels = model._fitted, model.readout_, len(model.means_)
    unit = model.scale_ * model.width_
    rows = Frame(model.location_, unit).rows(g, _complete(g, x, model))
    mapped, center = rows, (model.means_ - model.location_) / unit
    if fitted.metric is not None:
        mapped, center = g.matmul(rows, fitted.metric.T), center @ fitted.metric.T
    features = fitted.kernel_features
    weight = None if features is None else features.astype(np.float64)
    squared = g.clip(_squared(g, mapped, center, weight=weight), 0.0, None)
    kernels = g.op("Exp", g.multiply(squared, -0.5))
    linear = g.add(g.matmul(rows, readout[n_kernels:-1] * model.width_), readout[-1])
    scores = g.add(g.matmul(kernels, readout[:n_kernels]), linear)
    if readout.shape[1] == 1:
        scores = _both_classes(g, scores, logistic=True)
    return {"scores": scores, "probabilities": g.softmax(scores, 1)}


def _both_classes(g: Graph, scores: str, *, logistic: bool) -> str:
    """The score of the first of two classes before that of the second, where there is but one."""
    shape = g.multiply(scores, 0.0)
    other = shape if logistic else g.subtract(1.0, scores)
    return g.op("Concat", other, scores, axis=1)


def em_log_classifier(g: Graph, x: str, model: Any) -> Answers:
    """Answers of an EMLogClassifier."""
    columns = _columns(g, _complete(g, x, model), model)
    scores = g.add(g.matmul(columns, model.readout_[:-1]), model.readout_[-1])
    logistic = model.readout != "least_squares"
    if model.readout_.shape[1] == 1:
        scores = _both_classes(g, scores, logistic=logistic)
    if logistic:
        return {"scores": scores, "probabilities": g.softmax(scores, 1)}
    raised = g.clip(scores, model._fitted.smallest, None)
    return {
        "scores": scores,
        "probabilities": g.shares(raised),
    }


def em_log_regressor(g: Graph, x: str, model: Any) -> Answers:
    """Means and deviations of an EMLogRegressor."""
    columns = _columns(g, complete(g, x), model)
    mean = g.add(g.matmul(columns, model.readout_[:-1]), model.readout_[-1])
    spread = 0.5 * (model.readout_covariance_ + model.readout_covariance_.T)
    inner = g.total(g.multiply(columns, g.matmul(columns, spread[:-1, :-1])), 1, keepdims=True)
    outer = g.add(g.matmul(columns, 2 * spread[:-1, -1:]), spread[-1:, -1])
    leverage = g.clip(g.add(inner, outer), 0.0, None)  # (n, 1)
    std = g.op("Sqrt", g.multiply(g.add(leverage, 1.0), model.noise_variance_[None, :]))
    if model.single_output_:
        axis = [1]
        mean, std = g.op("Squeeze", mean, axis), g.op("Squeeze", std, axis)
    return {"prediction": mean, "std": std}


# -- neurons ---------------------------------------------------------------------------------------


def neurons(g: Graph, x: str, model: Any) -> Answers:
    """Answers of a CompetitiveNeuronsClassifier."""
    frame = Frame(np.asarray(model.location_), np.asarray(model.scale_))
    rows = frame.rows(g, _complete(g, x, model))
    n_neurons, d = len(model.mixing_), len(frame.origin)
    weight = np.asarray(model.weights_).reshape(
        -1, d + 1
    )  # (M * C, d + 1), in the units of the data
    n_outputs = len(weight) // n_neurons
    bias = weight[:, -1:] + weight[:, :-1] @ frame.origin[:, None]
    weight = np.hstack([weight[:, :-1] * frame.unit, bias])
    flat = g.add(g.matmul(rows, weight[:, :-1].T), weight[:, -1])
    activation = g.op("Reshape", flat, [-1, n_neurons, n_outputs])  # (n, M, C)
    if model.margin:
        output = g.clip(g.add(g.multiply(activation, 0.5), 0.5), 0.0, 1.0)
    elif n_outputs == 1:
        output = g.add(g.multiply(g.op("Tanh", g.multiply(activation, 0.5)), 0.5), 0.5)
    else:
        output = g.softmax(activation, 2)
    if model.local:
        mean, variance = (
            (model.means_ - frame.origin) / frame.unit,
            model.covariances_ / frame.unit**2,
        )
        gate = g.add(gaussian(g, rows, mean, variance, None), g.safe_log(model.mixing_))
        share: Any = g.unsqueeze(g.softmax(gate, 1), 2)  # (n, M, 1)
    else:
        share = (model.mixing_ / model.mixing_.sum())[:, None]
    mean = g.total(g.multiply(output, share), 1)  # (n, C)
    if n_outputs == 1:
        mean = g.clip(mean, None, 1.0)
        mean = g.op("Concat", g.subtract(1.0, mean), mean, axis=1)
        return {"scores": mean, "probabilities": mean}
    total = g.total(mean, 1, keepdims=True)
    voted = g.op("Greater", total, 0.0)  # of margin neurons all may say no
    divided = g.op("Div", mean, g.op("Where", voted, total, 1.0))
    even = np.full(len(model.classes_), 1 / len(model.classes_))
    probability = g.op("Where", voted, divided, even)
    return {"scores": probability, "probabilities": probability}


CONVERTERS: dict[type, Callable[[Graph, str, Any], Answers]] = {
    SharedKernelClassifier: shared_kernel,
    SharingAverageClassifier: sharing_average,
    PooledClassifier: pooled,
    ParzenClassifier: parzen,
    ReducedParzenClassifier: parzen,
    RBFNetworkClassifier: rbf_classifier,
    EMLogClassifier: em_log_classifier,
    EMLogRegressor: em_log_regressor,
    CompetitiveNeuronsClassifier: neurons,
}
"""The networks that can be exported."""

# -- refusals --------------------------------------------------------------------------------------


def refused(g: Graph, answers: Answers, model: Any, classes: np.ndarray) -> Answers:
    """`answers` of a classifier with the labels of a RejectClassifier around it, and its
    decisions.
    """
    code = g.op("ArgMax", answers["probabilities"], axis=1, keepdims=0)
    label = answers["label"]
    if classes.dtype.kind == "b":
        label = g.cast(label, np.int64)
    ambiguous, novel = (np.asarray(name) for name in (model.ambiguous_label_, model.novel_label_))
    decision = g.op("Mul", code, 0)
    if model.ambiguity_threshold_ is not None:
        others = g.op("Not", g.op("Equal", g.unsqueeze(code, 1), np.arange(len(classes))[None, :]))
        ambiguity = g.total(g.multiply(answers["probabilities"], g.cast(others, g.dtype)), 1)
        sure = g.op("LessOrEqual", ambiguity, float(model.ambiguity_threshold_))
        label = g.op("Where", sure, label, ambiguous)
        decision = g.op("Where", sure, decision, 1)
    if model.novelty_threshold_ is not None:
        lowest = max(model.novelty_threshold_, float(np.finfo(g.dtype).min))
        known = g.op("GreaterOrEqual", answers["score_samples"], lowest)
        label = g.op("Where", known, label, novel)
        decision = g.op("Where", known, decision, 2)
    return answers | {"label": label, "decision": decision}
