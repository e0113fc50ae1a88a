"""Checks of what a user passes beside the data; each error says what was expected and what was found."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..errors import KernelpoolError
from ..kernels import FAMILIES
from .data import TrainingData


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be chosen by the data."""
    return isinstance(value, str) and value == "auto"


def is_learned(sharing: Any) -> bool:
    """Whether the degrees of sharing are to be learned."""
    return isinstance(sharing, str) and sharing == "learned"


def check_degree(sharing: float, name: str) -> None:
    """A degree of sharing lies in [0, 1]."""
    if not 0 <= sharing <= 1:
        raise KernelpoolError(f"{name} must lie in [0, 1]; got {sharing}.")


def class_prior_of(given: Any, data: TrainingData) -> np.ndarray:
    """The class priors given, or the shares of the classes among the labeled rows."""
    if given is None:
        return np.asarray(data.class_weight / data.class_weight.sum())
    prior = check_array(given, dtype=np.float64, ensure_2d=False, input_name="class_prior")
    check_shape("class_prior", prior, (len(data.classes),))
    check_columns("class_prior", prior[:, None])
    return np.asarray(prior)


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """The array has just this shape."""
    if array.shape != shape:
        raise KernelpoolError(f"{name} must have shape {shape}; got {array.shape}.")


def check_columns(name: str, array: np.ndarray) -> None:
    """Every column is a distribution."""
    total = array.sum(axis=0)
    if array.min() < 0 or not np.allclose(total, 1, atol=1e-6):
        what = (
            "must not be negative"
            if array.min() < 0
            else f"must sum to one, column by column; the sums are {total.round(6).tolist()}"
        )
        raise KernelpoolError(f"{name} {what}.")


def check_positive(name: str, covariances: np.ndarray, covariance_type: str) -> None:
    """Variances above zero, matrices symmetric and positive definite."""
    if FAMILIES[covariance_type].matrices:
        matrices = covariances.reshape(-1, *covariances.shape[-2:])
        asymmetry = np.abs(matrices - matrices.swapaxes(1, 2)).max(axis=(1, 2))
        bad = (np.linalg.eigvalsh(matrices)[:, 0] <= 0) | (asymmetry > 1e-8 * np.abs(matrices).max(axis=(1, 2)))
        wanted = "symmetric and positive definite"
    else:
        bad = covariances.reshape(len(covariances), -1).min(axis=1) <= 0
        wanted = "positive (variances, not deviations)"
    if bad.any():
        raise KernelpoolError(f"{name} must be {wanted}; that of kernel {int(np.argmax(bad))} is not.")


def total_of(n_kernels: Any) -> int | None:
    """How many kernels in all were asked for."""
    return None if n_kernels is None else int(np.sum(n_kernels))


def family_of(covariances: np.ndarray, shape: tuple[int, int], named: str | None) -> str:
    """The family that `covariances` belong to, by their shape."""
    fits = [name for name in FAMILIES if FAMILIES[name].shape(*shape) == covariances.shape]
    if named is not None:
        if named not in FAMILIES:
            raise KernelpoolError(f"covariance_type must be one of {list(FAMILIES)}; got {named!r}.")
        check_shape("covariances", covariances, FAMILIES[named].shape(*shape))
        return named
    if len(fits) != 1:
        found = f"may be of type {fits[0]} or {fits[1]}: say covariance_type=" if fits else "fits none of the covariance types"
        raise KernelpoolError(f"covariances of shape {covariances.shape} for means of shape {shape} {found}.")
    return fits[0]
