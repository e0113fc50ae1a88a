"""Metrics beside scikit-learn's and SciPy's; they add up over batches."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, sem
from sklearn.calibration import calibration_curve
from sklearn.dummy import DummyClassifier
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

from kernelpool import bounds
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import Predictions, ambiguity_of
from kernelpool.inspection.metrics import (
    N_BINS,
    Metrics,
    ModelComparison,
    Rate,
    bin_sums,
    compare_models,
    coverage_curve,
)


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    codes, decision = rng.integers(3, size=(2, 200))
    return codes, rng.dirichlet(np.full(3, 0.5), size=200), decision


def test_metrics_are_those_of_scikit_learn(predictions):
    true, probability, _ = predictions
    found = Metrics.of(true, probability)
    named = probability.argmax(axis=1)
    assert found.confusion.tolist() == confusion_matrix(true, named).tolist()
    assert found.log_loss == pytest.approx(log_loss(true, probability))
    assert found.brier == pytest.approx(
        brier_score_loss(true, probability, labels=[0, 1, 2], scale_by_half=False)
    )
    two = probability[:, :2] / probability[:, :2].sum(axis=1, keepdims=True)
    assert Metrics.of(true % 2, two).brier == pytest.approx(brier_score_loss(true % 2, two[:, 1]))
    right, mean = calibration_curve(named == true, probability.max(axis=1), n_bins=N_BINS)
    assert [b["right"] for b in found.calibration()] == pytest.approx(right.tolist())
    assert [b["probability"] for b in found.calibration()] == pytest.approx(mean.tolist())
    counts = np.array([b["n_rows"] for b in found.calibration()])
    assert found.calibration_error == pytest.approx(counts @ np.abs(right - mean) / 200)
    assert found.rate(0.05).n_errors == (named != true).sum()


def test_metrics_add_up_over_batches(predictions):
    true, probability, decision = predictions
    true[:30] = -1  # rows without a class are counted apart
    rows = replace(Predictions.of(range(3), probability), decision=decision)
    whole = Metrics.of(true, rows)
    parts = Metrics.none(3)
    for at in np.array_split(np.arange(200), 7):
        parts = parts + Metrics.of(true[at], rows.at(at))
    for name, value in vars(whole).items():
        if name != "ranking":
            assert_allclose(getattr(parts, name), value, err_msg=name)
    assert (parts.auc, parts.rare()) == (whole.auc, whole.rare())
    assert (whole.n_unlabeled, whole.n_rows) == (30, 170)
    wrong = (probability.argmax(axis=1) != true)[30:]
    taken = decision[30:] == 0
    rate = whole.accepted(0.05)
    assert (rate.n_errors, rate.n_rows) == (wrong[taken].sum(), taken.sum())


def test_a_class_that_the_model_does_not_know_is_an_error_of_no_probability():
    found = Metrics.of(np.array([0, 2]), np.array([[0.9, 0.1], [1.0, 0.0]]), n_true=3)
    assert (found.confusion.tolist(), found.n_errors) == ([[1, 0], [0, 0], [1, 0]], 1)
    assert found.log_loss == pytest.approx(-np.log([0.9, np.finfo(float).tiny]).mean())
    assert found.brier == pytest.approx((2 * 0.1**2 + 1) / 2)
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3], [1.0, 0.0]])
    true = [0, 1, 0, 1, 2]
    assert Metrics.of(np.array(true), p, n_true=3).auc == 3 / 4  # of four pairs one is out of order


def test_a_rate_is_a_sentence_and_a_record():
    rate = Rate.of(3, 1200, 0.05)
    assert str(rate) == "0.2 % (95 % interval 0.1 to 0.7 %; 3 of 1,200 rows)"
    assert rate.to_dict().items() >= {"n_rows": 1200, "error": 3 / 1200, "high": rate.high}.items()


def test_rows_at_the_edge_of_a_bin_go_where_scikit_learn_puts_them():
    p = np.array([0.1, 0.2, 0.5, 0.5, 0.7, 1.0])
    y = np.array([0, 1, 0, 1, 1, 1])
    n, mean, right = bin_sums(p, y)[bin_sums(p, y)[:, 0] > 0].T
    expected = calibration_curve(y, p, n_bins=N_BINS)
    assert_allclose([right / n, mean / n], expected)


def test_the_curve_accepts_rows_of_one_ambiguity_together_and_novel_ones_never():
    ambiguity = np.array([0.1, 0.3, 0.3, 0.0, 0.2])
    wrong = np.array([0, 1, 0, 1, 1], bool)
    curve = coverage_curve(ambiguity, wrong, np.ones(5), np.array([0, 0, 0, 0, 1], bool))
    expected = [0.2, 0.4, 0.8], [1, 1 / 2, 2 / 4], [0.0, 0.1, 0.3]
    assert_allclose(curve, expected)  # coverage, error, thresholds
    assert ambiguity_of(np.array([[0.3, 0.5, 0.2]])).tolist() == [0.5]


def test_two_classifiers_on_the_same_rows(predictions):
    true, first, _ = predictions
    both = first, np.random.default_rng(1).dirichlet(np.full(3, 0.5), size=200)
    found = ModelComparison.of(true, *both)
    named = [p.argmax(axis=1) for p in both]
    wrong = np.array(named) != true
    only = int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())
    assert (found.only_first, found.only_second) == only
    assert found.p_value == pytest.approx(binomtest(only[0], sum(only)).pvalue)
    assert found.errors == tuple(wrong.mean(axis=1))
    assert found.n_different == (named[0] != named[1]).sum()
    gap = np.log(both[0] / both[1])[np.arange(200), true]
    assert_allclose((found.log_loss_difference, found.log_loss_error), (gap.mean(), sem(gap)))
    assert found.log_losses == pytest.approx([log_loss(true, p) for p in both])
    ends = [bounds.paired_difference(*pair, 200, 0.025) for pair in (only, only[::-1])]
    assert_allclose(np.multiply(found.interval, [-1, 1]), ends)
    assert "chance may explain it" in str(found)
    one, other = (DummyClassifier().fit([[0.0]] * 2, names) for names in (["a", "b"], ["a", "c"]))
    assert compare_models(one, one, [[0.0], [3.0]], ["a", "b"]).p_value == 1
    with pytest.raises(KernelpoolError, match="Both must know the same classes"):
        compare_models(one, other, [[0.0]], ["a"])
