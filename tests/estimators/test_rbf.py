import itertools
import pickle
import tracemalloc
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_blobs, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from kernelpool import RBFNetworkClassifier, RBFNetworkRegressor, SharedKernelClassifier, load, save
from kernelpool.datasets import load_ripley, make_ellipses, make_ripley, make_strips, missing_reason
from kernelpool.errors import KernelpoolError, UnfinishedWarning

FAMILIES = ("spherical", "diag", "full", "tied")
ACTIVATIONS = ("density", "gaussian", "normalized")
TRAININGS = ("two_stage", "em_log", "em_log_link")
PLACES = ("random", "kmeans", "em", "mixture")
STEP_0 = {"training": "two_stage", "readout": "least_squares"}


def em_network(*args, **kwargs):
    """The network of the paper."""
    return RBFNetworkClassifier(
        *args, **{"training": "em_log_link", "standardize": False, **kwargs}
    )


@parametrize_with_checks([
    RBFNetworkClassifier(random_state=0),
    RBFNetworkRegressor(patience=2, random_state=0),
])  # fmt: skip
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [RBFNetworkClassifier(5, training="em_log_link", patience=2, random_state=0)]
)
def test_other_settings_pass_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    X, y = make_ripley(300, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def mixture(rows):
    return GaussianMixture(4, random_state=0).fit(rows[0])


# -- the paper ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [RBFNetworkClassifier, RBFNetworkRegressor])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("hidden", "quantile"), [("uniform", lambda q: 2 * q - 1), ("normal", norm.ppf)]
)
def test_starts_that_do_not_look_at_the_rows(rows, network, family, hidden, quantile):
    """Step 0: means in [-1, 1], or by a Gaussian of mean zero, unit covariances, wherever the rows are."""
    X, y = rows
    shown = [
        network(200, hidden=hidden, covariance_type=family, random_state=0, **STEP_0).fit(x, y)
        for x in (X, 9 * X + 5)
    ]
    means = np.sort(shown[0].means_.ravel())
    expected = quantile((np.arange(400) + 0.5) / 400)
    assert np.abs(means - expected)[20:-20].max() < 0.35
    np.testing.assert_allclose(
        shown[1].means_, shown[0].means_, atol=1e-9
    )  # the same numbers, whatever X is
    for model in shown:
        unit = {"full": np.eye(2), "tied": np.eye(2)}.get(family, 1.0)
        np.testing.assert_allclose(
            model.covariances_, np.broadcast_to(unit, model.covariances_.shape), atol=1e-9
        )
        np.testing.assert_allclose(model.mixing_, 1 / 200)
    other = network(200, hidden=hidden, covariance_type=family, random_state=1, **STEP_0).fit(X, y)
    assert np.abs(other.means_ - shown[0].means_).max() > 0.1


def test_the_papers_rule_from_its_own_start(rows):
    """EM-Log from step 0 is EM-Log from a mixture with those means."""
    X, y = rows
    settings = {
        "training": "em_log",
        "solver": "newton",
        "activation": "density",
        "kernel_prior": None,
        "patience": None,
    }
    by_name = em_network(4, hidden="uniform", max_iter=3, random_state=0, **settings).fit(X, y)
    first = em_network(4, hidden="uniform", random_state=0, **STEP_0).fit(X, y)
    given = em_network(4, hidden=first, max_iter=3, **settings).fit(X, y)
    np.testing.assert_allclose(by_name.means_, given.means_, rtol=1e-9)
    np.testing.assert_allclose(by_name.readout_, given.readout_, rtol=1e-6)


@pytest.mark.parametrize("network", [RBFNetworkClassifier, RBFNetworkRegressor])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("hidden", ["kmeans", "em", "mixture"])
@pytest.mark.parametrize("widths", ["unit", "farthest"])
def test_one_width_for_all_kernels(rows, mixture, network, family, hidden, widths):
    X, y = rows
    if hidden == "mixture":
        family = "full"
    common = {"covariance_type": family, "random_state": 0, "standardize": False, **STEP_0}
    common["hidden"] = mixture if hidden == "mixture" else hidden
    model, plain = network(4, widths=widths, **common).fit(X, y), network(4, **common).fit(X, y)
    variance = 1.0 if widths == "unit" else pdist(plain.means_, "sqeuclidean").max()
    unit = variance * (np.eye(2) if family in ("full", "tied") else 1.0)
    np.testing.assert_allclose(
        model.covariances_, np.broadcast_to(unit, model.covariances_.shape), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.means_, plain.means_, rtol=1e-9)  # centers stay where they are
    assert np.abs(model.covariances_ - plain.covariances_).max() > 0.1


def test_netlab_against_the_textbook():
    """Least squares on Gaussians as wide as the two centers that lie farthest apart, by NumPy's pseudo-inverse."""
    X, y = make_blobs(300, centers=3, cluster_std=2.5, random_state=0)
    model = em_network(
        5,
        hidden="em",
        widths="farthest",
        covariance_type="spherical",
        activation="gaussian",
        random_state=0,
        **STEP_0,
    ).fit(X, y)
    width = pdist(model.means_, "sqeuclidean").max()

    def columns(rows):
        return np.column_stack(
            [np.exp(-cdist(rows, model.means_, "sqeuclidean") / (2 * width)), np.ones(len(rows))]
        )

    expected = (columns(X) @ np.linalg.pinv(columns(X)) @ np.eye(3)[y]).argmax(axis=1)
    assert np.array_equal(model.predict(X), expected)


def test_widths_need_centers_that_differ(rows):
    X, y = rows
    one = SimpleNamespace(
        means_=np.zeros((2, 2)),
        covariances_=np.ones(2),
        weights_=np.ones(2),
        covariance_type="spherical",
    )
    with pytest.raises(KernelpoolError, match=r'widths="farthest" needs two centers that differ'):
        em_network(hidden=one, widths="farthest").fit(X, y)
    alone = em_network(
        1, widths="farthest", covariance_type="spherical", random_state=0, **STEP_0
    ).fit(X, y)
    assert alone.covariances_[0] == pytest.approx(X.var(axis=0).mean())


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("solver", ["newton", "bound"])
def test_the_papers_rule_from_a_given_start(rows, link, solver):
    from networks.test_em_log import (
        naive_em_log,
    )  # the same oracle, here through frame, scaling and units

    X, y = rows
    X = X * [2.0, 3.0] + [5.0, -7.0]
    mean = np.array([[4.0, -6.0], [6.0, -5.0], [5.0, -4.0]])
    given = SimpleNamespace(
        means_=mean,
        covariances_=np.repeat(np.eye(2)[None], 3, 0),
        weights_=np.full(3, 1 / 3),
        covariance_type="full",
    )
    network = em_network(
        hidden=given,
        training="em_log_link" if link else "em_log",
        activation="density",
        solver=solver,
        patience=None,
        max_iter=3,
        kernel_prior=None,
        covariance_floor=0.0,
    ).fit(X, y)
    means, covariances, mixing, _, beta = naive_em_log(
        X, y, mean, given.covariances_, 3, link=link, bound=solver == "bound"
    )
    np.testing.assert_allclose(network.means_, means, rtol=1e-6)
    np.testing.assert_allclose(network.covariances_, covariances, rtol=1e-6)
    np.testing.assert_allclose(network.mixing_, mixing, rtol=1e-6)
    found = network.readout_[:, 0].copy()
    found[:-1] /= np.exp(network.activation_log_scale_)
    np.testing.assert_allclose(found, beta, rtol=1e-5)
    assert network.n_iter_ == 3


def ripley():
    reason = missing_reason("ripley_train") or missing_reason("ripley_test")
    if reason:
        pytest.skip(reason)
    return *load_ripley(return_X_y=True), *load_ripley(subset="test", return_X_y=True)


def errors_on_ripley(n_starts, **settings):
    X, y, X_test, y_test = ripley()
    networks = [
        em_network(6, hidden="random", random_state=s, **settings).fit(X, y)
        for s in range(n_starts)
    ]
    return [100 * (1 - network.score(X_test, y_test)) for network in networks]


def test_the_default_holds_on_ripleys_data():
    errors = errors_on_ripley(5)
    assert np.mean(errors) <= 11
    assert max(errors) <= 14


@pytest.mark.slow
@pytest.mark.parametrize("training", ["em_log", "em_log_link"])
def test_the_default_holds_on_ripleys_data_from_20_starts(training):
    errors = errors_on_ripley(20, training=training)
    assert np.mean(errors) <= 11
    assert max(errors) <= 14


def test_training_stops_before_em_hurts():
    """The rule must notice: the sweep it keeps errs less, on average, than the same network ends with without the rule."""
    X, y, X_test, y_test = ripley()
    settings = {
        "hidden": "random",
        "training": "em_log",
        "activation": "density",
        "kernel_prior": None,
    }
    kept, ended = [], []
    for seed in range(3):
        kept.append(em_network(6, random_state=seed, **settings).fit(X, y).score(X_test, y_test))
        last = em_network(6, random_state=seed, patience=None, max_iter=100, **settings)
        ended.append(last.fit(X, y).score(X_test, y_test))
    assert np.mean(kept) > np.mean(ended) + 0.01


def test_figure_3_no_test_error():
    X, y = make_ellipses(200, random_state=0)
    X_test, y_test = make_ellipses(400, random_state=1)
    network = em_network(4, random_state=0).fit(X, y)
    assert network.score(X_test, y_test) == 1


def test_figure_4_long_kernels_beat_round_ones():
    X, y = make_strips(100, random_state=0)
    X_test, y_test = make_strips(200, random_state=1)
    long = em_network(6, random_state=0).fit(X, y)
    round_ = em_network(
        6,
        training="two_stage",
        readout="least_squares",
        activation="gaussian",
        covariance_type="spherical",
        random_state=0,
    ).fit(X, y)
    assert (long.predict(X_test) != y_test).sum() <= 2
    assert (round_.predict(X_test) != y_test).sum() >= 10  # the paper: 15


# -- every combination -------------------------------------------------------------------------------------------------


def combination(hidden, readout, training, activation, family, solver, X):
    if hidden == "mixture":
        hidden = GaussianMixture(4, covariance_type=family, random_state=0, reg_covar=1e-3).fit(X)
    return {"hidden": hidden, "readout": readout, "training": training, "activation": activation,
            "covariance_type": family, "solver": solver}  # fmt: skip


EVERY = list(
    itertools.product(
        PLACES,
        ("least_squares", "ridge", "logistic"),
        TRAININGS,
        ACTIVATIONS,
        FAMILIES,
        ("damped", "newton", "bound"),
    )
)
EVERY = [c for c in EVERY if c[1] == "logistic" or c[5] == "damped"]


def try_in_thirty_dimensions(combinations):
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y = X[:120], X[120:160], y[:120]  # in their own units: variances from 1e-5 to 1e5
    X_test = np.vstack([X_test, X_test[:1] * 1e6])
    for chosen in combinations:
        network = em_network(4, max_iter=3, random_state=0, **combination(*chosen, X))
        network.fit(X, y)
        p = network.predict_proba(X_test)
        assert np.isfinite(p).all(), chosen
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12, err_msg=str(chosen))
        assert np.isfinite(network.readout_).all(), chosen


@pytest.mark.filterwarnings("ignore:Training stopped after max_iter")
def test_thirty_dimensions_with_many_combinations():
    assert len(EVERY) == 720
    try_in_thirty_dimensions(EVERY[::17])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Training stopped after max_iter")
def test_thirty_dimensions_with_every_combination():
    try_in_thirty_dimensions(EVERY)


@pytest.mark.filterwarnings("ignore:Training stopped after max_iter")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("training", TRAININGS)
def test_regression_in_thirty_dimensions(training, activation):
    X, _ = load_breast_cancer(return_X_y=True)
    for readout, family in itertools.product(("least_squares", "ridge"), FAMILIES):
        network = RBFNetworkRegressor(
            4,
            readout=readout,
            training=training,
            activation=activation,
            covariance_type=family,
            max_iter=3,
            random_state=0,
        ).fit(X[:120], X[:120, :2])
        mean, std = network.predict(X[120:160], return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
        assert mean.shape == std.shape == (40, 2)


# -- what should not matter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", ["logistic", "ridge"])
def test_the_order_of_the_classes_does_not_matter(rows, readout):
    """Through the link too: of three classes none is special."""
    X, y = rows
    y = y + (X[:, 0] > 0.2)
    turned = np.array([2, 0, 1])[y]
    settings = {
        "readout": readout,
        "activation": "gaussian",
        "max_iter": 4,
        "patience": None,
        "random_state": 0,
    }
    here, there = (em_network(5, **settings).fit(X, labels) for labels in (y, turned))
    np.testing.assert_allclose(here.means_, there.means_, atol=1e-4)
    np.testing.assert_allclose(
        here.predict_proba(X), there.predict_proba(X)[:, [2, 0, 1]], atol=1e-3
    )


def test_scale_and_offset_do_not_matter(rows):
    X, y = rows
    here = em_network(5, random_state=0).fit(X, y)
    there = em_network(5, random_state=0).fit(X * [2.0**10, 2.0**-10] + [1e5, -1.0], y)
    moved = X * [2.0**10, 2.0**-10] + [1e5, -1.0]
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(moved), atol=1e-5)


def test_weights_are_repetitions(rows):
    X, y = rows
    times = np.random.default_rng(0).integers(0, 3, len(y))
    wild = np.where(
        times[:, None] == 0, 0.01 * X, X
    )  # rows that count nothing and lie where no others do
    for readout, activation in (
        ("logistic", "normalized"),
        ("ridge", "gaussian"),
        ("least_squares", "density"),
    ):
        settings = {"readout": readout, "activation": activation, "random_state": 0}
        weighted = em_network(5, **settings).fit(wild, y, times)
        repeated = em_network(5, **settings).fit(np.repeat(X, times, 0), np.repeat(y, times))
        np.testing.assert_allclose(weighted.activations(X), repeated.activations(X), atol=1e-6)
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
        assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-6)


def test_float32_is_close_to_float64(rows):
    X, y = rows
    wide, narrow = (
        em_network(5, random_state=0, max_iter=20).fit(X.astype(t), y)
        for t in (np.float64, np.float32)
    )
    np.testing.assert_allclose(
        wide.predict_proba(X), narrow.predict_proba(X.astype(np.float32)), atol=0.02
    )


@pytest.mark.parametrize("readout", ["logistic", "ridge"])
def test_dask_equals_numpy(rows, readout):
    X, y = rows
    here = em_network(5, readout=readout, random_state=0).fit(X, y)
    there = em_network(5, readout=readout, random_state=0).fit(
        da.from_array(X, chunks=(77, 2)), da.from_array(y, 77)
    )
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-6)
    assert list(there.predict(da.from_array(X, chunks=(100, 2))).compute()) == list(here.predict(X))


def test_dask_equals_numpy_for_values(rows):
    X, _ = rows
    y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1]])
    here = RBFNetworkRegressor(5, random_state=0).fit(X, y)
    there = RBFNetworkRegressor(5, random_state=0).fit(da.from_array(X, chunks=(77, 2)), y)
    np.testing.assert_allclose(here.predict(X), there.predict(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", [RBFNetworkClassifier, RBFNetworkRegressor])
def test_memory_does_not_grow_with_rows_times_kernels(model):
    """80 MB of outputs of kernels are more than is kept between sweeps."""
    X = np.random.default_rng(0).normal(size=(100_000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    tracemalloc.start()
    try:
        model(
            100, training="two_stage", strength=1.0, temperature=1.0, random_state=0, n_jobs=1
        ).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.4 * X.shape[0] * 100 * 8


def test_array_api_equals_numpy(rows):
    xp = pytest.importorskip("array_api_strict")
    X, y = rows
    here, there = em_network(5, random_state=0), em_network(5, random_state=0)
    p = there.fit(xp.asarray(X), y).predict_proba(xp.asarray(X))
    np.testing.assert_allclose(here.fit(X, y).predict_proba(X), np.asarray(p), atol=1e-6)
    values = RBFNetworkRegressor(5, random_state=0)
    there_values = clone(values).fit(xp.asarray(X), X[:, 0] ** 2).predict(xp.asarray(X))
    np.testing.assert_allclose(
        values.fit(X, X[:, 0] ** 2).predict(X), np.asarray(there_values), atol=1e-6
    )


# -- options -----------------------------------------------------------------------------------------------------------


def test_outputs_follow_from_what_is_kept(rows, mixture):
    X, y = rows
    network = em_network(hidden=mixture, training="two_stage", temperature=1.0).fit(X, y)
    np.testing.assert_allclose(network.activations(X), mixture.predict_proba(X), atol=1e-8)
    logit = mixture.predict_proba(X) @ network.readout_[:-1, 0] + network.readout_[-1, 0]
    np.testing.assert_allclose(network.decision_function(X), logit, rtol=1e-6)
    np.testing.assert_allclose(network.predict_proba(X)[:, 1], 1 / (1 + np.exp(-logit)), rtol=1e-6)
    np.testing.assert_allclose(
        network.predict_log_proba(X), np.log(network.predict_proba(X)), rtol=1e-6
    )
    np.testing.assert_array_equal(network.predict(X), (logit > 0).astype(int))
    np.testing.assert_allclose(network.means_, mixture.means_, rtol=1e-12)


def test_a_logistic_readout_is_calibrated_on_its_rows(rows):
    """With a free bias the mean probability of a class is its share, whatever the ridge."""
    X, y = rows
    y = y + (X[:, 0] > 0.3)
    network = em_network(5, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        network.predict_proba(X).mean(axis=0), np.bincount(y) / len(y), atol=1e-5
    )
    assert network.readout_.shape == (6, 3)
    np.testing.assert_allclose(
        network.readout_.sum(axis=1), 0, atol=1e-9
    )  # no class is the reference


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("readout", ["least_squares", "ridge"])
def test_least_squares_outputs_become_probabilities(rows, readout, n_classes):
    X, y = rows
    y = y if n_classes == 2 else y + (X[:, 0] > 0.2)
    network = em_network(8, readout=readout, random_state=0).fit(X, y)
    indicator = (y[:, None] == np.arange(n_classes)).astype(float)
    other = Ridge(network.strength_) if readout == "ridge" else LinearRegression()
    output = other.fit(network.activations(X), indicator).predict(network.activations(X))
    raised = np.maximum(output, 1 / (len(y) + n_classes))
    assert (output < 1 / (len(y) + n_classes)).any()  # so that the mapping is seen at work
    np.testing.assert_allclose(
        network.predict_proba(X), raised / raised.sum(axis=1, keepdims=True), atol=1e-5
    )
    np.testing.assert_array_equal(network.predict(X), output.argmax(axis=1))
    decision = network.decision_function(X)
    np.testing.assert_allclose(
        decision, output if n_classes == 3 else output[:, 1] - output[:, 0], atol=1e-5
    )


def test_rows_without_a_label_shape_the_hidden_layer_only(rows):
    X, y = rows
    few = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    some = em_network(5, training="two_stage", unlabeled=-1, random_state=0).fit(X, few)
    full = em_network(5, training="two_stage", random_state=0).fit(X, y)
    np.testing.assert_allclose(some.means_, full.means_, rtol=1e-12)
    assert list(some.classes_) == [0, 1]
    alone = em_network(hidden=some, training="two_stage").fit(X[few >= 0], y[few >= 0])
    np.testing.assert_allclose(some.predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_two_stages_leave_the_kernels_where_they_are(rows, mixture):
    X, y = rows
    kmeans = em_network(4, training="two_stage", random_state=0).fit(X, y)
    em = em_network(
        4, hidden="em", training="two_stage", random_state=0, kernel_prior=None, tol=1e-8
    ).fit(X, y)
    assert kmeans.n_iter_ == 0
    best = GaussianMixture(4, tol=1e-10, max_iter=5000, reg_covar=0, means_init=em.means_, weights_init=em.mixing_,
                           precisions_init=np.linalg.inv(em.covariances_)).fit(X)  # fmt: skip
    np.testing.assert_allclose(
        em.means_, best.means_, atol=0.02
    )  # EM is where scikit-learn's would stay
    random = em_network(4, hidden="random", training="two_stage", random_state=0).fit(X, y)
    assert all((np.abs(X - mean).sum(axis=1) < 1e-9).any() for mean in random.means_)


def test_each_option_changes_something(rows):
    X, y = rows
    base = em_network(5, random_state=0, hidden="random").fit(X, y).predict_proba(X)
    for change in (
        {"n_kernels": 6}, {"hidden": "kmeans"}, {"readout": "ridge"}, {"training": "em_log"}, {"activation": "gaussian"},
        {"temperature": 1.0}, {"covariance_type": "diag"}, {"solver": "newton"}, {"strength": 3.0}, {"patience": 1},
        {"max_iter": 2, "patience": None}, {"covariance_floor": 0.5}, {"kernel_prior": None}, {"random_state": 1},
        {"n_init": 4}, {"tol": 0.01},
    ):  # fmt: skip
        network = em_network(
            **{"n_kernels": 5, "random_state": 0, "hidden": "random", **change}
        ).fit(X, y)
        assert np.abs(network.predict_proba(X) - base).max() > 1e-6, change


def test_more_starts_are_judged_by_rows_left_out(rows):
    X, y = rows
    one, many = (em_network(5, hidden="random", random_state=0, n_init=n).fit(X, y) for n in (1, 6))
    assert many.loss_ < one.loss_


def test_the_best_sweep_is_kept(rows):
    X, y = rows
    network = em_network(6, hidden="random", random_state=3).fit(X, y)
    assert network.n_iter_ == len(network.history_)
    assert network.loss_ == pytest.approx(network.history_[network.best_iter_ - 1], rel=1e-9)
    assert network.loss_ <= network.history_.min() + 1e-5
    assert network.n_iter_ - network.best_iter_ == 10
    assert network.converged_


def test_mixtures_survive_a_clone_when_frozen(rows, mixture):
    X, y = rows
    network = em_network(hidden=FrozenEstimator(mixture), training="two_stage")
    assert cross_val_score(network, X, y, cv=3).mean() > 0.8
    with pytest.raises(
        KernelpoolError,
        match=r"GaussianMixture without means_, covariances_, weights_.*FrozenEstimator",
    ):
        clone(em_network(hidden=mixture)).fit(X, y)
    shared = SharedKernelClassifier.prbf(4, random_state=0).fit(X, y)
    assert em_network(hidden=shared, training="two_stage").fit(X, y).covariance_type_ == "spherical"
    again = pickle.loads(pickle.dumps(em_network(hidden=mixture).fit(X, y)))
    assert again.score(X, y) > 0.8


# -- regression --------------------------------------------------------------------------------------------------------


def test_regression_learns_a_sum_of_kernels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    center = np.array([[-1.0, 0], [1, 0.5], [0, -1]])
    given = SimpleNamespace(
        means_=center,
        covariances_=np.full(3, 0.5),
        weights_=np.ones(3),
        covariance_type="spherical",
    )
    bumps = np.exp(-((X[:, None, :] - center) ** 2).sum(axis=2) / (2 * 0.5))
    y = bumps @ [[1.0, 2], [-3, 0], [0.5, 1]] + [10.0, -5]
    network = RBFNetworkRegressor(
        hidden=given, training="two_stage", readout="least_squares", activation="gaussian"
    ).fit(X, y)
    np.testing.assert_allclose(network.predict(X), y, atol=1e-6)
    height = 1 / (2 * np.pi * 0.5)
    true = network.readout_[:-1] / np.exp(network.activation_log_scale_)[:, None] * height
    np.testing.assert_allclose(true, [[1.0, 2], [-3, 0], [0.5, 1]], atol=1e-5)
    np.testing.assert_allclose(network.readout_[-1], [10, -5], atol=1e-6)


def test_doubt_is_that_of_a_linear_model():
    """noise * (1 + z' (Z'Z + strength)^-1 z), with the bias free."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 6, (80, 1))
    y = np.sin(X[:, 0]) + rng.normal(0, 0.3, 80)
    network = RBFNetworkRegressor(6, strength=0.4, random_state=0).fit(X, y)
    Z = np.column_stack([network.activations(X), np.ones(80)])
    inverse = np.linalg.inv(Z.T @ Z + 0.4 * np.diag([1.0] * 6 + [0]))
    freedom = 80 - np.trace(Z @ inverse @ Z.T)
    noise = ((y - network.predict(X)) ** 2).sum() / freedom
    # squares of residuals: (y - Hy)'(y - Hy)
    assert network.noise_variance_[0] == pytest.approx(noise, rel=1e-6)
    _, std = network.predict(X, return_std=True)
    np.testing.assert_allclose(
        std, np.sqrt(noise * (1 + ((Z @ inverse) * Z).sum(axis=1))), rtol=1e-6
    )


def test_the_link_helps_where_the_output_is():
    """All kernels see the rows; the link gives those their share whose weights are large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.exp(-((X - [1.5, 0]) ** 2).sum(axis=1) * 4)
    settings = {
        "hidden": "random",
        "activation": "gaussian",
        "max_iter": 5,
        "patience": None,
        "random_state": 0,
    }
    plain, linked = (
        RBFNetworkRegressor(6, training=t, **settings).fit(X, y) for t in ("em_log", "em_log_link")
    )
    assert np.abs(plain.means_ - linked.means_).max() > 0.01
    np.testing.assert_allclose(linked.mixing_.sum(), 1, rtol=1e-12)


@pytest.mark.parametrize("strength", ["loo", "gcv"])
def test_regression_beats_the_mean_on_friedman(strength):
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    X_test, y_test = make_friedman1(400, noise=0.0, random_state=1)
    assert (
        RBFNetworkRegressor(strength=strength, random_state=0).fit(X, y).score(X_test, y_test) > 0.7
    )


def test_one_and_several_outputs(rows):
    X, _ = rows
    y = np.column_stack([X[:, 0], X[:, 1] * 1000 + 1e6])
    both = RBFNetworkRegressor(6, random_state=0).fit(X, y)
    assert both.predict(X).shape == (300, 2)
    assert both.noise_variance_.shape == (2,)
    assert RBFNetworkRegressor(6, random_state=0).fit(X, y[:, :1]).predict(X).shape == (300, 1)
    assert RBFNetworkRegressor(6, random_state=0).fit(X, y[:, 0]).predict(X).shape == (300,)
    scaled = RBFNetworkRegressor(6, random_state=0).fit(X, y * [7.0, 0.01] - [3.0, 5.0])
    np.testing.assert_allclose(
        scaled.predict(X), both.predict(X) * [7.0, 0.01] - [3.0, 5.0], rtol=1e-5, atol=1e-5
    )


def test_a_constant_output_is_learned(rows):
    network = RBFNetworkRegressor(3, random_state=0).fit(rows[0], np.full(300, 7.0))
    np.testing.assert_allclose(network.predict(rows[0]), 7.0, rtol=1e-12)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"hidden": "k-means"},
            r"hidden must be one of .*kmeans.* or a fitted mixture; got 'k-means'",
        ),
        ({"hidden": 3}, "got int without means_, covariances_, weights_"),
        ({"n_kernels": 301}, "n_kernels=301 is more than the 300 rows of X"),
        ({"strength": "gcv"}, "strength='gcv' is for readout='ridge'; got readout='logistic'"),
        ({"strength": -1.0}, "The 'strength' parameter"),
        ({"temperature": 0.0}, "The 'temperature' parameter"),
        ({"patience": 0}, "The 'patience' parameter"),
        ({"activation": "sigmoid"}, "The 'activation' parameter"),
        (
            {"covariance_type": "tied", "covariance_floor": 0.0, "n_kernels": 300},
            "has no width left",
        ),
    ],
)
def test_bad_settings(rows, settings, message):
    X, y = rows
    X = np.column_stack([X, np.ones(300)]) if "covariance_floor" in settings else X
    with pytest.raises(ValueError, match=message):
        em_network(**{"kernel_prior": None, **settings}).fit(X, y)


def test_bad_mixtures(rows, mixture):
    X, y = rows
    attributes = {
        "means_": mixture.means_,
        "covariances_": mixture.covariances_,
        "weights_": mixture.weights_,
    }
    for change, message in (
        ({"covariance_type": "diag"}, "covariance_type='diag' and covariances of shape"),
        ({"covariance_type": "full", "weights_": -mixture.weights_}, "expected positive numbers"),
        (
            {"covariance_type": "full", "means_": np.zeros((4, 3))},
            r"kernels of shape \(4, 3\); X has 2 features",
        ),
    ):
        with pytest.raises(KernelpoolError, match=message):
            em_network(hidden=SimpleNamespace(**{**attributes, **change})).fit(X, y)


def test_bad_data(rows):
    X, y = rows
    with pytest.raises(KernelpoolError, match="at least two classes"):
        em_network().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="y to be passed"):
        RBFNetworkRegressor().fit(X, None)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        RBFNetworkRegressor().fit(X, y, np.zeros(300))
    with pytest.raises(KernelpoolError, match="too large to be squared"):
        RBFNetworkRegressor().fit(X, np.where(y, 1e200, -1e200))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RBFNetworkRegressor().fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        RBFNetworkRegressor().fit(X, np.where(y, np.nan, 0.0))


def test_a_training_that_is_cut_short_says_so(rows):
    with pytest.warns(
        UnfinishedWarning, match="max_iter=2 sweeps; the loss of rows left out was still improving"
    ):
        em_network(6, hidden="random", max_iter=2, random_state=0).fit(*rows)
    with pytest.warns(
        UnfinishedWarning, match="stopped after max_iter=2 sweeps; the mixture was still improving"
    ):
        em_network(6, hidden="em", training="two_stage", max_iter=2, random_state=0).fit(*rows)


def test_progress_is_shown(rows, capsys):
    em_network(3, random_state=0, verbose=2).fit(*rows)
    assert "RBFNetworkClassifier" in capsys.readouterr().out


def interrupt_at(monkeypatch, call):
    """Ctrl-C at the given sweep, from 1."""
    from kernelpool.networks.em_log import EMLog

    sweep, calls = EMLog.sweep, itertools.count(1)

    def interrupted(self, *args):
        if next(calls) == call:
            raise KeyboardInterrupt
        return sweep(self, *args)

    monkeypatch.setattr(EMLog, "sweep", interrupted)


def half_plane(cls):
    x = np.random.default_rng(0).normal(size=(200, 2))
    return x, (x[:, 0] > 0).astype(int) if cls is em_network else x[:, 0]


@pytest.mark.parametrize("cls", [em_network, RBFNetworkRegressor])
def test_an_interrupted_fit_keeps_the_best_sweep(cls, monkeypatch):
    interrupt_at(monkeypatch, 4)
    (x, y), model = half_plane(cls), cls(4, random_state=0)
    with pytest.raises(
        KeyboardInterrupt, match="interrupted after 3 sweeps; the best network so far was kept"
    ):
        model.fit(x, y)
    assert model.score(x, y) > 0.8


@pytest.mark.parametrize("cls", [em_network, RBFNetworkRegressor])
def test_an_interrupted_start_leaves_those_before_it(cls, monkeypatch):
    (x, y), settings = half_plane(cls), {"max_iter": 2, "patience": None, "random_state": 0}
    alone = cls(4, **settings).fit(x, y)
    interrupt_at(monkeypatch, 3)  # the first sweep of the second start
    model = cls(4, n_init=2, **settings)
    with pytest.raises(
        KeyboardInterrupt, match="interrupted after 1 of 2 starts; the best network so far was kept"
    ):
        model.fit(x, y)
    np.testing.assert_array_equal(model.readout_, alone.readout_)
    np.testing.assert_array_equal(model.predict(x), alone.predict(x))


@pytest.mark.parametrize("cls", [em_network, RBFNetworkRegressor])
def test_a_fit_interrupted_before_it_has_a_network_is_no_fit(cls, monkeypatch):
    interrupt_at(monkeypatch, 1)
    (x, y), model = half_plane(cls), cls(4, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(x)


def test_float32_rows_do_not_round_the_output_layer(rows):
    X, y = rows
    network = em_network(5, training="two_stage", random_state=0).fit(X, y)
    single = X.astype(np.float32)
    network.readout_ = (
        network.readout_ + 1e6
    )  # of which float32 would keep two digits after the point
    expected = network.activations(single) @ network.readout_[:-1, 0] + network.readout_[-1, 0]
    np.testing.assert_allclose(network.decision_function(single), expected, rtol=1e-12)


# -- the path ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    """Three classes in features of very different units."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 360)
    X = np.column_stack([y == 1, y == 2, rng.normal(size=360)]) + rng.normal(0, 0.5, (360, 3))
    return X * [1000.0, 1.0, 0.01] + [5e4, 0.0, 3.0], np.array(["a", "b", "c"])[y]


def path_scores(network, X):
    """The formula, kernel by kernel, from the public attributes alone."""
    variance = np.broadcast_to(
        np.reshape(network.covariances_, (len(network.means_), -1)), network.means_.shape
    )
    away = (
        (X[:, None, :] - network.means_) ** 2 / variance * getattr(network, "kernel_features_", 1)
    )
    columns = np.hstack([np.exp(-0.5 * away.sum(axis=2)), X, np.ones((len(X), 1))])
    return columns @ network.readout_


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("max_features", [None, 2])
def test_path_attributes_are_the_network(three, rows, standardize, max_features):
    for X, y in (three, rows):
        network = RBFNetworkClassifier(
            30, standardize=standardize, max_features=max_features, random_state=0
        ).fit(X, y)
        scores = path_scores(network, X)
        scores = np.hstack([0 * scores, scores]) if len(network.classes_) == 2 else scores
        expected = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(network.predict_proba(X), expected, atol=1e-9)
        assert network.readout_.shape == (
            30 + X.shape[1] + 1,
            1 if len(network.classes_) == 2 else 3,
        )
        assert network.covariance_type_ == ("diag" if standardize else "spherical")
        assert network.loss_ == min(network.history_)
        assert network.mixing_.sum() == pytest.approx(1)
        assert network.activations(X).min() > 0
        assert network.activations(X).max() <= 1


def test_the_readout_is_the_minimum_of_the_penalized_loss(rows):
    """At a strong ridge the loss must rise in every direction away from the readout (solved in the frame of the fit)."""
    from scipy.optimize import minimize

    X, y = rows
    network = RBFNetworkClassifier(10, strength=20.0, standardize=False, random_state=0).fit(X, y)
    assert network.strength_ == 20.0
    unit = np.sqrt(X.var(axis=0).mean())
    columns = np.hstack([network.activations(X), (X - X.mean(axis=0)) / unit / np.sqrt(2)])

    def loss(weight):
        scores = columns @ weight[:-1] + weight[-1]
        # two softmax outputs of opposite sign: their squared weights are half of those of the log-odds
        return (
            np.logaddexp(0, scores).sum()
            - scores[y == network.classes_[1]].sum()
            + 0.5 * 20.0 * 0.5 * (weight[:-1] ** 2).sum()
        )

    best = minimize(loss, np.zeros(columns.shape[1] + 1), method="BFGS", options={"gtol": 1e-6})
    odds = columns @ best.x[:-1] + best.x[-1]
    np.testing.assert_allclose(network.decision_function(X), odds, atol=0.01)


def test_path_validation_rows_choose_and_training_rows_train(rows):
    X, y = rows
    X_val, y_val = make_ripley(400, random_state=5)
    network = RBFNetworkClassifier(40, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    probability = network.predict_proba(X_val)[
        np.arange(400), np.searchsorted(network.classes_, y_val)
    ]
    assert network.loss_ == pytest.approx(-np.log(probability).mean(), abs=1e-9)
    with pytest.raises(KernelpoolError, match="y_val must be given"):
        RBFNetworkClassifier().fit(X, y, X_val=X_val)


def test_narrowed_copies_look_nearby(rows):
    X, y = rows
    network = RBFNetworkClassifier(40, random_state=0).fit(X, y)
    copy = network.narrowed()
    assert not hasattr(copy, "means_")
    assert copy.path_setting == network.path_setting_
    again = copy.fit(X, y)
    assert again.n_iter_ <= 3 < network.n_iter_
    assert again.path_setting_ == network.path_setting_
    np.testing.assert_allclose(again.predict_proba(X), network.predict_proba(X), atol=0.05)
    assert em_network(3, random_state=0).fit(X, y).narrowed().path_setting is None


@pytest.mark.parametrize("max_features", [None, 1, 2])
def test_kernels_of_few_features_know_no_more_than_these_together(max_features):
    """The odds are a sum of functions of so many features: differences of a higher order vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X.prod(axis=1) + X[:, 0] > 0
    network = RBFNetworkClassifier(60, max_features=max_features, random_state=0).fit(X, y)

    def odds(*others):
        """At the corners of a box along these features, with the sign of each corner: the mixed difference."""
        corners = (
            np.array(
                np.meshgrid(*([0, 1] if i in others else [0] for i in range(3)), indexing="ij")
            )
            .reshape(3, -1)
            .T
        )
        at = np.where(corners, [1.0, -0.5, 0.8], [-0.7, 0.4, -0.9])
        return abs(((-1.0) ** corners.sum(axis=1)) @ network.decision_function(at))

    assert (odds(0, 1) < 1e-10) == (max_features == 1)
    assert (odds(0, 1, 2) < 1e-10) == (max_features is not None)
    if max_features is not None:
        assert network.kernel_features_.shape == network.means_.shape
        assert set(network.kernel_features_.sum(axis=1)) == set(range(1, max_features + 1))


def test_kernels_of_one_feature_add_up_where_round_ones_are_near_no_row():
    """Twenty features, each with a wave of its own in the log-odds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 20))
    odds = 2 * np.sin(3 * X).sum(axis=1)
    y = rng.random(2500) < 1 / (1 + np.exp(-odds))
    train, test = slice(0, 1500), slice(1500, 2500)
    best_possible = (y[test] == (odds[test] > 0)).mean()
    few = RBFNetworkClassifier(max_features=1, random_state=0).fit(X[train], y[train])
    round_ones = RBFNetworkClassifier(random_state=0).fit(X[train], y[train])
    assert few.score(X[test], y[test]) > best_possible - 0.06
    assert round_ones.score(X[test], y[test]) < best_possible - 0.15


def test_kernels_of_few_features_do_not_depend_on_the_order_of_the_rows(three):
    X, y = three
    order = np.random.default_rng(0).permutation(len(X))
    one = RBFNetworkClassifier(30, max_features=2, path_setting=(1, 1), random_state=0).fit(X, y)
    other = RBFNetworkClassifier(30, max_features=2, path_setting=(1, 1), random_state=0).fit(
        X[order], y[order]
    )
    np.testing.assert_allclose(other.means_, one.means_, rtol=1e-12)
    np.testing.assert_array_equal(other.kernel_features_, one.kernel_features_)


@pytest.mark.parametrize("max_features", [None, 2])
def test_path_is_scaled_inside(three, max_features):
    X, y = three
    scaler = StandardScaler().fit(X)
    settings = {"max_features": max_features, "random_state": 0}
    inside = RBFNetworkClassifier(40, **settings).fit(X, y)
    before = RBFNetworkClassifier(40, standardize=False, **settings).fit(scaler.transform(X), y)
    np.testing.assert_allclose(
        inside.predict_proba(X), before.predict_proba(scaler.transform(X)), atol=1e-9
    )
    np.testing.assert_allclose(scaler.transform(inside.means_), before.means_, atol=1e-8)
    assert inside.width_ == pytest.approx(before.width_, rel=1e-9)
    raw = RBFNetworkClassifier(40, standardize=False, **settings).fit(X, y)
    assert np.abs(raw.predict_proba(X) - inside.predict_proba(X)).max() > 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_networks_of_the_paper_are_scaled_inside(three, family):
    X, y = three
    scaler = StandardScaler().fit(X)
    settings = {
        "covariance_type": family,
        "activation": "density",
        "max_iter": 5,
        "patience": None,
        "random_state": 0,
    }
    inside = em_network(6, **settings, standardize=True).fit(X, y)
    before = em_network(6, **settings).fit(scaler.transform(X), y)
    np.testing.assert_allclose(
        inside.predict_proba(X), before.predict_proba(scaler.transform(X)), atol=1e-7
    )
    np.testing.assert_allclose(scaler.transform(inside.means_), before.means_, atol=1e-7)
    raw = em_network(6, **settings).fit(X, y)
    changed = np.abs(raw.predict_proba(X) - inside.predict_proba(X)).max()
    assert changed > 1e-3 if family == "spherical" else changed < 1e-6


def test_regressor_is_scaled_inside(three):
    X, _ = three
    scaler, y = StandardScaler().fit(X), X[:, 1] ** 2
    settings = {"covariance_type": "spherical", "max_iter": 5, "random_state": 0}
    inside = RBFNetworkRegressor(8, **settings).fit(X, y)
    before = RBFNetworkRegressor(8, standardize=False, **settings).fit(scaler.transform(X), y)
    np.testing.assert_allclose(inside.predict(X), before.predict(scaler.transform(X)), atol=1e-7)
    assert inside.covariance_type_ == "diag"
    assert before.covariance_type_ == "spherical"


@pytest.mark.parametrize(
    "change",
    [
        {"n_kernels": 10},
        {"hidden": "random"},
        {"strength": 5.0},
        {"path_setting": (4, 0)},
        {"max_features": 1},
    ],
)
def test_every_parameter_of_the_path_matters(rows, change):
    X, y = rows
    base = {"n_kernels": 40, "random_state": 0}
    one, other = (
        RBFNetworkClassifier(**{**base, **c}).fit(X, y).predict_proba(X) for c in ({}, change)
    )
    assert np.abs(one - other).max() > 1e-3


def test_unlabeled_rows_take_no_part_in_the_path(rows):
    X, y = rows
    far, none = np.full((20, 2), 50.0), np.full(20, -1)
    some = RBFNetworkClassifier(20, unlabeled=-1, standardize=False, random_state=0)
    some.fit(np.vstack([X, far]), np.concatenate([y, none]))
    alone = RBFNetworkClassifier(20, standardize=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(some.predict_proba(X), alone.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("home", ["torch", "cuda", "dask"])
@pytest.mark.parametrize("max_features", [None, 1])
def test_homes_of_the_path_agree(rows, home, max_features):
    from contracts.test_homes import at_home, compute

    X, y = rows
    network = RBFNetworkClassifier(20, max_features=max_features, random_state=0).fit(X, y)
    there, labels = at_home(home, X, y)
    found = network.predict_proba(there)
    assert type(found) is type(there)
    np.testing.assert_allclose(compute(found), network.predict_proba(X), atol=1e-12)
    again = RBFNetworkClassifier(20, max_features=max_features, random_state=0).fit(there, labels)
    np.testing.assert_allclose(again.predict_proba(X), network.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"readout": "ridge"}, "training='path' has a logistic output layer; got readout='ridge'"),
        ({"hidden": "em"}, "training='path' needs hidden='kmeans' or 'random'; got 'em'"),
        (
            {"metric": "learned", "max_features": 2},
            "max_features and metric='learned' exclude each other",
        ),
        (
            {"max_features": 2, "training": "em_log"},
            "max_features is for training='path'; got training='em_log'",
        ),
        (
            {"metric": "learned", "training": "em_log"},
            "metric='learned' is for training='path'; got training='em_log'",
        ),
        (
            {"path_setting": (9, 0)},
            r"place of a width, below 5, and of a ridge, below 5; got \(9, 0\)",
        ),
    ],
)
def test_what_the_path_cannot_do(rows, settings, message):
    with pytest.raises(KernelpoolError, match=message):
        RBFNetworkClassifier(**settings).fit(*rows)


def test_the_path_says_how_far_it_is(rows, capsys):
    RBFNetworkClassifier(20, random_state=0, verbose=2).fit(*rows)
    assert capsys.readouterr().out


def test_few_rows_are_enough_for_the_path():
    network = RBFNetworkClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert network.predict([[0.0], [1.0]]).tolist() == [0, 1]
    assert np.isnan(network.loss_)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_learned_metric_finds_the_direction_that_matters(standardize):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1000, 8))
    y = (np.abs(z[:, 0]) > 0.7).astype(int)
    z[:, 1:] *= 2
    X = 5 + 3 * z @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    plain, learned = (
        RBFNetworkClassifier(60, metric=metric, standardize=standardize, random_state=0).fit(
            X[:500], y[:500]
        )
        for metric in (None, "learned")
    )
    assert 1 - learned.score(X[500:], y[500:]) < 0.6 * (1 - plain.score(X[500:], y[500:]))
    # Gaussians of one matrix, and the features beside them
    away, precision = X[500:520, None] - learned.means_, np.linalg.inv(learned.covariances_)
    activation = np.exp(-0.5 * np.einsum("nmi,ij,nmj->nm", away, precision, away))
    np.testing.assert_allclose(learned.activations(X[500:520]), activation, atol=1e-9)
    score = np.hstack([activation, X[500:520], np.ones((20, 1))]) @ learned.readout_
    np.testing.assert_allclose(learned.decision_function(X[500:520]), score[:, 0], atol=1e-8)
    peak = -0.5 * (8 * np.log(2 * np.pi) + np.linalg.slogdet(learned.covariances_)[1])
    np.testing.assert_allclose(learned.activation_log_scale_, peak)
    inner = np.linalg.inv(learned.metric_.T @ learned.metric_)
    np.testing.assert_allclose(
        learned.covariances_, learned.width_**2 * inner, rtol=1e-6, atol=1e-9
    )
    assert not hasattr(learned.set_params(metric=None).fit(X[:100], y[:100]), "metric_")


def test_kernels_of_few_features_take_words_and_holes(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=200),
            "b": rng.choice(["x", "y", "z"], 200),
            "c": rng.normal(size=200),
        }
    )
    y = (frame.a > 0) ^ (frame.b == "x")
    frame.loc[::7, "a"], frame.loc[::9, "b"] = np.nan, None
    network = RBFNetworkClassifier(max_features=2, random_state=0).fit(frame, y)
    known = frame.notna().all(axis=1)
    assert network.score(frame[known], y[known]) > 0.9  # a number and a word decide together
    assert network.kernel_features_.sum(axis=1).max() == 2
    save(network, tmp_path / "network.safetensors")
    found = load(tmp_path / "network.safetensors").predict_proba(frame)
    np.testing.assert_array_equal(found, network.predict_proba(frame))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
