"""Explanations against brute force: marginals by scipy, Shapley values by all orders, conditional means by integration."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import explain
from kernelpool.inspection.explanation import shapley_parts

FAMILIES = ["spherical", "diag", "full", "tied"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    mix = np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 1.0]])
    x = (rng.normal(size=(240, 3)) + np.array([[0, 0, 0], [2, 1, 0], [0, 2, 2]])[y]) @ mix * [
        1,
        10,
        0.1,
    ] + [5, 0, -3]
    return x, y


def covariance_of(model, j):
    d = model.means_.shape[1]
    c = model.covariances_
    return {
        "spherical": lambda: c[j] * np.eye(d),
        "diag": lambda: np.diag(c[j]),
        "full": lambda: c[j],
        "tied": lambda: c,
    }[model.covariance_type_]()


def log_odds(model, x, columns, a, b):
    """log P(a|x_S) / P(b|x_S) by scipy."""
    if not columns:
        return np.log(model.class_prior_[a] / model.class_prior_[b])
    s = list(columns)
    log_p = np.array(
        [
            multivariate_normal(model.means_[j][s], covariance_of(model, j)[np.ix_(s, s)]).logpdf(
                x[s]
            )
            for j in range(len(model.means_))
        ]
    )
    with np.errstate(divide="ignore"):
        joint = logsumexp(log_p[:, None] + np.log(model.mixing_), axis=0) + np.log(
            model.class_prior_
        )
    return joint[a] - joint[b]


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_are_shapley_values_of_the_marginals(rows, family):
    x, y = rows
    model = SharedKernelClassifier.prbf(6, covariance_type=family, sharing=0.5, random_state=0)
    model.fit(x, y)
    for row in x[:3]:
        why = model.explain(row)
        a, b = (model.classes_.tolist().index(label) for label in (why.label, why.against))
        expected, orders = np.zeros(3), list(permutations(range(3)))
        for order in orders:
            for t, i in enumerate(order):
                before, after = order[:t], order[: t + 1]
                gain = log_odds(model, row, after, a, b) - log_odds(model, row, before, a, b)
                expected[i] += gain / len(orders)
        found = {part.name: part for part in why.features}
        for i in range(3):
            part = found[f"feature {i}"]
            others = [c for c in range(3) if c != i]
            lost = log_odds(model, row, range(3), a, b) - log_odds(model, row, others, a, b)
            np.testing.assert_allclose(part.part, expected[i], rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(part.without, lost, rtol=1e-6, atol=1e-8)
            assert (part.value, part.error) == (row[i], 0)
        np.testing.assert_allclose(why.prior, np.log(model.class_prior_[a] / model.class_prior_[b]))
        np.testing.assert_allclose(why.log_density, model.score_samples(row[None])[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_expected_is_the_mean_given_all_other_features_and_the_class(rows, family):
    x, y = rows
    model = SharedKernelClassifier.prbf(6, covariance_type=family, random_state=0).fit(x, y)
    why = model.explain(x[0])
    k = model.classes_.tolist().index(why.label)
    for i, part in ((int(part.name[-1]), part) for part in why.features):
        reach = 40 * x[:, i].std() + 15
        grid = np.linspace(x[0, i] - reach, x[0, i] + reach, 40001)
        along = np.repeat(x[:1], len(grid), axis=0)
        along[:, i] = grid
        log_density = model.log_density(along)[:, k]
        density = np.exp(log_density - log_density.max())
        np.testing.assert_allclose(part.expected, (grid * density).sum() / density.sum(), rtol=1e-3)


def test_kernels_are_those_of_the_posterior(rows):
    x, y = rows
    model = SharedKernelClassifier.prbf(6, random_state=0).fit(x, y)
    posterior = model.kernel_posterior(x[:1])[0]
    (first, *_) = model.explain(x[0]).kernels
    assert (first.index, first.posterior) == (posterior.argmax(), posterior.max())
    joint = (model.mixing_ * model.class_prior_)[first.index]
    assert first.label == model.classes_[joint.argmax()]
    assert first.class_posterior == pytest.approx(joint.max() / joint.sum())


MIXTURE = SharedKernelClassifier(4, random_state=0)
EVERY = [
    MIXTURE,
    SharedKernelClassifier.prbf(4, covariance_type="diag", random_state=0),
    SharingAverageClassifier(SharedKernelClassifier.prbf(4, random_state=0, standardize=True)),
    ParzenClassifier(),
    ReducedParzenClassifier(20, random_state=0),
    RBFNetworkClassifier(20, random_state=0),
    EMLogClassifier(4, random_state=0),
    CompetitiveNeuronsClassifier(3, random_state=0),
    PooledClassifier([MIXTURE, RBFNetworkClassifier(20)], n_folds=2, random_state=0),
    RejectClassifier(MIXTURE, ambiguity=0.2),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_parts_sum_to_the_log_odds_of_the_prediction_whatever_is_missing(rows, model):
    x, y = rows
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["plan"] = np.random.default_rng(3).choice(["basic", "plus"], len(x))
    frame.loc[::5, "a"] = np.nan
    frame.loc[::7, "plan"] = None
    model.fit(frame, y)
    few = frame[:12]
    for why, log_proba, missing in zip(
        explain(model, few), model.predict_log_proba(few), few.isna().to_numpy(), strict=True
    ):
        first, second = np.argsort(-log_proba, kind="stable")[:2]
        assert (why.label, why.against) == (model.classes_[first], model.classes_[second])
        expected = min(log_proba[first] - log_proba[second], 1e15)  # of a vote without opposition
        assert why.log_odds == pytest.approx(expected, rel=1e-9)
        assert why.probability == pytest.approx(np.exp(log_proba[first]))
        total = why.prior + sum(part.part for part in why.features)
        assert total == pytest.approx(why.log_odds, rel=1e-9, abs=1e-9)
        assert {part.name for part in why.features} == set(few.columns[~missing])
        shown = {part.name: part.value for part in why.features}
        assert shown.get("plan", "plus") in ("basic", "plus")


def test_many_features_are_sampled_with_an_honest_error_and_an_exact_sum():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=300)
    x = rng.normal(size=(300, 14)) + y[:, None] * rng.normal(size=14)
    model = SharedKernelClassifier.prbf(2, covariance_type="diag", sharing=0.0, random_state=0)
    (why,) = model.fit(x, y).explain(x[:1])
    np.testing.assert_allclose(why.prior + sum(part.part for part in why.features), why.log_odds)
    # one diagonal kernel a class: features are independent given the class, so that parts are
    # log-ratios in any order
    ratio = -0.5 * (np.log(model.covariances_) + (x[0] - model.means_) ** 2 / model.covariances_)
    own = model.classes_.tolist().index(why.label)
    owner = [int(np.flatnonzero(model.mixing_[:, k])[0]) for k in (own, 1 - own)]
    for part in why.features:
        i = int(part.name.split()[1])
        np.testing.assert_allclose(part.part, ratio[owner[0], i] - ratio[owner[1], i], atol=1e-8)
        assert part.error == pytest.approx(0, abs=1e-6)


def test_sampled_shapley_values_are_within_their_error_of_the_exact_ones():
    table = np.random.default_rng(2).normal(size=(2**8, 3))
    value = lambda masks: table[masks @ (1 << np.arange(8))]  # noqa: E731
    exact, none, _ = shapley_parts(value, 8, np.random.RandomState(0))
    sampled, error, _ = shapley_parts(value, 8, np.random.RandomState(0), max_sets=200)
    assert not none.any()
    assert (np.abs(sampled - exact) < 4.5 * error).all()
    assert (error > 0).all()
    for parts in (sampled, exact):
        np.testing.assert_allclose(parts.sum(axis=0), table[-1] - table[0])


def test_pipelines_and_other_classifiers_that_take_missing_cells_are_explained(rows):
    x, y = rows
    pipeline = make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, random_state=0))
    for model in (pipeline, HistGradientBoostingClassifier(max_iter=5, random_state=0)):
        (why,) = explain(model.fit(x, y), x[:1])
        assert {part.value for part in why.features} == set(x[0])  # in the units of the input
        total = why.prior + sum(part.part for part in why.features)
        assert total == pytest.approx(why.log_odds)


def test_a_row_of_a_data_frame_and_a_row_of_which_nothing_is_known(rows):
    x, y = rows
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(frame, y)
    one = model.explain(frame.iloc[0])
    assert one == model.explain(frame[:1])[0]
    assert str(one).startswith(f"{one.label} (")
    nothing = model.explain(pd.DataFrame([[np.nan] * 3], columns=["a", "b", "c"]))[0]
    assert nothing.features == ()
    assert nothing.log_odds == nothing.prior


def test_what_cannot_be_explained_is_refused(rows):
    x, y = rows
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(x, y)
    with pytest.raises(
        KernelpoolError, match=r"against must be one of the classes \[0, 1, 2\]; got 7"
    ):
        model.explain(x[0], against=7)
    assert 2 in {model.explain(x[0], against=2).against, model.explain(x[0]).label}
    with pytest.raises(ValueError, match="features"):
        model.explain([1.0, 2.0])
    alone = SharedKernelClassifier.from_parameters([[0.0]], [1.0], [[1.0]], [1.0], ["a"])
    with pytest.raises(KernelpoolError, match="one class only"):
        alone.explain([0.0])
