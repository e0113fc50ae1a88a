"""Prediction sets: p-values by counting, and coverage by simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
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
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import Predictions, predictions
from kernelpool.rows import ArrayRows

TRUE = SharedKernelClassifier.from_parameters(
    means=[[0.0], [2.0], [6.0]],
    covariances=[1.0, 1.0, 1.0],
    mixing=np.eye(3),
    class_prior=[0.6, 0.3, 0.1],
    classes=["a", "b", "c"],
)


@parametrize_with_checks([ConformalClassifier(LogisticRegression(), cv=2)])
@pytest.mark.filterwarnings("ignore:error=")
def test_it_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("per_class", [False, True])
def test_p_values_of_a_fitted_classifier_are_ranks(per_class):
    x, y = TRUE.sample(60, random_state=0)
    new, _ = TRUE.sample(20, random_state=1)
    codes = np.searchsorted(TRUE.classes_, y)
    peers = codes[:, None] == np.arange(3) if per_class else np.ones((60, 3), bool)
    settings = {"per_class": per_class, "error": 0.45}
    ranked = {}
    for conformity, of in (("probability", TRUE.predict_proba), ("density", TRUE.log_density)):
        model = ConformalClassifier(TRUE, conformity=conformity, **settings).fit(x, y)
        score = of(x)[np.arange(60), codes]
        lower = (score[:, None, None] <= of(new)) & peers[:, None]  # (calibration, new, K)
        ranked[conformity] = expected = (1 + lower.sum(axis=0)) / (1 + peers.sum(axis=0))
        assert_allclose(model.p_values(new), expected)
        assert_array_equal(model.predict_set(new), expected > 0.45)
        assert_array_equal(model.predict_set(new, error=0.2), expected > 0.2)
    both = ConformalClassifier(TRUE, **settings).fit(x, y).p_values(new)
    # the likeliest class is excluded by its density alone
    ranked["probability"][np.arange(20), TRUE.predict_proba(new).argmax(axis=1)] = 1
    expected = np.minimum(np.minimum(ranked["probability"] / 0.9, ranked["density"] / 0.1), 1)
    assert_allclose(both, expected)


def test_folds_score_rows_that_they_were_fitted_without():
    x, y = TRUE.sample(90, random_state=0)
    new = TRUE.sample(10, random_state=1)[0]
    folds = StratifiedKFold(3)
    model = ConformalClassifier(
        SharedKernelClassifier.prbf(3, random_state=0), conformity="density", cv=folds
    ).fit(x, y)
    count = np.ones((10, 3))
    for train, test in folds.split(x, y):
        part = SharedKernelClassifier.prbf(3, random_state=0).fit(x[train], y[train])
        score = part.log_density(x[test])[
            np.arange(len(test)), np.searchsorted(part.classes_, y[test])
        ]
        count += (score[:, None, None] <= part.log_density(new)).sum(axis=0)
    assert_allclose(model.p_values(new), count / 91)
    mean = np.mean([part.predict_proba(new) for part in model.estimators_], axis=0)
    assert_allclose(model.predict_proba(new), mean)


def coverage(model, x, y):
    return model.predict_set(x)[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def test_the_error_holds_within_classes_and_where_their_frequencies_change():
    x, y = TRUE.sample(3000, random_state=0)
    crude = SharedKernelClassifier.prbf(3, random_state=0).fit(x[:100], y[:100])
    shifted = TRUE.with_class_prior([0.1, 0.3, 0.6])
    marginal = ConformalClassifier(crude, error=0.1).fit(x[100:1600], y[100:1600])
    by_class = ConformalClassifier(crude, error=0.1, per_class=True).fit(x[100:1600], y[100:1600])
    x_new, y_new = TRUE.sample(4000, random_state=2)
    x_other, y_other = shifted.sample(4000, random_state=3)
    assert 0.88 < coverage(marginal, x_new, y_new).mean() < 0.94
    assert 0.88 < coverage(by_class, x_new, y_new).mean() < 0.94
    assert 0.88 < coverage(by_class, x_other, y_other).mean() < 0.94
    for label in "abc":
        assert coverage(by_class, x_new[y_new == label], y_new[y_new == label]).mean() > 0.86


def test_an_empty_set_means_novel_and_never_ambiguous():
    apart = SharedKernelClassifier.from_parameters(
        means=[[0.0], [4.0]],
        covariances=[1.0, 1.0],
        mixing=np.eye(2),
        class_prior=[0.5, 0.5],
        classes=[0, 1],
    )  # errs on 2.3 % of its rows, so that an error of 10 % leaves nothing to ambiguous ones
    rows = apart.sample(1000, random_state=0)
    model = ConformalClassifier(apart, error=0.1).fit(*rows)
    between = [[1.9], [2.1]]
    assert model.predict_set(between).tolist() == [[True, False], [False, True]]
    assert not model.predict_set([[-9.0], [13.0]]).any()
    x, y = apart.sample(20_000, random_state=1)
    assert coverage(model, x, y).mean() > 0.9
    model.set_params(conformity="probability").fit(*rows)
    assert not model.predict_set(between).any()  # as LAC is published
    piped = ConformalClassifier(make_pipeline(StandardScaler(), apart), error=0.001, cv=2)
    assert piped.fit(x, y).predict_set([[2.0], [90.0]]).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("times", [1, 2])
def test_a_pool_calibrates_by_its_own_folds(times):
    x, y = (np.repeat(a, times, axis=0) for a in TRUE.sample(300, random_state=0))
    pool = PooledClassifier(
        [SharedKernelClassifier.prbf(3, random_state=0)], n_folds=3, random_state=0
    )
    model = ConformalClassifier(pool).fit(x, y)
    (fitted,) = model.estimators_
    held = fitted.held_out_proba_[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
    assert_array_equal(np.sort(model.calibration_probability_), np.sort(held))
    assert np.isfinite(model.calibration_density_).all()
    x_new, y_new = TRUE.sample(2000, random_state=1)
    assert 0.86 < coverage(model, x_new, y_new).mean() < 0.95


def test_a_row_of_weight_two_is_two_rows():
    x, y = TRUE.sample(40, random_state=0)
    times = 1 + np.arange(40) % 2
    copies = ConformalClassifier(TRUE).fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    weighted = ConformalClassifier(TRUE).fit(x, y, sample_weight=times)
    assert_allclose(weighted.p_values(x), copies.p_values(x))


def test_a_class_of_one_row_trains_in_every_fold():
    x = np.random.default_rng(0).normal(size=(9, 2))
    y = np.repeat([0, 1, 2], 3)
    em = SharedKernelClassifier.prbf(random_state=0)
    model = ConformalClassifier(em, error=0.2).fit(x[:7], y[:7])
    assert model.calibration_codes_.tolist() == [0, 0, 0, 1, 1, 1]
    split = [(np.arange(6), np.array([6]))]
    for cv, rows in (
        (split, slice(7)),
        (None, slice(0, 9, 3)),
        (ShuffleSplit(2, test_size=0.8), slice(9)),
    ):
        with pytest.raises(KernelpoolError):  # a class, or all rows, would never train
            ConformalClassifier(em, cv=cv).fit(x[rows], y[rows])


def test_too_few_rows_make_full_sets():
    x, y = TRUE.sample(60, random_state=0)
    with pytest.warns(UserWarning, match=r"needs 999 calibration rows; there are 60"):
        assert ConformalClassifier(TRUE, error=0.001).fit(x, y).predict_set(x).all()


def test_a_calibrated_classifier_from_stored_predictions():
    x, y = TRUE.sample(60, random_state=0)
    options = {"per_class": True, "error": 0.2}
    fitted = ConformalClassifier(TRUE, **options).fit(x, y)
    rows = predictions(TRUE, x, log_density=True)
    codes = np.searchsorted(TRUE.classes_, y)
    stored = ConformalClassifier.from_predictions(TRUE, rows, codes, **options)
    assert_array_equal(stored.p_values(x), fitted.p_values(x))
    # rows without a class do not count
    more = rows.at(np.r_[np.arange(60), :9])
    unlabeled = np.r_[codes, np.full(9, -1)]
    again = ConformalClassifier.from_predictions(TRUE, more, unlabeled, **options)
    assert_array_equal(again.p_values(x), fitted.p_values(x))
    # NaN is the lowest score of all
    scores = np.r_[np.nan, np.linspace(0.1, 0.8, 8)]
    given = [
        ConformalClassifier.from_predictions(
            TRUE,
            Predictions.of(TRUE.classes_, np.column_stack([each] * 3)),
            np.zeros(9, int),
            conformity="probability",
        )
        for each in (scores, np.nan_to_num(scores, nan=-np.inf))
    ]
    assert_array_equal(given[0].p_values(x), given[1].p_values(x))
    unknown = given[1]._fitted.p_values("probability", False, [np.full((1, 3), np.nan)])
    assert_allclose(unknown, 2 / 10)


def test_sets_and_labels_take_one_pass_of_each_classifier(monkeypatch):
    x, y = TRUE.sample(100, random_state=0)
    model = ConformalClassifier(clone(TRUE).set_params(training="em"), cv=2, error=0.2).fit(x, y)
    passes = []
    each = ArrayRows.each
    monkeypatch.setattr(ArrayRows, "each", lambda *a: passes.append(1) or each(*a))
    for ask in (model.predict_set, model.p_values, model.predict, model.predict_proba):
        passes.clear()
        ask(x)
        assert len(passes) == 2
    passes.clear()
    rows = predictions(model, x)
    assert len(passes) == 2
    assert_array_equal(rows.sets, model.predict_set(x))


def test_ties_count_for_the_class():
    """With one probability for all rows, a class that is as frequent as the error allows stays."""
    x = np.zeros((50, 1))
    y = np.arange(50) % 5 == 0
    model = ConformalClassifier(DummyClassifier().fit(x, y), conformity="probability").fit(x, y)
    assert_allclose(model.p_values(x[:1]), [[1.0, 11 / 51]])
    assert model.predict_set(x)[np.arange(50), y.astype(int)].all()


@pytest.mark.parametrize("conformity", ["probability", "density"])
def test_rounding_decides_no_rank(conformity):
    """Rows of calibration, asked again with the last bits of their scores lower or higher."""
    x, y = TRUE.sample(60, random_state=0)
    model = ConformalClassifier(TRUE, conformity=conformity).fit(x, y)
    score = {"probability": TRUE.predict_proba, "density": TRUE.log_density}[conformity](x)
    expected = model.p_values(x)
    for error in (-1e-13, 1e-13):
        found = model._fitted.p_values(conformity, False, [score * (1 + error)])
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "codes", [[0, 1], [0, 1, 2], [0.0, 1.0, 1.0]], ids=["few", "class", "type"]
)
@pytest.mark.parametrize("cls", [ConformalClassifier, RejectClassifier])
def test_codes_must_be_those_of_the_predictions(cls, codes):
    X = np.array([[0.0], [1.0], [2.0]])
    model = ParzenClassifier(random_state=0).fit(np.tile(X, (5, 1)), [0, 1, 1] * 5)
    with pytest.raises(KernelpoolError, match=r"codes must hold .* below 2, for each of the 3"):
        cls.from_predictions(model, predictions(model, X), codes)
