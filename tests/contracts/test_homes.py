"""Every home of rows gives the same model: NumPy, array-api-strict, torch, Dask in one process and in two."""

import numpy as np
import pytest

from kernelpool import SharedKernelClassifier, SharingAverageClassifier

HOMES = ["array_api_strict", "torch", "dask"]


def at_home(name, x, y):
    if name == "dask":
        da = pytest.importorskip("dask.array")
        return da.from_array(x, chunks=(70, 2)), da.from_array(y, chunks=70)
    xp = pytest.importorskip(name, reason=f"{name} is an optional array library (make arrays installs torch)")
    return xp.asarray(x), xp.asarray(y)


def compute(answer):
    return np.asarray(answer.compute() if hasattr(answer, "compute") else answer)


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("sharing", [0, 0.5])
def test_homes_agree(home, blobs, family, sharing):
    x, y = blobs
    model = SharedKernelClassifier(6, covariance_type=family, sharing=sharing, random_state=0, unlabeled=2)
    reference = model.fit(x, y)
    expected = [reference.means_, reference.covariances_, reference.mixing_, reference.objective_]
    there, labels = at_home(home, x, y)
    model = SharedKernelClassifier(6, covariance_type=family, sharing=sharing, random_state=0, unlabeled=2)
    other = model.fit(there, labels)
    found = [other.means_, other.covariances_, other.mixing_, other.objective_]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    for method in ("predict_proba", "log_density", "score_samples", "kernel_posterior", "predict", "predict_log_proba"):
        answer = getattr(other, method)(there)
        assert type(answer) is type(there)  # it stays where it came from
        np.testing.assert_allclose(compute(answer), getattr(reference, method)(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("home", HOMES)
def test_homes_agree_on_averages_and_weights(home, blobs):
    x, y = blobs
    there, labels = at_home(home, x, y)
    weight = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
    weights, _ = at_home(home, weight[:, None], y)
    average = SharingAverageClassifier(6, sharing=(0, 1), random_state=0)
    reference = average.fit(x, y, sample_weight=weight).predict_proba(x)
    found = SharingAverageClassifier(6, sharing=(0, 1), random_state=0).fit(there, labels, sample_weight=weights[:, 0])
    np.testing.assert_allclose(compute(found.predict_proba(there)), reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("home", ["torch", "array_api_strict"])
def test_homes_keep_float32(home, blobs):
    x, y = blobs
    there, labels = at_home(home, x.astype(np.float32), y)
    model = SharedKernelClassifier(6, random_state=0).fit(there, labels)
    assert str(model.predict_proba(there).dtype).endswith("float32")


@pytest.mark.parametrize("home", HOMES)
def test_homes_check_their_input(home, blobs):
    x, y = blobs
    hole = x.copy()
    hole[3, 1] = np.nan
    there, labels = at_home(home, hole, y)
    with pytest.raises(ValueError, match="NaN or infinity in 1 cells"):
        SharedKernelClassifier(4, missing="error").fit(there, labels)
    there, labels = at_home(home, x, y)
    model = SharedKernelClassifier(4, random_state=0).fit(there, labels)
    with pytest.raises(ValueError, match="X has 2 features, but SharedKernelClassifier is expecting 3"):
        model.predict(there[:, :2])
    integers, _ = at_home(home, np.ones((4, 3), int), y[:4])
    with pytest.raises(ValueError, match="must be float32 or float64"):
        model.predict(integers)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.predict(labels)


@pytest.mark.parametrize("home", ["dask"])
def test_homes_of_two_processes_agree_with_one(home, blobs):
    distributed = pytest.importorskip("distributed")
    x, y = blobs
    there, labels = at_home(home, x, y)
    reference = SharedKernelClassifier(6, covariance_type="full", random_state=0).fit(x, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = SharedKernelClassifier(6, covariance_type="full", random_state=0).fit(there, labels)
        np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.covariances_, reference.covariances_, rtol=1e-9, atol=1e-9)
        probability = found.predict_proba(there)
        np.testing.assert_allclose(probability.compute(), reference.predict_proba(x), rtol=1e-9, atol=1e-9)


def test_homes_of_dask_with_chunks_of_every_kind(blobs):
    da = pytest.importorskip("dask.array")
    x, y = blobs
    reference = SharedKernelClassifier(6, random_state=0).fit(x, y)
    # columns cut, labels cut elsewhere, an empty chunk, labels as a NumPy array
    cut = da.from_array(x, chunks=((100, 0, 200), (2, 1)))
    for labels in (da.from_array(y, chunks=37), y):
        found = SharedKernelClassifier(6, random_state=0).fit(cut, labels)
        np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-9)
    kwargs = np.array(["no", "yes", "maybe"])[y]
    found = SharedKernelClassifier(6, random_state=0).fit(cut, da.from_array(kwargs, chunks=100))
    assert set(found.predict(cut).compute()) <= {"no", "yes", "maybe"}
    unknown = da.from_array(x, chunks=(100, 3))[da.from_array(np.ones(len(x), bool), chunks=100)]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        SharedKernelClassifier(6).fit(unknown, y)
    labels = da.from_array(y, chunks=100)[da.from_array(np.ones(len(x), bool), chunks=100)]
    found = SharedKernelClassifier(6, random_state=0).fit(unknown, labels)  # lengths unknown, chunks alike
    np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-9)
    with pytest.raises(ValueError, match="X has 300 rows in 3 chunks and y or sample_weight 299"):
        SharedKernelClassifier(6).fit(cut, da.from_array(y[:-1], chunks=100))
