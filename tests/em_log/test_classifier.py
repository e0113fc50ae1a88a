"""EM-Log networks: the paper, textbook formulas and scikit-learn as references."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from em_log.test_network import densities
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import EMLogClassifier, EMLogRegressor, SharedKernelClassifier
from kernelpool.datasets import make_ripley
from kernelpool.errors import KernelpoolError, UnfinishedWarning
from papers.rbf_starts import trained_mixture


@parametrize_with_checks([EMLogRegressor(patience=2, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    return make_ripley(300, random_state=0)


@pytest.fixture(scope="module")
def mixture(rows):
    return GaussianMixture(4, random_state=0).fit(rows[0])


# -- the paper -------------------------------------------------------------------------------------


def test_netlab_against_the_textbook():
    """Least squares on Gaussians as wide as the largest distance of two centers, by NumPy's
    pinv.
    """
    X, y = make_blobs(300, centers=3, cluster_std=2.5, random_state=0)
    hidden = trained_mixture(X, 5, "em", 0, widths="farthest")
    settings = {"training": "two_stage", "readout": "least_squares", "ridge": 0.0}
    model = EMLogClassifier(init=hidden, activation="gaussian", **settings).fit(X, y)
    width = pdist(hidden.means_, "sqeuclidean").max()
    kernels = np.exp(-cdist(X, hidden.means_, "sqeuclidean") / (2 * width))
    columns = np.column_stack([kernels, np.ones(len(X))])
    expected = (columns @ np.linalg.pinv(columns) @ np.eye(3)[y]).argmax(axis=1)
    assert np.array_equal(model.predict(X), expected)


def naive_em_log(x, y, mean, covariance, n_sweeps, *, link, bound):
    """Steps 1a-1f as printed, with the residual y - p in (5) and alpha = 1/k at the start."""
    k = len(mean)
    n = len(x)
    alpha = np.full(k, 1 / k)
    beta = np.zeros(k + 1)
    for _ in range(n_sweeps):
        joint = alpha * densities(x, mean, covariance)
        z = joint / joint.sum(axis=1, keepdims=True)  # 1a
        alpha = z.mean(axis=0)  # 1b
        mean = np.array([z[:, s] @ x / z[:, s].sum() for s in range(k)])  # 1c
        covariance = np.array(
            [(x - mean[s]).T @ ((x - mean[s]) * z[:, s : s + 1]) / z[:, s].sum() for s in range(k)]
        )  # 1d
        design = np.column_stack([densities(x, mean, covariance), np.ones(n)])
        p = expit(design @ beta)
        w = np.full(n, 0.25) if bound else p * (1 - p)
        beta = beta + np.linalg.solve(design.T @ np.diag(w) @ design, design.T @ (y - p))  # 1e
        mixture = alpha
        if link:
            alpha = np.abs(beta[:k]) / np.abs(beta[:k]).sum()  # 1f
    return mean, covariance, mixture, beta


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("readout", ["newton", "bound"])
def test_the_papers_rule_from_a_given_start(rows, link, readout):
    X, y = rows
    X = X * [2.0, 3.0] + [5.0, -7.0]
    mean = np.array([[4.0, -6.0], [6.0, -5.0], [5.0, -4.0]])
    given = SimpleNamespace(
        means_=mean,
        covariances_=np.repeat(np.eye(2)[None], 3, 0),
        weights_=np.full(3, 1 / 3),
        covariance_type="full",
    )
    network = EMLogClassifier(
        init=given,
        training="em_log_link" if link else "em_log",
        activation="density",
        readout=readout,
        patience=None,
        max_iter=3,
        kernel_prior=None,
    ).fit(X, y)
    means, covariances, mixing, beta = naive_em_log(
        X, y, mean, given.covariances_, 3, link=link, bound=readout == "bound"
    )
    assert_allclose(network.means_, means, rtol=1e-5)
    assert_allclose(network.covariances_, covariances, rtol=1e-5, atol=1e-5)
    assert_allclose(network.mixing_, mixing, rtol=1e-5)
    found = network.readout_[:, 0].copy()
    found[:-1] /= np.exp(network.activation_log_scale_)
    assert_allclose(found, beta, rtol=1e-4)
    assert network.n_iter_ == 3


# -- combinations ----------------------------------------------------------------------------------

EVERY = {
    "init": ("random", "kmeans", "em"),
    "training": ("two_stage", "em_log", "em_log_link"),
    "activation": ("density", "gaussian", "normalized"),
    "covariance_type": ("spherical", "diag", "full", "tied"),
    "readout": ("least_squares", "logistic", "newton", "bound"),
}


@pytest.mark.filterwarnings("ignore:Training stopped after max_iter")
def test_thirty_dimensions():
    """In their own units: variances from 1e-5 to 1e5."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y = X[:120], X[120:160], y[:120]
    X_test = np.vstack([X_test, X_test[:1] * 1e6])
    rng = np.random.default_rng(0)
    for _ in range(12):
        settings = {name: str(rng.choice(values)) for name, values in EVERY.items()}
        readout = settings.pop("readout")
        settings |= {"n_kernels": 4, "max_iter": 3, "random_state": 0}
        p = EMLogClassifier(readout=readout, **settings).fit(X, y).predict_proba(X_test)
        assert_allclose(p.sum(axis=1), 1, rtol=1e-12, err_msg=str(settings))
        mean, std = (
            EMLogRegressor(**settings).fit(X, X[:, :2]).predict(X_test[:-1], return_std=True)
        )
        assert np.isfinite(mean).all(), settings
        assert (std > 0).all(), settings


# -- invariances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", ["logistic", "least_squares"])
def test_the_order_of_the_classes_does_not_matter(rows, readout):
    """Through the link too: none of three classes is special."""
    X, y = rows
    y = y + (X[:, 0] > 0.2)
    turned = np.array([2, 0, 1])[y]
    settings = {"readout": readout, "activation": "gaussian", "max_iter": 4, "patience": None}
    here, there = (
        EMLogClassifier(5, random_state=0, **settings).fit(X, labels) for labels in (y, turned)
    )
    assert_allclose(here.means_, there.means_, atol=1e-4)
    assert_allclose(here.predict_proba(X), there.predict_proba(X)[:, [2, 0, 1]], atol=1e-3)


# -- options ---------------------------------------------------------------------------------------


def test_outputs_follow_from_the_attributes(rows, mixture):
    X, y = rows
    network = EMLogClassifier(init=mixture, training="two_stage", temperature=1.0).fit(X, y)
    assert_allclose(network.activations(X), mixture.predict_proba(X), atol=1e-8)
    logit = mixture.predict_proba(X) @ network.readout_[:-1, 0] + network.readout_[-1, 0]
    assert_allclose(network.decision_function(X), logit, rtol=1e-6)
    assert_allclose(network.predict_proba(X)[:, 1], 1 / (1 + np.exp(-logit)), rtol=1e-6)
    assert_array_equal(network.predict(X), (logit > 0).astype(int))
    assert_allclose(network.means_, mixture.means_, rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "ridge"), [(2, 0.0), (3, "loo")])
def test_least_squares_outputs_become_probabilities(rows, ridge, n_classes):
    X, y = rows
    y = y if n_classes == 2 else y + (X[:, 0] > 0.2)
    network = EMLogClassifier(8, readout="least_squares", ridge=ridge, random_state=0).fit(X, y)
    indicator = (y[:, None] == np.arange(n_classes)).astype(float)
    other = Ridge(network.ridge_) if ridge else LinearRegression()
    output = other.fit(network.activations(X), indicator).predict(network.activations(X))
    raised = np.maximum(output, 1 / (len(y) + n_classes))
    assert (output < raised).any()
    assert_allclose(network.predict_proba(X), raised / raised.sum(axis=1, keepdims=True), atol=1e-5)
    assert_array_equal(network.predict(X), output.argmax(axis=1))


def test_rows_without_a_label_shape_the_hidden_layer_only(rows):
    X, y = rows
    few = np.where(np.arange(len(y)) % 5 == 0, y, None)
    known = few != None  # noqa: E711
    some = EMLogClassifier(5, training="two_stage", random_state=0).fit(X, few)
    full = EMLogClassifier(5, training="two_stage", random_state=0).fit(X, y)
    assert_allclose(some.means_, full.means_, rtol=1e-12)
    alone = EMLogClassifier(init=some, training="two_stage").fit(X[known], y[known])
    assert_allclose(some.predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_two_stages_leave_the_kernels_where_they_are(rows):
    X, y = rows
    random = EMLogClassifier(4, init="random", training="two_stage", random_state=0).fit(X, y)
    assert random.n_iter_ == 0
    assert all((np.abs(X - mean).sum(axis=1) < 1e-9).any() for mean in random.means_)


def test_the_best_sweep_is_kept(rows):
    network = EMLogClassifier(6, init="random", random_state=3).fit(*rows)
    assert network.n_iter_ == len(network.history_)
    assert network.loss_ == pytest.approx(network.history_[network.best_iter_ - 1], rel=1e-9)
    assert network.loss_ <= network.history_.min() + 1e-5
    assert network.n_iter_ - network.best_iter_ == 10
    assert network.converged_
    last = network.set_params(patience=None, max_iter=network.n_iter_).fit(*rows)
    assert last.best_iter_ == last.n_iter_ == last.max_iter
    assert len(last.history_) == 0


def test_the_temperature_is_that_with_the_least_loss(rows):
    losses = {
        t: EMLogClassifier(4, temperature=t, training="two_stage", random_state=0).fit(*rows).loss_
        for t in (1.0, 2.0, 4.0)
    }
    chosen = EMLogClassifier(4, training="two_stage", random_state=0).fit(*rows)
    assert chosen.temperature_ == min(losses, key=losses.get)


def test_mixtures_survive_a_clone_when_frozen(rows, mixture):
    X, y = rows
    network = EMLogClassifier(init=FrozenEstimator(mixture), training="two_stage")
    assert cross_val_score(network, X, y, cv=3).mean() > 0.8
    with pytest.raises(KernelpoolError, match=r"GaussianMixture.* without means_.*FrozenEstimator"):
        clone(EMLogClassifier(init=mixture)).fit(X, y)
    shared = SharedKernelClassifier.prbf(4, random_state=0).fit(X, y)
    network = EMLogClassifier(init=shared, training="two_stage").fit(X, y)
    assert network.covariance_type_ == "spherical"


# -- regression ------------------------------------------------------------------------------------


def test_regression_learns_a_sum_of_kernels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    center = np.array([[-1.0, 0], [1, 0.5], [0, -1]])
    hidden = SimpleNamespace(**MIXTURE | {"means_": center, "covariances_": np.full((3, 2), 0.5)})
    hidden.weights_ = np.ones(3)
    y = np.exp(-cdist(X, center, "sqeuclidean")) @ [[1.0, 2], [-3, 0], [0.5, 1]] + [10.0, -5]
    settings = {"training": "two_stage", "ridge": 0.0, "activation": "gaussian"}
    network = EMLogRegressor(init=hidden, **settings).fit(X, y)
    assert_allclose(network.predict(X), y, atol=1e-6)


def test_uncertainty_is_that_of_a_linear_model():
    """noise * (1 + z' (Z'Z + ridge)^-1 z), with the bias free."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 6, (80, 1))
    y = np.sin(X[:, 0]) + rng.normal(0, 0.3, 80)
    network = EMLogRegressor(6, ridge=0.4, random_state=0).fit(X, y)
    Z = np.column_stack([network.activations(X), np.ones(80)])
    inverse = np.linalg.inv(Z.T @ Z + 0.4 * np.diag([1.0] * 6 + [0]))
    noise = ((y - network.predict(X)) ** 2).sum() / (80 - np.trace(Z @ inverse @ Z.T))
    assert network.noise_variance_[0] == pytest.approx(noise, rel=1e-6)
    _, std = network.predict(X, return_std=True)
    assert_allclose(std, np.sqrt(noise * (1 + ((Z @ inverse) * Z).sum(axis=1))), rtol=1e-6)


def test_one_and_several_outputs(rows):
    X, _ = rows
    y = np.column_stack([X[:, 0], X[:, 1] * 1000 + 1e6])
    for targets in (y, y[:, :1], y[:, 0]):
        found = EMLogRegressor(6, random_state=0).fit(X, targets).predict(X)
        assert found.shape == targets.shape
        scaled = EMLogRegressor(6, random_state=0).fit(X, targets * 7.0 - 3.0).predict(X)
        assert_allclose(scaled, found * 7.0 - 3.0, rtol=1e-5, atol=1e-5)
    constant = EMLogRegressor(3, random_state=0).fit(X, np.full(300, 7.0))
    assert_allclose(constant.predict(X), 7.0, rtol=1e-12)


# -- bad input -------------------------------------------------------------------------------------

MIXTURE = {
    "means_": np.zeros((4, 2)),
    "covariances_": np.ones((4, 2)),
    "weights_": np.ones(4),
    "covariance_type": "diag",
}


def given(**changes):
    return EMLogClassifier(init=SimpleNamespace(**MIXTURE | changes))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            EMLogClassifier(init="k-means"),
            "init must be 'kmeans', .* or a fitted mixture; got 'k-means' with",
        ),
        (EMLogClassifier(n_kernels=301), "n_kernels=301 is more than the 300 rows of X"),
        (EMLogClassifier(ridge="gcv"), "ridge='gcv' is for readout='least_squares'; got readout="),
        (given(covariance_type="full"), "covariance_type='full' and covariances of shape"),
        (given(weights_=-np.ones(4)), "expected positive numbers"),
        (given(means_=np.zeros((4, 3))), r"kernels of shape \(4, 3\); X has 2 features"),
    ],
)
def test_bad_settings(rows, model, message):
    with pytest.raises(KernelpoolError, match=message):
        model.fit(*rows)


def test_bad_rows_of_a_regressor(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(town="Oslo")
    for data, message in (
        ((X, None), "y to be passed"),
        ((X, np.where(y, 1e200, -1e200)), "too large to be squared"),
        ((frame, y), "takes numbers; column 'town' of X holds categor"),
        ((np.where(X > 1, np.nan, X), y), "contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            EMLogRegressor().fit(*data)


def test_a_training_that_is_cut_short_warns(rows):
    with pytest.warns(UnfinishedWarning, match="max_iter=2 sweeps; the loss of rows left out was"):
        EMLogClassifier(6, init="random", max_iter=2, random_state=0).fit(*rows)
    with pytest.warns(UnfinishedWarning, match="after max_iter=2 sweeps; the mixture was still"):
        EMLogClassifier(6, init="em", training="two_stage", max_iter=2, random_state=0).fit(*rows)
