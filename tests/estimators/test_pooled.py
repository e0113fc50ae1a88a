"""The pooled classifier: its probabilities are those of its members, its densities those of the members that describe."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from kernelpool import PooledClassifier, RejectClassifier, SharedKernelClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError

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
    return PooledClassifier(MEMBERS, random_state=0).fit(*clouds[0])


def test_probabilities_are_weighted_products_of_the_members(pool, clouds):
    (X_test, _) = clouds[1]
    assert pool.pooling_ == "log_linear"
    scores = 0.0
    for m, weight in enumerate(pool.weights_):
        networks = [pool.networks_[i] for i in np.flatnonzero(pool.network_members_ == m)]
        assert len(networks) == 4
        scores = scores + weight * np.log(
            np.mean([network.predict_proba(X_test) for network in networks], axis=0)
        )
    expected = scores - logsumexp(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(pool.predict_log_proba(X_test), expected, atol=1e-9)
    np.testing.assert_array_equal(pool.predict(X_test), pool.classes_[expected.argmax(axis=1)])


def test_the_pool_is_as_good_as_its_best_member(pool, clouds):
    (X, y), (X_test, y_test) = clouds
    alone = [
        log_loss(y_test, clone(m[1] if isinstance(m, tuple) else m).fit(X, y).predict_proba(X_test))
        for m in MEMBERS
    ]
    assert log_loss(y_test, pool.predict_proba(X_test)) < min(alone) + 0.01
    assert pool.loss_ == pytest.approx(log_loss(y, pool.held_out_proba_), rel=1e-9)


def test_densities_are_those_of_the_members_that_describe(pool, clouds):
    (X_test, _) = clouds[1]
    heard = np.flatnonzero(pool.density_weights_)
    assert {type(pool.networks_[i]).__name__ for i in heard} == {"SharedKernelClassifier"}
    expected = logsumexp(
        [pool.networks_[i].log_density(X_test) + np.log(pool.density_weights_[i]) for i in heard],
        axis=0,
    )
    np.testing.assert_allclose(pool.log_density(X_test), expected, rtol=1e-9)
    assert pool.density_weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(pool.kernel_posterior(X_test).sum(axis=1), 1)
    rows, labels = pool.sample(4000, random_state=0)
    for k in pool.classes_:  # each class has the mean of its mixtures
        means = [(n.mixing_[:, k] @ n.means_) for n in (pool.networks_[i] for i in heard)]
        np.testing.assert_allclose(rows[labels == k].mean(axis=0), np.mean(means, axis=0), atol=0.1)
    assert RejectClassifier(pool, novelty=0.01).fit(*clouds[0]).predict([[30.0, 30.0]])[0] == -1


def test_a_pool_without_densities_says_so(clouds):
    model = PooledClassifier([GaussianNB()], random_state=0).fit(*clouds[0])
    with pytest.raises(AttributeError) as caught:
        model.score_samples(clouds[1][0])
    assert "None of the members of this pool describes the classes" in str(caught.value.__cause__)


def test_other_class_priors_need_no_training(pool, clouds):
    (X_test, _) = clouds[1]
    odds = np.diff(pool.predict_log_proba(X_test))
    pool.class_prior = [0.9, 0.1]
    try:
        shifted = np.diff(pool.predict_log_proba(X_test))
    finally:
        pool.class_prior = None
    ratio = np.log(pool.class_prior_[1] / pool.class_prior_[0])
    np.testing.assert_allclose(shifted - odds, np.log(0.1 / 0.9) - ratio, atol=1e-9)


def test_the_default_pool(clouds):
    """Budgets, progress, views and what is said of trials; on few rows."""
    (X, y), (X_test, y_test) = clouds
    told = []
    model = PooledClassifier(budget="fast", random_state=0, callback=told.append).fit(
        X[:300], y[:300]
    )
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.35  # 0.22 at best
    assert [progress.name for progress in told] == model.trials_["name"].tolist()
    assert told[-1].left == ()
    assert set(model.members_) <= set(model.trials_["name"])
    assert len(model.weights_) == len(model.members_)
    assert model.view_centers_.shape[1] == 2
    rows, _ = model.sample(10, random_state=0)
    assert np.isfinite(model.score_samples(rows)).all()


def test_units_do_not_matter(clouds):
    """Up to the rounding of what decides on folds: a few rows may change theirs."""
    (X, y), (X_test, y_test) = clouds
    one = PooledClassifier(budget="fast", random_state=0).fit(X[:300], y[:300])
    other = PooledClassifier(budget="fast", random_state=0).fit(
        X[:300] * [1000.0, 1e-3] + 5.0, y[:300]
    )
    found = [one.predict_proba(X_test), other.predict_proba(X_test * [1000.0, 1e-3] + 5.0)]
    assert np.abs(found[0] - found[1]).mean() < 0.03
    assert abs(log_loss(y_test, found[0]) - log_loss(y_test, found[1])) < 0.01


def test_seconds_are_a_budget(clouds):
    model = PooledClassifier(budget=1e-9, random_state=0).fit(*(a[:200] for a in clouds[0]))
    assert len(model.members_) == 1
    assert (model.trials_["outcome"][1:] == "not tried: the time was spent").all()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "members must hold at least one classifier; got an empty list."),
        ([("scaler", object())], "members must be classifiers with predict_proba; scaler is"),
    ],
)
def test_bad_members(members, message, clouds):
    with pytest.raises(KernelpoolError, match=message):
        PooledClassifier(members).fit(*clouds[0])


def test_an_interruption_keeps_the_members_that_are_ready(clouds):
    class Interrupted(GaussianNB):
        def fit(self, X, y):
            raise KeyboardInterrupt

    model = PooledClassifier([("bayes", GaussianNB()), ("stop", Interrupted())], random_state=0)
    with pytest.raises(KeyboardInterrupt, match="1 member was pooled"):
        model.fit(*clouds[0])
    assert model.predict(clouds[1][0]).shape == (1000,)


def test_weights_count_and_folds_do_not_depend_on_the_order(clouds):
    (X, y), (X_test, _) = clouds
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (
        PooledClassifier([GaussianNB()], random_state=0).fit(X[i], y[i])
        for i in (slice(None), order)
    )
    np.testing.assert_allclose(one.predict_proba(X_test), other.predict_proba(X_test), rtol=1e-9)
    heavy = PooledClassifier([GaussianNB()], random_state=0).fit(X, y, np.where(y == 0, 3.0, 1.0))
    assert heavy.class_prior_[0] == pytest.approx(
        3 * (y == 0).sum() / (3 * (y == 0).sum() + (y == 1).sum())
    )
    assert heavy.predict_proba(X_test)[:, 0].mean() > one.predict_proba(X_test)[:, 0].mean()


def test_a_pool_whose_members_know_nothing_still_has_one():
    class Coin(DummyClassifier):
        """Sure of a class that has nothing to do with the row: any weight of it raises the loss."""

        def predict_proba(self, X):
            right = np.abs(np.sin(1e4 * np.asarray(X)[:, 0])) > 0.5
            return np.where(right[:, None], [[0.999, 0.001]], [[0.001, 0.999]])

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = PooledClassifier(
        [("coin", Coin())], pooling="log_linear", n_folds=2, random_state=0
    ).fit(x, y)
    assert len(model.members_) == 1
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)


def test_a_class_without_weight_is_named():
    x, y = make_clouds(60, random_state=0)
    y = np.where(np.arange(len(y)) < 5, 7, y)
    with pytest.raises(
        KernelpoolError, match="Every class needs a row of positive weight; class 7 has none"
    ):
        PooledClassifier(budget="fast").fit(x, y, sample_weight=(y != 7).astype(float))
