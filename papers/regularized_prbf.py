"""Tables 1-4 of the regularized-PRBF paper, rerun.

C. Constantinopoulos, M. K. Titsias and A. Likas, "A Bayesian regularization method for the probabilistic RBF network",
section 4.

Printed: five-fold cross-validation; every strength from the same start; strengths in multiples of N / (K M); 100 sweeps of EM
suffice. Its satimage is taken to be the five-dimensional one of the authors' other paper.

======================  ======================================================================================================
left open               ours
======================  ======================================================================================================
kernels                 spherical, as in the authors' other paper
start                   as there: rows of a class at random, its mean variance, equal mixing. Numbers of kernels that are not a
                        multiple of the classes (satimage, 9 and 15) are dealt out as evenly as it goes, larger classes first
end of training         100 sweeps; of these the one with the highest objective counts, since (29) may lower it
scale of the features   as in the authors' other paper
priors that vanish      (29) below zero is set to zero; a class whose whole column would vanish keeps its maximum-likelihood
                        column for that sweep
splits and starts       `REPEATS` of both, seeds fixed; the paper has one
======================  ======================================================================================================
"""

import warnings
from typing import Any

from kernelpool import SharingAverageClassifier
from kernelpool.errors import UnfinishedWarning

from .experiment import Record, Unit
from .folds import Fold, folds
from .published import columns

NAME = "regularized-prbf"
REPEATS = 5
STRENGTHS = (0.0, 5.0, 10.0, 15.0, 20.0)

TRAINING: dict[str, Any] = {
    "sharing": (1.0,),
    "covariance_type": "spherical",
    "overlap_units": "paper",
    "overlap_distance": "bhattacharyya",
    "init": "random",
    "acceleration": None,
    "starving": "keep",
    "max_iter": 100,
    "tol": 0.0,
    "covariance_floor": 1e-6,
}
PROTOCOL: dict[str, Any] = {"strengths": STRENGTHS, "training": TRAINING, "folds": 5, "revision": 1}
QUICK = (("ionosphere", 4), ("ionosphere", 8), ("pima", 6), ("phoneme", 8), ("satimage5", 6))


def units(quick: bool = False) -> list[Unit]:
    """A unit is a column of a table: one data set, one number of kernels, five folds."""
    repeats, chosen = (1, list(QUICK)) if quick else (REPEATS, columns(NAME))
    return [Unit(NAME, dataset, kernels, repeat) for repeat in range(repeats) for dataset, kernels in chosen]


def work(unit: Unit) -> list[Record]:
    """Test errors of every strength, fold by fold."""
    assert unit.kernels is not None
    found: list[Record] = []
    for fold in folds(unit.dataset, unit.repeat):
        for parameter, error in errors(fold, unit.kernels):
            found.append(
                {"method": "penalty", "parameter": parameter, "kernels": unit.kernels, "fold": fold.number, "error": error}
            )
    return found


def errors(fold: Fold, kernels: int, **kwargs: Any) -> list[tuple[str, float]]:
    """One fold of a column; `kwargs` change the training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWarning)  # the number of sweeps is part of the protocol
        networks = SharingAverageClassifier(
            kernels, overlap_penalty=STRENGTHS, random_state=fold.seed, n_jobs=1, **{**TRAINING, **kwargs}
        )
        networks.fit(fold.X, fold.y)
    return [(f"{m.overlap_penalty:g}", fold.error(m.predict(fold.X_test))) for m in networks.estimators_]
