"""Every classifier, with settings that fit in a fraction of a second; and one small table for all
of them.
"""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone

from kernelpool import (
    CompetitiveNeuronsClassifier,
    ConformalClassifier,
    EMLogClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    Training,
)

EM = {"training": "em", "max_iter": 30, "tol": 1e-3}

CLASSIFIERS = {
    "em": SharedKernelClassifier(3, **EM, random_state=0),
    "prbf": SharedKernelClassifier.prbf(3, standardize=True, max_iter=30, random_state=0),
    "conditional": SharedKernelClassifier(2, random_state=0, training=Training(n_folds=2)),
    "average": SharingAverageClassifier(
        SharedKernelClassifier.prbf(3, random_state=0, standardize=True), sharing=(0, 1)
    ),
    "rbf": RBFNetworkClassifier(10, random_state=0),
    "em_log": EMLogClassifier(4, max_iter=10, tol=1e-2, random_state=0),
    "neurons": CompetitiveNeuronsClassifier(3, max_iter=10, tol=1e-2, random_state=0),
    "parzen": ParzenClassifier(random_state=0),
    "reduced": ReducedParzenClassifier(4, random_state=0),
    "pool": PooledClassifier(
        [
            ("mixture", SharedKernelClassifier(2, **EM, random_state=0)),
            ("rbf", RBFNetworkClassifier(5, random_state=0)),
        ],
        n_folds=2,
        random_state=0,
    ),
}

META = {
    "reject": RejectClassifier(SharedKernelClassifier(2, **EM, random_state=0)),
    "conformal": ConformalClassifier(SharedKernelClassifier(2, **EM, random_state=0)),
}

CHEAP = SharedKernelClassifier.prbf(max_iter=10, tol=1e-2, random_state=0)

CHECKED = [
    SharedKernelClassifier(training="em", max_iter=10, random_state=0),
    SharingAverageClassifier(CHEAP, sharing=(0, 1)),
    RBFNetworkClassifier(5, random_state=0),
    EMLogClassifier(3, max_iter=5, tol=1e-2, random_state=0),
    CompetitiveNeuronsClassifier(2, max_iter=10, tol=1e-2, random_state=0),
    ParzenClassifier(random_state=0),
    ReducedParzenClassifier(4, random_state=0),
    PooledClassifier([("mixture", CHEAP)], n_folds=2, random_state=0),
]
"""For scikit-learn's checks; those of the regressor, of `MultiEdit` and of what wraps a classifier
are in their own test files.
"""


def table(n=90, seed=0, missing=0.2):
    """Two numbers and a category, some of them missing, and the classes."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    town = np.where(rng.random(n) < 0.3 + 0.4 * code, "Athens", rng.choice(["Oslo", "Rome"], n))
    X = pd.DataFrame(
        {
            "age": 50 + 12 * (rng.normal(size=n) + code),
            "town": town,
            "dose": 0.01 * (rng.normal(size=n) - 1.5 * code),
        }
    )
    if missing:
        for name in X.columns:
            X.loc[rng.random(n) < missing, name] = None if name == "town" else np.nan
    return X, np.array(["healthy", "sick"])[code]


@cache
def fitted(name, missing=0.2):
    """A classifier of the list, fitted to the table; nobody changes it."""
    return clone({**CLASSIFIERS, **META}[name]).fit(*table(missing=missing))
