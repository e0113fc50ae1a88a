"""Explanations against brute force: marginals by scipy, Shapley values by all orders, conditional means by integration."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    questions,
)
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.explanation import shapley_parts
from kernelpool.tables.encoder import TableEncoder

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
    model = SharedKernelClassifier.prbf(6, covariance_type=family, sharing=0.5, random_state=0).fit(
        x, y
    )
    for row in x[:3]:
        why = model.explain(row)
        a, b = (
            int(np.flatnonzero(model.classes_ == label)[0]) for label in (why.label, why.against)
        )
        orders = list(permutations(range(3)))
        expected = np.zeros(3)
        for order in orders:
            for t, i in enumerate(order):
                gain = log_odds(model, row, order[: t + 1], a, b) - log_odds(
                    model, row, order[:t], a, b
                )
                expected[i] += gain / len(orders)
        found = {part.name: part for part in why.features}
        for i in range(3):
            part = found[f"feature {i}"]
            others = [c for c in range(3) if c != i]
            np.testing.assert_allclose(part.part, expected[i], rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(
                part.without,
                log_odds(model, row, range(3), a, b) - log_odds(model, row, others, a, b),
                rtol=1e-6,
                atol=1e-8,
            )
            assert part.value == row[i]
            assert part.error == 0
        np.testing.assert_allclose(why.prior, np.log(model.class_prior_[a] / model.class_prior_[b]))
        log_proba = model.predict_log_proba(row[None])[0]
        np.testing.assert_allclose(why.log_odds, log_proba[a] - log_proba[b], rtol=1e-9)
        np.testing.assert_allclose(
            why.prior + sum(part.part for part in why.features), why.log_odds, rtol=1e-9
        )
        np.testing.assert_allclose(why.probability, np.exp(log_proba[a]))
        np.testing.assert_allclose(why.log_density, model.score_samples(row[None])[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_expected_is_the_mean_given_all_other_features(rows, family):
    x, y = rows
    model = SharedKernelClassifier.prbf(6, covariance_type=family, random_state=0).fit(x, y)
    row = x[0]
    why = model.explain(row)
    k = int(np.flatnonzero(model.classes_ == why.label)[0])
    for i, part in ((int(part.name[-1]), part) for part in why.features):
        reach = 40 * x[:, i].std() + 15
        grid = np.linspace(row[i] - reach, row[i] + reach, 40001)
        along = np.repeat(row[None], len(grid), axis=0)
        along[:, i] = grid
        log_density = model.log_density(along)[:, k]
        density = np.exp(log_density - log_density.max())
        mean = (grid * density).sum() / density.sum()
        deviation = np.sqrt(((grid - mean) ** 2 * density).sum() / density.sum())
        np.testing.assert_allclose([part.expected, part.deviation], [mean, deviation], rtol=1e-3)


def test_kernels_are_those_of_the_posterior(rows):
    x, y = rows
    model = SharedKernelClassifier.prbf(6, random_state=0).fit(x, y)
    posterior = model.kernel_posterior(x[:1])[0]
    (first, *_) = model.explain(x[0]).kernels
    assert first.index == posterior.argmax()
    assert first.posterior == posterior.max()
    joint = (model.mixing_ * model.class_prior_)[first.index]
    assert first.label == model.classes_[joint.argmax()]
    assert first.class_posterior == pytest.approx(joint.max() / joint.sum())


@pytest.mark.parametrize(
    "model",
    [
        SharedKernelClassifier.prbf(6, training="conditional", random_state=0),
        SharedKernelClassifier.prbf(
            6,
            covariance_type="full",
            training="conditional",
            class_prior="balanced",
            random_state=0,
        ),
        SharingAverageClassifier(6, covariance_type="diag", random_state=0),
        ParzenClassifier(),
        ParzenClassifier(metric="learned", random_state=0),
        ParzenClassifier(standardize=False),
    ],
    ids=lambda model: (
        f"{type(model).__name__}-{model.get_params().get('training')}-{model.get_params().get('metric')}"
    ),
)
def test_the_log_odds_of_mixtures_are_those_of_predict_proba(rows, model):
    x, y = rows
    model.fit(x, y)
    for fitted in (model, model.with_class_prior({0: 0.7})):
        for row, log_proba, why in zip(
            x[:5], fitted.predict_log_proba(x[:5]), fitted.explain(x[:5]), strict=True
        ):
            order = np.argsort(-log_proba)
            assert (why.label, why.against) == tuple(model.classes_[order[:2]])
            np.testing.assert_allclose(
                why.log_odds, log_proba[order[0]] - log_proba[order[1]], rtol=1e-6, atol=1e-9
            )
            np.testing.assert_allclose(
                why.prior + sum(p.part for p in why.features), why.log_odds, rtol=1e-9
            )
            assert {p.value for p in why.features} == set(row)


def test_many_features_are_sampled_with_an_honest_error_and_an_exact_sum():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=300)
    x = rng.normal(size=(300, 14)) + y[:, None] * rng.normal(size=14)
    model = SharedKernelClassifier.prbf(2, covariance_type="diag", sharing=0.0, random_state=0).fit(
        x, y
    )
    (why,) = model.explain(x[:1])
    np.testing.assert_allclose(why.prior + sum(part.part for part in why.features), why.log_odds)
    # one diagonal kernel a class: features are independent given the class, so that parts are log-ratios in any order
    ratio = -0.5 * (np.log(model.covariances_) + (x[0] - model.means_) ** 2 / model.covariances_)
    own = int(np.flatnonzero(model.classes_ == why.label)[0])
    for part in why.features:
        i = int(part.name.split()[1])
        owner = [int(np.flatnonzero(model.mixing_[:, k])[0]) for k in (own, 1 - own)]
        np.testing.assert_allclose(part.part, ratio[owner[0], i] - ratio[owner[1], i], atol=1e-8)
        assert part.error == pytest.approx(0, abs=1e-6)


def test_sampled_shapley_values_are_within_their_error_of_the_exact_ones():
    table = np.random.default_rng(2).normal(size=2**8)
    value = lambda players: np.array([table[sum(1 << i for i in players)]])  # noqa: E731
    exact, none = shapley_parts(value, 8, np.random.default_rng(0))
    sampled, error = shapley_parts(value, 8, np.random.default_rng(0), most_sets=200)
    assert not none.any()
    assert (np.abs(sampled - exact) < 4 * error).all()
    assert (error > 0).all()
    np.testing.assert_allclose(sampled.sum(), table[-1] - table[0])
    np.testing.assert_allclose(exact.sum(), table[-1] - table[0])


def test_a_pipeline_is_explained_in_the_units_and_words_of_its_input():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {"height": rng.normal(170, 10, n), "city": rng.choice(["Rome", "Oslo", "Lima"], n)}
    )
    y = np.where((frame.height > 172) ^ (frame.city == "Oslo"), "tall", "other")
    frame["weight"] = rng.normal(70, 5, n)
    model = make_pipeline(
        TableEncoder(["city"], standardize=True),
        SharedKernelClassifier.prbf(8, covariance_type="diag", random_state=0),
    ).fit(frame, y)
    (why,) = questions.explain(model, frame[:1])
    parts = {part.name: part for part in why.features}
    assert set(parts) == {"height", "city", "weight"}
    assert parts["height"].value == pytest.approx(frame.height[0])
    assert parts["city"].value == frame.city[0]
    assert parts["city"].expected is None
    assert 140 < parts["height"].expected < 200
    assert parts["height"].deviation > 1
    np.testing.assert_allclose(why.prior + sum(part.part for part in why.features), why.log_odds)
    proba = np.sort(model.predict_proba(frame[:1])[0])
    np.testing.assert_allclose(why.log_odds, np.log(proba[1] / proba[0]), rtol=1e-6)
    text = str(why)
    assert text.startswith(f"{why.label} (")
    assert f"city = {frame.city[0]}: " in text
    refusing = RejectClassifier(model, ambiguity=0.2).fit(frame, y)
    assert str(questions.explain(refusing, frame[:1])[0]) == text


def test_other_classifiers_are_explained_with_background_rows(rows):
    x, y = rows
    linear = LogisticRegression().fit(StandardScaler().fit_transform(x), y == 0)
    z = StandardScaler().fit_transform(x)
    (why,) = questions.explain(linear, z[:1], background=z[:50])
    # v(S): log-odds of the mean probability over the background rows, by hand
    mixed = z[:50].copy()
    mixed[:, 0] = z[0, 0]
    known, unknown = (linear.predict_proba(rows).mean(axis=0) for rows in (mixed, z[:50]))
    assert why.prior == pytest.approx(np.log(unknown[int(why.label)] / unknown[1 - int(why.label)]))
    assert np.isfinite(np.log(known)).all()
    for model in (
        RBFNetworkClassifier(random_state=0),
        CompetitiveNeuronsClassifier(3, random_state=0),
    ):
        model.fit(z, y)
        with pytest.raises(KernelpoolError, match=r"knows no densities.*pass background="):
            model.explain(z[0])
        found = model.explain(z[0], background=z[:20])
        np.testing.assert_allclose(
            found.prior + sum(part.part for part in found.features), found.log_odds
        )
        assert found.probability == pytest.approx(model.predict_proba(z[:1]).max(), rel=1e-6)


def test_a_pool_draws_its_background_from_its_densities(rows):
    x, y = rows
    members = [
        SharedKernelClassifier.prbf(3, covariance_type="full", random_state=0),
        LogisticRegression(),
    ]
    model = PooledClassifier(members, n_folds=2, random_state=0).fit(x, y)
    first, second = model.explain(x[0]), model.explain(x[0])
    assert first == second
    assert first.probability == pytest.approx(model.predict_proba(x[:1]).max(), rel=1e-6)
    assert first.kernels


def test_a_row_of_a_data_frame_is_one_explanation_and_names_are_its_columns(rows):
    x, y = rows
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(frame, y)
    assert model.explain(frame.iloc[0]) == model.explain(frame[:1])[0]
    assert {part.name for part in model.explain(frame.iloc[0]).features} == {"a", "b", "c"}


def test_what_cannot_be_explained_is_said(rows):
    x, y = rows
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(x, y)
    with pytest.raises(
        KernelpoolError, match=r"against must be one of the classes \[0, 1, 2\]; got 7"
    ):
        model.explain(x[0], against=7)
    assert model.explain(x[0], against=2).against in (2, 0, 1)
    with pytest.raises(ValueError, match="features"):
        model.explain([1.0, 2.0])
    with pytest.raises(KernelpoolError, match="background must have 3 features; got 2"):
        RBFNetworkClassifier(random_state=0).fit(x, y).explain(x[0], background=x[:, :2])
    alone = SharedKernelClassifier.from_parameters([[0.0]], [1.0], [[1.0]], [1.0], ["a"])
    with pytest.raises(KernelpoolError, match="one class only"):
        alone.explain([0.0])


@pytest.mark.parametrize("family", ["diag", "full"])
def test_missing_cells_have_no_part_in_anything(rows, family):
    x, y = rows
    model = SharedKernelClassifier(6, covariance_type=family, random_state=0).fit(x, y)
    holes = x[:3].copy()
    holes[0, 1] = holes[2, 0] = np.nan
    found = model.explain(holes)
    assert [len(why.features) for why in found] == [2, 3, 2]
    assert {part.name for part in found[0].features} == {"feature 0", "feature 2"}
    for why, log_proba in zip(found, model.predict_log_proba(holes), strict=True):
        order = np.argsort(-log_proba)
        np.testing.assert_allclose(
            why.log_odds, log_proba[order[0]] - log_proba[order[1]], rtol=1e-6
        )
        np.testing.assert_allclose(
            why.prior + sum(part.part for part in why.features), why.log_odds
        )
        assert all(np.isfinite([part.expected, part.deviation]).all() for part in why.features)
    with pytest.raises(KernelpoolError, match="without any value"):
        model.explain(np.full(3, np.nan))
