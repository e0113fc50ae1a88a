"""Every classifier, with settings that fit in a fraction of a second, and one small table for all
of them; then examples of every kind of model that a file or a graph may hold. Each is fitted once.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import (
    CompetitiveNeuronsClassifier,
    ConformalClassifier,
    EMLogClassifier,
    EMLogRegressor,
    MultiEdit,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    Start,
    Training,
)
from kernelpool.datasets import make_clouds

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
    "reject": RejectClassifier(SharedKernelClassifier(2, **EM, random_state=0), novelty=0.05),
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


def faithful(start, family, sharing, sweeps, **more):
    """The network of the paper from a given start, by plain EM: no floor, no repairs."""
    mean, covariance, mixing, owner = start
    return SharedKernelClassifier.prbf(
        covariance_type=family,
        sharing=sharing,
        init=Start(owners=owner, means=mean, covariances=covariance, mixing=mixing),
        max_iter=sweeps,
        tol=0,
        covariance_floor=0,
        training=Training("em", acceleration=None),
        empty_kernels="keep",
        **more,
    )


@cache
def fitted(name, missing=0.2):
    """A classifier of the list, fitted to the table; nobody changes it."""
    return clone({**CLASSIFIERS, **META}[name]).fit(*table(missing=missing))


# -- examples of fitted models ---------------------------------------------------------------------


@cache
def rows():
    """Rows, two classes, three classes as text, and numbers."""
    X, y = make_clouds(150, random_state=0)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=len(X))])
    text = np.array(["low", "middle", "hoch \N{LATIN SMALL LETTER O WITH DIAERESIS}"])[
        np.where(X[:, 0] > 1, 2, y)
    ]
    return X, y, text, X[:, 0] + 0.1 * X[:, 2]


def text_table():
    """Numbers and text, as a user's file has them."""
    rng = np.random.default_rng(2)
    n = 120
    frame = pd.DataFrame(
        {
            "length": rng.normal(size=n),
            "<b>width</b>": rng.normal(size=n),
            "color": rng.choice(["red", "green", "=1+1"], n),
            "size": rng.choice(["s", "m", "l"], n),
        }
    )
    return frame, np.where(frame["length"] + (frame["color"] == "red") > 0.3, "yes", "no")


def kernels(**kwargs):
    return SharedKernelClassifier.prbf(**{"n_kernels": 4, "random_state": 0, "tol": 1e-3} | kwargs)


EXAMPLES = {
    # name: (estimator, which target: 2 classes, text, pairs of numbers, or the table)
    "shared spherical": (kernels(), "two"),
    "shared diag, separate": (kernels(covariance_type="diag", sharing=0.0), "text"),
    "shared full": (kernels(covariance_type="full", init=Start(n_init=2)), "text"),
    "shared tied": (kernels(covariance_type="tied", overlap=5.0), "two"),
    "shared with a table and a prior": (
        kernels(class_prior=[0.3, 0.7], sharing=np.full((4, 2), 0.5)),
        "two",
    ),
    "shared, chosen": (
        SharedKernelClassifier.auto(n_kernels=4, sharing=1.0, random_state=0, tol=1e-2),
        "two",
    ),
    "shared, learned": (kernels(sharing="learned"), "text"),
    "shared, conditional": (
        kernels(covariance_type="full", training=Training(n_folds=2)),
        "text",
    ),
    "sharing average": (CLASSIFIERS["average"], "text"),
    "pool": (
        PooledClassifier(
            [("describes", kernels(n_kernels=6)), RBFNetworkClassifier(20)],
            pooling="log_linear",
            n_folds=2,
            random_state=0,
        ),
        "text",
    ),
    "pool, linear": (
        PooledClassifier(
            [kernels(training="conditional"), ParzenClassifier("gaussian", 0.5)],
            pooling="linear",
            n_folds=2,
            class_prior=[0.3, 0.7],
            random_state=0,
        ),
        "two",
    ),
    "parzen": (ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0), "two"),
    "parzen conditional": (CLASSIFIERS["parzen"], "text"),
    "parzen gaussian": (ParzenClassifier("gaussian", 0.5, class_prior=[0.2, 0.5, 0.3]), "text"),
    "shared of float32, some unlabeled": (
        kernels(unlabeled=np.nan, covariance_type="full"),
        "float32, gaps",
    ),
    "parzen epanechnikov": (ParzenClassifier("epanechnikov", "loo", random_state=0), "two"),
    "reduced parzen": (CLASSIFIERS["reduced"], "two"),
    "reduced parzen by itself": (
        ReducedParzenClassifier(
            "auto", kernel="gaussian", tolerance=0.2, edit=False, random_state=0
        ),
        "text",
    ),
    "multi-edit": (MultiEdit(random_state=0), "text"),
    "em-log": (CLASSIFIERS["em_log"], "two"),
    "rbf": (CLASSIFIERS["rbf"], "text"),
    "rbf in a metric": (RBFNetworkClassifier(20, metric="learned", random_state=0), "text"),
    "rbf of few features": (RBFNetworkClassifier(20, max_features=2, random_state=0), "text"),
    "em-log of a mixture": (
        EMLogClassifier(init=FrozenEstimator(kernels().fit(*rows()[:2])), readout="least_squares"),
        "text",
    ),
    "em-log densities": (
        EMLogClassifier(5, activation="density", covariance_type="diag", random_state=0),
        "text",
    ),
    "regressor": (
        EMLogRegressor(5, activation="gaussian", random_state=0, max_iter=20),
        "pairs",
    ),
    "neurons": (CLASSIFIERS["neurons"], "two"),
    "neurons with places": (
        CompetitiveNeuronsClassifier(4, local=True, random_state=0, max_iter=20),
        "text",
    ),
    "neurons with margins": (
        CompetitiveNeuronsClassifier(3, margin=True, random_state=0, max_iter=20),
        "text",
    ),
    "conformal": (ConformalClassifier(kernels(), cv=2), "text"),
    "reject": (RejectClassifier(kernels(), ambiguity=0.2, novelty=0.05), "text"),
    "reject prefit": (
        RejectClassifier(kernels().fit(*rows()[:2]), ambiguity=0.3),
        "two",
    ),
    "pipeline": (make_pipeline(StandardScaler(), kernels(covariance_type="full")), "two"),
    "pipeline, refusing": (
        RejectClassifier(make_pipeline(StandardScaler(), kernels()), ambiguity=0.2, novelty=0.05),
        "text",
    ),
    "table": (kernels(covariance_type="diag"), "table"),
    "table, indicators": (CLASSIFIERS["rbf"], "table"),
}


def target(kind):
    X, y, text, numbers = rows()
    if kind == "table":
        return text_table()
    if kind == "float32, gaps":
        return X.astype(np.float32), np.where(np.arange(len(y)) % 5 == 0, np.nan, y)
    return X, {"two": y, "text": text, "pairs": np.column_stack([numbers, -numbers])}[kind]


@cache
def example(name):
    """The model of that name, and the rows that it was fitted to."""
    estimator, kind = EXAMPLES[name]
    X, y = target(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EM is not given the time to settle
        estimator = estimator if name == "reject prefit" else clone(estimator)
        return estimator.fit(X, y), X


ANSWERS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "log_density",
    "score_samples",
    "decision_function",
    "kernel_posterior",
    "neuron_posterior",
    "activations",
    "in_support",
    "decide",
    "transform",
)


def answers(model, X):
    """Everything that the model says of rows."""
    found = {name: np.asarray(getattr(model, name)(X)) for name in ANSWERS if hasattr(model, name)}
    if isinstance(model, EMLogRegressor):
        found["std"] = model.predict(X, return_std=True)[1]
    if isinstance(model, MultiEdit):
        found["kept"] = model.sample_indices_
    if hasattr(model, "sample"):
        found["sample"], found["sampled"] = map(np.asarray, model.sample(7, random_state=3))
    return found
