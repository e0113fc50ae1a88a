import naive
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import load_ionosphere, missing_reason
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.networks.shared_kernel import Params, SharedKernel
from kernelpool.penalties import DISTANCES, Overlap, Subkernels
from kernelpool.rows import ArrayRows, Frame


def subkernels(x, y, mean, covariance, mixing, family, prior):
    """(11), (12), (15), row by row; covariances as full matrices of the family's shape."""
    n_kernels, d = mean.shape
    n_classes = mixing.shape[1]
    density = naive.kernel_densities(x, mean, covariance, family)
    posterior = mixing * prior / (mixing * prior).sum(axis=1, keepdims=True)
    means, covariances = np.zeros((n_kernels, n_classes, d)), np.zeros((n_kernels, n_classes, d, d))
    mass = np.zeros((n_kernels, n_classes))
    for k in range(n_classes):
        joint = mixing[:, k] * density[y == k]
        h = joint / joint.sum(axis=1, keepdims=True)
        mass[:, k] = h.sum(axis=0)
        for j in range(n_kernels):
            if mass[j, k] == 0:  # P(C_k|j) is zero too: whatever stands here has no weight
                means[j, k], covariances[j, k] = mean[j], naive.matrices(covariance, family, n_kernels, d)[j]
                continue
            means[j, k] = h[:, j] @ x[y == k] / mass[j, k]
            away = x[y == k] - means[j, k]
            full = (h[:, j, None] * away).T @ away / mass[j, k]
            covariances[j, k] = {"spherical": np.eye(d) * np.trace(full) / d, "diag": np.diag(np.diag(full))}.get(family, full)
        if family == "tied":
            covariances[:, k] = np.average(covariances[:, k], axis=0, weights=mass[:, k])
    return mass, posterior, means, covariances


def regularised_sweep(x, y, mean, covariance, mixing, family, prior, alpha):
    """(24)-(30) as printed, with delta of (30) at t + 1."""
    n_kernels, d = mean.shape
    mass, posterior, sub_mean, _ = subkernels(x, y, mean, covariance, mixing, family, prior)
    total = mass.sum(axis=1)
    pulled = np.einsum("jk,jkd->jd", mass + alpha / 4 * posterior, sub_mean)
    new_mean = pulled / (total + alpha / 4)[:, None]
    density = naive.kernel_densities(x, mean, covariance, family)
    joint = mixing[:, y].T * density
    h = joint / joint.sum(axis=1, keepdims=True)
    scatter = np.array([(h[:, j, None] * (x - new_mean[j])).T @ (x - new_mean[j]) for j in range(n_kernels)])
    full = scatter / total[:, None, None]
    new_covariance = {
        "spherical": np.trace(full, axis1=1, axis2=2) / d,
        "diag": np.diagonal(full, axis1=1, axis2=2),
        "full": full,
        "tied": scatter.sum(axis=0) / total.sum(),
    }[family]
    inverse = np.linalg.inv(naive.matrices(new_covariance, family, n_kernels, d))
    away = sub_mean - new_mean[:, None]
    delta = np.einsum("jka,jab,jkb->jk", away, inverse, away)
    share = mass + alpha / 8 * posterior * ((posterior * delta).sum(axis=1, keepdims=True) - delta)
    share = np.maximum(share, 0)
    return new_mean, new_covariance, share / share.sum(axis=0)


def penalised_objective(x, y, mean, covariance, mixing, family, prior, alpha):
    """(22) with (23)."""
    _, posterior, sub_mean, sub_covariance = subkernels(x, y, mean, covariance, mixing, family, prior)
    full = naive.matrices(covariance, family, *mean.shape)
    beta = np.zeros_like(posterior)
    for j, k in np.ndindex(posterior.shape):
        both = (full[j] + sub_covariance[j, k]) / 2
        away = mean[j] - sub_mean[j, k]
        beta[j, k] = away @ np.linalg.inv(both) @ away / 8 + 0.5 * np.log(
            np.linalg.det(both) / np.sqrt(np.linalg.det(full[j]) * np.linalg.det(sub_covariance[j, k]))
        )
    likelihood = naive.objective(x, y, mean, covariance, mixing, np.zeros(len(mean), int), 1, family)
    return likelihood - alpha * (posterior * beta).sum()


def faithful(start, family, **more):
    mean, covariance, mixing, owner = start
    return SharedKernelClassifier(
        covariance_type=family, owners=owner, means_init=mean, covariances_init=covariance, mixing_init=mixing,
        tol=0, covariance_floor=0, acceleration=None, starving="keep", **more,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize("alpha", [3.0, 12.0])
def test_sweeps_equal_the_printed_equations(blobs, given_start, family, alpha):
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    prior = np.bincount(y) / len(y)
    values = []
    for _ in range(4):
        values.append(penalised_objective(x, y, mean, covariance, mixing, family, prior, alpha) / len(x))
        mean, covariance, mixing = regularised_sweep(x, y, mean, covariance, mixing, family, prior, alpha)
    values.append(penalised_objective(x, y, mean, covariance, mixing, family, prior, alpha) / len(x))
    model = faithful(given_start, family, max_iter=4, overlap_penalty=alpha, overlap_units="raw").fit(x, y)
    np.testing.assert_allclose(model.history_, values, rtol=1e-9)
    assert model.objective_ == max(model.history_)
    if model.objective_ == model.history_[-1]:
        np.testing.assert_allclose(model.means_, mean, rtol=1e-8)
        np.testing.assert_allclose(model.covariances_, covariance, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.mixing_, mixing, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_strength_zero_is_maximum_likelihood_bit_for_bit(blobs, given_start, family, distance):
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    rows = ArrayRows(x, y, frame=Frame(np.zeros(3), np.ones(3)))
    params = Params(Kernels(mean, covariance), mixing, np.bincount(y) / len(y))
    plain = SharedKernel(FAMILIES[family](np.full(3, 1e-6)), np.ones((6, 3)))
    nothing = SharedKernel(FAMILIES[family](np.full(3, 1e-6)), np.ones((6, 3)), Overlap(0.0, DISTANCES[distance]()))
    for _ in range(3):
        (a, value_a), (b, value_b) = plain.sweep(rows, params), nothing.sweep(rows, params)
        assert value_a == value_b
        np.testing.assert_array_equal(a.kernels.mean, b.kernels.mean)
        np.testing.assert_array_equal(a.kernels.covariance, b.kernels.covariance)
        np.testing.assert_array_equal(a.mixing, b.mixing)
        params = a


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_units_of_the_paper(blobs, given_start, family):
    x, y = blobs
    in_paper = faithful(given_start, family, max_iter=30, overlap_penalty=5.0).set_params(tol=1e-6).fit(x, y)
    raw = faithful(given_start, family, max_iter=30, overlap_penalty=5.0 * len(x) / 18, overlap_units="raw")
    np.testing.assert_allclose(in_paper.means_, raw.set_params(tol=1e-6).fit(x, y).means_, rtol=1e-9)


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_distances_by_quadrature(distance):
    """Two Gaussians on a line, with the integrals that define the distances."""
    kernel = FAMILIES["diag"](np.zeros(1))
    kernels = Kernels(np.array([[0.0]]), np.array([[1.0]]))
    sub = Subkernels(np.ones((1, 1)), np.array([[[1.3]]]), (np.array([[0.6]]),))
    p, q = norm(0, 1).pdf, norm(1.3, np.sqrt(0.6)).pdf
    affinity = quad(lambda t: np.sqrt(p(t) * q(t)), -15, 15)[0]
    expected = {
        "bhattacharyya": -np.log(affinity),
        "full_bhattacharyya": -np.log(affinity),
        "hellinger": 1 - affinity,
        "kullback_leibler": quad(lambda t: q(t) * np.log(q(t) / p(t)), -8, 10)[0],
    }[distance]
    assert DISTANCES[distance]().exact(kernel, kernels, sub)[0, 0] == pytest.approx(expected, rel=1e-6)
    # with equal shapes, what the updates use is the same distance
    alike = Subkernels(np.ones((1, 1)), np.array([[[1.3]]]), (np.array([[1.0]]),))
    measure = DISTANCES[distance]()
    assert measure.value(kernel, kernels, alike)[0, 0] == pytest.approx(measure.exact(kernel, kernels, alike)[0, 0])
    step = 1e-6
    delta = np.array([[1.3**2]])
    nearer, farther = (
        measure.value(kernel, kernels, Subkernels(np.ones((1, 1)), np.sqrt(delta + s)[..., None], (np.ones((1, 1)),)))
        for s in (-step, step)
    )
    np.testing.assert_allclose(measure.slope(delta), (farther - nearer) / (2 * step), rtol=1e-5)


@pytest.mark.skipif(missing_reason("ionosphere") is not None, reason=str(missing_reason("ionosphere")))
@pytest.mark.filterwarnings("ignore:EM stopped", "ignore:.*lost all their rows")
@pytest.mark.parametrize("strength", [20, 200])
@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_columns_stay_distributions_whatever_the_strength(strength, distance):
    """Ionosphere with four kernels: (29) leaves a class without a kernel there."""
    x, y = load_ionosphere(return_X_y=True)
    model = SharedKernelClassifier(
        4, overlap_penalty=strength, overlap_distance=distance, init="random", random_state=0, acceleration=None
    ).fit(x, y)
    np.testing.assert_allclose(model.mixing_.sum(axis=0), 1)
    assert (model.mixing_ >= 0).all()
    assert np.isfinite(model.history_).all()


def test_a_class_left_without_kernels_keeps_its_shares():
    mass = np.array([[5.0, 1.0], [5.0, 1.0]])
    sub = Subkernels(np.full((2, 2), 0.5), np.array([[[0.0], [9.0]]] * 2), (np.ones(2), np.ones(2)))
    kernel = FAMILIES["spherical"](np.zeros(1))
    mixing = Overlap(100.0).mixing(kernel, mass, mass / 2, Kernels(np.zeros((2, 1)), np.ones(2)), sub)
    np.testing.assert_allclose(mixing, [[0.5, 0.5], [0.5, 0.5]])


def test_weights_and_unlabelled_rows(blobs, family):
    """A row twice is a row of weight two under the penalty too, and rows without a label take part."""
    x, y = blobs
    twice = np.r_[np.arange(len(x)), np.arange(0, len(x), 3)]
    labels = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    settings = {
        "covariance_type": family,
        "overlap_penalty": 5.0,
        "unlabeled": -1,
        "random_state": 0,
        "max_iter": 20,
        "tol": 1e-2,
    }
    repeated = SharedKernelClassifier(6, **settings).fit(x[twice], labels[twice])
    weighted = SharedKernelClassifier(6, **settings).fit(x, labels, sample_weight=np.bincount(twice))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6, atol=1e-7)


def test_cannot_be_combined_with_a_kernel_prior(blobs):
    x, y = blobs
    with pytest.raises(ValueError, match="overlap_penalty and kernel_prior cannot be combined"):
        SharedKernelClassifier(6, overlap_penalty=1, kernel_prior="conjugate").fit(x, y)
