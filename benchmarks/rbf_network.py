"""RBF networks against scikit-learn's peers, in one run.

    python -m benchmarks rbf_network

Classification: wdbc, ionosphere and pima, five stratified folds, features standardized in each;
error in percent, log-loss, and seconds for one fit, all means over the folds. SVC has no
probabilities of its own: its log-loss is that of Platt's scaling by five inner folds, and its time
includes them. Regression: the diabetes data in five folds, and Friedman 1 (1000 rows to train, 2000
without noise to test); root mean squared error, and seconds to fit and to predict. KernelRidge has
its strength and width chosen by five inner folds on a grid of 5 x 5, the Gaussian process by
marginal likelihood; our networks choose theirs by rows left out. One BLAS thread throughout.
"""

import time
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelpool import EMLogClassifier, EMLogRegressor, RBFNetworkClassifier
from papers import em_log
from papers.data import load_ionosphere, load_pima, load_wdbc

SETS = {"wdbc": load_wdbc, "ionosphere": load_ionosphere, "pima": load_pima}


class Baseline:
    """One of the networks that the EM-Log paper names, of twenty kernels."""

    def __init__(self, name):
        self.name = name

    def fit(self, X, y):
        return em_log.network(self.name, X, 20, 0).fit(X, y)


def classifiers():
    common = {"random_state": 0}
    baselines = ("KMeans+LS", "KMeans+GR", "RBF (Netlab)", "EM+Log")
    return {
        "SVC": lambda: CalibratedClassifierCV(SVC(), ensemble=False),
        "MLPClassifier": lambda: MLPClassifier(max_iter=2000, random_state=0),
        "RBFNetworkClassifier()": lambda: RBFNetworkClassifier(**common),
        "EMLogClassifier()": lambda: EMLogClassifier(**common),
        'EMLogClassifier(covariance_type="diag")': lambda: EMLogClassifier(
            covariance_type="diag", **common
        ),
        'EMLogClassifier(training="two_stage")': lambda: EMLogClassifier(
            training="two_stage", **common
        ),
        **{name: lambda n=name: Baseline(n) for name in baselines},
    }


def regressors():
    grid = {"alpha": np.logspace(-3, 1, 5), "gamma": np.logspace(-3, 0, 5)}
    process = ConstantKernel() * RBF() + WhiteKernel()
    common = {"random_state": 0}
    return {
        "KernelRidge": lambda: GridSearchCV(KernelRidge(kernel="rbf"), grid),
        "GaussianProcessRegressor": lambda: GaussianProcessRegressor(
            process, normalize_y=True, random_state=0
        ),
        "EMLogRegressor()": lambda: EMLogRegressor(**common),
        "EMLogRegressor(100)": lambda: EMLogRegressor(100, **common),
        'EMLogRegressor(training="two_stage")': lambda: EMLogRegressor(
            training="two_stage", **common
        ),
    }


def timed(function, *args):
    begin = time.perf_counter()
    answer = function(*args)
    return answer, time.perf_counter() - begin


def classify():
    print(f"{'error %, log-loss, fit s':46}" + "".join(f"{name:>24}" for name in SETS))
    for name, make in classifiers().items():
        cells = []
        for load in SETS.values():
            X, y = load(return_X_y=True)
            results = []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
                scale = StandardScaler().fit(X[train])
                model, seconds = timed(make().fit, scale.transform(X[train]), y[train])
                p = model.predict_proba(scale.transform(X[test]))
                error = np.mean(model.predict(scale.transform(X[test])) != y[test])
                results.append((100 * error, log_loss(y[test], p), seconds))
            cells.append("{:5.1f} {:6.3f} {:6.2f}".format(*np.mean(results, axis=0)))
        print(f"{name:46}" + "".join(f"{cell:>24}" for cell in cells), flush=True)


def regress():
    X, y = load_diabetes(return_X_y=True)
    splits = [(X[a], y[a], X[b], y[b]) for a, b in KFold(5, shuffle=True, random_state=0).split(X)]
    friedman = [
        (
            *make_friedman1(1000, noise=1.0, random_state=0),
            *make_friedman1(2000, noise=0.0, random_state=1),
        )
    ]
    print(f"{'rmse, fit s, predict s':46}{'diabetes':>26}{'Friedman 1':>26}")
    for name, make in regressors().items():
        cells = []
        for parts in (splits, friedman):
            results = []
            for X_train, y_train, X_test, y_test in parts:
                scale = StandardScaler().fit(X_train)
                middle = y_train.mean()
                unit = y_train.std()
                model, fit = timed(make().fit, scale.transform(X_train), (y_train - middle) / unit)
                found, predict = timed(model.predict, scale.transform(X_test))
                results.append(
                    (np.sqrt(np.mean((found * unit + middle - y_test) ** 2)), fit, predict)
                )
            cells.append("{:7.2f} {:7.3f} {:8.4f}".format(*np.mean(results, axis=0)))
        print(f"{name:46}" + "".join(f"{cell:>26}" for cell in cells), flush=True)


def main():
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        classify()
        print()
        regress()


if __name__ == "__main__":
    main()
