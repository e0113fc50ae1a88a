"""Predictions in one pass, against the public methods of each classifier; decisions against the
rule, row by row.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from zoo import CLASSIFIERS, META, fitted, table

from kernelpool import EMLogRegressor, RejectClassifier, SharedKernelClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import Predictions, Thresholds, predictions
from kernelpool.inspection.predictions import Decision

pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")


def answers(model, X, name):
    return np.asarray(getattr(model, name)(X), np.float64) if hasattr(model, name) else None


@pytest.mark.parametrize("name", [*CLASSIFIERS, *META])
def test_predictions_equal_the_public_methods(name):
    model = fitted(name)
    X = table(40, seed=1)[0]
    rows = predictions(model, X, log_density=True)
    assert_array_equal(rows.probability, model.predict_proba(X))
    assert_array_equal(rows.classes, model.classes_)
    for what, values in (("score_samples", rows.score), ("log_density", rows.log_density)):
        expected = answers(model, X, what)
        if expected is None:
            assert values is None
        else:
            assert_array_equal(values, expected)
    if name == "reject":
        assert_array_equal(rows.decision, model.decide(X))
        model = model.estimator_
    else:
        assert not rows.decision.any()
    assert_array_equal(rows.classes[rows.predicted], model.predict(X))
    if name == "conformal":
        assert_array_equal(rows.sets, model.predict_set(X))


@pytest.mark.parametrize("name", ["em", "conditional", "pool"])
def test_densities_are_made_only_where_they_are_wanted(name):
    rows = predictions(fitted(name), table(40, seed=1)[0], score=False)
    assert rows.score is None
    assert rows.log_density is None
    assert rows.probability.shape == (40, 2)


@pytest.mark.parametrize("training", ["em", "conditional"])
def test_rows_of_single_precision(training):
    X, y = make_clouds(300, random_state=0)
    model = SharedKernelClassifier(2, training=training, random_state=0).fit(X, y)
    X = X.astype(np.float32)
    rows = predictions(model, X, log_density=True)
    assert_array_equal(rows.probability, model.predict_proba(X))
    assert_array_equal(rows.score, model.score_samples(X))
    assert_array_equal(rows.log_density, model.log_density(X))


class Counting(StandardScaler):
    """Counts the tables that it transforms."""

    n_tables = 0

    def transform(self, X):
        type(self).n_tables += 1
        return super().transform(X)


def test_pipelines_and_searches_transform_rows_once():
    X, y = make_clouds(200, random_state=0)
    search = GridSearchCV(
        make_pipeline(
            Counting(), "passthrough", SharedKernelClassifier(training="em", random_state=0)
        ),
        {"sharedkernelclassifier__n_kernels": [2]},
        cv=2,
    ).fit(X, y)
    pipeline = search.best_estimator_
    expected = search.predict_proba(X), pipeline.score_samples(X), search.predict(X)
    density = pipeline[-1].log_density(pipeline[0].transform(X))
    for model in (search, pipeline, FrozenEstimator(pipeline)):
        Counting.n_tables = 0
        rows = predictions(model, X, log_density=True)
        assert Counting.n_tables == 1
        assert_array_equal(rows.probability, expected[0])
        assert_array_equal(rows.score, expected[1])
        assert_array_equal(rows.classes[rows.predicted], expected[2])
        assert_array_equal(rows.log_density, density)


def test_a_pipeline_around_a_classifier_that_refuses():
    X, y = make_clouds(200, random_state=0)
    model = make_pipeline(StandardScaler(), RejectClassifier(CLASSIFIERS["em"], novelty=0.1)).fit(
        X, y
    )
    assert_array_equal(predictions(model, X).decision, model[-1].decide(model[0].transform(X)))


def test_other_classifiers_are_asked_by_their_public_methods():
    X, y = make_clouds(200, random_state=0)
    y = np.array(["no", "yes"])[y]
    model = GaussianNB().fit(X, y)
    rows = predictions(model, X, log_density=True)
    assert_array_equal(rows.probability, model.predict_proba(X))
    assert rows.score is None
    assert rows.log_density is None
    strict = FixedThresholdClassifier(LogisticRegression(), threshold=0.9, pos_label="yes").fit(
        X, y
    )
    rows = predictions(strict, X)
    assert_array_equal(rows.classes[rows.predicted], strict.predict(X))
    assert (rows.predicted != rows.probability.argmax(axis=1)).any()


def test_a_regressor_predicts_no_classes():
    X, y = make_clouds(60, random_state=0)
    model = EMLogRegressor(2, max_iter=2, tol=1, random_state=0).fit(X, y.astype(float))
    with pytest.raises(KernelpoolError, match="expected; got EMLogRegressor"):
        predictions(model, X)


def test_batches_join_to_all_rows():
    model = fitted("reject")
    X = table(40, seed=1)[0]
    rows = predictions(model, X, log_density=True)
    batches = [predictions(model, X[:15], log_density=True), rows.at(np.arange(15, 40))]
    joined = Predictions.joined(batches)
    assert len(joined) == 40
    assert joined.sets is None
    for name in ("probability", "predicted", "decision", "score", "log_density"):
        assert_allclose(getattr(joined, name), getattr(rows, name), rtol=1e-12)
    assert_array_equal(rows.at(rows.decision == 0).predicted, rows.predicted[rows.decision == 0])


# -- decisions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ambiguity", [None, -1.0, 0.2, 1.0])
@pytest.mark.parametrize("novelty", [None, -np.inf, -3.0])
def test_decisions_follow_the_rule(ambiguity, novelty):
    scores = [-np.inf, np.nan, np.finfo(float).min, -3.1, -3.0, np.inf]
    doubts = [0.0, 0.2, np.nextafter(0.2, 1), 0.9, np.nan]
    rows = [(doubt, score) for doubt in doubts for score in scores]
    decision = Thresholds(ambiguity, novelty).decide(*np.array(rows).T)
    assert decision.dtype == np.int8
    for (doubt, score), code in zip(rows, decision, strict=True):
        if novelty is not None and (
            (not np.isfinite(score) and score != np.inf) or score < novelty
        ):
            assert code == Decision.NOVEL
        elif ambiguity is not None and (np.isnan(doubt) or doubt > ambiguity):
            assert code == Decision.AMBIGUOUS
        else:
            assert code == Decision.ACCEPTED


def test_without_densities_only_ambiguity_decides():
    assert Thresholds(0.3).decide(np.array([0.1, 0.4])).tolist() == [0, 1]
