"""Shared-kernel networks as ONNX graphs: class densities in one frame, missing cells integrated out
in the graph.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

import math
from typing import Any

import numpy as np

from ..arrays import safe_log
from ..base.classifier import prior_shift
from ..rows import Frame
from .fitted import Average, ClassDensities, FittedSharedKernel


def to_graph(x: Any, fitted: FittedSharedKernel) -> dict[str, Any]:
    """Answers of a `SharedKernelClassifier`."""
    generative = fitted.network
    frame = generative.frame
    rows, known, log_volume = in_frame(x, generative)
    log_density = class_densities(rows, generative, frame, known) - log_volume
    prior = generative.class_prior
    answers = from_density(log_density, prior)
    if not fitted.discriminative:
        return answers
    probabilities = []
    for network in fitted.discriminative:
        joint = class_densities(rows, network, frame, known) + safe_log(network.class_prior)
        probabilities.append(joint.softmax())
    assert fitted.class_shares is not None
    shift = np.exp(prior_shift(prior, fitted.class_shares))
    probability = sum(probabilities) * shift
    probability = probability / probability.sum(axis=1, keepdims=True)
    if known is not None:
        probability = np.where(known.sum(1, keepdims=True) < 0.5, prior, probability)
    return answers | {"scores": probability, "probabilities": probability}


def average_to_graph(x: Any, average: Average) -> dict[str, Any]:
    """Titsias & Likas 2001, (38): answers of a `SharingAverageClassifier`."""
    first = average.mixtures[0]
    rows, known, log_volume = in_frame(x, first)
    parts = [class_densities(rows, mixture, first.frame, known) for mixture in average.mixtures]
    log_density = (x.graph.stack(parts) - math.log(len(parts))).logsumexp() - log_volume
    return from_density(log_density, average.class_prior)


def from_density(log_density: Any, class_prior: Any) -> dict[str, Any]:
    """Answers from log p(x|C_k), (n, K)."""
    joint = log_density + safe_log(class_prior)
    return {
        "scores": joint,
        "probabilities": joint.softmax(),
        "log_density": log_density,
        "score_samples": joint.logsumexp(),
    }


def in_frame(x: Any, network: ClassDensities) -> tuple[Any, Any, Any]:
    """Rows in the frame of a network, 1 for each known cell (None where all are), and the log
    volume of the frame.

    log p(x) = log p(x in the frame) - log volume, which is that of the known cells.
    """
    frame = network.frame
    levels = network.levels
    log_unit = np.log(frame.unit)
    if x.graph.complete:
        return x.framed(frame), None, log_unit.sum()
    missing = np.isnan(x)
    known = np.logical_not(missing).astype(x.dtype)
    # of categories the code after the last, for which tables have a row of zeros
    instead = np.where(levels, levels, frame.origin).astype(np.float64)
    complete: Any = np.where(missing, instead, x)
    rows = complete.framed(frame)
    return rows, known, (known * log_unit).sum(1, keepdims=True)


def class_densities(rows: Any, network: ClassDensities, frame: Frame, known: Any) -> Any:
    """(2): log p(x|C_k) of rows in a frame, (n, K)."""
    by_kernel = log_kernels(rows, network, frame, known)
    return (by_kernel.unsqueeze(2) + safe_log(network.mixing)).logsumexp()


def log_kernels(rows: Any, network: ClassDensities, frame: Frame, known: Any = None) -> Any:
    """log p(x|j) of rows in a frame, (n, M); cells that are not `known` are integrated out."""
    n_kernels = len(network.means)
    terms = []
    start = 0
    for i, n in enumerate(network.levels):
        if n:
            probability: Any = network.probabilities
            table = np.log(probability[:, start : start + n].T)
            # the last row is that of a missing cell
            terms.append(rows.row_of(np.vstack([table, np.zeros(n_kernels)]), i))
            start += n
    numbers = [i for i, n in enumerate(network.levels) if not n]
    if numbers:
        z = rows.take(numbers)
        known = None if known is None else known.take(numbers)
        unit = frame.unit[numbers]
        mean = (network.means[:, numbers] - frame.origin[numbers]) / unit
        if network.covariance_type in ("full", "tied"):
            covariance = network.covariances[..., numbers, :][..., numbers] / np.outer(unit, unit)
            terms.append(full_gaussian(z, mean, covariance, known))
        else:
            variance = network.covariances
            variance = variance[:, None] if variance.ndim == 1 else variance[:, numbers]
            terms.append(z.gaussian(mean, variance / unit**2, known))
    return sum(terms)


def full_gaussian(z: Any, mean: np.ndarray, covariance: np.ndarray, known: Any) -> Any:
    """(6): log-densities of Gaussian kernels with a matrix each or one for all, (n, M), from
    z - mean.
    """
    d = mean.shape[1]
    root = np.linalg.cholesky(covariance)
    log_2_pi = math.log(2 * math.pi)

    def whole(z: Any) -> Any:
        """Of complete rows."""
        difference = z.unsqueeze(0) - mean[:, None, :]  # (M, n, d)
        deviate = difference @ np.linalg.inv(root).swapaxes(-1, -2)
        squared = z.graph.op("Transpose", (deviate * deviate).sum(2), perm=[1, 0])
        log_size = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
        return squared * -0.5 + -0.5 * (log_size + d * log_2_pi)

    def eliminated(z: Any, known: Any) -> Any:
        """Of the known cells of rows, by elimination of one feature after the other.

        Rows and columns of missing cells are those of the identity: they add nothing to the
        quadratic form or the determinant.
        """
        both = known.unsqueeze(1).unsqueeze(3) * known.unsqueeze(1).unsqueeze(1)  # (n, 1, d, d)
        rest = both * covariance + (1.0 - both) * np.eye(d)  # (n, M, d, d), or (n, 1, d, d)
        difference = (z.unsqueeze(1) - mean) * known.unsqueeze(1)  # (n, M, d)
        total = known.sum(1, keepdims=True) * log_2_pi  # (n, 1)
        for _ in range(d):
            column = rest.slice(0, 1, 3)  # (n, M, d - i, 1)
            pivot = column.slice(0, 1, 2)  # (n, M, 1, 1)
            head = difference.slice(0, 1, 2)  # (n, M, 1)
            factor = column / pivot
            flat = pivot.squeeze(3)
            total = total + (head * head / flat + np.log(flat)).squeeze(2)
            difference = (difference - factor.squeeze(3) * head).slice(1, d, 2)
            row = z.graph.op("Transpose", column, perm=[0, 1, 3, 2])
            rest = (rest - factor * row).slice(1, d, 2).slice(1, d, 3)
        return total * -0.5

    if known is None:
        return whole(z)
    g = z.graph
    is_incomplete = known.min(axis=1) < 0.5
    at = g.op("NonZero", is_incomplete, dtype=np.int64).squeeze(0)
    rows = (a.node("Gather", at, axis=0) for a in (z, known))
    return whole(z).node("ScatterND", at.unsqueeze(1), eliminated(*rows))
