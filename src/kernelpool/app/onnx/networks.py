"""Networks as ONNX graphs: the answers of each estimator from rows, (n, d).

Distances are taken from x - mean, so that float32 loses no more than it must; squares are expanded
in float64 alone. The parts are those of the estimators: the same frame, the same floors of
probabilities, the same way out where no kernel covers a row.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ... import (
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
from ...errors import KernelpoolError
from ...tables.columns import codes_of, indicators_of
from .graph import Graph, Tensor

LOG_2_PI = math.log(2 * math.pi)

LOWEST = math.log(1e-12)
"""Of log-probabilities in a pool, as in the estimator."""

FARTHEST, LARGEST, LONGEST_ODDS = 8.0, 300.0, math.log(1e12)
"""Bounds of warped features, of exponents, and of log-odds before they are divided by a
temperature, as in the estimators.
"""

Answers = dict[str, Tensor]
"""What the graph makes, by the name under which it is returned: probabilities, log_density,
score_samples ...; the label is the class of the greatest of the `scores`.
"""


def framed(x: Tensor, origin: Any, unit: Any) -> Tensor:
    """(x - origin) / unit, where float32 loses least, within bounds whose squares cannot
    overflow.
    """
    bound = 1e100 if x.graph.dtype == np.float64 else 1e12
    return x.scaled(origin, unit).clip(-bound, bound)


# -- tables: categories and missing cells ----------------------------------------------------------


def coded(columns: list[Tensor], model: Any) -> Tensor:
    """Columns, each (n, 1), as encoded rows, (n, d): categories by their codes, NaN for a missing
    cell.
    """
    g = columns[0].graph
    parts = []
    for column, categories in zip(columns, model.columns_.categories, strict=True):
        if categories is not None:
            codes = {"": math.nan} | codes_of(categories.tolist())
            column = g.op(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=list(codes),
                values_floats=list(codes.values()),
                default_float=float(len(categories)),
            )
        parts.append(column.astype(g.dtype))
    return g.concat(parts)


def complete(x: Tensor) -> Tensor:
    """Rows for a network that takes complete ones: a run with a missing cell ends with an error."""
    g = x.graph
    if g.complete:
        return x
    g.complete = True
    some = _any(np.isnan(x).astype(g.dtype)).astype(np.int64)
    message = "A cell is missing, and the exported network takes complete rows only"
    return x + g.op("Gather", np.zeros(1), some, message=message)


def _any(counts: Tensor) -> Tensor:
    """Whether any entry is not zero, a scalar; there may be no rows."""
    return counts.graph.op("ReduceSum", counts, keepdims=0) > 0.5


def _numbers(x: Tensor, levels: tuple[int, ...]) -> Tensor:
    """`Columns.indicators` of encoded rows, which must be complete: the numbers, then an indicator
    for each category.
    """
    x = complete(x)
    if not any(levels):
        return x
    numbers = [i for i, n in enumerate(levels) if not n]
    parts = [x.take(numbers)] if numbers else []
    for i, n_levels in enumerate(levels):
        if n_levels > 1:
            hot = indicators_of(np.arange(float(n_levels))[:, None], (n_levels,))
            parts.append(_looked_up(hot, x, i))
    return x.graph.concat(parts)


def _looked_up(table: np.ndarray, x: Tensor, column: int) -> Tensor:
    """The row of a table, (levels, m), at the code in a column, (n, m)."""
    code = x.take([column]).squeeze(1).astype(np.int64)
    return x.graph.op("Gather", table, code, axis=0)


# -- mixtures --------------------------------------------------------------------------------------


class Mixture:
    """The kernels of a model in the units of the data: Gaussians over numbers times tables of
    probabilities over categories.
    """

    def __init__(self, model: Any, levels: tuple[int, ...] = ()) -> None:
        self.mean, covariance = np.asarray(model.means_), np.asarray(model.covariances_)
        m, d = self.mean.shape
        if model.covariance_type_ == "tied":
            covariance = np.broadcast_to(covariance, (m, d, d))
        if model.covariance_type_ == "spherical":
            covariance = np.broadcast_to(covariance[:, None], (m, d))
        self.covariance = covariance  # (M, d), or (M, d, d)
        self.levels = levels or (0,) * d
        self.probability = model.probabilities_ if any(levels) else None  # (M, all levels)

    def frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Origin and unit, (d,): of unit variance over all kernels; categories stay codes."""
        variance = self.covariance
        number = np.array(self.levels) == 0
        if variance.ndim == 3:
            variance = np.diagonal(variance, axis1=1, axis2=2)
        unit = np.sqrt(variance.mean(axis=0) + self.mean.var(axis=0))
        return np.where(number, self.mean.mean(axis=0), 0.0), np.where(number, unit, 1.0)

    def log_densities(self, z: Tensor, known: Tensor | None, origin: Any, unit: Any) -> Tensor:
        """log p(x|j) of rows in a frame, (n, M); cells that are not `known` are integrated out."""
        numbers = [i for i, n in enumerate(self.levels) if not n]
        found = []
        start = 0
        for i, n in enumerate(self.levels):
            if n:
                table = np.log(self.probability[:, start : start + n].T)  # type: ignore[index]
                # the last row is that of a missing cell
                found.append(_looked_up(np.vstack([table, np.zeros(len(self.mean))]), z, i))
                start += n
        if numbers:
            origin = origin[numbers]
            unit = unit[numbers]
            covariance = self.covariance[:, numbers]
            if covariance.ndim == 3:
                covariance = covariance[:, :, numbers] / np.outer(unit, unit)
            else:
                covariance = covariance / unit**2
            known = None if known is None else known.take(numbers)
            mean = (self.mean[:, numbers] - origin) / unit
            found.append(gaussian(z.take(numbers), mean, covariance, known))
        return sum(found[1:], start=found[0])


def gaussian(z: Tensor, mean: np.ndarray, covariance: np.ndarray, known: Tensor | None) -> Tensor:
    """(6): log-densities of Gaussian kernels, (n, M), from z - mean."""
    if covariance.ndim == 2:
        deviate = (z.unsqueeze(1) - mean) * covariance**-0.5  # (n, M, d)
        by_feature = deviate * deviate * -0.5 + -0.5 * (np.log(covariance) + LOG_2_PI)
        if known is not None:
            by_feature = by_feature * known.unsqueeze(1)
        return by_feature.sum(2)
    root = np.linalg.cholesky(covariance)

    def whole(z: Tensor) -> Tensor:
        """Of complete rows."""
        away = z.unsqueeze(0) - mean[:, None, :]  # (M, n, d)
        deviate = away @ np.linalg.inv(root).swapaxes(-1, -2)
        squared = z.graph.op("Transpose", (deviate * deviate).sum(2), perm=[1, 0])
        log_size = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return squared * -0.5 + -0.5 * (log_size + mean.shape[1] * LOG_2_PI)

    def eliminated(z: Tensor, known: Tensor) -> Tensor:
        """Of the known cells of rows, by elimination of one feature after the other.

        Rows and columns of missing cells are those of the identity: they add nothing to the
        quadratic form or the determinant.
        """
        d = mean.shape[1]
        both = known.unsqueeze(1).unsqueeze(3) * known.unsqueeze(1).unsqueeze(1)  # (n, 1, d, d)
        left = both * covariance + (1.0 - both) * np.eye(d)
        away = (z.unsqueeze(1) - mean) * known.unsqueeze(1)  # (n, M, d)
        total = known.sum(1, keepdims=True) * LOG_2_PI  # (n, 1)
        for _ in range(d):
            column = left.slice(0, 1, 3)  # (n, M, d - i, 1)
            pivot, head = column.slice(0, 1, 2), away.slice(0, 1, 2)  # (n, M, 1, 1), (n, M, 1)
            factor = column / pivot
            flat = pivot.squeeze(3)
            total = total + (head * head / flat + np.log(flat)).squeeze(2)
            away = (away - factor.squeeze(3) * head).slice(1, d, 2)
            row = z.graph.op("Transpose", column, perm=[0, 1, 3, 2])
            left = (left - factor * row).slice(1, d, 2).slice(1, d, 3)
        return total * -0.5

    if known is None:
        return whole(z)
    return z.graph.choose(_any(1.0 - known), eliminated, lambda z, _: whole(z), z, known)


def _class_densities(rows: Tensor, known: Tensor | None, model: Any, frame: Any) -> Tensor:
    """(2): log p(x|C_k) of rows in a frame, (n, K)."""
    by_kernel = Mixture(model, model.columns_.levels).log_densities(rows, known, *frame)
    return (by_kernel.unsqueeze(2) + rows.graph.safe_log(model.mixing_)).logsumexp()


def _in_frame(x: Tensor, model: Any, mixture: Any) -> tuple[Any, Tensor, Tensor | None, Any]:
    """The frame of a mixture, rows in it, 1 for each known cell (None where all are), and the
    volume of its units.

    log p(x) = log p(x in the frame) - volume, which is that of the known cells.
    """
    g = x.graph
    levels = np.array(model.columns_.levels)
    frame = Mixture(mixture, model.columns_.levels).frame()
    log_unit = np.log(frame[1])
    if g.complete:
        return frame, framed(x, *frame), None, log_unit.sum()
    missing = np.isnan(x)
    known = np.logical_not(missing).astype(g.dtype)
    # of categories the code after the last, for which tables have a row of zeros
    instead = np.where(levels > 0, levels, frame[0]).astype(np.float64)
    rows = framed(g.where(missing, instead, x), *frame)
    return frame, rows, known, (known * log_unit).sum(1, keepdims=True)


def shared_kernel(x: Tensor, model: Any) -> Answers:
    """Answers of a SharedKernelClassifier."""
    frame, rows, known, volume = _in_frame(x, model, model)
    log_density = _class_densities(rows, known, model, frame) - volume
    answers = _from_density(log_density, model.class_prior_)
    networks = getattr(model, "discriminative_", ())
    if not networks:
        return answers
    g = x.graph
    parts = []
    for network in networks:
        joint = _class_densities(rows, known, network, frame)
        parts.append((joint + g.safe_log(network.class_prior_)).softmax())
    prior = np.asarray(model.class_prior_)
    share = np.asarray(model.class_shares_)
    probability = (_mean(parts) * (prior / np.where(share > 0, share, 1.0))).shares()
    if known is not None:
        probability = g.where(known.sum(1, keepdims=True) < 0.5, prior, probability)
    return answers | {"scores": probability, "probabilities": probability}


def _mean(parts: list[Tensor]) -> Tensor:
    """Of several tensors of one shape."""
    return parts[0].graph.op("ReduceMean", _stacked(parts), [1], keepdims=0)


def _stacked(parts: list[Tensor]) -> Tensor:
    """Along a new second axis."""
    return parts[0].graph.concat([part.unsqueeze(1) for part in parts])


def sharing_average(x: Tensor, model: Any) -> Answers:
    """(38): answers of a SharingAverageClassifier."""
    frame, rows, known, volume = _in_frame(x, model, model.estimators_[0])
    parts = [_class_densities(rows, known, member, frame) for member in model.estimators_]
    log_density = (_stacked(parts) - np.log(len(parts))).logsumexp() - volume
    return _from_density(log_density, model.class_prior_)


def _from_density(log_density: Tensor, class_prior: np.ndarray) -> Answers:
    joint = log_density + log_density.graph.safe_log(class_prior)
    return {
        "scores": joint,
        "probabilities": joint.softmax(),
        "log_density": log_density,
        "score_samples": joint.logsumexp(),
    }


# -- pools -----------------------------------------------------------------------------------------


def pooled(x: Tensor, model: Any) -> Answers:
    """Answers of a PooledClassifier, all of whose networks can be exported themselves."""
    g = x.graph
    x = complete(x)
    views = {name: _in_view(x, view) for name, view in model.views_.items()}
    answers_of = []
    for network in model.networks_:
        kind = type(network.estimator)
        if kind not in CONVERTERS:
            raise KernelpoolError(
                f"A pool with a {kind.__name__} cannot be exported to ONNX: it has no converter."
            )
        answers_of.append(CONVERTERS[kind](views.get(network.view, x), network.estimator))
    log_proba = []
    for member in model.members_:
        parts = [
            answers["probabilities"].clip(math.exp(LOWEST)).shares()
            for network, answers in zip(model.networks_, answers_of, strict=True)
            if network.member == member
        ]
        log_proba.append(np.log(_mean(parts)).clip(LOWEST))
    stacked = _stacked(log_proba)  # (n, L, K)
    if model.pooling_ == "linear":
        scores = (stacked + g.safe_log(model.weights_)[:, None]).logsumexp()
    else:
        scores = (stacked * model.weights_[:, None]).sum(1)
    scores = scores + _finite(g, _log_ratio(model.class_prior_, model.class_shares_))
    answers = {"scores": scores, "probabilities": scores.softmax()}
    weight = np.array([network.density_weight for network in model.networks_])
    if weight.any():
        densities = [answers_of[i]["log_density"] for i in np.flatnonzero(weight)]
        stacked = _stacked(densities) + np.log(weight[weight > 0])[:, None]
        log_density = stacked.logsumexp()
        joint = log_density + g.safe_log(model.class_prior_)
        answers |= {"log_density": log_density, "score_samples": joint.logsumexp()}
    return answers


def _log_ratio(prior: Any, fitted: Any) -> np.ndarray:
    """The shift of log-probabilities to another class prior, NaN where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(prior) - np.log(fitted))


def _finite(g: Graph, shift: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(shift), shift, g.forbidden)


def _in_view(x: Tensor, view: Any) -> Tensor:
    """Rows in a view, (n, D)."""
    g = x.graph
    u = _numbers(x, view.levels).scaled(view.center, view.scale)
    if view.exponent is None:
        return u
    size = np.log(np.abs(u) + 1.0)
    power = g.where(u >= 0.0, view.exponent, 2 - view.exponent)
    straight = np.abs(power) < 1e-8
    exponent = size * power
    grown = np.tanh(exponent * 0.5) * (np.exp(exponent) + 1.0)  # exp - 1
    psi = g.where(straight, size, grown / g.where(straight, 1.0, power)) * np.sign(u)
    z = (psi - view.warped_center) * (1 / view.warped_scale)
    return z.clip(-FARTHEST, FARTHEST)


# -- Parzen ----------------------------------------------------------------------------------------


def parzen(x: Tensor, model: Any) -> Answers:
    """Answers of a ParzenClassifier or a ReducedParzenClassifier with a named kernel."""
    if not isinstance(model.kernel, str):
        raise KernelpoolError(
            "kernel is an object, which ONNX cannot hold; fit with one of the named kernels "
            "instead."
        )
    g = x.graph
    fitted = model._fitted
    net = model._fitted.params()
    # one scaling, with a bound behind it: a runtime may fold a bare factor into the next product,
    # and round it to float32
    unit = fitted.scale * fitted.unit * net.radius
    rows = framed(_numbers(x, model.columns_.levels), fitted.location, unit)
    squared = _squared(rows, net.center / net.radius, net.narrow)  # (n, M)
    log_norm = fitted.log_norm(model._profile)
    by_class = np.zeros((len(net.weight), net.n_classes))  # votes of kernels, (M, K)
    for k, (start, stop) in enumerate(pairwise(net.offsets)):
        by_class[start:stop, k] = net.weight[start:stop]
    with np.errstate(divide="ignore"):
        alone = -np.log(by_class.sum(axis=0)) - log_norm
    alone[~by_class.any(axis=0)] = -np.inf
    shift = np.nan_to_num(_log_ratio(fitted.class_prior, fitted.fitted_prior), neginf=-np.inf)
    log_scale = net.log_scale - log_norm
    if model.kernel == "gaussian":
        terms = squared * -0.5 + g.safe_log(net.weight)
        votes = _by_class(terms, net, lambda part: part.logsumexp().unsqueeze(1), g.forbidden)
        tempered = votes + _finite(g, log_scale)
        if fitted.temperature != 1:
            away = (tempered - tempered.max(1)).clip(-LONGEST_ODDS)
            tempered = away * (1 / fitted.temperature)
        answers = _from_votes(votes, alone, log_scale + shift)
        scores = tempered + _finite(g, shift)
        return {**answers, "scores": scores, "probabilities": scores.softmax()}
    if model.kernel == "hypersphere":
        # the slack that rounding asks for is that of the type
        height = (squared <= 1 + (1e-9 if g.dtype == np.float64 else 1e-6)).astype(g.dtype)
    else:
        height = g.op("Relu", 1.0 - squared)
    votes = height @ by_class  # (n, K)
    covered = votes.max(1) > 0.0
    some = votes > 0.0
    log_votes = g.where(some, np.log(g.where(some, votes, 1.0)), g.forbidden)
    answers = _from_votes(log_votes, alone, log_scale + shift)
    # where no kernel covers a row, the class of the nearest
    least = _by_class(squared, net, lambda part: g.op("ReduceMin", part, [1]), -g.forbidden)
    code = g.op("ArgMin", least, axis=1)
    nearest = (code == np.arange(net.n_classes)[None, :]).astype(g.dtype)
    return {
        "scores": g.where(covered, answers["scores"], nearest),
        "probabilities": g.where(covered, answers["probabilities"], nearest),
        "log_density": g.where(some, answers["log_density"], -np.inf),
        "score_samples": g.where(covered.squeeze(1), answers["score_samples"], -np.inf),
    }


def _squared(
    x: Tensor, center: np.ndarray, narrow: bool = False, weight: np.ndarray | None = None
) -> Tensor:
    """Squared distances, (n, M), along the features of each kernel where it has a `weight` for
    them.

    By products where the type can bear the cancellation, else a feature at a time.
    """
    weight = np.ones_like(center) if weight is None else weight
    if x.graph.dtype == np.float64 and not narrow:
        constant = (center**2 * weight).sum(axis=1)
        return x @ (-2 * (center * weight).T) + (x * x) @ weight.T + constant
    columns = []
    for i in range(center.shape[1]):
        away = x.take([i]) - center[:, i]
        columns.append(away * away * weight[:, i])
    return sum(columns[1:], start=columns[0])


def _by_class(a: Tensor, net: Any, reduce: Callable[[Tensor], Tensor], absent: float) -> Tensor:
    """`reduce` of the columns of each class, (n, K); `absent` for a class without kernels."""
    columns = [
        reduce(a.slice(start, stop)) if stop > start else a.slice(0, 1) * 0.0 + absent
        for start, stop in pairwise(np.asarray(net.offsets).tolist())
    ]
    return a.graph.concat(columns)


def _from_votes(log_votes: Tensor, alone: np.ndarray, together: np.ndarray) -> Answers:
    g = log_votes.graph
    joint = log_votes + _finite(g, together)
    return {
        "scores": joint,
        "probabilities": joint.softmax(),
        "log_density": log_votes + _finite(g, alone),
        "score_samples": joint.logsumexp(),
    }


# -- RBF networks ----------------------------------------------------------------------------------


def rbf_classifier(x: Tensor, model: Any) -> Answers:
    """Answers of an RBFNetworkClassifier."""
    fitted = model._fitted.network
    readout = model.readout_
    n_kernels = len(model.means_)
    unit = model.scale_ * model.width_
    rows = framed(_numbers(x, model.columns_.levels), model.location_, unit)
    mapped = rows
    center = (model.means_ - model.location_) / unit
    if fitted.metric is not None:
        mapped = rows @ fitted.metric.T
        center = center @ fitted.metric.T
    features = fitted.kernel_features
    weight = None if features is None else features.astype(np.float64)
    kernels = np.exp(_squared(mapped, center, weight=weight).clip(0.0) * -0.5)
    linear = rows @ (readout[n_kernels:-1] * model.width_) + readout[-1]
    scores = kernels @ readout[:n_kernels] + linear
    if readout.shape[1] == 1:  # the log-odds of the second of two classes
        scores = x.graph.concat([scores * 0.0, scores])
    return {"scores": scores, "probabilities": scores.softmax()}


def _hidden(x: Tensor, model: Any) -> Tensor:
    """Activations of the hidden layer of an EM-Log network, (n, M)."""
    g = x.graph
    mixture = Mixture(model)
    frame = mixture.frame()
    rows = framed(_numbers(x, model.columns_.levels), *frame)
    by_kernel = mixture.log_densities(rows, None, *frame)
    if model.activation == "normalized":
        return ((by_kernel + g.safe_log(model.mixing_)) * (1 / model.temperature_)).softmax()
    log_scale = model.activation_log_scale_ + np.log(frame[1]).sum() / model.temperature_
    largest = LARGEST if g.dtype == np.float64 else 80.0
    return np.exp((by_kernel * (1 / model.temperature_) - log_scale).clip(high=largest))


def em_log_classifier(x: Tensor, model: Any) -> Answers:
    """Answers of an EMLogClassifier."""
    scores = _hidden(x, model) @ model.readout_[:-1] + model.readout_[-1]
    logistic = model.readout != "least_squares"
    g = x.graph
    if model.readout_.shape[1] == 1:
        scores = g.concat([scores * 0.0 if logistic else 1.0 - scores, scores])
    probability = scores.softmax() if logistic else scores.clip(model._fitted.smallest).shares()
    return {"scores": scores, "probabilities": probability}


def em_log_regressor(x: Tensor, model: Any) -> Answers:
    """Means and deviations of an EMLogRegressor."""
    columns = _hidden(x, model)
    mean = columns @ model.readout_[:-1] + model.readout_[-1]
    spread = 0.5 * (model.readout_covariance_ + model.readout_covariance_.T)
    inner = (columns * (columns @ spread[:-1, :-1])).sum(1, keepdims=True)
    outer = columns @ (2 * spread[:-1, -1:]) + spread[-1:, -1]
    leverage = (inner + outer).clip(0.0)  # (n, 1)
    std = np.sqrt((leverage + 1.0) * model.noise_variance_[None, :])
    if model.single_output_:
        mean = mean.squeeze(1)
        std = std.squeeze(1)
    return {"prediction": mean, "std": std}


# -- neurons ---------------------------------------------------------------------------------------


def neurons(x: Tensor, model: Any) -> Answers:
    """Answers of a CompetitiveNeuronsClassifier."""
    g = x.graph
    origin = np.asarray(model.location_)
    unit = np.asarray(model.scale_)
    rows = framed(_numbers(x, model.columns_.levels), origin, unit)
    n_neurons = len(model.mixing_)
    d = len(origin)
    weight = np.asarray(model.weights_).reshape(-1, d + 1)  # (M * C, d + 1), in units of the data
    bias = weight[:, -1] + weight[:, :-1] @ origin
    flat = rows @ (weight[:, :-1] * unit).T + bias
    n_outputs = len(weight) // n_neurons
    activation = g.op("Reshape", flat, [-1, n_neurons, n_outputs])  # (n, M, C)
    if model.margin:
        output = (activation * 0.5 + 0.5).clip(0.0, 1.0)
    elif n_outputs == 1:
        output = np.tanh(activation * 0.5) * 0.5 + 0.5
    else:
        output = activation.softmax(2)
    share: Any = (model.mixing_ / model.mixing_.sum())[:, None]
    if model.local:
        mean = (model.means_ - origin) / unit
        variance = model.covariances_ / unit**2
        gate = gaussian(rows, mean, variance, None) + g.safe_log(model.mixing_)
        share = gate.softmax().unsqueeze(2)  # (n, M, 1)
    output = (output * share).sum(1)  # (n, C)
    if n_outputs == 1:
        output = output.clip(high=1.0)
        probability = g.concat([1.0 - output, output])
    else:
        total = output.sum(1, keepdims=True)
        voted = total > 0.0  # of margin neurons all may say no
        even = np.full(n_outputs, 1 / n_outputs)
        probability = g.where(voted, output / g.where(voted, total, 1.0), even)
    return {"scores": probability, "probabilities": probability}


CONVERTERS: dict[type, Callable[[Tensor, Any], Answers]] = {
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


def refused(answers: Answers, model: Any, classes: np.ndarray) -> Answers:
    """`answers` of a classifier with the labels of a RejectClassifier around it, and its
    decisions.
    """
    probability = answers["probabilities"]
    label = answers["label"]
    g = probability.graph
    code = g.op("ArgMax", probability, axis=1)  # (n, 1)
    if classes.dtype.kind == "b":
        label = label.astype(np.int64)
    decision = code.squeeze(1) * 0
    if model.ambiguity_threshold_ is not None:
        others = np.logical_not(code == np.arange(len(classes))[None, :]).astype(g.dtype)
        sure = (probability * others).sum(1) <= float(model.ambiguity_threshold_)
        label = g.where(sure, label, np.asarray(model.ambiguous_label_))
        decision = g.where(sure, decision, 1)
    if model.novelty_threshold_ is not None:
        lowest = max(model.novelty_threshold_, float(np.finfo(g.dtype).min))
        known = answers["score_samples"] >= lowest
        label = g.where(known, label, np.asarray(model.novel_label_))
        decision = g.where(known, decision, 2)
    return answers | {"label": label, "decision": decision}
