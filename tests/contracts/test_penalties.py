"""Every penalty, in every family: what the M-step and the guide promise of it.

Penalties are found in the package `kernelpool.penalties` and made from the names of their
parameters (`words`), so a new one is tested as soon as its file is there. The worked example of
"Add a penalty" is tested with them.
"""

import inspect
import pkgutil
from importlib import import_module
from itertools import product
from operator import attrgetter
from pathlib import Path

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelpool.penalties
from kernelpool.arrays import match_array
from kernelpool.em import Outcome, Stop, em
from kernelpool.kernels import FAMILIES, Kernels, Moments
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.penalties import (
    Anchor,
    Conjugate,
    NoPenalty,
    Overlap,
    Penalty,
    Sum,
)
from kernelpool.penalties.overlap import DISTANCES, STEPS
from kernelpool.rows import ArrayRows, Frame
from kernelpool.squarem import Squarem

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending" / "add_a_penalty.md"
VARIANCE = np.array([1.0, 1.2, 0.8])
M = 5
K = 3
D = 3


def example():
    """What the code blocks of the page define, the second running on the first."""
    blocks = [block.split("```")[0] for block in PAGE.read_text().split("```python\n")[1:]]
    names = {"__name__": "worked_example"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    return names


def found():
    """Every penalty of the package, and the page's."""
    modules = [
        import_module(f"kernelpool.penalties.{module.name}")
        for module in pkgutil.iter_modules(kernelpool.penalties.__path__)
    ]
    classes = [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
        and issubclass(cls, Penalty)
        and cls.__name__ not in ("Penalty", "PriorRows")
    ]
    return [*classes, example()["Wall"]] if PAGE.exists() else classes


def some_kernels(family, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(M, D, D)) / 3
    full = root @ root.swapaxes(1, 2) + np.eye(D) * 0.8
    covariance = {
        "spherical": rng.uniform(0.5, 2, M),
        "diag": rng.uniform(0.5, 2, (M, D)),
        "full": full,
        "tied": full[0],
    }
    return Kernels(rng.normal(size=(M, D)), covariance[family])


def words(family, strength):
    """What a penalty's parameters may be given, by their names: one penalty is made of every
    combination.
    """
    conjugate = Conjugate(VARIANCE, M)
    home = some_kernels(family, seed=9)
    anchors = (Anchor(strength, home), Anchor(strength, some_kernels(family, seed=8)))
    return {
        "strength": [strength],
        "distance": DISTANCES,
        "step": STEPS,
        "units": ["raw"],
        "variance": [VARIANCE],
        "n_kernels": [M],
        "shrinkage": [0.01],
        "home": [home],
        "terms": [(conjugate, Overlap(strength)), (conjugate, *anchors), (NoPenalty(), *anchors)],
    }


def forms_of(cls, family, strength=4.0):
    """The penalty in all its forms at one strength."""
    names = [] if cls.__init__ is object.__init__ else list(inspect.signature(cls).parameters)
    given = words(family, strength)
    assert set(names) <= set(given), f"say in words what {cls.__name__} may be given"
    return [
        cls(*(values[0] if cls is Sum else values)) for values in product(*map(given.get, names))
    ]


ALL = found()
every_penalty = pytest.mark.parametrize("cls", ALL)


@pytest.fixture
def scene(family):
    """Rows with weights, a fifth of them without a label, and parameters to start from."""
    rng = np.random.default_rng(1)
    y = rng.integers(K, size=90)
    x = rng.normal(size=(90, D)) + rng.normal(size=(K, D))[y]
    labels = np.where(rng.random(90) < 0.2, -1, y)
    weight = rng.integers(1, 4, size=90).astype(float)
    mixing = rng.dirichlet(np.ones(M), size=K).T
    params = Params(some_kernels(family), mixing, np.bincount(y) / 90)
    sharing = rng.uniform(0.4, 1, size=(M, K))
    return x, labels, weight, params, sharing


def rows_of(x, y, weight, xp=np):
    return ArrayRows(x, y, weight, frame=Frame(xp.zeros(D), xp.ones(D)))


def network_of(family, penalty, sharing):
    return SharedKernel(FAMILIES[family](np.full(D, 1e-6)), sharing, penalty)


def assert_same(a, b, rtol=0, atol=0):
    (value, objective), (other, same) = a, b
    assert same == pytest.approx(objective, rel=rtol, abs=0)
    for part in ("kernels.mean", "kernels.covariance", "mixing"):
        one, another = (np.asarray(attrgetter(part)(params)) for params in (value, other))
        assert_allclose(another, one, rtol=rtol, atol=atol)


def test_all_are_found():
    names = {cls.__name__ for cls in ALL if cls.__module__.startswith("kernelpool")}
    assert {"NoPenalty", "Conjugate", "Overlap", "Sum", "Anchor"} <= names
    assert names <= set(kernelpool.penalties.__all__)


@every_penalty
def test_the_objective_never_falls_or_the_best_is_returned(cls, family, scene):
    x, y, weight, start, sharing = scene
    rows = rows_of(x, y, weight)
    for penalty in forms_of(cls, family):
        network = network_of(family, penalty, sharing)
        for accelerator in (None, Squarem(network.coordinates, network.at)):
            stop = Stop(max_iter=6, tol=0, monotone=penalty.monotone)
            sweep = lambda params, n=network: n.sweep(rows, params)  # noqa: E731
            fit = em(sweep, start, stop, accelerator=accelerator)
            assert fit.outcome is not Outcome.FELL
            assert np.isfinite(fit.history).all()
            assert fit.objective == pytest.approx(max(fit.history), abs=1e-9)
            own = network.sweep(rows, fit.params)[1]  # and not another's
            assert own == pytest.approx(fit.objective, rel=1e-12)
            if penalty.monotone:
                assert (np.diff(fit.history) >= -1e-10).all()


@pytest.mark.parametrize(
    "cls", [cls for cls in ALL if "strength" in inspect.signature(cls).parameters]
)
def test_strength_zero_is_no_penalty_bit_for_bit(cls, family, scene):
    x, y, weight, params, sharing = scene
    rows = rows_of(x, y, weight)
    plain = network_of(family, None, sharing)
    for penalty in forms_of(cls, family, strength=0.0):
        here = params
        network = network_of(family, penalty, sharing)
        for _ in range(3):
            expected = plain.sweep(rows, here)
            assert_same(expected, network.sweep(rows, here))
            here = expected[0]


def test_a_sum_of_penalties_adds_what_they_state(family):
    """Whatever the order and the brackets."""
    rng = np.random.default_rng(5)
    kernel = FAMILIES[family](np.zeros(D))
    kernels = some_kernels(family)
    a = Conjugate(VARIANCE, M)
    b = Anchor(3.0, some_kernels(family, seed=9))
    sub = kernelpool.penalties.Subkernels(
        rng.dirichlet(np.ones(K), size=M), tuple(some_kernels(family, s) for s in range(K))
    )
    overlap = Overlap(2.0)
    origin = np.zeros((M, D))
    moments = Moments(np.ones((M, K)), np.ones((M, D)), 9 * kernel.flat(kernels.covariance))
    each = [p.prior_statistics(kernel, moments, origin, sub) for p in (a, b, overlap)]
    values = sum(p.objective(kernel, kernels, sub) for p in (a, b, overlap))
    for total in (a + b + overlap, a + (b + overlap), overlap + b + a):
        assert total.by_class
        assert not total.monotone
        assert total.objective(kernel, kernels, sub) == pytest.approx(values, rel=1e-12)
        found_ = total.prior_statistics(kernel, moments, origin, sub)
        for name, value in vars(found_).items():
            assert_allclose(value, sum(getattr(one, name) for one in each), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cls", [cls for cls in ALL if cls is not Overlap])
def test_the_m_step_is_the_maximum_of_likelihood_and_belief(cls, family):
    """Of the expected complete log-likelihood plus the belief: no kernel nearby has more of it."""
    rng = np.random.default_rng(2)
    kernel = FAMILIES[family](np.full(D, 1e-9))
    x = rng.normal(size=(60, D))
    responsibility = rng.dirichlet(np.ones(M), size=60)
    second = kernel.pool_moments(responsibility.T @ kernel.square(x.T).T)
    moments = Moments(responsibility.sum(axis=0)[:, None], responsibility.T @ x, second)
    for penalty in (penalty for penalty in forms_of(cls, family) if penalty.monotone):

        def value(kernels, penalty=penalty):
            log_density = kernel.log_density(kernel.natural_params(kernels, 1e-16), x)
            belief = penalty.objective(kernel, kernels, None)
            return (responsibility.T * log_density).sum() + belief

        origin = np.zeros((M, D))
        prior = penalty.prior_statistics(kernel, moments, origin, None)
        best = kernel.estimate(moments, origin, prior)
        top = value(best)
        vector = kernel.covariance_coordinates(best.covariance)

        for _ in range(10):
            towards = rng.normal(size=(M, D))
            wider = rng.normal(size=vector.shape) * (vector != 0)
            values = [
                value(
                    Kernels(
                        best.mean + step * towards,
                        kernel.covariance_at(vector + step * wider, best.covariance),
                    )
                )
                for step in (0.01, -0.01, 1e-4, -1e-4)
            ]
            assert max(values[:2]) < top
            assert abs(values[2] - values[3]) < 1e-7  # level, too


@every_penalty
def test_columns_are_distributions_whatever_the_masses(cls, family):
    rng = np.random.default_rng(3)
    kernel = FAMILIES[family](np.zeros(D))
    kernels = some_kernels(family)
    before = rng.dirichlet(np.ones(M), size=K).T
    for strength, scale in product((1e-3, 4.0, 1e6), (1e-9, 1.0, 1e9)):
        for penalty in forms_of(cls, family, strength):
            mass = scale * rng.exponential(size=(M, K)) ** 4
            mass[1, :] = 0  # a kernel without rows
            mass[:, 2] = 0  # a class without rows
            posterior = rng.dirichlet(np.ones(K), size=M)
            posterior[:, 2] = 0
            means = rng.normal(size=(K, M, D)) * 5
            sub = kernelpool.penalties.Subkernels(
                posterior,
                tuple(Kernels(mean, kernels.covariance) for mean in means),
                some_kernels(family, seed=4),
            )
            mixing = penalty.mixing(kernel, mass, before, kernels, sub)
            assert (mixing >= 0).all()
            assert_allclose(mixing.sum(axis=0), 1)
            assert_array_equal(mixing[:, 2], before[:, 2])


@every_penalty
def test_libraries_agree(cls, family, scene):
    x, y, weight, params, sharing = scene
    there = rows_of(*map(strict.asarray, (x, y, weight)), strict)
    like = strict.asarray(sharing)
    kernel = FAMILIES[family](match_array(np.full(D, 1e-6), like=like))
    for penalty in forms_of(cls, family):
        expected = network_of(family, penalty, sharing).sweep(rows_of(x, y, weight), params)
        network = SharedKernel(kernel, like, penalty)
        found_ = network.sweep(there, match_array(params, like=like))
        assert_same(expected, found_, rtol=1e-9, atol=1e-11)


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not installed")
def test_the_worked_example_does_what_the_page_says():
    """The wall keeps kernels wide, by the very formula (S + s V) / n."""
    names = example()
    low, high = (names["narrowest"][strength] for strength in (0.0, 2.0))
    text = " ".join(PAGE.read_text().split())
    assert f"a variance of {low:.0e}; with it, it keeps {high:.2f}." in text
    kernel = FAMILIES["diag"](np.zeros(2))
    moments = Moments(np.array([[4.0]]), np.array([[0.0, 0.0]]), np.array([[8.0, 2.0]]))
    wall = names["Wall"](3.0, np.array([1.0, 2.0]))
    found_ = kernel.estimate(moments, np.zeros((1, 2)), wall.rows(kernel, np.zeros((1, 2))))
    assert_allclose(found_.covariance, [[(8 + 3) / 4, (2 + 6) / 4]])
