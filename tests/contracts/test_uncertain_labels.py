"""Class probabilities in place of labels, against weighted means."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from sklearn.base import clone

from kernelpool import SharedKernelClassifier, Training

PLAIN = {
    "covariance_type": "diag",
    "kernel_prior": None,
    "training": "em",
    "random_state": 0,
    "tol": 1e-12,
    "max_iter": 2000,
}


def three_classes(n=600, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, n)
    return rng.normal(size=n) + 2.0 * code, code


def test_class_probabilities_are_weights_of_rows():
    x, code = three_classes()
    share = np.random.default_rng(1).dirichlet(np.ones(3), len(x)) * 0.5 + 0.5 * np.eye(3)[code]
    weight = np.random.default_rng(2).uniform(0.5, 2, len(x))
    model = SharedKernelClassifier([1, 1, 1], sharing=0.0, **PLAIN).fit(x[:, None], share, weight)
    mass = weight @ share
    mean = (weight * x) @ share / mass
    assert_allclose(model.means_[:, 0], mean, rtol=1e-6)
    expected = [(weight * share[:, k]) @ (x - mean[k]) ** 2 / mass[k] for k in range(3)]
    assert_allclose(model.covariances_[:, 0], expected, rtol=1e-6)
    assert_allclose(model.class_prior_, mass / mass.sum(), rtol=1e-9)
    assert model.classes_.tolist() == [0, 1, 2]
    frame = pd.DataFrame(share, columns=[3, 5, 4])  # labels keep their type
    again = clone(model).fit(x[:, None], frame, weight)
    assert again.classes_.tolist() == [3, 4, 5]


def test_certain_probabilities_are_labels():
    x, code = three_classes(200)
    settings = {"n_kernels": [2, 2, 2], "training": Training(n_folds=2), "random_state": 0}
    names = np.array(["u", "v", "w"])
    matrix = pd.DataFrame(np.eye(3)[code][:, [2, 0, 1]], columns=["w", "u", "v"])
    as_matrix = SharedKernelClassifier(**settings).fit(x[:, None], matrix)
    as_labels = SharedKernelClassifier(**settings).fit(x[:, None], names[code])
    assert_allclose(
        as_matrix.predict_proba(x[:, None]), as_labels.predict_proba(x[:, None]), atol=1e-9
    )
    assert as_matrix.predict(x[:5, None]).tolist() == as_labels.predict(x[:5, None]).tolist()
