"""Held-out rows that choose for each other, by the definition."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from kernelpool.training.judging import Judging


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_each_part_is_judged_at_the_step_that_suits_the_others(gain):
    rng = np.random.default_rng(0)
    codes, weight, part = rng.integers(0, 3, 40), rng.uniform(0.5, 2, 40), np.arange(40) % 4
    steps = log_softmax(rng.normal(size=(12, 40, 3)), axis=2)
    judging = Judging(codes, weight, part, gain)
    for step in steps:
        assert judging.see(step) == pytest.approx(
            log_loss(codes, np.exp(step), sample_weight=weight, labels=[0, 1, 2])
        )
    for p in range(4):
        others, least = part != p, np.inf
        for step in steps:
            loss = log_loss(
                codes[others], np.exp(step[others]), sample_weight=weight[others], labels=[0, 1, 2]
            )
            if loss < (1 - gain) * least:
                least, chosen = loss, step
        np.testing.assert_array_equal(judging.log_proba[part == p], chosen[part == p])


def test_rows_without_a_class_and_classes_ruled_out():
    judging = Judging(np.array([0, -1, 1]), np.ones(3), np.array([0, 1, 2]))
    with np.errstate(all="raise"):
        loss = judging.see(np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]]))
    assert loss == pytest.approx(5e5)  # of two rows with a class one is ruled out
    assert judging.see(np.log(np.full((3, 2), 0.5))) == pytest.approx(np.log(2))
    assert np.isfinite(judging.log_proba[0]).all()  # the others like the second step better
