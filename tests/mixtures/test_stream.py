"""Stepwise EM, beside batch EM and brute force."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kernelpool
from kernelpool import SharedKernelClassifier
from kernelpool.mixtures.fit import MixtureSettings
from kernelpool.mixtures.stream import STEP_POWER, StreamNetwork, step_size
from kernelpool.rows import ArrayRows

CLASSES = [0, 1]


def clusters(n, seed, centers=((-2, 0), (2, 0)), width=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return np.asarray(centers, float)[y] + width * rng.normal(size=(n, 2)), y


def streamed(model, batches, half_life=None):
    for x, y in batches:
        model.partial_fit(x, y, classes=CLASSES, half_life=half_life)
    return model


def test_a_step_of_the_whole_weight_is_a_sweep_of_batch_em(blobs, family):
    """With gamma = 1 nothing is left of what was: the network is that of one sweep over the
    mini-batch.
    """
    x, y = blobs
    start = SharedKernelClassifier.prbf(6, covariance_type=family, sharing=0.5, random_state=0)
    start.partial_fit(x, y, classes=[0, 1, 2])
    settings = MixtureSettings(
        covariance_type=family, sharing=0.5, standardize=False, kernel_prior=None
    )
    before = StreamNetwork(start._fitted.stream, settings, half_life=1e-9)  # forgets all at once
    rows = ArrayRows(x, y)
    after = before.step(rows)
    expected, _ = before.network.sweep(before.framed(rows), before.params)
    assert_allclose(after.params.kernels.mean, expected.kernels.mean, rtol=1e-8, atol=1e-10)
    assert_allclose(
        after.params.kernels.covariance, expected.kernels.covariance, rtol=1e-7, atol=1e-10
    )
    assert_allclose(after.state.mixing, expected.mixing, rtol=1e-8, atol=1e-12)


def test_statistics_are_averaged_by_the_documented_step(blobs):
    """A kernel a class, far apart: each row belongs to its kernel, and the means are the weighted
    means of the batches.
    """
    batches = [clusters(200, seed, ((-50, 0), (50, 0))) for seed in range(4)]
    model = streamed(
        SharedKernelClassifier.prbf(2, covariance_type="diag", sharing=0, random_state=0), batches
    )
    mass = np.zeros(2)
    first = np.zeros((2, 2))
    second = np.zeros((2, 2))
    for t, (x, y) in enumerate(batches):
        step = 1.0 if t == 0 else (1 + t) ** -STEP_POWER
        for k in CLASSES:
            mine = x[y == k]
            mass[k] += step * (len(mine) / len(x) - mass[k])
            first[k] += step * (mine.sum(axis=0) / len(x) - first[k])
            second[k] += step * ((mine**2).sum(axis=0) / len(x) - second[k])
    mean = first / mass[:, None]
    assert_allclose(model.means_, mean, rtol=1e-9)
    assert_allclose(model.covariances_, second / mass[:, None] - mean**2, rtol=1e-6)
    assert model.n_iter_ == 4
    assert model.weight_seen_ == 800


def test_the_step():
    assert step_size(100, 0, None) == 1
    assert step_size(100, 300, None) == pytest.approx(4**-STEP_POWER)
    assert step_size(100, 1e9, 100) == pytest.approx(0.5)
    assert step_size(300, 1e9, 100) == pytest.approx(1 - 1 / 8)


def test_a_stream_comes_to_the_likelihood_of_batch_em(family):
    x, y = clusters(10_000, 0, ((-1, 0), (1, 1)))
    held_out = clusters(5000, 1, ((-1, 0), (1, 1)))
    batch = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0).fit(x, y)
    parts = [(x[i : i + 1000], y[i : i + 1000]) for i in range(0, len(x), 1000)] * 3
    stream = streamed(SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0), parts)
    assert stream.log_likelihood(*held_out) > batch.log_likelihood(*held_out) - 0.002 * len(
        held_out[0]
    )


def test_drift_is_followed_only_where_it_is_asked_for():
    """The classes change places."""
    before = [clusters(500, seed) for seed in range(20)]
    after = [clusters(500, 100 + seed, ((2, 0), (-2, 0))) for seed in range(10)]
    x, y = clusters(2000, 999, ((2, 0), (-2, 0)))
    still = streamed(SharedKernelClassifier.prbf(2, random_state=0), before + after)
    moving = streamed(SharedKernelClassifier.prbf(2, random_state=0), before + after, 1000)
    assert moving.score(x, y) > 0.95
    assert moving.score(x, y) > still.score(x, y)


def test_a_kernel_without_rows_keeps_its_place(family):
    """One of two clusters of class 1 never comes again, and is forgotten a thousand times over."""
    rng = np.random.default_rng(0)
    x, y = clusters(400, 0)
    x[(y == 1) & (rng.uniform(size=400) < 0.5)] += [0, 30]
    model = SharedKernelClassifier.prbf(
        [1, 2], covariance_type=family, sharing=0, random_state=0
    ).partial_fit(x, y, classes=CLASSES)
    before = model.means_[abs(model.means_ - [2, 30]).sum(axis=1).argmin()]
    for seed in range(50):
        model.partial_fit(*clusters(200, seed), half_life=10)
    after = model.means_[abs(model.means_ - [2, 30]).sum(axis=1).argmin()]
    assert_allclose(after, before, atol=1e-6)
    assert model.score(*clusters(1000, 100)) > 0.95


GIVEN = SharedKernelClassifier.from_parameters(
    [[-2.0, 1], [2, 1]], [1.0, 1], np.eye(2), [0.5, 0.5], CLASSES
)


@pytest.mark.parametrize("start", [SharedKernelClassifier.prbf(4, random_state=0), GIVEN])
def test_weights_and_rows_without_a_label(start):
    model, copies, weighted = (deepcopy(start).set_params(unlabeled=-1) for _ in range(3))
    times = np.random.default_rng(0).integers(1, 4, 600)
    for seed in range(2):
        x, y = clusters(600, seed)
        weighted.partial_fit(x, y, CLASSES, sample_weight=times.astype(float))
        copies.partial_fit(np.repeat(x, times, axis=0), np.repeat(y, times), CLASSES)
        assert_allclose(weighted.means_, copies.means_, rtol=1e-6)
        model.partial_fit(x, np.where(np.arange(600) % 3, y - seed * (y + 1), y), CLASSES)
    model.partial_fit(x, np.full(600, -1))
    assert model.score(*clusters(1000, 5)) > 0.95
    assert model.class_prior_.sum() == pytest.approx(1)


def test_a_fitted_and_a_loaded_network_go_on(tmp_path, family):
    x, y = clusters(2000, 0)
    fitted = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0).fit(x, y)
    kernelpool.save(fitted, tmp_path / "m.safetensors")
    loaded = kernelpool.load(tmp_path / "m.safetensors")
    more = clusters(1000, 1)
    fitted.partial_fit(*more)
    assert_allclose(loaded.partial_fit(*more).means_, fitted.means_, rtol=1e-9)
    kernelpool.save(fitted, tmp_path / "m.safetensors")
    loaded = kernelpool.load(tmp_path / "m.safetensors")
    assert_array_equal(loaded.partial_fit(*more).means_, fitted.partial_fit(*more).means_)
    assert fitted.fit(x, y)._fitted.stream is None  # it begins anew


def test_torch_and_float32():
    torch = pytest.importorskip("torch")
    reference, *others = (
        streamed(
            SharedKernelClassifier.prbf(4, random_state=0),
            [(kind(x), y) for x, y in (clusters(500, seed) for seed in range(4))],
        )
        for kind in (np.asarray, torch.asarray, np.float32)
    )
    for found, atol in zip(others, (1e-8, 1e-3), strict=True):
        assert_allclose(found.means_, reference.means_, atol=atol)


def test_refusals():
    x, y = clusters(100, 0)
    model = SharedKernelClassifier.prbf(4, random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(x, y)
    assert not hasattr(model, "classes_")
    with pytest.raises(ValueError, match="first mini-batch has no rows of class 2, which has no"):
        SharedKernelClassifier.prbf(sharing=0).partial_fit(x, y, classes=[0, 1, 2])
    before = model.partial_fit(x, y, classes=CLASSES).means_
    for arguments, options, message in (
        (
            (x, y),
            {"classes": [0, 2]},
            r"classes=\[0, 2\] is not the same as on the first call: \[0, 1\]",
        ),
        ((x, np.full(100, 7)), {}, r"y has the label 7, which is none of the classes \[0, 1\]"),
        ((x[:, :1], y), {}, "X has 1 features, but SharedKernelClassifier is expecting 2"),
        (("rows.parquet", "label"), {}, "takes a mini-batch that is in memory; got str"),
        ((x, y), {"half_life": 0}, "half_life must be above 0; got 0"),
        ((x * 1e200, y), {}, "Feature 0 of X is too large to be squared"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*arguments, **options)
    assert_array_equal(model.means_, before)
    for name, value in {
        "n_kernels": "auto",
        "kernel_prior": "auto",
        "sharing": "learned",
        "overlap": 0.1,
    }.items():
        with pytest.raises(ValueError, match=f"takes a number or a name for {name}"):
            SharedKernelClassifier.prbf(**{name: value}).partial_fit(x, y, classes=CLASSES)
    x[0, 0] = 1e100
    assert model.partial_fit(x, y).score(*clusters(500, 1)) > 0.9


@pytest.mark.parametrize(
    ("classes", "label"), [(["nor", "sou"], "north"), ([0, 1], 0.5), ([0, 1], "0"), (["0", "1"], 0)]
)
def test_labels_that_only_look_like_classes_are_refused(classes, label):
    model = SharedKernelClassifier.prbf(2, random_state=0)
    with pytest.raises(ValueError, match=f"y has the label {label!r}, which is none of"):
        model.partial_fit(clusters(9, 0)[0], np.full(9, label, object), classes=classes)


def test_a_class_that_comes_later():
    x, y = clusters(500, 0)
    model = SharedKernelClassifier.prbf(4, random_state=0).partial_fit(x, y, classes=[0, 1, 2])
    for seed in range(20):
        x, y = clusters(500, seed)
        new = np.random.default_rng(seed).uniform(size=500) < 0.3
        x[new], y[new] = x[new] + [0, 8], 2
        model.partial_fit(x, y, half_life=2000)
    assert model.score(x, y) > 0.95


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (["north", "south"] * 100, "has columns of categories"),
        ([1.0, np.nan] * 100, "contains NaN"),
    ],
)
def test_categories_and_missing_cells_are_refused(second, found):
    x = pd.DataFrame({"a": np.arange(200.0), "b": second})
    y = np.arange(200) // 100
    model = SharedKernelClassifier.prbf(4, covariance_type="diag", max_iter=3, tol=1)
    for started in (model, clone(model).fit(x, y)):
        with pytest.raises(ValueError, match=f"takes complete numbers alone, and Input X {found}"):
            started.partial_fit(x, y, classes=[0, 1])
