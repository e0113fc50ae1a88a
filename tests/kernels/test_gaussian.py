import naive
import numpy as np
import pytest
from kernels.test_wide import assert_same
from numpy.testing import assert_allclose
from scipy.stats import norm

from kernelpool import SharedKernelClassifier
from kernelpool.arrays import match_array, outer_sums
from kernelpool.errors import CollapsedKernelError
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import ArrayRows, Frame

EPS = 2.2e-16


@pytest.fixture
def kernel(family):
    return FAMILIES[family](np.zeros(3))


def test_log_density_is_scipys(kernel, family, given_start, blobs):
    x, _ = blobs
    mean, covariance, *_ = given_start
    kernels = Kernels(mean, covariance)
    expected = np.log(naive.kernel_densities(x, mean, covariance, family)).T
    assert_allclose(
        kernel.log_density(kernel.natural_params(kernels, EPS), x), expected, rtol=1e-10
    )
    exact = FAMILIES[family](np.zeros(3))
    exact.guard = -1.0
    natural_params = exact.natural_params(kernels, EPS)
    assert natural_params.guarded == tuple(range(6))
    assert_allclose(exact.log_density(natural_params, x), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_guarded_and_plain_moments_agree(family, blobs, given_start, dtype):
    """The fast sums and the exact ones, where both are good; and the choice between them."""
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    rows = ArrayRows(x.astype(dtype), y, frame=Frame(np.zeros(3, dtype), np.ones(3, dtype)))
    params = Params(Kernels(mean, covariance), mixing, np.full(3, 1 / 3))
    always, never = (
        SharedKernel(FAMILIES[family](np.full(3, 1e-6)), np.ones((6, 3))) for _ in range(2)
    )
    always.kernel.guard, never.kernel.guard = 0.0, np.inf
    assert always.e_step_params(params, rows.eps).natural_params.guarded == tuple(range(6))
    assert never.e_step_params(params, rows.eps).natural_params.guarded == ()
    rtol = 1e-9 if dtype == np.float64 else 1e-3
    assert_same(always.sweep(rows, params), never.sweep(rows, params), rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variances_keep_the_promised_accuracy_at_every_distance(family, dtype):
    """Cancellation costs less than 1e-6 of a variance, 1e-4 of float32 rows, wherever the kernel
    lies: by centered rows.
    """
    rng = np.random.default_rng(0)
    limit, farthest = (1e-6, 1e7) if dtype == np.float64 else (1e-4, 300.0)
    for distance in np.geomspace(1, farthest, 9):
        x = (rng.normal(size=(400, 2)) + distance).astype(dtype)
        about = x.astype(np.longdouble) - np.longdouble(distance)
        about -= about.mean(axis=0)
        width = np.asarray(about.T @ about / 400, float)
        expected = naive.shaped(width[None], family)
        start = naive.shaped(np.eye(2)[None], family)
        params = Params(Kernels(np.full((1, 2), distance), start), np.ones((1, 1)), np.ones(1))
        rows = ArrayRows(x, np.zeros(400, int), frame=Frame(np.zeros(2, dtype), np.ones(2, dtype)))
        better, _ = SharedKernel(FAMILIES[family](np.zeros(2)), np.ones((1, 1))).sweep(rows, params)
        assert_allclose(
            better.kernels.covariance, expected, rtol=0, atol=2 * limit
        )  # variances are about one


@pytest.mark.parametrize("family", ["full", "tied"])  # in the others nothing cancels
@pytest.mark.parametrize("length", [1e2, 1e4, 1e6])
def test_float32_rows_of_a_long_narrow_kernel(family, length):
    """A kernel up to a million times longer than wide, at the origin: what float32 rows say of it,
    by float64 arithmetic.
    """
    d = 5
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    deviation = np.geomspace(length, 1, d) / length
    covariance = (axes * deviation**2) @ axes.T
    x = ((rng.normal(size=(4000, d)) * deviation) @ axes.T).astype(np.float32)
    white = x.astype(float) @ axes / deviation
    expected = norm.logpdf(white).sum(axis=1) - np.log(deviation).sum()
    kernel = FAMILIES[family](np.zeros(d))
    kernels = Kernels(np.zeros((1, d)), covariance if family == "tied" else covariance[None])
    natural_params = match_array(kernel.natural_params(kernels, 1.2e-7), like=x)
    found = kernel.log_density(natural_params, x)[0]
    assert found.dtype == np.float32
    # 1e-8 of the length, in the rows themselves, is a hundredth of the width at a million
    assert_allclose(found, expected, atol=2e-2 if length < 1e6 else 0.5)


@pytest.mark.parametrize(("mean", "variance"), [(1e150, 1.0), (1e30, 1e-30), (0.0, 1e-60)])
def test_what_float32_cannot_hold_gives_no_nan(family, mean, variance):
    """A model made in float64 whose kernels lie farther, or are narrower, than float32 can say;
    rows of float32.
    """
    d = 2
    means = np.array([[0.0, 0.0], [mean, -mean]])
    covariances = naive.shaped(variance * np.array([np.eye(d), 1e-3 * np.eye(d)]), family)
    model = SharedKernelClassifier.from_parameters(
        means, covariances, np.eye(2), [0.5, 0.5], [0, 1], covariance_type=family
    )
    x = np.array([[0, 0], [1, -1], [1e30, -1e30], [-1e38, 1e38]], np.float32)
    with np.errstate(all="ignore"):
        assert np.isfinite(model.predict_proba(x)).all()
        assert not np.isnan(model.score_samples(x)).any()


def test_the_floor_lifts_what_lies_below_it_and_touches_nothing_else(family):
    turned = np.array([[1.0, 0.9], [0.9, 1.0]])  # eigenvalues 1.9 and 0.1
    given, raised = {
        "spherical": (np.array([2.0, 0.05]), 0.1),
        "diag": (np.array([[2.0, 1.0], [0.05, 4.0]]), [0.1, 4.0]),
        # 1.87 stays, 0.07 becomes 0.1
        "full": (turned + [[[0.01]], [[-0.03]]] * np.eye(2), turned - 0.015),
        "tied": (turned - 0.03 * np.eye(2), turned - 0.015),
    }[family]
    found = FAMILIES[family](np.full(2, 0.1)).apply_floor(given)
    assert_allclose(found if family == "tied" else found[1], raised, rtol=1e-14)
    assert family == "tied" or (found[0] == given[0]).all()


def test_collapse_names_kernel_and_feature(family):
    kernel = FAMILIES[family](np.zeros(2))
    flat = naive.shaped(np.array([np.eye(2), np.diag([1.0, 0.0])]), family, [0.0, 1.0])
    flat = flat * np.array([1.0, 0.0]) if family == "spherical" else flat
    with pytest.raises(CollapsedKernelError, match="has no width left along feature") as error:
        kernel.apply_floor(flat)
    assert error.value.kernel == (0 if family == "tied" else 1)
    assert error.value.feature == (0 if family == "spherical" else 1)
    import pickle

    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_moments_of_full_kernels_in_many_dimensions(dtype, sparse):
    """Where nearly all responsibilities vanish, sums are taken over the others alone: the same as
    over all, to rounding.
    """
    rng = np.random.default_rng(5)
    d = 14
    x = (3 + rng.normal(size=(400, d))).astype(dtype)
    weight = rng.uniform(-1, 1, size=(12, 400))
    if sparse:  # one kernel for each row, and none for the last kernel
        weight[np.arange(12)[:, None] != rng.integers(11, size=400)] = 1e-36
    weight = weight.astype(dtype)
    assert (outer_sums(x, weight) is not None) == sparse
    kernel = FAMILIES["full"](np.full(d, 1e-6))
    phi = np.concatenate([np.ones((1, 400), dtype), kernel.features(x)])
    sums = kernel.sums(phi, x, weight)
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    close = {"rtol": rtol, "atol": 100 * rtol}
    assert_allclose(sums[0], weight.sum(axis=1), **close)
    assert_allclose(sums[1 : d + 1].T, weight @ x, **close)
    second = np.einsum("jn,na,nb->jab", weight, x, x, dtype=float)
    assert_allclose(kernel.unflatten(sums[d + 1 :].T), second, **close)
