"""RejectClassifier: Chow's rule, rates of exchangeable rows, labels, and what is fitted and held
out.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import (
    ConformalClassifier,
    ParzenClassifier,
    PooledClassifier,
    RejectClassifier,
    SharedKernelClassifier,
)
from kernelpool.data.folds import folds_of
from kernelpool.datasets import make_clouds
from kernelpool.decide.reject import Decision
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import ambiguity_of, predictions
from kernelpool.rows import ArrayRows

MIXTURE = SharedKernelClassifier.prbf(4, random_state=0)


@parametrize_with_checks(
    # some checks want argmax of the probabilities for every training row: thresholds that refuse
    # none of them
    [RejectClassifier(LogisticRegression(), ambiguity=0.66)]
)
def test_it_passes_scikit_learns_checks(estimator, check):
    check(estimator)


class Posterior(ClassifierMixin, BaseEstimator):
    """Column 0 of a row is P(1|x), column 1 log p(x)."""

    def __init__(self, labels=(0, 1)):
        self.labels = labels

    def fit(self, X, y):
        self.classes_ = np.array(self.labels)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0.5).astype(int)]

    def score_samples(self, X):
        return X[:, 1]


def prefit(labels=(0, 1), **kwargs):
    return RejectClassifier(Posterior(labels).fit(None, None), **kwargs)


def two_gaussians(n, rng):
    """N(-1, 1) against N(1, 1), equally likely: P(1|x) = 1 / (1 + exp(-2x))."""
    y = rng.integers(2, size=n)
    x = rng.normal(2 * y - 1.0)
    return np.column_stack([1 / (1 + np.exp(-2 * x)), norm.logpdf(x, [[-1], [1]]).max(axis=0)]), y


# -- Chow's rule -----------------------------------------------------------------------------------


def test_error_and_refusals_of_two_gaussians_are_those_of_the_formula():
    """Refuse where |x| < c = log((1 - t) / t) / 2: R = P(|x| < c), E = P(x > c | class 0), both in
    closed form.
    """
    t = 0.2
    n = 100_000
    X, y = two_gaussians(n, np.random.default_rng(0))
    c = np.log((1 - t) / t) / 2
    refused = norm.cdf(c, 1) - norm.cdf(-c, 1)
    wrong = norm.cdf(-c, 1)
    model = prefit(ambiguity=t).fit(X, y)
    assert abs(1 - model.accepted(X).mean() - refused) < 4 * np.sqrt(refused * (1 - refused) / n)
    accuracy = 1 - wrong / (1 - refused)
    assert abs(model.score(X, y) - accuracy) < 4 * np.sqrt(wrong / n) / (1 - refused)
    assert abs(model.mean_cost(X, y, refusal=t) - (wrong + t * refused)) < 2 / np.sqrt(n)


def random_rows(seed, n=25):
    """Rows with ties, all numbers exact."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(9, size=n) / 8, rng.integers(6, size=n) * 1.0])
    y = (rng.uniform(size=n) < X[:, 0]).astype(int)
    return X, y, rng.integers(4, size=n) * 1.0 + (np.arange(n) == 0)


def acceptable(X, novel):
    """Every set of rows {ambiguity <= t} that a threshold can accept."""
    ambiguity = np.minimum(X[:, 0], 1 - X[:, 0])
    return [(ambiguity <= t) & ~novel for t in [-1.0, *np.unique(ambiguity)]]


@pytest.mark.parametrize("novelty", [None, 2.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:No held-out row is certain enough")
def test_the_cost_and_error_rules_equal_brute_force(seed, novelty):
    X, y, weight = random_rows(seed)
    wrong = (X[:, 0] > 0.5) != y
    novel = X[:, 1] < novelty if novelty else np.zeros(len(X), bool)
    common = {"novelty": novelty, "novelty_rule": "threshold"}
    for value in (0.25, 0.5):  # sums of them are exact: ties are ties
        model = prefit(ambiguity=value, ambiguity_rule="cost", **common).fit(X, y, weight)
        costs = [weight @ np.where(a, wrong, value) / weight.sum() for a in acceptable(X, novel)]
        cost = model.mean_cost(X, y, refusal=value, sample_weight=weight)
        assert cost == pytest.approx(min(costs), abs=1e-12)
        most = max(
            weight @ a for a, c in zip(acceptable(X, novel), costs, strict=True) if c == min(costs)
        )
        assert weight @ model.accepted(X) == most  # of equal costs, the one that refuses least
    for value in (0.125, 0.25):
        model = prefit(ambiguity=value, ambiguity_rule="error", **common).fit(X, y, weight)
        good = [
            weight @ a for a in acceptable(X, novel) if weight @ (a & wrong) <= value * (weight @ a)
        ]
        assert weight @ model.accepted(X) == max(good)


# -- rates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.1, 1 / 3, 0.9])
@pytest.mark.parametrize("n", [9, 99, 150])
@pytest.mark.filterwarnings("ignore:novelty=", "ignore:ambiguity=")
def test_rates_take_the_jth_lowest_density_and_the_jth_largest_ambiguity(rate, n):
    """Of n + 1 exchangeable rows the new one is beyond the j-th with a probability of j / (n +
    1).
    """
    score = np.random.default_rng(0).permutation(n) * 1.0  # distinct
    X = np.column_stack([score / (2 * n), score])
    y = np.zeros(n, int)
    j = int(np.floor(rate * (n + 1) + 1e-12))
    novel = prefit(novelty=rate).fit(X, y)
    j = max(j, 1)  # too few rows: beyond all of them
    assert novel.novelty_threshold_ == np.sort(score)[j - 1]
    ambiguous = prefit(ambiguity=rate, ambiguity_rule="rate").fit(X, y)
    assert ambiguous.ambiguity_threshold_ == pytest.approx(np.sort(X[:, 0])[::-1][j - 1])


@pytest.mark.parametrize("rule", ["cost", "rate", "error"])
def test_integer_weights_are_repeated_rows(rule):
    X, y, weight = random_rows(4)
    model = prefit(ambiguity=0.3, novelty=0.2, ambiguity_rule=rule)
    times = weight.astype(int)
    rows = np.repeat(X, times, axis=0)
    labels = np.repeat(y, times)
    one = RejectClassifier(**model.get_params(deep=False)).fit(X, y, sample_weight=weight)
    often = model.fit(rows, labels)
    assert one.ambiguity_threshold_ == often.ambiguity_threshold_
    assert one.novelty_threshold_ == often.novelty_threshold_
    error = one.coverage_curve(X, y, weight).error
    assert_allclose(error, often.coverage_curve(rows, labels).error)


def test_rows_without_density_are_novel():
    X, y = make_clouds(600, random_state=0)
    network = ParzenClassifier("hypersphere", standardize=False, radius=0.8).fit(X, y)
    far = np.array([[100.0, 100.0], [0.0, 0.0]])  # no kernel covers the first
    for rate in (0.05, 0.0):
        model = RejectClassifier(FrozenEstimator(network), ambiguity=0.4, novelty=rate).fit(X, y)
        assert (model.decide(far) == Decision.NOVEL).tolist() == [True, False]
    score = np.where(np.arange(100) < 20, -np.inf, 0.0)
    rows = np.column_stack([np.full(100, 0.3), score])
    with pytest.warns(UserWarning, match=r"20.0 % of the held-out rows have no density .*=0.1"):
        model = prefit(novelty=0.1).fit(rows, np.zeros(100, int))
    others = np.array([[0.3, -np.inf], [0.3, -1e300], [0.3, np.nan]])
    assert model.decide(others).tolist() == [2, 0, 2]


# -- labels and evaluation -------------------------------------------------------------------------

ROWS = np.array([[0.1, 1.0], [0.5, 1.0], [0.9, -1.0], [0.9, 1.0]])
"""Accepted, ambiguous, novel, accepted."""
BOTH = {"ambiguity": 0.2, "novelty": 0.0, "novelty_rule": "threshold"}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([0, 1], [0, -2, -1, 1]),
        ([False, True], [0, -2, -1, 1]),
        (np.array([3, 5], np.uint8), [3, -2, -1, 5]),
        ([-0.5, 1.5], [-0.5, -3.0, -2.0, 1.5]),
        (np.array(["a", "b"], object), ["a", "ambiguous", "novel", "b"]),
    ],
)
def test_labels_of_refusal_are_like_the_classes(classes, expected):
    found = prefit(classes, **BOTH).fit(ROWS, [classes[0]] * 4).predict(ROWS)
    assert_array_equal(found, expected)
    kind = np.asarray(classes).dtype.kind
    assert found.dtype.kind == {"b": "i", "u": "i"}.get(kind, kind)


def test_labels_of_refusal_may_be_chosen():
    model = prefit(("a", "b"), ambiguous_label="?", novel_label="?", **BOTH).fit(ROWS, ["a"] * 4)
    assert model.predict(ROWS).tolist() == ["a", "?", "?", "b"]
    for labels, kwargs in (
        (("a", "b"), {"ambiguous_label": "a"}),
        ((0, 1), {"novel_label": "x"}),
        (("a", "novel"), {}),
    ):
        model = prefit(labels, **kwargs, **BOTH)
        with pytest.raises(KernelpoolError):
            model.fit(ROWS, [labels[0]] * 4)
        with pytest.raises(NotFittedError):
            model.predict(ROWS)


def test_certain_rows_keep_their_order():
    """1 - max would round to zero for both."""
    assert np.diff(ambiguity_of(np.array([[1.0, 1e-30], [1.0, 1e-20]])))[0] > 0


# -- fitting ---------------------------------------------------------------------------------------


def test_defaults():
    X, y = make_clouds(500, random_state=0)
    model = RejectClassifier(MIXTURE).fit(X, y)
    fold = folds_of(None, X, y, np.ones(len(y)))
    held = np.empty(len(y))
    for out in (fold == f for f in range(5)):
        held[out] = clone(MIXTURE).fit(X[~out], y[~out]).score_samples(X[out])
    assert model.ambiguity_threshold_ == 0.2
    assert model.novelty_threshold_ == np.sort(held)[int(0.01 * (len(y) + 1)) - 1]
    for method in ("predict_proba", "predict_log_proba", "score_samples", "log_density"):
        expected = getattr(clone(MIXTURE).fit(X, y), method)(X)
        assert_array_equal(getattr(model, method)(X), expected)
    # one kind of refusal excludes the other
    assert RejectClassifier(MIXTURE, ambiguity=0.1).fit(X, y).novelty_threshold_ is None
    assert RejectClassifier(MIXTURE, novelty=0.1).fit(X, y).ambiguity_threshold_ is None
    for rows, weight in ((slice(98), None), (slice(None), np.full(len(y), 1 / len(y)))):
        with pytest.warns(UserWarning, match=r"novelty=0.01 needs at least 99 held-out rows"):
            few = RejectClassifier(MIXTURE).fit(X[rows], y[rows], weight)
        assert few.decide([[99.0, 99.0]]) == Decision.NOVEL
        assert (few.decide(X[rows]) == Decision.NOVEL).mean() < 0.03
    with pytest.warns(UserWarning, match=r"has no densities .* or pass novelty=None"):
        plain = RejectClassifier(LogisticRegression()).fit(X, y)
    assert plain.novelty_threshold_ is None
    plain = RejectClassifier(LogisticRegression(), novelty=None).fit(X, y)
    assert hasattr(plain, "decision_function")
    assert not hasattr(plain, "score_samples")


def test_held_out_rows_are_predicted_by_models_that_were_not_fitted_to_them():
    """One nearest neighbor predicts its own rows without error; held out, it errs on half of
    them.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = rng.integers(2, size=200)
    rule = {"ambiguity": 0.1, "ambiguity_rule": "error"}
    near = KNeighborsClassifier(1)
    with pytest.warns(UserWarning, match="every row will be refused"):
        RejectClassifier(near, **rule).fit(X, y)
    assert RejectClassifier(clone(near).fit(X, y), **rule).fit(X, y).accepted(X).all()


def test_a_pool_is_fitted_once():
    X, y = make_clouds(300, random_state=0)
    pool = PooledClassifier([MIXTURE], n_folds=2, random_state=0)
    model = RejectClassifier(pool, ambiguity=0.3, ambiguity_rule="rate", novelty=0.1).fit(X, y)
    held = ambiguity_of(model.estimator_.held_out_proba_)
    assert model.ambiguity_threshold_ == np.sort(held)[-int(0.3 * (len(y) + 1))]
    assert (model.decide(X) == Decision.NOVEL).mean() == pytest.approx(0.1, abs=0.05)


def test_thresholds_from_stored_predictions():
    X, y = make_clouds(400, random_state=0)
    y = np.where(y > 0, "yes", "no")
    network = clone(MIXTURE).fit(X[:200], y[:200])
    rows = predictions(network, X[200:])
    codes = (y[200:] == "yes").astype(int)
    codes[:20] = -1
    weight = np.arange(200) % 3
    for rule, value in (("cost", 0.2), ("error", 0.05), ("rate", 0.3), ("threshold", 0.2)):
        options = {"ambiguity": value, "ambiguity_rule": rule, "novelty": 0.05}
        hidden = np.where(codes < 0, "none", y[200:])
        fitted = RejectClassifier(network, **options).fit(X[200:], hidden, weight)
        stored = RejectClassifier.from_predictions(network, rows, codes, weight, **options)
        assert stored.thresholds_ == fitted.thresholds_
        assert_array_equal(stored.predict(X), fitted.predict(X))
    bare = replace(rows, score=None)
    with pytest.warns(UserWarning, match="no row is refused as novel"):
        stored = RejectClassifier.from_predictions(network, bare, codes, novelty=0.05)
    assert stored.novelty_threshold_ is None
    with pytest.raises(ValueError, match="ambiguity_rule"):
        RejectClassifier.from_predictions(network, rows, codes, ambiguity_rule="none")


@pytest.mark.parametrize("method", ["predict", "decide", "score", "mean_cost", "coverage_curve"])
def test_every_answer_takes_one_pass(method, monkeypatch):
    X, y = make_clouds(200, random_state=0)
    network = SharedKernelClassifier(2, training="em", random_state=0).fit(X, y)
    model = RejectClassifier(network, novelty=0.1).fit(X, y)
    passes = []
    each = ArrayRows.each
    monkeypatch.setattr(ArrayRows, "each", lambda *a: passes.append(1) or each(*a))
    arguments = {"predict": (), "decide": (), "mean_cost": (y, 0.2)}.get(method, (y,))
    getattr(model, method)(X, *arguments)
    assert len(passes) == 1


def test_decisions_take_no_labels_of_other_classifiers():
    X, y = two_gaussians(50, np.random.default_rng(0))
    model = prefit(ambiguity=0.2).fit(X, y)
    model.estimator_.predict = None  # not called
    assert set(model.decide(X)) == {0, 1}
    with pytest.raises(TypeError, match="not callable"):
        model.predict(X)


def test_a_fitted_model_is_not_fitted_again():
    X, y = make_clouds(400, random_state=0)
    network = clone(MIXTURE).fit(X[:200], y[:200])
    kwargs = {"ambiguity": 0.2, "ambiguity_rule": "cost", "novelty": 0.05}
    given = RejectClassifier(network, **kwargs).fit(X[200:], y[200:])
    frozen = clone(RejectClassifier(FrozenEstimator(network), **kwargs)).fit(X[200:], y[200:])
    assert given.estimator_ is network
    assert frozen.ambiguity_threshold_ == given.ambiguity_threshold_
    assert frozen.novelty_threshold_ == given.novelty_threshold_
    piped = make_pipeline(StandardScaler(), clone(network)).fit(X, y)
    drawn = RejectClassifier(piped).fit()  # novelty is set on rows drawn from the model
    assert drawn.decide([[-2.0, 0.0], [50.0, 50.0]]).tolist() == [0, 2]
    inner = network.sample(50_000, random_state=5)[0]
    below = network.score_samples(inner) < RejectClassifier(network).fit().novelty_threshold_
    assert below.mean() == pytest.approx(0.01, abs=0.004)


def test_weights_are_passed_with_and_without_routing():
    X, y = make_clouds(400, random_state=0)
    weight = np.random.default_rng(0).integers(3, size=400) * 1.0
    kwargs = {"ambiguity": 0.2, "ambiguity_rule": "rate", "cv": 2}
    plain = RejectClassifier(GaussianNB(), **kwargs).fit(X, y, sample_weight=weight)
    assert_array_equal(plain.estimator_.theta_, GaussianNB().fit(X, y, weight).theta_)
    with config_context(enable_metadata_routing=True):
        for use in (True, False):
            inner = GaussianNB().set_fit_request(sample_weight=use)
            routed = RejectClassifier(inner, **kwargs).set_fit_request(sample_weight=True)
            routed.fit(X, y, sample_weight=weight)
            expected = GaussianNB().fit(X, y, weight if use else None).theta_
            assert_array_equal(routed.estimator_.theta_, expected)
        grouped = RejectClassifier(GaussianNB(), **kwargs).set_params(cv=GroupKFold(2))
        grouped.fit(X, y, groups=np.arange(400) % 4)
    with pytest.warns(UserWarning, match=r"KNeighborsClassifier.fit takes no sample_weight"):
        RejectClassifier(KNeighborsClassifier(), **kwargs).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("wrapper", [partial(RejectClassifier, ambiguity=0.2), ConformalClassifier])
def test_what_our_classifiers_refuse_is_refused_around_any(wrapper):
    X, y = make_clouds(40, random_state=0)
    for given, match in (((X, 0 * y), "at least two classes"), ((X, y, -1 - y), "Negative values")):
        with pytest.raises(ValueError, match=match):
            wrapper(GaussianNB()).fit(*given)


@pytest.mark.parametrize("unlabeled", [-1, np.nan])
def test_rows_without_a_label_do_not_count_for_errors(unlabeled):
    X, y = make_clouds(400, random_state=0)
    hidden = np.where(np.arange(400) % 2, unlabeled, y)
    network = SharedKernelClassifier.prbf(4, unlabeled=unlabeled, random_state=0).fit(X, hidden)
    model = RejectClassifier(network, ambiguity=0.3, ambiguity_rule="cost")
    threshold = model.fit(X, hidden).ambiguity_threshold_
    assert threshold == model.fit(X[::2], y[::2]).ambiguity_threshold_
    assert set(model.set_params(estimator=clone(network)).fit(X, hidden).predict(X)) <= {-2, 0, 1}
