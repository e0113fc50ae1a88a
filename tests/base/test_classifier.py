"""What classifiers that give probabilities share: each case was worked out by hand."""

import array_api_strict as strict
import numpy as np
from numpy.testing import assert_allclose

from kernelpool import SharedKernelClassifier
from kernelpool.base.classifier import argmax_class, log_softmax, softmax


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
