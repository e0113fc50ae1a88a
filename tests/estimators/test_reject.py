"""RejectClassifier: scikit-learn's contract, Chow's rule, and what is promised of held-out rates."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import ParzenClassifier, RejectClassifier, SharedKernelClassifier, load, save
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError
from kernelpool.estimators.reject import Decision
from kernelpool.inspection.metrics import ambiguity_of
from kernelpool.training.folds import folds_of
from kernelpool.training.reject import NOTHING_BELOW


@parametrize_with_checks(
    [
        # some checks want argmax of the probabilities for every training row: as thresholds that refuse none of them give
        RejectClassifier(LogisticRegression(), ambiguity=0.66),
    ]
)
def test_it_passes_scikit_learns_checks(estimator, check):
    check(estimator)


class Posterior(ClassifierMixin, BaseEstimator):
    """Answers with the probabilities and log-densities that are handed in as rows: column 0 is P(1|x), column 1 log p(x)."""

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


def two_gaussians(n, rng):
    """N(-1, 1) against N(1, 1), equally likely: P(1|x) = 1 / (1 + exp(-2x))."""
    y = rng.integers(2, size=n)
    x = rng.normal(2 * y - 1.0)
    return np.column_stack([1 / (1 + np.exp(-2 * x)), norm.logpdf(x, [[-1], [1]]).max(axis=0)]), y


def prefit(labels=(0, 1), **kwargs):
    return RejectClassifier(Posterior(labels).fit(None, None), **kwargs)


# -- Chow's rule ---------------------------------------------------------------------------------------------------


def test_the_threshold_is_chows_rule():
    X = np.array([[0.05, 0.0], [0.25, 0.0], [0.5, 0.0], [0.7, 0.0], [0.95, 0.0]])
    decision = prefit(ambiguity=0.25).fit(X, [0] * 5).decide(X)
    # 1 - max P = 0.05, 0.25, 0.5, 0.3, 0.05, and a row at the threshold is accepted
    np.testing.assert_array_equal(decision, [0, 0, 1, 1, 0])
    assert decision.dtype == np.int8
    np.testing.assert_array_equal(
        prefit(ambiguity=0.25).fit(X, [0] * 5).predict(X), [0, 0, -2, -2, 1]
    )


def test_error_and_refusals_of_two_gaussians_are_those_of_the_formula():
    """Refuse where |x| < c = log((1 - t) / t) / 2: R = P(|x| < c), E = P(x > c | class 0), both in closed form."""
    rng, t, n = np.random.default_rng(0), 0.2, 200_000
    X, y = two_gaussians(n, rng)
    c = np.log((1 - t) / t) / 2
    refused = norm.cdf(c, 1) - norm.cdf(-c, 1)
    wrong = norm.cdf(-c, 1)
    model = prefit(ambiguity=t).fit(X, y)
    assert abs(1 - model.accepted(X).mean() - refused) < 4 * np.sqrt(refused * (1 - refused) / n)
    assert abs(1 - model.score(X, y) - wrong / (1 - refused)) < 4 * np.sqrt(wrong / n) / (
        1 - refused
    )
    assert abs(model.mean_cost(X, y, refusal=t) - (wrong + t * refused)) < 4 * np.sqrt(1 / (4 * n))


@pytest.mark.parametrize("power", [1, 3])
def test_the_cost_rule_does_not_rely_on_the_probabilities(power):
    """A model that answers P^c / (P^c + (1-P)^c) is cut where the true probability is 0.2."""
    X, y = two_gaussians(200_000, np.random.default_rng(3))
    X[:, 0] = X[:, 0] ** power / (X[:, 0] ** power + (1 - X[:, 0]) ** power)
    model = prefit(ambiguity=0.2, ambiguity_rule="cost").fit(X, y)
    # near its least value the cost is flat: the threshold is less certain than the cost
    expected = 0.2**power / (0.2**power + 0.8**power)
    assert model.ambiguity_threshold_ == pytest.approx(expected, rel=0.4, abs=0.02 / power)


def random_rows(seed, n=25):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.integers(9, size=n) / 8, rng.integers(6, size=n) * 1.0]
    )  # with ties, exactly
    y = (rng.uniform(size=n) < X[:, 0]).astype(int)
    return X, y, rng.integers(4, size=n) * 1.0 + (np.arange(n) == 0)


def brute_force_costs(X, y, weight, cost, novel):
    """The cost of every set of rows {ambiguity <= t} that a threshold can accept."""
    doubt, wrong = np.minimum(X[:, 0], 1 - X[:, 0]), (X[:, 0] > 0.5) != y
    for t in [-1.0, *np.unique(doubt)]:
        accepted = (doubt <= t) & ~novel
        yield (
            t,
            sum(w * (e if a else cost) for w, e, a in zip(weight, wrong, accepted, strict=True))
            / weight.sum(),
            accepted,
        )


@pytest.mark.parametrize("cost", [0.25, 0.5])  # sums of them are exact: ties are ties
@pytest.mark.parametrize("novelty", [None, 2.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:No held-out row is certain enough")
def test_the_cost_rule_equals_the_brute_force_minimum(seed, novelty, cost):
    X, y, weight = random_rows(seed)
    novel = X[:, 1] < novelty if novelty else np.zeros(len(X), bool)
    model = prefit(ambiguity=cost, ambiguity_rule="cost", novelty=novelty, novelty_rule="threshold")
    model.fit(X, y, sample_weight=weight)
    costs = list(brute_force_costs(X, y, weight, cost, novel))
    least = min(found for _, found, _ in costs)
    assert model.mean_cost(X, y, refusal=cost, sample_weight=weight) == pytest.approx(
        least, abs=1e-12
    )
    most = max(weight @ accepted for _, found, accepted in costs if found == least)
    assert weight @ model.accepted(X) == most  # of equal costs, the one that refuses least


@pytest.mark.parametrize("error", [0.125, 0.25])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:No held-out row is certain enough")
def test_the_error_rule_accepts_the_most_rows_that_brute_force_finds(seed, error):
    X, y, weight = random_rows(seed)
    model = prefit(ambiguity=error, ambiguity_rule="error").fit(X, y, sample_weight=weight)
    wrong = (X[:, 0] > 0.5) != y
    ways = [
        accepted for _, _, accepted in brute_force_costs(X, y, weight, 0.0, np.zeros(len(X), bool))
    ]
    good = [weight @ a for a in ways if weight @ (a & wrong) <= error * (weight @ a)]
    assert weight @ model.accepted(X) == max(good)


def test_where_no_refusal_pays_none_is_made_of_rows_more_doubtful_than_any_seen():
    X = np.array([[0.1, 0.0], [0.2, 0.0]])
    for rule in ("cost", "error"):
        model = prefit(ambiguity=0.3, ambiguity_rule=rule).fit(X, [0, 0])
        assert model.accepted(np.array([[0.5, 0.0]]))[0]


# -- rates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 1 / 3, 0.9])
@pytest.mark.parametrize("n", [9, 19, 99, 100, 150])
@pytest.mark.filterwarnings("ignore:novelty=")
def test_the_novelty_threshold_is_the_jth_lowest_score(rate, n):
    score = np.random.default_rng(0).permutation(n) * 1.0  # distinct
    model = prefit(novelty=rate).fit(np.column_stack([np.full(n, 0.3), score]), np.zeros(n, int))
    j = int(np.floor(rate * (n + 1) + 1e-12))
    assert model.novelty_threshold_ == (np.sort(score)[j - 1] if j else NOTHING_BELOW)


def rates_of_fresh_rows(rule, rate, n, n_draws, seed):
    """Fitted to n rows, how many of 200 fresh rows are refused: one number a draw."""
    rng, refused = np.random.default_rng(seed), []
    for _ in range(n_draws):
        X, y = two_gaussians(n + 200, rng)
        kwargs = (
            {"novelty": rate}
            if rule == "novelty"
            else {"ambiguity": rate, "ambiguity_rule": "rate"}
        )
        refused.append((~prefit(**kwargs).fit(X[:n], y[:n]).accepted(X[n:])).mean())
    return np.array(refused)


@pytest.mark.parametrize("rule", ["novelty", "ambiguity"])
@pytest.mark.parametrize(("rate", "n"), [(0.05, 30), (0.1, 19), (0.2, 57)])
def test_no_more_than_the_rate_of_fresh_rows_is_refused(rule, rate, n):
    """P(refused) = j / (n + 1) over draws of the held-out rows, j = floor(rate (n + 1)), for continuous laws.

    Given the held-out rows the rate itself is Beta(j, n + 1 - j), of which the mean over 400 draws is known to 4 sigma.
    """
    refused = rates_of_fresh_rows(rule, rate, n, 400, seed=5)
    j = np.floor(rate * (n + 1) + 1e-12)
    expected = j / (n + 1)
    sigma = np.sqrt((expected * (1 - expected) / (n + 2) + expected * (1 - expected) / 200) / 400)
    assert expected <= rate + 1e-12
    assert abs(refused.mean() - expected) < 4 * sigma


def test_integer_weights_are_repeated_rows():
    X, y, weight = random_rows(4)
    for kwargs in (
        {"ambiguity_rule": "cost"},
        {"ambiguity_rule": "rate"},
        {"ambiguity_rule": "error"},
    ):
        once = prefit(ambiguity=0.3, novelty=0.2, **kwargs).fit(X, y, sample_weight=weight)
        times = weight.astype(int)
        often = prefit(ambiguity=0.3, novelty=0.2, **kwargs).fit(
            np.repeat(X, times, axis=0), np.repeat(y, times)
        )
        assert once.ambiguity_threshold_ == often.ambiguity_threshold_
        assert once.novelty_threshold_ == often.novelty_threshold_
        np.testing.assert_allclose(
            once.coverage_curve(X, y, weight).error,
            often.coverage_curve(np.repeat(X, times, axis=0), np.repeat(y, times)).error,
        )


def test_too_few_rows_for_the_rate_are_told():
    X = np.column_stack([np.full(10, 0.3), np.arange(10.0)])
    with pytest.warns(
        UserWarning,
        match=r"novelty=0.01 needs at least 99 held-out rows to set a threshold; there are 10,",
    ):
        model = prefit(novelty=0.01).fit(X, np.zeros(10, int))
    assert model.novelty_threshold_ == NOTHING_BELOW
    assert model.accepted(X).all()


# -- rows of no density ---------------------------------------------------------------------------------------------


def test_rows_that_no_kernel_covers_are_novel_and_nothing_is_nan():
    X, y = make_clouds(600, random_state=0)
    network = ParzenClassifier("hypersphere", standardize=False, radius=0.8).fit(X, y)
    far = np.array([[100.0, 100.0], [0.0, 0.0]])
    assert network.score_samples(far)[0] == -np.inf
    for rate in (0.05, 0.0):
        model = RejectClassifier(FrozenEstimator(network), ambiguity=0.4, novelty=rate).fit(X, y)
        assert np.isfinite(model.novelty_threshold_)
        np.testing.assert_array_equal(model.decide(far) == Decision.NOVEL, [True, False])
        assert not np.isnan(model.predict_proba(far)).any()
        curve = model.coverage_curve(np.vstack([X, far[:1]]), np.append(y, 0))
        assert not any(np.isnan(part).any() for part in curve)
        assert curve.coverage[-1] < 1


def test_more_uncovered_rows_than_the_rate_are_told():
    score = np.where(np.arange(100) < 20, -np.inf, 0.0)
    with pytest.warns(
        UserWarning, match=r"20.0 % of the held-out rows have no density .*, more than novelty=0.1"
    ):
        model = prefit(novelty=0.1).fit(
            np.column_stack([np.full(100, 0.3), score]), np.zeros(100, int)
        )
    assert (
        model.decide(np.array([[0.3, -np.inf], [0.3, -1e300], [0.3, np.nan]])) == [2, 0, 2]
    ).all()


def test_novelty_comes_first():
    model = prefit(ambiguity=0.1, novelty=0.0, novelty_rule="threshold").fit(
        np.zeros((2, 2)), [0, 1]
    )
    np.testing.assert_array_equal(
        model.decide(np.array([[0.5, -1.0], [0.5, 1.0], [0.0, -1.0], [0.0, 1.0]])), [2, 1, 2, 0]
    )


# -- labels ---------------------------------------------------------------------------------------------------------


ROWS = np.array(
    [[0.1, 1.0], [0.5, 1.0], [0.9, -1.0], [0.9, 1.0]]
)  # accepted, ambiguous, novel, accepted


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([0, 1], [0, -2, -1, 1]),
        ([-1, 1], [-1, -3, -2, 1]),
        ([-7, 3], [-7, -9, -8, 3]),
        ([False, True], [0, -2, -1, 1]),
        (np.array([3, 5], np.uint8), [3, -2, -1, 5]),
        ([0.5, 1.5], [0.5, -2.0, -1.0, 1.5]),
        ([-0.5, 1.5], [-0.5, -3.0, -2.0, 1.5]),
        (["a", "b"], ["a", "ambiguous", "novel", "b"]),
        (np.array(["a", "b"], object), ["a", "ambiguous", "novel", "b"]),
    ],
)
def test_labels_of_refusal_are_like_the_classes(classes, expected):
    kwargs = {"ambiguity": 0.2, "novelty": 0.0, "novelty_rule": "threshold"}
    found = prefit(classes, **kwargs).fit(ROWS, [classes[0]] * 4).predict(ROWS)
    np.testing.assert_array_equal(found, expected)
    kind = np.asarray(classes).dtype.kind
    assert found.dtype.kind == {"b": "i", "u": "i"}.get(kind, kind)
    if kind in "if":
        assert found.dtype == np.asarray(classes).dtype


def test_labels_of_refusal_may_be_chosen():
    kwargs = {"ambiguity": 0.2, "novelty": 0.0, "novelty_rule": "threshold"}
    model = prefit(("a", "b"), ambiguous_label="?", novel_label="?", **kwargs).fit(ROWS, ["a"] * 4)
    np.testing.assert_array_equal(model.predict(ROWS), ["a", "?", "?", "b"])
    with pytest.raises(
        KernelpoolError,
        match=r"ambiguous_label must not be one of the classes \['a', 'b'\]; got 'a'\.",
    ):
        prefit(("a", "b"), ambiguous_label="a", **kwargs).fit(ROWS, ["a"] * 4)
    with pytest.raises(
        KernelpoolError, match=r"novel_label must be a number, as the classes are; got 'x'\."
    ):
        prefit(novel_label="x", **kwargs).fit(ROWS, [0] * 4)
    with pytest.raises(
        KernelpoolError, match=r"A class is called 'novel': name another novel_label\."
    ):
        prefit(("a", "novel"), **kwargs).fit(ROWS, ["a"] * 4)


# -- evaluation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_the_coverage_curve_equals_counting(seed):
    X, y, weight = random_rows(seed)
    model = prefit(novelty=2.0, novelty_rule="threshold").fit(X, y)
    curve = model.coverage_curve(X, y, weight)
    doubt, wrong, novel = np.minimum(X[:, 0], 1 - X[:, 0]), (X[:, 0] > 0.5) != y, X[:, 1] < 2
    assert len(curve.thresholds) == len(np.unique(doubt[~novel & (weight > 0)]))
    for coverage, error, t in zip(*curve, strict=True):
        accepted = (doubt <= t) & ~novel
        assert coverage == pytest.approx(weight[accepted].sum() / weight.sum())
        assert error == pytest.approx(weight[accepted & wrong].sum() / weight[accepted].sum())


def test_the_score_is_that_of_accepted_rows():
    X, y = two_gaussians(500, np.random.default_rng(0))
    model = prefit(ambiguity=0.1).fit(X, y)
    kept = np.abs(X[:, 0] - 0.5) >= 0.4
    assert model.score(X, y) == pytest.approx(np.mean((X[kept, 0] > 0.5) == y[kept]))
    weight = np.arange(500.0)
    right = (X[kept, 0] > 0.5) == y[kept]
    assert model.score(X, y, weight) == pytest.approx(np.average(right, weights=weight[kept]))


def test_the_score_of_no_accepted_row_is_zero_with_a_warning():
    X, y = np.full((4, 2), 0.5), [0, 1, 0, 1]
    with pytest.warns(UndefinedMetricWarning, match="No row is accepted"):
        assert prefit(ambiguity=0.1).fit(X, y).score(X, y) == 0


def test_an_error_that_cannot_be_had_refuses_all_and_says_so():
    X, y = np.array([[0.9, 0.0], [0.8, 0.0]]), [0, 0]  # both wrong
    with pytest.warns(
        UserWarning,
        match=r"No held-out row is certain enough for ambiguity=0.1 with ambiguity_rule='error'",
    ):
        model = prefit(ambiguity=0.1, ambiguity_rule="error").fit(X, y)
    assert not model.accepted(X).any()


def test_confident_rows_keep_their_order():
    """1 - max would round to zero for both."""
    assert np.diff(ambiguity_of(np.array([[1.0, 1e-30], [1.0, 1e-20]])))[0] > 0


# -- habits -----------------------------------------------------------------------------------------------------------


def test_probabilities_are_untouched():
    X, y = make_clouds(500, random_state=0)
    network = SharedKernelClassifier.prbf(6, random_state=0).fit(X, y)
    model = RejectClassifier(FrozenEstimator(network), ambiguity=0.1, novelty=0.1).fit(X, y)
    for method in ("predict_proba", "predict_log_proba", "score_samples", "log_density"):
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(network, method)(X))
    assert not hasattr(model, "decision_function")
    assert hasattr(RejectClassifier(LogisticRegression(), ambiguity=None), "decision_function")
    assert not hasattr(RejectClassifier(LogisticRegression(), ambiguity=None), "score_samples")


def test_held_out_rows_are_predicted_by_models_that_were_not_fitted_to_them():
    """One nearest neighbor predicts its own rows without error; held out, it errs, and its error can be told."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    with pytest.warns(UserWarning, match="every row will be refused"):
        RejectClassifier(KNeighborsClassifier(1), ambiguity=0.1, ambiguity_rule="error").fit(X, y)
    seen = RejectClassifier(
        KNeighborsClassifier(1).fit(X, y), ambiguity=0.1, ambiguity_rule="error"
    ).fit(X, y)
    assert seen.accepted(X).all()


def GaussianMixtureOf():  # noqa: N802
    return SharedKernelClassifier.prbf(4, random_state=0)


def test_given_thresholds_hold_nothing_out():
    X, y = make_clouds(400, random_state=0)
    model = RejectClassifier(GaussianNB(), ambiguity=0.2, cv=ShuffleSplit(-5)).fit(
        X, y
    )  # a splitter that cannot split
    np.testing.assert_array_equal(model.estimator_.theta_, GaussianNB().fit(X, y).theta_)


def test_frozen_and_prefit_agree_and_frozen_survives_clone():
    X, y = make_clouds(400, random_state=0)
    network = GaussianMixtureOf().fit(X[:200], y[:200])
    frozen = RejectClassifier(
        FrozenEstimator(network), ambiguity=0.2, ambiguity_rule="cost", novelty=0.05
    )
    for model in (frozen, clone(frozen)):
        model.fit(X[200:], y[200:])
        given = RejectClassifier(network, ambiguity=0.2, ambiguity_rule="cost", novelty=0.05).fit(
            X[200:], y[200:]
        )
        assert model.ambiguity_threshold_ == given.ambiguity_threshold_
        assert model.novelty_threshold_ == given.novelty_threshold_
        assert given.estimator_ is network
    weight = 1.0 + 4 * (X[200:, 0] > 1)
    frozen.fit(X[200:], y[200:], sample_weight=weight)
    given.fit(X[200:], y[200:], sample_weight=weight)
    assert frozen.novelty_threshold_ == given.novelty_threshold_ != model.novelty_threshold_


def test_it_pickles_and_clones():
    X, y = make_clouds(400, random_state=0)
    model = RejectClassifier(GaussianMixtureOf(), ambiguity=0.2, novelty=0.05).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert not hasattr(clone(model), "estimator_")


def test_pipelines_and_searches_work():
    X, y = make_clouds(400, random_state=0)
    chain = make_pipeline(StandardScaler(), GaussianMixtureOf())
    model = RejectClassifier(chain, ambiguity=0.2, novelty=0.05).fit(X, y)
    assert 0 < (~model.accepted(X)).mean() < 1
    search = GridSearchCV(
        model,
        {"ambiguity": [0.1, 0.4], "estimator__sharedkernelclassifier__n_kernels": [2, 4]},
        cv=2,
    )
    assert search.fit(X, y).best_params_["ambiguity"] == 0.1
    assert cross_val_score(model, X, y, cv=2).min() > 0.8


def test_weights_travel_with_and_without_routing():
    X, y = make_clouds(400, random_state=0)
    weight = np.random.default_rng(0).integers(3, size=400) * 1.0
    kwargs = {"ambiguity": 0.2, "ambiguity_rule": "rate", "cv": 2}
    plain = RejectClassifier(GaussianNB(), **kwargs).fit(X, y, sample_weight=weight)
    assert (
        plain.ambiguity_threshold_
        != RejectClassifier(GaussianNB(), **kwargs).fit(X, y).ambiguity_threshold_
    )
    np.testing.assert_array_equal(plain.estimator_.theta_, GaussianNB().fit(X, y, weight).theta_)
    with config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        routed = (
            RejectClassifier(inner, **kwargs)
            .set_fit_request(sample_weight=True)
            .fit(X, y, sample_weight=weight)
        )
        assert routed.ambiguity_threshold_ == plain.ambiguity_threshold_
        off = RejectClassifier(
            GaussianNB().set_fit_request(sample_weight=False), **kwargs
        ).set_fit_request(sample_weight=True)
        off.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(off.estimator_.theta_, GaussianNB().fit(X, y).theta_)
    with pytest.warns(
        UserWarning,
        match=r"KNeighborsClassifier.fit takes no sample_weight: the weights count for held-out rows",
    ):
        RejectClassifier(KNeighborsClassifier(), **kwargs).fit(X, y, sample_weight=weight)


def test_held_out_rows_must_have_some_weight():
    X, y = make_clouds(80, random_state=0)
    weight = np.repeat([1.0, 0.0], 40)
    model = RejectClassifier(
        GaussianNB(), ambiguity=0.1, ambiguity_rule="rate", cv=[(np.arange(40), np.arange(40, 80))]
    )
    with pytest.raises(
        KernelpoolError,
        match="sample_weight is zero for every held-out row; at least one must be positive",
    ):
        model.fit(X, y, sample_weight=weight)


def test_novelty_needs_a_density():
    with pytest.raises(
        KernelpoolError,
        match=r"novelty needs a classifier with dens.*; LogisticRegression has none. Set novelty=N",
    ):
        RejectClassifier(LogisticRegression(), novelty=0.1).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("value", [-0.1, 1.0, 7])
def test_a_rate_of_novelty_is_a_share(value):
    with pytest.raises(
        KernelpoolError,
        match=rf"novelty must lie in \[0, 1\) where novelty_rule='rate'; got {value}\.",
    ):
        prefit(novelty=value).fit(ROWS, [0] * 4)


def test_rows_without_a_label_count_for_rates_and_not_for_errors():
    X, y = make_clouds(400, random_state=0)
    hidden = np.where(np.arange(400) % 2, -1, y)
    network = SharedKernelClassifier.prbf(4, unlabeled=-1, random_state=0)
    model = RejectClassifier(
        FrozenEstimator(network.fit(X, hidden)), ambiguity=0.3, ambiguity_rule="cost"
    ).fit(X, hidden)
    known = RejectClassifier(FrozenEstimator(network), ambiguity=0.3, ambiguity_rule="cost").fit(
        X[::2], y[::2]
    )
    assert model.ambiguity_threshold_ == known.ambiguity_threshold_


def test_a_label_that_is_refused_leaves_nothing_fitted():
    clouds = make_clouds(100, random_state=0)
    reject = RejectClassifier(GaussianNB(), ambiguity=0.1, novel_label="novel")
    with pytest.raises(KernelpoolError, match="novel_label must be a number"):
        reject.fit(*clouds)
    with pytest.raises(NotFittedError):
        reject.predict(clouds[0])


def test_defaults():
    X, y = make_clouds(1000, random_state=0)
    model = RejectClassifier(SharedKernelClassifier.prbf(12, random_state=0)).fit(X, y)
    assert model.ambiguity_threshold_ == 0.2
    fold = folds_of(None, X, y, np.ones(1000))
    held = np.concatenate(
        [
            clone(model.estimator).fit(X[train], y[train]).score_samples(X[test])
            for train, test in ((fold != f, fold == f) for f in range(5))
        ]
    )
    assert (
        model.novelty_threshold_ == np.sort(held)[9]
    )  # floor(0.01 (1000 + 1)) = 10 rows are lower or equal
    assert model.predict([[0.0, 0.0], [0.0, 1.5], [50.0, 50.0]]).tolist() == [0, -2, -1]
    # one that is asked for one kind of refusal makes no other, and where rows are too few none is novel
    assert (
        RejectClassifier(SharedKernelClassifier.prbf(12, random_state=0), ambiguity=0.1)
        .fit(X, y)
        .novelty_threshold_
        is None
    )
    assert (
        RejectClassifier(SharedKernelClassifier.prbf(12, random_state=0), novelty=0.1)
        .fit(X, y)
        .ambiguity_threshold_
        is None
    )
    few = RejectClassifier(SharedKernelClassifier.prbf(2, random_state=0)).fit(X[:40], y[:40])
    assert few.novelty_threshold_ < -1e300
    assert RejectClassifier(LogisticRegression()).fit(X, y).novelty_threshold_ is None
    nothing = RejectClassifier(
        SharedKernelClassifier.prbf(12, random_state=0), ambiguity=None, novelty=None
    ).fit(X, y)
    assert (nothing.decide(X) == 0).all()


def test_a_fitted_or_loaded_model_is_taken_as_it_is(tmp_path):
    X, y = make_clouds(500, random_state=0)
    network = SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    save(network, tmp_path / "m.safetensors")
    for model in (
        network,
        load(tmp_path / "m.safetensors"),
        make_pipeline(StandardScaler(), clone(network)).fit(X, y),
    ):
        reject = RejectClassifier(model).fit()  # novelty is set on rows drawn from the model
        assert reject.decide([[0.0, 0.0], [50.0, 50.0]]).tolist() == [0, 2]
        assert reject.estimator_ is model
        inner = model[-1] if hasattr(model, "steps") else model
        drawn = inner.sample(100_000, random_state=5)[0]
        assert (inner.score_samples(drawn) < reject.novelty_threshold_).mean() == pytest.approx(
            0.01, abs=0.003
        )
    scored = RejectClassifier(network, novelty=0.05).fit(*make_clouds(400, random_state=1))
    assert scored.estimator_ is network
    no_sample = Posterior(("a", "b")).fit(None, None)
    for reject, message in (
        (RejectClassifier(network, ambiguity=0.1, ambiguity_rule="cost"), "needs rows with labels"),
        (RejectClassifier(network, novelty_rule="threshold"), "the lowest log-density"),
        (RejectClassifier(no_sample, novelty=0.1), "cannot draw rows, by which novelty is set"),
    ):
        with pytest.raises(KernelpoolError, match=message):
            reject.fit()
    with pytest.raises(NotFittedError):
        RejectClassifier(network).predict(X)
