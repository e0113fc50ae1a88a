"""What classifiers that give probabilities share: each case was worked out by hand."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    RBFNetworkClassifier,
    SharedKernelClassifier,
)
from kernelpool.base.classifier import argmax_class, log_softmax, softmax
from kernelpool.datasets import make_ripley


def test_far_rows_keep_their_log_probabilities():
    # log-densities of -1e17: adding log 2 to them would change nothing, and exp of the two would no
    # longer sum to one
    scores = np.array([[-1e17, -1e17], [-1e17, -1e17 - 64.0]])
    assert_allclose(log_softmax(scores), [[-np.log(2), -np.log(2)], [0, -64]], rtol=1e-12)
    assert_allclose(softmax(scores), [[0.5, 0.5], [1, np.exp(-64)]], rtol=1e-12)


def test_of_equal_scores_the_first_class_is_named():
    assert argmax_class(np.array([[0.5, 0.5], [0.2, 0.8]])).tolist() == [0, 1]


def test_labels_at_home_are_classes_and_not_their_codes():
    model = SharedKernelClassifier.prbf(2, random_state=0)
    x = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    answer = model.fit(x, [30, 30, 30, 10, 10, 10]).predict(strict.asarray(x))
    assert type(answer) is type(strict.asarray(x))
    assert np.asarray(answer).tolist() == [30, 30, 30, 10, 10, 10]


EVERY_PARAMETER = [
    (
        RBFNetworkClassifier(40),
        {"n_kernels": 10, "init": "random", "ridge": 5.0, "width": 3.0, "max_features": 1},
    ),
    (
        EMLogClassifier(5, init="random"),
        {"n_kernels": 6, "init": "kmeans", "readout": "newton", "training": "em_log", "ridge": 3.0,
         "activation": "gaussian", "temperature": 1.0, "covariance_type": "diag", "patience": 1,
         "max_iter": 2, "kernel_prior": None, "random_state": 1, "tol": 0.01},
    ),
    (
        CompetitiveNeuronsClassifier(3),
        {"precision": 8.0, "repulsion": 5.0, "decay": 1.0, "local": True, "margin": True,
         "max_iter": 2, "tol": 1e-1, "random_state": 1, "solver": "gradient"},
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
@pytest.mark.parametrize(("model", "changes"), EVERY_PARAMETER)
def test_every_parameter_changes_something(model, changes):
    X, y = make_ripley(300, random_state=0)
    model.set_params(random_state=0)
    expected = model.fit(X, y).predict_proba(X)
    for change in changes.items():
        changed = clone(model).set_params(**dict([change])).fit(X, y)
        assert np.abs(changed.predict_proba(X) - expected).max() > 1e-6, change
