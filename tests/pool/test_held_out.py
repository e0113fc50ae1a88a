import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import sem
from sklearn.metrics import log_loss

from kernelpool.data.door import training_data
from kernelpool.data.folds import Loss, choose, held_out_loss
from kernelpool.datasets import make_clouds
from kernelpool.mixtures.conditional import divide
from kernelpool.mixtures.fit import MixtureSettings, MixtureTraining


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
    assert found.mean(found.wrong) == pytest.approx(
        weight @ (logits.argmax(axis=1) != code) / weight.sum()
    )


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
    return Loss(plain + wave, tempered + wave, np.zeros(100, bool), 1.0, np.ones(100))


def test_choice_is_sharp_then_calm_then_small():
    # standard error of a difference from the first: 1 / sqrt(100) = 0.1
    losses = [constant(0.50, 2.0), constant(0.58, 1.0, 1.0), constant(0.62, 0.1, 1.0)]
    assert (
        choose(losses, [(1,), (9,), (1,)]) == 1
    )  # the third is blunt, the second calmer than the first
    losses = [constant(0.50, 1.0), constant(0.55, 1.05, 1.0), constant(0.56, 1.2, 1.0)]
    assert (
        choose(losses, [(9,), (5,), (1,)]) == 1
    )  # the third is less calm than the first by more than the error
    assert (
        choose([constant(0.5, 1.0)] * 3, [(4, 0), (2, 1), (2, 0)]) == 2
    )  # the second entry decides
    assert (
        choose([constant(0.5, 1.0 + 1e-3), constant(0.5, 1.0, 0.1), constant(0.5, 1.0)], [(2,)] * 3)
        == 1
    )  # the calmest
    assert choose([constant(0.5, 1.0)] * 3, [(4,), (2,), (2,)]) == 1  # the earliest of equals


# -- rows held out where they live -----------------------------------------------------------------


def moments(block):
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    return np.column_stack([weight, weight[:, None] * block.x, block.y * weight]).sum(axis=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
def test_every_row_either_trains_or_is_held_out(dtype, covariance_type, monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_HELD_OUT", 500)
    X, y = make_clouds(4000, random_state=0)
    X = (1000 + 3 * X).astype(dtype)
    y = np.where(np.arange(len(y)) % 5 == 0, 7, y)  # 7 marks rows without a class
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    data = training_data(X, y, weight, name="", n_jobs=1, unlabeled=7)
    settings = MixtureSettings(4, covariance_type, seed=3)
    part, out = divide(data, settings)
    assert (out.code >= 0).all()
    assert len(out.code) == pytest.approx(
        0.8 * 500, rel=0.2
    )  # one in five has no class, and always trains
    assert part.n_rows + len(out.code) == len(y)
    whole = MixtureTraining(data, settings)
    training = MixtureTraining(part, settings)
    x = whole.frame.inside(out.x)
    held = np.concatenate([[out.weight.sum()], out.weight @ x, [out.weight @ out.code]])
    np.testing.assert_allclose(
        whole.rows.total(moments),
        training.rows.total(moments) + held,
        rtol=1e-6,
        atol=0.1 if dtype == np.float32 else 1e-6,
    )
    np.testing.assert_allclose(
        part.class_weight + np.bincount(out.code, out.weight), data.class_weight
    )


def test_a_class_of_few_rows_is_not_held_out(monkeypatch):
    monkeypatch.setattr("kernelpool.mixtures.conditional.MOST_HELD_OUT", 3000)
    X, y = make_clouds(4000, random_state=0)
    y[:10] = 2
    _, out = divide(training_data(X, y, name=""), MixtureSettings(3))
    assert set(out.code) == {0, 1}
    assert len(out.code) == pytest.approx(800, rel=0.15)  # never more than a fifth
