"""Class probabilities, sets of classes and wrong labels, against EM written by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import kernelpool
from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError

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


def em_by_hand(x, likelihood, n_rounds=3000, noise_of=None):
    """One Gaussian a class; the class of each row is known through `likelihood` (n, K) alone. Returns means, variances,
    priors, the objective, and the table of noise where labels `noise_of` are to be explained by one."""
    n_classes = likelihood.shape[1]
    share = likelihood / likelihood.sum(axis=1, keepdims=True)
    for _ in range(n_rounds):
        mass = share.sum(axis=0)
        mean = share.T @ x / mass
        variance = np.array([share[:, k] @ (x - mean[k]) ** 2 / mass[k] for k in range(n_classes)])
        prior = mass / mass.sum()
        if noise_of is not None:
            noise = np.stack(
                [
                    [share[noise_of == label, k].sum() for label in range(n_classes)]
                    for k in range(n_classes)
                ]
            )
            likelihood = (noise / noise.sum(axis=1, keepdims=True)).T[noise_of]
        joint = likelihood * prior * norm.pdf(x[:, None], mean, np.sqrt(variance))
        share = joint / joint.sum(axis=1, keepdims=True)
    table = None if noise_of is None else noise / noise.sum(axis=1, keepdims=True)
    return mean, variance, prior, np.log(joint.sum(axis=1)).sum(), table


def objective(model, x, likelihood):
    joint = np.exp(model.log_density(x[:, None])) * model.class_prior_ * likelihood
    return np.log(joint.sum(axis=1)).sum()


def test_class_probabilities_are_weights_of_rows():
    x, code = three_classes()
    share = np.random.default_rng(1).dirichlet(np.ones(3), len(x)) * 0.5 + 0.5 * np.eye(3)[code]
    weight = np.random.default_rng(2).uniform(0.5, 2, len(x))
    model = SharedKernelClassifier([1, 1, 1], sharing=0.0, **PLAIN).fit(x[:, None], share, weight)
    mass = weight @ share
    mean = (weight * x) @ share / mass
    np.testing.assert_allclose(model.means_[:, 0], mean, rtol=1e-6)
    expected = [(weight * share[:, k]) @ (x - mean[k]) ** 2 / mass[k] for k in range(3)]
    np.testing.assert_allclose(model.covariances_[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(model.class_prior_, mass / mass.sum(), rtol=1e-9)
    assert model.classes_.tolist() == [0, 1, 2]


def test_certain_probabilities_are_labels():
    x, code = three_classes(200)
    settings = {"n_kernels": [2, 2, 2], "n_folds": 2, "random_state": 0}
    names = np.array(["u", "v", "w"])
    matrix = pd.DataFrame(np.eye(3)[code][:, [2, 0, 1]], columns=["w", "u", "v"])
    as_matrix = SharedKernelClassifier(**settings).fit(x[:, None], matrix)
    as_labels = SharedKernelClassifier(**settings).fit(x[:, None], names[code])
    np.testing.assert_allclose(
        as_matrix.predict_proba(x[:, None]), as_labels.predict_proba(x[:, None]), atol=1e-9
    )
    assert as_matrix.predict(x[:5, None]).tolist() == as_labels.predict(x[:5, None]).tolist()


def test_sets_of_classes_are_em_by_hand():
    x, code = three_classes()
    rng = np.random.default_rng(3)
    sets = np.maximum(np.eye(3)[code], rng.random((len(x), 3)) < 0.4)
    mean, variance, prior, best, _ = em_by_hand(x, sets)
    model = SharedKernelClassifier([1, 1, 1], sharing=0.0, **PLAIN).fit(x[:, None], sets)
    assert objective(model, x, sets) == pytest.approx(best, abs=0.02)
    np.testing.assert_allclose(model.means_[:, 0], mean, atol=0.02)
    np.testing.assert_allclose(model.covariances_[:, 0], variance, rtol=0.03)
    np.testing.assert_allclose(model.class_prior_, prior, atol=0.01)
    # rows of any class are rows without a label
    some = np.where(np.arange(len(x))[:, None] % 2 == 0, np.eye(3)[code], 1.0)
    marked = np.where(np.arange(len(x)) % 2 == 0, code, -1)
    by_mark = SharedKernelClassifier(
        [1, 1, 1], sharing=0.0, unlabeled=-1, class_prior="balanced", **PLAIN
    ).fit(x[:, None], marked)
    by_set = SharedKernelClassifier([1, 1, 1], sharing=0.0, class_prior="balanced", **PLAIN).fit(
        x[:, None], some
    )
    np.testing.assert_allclose(by_set.means_, by_mark.means_, atol=0.02)


def wrong_labels(code, noise, seed=4):
    rng = np.random.default_rng(seed)
    return (rng.random(len(code))[:, None] > np.cumsum(noise[code], axis=1)).sum(axis=1)


NOISE = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.0, 0.7]])


def test_known_noise_is_em_by_hand():
    x, code = three_classes(900)
    y = wrong_labels(code, NOISE)
    likelihood = NOISE.T[y]
    mean, _, _, best, _ = em_by_hand(x, likelihood)
    model = SharedKernelClassifier([1, 1, 1], sharing=0.0, label_noise=NOISE, **PLAIN).fit(
        x[:, None], y
    )
    assert objective(model, x, likelihood) == pytest.approx(best, abs=0.02)
    np.testing.assert_allclose(model.means_[:, 0], mean, atol=0.02)
    np.testing.assert_array_equal(model.label_noise_, NOISE)
    at_its_word = SharedKernelClassifier([1, 1, 1], sharing=0.0, **PLAIN).fit(x[:, None], y)
    assert (
        np.abs(model.means_[:, 0] - [0, 2, 4]).max()
        < np.abs(at_its_word.means_[:, 0] - [0, 2, 4]).max()
    )
    assert model.score(x[:, None], code) >= at_its_word.score(x[:, None], code)


def test_noise_is_estimated(tmp_path):
    x, code = three_classes(3000)
    y = wrong_labels(code, NOISE)
    model = SharedKernelClassifier([1, 1, 1], sharing=0.0, label_noise="estimate", **PLAIN).fit(
        x[:, None], y
    )
    likelihood = model.label_noise_.T[y]
    best = em_by_hand(x, (0.8 * np.eye(3) + 0.1 * (1 - np.eye(3)))[y], noise_of=y, n_rounds=500)[3]
    assert objective(model, x, likelihood) == pytest.approx(best, abs=1.0)
    np.testing.assert_allclose(model.label_noise_, NOISE, atol=0.12)
    kernelpool.save(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        kernelpool.load(tmp_path / "m.safetensors").label_noise_, model.label_noise_
    )


def test_one_share_of_wrong_labels_and_tables_of_words():
    x, code = three_classes(300)
    table = pd.DataFrame(
        {"x": x, "word": np.array(["p", "q", "r"])[wrong_labels(code, NOISE, seed=9)]}
    )
    y = wrong_labels(code, 0.85 * np.eye(3) + 0.05)
    for training in ("em", "conditional"):
        model = SharedKernelClassifier(
            3, training=training, n_folds=2, label_noise=0.1, random_state=0
        ).fit(table, y)
        assert model.score(table, code) > 0.8
        np.testing.assert_allclose(model.label_noise_.sum(axis=1), 1)
        np.testing.assert_allclose(np.diag(model.label_noise_), 0.9)
    labels = np.where(np.arange(300) % 3 == 0, -1, y)
    model = SharedKernelClassifier(
        3, label_noise=0.1, unlabeled=-1, random_state=0, training="em"
    ).fit(table, labels)
    assert model.classes_.tolist() == [0, 1, 2]


def test_what_is_no_label_is_named():
    x, code = three_classes(60)
    fit = SharedKernelClassifier(3, random_state=0).fit
    matrix = np.eye(3)[code]
    with pytest.raises(KernelpoolError, match=r"row 4 holds \[0.5, 0.0, 0.0\]"):
        fit(x[:, None], np.where(np.arange(60)[:, None] == 4, [0.5, 0, 0], matrix))
    with pytest.raises(KernelpoolError, match="row 0 holds"):
        fit(x[:, None], np.where(np.arange(60)[:, None] == 0, 0.0, matrix))
    with pytest.raises(KernelpoolError, match="y gives class 1 no share in any row"):
        fit(x[:, None], matrix[:, [0, 1, 2]] * [1, 0, 1] + (code == 1)[:, None] * [1, 0, 0])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        fit(x[:, None], matrix[1:])
    with pytest.raises(KernelpoolError, match="label_noise is for labels"):
        SharedKernelClassifier(3, label_noise=0.1).fit(x[:, None], matrix)
    with pytest.raises(KernelpoolError, match=r"label_noise must have shape \(3, 3\)"):
        SharedKernelClassifier(3, label_noise=np.eye(2)).fit(x[:, None], code)
    with pytest.raises(KernelpoolError, match="label_noise, transposed, must sum to one"):
        SharedKernelClassifier(3, label_noise=np.eye(3) * 0.9).fit(x[:, None], code)
