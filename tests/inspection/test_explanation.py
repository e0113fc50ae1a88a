"""Explanations and importance beside brute force: models of some columns, Shapley values by all
orders.
"""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import explain, feature_importance
from kernelpool.inspection.explanation import Explanation, FeaturePart, shapley_parts


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    mix = np.array([[1.0, 6.0, 0.0], [0.0, 10.0, 0.03], [0.2, 0.0, 0.1]])
    return (rng.normal(size=(240, 3)) + 2 * (y[:, None] == np.arange(3))) @ mix + [5, 0, -3], y


@pytest.fixture(scope="module", params=["spherical", "diag", "full", "tied"])
def mixture(request, rows):
    settings = {"covariance_type": request.param, "sharing": 0.5, "max_iter": 10, "tol": 0.1}
    return SharedKernelClassifier.prbf(4, **settings, random_state=0).fit(*rows)


def log_odds(model, x, columns, a, b):
    """log P(a|x_S) / P(b|x_S) by the mixture of these columns alone."""
    if not len(columns):
        return np.log(model.class_prior_[a] / model.class_prior_[b])
    log_p = model.marginal(list(columns)).predict_log_proba(x[None, list(columns)])[0]
    return log_p[a] - log_p[b]


def test_parts_are_shapley_values_of_the_marginals(rows, mixture):
    row = rows[0][0]
    why = mixture.explain(row)
    a, b = (mixture.classes_.tolist().index(label) for label in (why.label, why.against))
    expected = np.zeros(3)
    orders = list(permutations(range(3)))
    for order in orders:
        values = [log_odds(mixture, row, order[:t], a, b) for t in range(4)]
        expected[list(order)] += np.diff(values) / len(orders)
    for part in why.features:
        i = int(part.name[-1])
        unknown = row.copy()
        unknown[i] = np.nan
        assert part.part == pytest.approx(expected[i], abs=1e-6)
        assert (part.value, part.error) == (row[i], 0)
        assert part.expected == mixture.impute(unknown[None], [why.label])[0, i]
    assert why.prior == pytest.approx(log_odds(mixture, row, (), a, b))
    posterior = mixture.kernel_posterior(row[None])[0]
    first = why.kernels[0]
    assert (first["index"], first["posterior"]) == (posterior.argmax(), posterior.max())
    joint = (mixture.mixing_ * mixture.class_prior_)[first["index"]]
    assert first["label"] == mixture.classes_[joint.argmax()]
    assert first["class_posterior"] == pytest.approx(joint.max() / joint.sum())


def test_sampled_shapley_values_are_within_their_error_of_the_exact_ones():
    table = np.random.default_rng(2).normal(size=(2**8, 3))
    value = lambda masks: table[masks @ (1 << np.arange(8))]  # noqa: E731
    exact, none = shapley_parts(value, 8, np.random.RandomState(0))
    sampled, error = shapley_parts(value, 8, np.random.RandomState(0), max_sets=200)
    assert not none.any()
    assert (np.abs(sampled - exact) < 4.5 * error).all()
    assert ((sampled - exact) / error).std() == pytest.approx(1, abs=0.5)
    for parts in (sampled, exact):
        assert_allclose(parts.sum(axis=0), table[-1] - table[0])


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, random_state=0)),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
        DecisionTreeClassifier(random_state=0),  # sure of each row
    ],
    ids=["pipeline", "boosting", "tree"],
)
def test_classifiers_that_take_missing_cells_are_explained(rows, model):
    x, y = rows
    for row, why in zip(x[:9], explain(model.fit(x, y), x[:9]), strict=True):
        assert {part.value for part in why.features} == set(row)  # in the units of the input
        parts = [part.part for part in why.features]
        assert why.prior + sum(parts) == pytest.approx(why.log_odds)
        assert parts == sorted(parts, key=abs, reverse=True)


def test_cells_are_shown_as_they_are_and_many_features_as_a_sum():
    for value, expected, texts in (
        (33847.24, 33847.9, ("x = 33847.24", "33847.9 expected")),
        (100001070.0, 100000412.345, ("x = 100001070", "100000412 expected")),
        (0.1, 0.1, ("x = 0.1", "")),
    ):
        assert FeaturePart("x", value, 1.0, 0.0, expected).texts() == texts
    parts = tuple(FeaturePart(f"f{i}", 1.0, 1.0, 0.0) for i in range(14))
    assert "2 other features      +2.00" in str(Explanation("a", "b", 0.9, 0.1, 14.0, 0.0, parts))


def test_a_row_of_a_data_frame_and_what_is_refused(rows):
    x, y = rows
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(frame, y)
    one = model.explain(frame.iloc[0])
    several = model.explain(frame[:1])
    assert [one] == several
    assert one._repr_html_() == several._repr_html_()
    sentence, *lines = str(one).splitlines()
    assert sentence.startswith(f"{one.label} (")
    longest = max(one.features, key=lambda part: abs(part.part))
    bar = ("+" if longest.part > 0 else "-") * 24
    assert sum(f"{longest.name} =" in line and bar in line for line in lines) == 1
    nothing = model.explain(frame[:1] * np.nan)[0]
    assert (nothing.features, nothing.log_odds) == ((), nothing.prior)
    assert model.explain(frame.iloc[0], against=one.label).against == one.against
    with pytest.raises(KernelpoolError, match=r"one of the classes \[0, 1, 2\]; got 7"):
        model.explain(frame.iloc[0], against=7)
    alone = SharedKernelClassifier.from_parameters([[0.0]], [1.0], [[1.0]], [1.0], ["a"])
    with pytest.raises(KernelpoolError, match="one class only"):
        alone.explain([0.0])


# -- importance ------------------------------------------------------------------------------------

TWO = SharedKernelClassifier.from_parameters(
    means=[[0.0, 0.0], [2.0, 0.0]],
    covariances=[1.0, 1.0],
    mixing=[[1, 0], [0, 1]],
    class_prior=[0.5, 0.5],
    classes=[0, 1],
)


def test_a_missing_feature_is_integrated_out_exactly():
    x, y = TWO.sample(400, random_state=0)
    found = feature_importance(TWO, x, y)
    density = norm(np.array([0.0, 2.0])).pdf(x[:, :1])  # (n, K): the second feature means nothing
    log_proba = np.log((density / density.sum(axis=1, keepdims=True))[np.arange(400), y])
    assert_allclose(found.importance, [np.log(2) + log_proba.mean(), 0.0], atol=1e-9)
    assert_allclose(found.log_loss, -log_proba.mean())
    assert_allclose(found.error[0], log_proba.std(ddof=1) / 20, rtol=1e-6)
    assert str(found).splitlines()[1].startswith("  feature 0: +0.")
    x[:100, 0] = np.nan  # nothing can be lost in these
    some = feature_importance(TWO, x, y)
    known = feature_importance(TWO, x[100:], y[100:])
    assert_allclose(some.importance, known.importance * 0.75, atol=1e-9)
    assert_allclose(some.log_loss, 0.75 * known.log_loss + 0.25 * np.log(2))
    with pytest.raises(KernelpoolError, match="which is none of the classes"):
        feature_importance(TWO, x, y + 5)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        feature_importance(TWO, x, y, sample_weight=-np.ones(400))
    with pytest.raises(KernelpoolError, match="expected; got LinearRegression"):
        feature_importance(LinearRegression().fit([[0], [1]], [0, 1]), x, y)


def test_a_row_of_weight_two_counts_as_two_rows():
    x, y = TWO.sample(50, random_state=0)
    again = np.repeat(np.arange(50), weight := 1 + (np.arange(50) < 10))
    twice = feature_importance(TWO, x[again], y[again])
    weighted = feature_importance(TWO, x, y, sample_weight=weight)
    assert_allclose(weighted.importance, twice.importance)
    assert_allclose(weighted.log_loss, twice.log_loss)
    half = feature_importance(TWO, x, y, sample_weight=np.arange(50) < 25)
    assert_allclose(half.error, feature_importance(TWO, x[:25], y[:25]).error)
