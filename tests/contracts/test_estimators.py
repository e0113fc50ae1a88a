"""What holds for every classifier of `tests/zoo.py`, over numbers, categories and missing cells."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from zoo import CHECKED, CLASSIFIERS, META, fitted, table

from kernelpool.errors import ColumnWarning

every = pytest.mark.parametrize("name", CLASSIFIERS)
everything = pytest.mark.parametrize("name", [*CLASSIFIERS, *META])

pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")


def refitted(name, X, y, **fit):
    return clone({**CLASSIFIERS, **META}[name]).fit(X, y, **fit)


@parametrize_with_checks(CHECKED)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


# -- what is fitted --------------------------------------------------------------------------------


@everything
def test_a_weight_is_a_number_of_copies(name):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    heavy = refitted(name, X, y, sample_weight=weight.astype(float))
    twice = refitted(name, X.loc[np.repeat(X.index, weight)], np.repeat(y, weight))
    assert_allclose(twice.predict_proba(X), heavy.predict_proba(X), atol=1e-5)


@every
def test_the_order_of_rows_means_nothing(name):
    X, y = table()
    order = np.random.default_rng(1).permutation(len(y))
    again = refitted(name, X.iloc[order], y[order])
    assert_allclose(again.predict_proba(X), fitted(name).predict_proba(X), atol=1e-5)


@every
def test_units_mean_nothing(name):
    X, y = table()
    other = X.assign(age=1e3 * X["age"] - 7, dose=X["dose"] / 1024 + 1)
    again = refitted(name, other, y)
    assert_allclose(again.predict_proba(other), fitted(name).predict_proba(X), atol=1e-5)


@every
def test_names_mean_nothing(name):
    X, y = table()
    towns = {"Athens": "a", "Oslo": "b", "Rome": "c"}
    other = X.assign(town=X["town"].map(towns).astype("category"))
    again = refitted(name, other, np.where(y == "sick", 30, 10))
    assert_allclose(again.predict_proba(other), fitted(name).predict_proba(X), atol=1e-9)


@everything
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(name):
    X, y = table()
    model = clone({**CLASSIFIERS, **META}[name])
    before = set(vars(model))
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.full(len(y), "sick"))
    with pytest.raises(ValueError, match="row of positive weight; class 'sick' has none"):
        model.fit(X, y, sample_weight=(y != "sick") * 1.0)
    assert set(vars(model)) == before
    model = refitted(name, X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="class"):
        model.fit(X[["age"]], np.full(len(y), "sick"))
    assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == list(X.columns)


@everything
def test_rows_without_a_label_are_counted(name):
    X, y = table()
    y = np.where(np.arange(len(y)) < 3, None, y.astype(object))
    if name == "em_log":  # they shape its hidden layer
        assert refitted(name, X, y).classes_.tolist() == ["healthy", "sick"]
        return
    with pytest.raises(ValueError, match="Input y contains NaN: 3 of 90 labels are missing"):
        refitted(name, X, y)


@everything
def test_columns_are_kept(name):
    model = fitted(name)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "town", "dose"]
    if name in CLASSIFIERS:
        assert model.columns_.levels == (0, 4, 0)
        assert model.columns_.categories[1].tolist() == ["Athens", "Oslo", "Rome"]
    assert model.score(*table()) > 0.6


def suspicious_table():
    X, y = table(missing=0)
    return X.assign(
        id=[f"c{i}" for i in range(len(y))],
        day=[f"{1 + i % 28}/1/26" for i in range(len(y))],
        since=[f"2026-01-{1 + i % 28:02d}" for i in range(len(y))],
        leak=np.where(y == "sick", 1.0, 2.0),
    ), y


@everything
def test_columns_that_mislead_are_named_in_one_warning(name):
    X, y = suspicious_table()
    with pytest.warns(ColumnWarning) as warned:
        refitted(name, X, y)
    (message,) = [str(w.message) for w in warned if w.category is ColumnWarning]
    found = "'id' (nearly every row has a value of its own", "'day' (it holds dates such as '1/1/26"
    for text in (*found, "'leak' (each of its values is found in one class alone)"):
        assert f"column {text}" in message
    for name in ("age", "town", "since"):
        assert f"'{name}'" not in message


# -- what is missing -------------------------------------------------------------------------------


@everything
@pytest.mark.parametrize("missing", [0, 0.2], ids=["fitted to complete rows", "to others"])
def test_answers_are_functions_of_the_row_alone(name, missing):
    X, _ = table(seed=3)
    model = fitted(name, missing)
    together = model.predict_proba(X)
    tags = get_tags(model).input_tags
    assert tags.allow_nan
    assert tags.string
    assert_allclose(together.sum(axis=1), 1, rtol=1e-9)
    some = [0, 5, 17, 40, 41]
    alone = np.vstack([model.predict_proba(X.iloc[[i]]) for i in some])
    assert_allclose(alone, together[some], rtol=1e-9, atol=1e-12)


@everything
@pytest.mark.parametrize("missing", [0, 0.2], ids=["fitted to complete rows", "to others"])
def test_of_a_row_of_which_nothing_is_known_the_answer_is_the_class_prior(name, missing):
    _, y = table(missing=missing)
    nothing = pd.DataFrame({"age": [np.nan], "town": [None], "dose": [np.nan]})
    assert_allclose(
        fitted(name, missing).predict_proba(nothing)[0],
        [np.mean(y == "healthy"), np.mean(y == "sick")],
        # the mean over classifiers of which each is fitted to the shares of four folds of five
        rtol=1e-3 if name == "conformal" else 1e-9,
    )


@every
def test_a_value_that_was_never_seen_is_answered(name):
    X, _ = table(10, seed=4)
    with pytest.warns(ColumnWarning, match=r"'town'.*found 'Mars', expected 'Athens', 'Oslo'"):
        proba = fitted(name).predict_proba(X.assign(town="Mars"))
    assert np.isfinite(proba).all()
