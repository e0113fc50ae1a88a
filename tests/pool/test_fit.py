"""Cross-fitted candidates, with scikit-learn's classifiers as members."""

from time import perf_counter

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from kernelpool import ParzenClassifier
from kernelpool.complete.imputation import imputation_mixture, imputations
from kernelpool.data.door import surveyed
from kernelpool.pool.fit import Candidate, PoolFit, fit_pool, log_loss, log_probas
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns

CODES = np.arange(240) % 3
X = np.random.default_rng(0).normal(size=(240, 4)) + 1.2 * np.eye(3, 4)[CODES]
FOLD = (np.arange(240) // 3) % 4


def fitted(*candidates, x=X, weight=None, end=np.inf, **kwargs):
    weight = np.ones(len(x)) if weight is None else weight
    fit = PoolFit(
        x, CODES[: len(x)], weight, FOLD[: len(x)], columns=Columns.numbers(4), table=x, **kwargs
    )
    fit.run([Candidate(*candidate) for candidate in candidates], end)
    return fit


def outcomes(fit):
    return [trial.outcome for trial in fit.trials]


def test_held_out_predictions_are_those_of_cross_val_predict():
    fit = fitted(("nb", GaussianNB(), "table"))
    expected = cross_val_predict(
        GaussianNB(), X, CODES, cv=PredefinedSplit(FOLD), method="predict_log_proba"
    )
    np.testing.assert_allclose(fit.held_out["nb"], expected, atol=1e-8)
    assert fit.trials[0].loss == pytest.approx(log_loss(expected, CODES, np.ones(240)))
    assert len(fit.networks["nb"]) == 4


def test_candidates_may_fail_or_come_too_late():
    class Fails(GaussianNB):
        def fit(self, X, y):
            raise ValueError("singular")

    fit = fitted(("nb", GaussianNB(), "table"), ("fails", Fails(), "table"))
    assert outcomes(fit) == ["kept", "failed: ValueError: singular"]
    late = fitted(("a", GaussianNB(), "table"), ("b", GaussianNB(), "table"), end=0.0)
    assert outcomes(late) == ["kept", "not tried: the time was over"]


def test_an_interruption_keeps_what_is_ready():
    class Interrupted(GaussianNB):
        def fit(self, X, y):
            raise KeyboardInterrupt

    fit = fitted(("nb", GaussianNB(), "table"), ("stop", Interrupted(), "table"))
    assert fit.interrupted
    assert list(fit.networks) == ["nb"]
    with pytest.raises(KeyboardInterrupt):
        fitted(("stop", Interrupted(), "table"))


def test_weights_and_validation_rows_reach_the_members():
    passed = []

    class Validated(GaussianNB):
        def fit(self, X, y, sample_weight=None, X_val=None, y_val=None):
            passed.append((len(X), sample_weight, len(X_val), len(y_val)))
            return super().fit(X, y, sample_weight)

    fitted(("v", Validated(), "table"))
    assert passed == [(180, None, 60, 60)] * 4
    fitted(("v", Validated(), "table"), weight=np.full(240, 2.0))
    assert passed[4][1].tolist() == [2.0] * 180


def test_views_reach_predictions():
    x = np.exp(X)
    fit = fitted(("nb", GaussianNB(), "warped"), x=x, n_jobs=2)
    networks = fit.networks["nb"]
    z = fit.views["warped"].transform(x)
    found = log_probas(networks, fit.views, fit.columns, x, None, x)
    for network, log_proba in zip(networks, found, strict=True):
        expected = network.estimator.predict_log_proba(z)
        np.testing.assert_allclose(log_proba, expected, atol=1e-9)


def test_missing_cells_are_imputed_for_networks_of_complete_numbers():
    x = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    mixture = imputation_mixture(surveyed(as_rows(x, CODES), np.arange(3)))
    fit = fitted(("l", LogisticRegression(), "scaled"), x=x, imputation=mixture)
    out = FOLD == 0
    network = fit.networks["l"][0]
    draws = [fit.views["scaled"].transform(z) for z in imputations(mixture, x[out])]
    expected = np.mean([network.estimator.predict_proba(z) for z in draws], axis=0)
    np.testing.assert_allclose(np.exp(fit.held_out["l"][out]), expected, atol=1e-9)


def test_what_leaves_rows_out_by_itself_is_trained_once():
    class Neighbors(KNeighborsClassifier):
        def leave_one_out_log_proba(self):
            near = self.kneighbors(
                return_distance=False
            )  # of the training rows, themselves left out
            votes = np.eye(3)[CODES][near].sum(axis=1) + 0.5
            return np.log(votes / votes.sum(axis=1, keepdims=True))

    fit = fitted(("near", Neighbors(10), "table"))
    (network,) = fit.networks["near"]
    np.testing.assert_allclose(
        fit.held_out["near"], network.estimator.leave_one_out_log_proba(), atol=1e-12
    )


def test_rows_are_not_scored_by_what_they_have_selected():
    class Selective(DummyClassifier):
        """Has predictions for its validation rows from settings that others of them select."""

        def fit(self, X, y, X_val=None, y_val=None):
            if X_val is not None:
                self.validation_log_proba_ = np.log(np.full((len(X_val), 3), 1 / 3))
            self._network_log_proba = self.predict_log_proba
            return super().fit(X, y)

    fit = fitted(("selective", Selective(strategy="most_frequent"), "table"))
    np.testing.assert_allclose(np.exp(fit.held_out["selective"]), 1 / 3)
    x = np.where(np.random.default_rng(1).random(fit.x.shape) < 0.1, np.nan, fit.x)
    mixture = imputation_mixture(surveyed(as_rows(x, CODES), np.arange(3), fit.columns))
    model = Selective(strategy="prior")
    views = [(view, model, view) for view in ("table", "scaled")]
    fit = fitted(*views, x=x, imputation=mixture)
    np.testing.assert_allclose(np.exp(fit.held_out["table"]), 1 / 3)
    # predictions averaged over imputations are of another network: nothing may select it
    assert not hasattr(fit.networks["scaled"][0].estimator, "validation_log_proba_")


@pytest.fixture
def small_samples(monkeypatch):
    for name, n_rows in (
        ("SAMPLE_ROWS", 60),
        ("MOST_KERNELS", 90),
        ("WEIGHT_ROWS", 120),
        ("RIDGE", 0.0),  # which keeps members of so few rows
    ):
        monkeypatch.setattr(f"kernelpool.pool.fit.{name}", n_rows)


def test_of_many_rows_a_sample_selects(small_samples):
    numbers = Columns.numbers(4)
    one = np.ones(240)
    whole = PoolFit(X, CODES, one, FOLD, columns=numbers, table=X, kind="log_linear")
    candidates = [
        Candidate("nb", GaussianNB(), "table"),
        Candidate("line", LogisticRegression(), "table"),
    ]
    fit = fit_pool(whole, candidates)
    assert len(fit.x) == 240
    outcome = {trial.name: trial.outcome for trial in fit.trials}
    assert outcome == {"line": "kept", "nb": "dropped on a sample"}
    sample = fit_pool(whole, candidates, end=perf_counter() + 1e-6)  # no time for more
    assert 60 <= len(sample.x) < 80
    np.testing.assert_array_equal(sample.x, X[sample.at])
    assert np.bincount(sample.codes).tolist() == [20, 20, 20]

    class Interrupted(GaussianNB):
        def fit(self, X, y):
            if len(X) > 100:
                raise KeyboardInterrupt
            return super().fit(X, y)

    stopped = fit_pool(whole, [Candidate("nb", Interrupted(), "table")])
    assert stopped.interrupted
    assert len(stopped.x) == len(sample.x)


def test_a_network_of_a_sample_predicts_the_other_rows(small_samples):
    fit = fitted(("parzen", ParzenClassifier(random_state=0), "scaled"))
    (network,) = fit.networks["parzen"]
    some = fit.chosen(90)
    rest = np.setdiff1d(np.arange(240), some)
    z = fit.views["scaled"].transform(X)
    assert len(network.estimator.kernels_) == len(some) == 90
    for rows, log_proba in (
        (some, network.estimator.leave_one_out_log_proba()),
        (rest, network.estimator.predict_log_proba(z[rest])),
    ):
        np.testing.assert_allclose(fit.held_out["parzen"][rows], log_proba, atol=1e-9)


def test_blocks_of_rows_are_predicted_alike(monkeypatch):
    x = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    mixture = imputation_mixture(surveyed(as_rows(x, CODES), np.arange(3)))
    fit = fitted(("l", LogisticRegression(), "scaled"), x=x, imputation=mixture)
    query = fit.networks["l"], fit.views, fit.columns, x, fit.draws, x
    expected = log_probas(*query)
    monkeypatch.setattr("kernelpool.pool.fit.BLOCK_ROWS", 50)
    np.testing.assert_allclose(log_probas(*query), expected, rtol=1e-12)
