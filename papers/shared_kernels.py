"""Tables I-V of the shared-kernel paper, rerun.

M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation", IEEE
Transactions on Neural Networks 12(5), 2001, section IV.

Printed: five-fold cross-validation that keeps the shares of the classes; spherical kernels, as many
for each class; kernels of a class start at training rows of that class; every degree of sharing
from the same start; the average (38) over the five degrees; RBF is Netlab's two-stage network.

======================  ======================================================================================================
left open               ours
======================  ======================================================================================================
start variance          the mean variance of the class that owns the kernel start of the mixing
equal shares end of training         plain EM until a sweep adds less than 1e-6 to (31) per row, 200
sweeps at most scale of the features   standardized by the training rows; satimage's five axes are
left as discriminant analysis gives them kernels without rows    kept in place; no variance below
1e-6 of the data's splits and starts       `REPEATS` of both, seeds fixed; the paper has one
======================  ======================================================================================================

Netlab's `rbftrain` takes the centers of a spherical mixture fitted by EM, but not its widths: every
variance becomes the largest squared distance between two centers (its manual says so). The output
layer is linear least squares. With the mixture's own widths the row cannot be reproduced: see
`variations.py`.
"""

import warnings
from typing import Any

import numpy as np

from kernelpool import (
    EMLogClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    Training,
)
from kernelpool.errors import UnfinishedWarning

from .experiment import Record, Unit
from .folds import Fold, folds
from .published import columns
from .rbf_starts import trained_mixture

NAME = "shared-kernels"
REPEATS = 5
SHARING = (0.0, 0.25, 0.5, 0.75, 1.0)

TRAINING: dict[str, Any] = {
    "covariance_type": "spherical",
    "init": "random",
    "empty_kernels": "keep",
    "max_iter": 200,
    "tol": 1e-6,
    "covariance_floor": 1e-6,
}
NETLAB: dict[str, Any] = {
    "training": "two_stage",
    "readout": "least_squares",
    "ridge": 0.0,
    "covariance_type": "spherical",
    "activation": "gaussian",
}
PROTOCOL: dict[str, Any] = {
    "sharing": SHARING,
    "training": TRAINING,
    "netlab": NETLAB,
    "folds": 5,
    "revision": 1,
}
QUICK = (
    ("clouds", 8),
    ("ionosphere", 4),
    ("ionosphere", 12),
    ("pima", 6),
    ("phoneme", 8),
    ("satimage5", 12),
)


def units(quick: bool = False) -> list[Unit]:
    """A unit is a column of a table: one data set, one number of kernels, five folds."""
    repeats, chosen = (1, list(QUICK)) if quick else (REPEATS, columns(NAME))
    return [
        Unit(NAME, dataset, kernels, repeat)
        for repeat in range(repeats)
        for dataset, kernels in chosen
    ]


def work(unit: Unit) -> list[Record]:
    """Test errors of the RBF network, of every degree of sharing and of their average, fold by
    fold.
    """
    assert unit.kernels is not None
    found: list[Record] = []
    for fold in folds(unit.dataset, unit.repeat):
        for method, parameter, error in errors(fold, unit.kernels):
            found.append(
                {
                    "method": method,
                    "parameter": parameter,
                    "kernels": unit.kernels,
                    "fold": fold.number,
                    "error": error,
                }
            )
    return found


def errors(fold: Fold, kernels: int, **kwargs: Any) -> list[tuple[str, str, float]]:
    """One fold of a column; `kwargs` change the training."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UnfinishedWarning
        )  # the number of sweeps is part of the protocol
        network = SharedKernelClassifier.prbf(
            kernels,
            training=Training("em", acceleration=None),
            random_state=fold.seed,
            n_jobs=1,
            **{**TRAINING, **kwargs},
        )
        average = SharingAverageClassifier(network, sharing=SHARING)
        average.fit(fold.X, fold.y)
        rbf = netlab(fold.X, kernels, fold.seed).fit(fold.X, fold.y)
    found = [("rbf", "", fold.error(rbf.predict(fold.X_test)))]
    found += [
        ("sharing", f"{m.sharing:g}", fold.error(m.predict(fold.X_test)))
        for m in average.estimators_
    ]
    return [*found, ("average", "", fold.error(average.predict(fold.X_test)))]


def netlab(
    X: np.ndarray, kernels: int, seed: int, widths: str | None = "farthest"
) -> EMLogClassifier:
    """Netlab's two-stage network: centers by EM, one width for all, least squares."""
    hidden = trained_mixture(X, kernels, "em", seed, widths=widths, tol=1e-6)
    return EMLogClassifier(kernels, init=hidden, random_state=seed, **NETLAB)
