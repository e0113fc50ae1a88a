"""Exceptions and warnings.

::

    ValueError
      KernelpoolError           what was expected, what was found, what to do
        CollapsedKernelError    a kernel has no width left and no floor to stand on
        MissingDatasetError     a data set that is nowhere to be found
        ModelFileError          a model that cannot be written, or a file that is not what it claims to be
        TableError              a table that cannot be read, or not used as it is
        UnequalChunksError      Dask arrays whose chunks do not line up
    Warning
      ColumnWarning           a column from which nothing, or too much, can be learned
      EmptyKernelWarning      a kernel lost its rows and was dropped
      SampleWarning           a part of the rows was learned from
      sklearn ConvergenceWarning
        UnfinishedWarning       EM stopped before the objective settled
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CollapsedKernelError",
    "ColumnWarning",
    "EmptyKernelWarning",
    "KernelpoolError",
    "MissingDatasetError",
    "ModelFileError",
    "SampleWarning",
    "TableError",
    "UnequalChunksError",
    "UnfinishedWarning",
]


class KernelpoolError(ValueError):
    """Any error that kernelpool raises by itself; a ValueError, as scikit-learn's users expect."""


class CollapsedKernelError(KernelpoolError):
    """A kernel without width along a feature: its covariance is singular and `covariance_floor` is
    too low.
    """

    def __init__(self, kernel: int, feature: int, variance: float, name: str | None = None) -> None:
        self.kernel = kernel
        self.feature = feature
        self.variance = variance
        label = f"feature {feature}" if name is None else f"feature {feature} ({name!r})"
        super().__init__(
            f"Kernel {kernel} has no width left along {label}: its variance is "
            f"{max(variance, 0.0):.1g} of the data's. Raise covariance_floor above 0 (1e-6 is the "
            "default), use fewer kernels, or kernel_prior='conjugate'."
        )

    def __reduce__(self) -> tuple[type, tuple[int, int, float]]:
        return type(self), (self.kernel, self.feature, self.variance)


class MissingDatasetError(KernelpoolError):
    """A data set that was not found; the message has the places that were searched, and how to get
    it.
    """


class ModelFileError(KernelpoolError):
    """A model that cannot be written to a file, or a file that holds no model that can be
    trusted.
    """


class TableError(KernelpoolError):
    """A table that cannot be read, or not used as it is.

    Parameters
    ----------
    message : str
        What was found, with file, row and column where they are known.
    advice : str
        What to do, naming parameters as Python has them (`drop=`); the command line turns them into
        its options.
    **details
        The same for programs.
    """

    def __init__(self, message: str, advice: str = "", **details: object) -> None:
        super().__init__(f"{message} {advice}" if advice else message)
        self.message = message
        self.advice = advice
        self.details = details

    def __reduce__(self) -> tuple[type, tuple[str, str], dict[str, object]]:
        return type(self), (self.message, self.advice), {"details": self.details}


class UnequalChunksError(KernelpoolError):
    """Dask arrays whose rows are not cut at the same places."""


class ColumnWarning(UserWarning):
    """A column from which nothing can be learned, which gives the class away, or which holds none
    of its categories.
    """


class EmptyKernelWarning(UserWarning):
    """A kernel lost its rows and could not be put to use elsewhere."""


class SampleWarning(UserWarning):
    """Rows did not fit in memory, and a part of them was learned from."""


class UnfinishedWarning(ConvergenceWarning):
    """EM stopped before the objective settled."""


@contextmanager
def without_column_warnings(quiet: bool = True) -> Iterator[None]:
    """Fits to the same columns as one before do not warn of them again."""
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", ColumnWarning)
        yield


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user that led here, past kernelpool's own lines and
    scikit-learn's.
    """
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "kernelpool",
        "sklearn",
    ):
        level = level + 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_choices(settings: Any, **allowed: Iterable[Any]) -> None:
    """Each of these fields of a record of settings has one of the values that are allowed."""
    for name, values in allowed.items():
        if getattr(settings, name) not in [*values]:
            raise KernelpoolError(
                f"{name} of {type(settings).__name__} must be one of {[*values]}; got "
                f"{getattr(settings, name)!r}."
            )
