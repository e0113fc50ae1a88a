import math

import pytest

from kernelpool.em import Outcome, Stop, em
from kernelpool.squarem import Squarem


def towards(goal, rate=0.5):
    """A sweep whose parameter is a number and whose objective is highest at `goal`."""
    return lambda x: (x + rate * (goal - x), -((x - goal) ** 2))


def test_settles_and_keeps_the_objective_with_its_parameters():
    fit = em(towards(3.0), 0.0, Stop(200, 1e-10))
    assert fit.outcome is Outcome.CONVERGED
    assert fit.params == pytest.approx(3, abs=1e-4)
    assert fit.objective == -((fit.params - 3) ** 2) == fit.history[-1]
    assert len(fit.history) == fit.n_sweeps + 1
    assert fit.history == sorted(fit.history)


def test_max_iter_makes_that_many_steps():
    fit = em(towards(1.0), 0.0, Stop(3, 0))
    assert fit.params == 1 - 0.5**3
    assert fit.n_sweeps == 3
    assert fit.outcome is Outcome.MAX_ITER
    change = 0.5**4 - 0.5**6
    assert fit.sentence(3) == (
        f"EM stopped after max_iter=3 sweeps; the objective was still rising by {change:.2g} per "
        f"row. Raise max_iter, or tol."
    )


class Leap:
    """Proposes the same parameters every time."""

    def __init__(self, where):
        self.where = where
        self.rejected = 0

    def propose(self, params, better):
        return self.where

    def reject(self):
        self.rejected += 1


@pytest.mark.parametrize("where", [-50.0, math.nan])
def test_a_proposal_that_lowers_the_objective_is_taken_back(where):
    leap = Leap(where)
    plain = em(towards(1.0), 0.0, Stop(100, 1e-8))
    fit = em(towards(1.0), 0.0, Stop(100, 1e-8), accelerator=leap)
    assert leap.rejected > 3
    assert fit.params == plain.params
    assert fit.history == plain.history
    assert fit.n_sweeps == plain.n_sweeps + leap.rejected


def test_a_proposal_that_raises_it_is_kept():
    fit = em(towards(1.0), 0.0, Stop(100, 1e-8), accelerator=Leap(1.0))
    assert fit.params == 1.0
    assert fit.n_sweeps <= 4


def test_a_sweep_that_lowers_the_objective_is_noticed():
    fit = em(lambda x: (x + 1, -abs(x)), 0.0, Stop(10, 1e-3))
    assert fit.outcome is Outcome.FELL
    assert fit.params == 0.0
    assert "fell by 1 per row at sweep 1" in fit.sentence(10)


def test_callback_stops_and_interrupt_keeps_what_there_is():
    fit = em(towards(1.0), 0.0, Stop(100, 0), on_sweep=lambda fit: fit.n_sweeps == 4)
    assert (fit.outcome, fit.n_sweeps) == (Outcome.STOPPED, 4)

    def interrupted(x):
        if x > 0.9:
            raise KeyboardInterrupt
        return towards(1.0)(x)

    fit = em(interrupted, 0.0, Stop(100, 0))
    assert fit.outcome is Outcome.INTERRUPTED
    assert fit.params == 1 - 0.5**3
    assert fit.sentence(100) == "interrupted after 3 sweeps; the best parameters so far were kept"
    with pytest.raises(KeyboardInterrupt):
        em(interrupted, 0.95, Stop(100, 0))


def test_repair_is_asked_when_settled_and_judged():
    """Two peaks: plain steps settle at the lower one; a repair that shows the higher one is taken,
    another is not.
    """

    def sweep(x):
        goal, height = (0.0, 0.0) if x < 5 else (10.0, 1.0)
        return x + 0.5 * (goal - x), height - (x - goal) ** 2

    assert em(sweep, 1.0, Stop(100, 1e-9)).objective == pytest.approx(0, abs=1e-8)
    good = em(sweep, 1.0, Stop(100, 1e-9), repair=lambda x: 10.0 if x < 5 else None)
    assert good.objective == pytest.approx(1)
    assert good.history == sorted(good.history)
    for place in (lambda x: 3.0, lambda x: x):  # one lower, and one that gains nothing
        bad = em(sweep, 1.0, Stop(100, 1e-9), repair=place)
        assert bad.objective == pytest.approx(0, abs=1e-8)
        assert bad.outcome is Outcome.CONVERGED
        assert bad.n_sweeps < 50


def test_squarem_reaches_a_linear_fixed_point_at_once():
    """With one rate of convergence, squared extrapolation finds the fixed point from two steps
    (limit permitting).
    """
    np = pytest.importorskip("numpy")
    goal = np.array([1.0, -2.0])
    rate = 0.4
    accelerator = Squarem(lambda x: x, lambda x, like: x)
    fit = em(
        lambda x: (x + rate * (goal - x), -float(((x - goal) ** 2).sum())),
        np.zeros(2),
        Stop(50, 1e-12),
        accelerator=accelerator,
    )
    np.testing.assert_allclose(fit.params, goal, atol=1e-9)
    assert fit.n_sweeps <= 5  # plain steps would need 27


def test_a_proposal_that_gains_little_does_not_end_the_run():
    class Short(Leap):
        def propose(self, params, better):
            return params + 1e-9

    fit = em(towards(3.0), 0.0, Stop(200, 1e-6), accelerator=Short(None))
    assert fit.params == pytest.approx(3, abs=1e-2)
