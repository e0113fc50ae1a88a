"""The maximizer, on objectives whose maximum is known."""

import numpy as np
import pytest

from kernelpool.em import Outcome
from kernelpool.lbfgs import maximize


def rosenbrock(point):
    x, y = point
    value = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    return -np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)]), -value


def test_the_maximum_is_found():
    found = maximize(rosenbrock, np.array([-1.2, 1.0]), max_iter=200, tol=1e-15)
    np.testing.assert_allclose(found.point, [1, 1], atol=1e-5)  # Rosenbrock's own
    assert found.outcome is Outcome.CONVERGED
    assert (np.diff(found.history) >= 0).all()
    assert found.history[0] == pytest.approx(-24.2)
    assert found.n_steps == len(found.history) - 1


def test_few_steps_are_said_to_be_few():
    found = maximize(rosenbrock, np.array([-1.2, 1.0]), max_iter=3)
    assert found.outcome is Outcome.MAX_ITER
    assert found.n_steps == 3


def test_bounds_are_kept():
    found = maximize(
        rosenbrock, np.array([-1.2, 1.0]), max_iter=200, bounds=[(None, 0.5), (None, None)]
    )
    assert found.point[0] == pytest.approx(0.5)
    assert found.point[1] == pytest.approx(0.25, abs=1e-4)  # y = x^2 in the valley


def test_a_callback_ends_the_search():
    steps = []
    found = maximize(
        rosenbrock,
        np.array([-1.2, 1.0]),
        on_step=lambda point, value: steps.append(value) or len(steps) == 4,
    )
    assert found.outcome is Outcome.STOPPED
    assert found.n_steps == 3  # the start is told of too
    assert found.objective == max(steps)


def test_an_interruption_keeps_the_best_point():
    calls = []

    def interrupted(point):
        calls.append(point)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return rosenbrock(point)

    found = maximize(interrupted, np.array([-1.2, 1.0]))
    assert found.outcome is Outcome.INTERRUPTED
    assert found.objective == max(rosenbrock(point)[1] for point in calls[:7])
    np.testing.assert_array_equal(rosenbrock(found.point)[1], found.objective)


def test_an_objective_that_is_no_number_is_stepped_back_from():
    def logarithm(point):  # the logarithm of x less x, not a number below zero: highest at one
        with np.errstate(all="ignore"):
            return 1 / point - 1, float((np.log(point) - point)[0])

    found = maximize(logarithm, np.array([1e-3]), max_iter=100)
    assert found.point[0] == pytest.approx(1, abs=1e-3)
