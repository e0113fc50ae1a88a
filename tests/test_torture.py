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


def test_the_attacks_notice_what_is_wrong():
    class Broken:
        def __init__(self, proba):
            self.proba = proba

        def fit(self, x, y, sample_weight=None):
            if self.proba is None:
                raise ZeroDivisionError("by nothing")
            return self

        def predict_proba(self, x):
            return np.full((len(x), 2), self.proba)

    x, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    assert "ZeroDivisionError" in torture.attack("broken", lambda: Broken(None), x, y, None)
    assert "sum to one" in torture.attack("broken", lambda: Broken(np.nan), x, y, None)
    assert torture.attack("whole", lambda: Broken(0.5), x, y, None) is None


@pytest.mark.parametrize("i", [421, 1277])
def test_problems_that_once_fell(i):
    """float32 rows at 1e34 with weights from 5e-4 to 1e30, and float32 rows that are denormal numbers."""
    rng = np.random.default_rng([0, i])
    x, y, weight = torture.problem(rng, ordinary=False)
    makers = torture.estimators(rng)
    name = list(makers)[i % len(makers)]
    assert torture.attack(name, makers[name], x, y, weight) is None
