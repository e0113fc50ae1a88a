"""Cross-fitting and the trial of candidates, with scikit-learn's classifiers as members."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from kernelpool.training.cross_fitting import RAW, WARPED, LabeledRows, PoolCandidate, fit_pool
from kernelpool.training.pooling import log_loss


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    codes = np.arange(240) % 3
    x = rng.normal(size=(240, 4)) + 1.2 * np.eye(3, 4)[codes]
    return LabeledRows(x, codes, np.ones(240), (np.arange(240) // 3) % 4, 3)


def test_held_out_predictions_are_scikit_learns(rows):
    """As `cross_val_predict` on the same folds."""
    found = fit_pool([PoolCandidate("nb", GaussianNB(), RAW)], rows)
    folds = [(np.flatnonzero(rows.fold != f), np.flatnonzero(rows.fold == f)) for f in range(4)]
    expected = cross_val_predict(
        GaussianNB(), rows.x, rows.codes, cv=folds, method="predict_log_proba"
    )
    np.testing.assert_allclose(found.members[0].held_out, expected, atol=1e-8)
    assert found.members[0].loss == pytest.approx(log_loss(expected, rows.codes, rows.weight))
    assert [network.fold for network in found.members[0].networks] == [0, 1, 2, 3]


def test_candidates_that_bring_nothing_are_given_up_after_one_fold(rows):
    fits = []

    class Counted(GaussianNB):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    class Guess(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            fits.append("guess")
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    found = fit_pool(
        [PoolCandidate("nb", Counted(), RAW), PoolCandidate("guess", Guess(), RAW)], rows
    )
    assert fits == [180, 180, 180, 180, "guess"]
    assert [member.name for member in found.members] == ["nb"]
    assert [trial.outcome for trial in found.trials] == ["kept", "given up after one fold"]


def test_a_candidate_that_fails_does_not_end_the_fit(rows):
    class Fails(GaussianNB):
        def fit(self, X, y):
            raise ValueError("no luck")

    found = fit_pool(
        [PoolCandidate("nb", GaussianNB(), RAW), PoolCandidate("fails", Fails(), RAW)], rows
    )
    assert [trial.outcome for trial in found.trials] == ["kept", "failed: ValueError: no luck"]


def test_the_time_is_kept(rows):
    found = fit_pool(
        [PoolCandidate("a", GaussianNB(), RAW), PoolCandidate("b", LogisticRegression(), RAW)],
        rows,
        seconds=0.0,
    )
    assert [trial.outcome for trial in found.trials] == ["kept", "not tried: the time was spent"]


def test_an_interruption_keeps_what_is_ready(rows):
    class Interrupted(GaussianNB):
        def fit(self, X, y):
            raise KeyboardInterrupt

    candidates = [PoolCandidate("nb", GaussianNB(), RAW), PoolCandidate("stop", Interrupted(), RAW)]
    found = fit_pool(candidates, rows)
    assert found.interrupted
    assert [member.name for member in found.members] == ["nb"]
    with pytest.raises(KeyboardInterrupt):
        fit_pool(candidates[1:], rows)


def test_members_judge_themselves_on_the_fold_that_they_have_not_seen(rows):
    seen = []

    class Judging(GaussianNB):
        def fit(self, X, y, sample_weight=None, X_val=None, y_val=None):
            seen.append((len(X), len(X_val), len(y_val)))
            return super().fit(X, y, sample_weight)

    fit_pool([PoolCandidate("judging", Judging(), RAW)], rows)
    assert seen == [(180, 60, 60)] * 4


def test_what_the_first_fold_found_is_used_by_the_others(rows):
    class Choosing(LogisticRegression):
        def narrowed(self):
            return clone(self).set_params(C=0.125)

    found = fit_pool([PoolCandidate("choosing", Choosing(), RAW)], rows)
    assert [network.estimator.C for network in found.members[0].networks] == [
        1.0,
        0.125,
        0.125,
        0.125,
    ]


def test_weights_are_handed_on_and_rows_of_no_weight_are_not(rows):
    seen = []

    class Weighted(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append((len(X), None if sample_weight is None else sample_weight.sum()))
            return super().fit(X, y, sample_weight)

    weight = np.where(np.arange(240) < 60, 0.0, 2.0)
    fit_pool(
        [PoolCandidate("w", Weighted(), RAW)], LabeledRows(rows.x, rows.codes, weight, rows.fold, 3)
    )
    assert seen == [(135, 270.0)] * 4


def test_views_reach_predictions(rows):
    """A warped view of a warped problem: the network's own predictions are those of the transformed rows."""
    skewed = LabeledRows(np.exp(rows.x), rows.codes, rows.weight, rows.fold, 3)
    found = fit_pool([PoolCandidate("nb", GaussianNB(), WARPED, metric=True)], skewed)
    for network in found.members[0].networks:
        expected = network.estimator.predict_log_proba(network.view.transform(skewed.x))
        np.testing.assert_allclose(network.log_proba(skewed.x), expected, atol=1e-9)
        assert network.view.metric.shape == (4, 4)
    metrics = {network.view.metric.tobytes() for network in found.members[0].networks}
    assert len(metrics) == 4  # learned without the fold, so one a fold


def test_threads_change_nothing(rows):
    candidates = [
        PoolCandidate("nb", GaussianNB(), RAW),
        PoolCandidate("l", LogisticRegression(), WARPED),
    ]
    one, two = (fit_pool(candidates, rows, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.pooling.weight, two.pooling.weight)


def test_what_leaves_rows_out_by_itself_is_trained_once(rows):
    """A nearest-neighbor vote with one row more than it counts: scikit-learn's, asked for its neighbors without the row."""
    fits = []

    class Neighbors(KNeighborsClassifier):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

        def leave_one_out_log_proba(self):
            near = self.kneighbors(
                return_distance=False
            )  # of the training rows, themselves left out
            votes = np.eye(3)[rows.codes][near].sum(axis=1) + 0.5
            return np.log(votes / votes.sum(axis=1, keepdims=True))

    found = fit_pool([PoolCandidate("near", Neighbors(10), RAW)], rows)
    assert fits == [240]
    assert len(found.members[0].networks) == 1
    expected = found.members[0].networks[0].estimator.leave_one_out_log_proba()
    np.testing.assert_allclose(found.members[0].held_out, expected, atol=1e-12)
