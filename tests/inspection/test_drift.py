"""Drift: the test against scipy's, its errors, and what it must find."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency
from sklearn.neighbors import KernelDensity

from kernelpool import SharedKernelClassifier, inspection
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.drift import Bins, DriftReference, holm, homogeneity


def test_the_test_is_pearsons_over_bins_that_expect_five_rows():
    reference = np.array([2, 30, 50, 59, 1])
    new = np.array([1, 10, 40, 40, 0])
    joined = chi2_contingency([[32, 50, 60], [11, 40, 40]], correction=False).pvalue
    distance = 0.5 * np.abs(reference / 142 - new / 91).sum()
    assert homogeneity(reference, new) == pytest.approx((joined, distance))
    assert homogeneity(np.array([100, 0]), np.array([100, 0])) == (1.0, 0.0)


def test_holms_adjustment():
    # Holm (1979): sorted p times n, n - 1, ..., made to rise
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_bins_count_everything():
    x = np.random.default_rng(0).normal(size=1000)
    town = np.array(["b", "a"] * 500, object)
    frame = pd.DataFrame({"x": x, "town": town, "flag": np.arange(1000) % 2})
    reference = DriftReference.of(frame)
    new = pd.DataFrame(
        {"x": [np.nan, 1e300, -1e300], "town": ["a", "zebra", None], "flag": [0, 0, 1]}
    )
    x_new, town_new, flag_new = np.split(reference.count(new), [13, 17])
    assert x_new.tolist() == [1, *[0] * 10, 1, 1]
    assert (town_new.tolist(), flag_new.tolist()) == ([1, 0, 1, 1], [0, 2, 0, 1, 0, 0])
    counts = [bins.counts for bins in reference.features]
    assert counts == [[0, *[100] * 10, 0, 0], [500, 500, 0, 0], [0, 500, 0, 500, 0, 0]]


@pytest.mark.parametrize(
    ("reference", "new", "moved"),
    [
        (np.zeros(400), np.full(400, 1e-9), True),
        (np.full(400, 20230101), np.full(400, 20230102), True),
        (np.full(400, 0.1), np.full(400, np.float32(0.1)), False),
        (np.arange(400) % 2, 99 * (np.arange(400) % 2), True),
        (np.arange(400) % 2, np.arange(1, 401) % 2, False),
        (np.arange(400.0), np.where(np.arange(400) % 20, np.arange(400), 1e6), True),
        ([None, 0.5, 1.5, 2.5] * 100, [0.5, None, 2.5, 1.5] * 100, False),
        ([Decimal(i) / 7 for i in range(400)], [Decimal(i) / 7 + 9 for i in range(400)], True),
    ],
)
def test_values_that_the_reference_lacks_are_found_in_any_kind_of_column(reference, new, moved):
    first, second = (pd.DataFrame({"x": pd.Series(v, dtype=object)}) for v in (reference, new))
    assert bool(inspection.check_drift(None, second, first).moved()) == moved


def test_days_are_compared_as_days():
    rng = np.random.default_rng(0)
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, 800)
    frame = pd.DataFrame({"day": np.datetime_as_string(day)})
    reference = DriftReference.of(frame[:400])
    assert reference.columns.kinds == ("date",)
    assert inspection.check_drift(None, frame[400:], reference).moved() == []
    later = pd.DataFrame({"day": pd.to_datetime(day) + pd.Timedelta(days=200)})
    assert inspection.check_drift(None, later, reference).moved() == ["day"]


def test_columns_are_those_of_the_model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "zip": rng.choice([2134, 2135], 300)})
    model = SharedKernelClassifier.prbf(2, categorical_features=["zip"], random_state=0)
    model.fit(frame, rng.integers(2, size=300))
    reference = DriftReference.of(frame, model)
    assert reference.columns.kinds == ("number", "category")
    new = frame.assign(zip=frame["zip"].replace(2135, 9999).astype(str))
    assert inspection.check_drift(model, new, reference).moved() == ["zip"]
    assert inspection.check_drift(model, frame.astype({"zip": str}), reference).moved() == []


def with_ids(rng, n, n_ids):
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["log-density", "b", "c"])
    return frame.assign(id=[f"id {i}" for i in rng.integers(0, n_ids, n)])


@pytest.mark.parametrize("n_ids", [10, 5000])
def test_nothing_is_found_where_nothing_has_moved_but_for_the_share_that_is_promised(n_ids):
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(60):
        x = with_ids(rng, 200, n_ids)
        new = with_ids(rng, 100, n_ids)
        kernels = KernelDensity(bandwidth=0.1).fit(x.iloc[:, :3])  # far denser at its own rows
        model = SimpleNamespace(score_samples=lambda X, of=kernels: of.score_samples(X.iloc[:, :3]))
        alarms += inspection.check_drift(model, new, x).p_value < 0.05
    assert alarms <= 9  # binomial(60, 0.05): more than 9 with a probability of 0.001
    same = np.where(np.arange(100) % 5, new["id"], "another")
    assert inspection.check_drift(None, new.assign(id=same), x).moved() == ["id"]
    reference = DriftReference.of(x, model, new)
    found = inspection.check_drift(model, new, reference)
    assert {part["name"] for part in found.parts} == {*x, "log-density of the model"}


def test_the_features_that_moved_are_named_and_the_density_finds_what_no_feature_shows():
    rng = np.random.default_rng(0)
    joint = np.array([[1, 0.95], [0.95, 1]])
    x = rng.multivariate_normal([0, 0], joint, 1000)
    y = rng.integers(2, size=1000)
    model = SharedKernelClassifier.prbf(2, covariance_type="full", random_state=0).fit(x, y)
    new = rng.multivariate_normal([0, 0], joint, 400)
    held_out = rng.multivariate_normal([0, 0], joint, 70)
    reference = DriftReference.of(x, model, held_out)
    assert sum(reference.density.counts) == 70
    found = inspection.check_drift(model, new, reference)
    assert (found.moved(), found.n_rows, found.n_reference) == ([], 400, 1000)
    moved = inspection.check_drift(model, new + np.array([0, 0.6]), reference)
    assert "feature 1" in moved.moved()
    assert "feature 0" not in moved.moved()
    # each feature alone is as before
    of_predictions = DriftReference.of(x, held_out=inspection.predictions(model, held_out))
    assert vars(of_predictions.density) == vars(reference.density)
    turned = inspection.check_drift(model, new * [1, -1], reference)
    made = inspection.predictions(model, new * [1, -1])
    assert inspection.check_drift(made, new * [1, -1], reference) == turned
    assert turned.moved() == ["log-density"]
    assert turned.p_value < 1e-6
    assert "log-density" in str(turned)
    assert inspection.check_drift(None, new * [1, -1], x).moved() == []


def test_batches_add_up():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=500), "w": rng.choice(["a", "b"], 500)})
    new = pd.DataFrame({"w": rng.choice(["a", "b", "c"], 300), "x": rng.normal(size=300)})
    reference = DriftReference.of(frame)
    whole = inspection.check_drift(None, new, frame)
    first = reference.count(new[:100])
    second = reference.count(pa.Table.from_pandas(new[100:]))
    assert reference.compare(first + second) == whole
    assert whole.moved() == ["w"]
    unnamed = DriftReference.of(frame[["x"]].to_numpy())
    assert inspection.check_drift(None, new[["x"]], unnamed).moved() == []
    for edges, counts in (([2.0, 1.0], [1] * 4), ([1.0], [1] * 4), ([1.0], [0] * 3)):
        with pytest.raises(KernelpoolError, match=r"edges of x must rise|counts of x do not fit"):
            Bins("x", edges, counts)
    with pytest.raises(KernelpoolError, match="bins of each of its columns"):
        DriftReference(reference.columns, reference.features[:1])
    with pytest.raises(KernelpoolError, match="bins of w are not its categories"):
        DriftReference(reference.columns, (reference.features[0], Bins("w", [0.5], [1, 1, 1])))
    with pytest.raises(KernelpoolError, match="lacks the column 'x'"):
        reference.count(new[["w"]])
    with pytest.raises(KernelpoolError, match="no rows"):
        DriftReference.of(frame[:0])
    with pytest.raises(KernelpoolError, match="no new rows"):
        inspection.check_drift(None, new[:0], frame)
