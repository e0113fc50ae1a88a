"""A small sample of the tables, against the published figures, and the pieces they are made of."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.svm import SVC

from papers import (
    comparison,
    competitive_neurons,
    minimal_kernel_networks,
    regularized_prbf,
    shared_kernels,
)
from papers.data import missing_reason
from papers.experiment import Unit
from papers.folds import folds, load
from papers.shared_kernels import errors
from papers.summary import summarize


def verdicts(module, *units):
    """Rows of the cells that the units contribute to."""
    records = [
        {"table": unit.table, "dataset": unit.dataset, "repeat": unit.repeat, **record}
        for unit in units
        for record in module.work(unit)
    ]
    return [row for row in summarize(records, [module.NAME]) if row["repeats"]]


def higher(rows):
    return [
        (row["dataset"], row["method"], row["parameter"], row["kernels"], row["ours"])
        for row in rows
        if row["verdict"] == "higher"
    ]


def needs(name):
    return pytest.mark.skipif(missing_reason(name) is not None, reason=str(missing_reason(name)))


def test_shared_kernels_on_one_fold_of_clouds():
    """Within four points of the published 11.26 % (a standard deviation of 0.75), and not below the
    best possible 9.65 % by more than chance.
    """
    found = errors(next(folds("clouds", 0)), 12, max_iter=20, tol=1e-3)
    assert len(found) == 7
    assert all(7 < error < 15.3 for method, _, error in found if method != "rbf")
    assert found[0][0] == "rbf"
    assert found[0][2] > 15  # Netlab's one wide width does not see the small clouds


@pytest.mark.slow
def test_shared_kernels_on_clouds():
    rows = verdicts(shared_kernels, Unit("shared-kernels", "clouds", 12))
    assert len(rows) == 7
    assert higher(rows) == []
    assert all(row["ours"] > 9.0 for row in rows)  # the best possible classifier errs on 9.65 %
    rbf = next(row for row in rows if row["method"] == "rbf")
    assert rbf["ours"] > 18  # Netlab's one wide width does not see the small clouds


@needs("ionosphere")
def test_shared_kernels_on_ionosphere():
    rows = verdicts(shared_kernels, Unit("shared-kernels", "ionosphere", 12))
    assert len(rows) == 7
    assert higher(rows) == []


@needs("ionosphere")
def test_regularized_prbf_on_ionosphere():
    rows = verdicts(regularized_prbf, Unit("regularized-prbf", "ionosphere", 6, method="next"))
    assert len(rows) == 5
    assert higher(rows) == []
    by_strength = {row["parameter"]: row["ours"] for row in rows}
    assert by_strength["15"] < by_strength["0"]  # what the paper is about


def test_competitive_neurons_on_wdbc_in_few_steps(monkeypatch):
    monkeypatch.setattr(competitive_neurons, "RIVALS", {"svm-gaussian": (SVC(), {"C": [1, 10]})})
    monkeypatch.setitem(competitive_neurons.FAITHFUL, "max_iter", 150)
    rows = verdicts(competitive_neurons, Unit("competitive-neurons", "wdbc"))
    assert {row["method"] for row in rows} == {"svm-gaussian", "neurons", "competitive-neurons"}
    assert all(row["ours"] < 7 for row in rows)  # one trial of 228 rows; the paper has 2.3 to 6.6


@pytest.mark.slow
def test_competitive_neurons_on_wdbc():
    rows = verdicts(competitive_neurons, Unit("competitive-neurons", "wdbc"))
    assert {row["method"] for row in rows} == {
        "backprop",
        "svm-gaussian",
        "svm-polynomial",
        "neurons",
        "competitive-neurons",
    }
    assert all(row["ours"] < 7 for row in rows)  # one trial of 228 rows; the paper has 2.3 to 6.6


def test_folds_are_standardized_by_their_training_rows():
    _, y = load("wdbc")
    seen = []
    for fold in folds("wdbc", 0):
        assert np.allclose(fold.X.mean(axis=0), 0)
        assert np.allclose(fold.X.std(axis=0), 1)
        assert not np.allclose(fold.X_test.mean(axis=0), 0, atol=1e-3)
        assert abs(fold.y_test.mean() - y.mean()) < 0.01
        seen.append(len(fold.y_test))
    assert sum(seen) == len(y)


@needs("satimage")
def test_satimage_keeps_its_own_scale():
    fold = next(folds("satimage5", 0))
    within = np.mean([fold.X[fold.y == k].var(axis=0) for k in range(6)])
    assert (
        fold.X.var(axis=0).max() > 3 * within
    )  # unit variance within classes, far more between them


def test_a_mixture_of_one_margin_classifier_is_a_support_vector_machine():
    X, y = make_blobs(200, centers=2, cluster_std=3, random_state=0)
    one = SVC(kernel="linear")
    mixture = competitive_neurons.MarginMixture(1)
    assert np.array_equal(one.fit(X, y).predict(X), mixture.fit(X, y).predict(X))


# -- comparison ------------------------------------------------------------------------------------


def test_one_full_mixture_a_class_is_qda():
    X, y = make_blobs(
        [3000, 700, 300], cluster_std=3, n_features=2, random_state=0
    )  # unequal, so that the priors count
    ours = comparison.ClassMixtures(sizes=(1,), shapes=("full",)).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis().fit(X, y)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999


@pytest.mark.parametrize("method", ["QDA", "Gaussian mixtures"])
def test_a_fold_of_the_comparison(method):
    (record,) = comparison.work(Unit("comparison", "wdbc", None, 2, method))
    assert record["error"] < 12
    assert 0 < record["log_loss"] < 2
    assert 0 <= record["calibration"] < 15
    assert record["fit_seconds"] > 0


# -- minimal kernel networks -----------------------------------------------------------------------


def test_editing_removes_the_overlap():
    edited = minimal_kernel_networks.figure_2()
    wrong_side = (edited.X[:, 0] > 0) != (edited.y == 1)  # by the best possible boundary
    assert wrong_side.mean() > 0.1
    assert wrong_side[edited.kept].mean() < 0.03
    assert edited.error_after < edited.error_best + 2
    assert set(edited.reduced) <= set(edited.kept)
    assert len(edited.reduced) == minimal_kernel_networks.N_REDUCED
    assert edited.error_reduced < edited.error_best + 2


def test_the_bounds_of_the_discussion():
    sizes = minimal_kernel_networks
    assert sizes.baum_haussler(36) == pytest.approx(18 * sizes.baum_haussler(2))  # "a factor d"
    for error in (
        0.1,
        0.01,
    ):  # (ln L + ln 2/delta) / (2 g^2 e^2) over 2 (ln L + ln 1/delta) / (g^2 e)
        log_networks = 20 * np.log(np.e * 50)
        ratio = (log_networks + np.log(40)) / (log_networks + np.log(20)) / (4 * error)
        assert sizes.absolute(error) / sizes.corollary_1(error) == pytest.approx(ratio)
    assert "| 0.1 | 8,099 | 20,386 | 2.5 | 1,207,957 |" in sizes.comparison()
