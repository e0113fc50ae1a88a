"""A sample of `make torture`: the same attacks, some dozens of each."""

import os

import numpy as np
import pytest
import torture


def test_hostile_problems_end_in_answers_or_in_sentences():
    kinds = torture.estimators(np.random.default_rng(0))
    fast = [name for name in kinds if name != "default"]  # it is "conditional" with more folds
    _, failures = torture.hostile_problems(len(kinds), seed=100, only=fast)
    assert failures == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_hostile_problems(part):
    _, failures = torture.hostile_problems(50, seed=200 + part)
    assert failures == []


def test_a_conditional_fit_of_folds_without_weight():
    rng = np.random.default_rng([0, 46])
    x, y, weight = torture.problem(rng, ordinary=True)
    assert (
        torture.attack("conditional", torture.estimators(rng)["conditional"], x, y, weight) is None
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore:This process")
def test_kills_in_mid_write_leave_a_whole_file():
    assert torture.kills(5) == 0


@pytest.mark.parametrize("i", [421, 1277])
def test_problems_that_once_fell(i):
    """float32 rows at 1e34 with weights from 5e-4 to 1e30, and float32 rows that are denormal
    numbers.
    """
    rng = np.random.default_rng([0, i])
    x, y, weight = torture.problem(rng, ordinary=False)
    makers = torture.estimators(rng)
    name = list(makers)[i % len(makers)]
    assert torture.attack(name, makers[name], x, y, weight) is None


@pytest.mark.parametrize("i", [100125, 117097, 117637, 240211])
def test_covariances_that_are_singular_to_rounding(i):
    """They end the acceleration of EM alone; in the units of the data, the fit."""
    assert torture.hostile_problems(1, first=i)[1] == []
