"""The pooled classifier: its probabilities are those of its members, its densities those of its
mixtures.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from kernelpool import PooledClassifier, SharedKernelClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import UnfinishedWarning

MEMBERS = [
    ("mixture", SharedKernelClassifier.prbf(6, random_state=0)),
    ("bayes", GaussianNB()),
    LogisticRegression(),
]


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(600, random_state=0), make_clouds(1000, random_state=1)


@pytest.fixture(scope="module")
def pool(clouds):
    return PooledClassifier(MEMBERS, pooling="log_linear", random_state=0).fit(*clouds[0])


def test_probabilities_are_weighted_products_of_the_members(pool, clouds):
    (X_test, _) = clouds[1]
    scores = 0.0
    for m, weight in enumerate(pool.weights_):
        networks = [n.estimator for n in pool.networks_ if n.member == pool.members_[m]]
        assert len(networks) == 4
        scores = scores + weight * np.log(
            np.mean([network.predict_proba(X_test) for network in networks], axis=0)
        )
    expected = scores - logsumexp(scores, axis=1, keepdims=True)
    assert_allclose(pool.predict_proba(X_test), np.exp(expected), atol=1e-9)
    assert_array_equal(pool.predict(X_test), pool.classes_[expected.argmax(axis=1)])


def test_the_pool_is_as_good_as_its_best_member(pool, clouds):
    (X, y), (X_test, y_test) = clouds
    alone = [
        log_loss(y_test, clone(m[1] if isinstance(m, tuple) else m).fit(X, y).predict_proba(X_test))
        for m in MEMBERS
    ]
    assert log_loss(y_test, pool.predict_proba(X_test)) < min(alone) + 0.01
    assert pool.loss_ == pytest.approx(log_loss(y, pool.held_out_proba_), rel=1e-9)


def test_densities_are_those_of_the_mixtures(pool, clouds):
    (X_test, _) = clouds[1]
    used = [network for network in pool.networks_ if network.density_weight > 0]
    assert {network.member for network in used} == {"mixture"}
    expected = logsumexp(
        [n.estimator.log_density(X_test) + np.log(n.density_weight) for n in used], axis=0
    )
    assert_allclose(pool.log_density(X_test), expected, rtol=1e-9)
    assert_allclose(pool.kernel_posterior(X_test).sum(axis=1), 1)
    rows, labels = pool.sample(4000, random_state=0)
    for k in pool.classes_:  # each class has the mean of its mixtures
        means = [n.estimator.mixing_[:, k] @ n.estimator.means_ for n in used]
        assert_allclose(rows[labels == k].mean(axis=0), np.mean(means, axis=0), atol=0.1)


def test_a_pool_without_densities(clouds):
    model = PooledClassifier([GaussianNB()], random_state=0).fit(*clouds[0])
    assert not hasattr(model, "score_samples")
    assert not hasattr(model, "held_out_log_density_")
    assert hasattr(PooledClassifier(), "score_samples")  # of its mixtures, once it is fitted


@pytest.fixture(scope="module")
def table():
    """Numbers, categories and missing cells; and a default pool over them."""
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 12, n),
            "plan": rng.choice(["basic", "plus", "pro"], n),
            "z": rng.normal(size=n),
        }
    )
    odds = (frame["age"] - 50) / 6 + 3 * (frame["plan"] == "plus") - 1
    y = np.where(odds + rng.logistic(size=n) > 0, "yes", "no")
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    progress = []
    model = PooledClassifier("fast", random_state=0, callback=progress.append)
    return frame, y, model.fit(frame, y), progress


def test_the_default_pool_takes_tables(table):
    frame, y, model, progress = table
    assert [p.name for p in progress] == model.trials_["name"].tolist()
    assert progress[-1].left == ()
    assert set(model.members_) <= set(model.trials_["name"])
    assert model.loss_ < log_loss(y, np.full(len(y), np.mean(y == "yes"))) - 0.1
    rows, _ = model.sample(10, random_state=0)
    assert list(rows.columns) == ["age", "plan", "z"]
    assert set(rows["plan"]) <= {"basic", "plus", "pro", None}
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.held_out_log_density_).all()
    imputed = model.impute(frame)
    assert not imputed.isna().any(axis=None)
    known = frame["age"].notna()
    assert_array_equal(imputed["age"][known], frame["age"][known])
    assert set(imputed["plan"]) == {"basic", "plus", "pro"}
    younger, older = (
        model.impute(frame[:1].assign(age=np.nan), [k])["age"][0] for k in model.classes_
    )
    assert younger < older


def test_the_leaderboard_has_the_lowest_loss_first(table):
    _, _, model, _ = table
    board = model.leaderboard()
    assert board["validation_loss"].is_monotonic_increasing
    weights = board.set_index("name")["weight"]
    assert_array_equal(weights[model.members_], model.weights_)
    assert weights.sum() == pytest.approx(model.weights_.sum())
    assert (board["fit_seconds"] > 0).all()
    assert (board["predict_seconds"] > 0).tolist() == (board["weight"] > 0).tolist()


def test_named_members_take_the_table_as_it_is(table):
    frame, y, *_ = table
    kinds = []

    class Recording(DummyClassifier):
        def fit(self, X, y):
            kinds.append(type(X))
            return super().fit(X, y)

        def predict_proba(self, X):
            kinds.append(list(X.dtypes.astype(str)))
            return super().predict_proba(X)

    model = PooledClassifier([("r", Recording())], random_state=0).fit(frame, y)
    model.predict(frame)
    assert set(kinds[::2][:1]) == {pd.DataFrame}
    assert kinds[-1] == list(frame.dtypes.astype(str))


@pytest.mark.parametrize("share", [0, 0.2])
def test_named_members_that_take_no_nan_are_averaged_over_imputations(clouds, share):
    (X, y), _ = clouds
    missing = np.random.default_rng(0).random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    model = PooledClassifier([("line", LogisticRegression())], n_folds=2, random_state=0)
    model.fit(incomplete if share else X, y)
    proba = model.predict_proba(incomplete)
    assert_allclose(proba.sum(axis=1), 1)
    # imputations depend on the row alone
    assert_allclose(model.predict_proba(incomplete[::-1]), proba[::-1], rtol=1e-9)
    nothing = missing.all(axis=1)
    assert_allclose(proba[nothing], [model.class_prior_] * nothing.sum())


def test_dependence_between_features_counts_where_cells_are_missing():
    """Near the loss of the true density, of which nothing but covariances differs between the
    classes.
    """
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(2, 6, 6))
    covariances = factor @ factor.swapaxes(1, 2) + 0.1 * np.eye(6)
    truth = SharedKernelClassifier.from_parameters(
        np.zeros((2, 6)), covariances, np.eye(2), [0.5, 0.5], [0, 1], "full"
    )
    (X, y), (X_test, y_test) = (truth.sample(400, random_state=i) for i in (1, 2))
    X[rng.random(X.shape) < 0.3] = np.nan
    X_test[rng.random(X_test.shape) < 0.3] = np.nan
    pool = PooledClassifier("fast", n_folds=2, random_state=0).fit(X, y)
    least = log_loss(y_test, truth.predict_proba(X_test))
    assert log_loss(y_test, pool.predict_proba(X_test)) < least + 0.2 * (np.log(2) - least)


def test_what_the_time_limit_leaves_out_is_named(clouds):
    (X, y), _ = clouds
    with pytest.warns(UnfinishedWarning, match="600 of 600 rows in time_limit=1e-06 s and without"):
        model = PooledClassifier("fast", time_limit=1e-6, random_state=0).fit(X, y)
    assert model.members_ == ["tied mixture, 1 per class"]
    assert set(model.trials_["outcome"][1:]) == {"not tried: the time was over"}


def test_copies_and_weights_of_rows_are_no_evidence():
    """Of weights alike only the proportions count, and rows that come twice are held out
    together.
    """
    rng = np.random.default_rng(5)
    y, y_test = (np.repeat([0, 1], n) for n in (100, 1000))
    X, X_test = (rng.normal(size=(len(k), 2)) + 1.5 * np.eye(2)[k] for k in (y, y_test))
    pool = PooledClassifier("fast", random_state=0)
    once = log_loss(y_test, pool.fit(X, y).predict_proba(X_test))
    twice = pool.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict_proba(X_test)
    assert log_loss(y_test, twice) < once + 0.01
    assert abs(pool.loss_ - once) < 0.08
    near = pool.fit(np.r_[X, X.round(6)], np.r_[y, y]).predict_proba(X_test)
    assert log_loss(y_test, near) < once + 0.02  # as a table joined with its own export
    for scale in (2.0, 1e3, 1e-2):
        heavy = pool.fit(X, y, np.full(200, scale)).predict_proba(X_test)
        assert_allclose(heavy, twice, atol=0.1)
