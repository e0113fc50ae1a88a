"""Training of RBF networks: records in, records out."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpool import RBFNetworkClassifier
from kernelpool.datasets import make_ripley
from kernelpool.networks.least_squares import LeastSquares
from kernelpool.networks.readout import ClassTargets
from kernelpool.training.config import KernelConfig
from kernelpool.training.monitor import Progress
from kernelpool.training.prepare import training_data
from kernelpool.training.rbf import RBFConfig, fit_rbf


@pytest.fixture(scope="module")
def rows():
    return make_ripley(200, random_state=0)


CONFIG = RBFConfig(
    widths=None,
    n_kernels=4,
    default_kernels=20,
    hidden="kmeans",
    kernel=KernelConfig("full", 1e-6, "conjugate"),
    training="em_log",
    activation="normalized",
    temperature=None,
    once=False,
    patience=5,
    n_init=1,
    max_iter=10,
    tol=1e-5,
    seed=np.random.RandomState(0).randint(2**31),
)


def fitted(rows, config):
    data = training_data(RBFNetworkClassifier(), *rows, None, None, 1.0, None)
    made = []

    def output(hidden):
        made.append(hidden)
        return LeastSquares(hidden, ClassTargets(2, 1), 0.1)

    return fit_rbf(data, config, output, Progress(0, 1, 10, "")), made


def test_the_estimator_is_a_shell(rows):
    found, _ = fitted(rows, CONFIG)
    model = RBFNetworkClassifier(
        4, readout="ridge", strength=0.1, training="em_log", patience=5, max_iter=10, random_state=0
    )
    model.fit(*rows)
    np.testing.assert_array_equal(found.means, model.means_)
    np.testing.assert_array_equal(found.network.readout.weight, model.readout_)
    assert found.loss == model.loss_


def test_temperatures_are_tried_on_hidden_layers_of_their_own(rows):
    """Of 1, d and d² each has its own layer, none is changed afterwards, and the last is the one in use."""
    found, made = fitted(rows, CONFIG)
    assert [hidden.temperature for hidden in made] == [1.0, 2.0, 4.0, found.temperature]
    by_hand = {
        t: fitted(rows, replace(CONFIG, temperature=t, training="two_stage"))[0].loss
        for t in (1.0, 2.0, 4.0)
    }
    assert found.temperature == min(by_hand, key=by_hand.get)
