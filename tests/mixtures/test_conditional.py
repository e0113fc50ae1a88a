"""Conditional training: tempering by its definition, ascent, and limits that other implementations
know.
"""

import naive
import numpy as np
import pytest
from contracts.test_backends import on_backend
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import softmax
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from kernelpool import SharedKernelClassifier, Training
from kernelpool.data.door import training_data
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.conditional import BETAS, divide, log_proba, tempered, tempered_losses
from kernelpool.mixtures.fit import MixtureSettings, MixtureTraining
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import as_rows


def network(family, rng, n_kernels=4, d=3, n_classes=3):
    root = rng.normal(size=(n_kernels, d, d))
    covariance = naive.shaped(root @ root.swapaxes(1, 2) + np.eye(d), family)
    kernels = Kernels(rng.normal(size=(n_kernels, d)), covariance)
    mixing = rng.dirichlet(np.ones(n_kernels), n_classes).T
    network = SharedKernel(FAMILIES[family](np.zeros(d)), np.ones_like(mixing))
    return network, Params(kernels, mixing, rng.dirichlet(np.ones(n_classes)))


def joint_terms(net, params, x):
    """log P(C_k) pi_jk p(x|j), (n, M, K)."""
    log_density = net.kernel.log_density(net.kernel.natural_params(params.kernels, 2e-16), x).T
    with np.errstate(divide="ignore"):
        return log_density[:, :, None] + np.log(params.mixing * params.class_prior)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("beta", [0.2, 1.0, 1.4])
def test_tempering_raises_every_weighted_kernel_to_a_power(family, beta):
    rng = np.random.default_rng(0)
    net, params = network(family, rng)
    x = rng.normal(size=(20, 3))
    expected = beta * joint_terms(net, params, x)
    found = joint_terms(net, tempered(net, params, beta), x)
    constant = found - expected  # the same for every row, kernel and class
    assert_allclose(constant, constant[0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_hybrid_gradients_are_slopes(family):
    """By central differences of 0.7 log P(y|x) + 0.3 log p(x, y)."""
    rng = np.random.default_rng(2)
    net, params = network(family, rng)
    x = rng.normal(size=(30, 3))
    y = rng.integers(0, 3, 30)
    weight = rng.uniform(0.5, 2, 30)

    def value(vector):
        joint = np.logaddexp.reduce(joint_terms(net, net.from_vector(vector, params), x), axis=1)
        gain = joint[np.arange(30), y] - 0.7 * np.logaddexp.reduce(joint, axis=1)
        return weight @ gain / weight.sum()

    vector = net.to_vector(params)
    gradient, objective = net.gradient(as_rows(x, y, weight), params, 0.3)
    slope = approx_fprime(vector, value, 1e-7)
    assert objective == pytest.approx(value(vector), rel=1e-10)
    assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())


def test_one_tied_kernel_a_class_is_logistic_regression():
    """Trained to the end, without a held-out fold in the way: the unpenalized solution of
    scikit-learn, to 1e-4.
    """
    from kernelpool.lbfgs import maximize

    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 400)
    x = rng.normal(size=(400, 2)) + 0.8 * np.eye(3, 2)[y]
    net, params = network("tied", rng, n_kernels=3, d=2)
    own = Params(Kernels(params.kernels.mean, np.eye(2)), np.eye(3), np.full(3, 1 / 3))
    rows = as_rows(x, y)
    top = maximize(
        lambda v: net.gradient(rows, net.from_vector(v, own)),
        net.to_vector(own),
        max_iter=2000,
        tol=1e-15,
    )
    found = softmax(
        np.logaddexp.reduce(joint_terms(net, net.from_vector(top.point, own), x), axis=1),
        axis=1,
    )
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(x, y)
    assert_allclose(found, reference.predict_proba(x), atol=1e-4)


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(1200, random_state=0), make_clouds(2000, random_state=1)


def test_it_decides_better_and_describes_as_before(clouds):
    (X, y), (X_test, y_test) = clouds
    settings = {"n_kernels": 4, "covariance_type": "spherical", "sharing": 0.0, "random_state": 0}
    em = SharedKernelClassifier.prbf(**settings).fit(X, y)
    conditional = SharedKernelClassifier.prbf(**settings, training="conditional").fit(X, y)
    losses = [log_loss(y_test, model.predict_proba(X_test)) for model in (em, conditional)]
    assert losses[1] < 0.8 * losses[0]
    for method in ("log_density", "score_samples", "kernel_posterior"):
        assert_array_equal(getattr(em, method)(X_test), getattr(conditional, method)(X_test))
    assert_array_equal(em.sample(20, random_state=0)[0], conditional.sample(20, random_state=0)[0])
    assert len(conditional.discriminative_) == 4
    assert conditional.conditional_loss_ == pytest.approx(losses[1], rel=0.15)


def test_probabilities_are_the_average_of_the_networks(clouds):
    (X, y), (X_test, _) = clouds
    model = SharedKernelClassifier.prbf(
        6, covariance_type="diag", training=Training(n_folds=3), random_state=0
    ).fit(X, y)
    expected = np.mean([network.predict_proba(X_test) for network in model.discriminative_], axis=0)
    assert_allclose(model.predict_proba(X_test), expected, rtol=1e-9)
    assert_allclose(model.predict_log_proba(X_test), np.log(expected), rtol=1e-7, atol=1e-14)


# -- more rows than the host should hold -----------------------------------------------------------


@pytest.mark.parametrize("backend", ["dask", "torch"])
def test_many_rows_stay_where_they_live_and_train_one_network_on_backends(
    backend, clouds, monkeypatch
):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_ROWS", 500)
    (X, y), (X_test, y_test) = clouds
    # diagonal kernels describe these badly: there is something to gain
    slanted = np.array([[1.0, 1.0], [0.0, 0.3]])
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = SharedKernelClassifier(2, covariance_type="diag", random_state=0)
    there = on_backend(backend, X @ slanted, y)
    proba, expected, em = (
        model.set_params(training=training).fit(*rows).predict_proba(X_test @ slanted)
        for training, rows in (
            ("conditional", (*there, on_backend(backend, X, weight)[1])),
            ("conditional", (X @ slanted, y, weight)),
            ("em", (X @ slanted, y, weight)),
        )
    )
    assert_allclose(proba, expected, atol=1e-7)
    assert log_loss(y_test, proba) < log_loss(y_test, em)


@pytest.mark.parametrize(
    "settings",
    [
        {"sharing": "learned"},
        {"sharing": 1.0},
        {"n_kernels": None},
    ],
)
def test_many_rows_go_on_from_every_kind_of_network(settings, clouds, monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_ROWS", 500)
    (X, y), (X_test, _) = clouds
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = SharedKernelClassifier(**{"n_kernels": 4, "random_state": 0, **settings}).fit(X, y)
    (network_,) = model.discriminative_
    assert network_.means_.shape == model.means_.shape
    assert np.abs(network_.means_ - model.means_).max() > 1e-3
    assert np.isfinite(model.predict_log_proba(X_test)).all()


# -- few rows a class ------------------------------------------------------------------------------


def test_covariances_of_few_rows_do_not_mislead():
    """Two classes of one covariance in fifteen dimensions: no better than linear discriminant
    analysis, and far better than a covariance for each class.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2060, 15))
    y = np.arange(2060) % 2
    x[:, 0] += 3 * y
    losses = []
    for model in (
        LinearDiscriminantAnalysis(),
        SharedKernelClassifier([1, 1], random_state=0),
        QuadraticDiscriminantAnalysis(),
    ):
        proba = model.fit(x[:60], y[:60]).predict_proba(x[60:])
        losses.append(log_loss(y[60:], proba))
    assert losses[1] < losses[0] + 0.05
    assert losses[1] < 0.5 * losses[2]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_shrunk_covariances_come_to_their_mean(family):
    net, params = network(family, np.random.default_rng(0))
    kernel = net.kernel
    kernels = params.kernels
    share = np.array([0.4, 0.3, 0.2, 0.1])
    same, found = (kernel.shrunk(kernels, share, degree) for degree in (0.0, 1.0))
    assert_array_equal(same.covariance, kernels.covariance)
    each = naive.matrices(kernels.covariance, family, 4, 3)
    expected = np.broadcast_to(np.average(each, axis=0, weights=share), each.shape)
    assert_allclose(naive.matrices(found.covariance, family, 4, 3), expected)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_losses_of_all_temperatures_from_one_look(family):
    rng = np.random.default_rng(0)
    net, params = network(family, rng)
    y = rng.integers(0, 3, 100)
    weight = rng.uniform(size=100)
    rows = as_rows(rng.normal(size=(100, 3)), y, weight)
    each = [np.exp(log_proba(net, rows, tempered(net, params, beta))) for beta in BETAS]
    expected = [log_loss(y, proba, sample_weight=weight) for proba in each]
    found = tempered_losses(net, rows, params) / weight.sum()
    assert_allclose(found, expected, rtol=1e-9)


@pytest.fixture
def gradients(monkeypatch):
    """A counter of gradients, and a function that says what to raise at which of them."""
    calls = []
    raised = {}
    gradient = SharedKernel.gradient

    def counted(self, *given, **options):
        calls.append(given)
        for error, is_due in raised.items():
            if is_due(len(calls)):
                raise error
        return gradient(self, *given, **options)

    monkeypatch.setattr(SharedKernel, "gradient", counted)
    return calls, raised


@pytest.mark.parametrize(
    "error",
    [KernelpoolError("positive definite no longer"), FloatingPointError("beyond the range")],
)
def test_a_step_to_where_there_is_no_network_is_taken_back(error, clouds, gradients):
    (X, y), (X_test, _) = clouds
    calls, raised = gradients
    raised[error] = lambda n: n % 5 == 2
    model = SharedKernelClassifier(2, covariance_type="diag", random_state=0).fit(X, y)
    assert len(calls) > 10
    assert np.isfinite(model.predict_log_proba(X_test)).all()


@pytest.mark.parametrize("most_rows", [500, 10**9])
def test_interrupted_before_anything_decides_the_description_is_kept(
    most_rows, clouds, monkeypatch
):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_ROWS", most_rows)
    (X, y), (X_test, _) = clouds

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelpool.mixtures.conditional._trained", interrupted)
    model = SharedKernelClassifier(4, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="0 conditional networks were kept"):
        model.fit(X, y)
    em = SharedKernelClassifier(4, training="em", random_state=0).fit(X, y)
    assert_array_equal(model.predict_proba(X_test), em.predict_proba(X_test))


def test_an_interrupted_climb_of_many_rows_is_told(clouds, gradients, monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_ROWS", 500)
    (X, y), (X_test, _) = clouds
    gradients[1][KeyboardInterrupt()] = lambda n: n == 4
    model = SharedKernelClassifier(2, covariance_type="diag", random_state=0)
    with pytest.raises(KeyboardInterrupt, match="conditional network"):
        model.fit(X, y)
    assert len(model.discriminative_) == 1
    assert np.isfinite(model.predict_log_proba(X_test)).all()


# -- no more work than it takes --------------------------------------------------------------------


def test_many_classes_take_fewer_steps(clouds, gradients, monkeypatch):
    (X, y), (X_test, y_test) = clouds
    calls, _ = gradients
    model = SharedKernelClassifier(4, covariance_type="spherical", random_state=0)
    n_calls = []
    losses = []
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_AT_START", 1000)  # 100 rows
    for most in (10**9, 100_000, 0):  # 900 rows, 4 kernels and 2 classes take 7,200 a step
        monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_IN_CLIMB", most)
        calls.clear()
        losses.append(log_loss(y_test, model.fit(X, y).predict_proba(X_test)))
        n_calls.append(len(calls))
    assert n_calls[0] > n_calls[1] > n_calls[2] == 0
    em = model.set_params(training="em").fit(X, y)
    assert losses[0] <= losses[1] < losses[2]
    # without a climb there is the solution of EM, tempered
    assert losses[2] == pytest.approx(log_loss(y_test, em.predict_proba(X_test)), abs=0.01)


# -- rows held out where they live -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_row_either_trains_or_is_held_out(dtype, monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_HELD_OUT", 500)
    X, y = make_clouds(4000, random_state=0)
    X = (1000 + 3 * X).astype(dtype)
    y = np.where(np.arange(len(y)) % 5 == 0, 7, y)  # 7 marks rows without a class
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    data = training_data(X, y, weight, name="", n_jobs=1, unlabeled=7)
    settings = MixtureSettings(4, "spherical", seed=3)
    part, out = divide(data, settings)
    assert (out.code >= 0).all()
    # one in five has no class, and always trains
    assert len(out.code) == pytest.approx(0.8 * 500, rel=0.2)
    assert part.n_rows + len(out.code) == len(y)
    whole, training = (MixtureTraining(rows, settings) for rows in (data, part))
    first, second = (
        network.rows.total(lambda block: block.weight @ np.column_stack([block.x, block.y]))
        for network in (whole, training)
    )
    held_out = out.weight @ np.column_stack([whole.frame.inside(out.x), out.code])
    close = {"rtol": 1e-6, "atol": 0.1 if dtype == np.float32 else 1e-6}
    assert_allclose(first, second + held_out, **close)
    assert_allclose(part.class_weight + np.bincount(out.code, out.weight), data.class_weight)


def test_a_class_of_few_rows_is_not_held_out(monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_HELD_OUT", 3000)
    X, y = make_clouds(4000, random_state=0)
    y[:10] = 2
    _, out = divide(training_data(X, y, name=""), MixtureSettings(3))
    assert set(out.code) == {0, 1}
    assert len(out.code) == pytest.approx(800, rel=0.15)  # never more than a fifth
