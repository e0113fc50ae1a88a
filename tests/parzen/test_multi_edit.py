"""Multi-edit: the paper's five steps, and imbalanced-learn's convention."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import MultiEdit, ParzenClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError


@parametrize_with_checks([MultiEdit(random_state=0)])
def test_multi_edit_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def clouds():
    return make_clouds(300, random_state=0)


def five_steps(X, y, classifier, n_splits, n_iter, rng):
    """The paper's steps, written out."""
    S = np.arange(len(X))
    quiet = 0
    counts = [len(X)]
    while quiet < n_iter:
        parts = np.array_split(rng.permutation(S), n_splits)  # 1. diffusion
        kept = []
        for i in range(n_splits):  # 2. classification
            judges = parts[(i + 1) % n_splits]
            predicted = classifier.fit(X[judges], y[judges]).predict(X[parts[i]])
            kept.append(parts[i][predicted == y[parts[i]]])  # 3. editing
        new = np.concatenate(kept)  # 4. diffusion
        quiet = quiet + 1 if len(new) == len(S) else 0  # 5. termination
        S = new
        counts.append(len(S))
    return np.sort(S), counts


@pytest.mark.parametrize(
    "classifier",
    [ParzenClassifier("hypersphere", standardize=False, radius=0.3), KNeighborsClassifier(1)],
)
@pytest.mark.parametrize(("n_splits", "n_iter"), [(3, 2), (5, 1)])
def test_the_five_steps(clouds, classifier, n_splits, n_iter):
    X, y = clouds
    edit = MultiEdit(classifier, n_splits=n_splits, n_iter_no_change=n_iter, random_state=0)
    X_kept, y_kept = edit.fit_resample(X, y)
    expected, counts = five_steps(X, y, classifier, n_splits, n_iter, np.random.RandomState(0))
    assert_array_equal(edit.sample_indices_, expected)
    assert edit.history_.tolist() == counts
    assert edit.converged_
    assert edit.n_iter_ == len(counts) - 1
    assert_array_equal(X_kept, X[expected])
    assert_array_equal(y_kept, y[expected])


def test_rows_without_a_vote_are_not_lost():
    # PAPERS: counting uncovered rows as one class loses half of the rows of the other at small
    # radii
    X, y = make_clouds(400, random_state=0)
    edit = MultiEdit(
        ParzenClassifier("hypersphere", standardize=False, radius=1e-6),
        max_iter=1,
        random_state=0,
    ).fit(X, y)
    nearest = MultiEdit(KNeighborsClassifier(1), max_iter=1, random_state=0).fit(X, y)
    assert_array_equal(edit.sample_indices_, nearest.sample_indices_)


def test_a_class_is_never_edited_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.repeat([0, 1], [85, 5])
    edit = MultiEdit(
        ParzenClassifier("hypersphere", standardize=False, radius=5.0), random_state=0
    ).fit(X, y)
    assert set(y[edit.sample_indices_]) == {0, 1}
    assert edit.spared_classes_.tolist() == [1]


def test_frames_stay_frames(clouds):
    X, y = clouds
    frame = pd.DataFrame(X, columns=["a", "b"])
    labels = pd.Series(y, name="class")
    X_kept, y_kept = MultiEdit(random_state=0).fit_resample(frame, labels)
    assert list(X_kept.columns) == ["a", "b"]
    assert y_kept.name == "class"
    assert (X_kept.index == y_kept.index).all()


def test_it_works_in_imbalanced_learns_pipeline(clouds):
    imblearn = pytest.importorskip(
        "imblearn.pipeline",
        reason="imbalanced-learn is not installed: pip install imbalanced-learn",
    )
    edit = MultiEdit(random_state=0)
    pipeline = imblearn.make_pipeline(edit, KNeighborsClassifier(1)).fit(*clouds)
    edited = KNeighborsClassifier(1).fit(*edit.fit_resample(*clouds))
    assert pipeline[-1].n_samples_fit_ == edited.n_samples_fit_ < len(clouds[0])
    assert_array_equal(pipeline.predict(clouds[0]), edited.predict(clouds[0]))


def test_two_parts_and_too_few_rows_are_refused(clouds):
    with pytest.raises(ValueError, match=r"The 'n_splits' parameter .* Got 2"):
        MultiEdit(n_splits=2).fit(*clouds)
    with pytest.raises(KernelpoolError, match="n_splits=9 needs at least as many rows; got 8"):
        MultiEdit(n_splits=9).fit(clouds[0][:8], clouds[1][:8])


def test_parts_without_a_class_predict_the_class_they_have():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [0.4]])
    y = np.array(["a", "a", "a", "a", "b", "a"])
    edit = MultiEdit(KNeighborsClassifier(1), max_iter=5, random_state=0).fit(X, y)
    assert set(y[edit.sample_indices_]) == {"a", "b"}
