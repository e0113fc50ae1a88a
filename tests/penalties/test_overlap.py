import naive
import numpy as np
import pytest
from mixtures.test_network import assert_network
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm
from zoo import faithful

from kernelpool import SharedKernelClassifier, Training
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.penalties import Overlap, Subkernels
from kernelpool.penalties.overlap import DISTANCES, STEPS
from kernelpool.rows import ArrayRows, Frame

pytestmark = pytest.mark.filterwarnings("ignore:EM stopped")


def subkernels(x, y, mean, covariance, mixing, family, prior, weight, table):
    """(11), (12), (15), row by row; covariances as full matrices of the family's shape."""
    h = naive.responsibilities(x, y, mean, covariance, mixing, table, family, weight, prior)
    posterior = mixing * prior / (mixing * prior).sum(axis=1, keepdims=True)
    mass = h.sum(axis=0)
    d = mean.shape[1]
    means = np.repeat(mean[:, None], mixing.shape[1], axis=1)
    full = naive.matrices(covariance, family, *mean.shape)
    covariances = np.repeat(full[:, None], mixing.shape[1], axis=1)
    for j, k in np.argwhere(mass > 0):  # elsewhere P(C_k|j) is zero too
        means[j, k] = h[:, j, k] @ x / mass[j, k]
        away = x - means[j, k]
        full = (h[:, j, k, None] * away).T @ away / mass[j, k]
        covariances[j, k] = {
            "spherical": np.eye(d) * np.trace(full) / d,
            "diag": np.diag(np.diag(full)),
        }.get(family, full)
    if family == "tied":
        for k in range(mass.shape[1]):
            covariances[:, k] = np.average(covariances[:, k], axis=0, weights=mass[:, k])
    return h, posterior, means, covariances


def regularized_sweep(
    x, y, mean, covariance, mixing, family, prior, alpha, weight, table, step="next", before=None
):
    """(24)-(30) as printed, with delta of (30) at t + 1; or at t, of the subkernels of this sweep
    or of those `before`.
    """
    n_kernels, d = mean.shape
    h, posterior, sub_mean, _ = subkernels(
        x, y, mean, covariance, mixing, family, prior, weight, table
    )
    mass = h.sum(axis=0)
    by_kernel = h.sum(axis=2)
    total = mass.sum(axis=1)
    pulled = np.einsum("jk,jkd->jd", mass + alpha / 4 * posterior, sub_mean)
    new_mean = pulled / (total + alpha / 4)[:, None]
    scatter = np.array(
        [
            (by_kernel[:, j, None] * (x - new_mean[j])).T @ (x - new_mean[j])
            for j in range(n_kernels)
        ]
    )
    new_covariance = naive.shaped(scatter / total[:, None, None], family, total)
    at, metric, seen = {
        "next": (new_mean, new_covariance, sub_mean),
        "current": (mean, covariance, sub_mean),
        "printed": (mean, covariance, sub_mean if before is None else before),
    }[step]
    inverse = np.linalg.inv(naive.matrices(metric, family, n_kernels, d))
    away = seen - at[:, None]
    delta = np.einsum("jka,jab,jkb->jk", away, inverse, away)
    share = mass + alpha / 8 * posterior * ((posterior * delta).sum(axis=1, keepdims=True) - delta)
    share = np.maximum(share, 0)
    return new_mean, new_covariance, share / share.sum(axis=0), sub_mean


def distance_of(name, kernel, sub):
    """Of two Gaussians, each (mean, covariance matrix), in closed form."""
    (m0, s0), (m1, s1) = kernel, sub
    both = (s0 + s1) / 2
    away = m0 - m1
    beta = away @ np.linalg.inv(both) @ away / 8 + 0.5 * np.log(
        np.linalg.det(both) / np.sqrt(np.linalg.det(s0) * np.linalg.det(s1))
    )
    inverse = np.linalg.inv(s0)
    divergence = 0.5 * (
        np.trace(inverse @ s1)
        - len(m0)
        + away @ inverse @ away
        + np.log(np.linalg.det(s0) / np.linalg.det(s1))
    )
    return {"hellinger": 1 - np.exp(-beta), "kullback_leibler": divergence}.get(name, beta)


def overlap_by_hand(name, mean, covariance, family, posterior, sub_mean, sub_covariance):
    """(15), (16): of each kernel, the distances of its subkernels weighted by P(C_k|j)."""
    full = naive.matrices(covariance, family, *mean.shape)
    beta = np.zeros_like(posterior)
    for j, k in np.ndindex(posterior.shape):
        sub = sub_mean[j, k], sub_covariance[j, k]
        beta[j, k] = distance_of(name, (mean[j], full[j]), sub)
    return (posterior * beta).sum(axis=1)


def penalized_objective(
    x, y, mean, covariance, mixing, family, prior, alpha, weight, table, distance="bhattacharyya"
):
    """(22) with (23)."""
    _, *sub = subkernels(x, y, mean, covariance, mixing, family, prior, weight, table)
    overlap = overlap_by_hand(distance, mean, covariance, family, *sub)
    likelihood = naive.objective(x, y, mean, covariance, mixing, None, table, family, weight, prior)
    return likelihood - alpha * overlap.sum()


@pytest.mark.parametrize("alpha", [3.0, 12.0])
def test_sweeps_equal_the_printed_equations(blobs, given_start, family, alpha):
    """With weights, unlabeled rows and a table of sharing."""
    x, y = blobs
    mean, covariance, mixing, owner = given_start
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3, size=len(y))
    y = np.where(rng.random(len(y)) < 0.3, -1, y)
    known = y >= 0
    prior = np.bincount(y[known], weight[known]) / weight[known].sum()
    table = naive.sharing_weights(owner, 0.6, 3)
    more = (family, prior, alpha, weight, table)
    path = [(mean, covariance, mixing)]
    for _ in range(4):
        path.append(regularized_sweep(x, y, *path[-1], *more)[:3])
    values = [penalized_objective(x, y, *params, *more) / weight.sum() for params in path]
    overlap = Overlap(alpha, units="raw")
    model = faithful(given_start, family, table, 4, overlap=overlap, unlabeled=-1).fit(x, y, weight)
    assert_allclose(model.history_, values, rtol=1e-9)
    assert model.objective_ == max(model.history_)
    assert_network(model, *path[int(np.argmax(values))])  # the best, which need not be the last


@pytest.mark.parametrize("step", STEPS[1:])
def test_readings_of_the_step_of_delta(blobs, given_start, family, step):
    """Five sweeps of each other reading of (29), by hand."""
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    prior = np.bincount(y) / len(y)
    weight = np.ones(len(y))
    table = np.ones((6, 3))
    rows = ArrayRows(x, y, frame=Frame(np.zeros(3), np.ones(3)))
    params = Params(Kernels(mean, covariance), mixing, prior)
    network = SharedKernel(FAMILIES[family](np.zeros(3)), table, Overlap(12.0, step=step))
    before = None
    for _ in range(5):
        params, _ = network.sweep(rows, params)
        mean, covariance, mixing, before = regularized_sweep(
            x, y, mean, covariance, mixing, family, prior, 12.0, weight, table, step, before
        )
        assert_allclose(params.kernels.mean, mean, rtol=1e-8)
        assert_allclose(params.mixing, mixing, rtol=1e-8, atol=1e-12)


def test_the_means_under_the_full_distance(blobs, given_start, family):
    """One sweep: the means make the derivative of the complete log-likelihood less the penalty
    (23), with Sigma_jk, zero.
    """
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    prior = np.bincount(y) / len(y)
    table = np.ones((6, 3))
    h, posterior, sub_mean, sub_covariance = subkernels(
        x, y, mean, covariance, mixing, family, prior, np.ones(len(y)), table
    )
    rows = ArrayRows(x, y, frame=Frame(np.zeros(3), np.ones(3)))
    params = Params(Kernels(mean, covariance), mixing, prior)
    kernel = FAMILIES[family](np.zeros(3))
    plain, full, other = (
        SharedKernel(kernel, table, penalty).sweep(rows, params)[0].kernels
        for penalty in (None, Overlap(40.0, "full_bhattacharyya"), Overlap(40.0))
    )
    shape = naive.matrices(plain.covariance, family, 6, 3)  # in the metric of (7)
    mass = h.sum(axis=(0, 2))
    for j in range(6):
        drawn = mass[j] * np.linalg.inv(shape[j]) @ (plain.mean[j] - full.mean[j])
        for k in range(3):
            pull = np.linalg.solve(shape[j] + sub_covariance[j, k], sub_mean[j, k] - full.mean[j])
            drawn += 40.0 / 2 * posterior[j, k] * pull
        assert_allclose(drawn, 0, atol=1e-7)
    assert np.abs(full.mean - other.mean).max() > 1e-4  # Sigma_jk is its own


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_the_objective_is_that_of_the_parameters_returned(blobs, family, distance):
    """A strong penalty lets the objective fall; what is returned is the best on the way, with its
    own objective.
    """
    x, y = blobs
    model = SharedKernelClassifier.prbf(
        4, covariance_type=family, overlap=Overlap(300, distance, units="raw"), init="random",
        training=Training("em", acceleration=None), empty_kernels="keep", tol=0, max_iter=20, random_state=0,
    ).fit(x, y)  # fmt: skip
    expected = penalized_objective(
        x, y, model.means_, model.covariances_, model.mixing_, family, model.class_prior_, 300, np.ones(len(y)),
        np.ones((4, 3)), distance,
    )  # fmt: skip
    assert model.objective_ == pytest.approx(expected / len(x), rel=1e-9)
    assert model.objective_ == max(model.history_)
    if family == "spherical":  # the case was really met
        assert np.diff(model.history_).min() < -1e-6


def test_units_of_the_paper(blobs, given_start, family):
    """N / (K M) with N the weight of all rows, those without a label included by what they
    count.
    """
    x, y = blobs
    labels = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    in_paper, raw = (
        faithful(given_start, family, 1, 9, overlap=overlap, unlabeled=-1).fit(x, labels, weight)
        for overlap in (5.0, Overlap(5.0 * weight.sum() / 18, units="raw"))
    )
    assert_allclose(in_paper.means_, raw.means_, rtol=1e-9)


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_distances_by_quadrature(distance):
    """Two Gaussians on a line, with the integrals that define the distances."""
    kernel = FAMILIES["diag"](np.zeros(1))
    kernels = Kernels(np.array([[0.0]]), np.array([[1.0]]))
    measure = DISTANCES[distance]()

    def to(mean, variance, of=measure.exact):
        sub = Kernels(np.array([[mean]]), np.array([[variance]]))
        return of(kernel, kernels, Subkernels(np.ones((1, 1)), (sub,)))[0, 0]

    p = norm(0, 1).pdf
    q = norm(1.3, np.sqrt(0.6)).pdf
    affinity = quad(lambda t: np.sqrt(p(t) * q(t)), -15, 15)[0]
    expected = {
        "hellinger": 1 - affinity,
        "kullback_leibler": quad(lambda t: q(t) * np.log(q(t) / p(t)), -8, 10)[0],
    }.get(distance, -np.log(affinity))
    assert to(1.3, 0.6) == pytest.approx(expected, rel=1e-6)
    # with equal shapes, what the updates use is the same distance
    assert to(1.3, 1.0, measure.value) == pytest.approx(to(1.3, 1.0))
    step = 1e-6
    nearer, farther = (to(np.sqrt(1.3**2 + s), 1.0, measure.value) for s in (-step, step))
    slope = measure.slope(np.array([[1.3**2]]))
    assert_allclose(slope, (farther - nearer) / (2 * step), rtol=1e-5)


def test_a_class_left_without_kernels_keeps_its_shares():
    """Its shares of this sweep's mass, not those it had before."""
    mass = np.array([[5.0, 1.0], [5.0, 3.0]])
    before = np.array([[0.9, 0.1], [0.1, 0.9]])
    sub = Subkernels(
        np.full((2, 2), 0.5), tuple(Kernels(np.full((2, 1), m), np.ones(2)) for m in (0.0, 9.0))
    )
    kernel = FAMILIES["spherical"](np.zeros(1))
    mixing = Overlap(100.0).mixing(kernel, mass, before, Kernels(np.zeros((2, 1)), np.ones(2)), sub)
    assert_allclose(mixing, [[0.5, 0.25], [0.5, 0.75]])


def test_the_overlap_of_each_kernel(blobs, family):
    """(15), (16) by hand; with strength one their sum is what the penalty takes from the
    objective.
    """
    x, y = blobs
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    settings = {"covariance_type": family, "random_state": 0, "tol": 1e-3}
    model = SharedKernelClassifier.prbf(4, **settings).fit(x, y)
    kernels = model.means_, model.covariances_
    _, posterior, sub_mean, sub_covariance = subkernels(
        x, y, *kernels, model.mixing_, family, model.class_prior_, weight, np.ones((4, 3))
    )
    assert_allclose(model.class_posterior_, posterior)
    expected = overlap_by_hand("", *kernels, family, posterior, sub_mean, sub_covariance)
    assert_allclose(model.kernel_overlap(x, y, weight), expected, rtol=1e-6, atol=1e-9)
    means, covariances = model.subkernels(x, y, weight)
    for k, used in enumerate(posterior.T > 1e-6):  # elsewhere the kernel itself stands
        assert_allclose(means[used, k], sub_mean[used, k], rtol=1e-6, atol=1e-9)
        of_class = covariances[k] if family == "tied" else covariances[:, k]
        of_class = naive.matrices(of_class, family, *model.means_.shape)
        assert_allclose(of_class[used], sub_covariance[used, k], rtol=1e-5, atol=1e-9)
