"""Cross-fitted candidates, with scikit-learn's classifiers as members."""

from time import perf_counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from kernelpool import ParzenClassifier, RBFNetworkClassifier, SharedKernelClassifier
from kernelpool.complete.imputation import imputation_mixture, imputations
from kernelpool.data.door import surveyed
from kernelpool.pool.combine import log_loss, log_mean_proba
from kernelpool.pool.fit import PoolFit, PoolSettings
from kernelpool.pool.members import Candidate
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns

CODES = np.arange(240) % 3
X = np.random.default_rng(0).normal(size=(240, 4)) + 1.2 * np.eye(3, 4)[CODES]
FOLD = (np.arange(240) // 3) % 4
MISSING = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
BAYES = Candidate("bayes", GaussianNB(), "table")


def pool_fit(x=X, weight=None, imputation=None, pooling="auto", n_jobs=None, end=np.inf):
    prior = np.full(3, 1 / 3)
    settings = PoolSettings(None, None, pooling, None, prior, seed=0, n_jobs=n_jobs)
    weight = np.ones(240) if weight is None else weight
    columns = Columns.numbers(4)
    at = np.arange(240)
    return PoolFit(x, x, CODES, weight, FOLD, at, columns, imputation, settings, end)


def fitted(*candidates, **kwargs):
    fit = pool_fit(**kwargs)
    fit.run(candidates)
    return fit


def outcomes(fit):
    return [trial.outcome for trial in fit.trials]


def raising(error, n_rows=0):
    class Raising(GaussianNB):
        def fit(self, X, y):
            if len(X) > n_rows:
                raise error
            return super().fit(X, y)

    return Candidate("raising", Raising(), "table")


def test_held_out_predictions_are_those_of_cross_val_predict():
    fit = fitted(BAYES)
    expected = cross_val_predict(
        GaussianNB(), X, CODES, cv=PredefinedSplit(FOLD), method="predict_log_proba"
    )
    assert_allclose(fit.held_out["bayes"], expected, atol=1e-8)
    assert fit.trials[0].loss == pytest.approx(log_loss(expected, CODES, np.ones(240)))
    assert len(fit.networks["bayes"]) == 4


def test_candidates_may_fail_or_come_too_late():
    fit = fitted(BAYES, raising(ValueError("singular")))
    assert outcomes(fit) == ["kept", "failed: ValueError: singular"]
    assert outcomes(fitted(BAYES, BAYES, end=0.0)) == ["kept", "not tried: the time was over"]
    slow = pool_fit(end=perf_counter() + 60)
    slow.run([BAYES])
    slow.end = perf_counter() + 1e-4
    slow.run([BAYES])
    assert outcomes(slow)[1].startswith("not tried: it takes ")


def test_an_interruption_keeps_what_is_ready():
    fit = fitted(BAYES, raising(KeyboardInterrupt))
    assert list(fit.networks) == ["bayes"]
    with pytest.raises(KeyboardInterrupt, match="1 member was pooled"):
        fit.warn_if_unfinished(240)
    with pytest.raises(KeyboardInterrupt):
        fitted(raising(KeyboardInterrupt))


def test_weights_reach_the_members():
    passed = []

    class Weighed(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            passed.append((len(X), sample_weight))
            return super().fit(X, y, sample_weight)

    fitted(Candidate("weighed", Weighed(), "table"))
    assert passed == [(180, None)] * 4
    fitted(Candidate("weighed", Weighed(), "table"), weight=np.full(240, 2.0))
    assert passed[4][1].tolist() == [2.0] * 180


def test_views_reach_predictions():
    x = np.exp(X)
    fit = fitted(Candidate("parzen", ParzenClassifier(random_state=0), "warped"), x=x, n_jobs=2)
    ((network,),) = fit.networks.values()
    expected = network.estimator.predict_log_proba(fit.views["warped"].transform(x))
    assert_allclose(log_mean_proba([network], fit.rows), expected, atol=1e-9)


def test_missing_cells_are_imputed_for_networks_of_complete_numbers():
    mixture = imputation_mixture(surveyed(as_rows(MISSING, CODES), np.arange(3)))
    rbf = RBFNetworkClassifier(10, width=1.0, ridge=1.0)
    line = LogisticRegression()
    fit = fitted(
        Candidate("rbf", rbf, "scaled"),
        Candidate("line", line, "complete table"),
        x=MISSING,
        imputation=mixture,
    )
    out = FOLD == 0
    for name, transform in (("rbf", fit.views["scaled"].transform), ("line", np.asarray)):
        network = fit.networks[name][0]
        draws = [transform(z) for z in imputations(mixture, MISSING[out])]
        expected = np.mean([network.estimator.predict_proba(z) for z in draws], axis=0)
        assert_allclose(np.exp(fit.held_out[name][out]), expected, atol=1e-9)
    # the pool imputes: its members need no mixture for that
    with pytest.raises(ValueError, match="fitted to columns without missing cells"):
        fit.networks["rbf"][0].estimator.predict(MISSING)


def test_rows_are_not_scored_by_what_they_have_selected():
    candidates = [
        Candidate("mixture", SharedKernelClassifier(3, training="conditional"), "codes"),
        Candidate("rbf", RBFNetworkClassifier(10), "scaled"),
    ]
    fit = fitted(*candidates)
    for name in fit.networks:
        for f, network in enumerate(fit.networks[name]):
            expected = network.estimator.validation_log_proba_
            assert_allclose(fit.held_out[name][f == FOLD], expected, atol=1e-9)
    # predictions averaged over imputations are of another network: nothing may select it
    mixture = imputation_mixture(surveyed(as_rows(MISSING, CODES), np.arange(3)))
    fit = fitted(*candidates, x=MISSING, imputation=mixture)
    assert not hasattr(fit.networks["rbf"][0].estimator, "validation_log_proba_")
    assert hasattr(fit.networks["mixture"][0].estimator, "validation_log_proba_")


@pytest.fixture
def small_samples(monkeypatch):
    for name, n_rows in (("SAMPLE_ROWS", 60), ("MOST_CENTERS", 90), ("WEIGHT_ROWS", 120)):
        monkeypatch.setattr(f"kernelpool.pool.fit.{name}", n_rows)
    # it keeps members of so few rows
    monkeypatch.setattr("kernelpool.pool.combine.RIDGE", 0.0)


def test_of_many_rows_a_sample_selects(small_samples):
    candidates = [BAYES, Candidate("line", LogisticRegression(), "table")]
    fit = pool_fit(pooling="log_linear").selected(candidates)
    assert len(fit.x) == 240
    outcome = {trial.name: trial.outcome for trial in fit.trials}
    assert outcome == {"line": "kept", "bayes": "dropped on a sample"}
    no_time = pool_fit(pooling="log_linear", end=perf_counter() + 1e-6)
    sample = no_time.selected(candidates)
    assert 60 <= len(sample.x) < 80
    assert_array_equal(sample.x, X[sample.at])
    assert np.bincount(sample.codes).tolist() == [20, 20, 20]
    stopped = pool_fit().selected([raising(KeyboardInterrupt, n_rows=100)])
    assert stopped.interrupted
    assert len(stopped.x) == len(sample.x)


def test_a_network_that_leaves_rows_out_is_trained_once_and_predicts_the_rows_of_no_kernel(
    small_samples,
):
    fit = fitted(Candidate("parzen", ParzenClassifier(random_state=0), "scaled"))
    ((network,),) = fit.networks.values()
    centers = fit.positions(90)
    rest = np.setdiff1d(np.arange(240), centers)
    z = fit.views["scaled"].transform(X)
    assert len(network.estimator.kernels_) == len(centers) == 90
    for at, log_proba in (
        (centers, network.estimator.leave_one_out_log_proba()),
        (rest, network.estimator.predict_log_proba(z[rest])),
    ):
        assert_allclose(fit.held_out["parzen"][at], log_proba, atol=1e-9)
