"""Which cells are missing, as information: add_indicator."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import log_loss

import kernelpool
from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.describe import describe


def some_rows(n=400, seed=0, informative=True):
    """Two classes, three numbers; the second is missing mostly in class 1 (or in either alike), the third sometimes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 0.7 * y[:, None]
    often = np.where(y == 1, 0.7, 0.1) if informative else 0.4
    X[rng.random(n) < often, 1] = np.nan
    X[rng.random(n) < 0.1, 2] = np.nan
    return X, y


def density_by_hand(model, row):
    """p(known cells and pattern|C_k), kernel by kernel."""
    known = np.flatnonzero(~np.isnan(row))
    by_kernel = np.ones(len(model.means_))
    for j in range(len(by_kernel)):
        if len(known):
            covariance = model.covariances_[j][np.ix_(known, known)]
            by_kernel[j] *= multivariate_normal(model.means_[j, known], covariance).pdf(row[known])
        for place, feature in enumerate(model.indicator_features_):
            table = model.probabilities_[j, 2 * place : 2 * place + 2]
            assert table.sum() == pytest.approx(1)
            by_kernel[j] *= table[int(np.isnan(row[feature]))]
    return by_kernel @ model.mixing_


def test_a_kernel_has_a_probability_for_each_column_that_lacks_cells():
    X, y = some_rows()
    model = SharedKernelClassifier(4, training="em", add_indicator=True, random_state=0).fit(X, y)
    assert model.indicator_features_.tolist() == [1, 2]
    assert model.n_features_in_ == 3
    rows = np.vstack([some_rows(20, seed=1)[0], np.full((1, 3), np.nan), np.zeros((1, 3))])
    expected = np.log([density_by_hand(model, row) for row in rows])
    np.testing.assert_allclose(model.log_density(rows), expected, rtol=1e-8)
    assert (np.diff(model.history_) >= -1e-10).all()
    # one kernel a class: shares of missing cells, a row's worth of belief spread over both
    one = SharedKernelClassifier([1, 1], training="em", add_indicator=True, tol=1e-10).fit(X, y)
    for k in range(2):
        n, n_missing = (y == k).sum(), np.isnan(X[y == k, 1]).sum()
        assert one.probabilities_[k, 1] == pytest.approx((n_missing + 0.5) / (n + 1), rel=1e-6)


def test_without_a_missing_cell_in_training_nothing_changes_to_the_last_bit():
    X, y = some_rows()
    X, gaps = np.nan_to_num(X), X
    plain = SharedKernelClassifier(4, n_folds=2, random_state=0).fit(X, y)
    model = SharedKernelClassifier(4, n_folds=2, add_indicator=True, random_state=0).fit(X, y)
    assert not hasattr(model, "indicator_features_")
    np.testing.assert_array_equal(model.predict_proba(gaps), plain.predict_proba(gaps))


def test_it_helps_where_the_pattern_tells_of_the_class_and_hurts_where_it_changes():
    X, y = some_rows(800)
    X_same, y_same = some_rows(2000, seed=1)
    X_other, y_other = some_rows(2000, seed=2, informative=False)
    plain = SharedKernelClassifier(2, training="em", random_state=0).fit(X, y)
    model = SharedKernelClassifier(2, training="em", add_indicator=True, random_state=0).fit(X, y)
    assert (
        log_loss(y_same, model.predict_proba(X_same))
        < log_loss(y_same, plain.predict_proba(X_same)) - 0.05
    )
    assert (
        log_loss(y_other, model.predict_proba(X_other))
        > log_loss(y_other, plain.predict_proba(X_other)) + 0.05
    )


@pytest.mark.parametrize("words", [False, True])
def test_patterns_travel_decide_are_drawn_and_explained(words, tmp_path):
    X, y = some_rows(200)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    if words:
        rng = np.random.default_rng(0)
        table["town"] = np.where(
            rng.random(200) < 0.2, None, np.where(y + rng.random(200) > 0.8, "Oslo", "Rome")
        )
    model = SharedKernelClassifier(
        2, n_folds=2, covariance_type="diag", add_indicator=True, random_state=0
    ).fit(table, y)
    kernelpool.save(model, tmp_path / "m.safetensors")
    again = kernelpool.load(tmp_path / "m.safetensors")
    for method in ("predict_proba", "log_density", "kernel_posterior"):
        np.testing.assert_array_equal(getattr(again, method)(table), getattr(model, method)(table))
    drawn, labels = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, table.shape[1])
    missing = pd.isna(drawn[:, 1])
    for k in (0, 1):
        assert missing[labels == k].mean() == pytest.approx(np.isnan(X[y == k, 1]).mean(), abs=0.06)
    assert not pd.isna(drawn[:, 0]).any()
    why = model.explain(table[:1])[0]
    assert {"b missing", "c missing"} <= {feature.name for feature in why.features}
    assert why.log_odds == pytest.approx(why.prior + sum(feature.part for feature in why.features))
    filled = model.impute(table)
    assert filled.shape == table.shape
    assert not pd.isna(filled).any()
    assert describe(model).pool.mean.shape == (2, table.shape[1])
    known = model.conditional(table[table["b"].isna()].iloc[0])
    assert known.class_prior_.sum() == pytest.approx(1)
    assert model.marginal(["a"]).n_features_in_ == 1


def test_what_cannot_tell_of_patterns_says_so():
    X, y = some_rows(100)
    model = SharedKernelClassifier(2, training="em", add_indicator=True, random_state=0)
    torch = pytest.importorskip("torch")
    with pytest.raises(
        KernelpoolError,
        match="add_indicator=True needs rows in NumPy or a table; add the pattern as columns",
    ):
        model.fit(torch.asarray(X), torch.asarray(y))
    pytest.importorskip("skl2onnx")
    with pytest.raises(KernelpoolError, match="add_indicator=True cannot be exported to ONNX"):
        kernelpool.to_onnx(model.fit(X, y))
