"""Folds, cross-fitting and selection by held-out rows, by their definitions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import log_softmax
from scipy.stats import sem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from kernelpool import ParzenClassifier, RBFNetworkClassifier, SharedKernelClassifier
from kernelpool.data.door import surveyed
from kernelpool.data.folds import (
    Loss,
    Selection,
    choose,
    cross_fit,
    draw_rows,
    held_out_loss,
    hold_out,
    row_keys,
    stratified_folds,
)
from kernelpool.datasets import make_ripley
from kernelpool.rows import as_rows


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("seed", range(20))
def test_folds_are_equal_parts_of_every_class_and_stay_when_a_row_changes(n_folds, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 4)
    code = np.repeat([0, 1, 2, -1], sizes)
    n = len(code)
    key = rng.random(len(code))
    fold = stratified_folds(code, n_folds, key=key, weight=np.ones(n))
    for k, size in enumerate(sizes[:3]):
        counts = np.bincount(fold[code == k] + 1, minlength=n_folds + 1)
        assert counts[0] == (size if size == 1 else 0)  # the only row of its class always trains
        assert size == 1 or np.ptp(counts[1:]) <= 1
    assert (fold[code == -1] == -1).all()
    order = rng.permutation(n)
    twice = np.append(np.arange(n), rng.integers(n, size=9))
    for at in (order, twice):
        again = stratified_folds(code[at], n_folds, key=key[at], weight=np.ones(len(at)))
        assert_array_equal(again, fold[at])
    key[rng.integers(n)] = rng.random()
    again = stratified_folds(code, n_folds, key=key)
    assert (again != fold).sum() <= n_folds  # the row itself, and one at each cut


def test_keys_depend_on_the_content_of_rows_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    x[3, 1] = np.nan
    key = row_keys(x)
    assert len(np.unique(key)) == 40
    order = rng.permutation(40)
    assert_array_equal(row_keys(x[order]), key[order])
    assert_array_equal(row_keys(1024 * x + 8), key)  # the units do not matter
    twice = np.r_[np.arange(40), 5, 5]
    weight = np.ones(40)
    weight[5] = 3
    assert_array_equal(row_keys(x[twice]), row_keys(x, weight)[twice])
    frame = pd.DataFrame({"a": x[:, 0], "b": rng.choice(["u", "v", None], 40)})
    assert len(np.unique(row_keys(frame))) == 40
    assert_array_equal(row_keys(frame.iloc[order]), row_keys(frame)[order])
    arrow = pa.table(
        {"a": x[:, 0], "b": pa.array(frame["b"], from_pandas=True).dictionary_encode()}
    )
    assert_array_equal(row_keys(arrow), row_keys(frame))
    wild = x.copy()
    wild[np.argmax(x[:, 0]), 0] = 1e9  # another row changes its own key alone
    assert (row_keys(wild) != key).sum() == 1
    words = ["yes", "no", "yes"]
    assert row_keys(words)[0] == row_keys(words)[2] != row_keys(words)[1]
    flags = [pd.DataFrame({"c": c}) for c in (["true", "0"], ["True", "FALSE"], [True, False])]
    assert_array_equal(row_keys(flags[0]), row_keys(flags[1]))
    assert_array_equal(row_keys(flags[0]), row_keys(flags[2]))
    halves = pd.DataFrame({"c": ["\ud800", "a", "\ud800"]}, dtype=object)
    assert row_keys(halves)[0] == row_keys(halves)[2] != row_keys(halves)[1]
    assert len(np.unique(row_keys(csr_array(np.nan_to_num(x))))) == 40


def test_a_share_of_every_class_is_held_out_and_never_all_of_one():
    codes = np.array([0] * 50 + [1] * 10 + [2] + [-1] * 4)
    key = np.random.default_rng(0).random(65)
    out = hold_out(codes, 0.2, key=key)
    assert [out[codes == k].sum() for k in (0, 1, 2, -1)] == [10, 2, 0, 0]
    assert hold_out(np.array([0, 0]), 0.9, key=key[:2]).sum() == 1


def test_cross_fit_is_cross_val_predict_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = np.arange(60) % 3
    weight = rng.uniform(0.5, 2, 60)
    fold = rng.integers(0, 4, 60)
    model = LogisticRegression()

    def fit(train, held_out):
        network = LogisticRegression().fit(train[0], train[1], train[2])
        return network, network.predict_log_proba(held_out[0])

    networks, held_out = cross_fit(fit, (x, y, weight), fold)
    expected = cross_val_predict(
        model,
        x,
        y,
        cv=PredefinedSplit(fold),
        method="predict_log_proba",
        params={"sample_weight": weight},
    )
    assert_allclose(held_out, expected)
    some, parts = cross_fit(fit, (x, y, weight), np.where(fold == 3, -1, fold), only=[1])
    assert_array_equal(some[0].coef_, networks[1].coef_)
    assert_array_equal(np.isfinite(parts).all(axis=1), fold == 1)


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_each_part_is_scored_at_the_step_that_the_others_select(gain):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 40)
    weight = rng.uniform(0.5, 2, 40)
    steps = log_softmax(rng.normal(size=(12, 40, 3)), axis=2)
    selection = Selection(codes, weight, rng.random(40), gain)
    for step in steps:
        assert selection.add(step) == pytest.approx(
            log_loss(codes, np.exp(step), sample_weight=weight, labels=[0, 1, 2])
        )
    for p in range(5):
        others = selection.part != p
        least = np.inf
        for step in steps:
            loss = log_loss(
                codes[others], np.exp(step[others]), sample_weight=weight[others], labels=[0, 1, 2]
            )
            if loss < (1 - gain) * least:
                least = loss
                chosen = step
        assert_array_equal(selection.log_proba[~others], chosen[~others])


@pytest.mark.parametrize(
    ("model", "losses"),
    [
        (RBFNetworkClassifier(40), "loss_"),
        (SharedKernelClassifier(4), "conditional_loss_"),
        (ParzenClassifier(), "radius_losses_"),
    ],
)
def test_validation_rows_choose_and_training_rows_train(model, losses):
    X_val, y_val = make_ripley(300, random_state=7)
    model.set_params(random_state=0)
    model.fit(*make_ripley(200, random_state=0), X_val=X_val, y_val=y_val)
    loss = log_loss(y_val, model.predict_proba(X_val))
    assert np.min(getattr(model, losses)) == pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "loss"),
    [(RBFNetworkClassifier(30), "loss_"), (SharedKernelClassifier(4), "conditional_loss_")],
)
def test_validation_rows_do_not_select_their_own_predictions(model, loss):
    """For random labels no prediction has a mean loss below log 2; the least loss of all on the
    rows that select is below.
    """
    rng = np.random.default_rng(0)
    selected = []
    held_out = []
    for seed in range(24):
        (X, y), (X_val, y_val) = (
            (rng.normal(size=(n, 3)), rng.integers(0, 2, n)) for n in (60, 40)
        )
        model.set_params(random_state=seed).fit(X, y, X_val=X_val, y_val=y_val)
        log_proba = model.validation_log_proba_
        assert_allclose(np.exp(log_proba).sum(axis=1), 1, atol=1e-12)
        selected.append(getattr(model, loss))
        held_out.append(-log_proba[np.arange(40), y_val].mean())
    assert np.mean(selected) < np.mean(held_out) - 0.002
    assert np.mean(held_out) > np.log(2) - 2 * np.std(held_out) / np.sqrt(24)
    assert not hasattr(model.fit(X, y), "validation_log_proba_")


def test_rows_without_a_class_and_classes_ruled_out():
    selection = Selection(np.array([0, -1, 1]), np.ones(3), np.arange(3))
    with np.errstate(all="raise"):
        loss = selection.add(np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]]))
    assert loss == pytest.approx(5e5)  # of two rows with a class one is ruled out
    assert selection.add(np.log(np.full((3, 2), 0.5))) == pytest.approx(np.log(2))
    assert np.isfinite(selection.log_proba[0]).all()  # the others like the second step better


# -- losses on held-out rows ------------------------------------------------------------------------


def drawn(n=4000, sharpness=1.0, seed=0):
    """Rows whose class is drawn from softmax(logits), and the logits times `sharpness`."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    chance = np.exp(log_softmax(logits, axis=1))
    code = (rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1)
    return sharpness * logits, code


def test_plain_loss_is_the_log_loss():
    logits, code = drawn()
    weight = np.random.default_rng(1).uniform(0.5, 2, size=len(code))
    found = held_out_loss(logits + 1000.0, code, weight)
    expected = log_loss(code, np.exp(log_softmax(logits, axis=1)), sample_weight=weight)
    assert found.mean(found.plain) == pytest.approx(expected)


@pytest.mark.parametrize("sharpness", [1.0, 5.0, 40.0])
def test_tempered_loss_does_not_depend_on_how_sure_a_network_is(sharpness):
    honest, code = drawn()
    sure, _ = drawn(sharpness=sharpness)
    a, b = (held_out_loss(logits, code, np.ones(len(code))) for logits in (honest, sure))
    assert b.beta == pytest.approx(1 / sharpness, rel=0.1)
    assert b.mean(b.tempered) == pytest.approx(a.mean(a.tempered), abs=1e-4)
    assert sharpness == 1 or b.mean(b.plain) > a.mean(a.plain) + 0.1


def test_standard_error_is_that_of_the_paired_difference():
    logits, code = drawn(500)
    a = held_out_loss(logits, code, np.ones(500))
    b = held_out_loss(logits + logits**2, code, np.ones(500))
    behind, error = b.behind(a)
    assert behind == pytest.approx(b.tempered.mean() - a.tempered.mean())
    assert error == pytest.approx(sem(b.tempered - a.tempered, ddof=0))


def constant(tempered, plain, noise=0.0):
    """Losses of 100 rows with these means; `noise` is the deviation of both."""
    wave = np.resize([noise, -noise], 100)
    return Loss(plain + wave, tempered + wave, np.zeros(100), 1.0, np.ones(100))


# the standard error of a difference from the first is 1 / sqrt(100) = 0.1
@pytest.mark.parametrize(
    ("losses", "sizes", "expected"),
    [
        # the third is blunt, the second calmer than the first
        ([constant(0.50, 2.0), constant(0.58, 1.0, 1.0), constant(0.62, 0.1, 1.0)], [1, 9, 1], 1),
        # the third is less calm than the first by more than the error
        ([constant(0.50, 1.0), constant(0.55, 1.05, 1.0), constant(0.56, 1.2, 1.0)], [9, 5, 1], 1),
        ([constant(0.5, 1.001), constant(0.5, 1.0, 0.1), constant(0.5, 1.0)], [2, 2, 2], 1),
        ([constant(0.5, 1.0)] * 3, [4, 2, 2], 1),  # the earliest of equals
    ],
)
def test_choice_is_sharp_then_calm_then_small(losses, sizes, expected):
    assert choose(losses, [(size,) for size in sizes]) == expected
    assert choose(losses, [(0, size) for size in sizes]) == expected  # the second entry decides


def test_classes_are_as_common_among_drawn_rows_as_in_the_data():
    rng = np.random.default_rng(0)
    code = np.repeat([0, 1, -1], [9000, 300, 2000])
    weight = rng.choice([1.0, 4.0], len(code))
    x = rng.normal(size=(len(code), 2))
    drawn = draw_rows(surveyed(as_rows(x, code, weight), np.arange(2)), 0, most_rows=900)
    assert_array_equal(np.bincount(drawn.code + 1), [300] * 3)
    share = np.bincount(code + 1, weight) / weight.sum()
    assert_allclose(np.bincount(drawn.code + 1, drawn.weight) / drawn.weight.sum(), share)
