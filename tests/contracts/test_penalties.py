"""Every penalty, in every family: what the M-step and the guide promise of it.

Penalties are found in the package `kernelpool.penalties` and made from the names of their
parameters (`WORDS`), so a new one is tested as soon as its file is there. The worked example of
"Add a penalty" is tested with them.
"""

import inspect
import pkgutil
from importlib import import_module
from itertools import product
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelpool.penalties
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


WORDS = {
    "strength": lambda family, strength: [strength],
    "distance": lambda family, strength: DISTANCES,
    "step": lambda family, strength: STEPS,
    "units": lambda family, strength: ["raw"],
    "variance": lambda family, strength: [np.array([1.0, 1.2, 0.8])],
    "n_kernels": lambda family, strength: [M],
    "shrinkage": lambda family, strength: [0.01],
    "home": lambda family, strength: [some_kernels(family, seed=9)],
    "terms": lambda family, strength: [
        (Conjugate(np.array([1.0, 1.2, 0.8]), M), Overlap(strength)),
        (Conjugate(np.array([1.0, 1.2, 0.8]), M), Anchor(strength, some_kernels(family, seed=9))),
        (
            NoPenalty(),
            Anchor(strength, some_kernels(family, seed=9)),
            Anchor(strength, some_kernels(family, seed=8)),
        ),
    ],
}
"""What a penalty's parameters may be given, by their names: one penalty is made of every
combination.
"""


def forms_of(cls, family, strength=4.0):
    """The penalty in all its forms at one strength."""
    names = [] if cls.__init__ is object.__init__ else list(inspect.signature(cls).parameters)
    unknown = [name for name in names if name not in WORDS]
    assert not unknown, f"say in WORDS what {cls.__name__} may be given for {unknown}"
    every = product(*(WORDS[n](family, strength) for n in names))
    return [
        cls(*values[0]) if cls is Sum else cls(**dict(zip(names, values, strict=True)))
        for values in every
    ]


ALL = [pytest.param(cls, id=cls.__name__) for cls in found()]
every_penalty = pytest.mark.parametrize("cls", ALL)


def those(condition):
    """Only the penalties that make the promise that is tested."""
    return pytest.mark.parametrize("cls", [param for param in ALL if condition(param.values[0])])


def has_strength(cls):
    return "strength" in inspect.signature(cls).parameters


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


def rows_of(x, y, weight):
    return ArrayRows(x, y, weight, frame=Frame(np.zeros(D), np.ones(D)))


def network_of(family, penalty, sharing):
    return SharedKernel(FAMILIES[family](np.full(D, 1e-6)), sharing, penalty)


def assert_same(a, b, **close):
    for one, other in (
        (a.kernels.mean, b.kernels.mean),
        (a.kernels.covariance, b.kernels.covariance),
        (a.mixing, b.mixing),
    ):
        assert_allclose(np.asarray(one), np.asarray(other), **close)


def test_all_are_found():
    names = {cls.__name__ for cls in found()}
    assert {"NoPenalty", "Conjugate", "Overlap", "Sum", "Anchor", "Wall"} <= names
    exported = {cls.__name__ for cls in found() if cls.__module__.startswith("kernelpool")}
    assert exported <= set(kernelpool.penalties.__all__)


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
            assert network.sweep(rows, fit.params)[1] == pytest.approx(
                fit.objective, rel=1e-12
            )  # its own, not another's
            if penalty.monotone:
                assert (np.diff(fit.history) >= -1e-10).all()


@those(has_strength)
def test_strength_zero_is_no_penalty_bit_for_bit(cls, family, scene):
    x, y, weight, params, sharing = scene
    rows = rows_of(x, y, weight)
    plain = network_of(family, None, sharing)
    for penalty in forms_of(cls, family, strength=0.0):
        here = params
        network = network_of(family, penalty, sharing)
        for _ in range(3):
            (expected, value), (better, same) = plain.sweep(rows, here), network.sweep(rows, here)
            assert value == same
            assert_array_equal(better.kernels.mean, expected.kernels.mean)
            assert_array_equal(better.kernels.covariance, expected.kernels.covariance)
            assert_array_equal(better.mixing, expected.mixing)
            here = expected


def test_a_sum_of_penalties_adds_what_they_state(family):
    """Whatever the order and the brackets."""
    rng = np.random.default_rng(5)
    kernel = FAMILIES[family](np.zeros(D))
    kernels = some_kernels(family)
    a = Conjugate(np.array([1.0, 1.2, 0.8]), M)
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


@those(lambda cls: cls is not Overlap)
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
            natural_params = kernel.natural_params(kernels, 1e-16)
            return float(
                (responsibility.T * kernel.log_density(natural_params, x)).sum()
            ) + penalty.objective(kernel, kernels, None)

        moment_origin = np.zeros((M, D))
        best = kernel.estimate(
            moments, moment_origin, penalty.prior_statistics(kernel, moments, moment_origin, None)
        )
        top = value(best)
        vector = kernel.covariance_coordinates(best.covariance)

        def along(step, towards, wider, best=best, vector=vector):
            return value(
                Kernels(
                    best.mean + step * towards,
                    kernel.covariance_at(vector + step * wider, best.covariance),
                )
            )

        for _ in range(10):
            towards = rng.normal(size=(M, D))
            wider = rng.normal(size=vector.shape) * (vector != 0)
            assert max(along(0.01, towards, wider), along(-0.01, towards, wider)) < top
            assert (
                abs(along(1e-4, towards, wider) - along(-1e-4, towards, wider)) < 1e-7
            )  # level, too


@every_penalty
def test_columns_are_distributions_whatever_the_masses(cls, family):
    rng = np.random.default_rng(3)
    kernel = FAMILIES[family](np.zeros(D))
    kernels = some_kernels(family)
    before = rng.dirichlet(np.ones(M), size=K).T
    for strength in (1e-3, 4.0, 1e6):
        for penalty in forms_of(cls, family, strength):
            for scale in (1e-9, 1.0, 1e9):
                mass = scale * rng.exponential(size=(M, K)) ** 4
                mass[1, :] = 0  # a kernel without rows
                mass[:, 2] = 0  # a class without rows
                posterior = rng.dirichlet(np.ones(K), size=M)
                posterior[:, 2] = 0
                means = rng.normal(size=(M, K, D)) * 5
                sub = kernelpool.penalties.Subkernels(
                    posterior,
                    tuple(Kernels(means[:, k], kernels.covariance) for k in range(K)),
                    some_kernels(family, seed=4),
                )
                mixing = penalty.mixing(kernel, mass, before, kernels, sub)
                assert (mixing >= 0).all()
                assert_allclose(mixing.sum(axis=0), 1)
                assert_array_equal(mixing[:, 2], before[:, 2])


@every_penalty
def test_libraries_agree(cls, family, scene):
    x, y, weight, params, sharing = scene
    xp = array_api_strict
    there = ArrayRows(
        xp.asarray(x), xp.asarray(y), xp.asarray(weight), frame=Frame(xp.zeros(D), xp.ones(D))
    )
    moved = Params(
        Kernels(xp.asarray(params.kernels.mean), xp.asarray(params.kernels.covariance)),
        xp.asarray(params.mixing),
        xp.asarray(params.class_prior),
    )
    kernel = FAMILIES[family](xp.asarray(np.full(D, 1e-6)))
    for penalty in forms_of(cls, family):
        expected, value = network_of(family, penalty, sharing).sweep(rows_of(x, y, weight), params)
        better, same = SharedKernel(kernel, xp.asarray(sharing), penalty).sweep(there, moved)
        assert same == pytest.approx(value, rel=1e-11)
        assert_same(better, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not installed")
def test_the_worked_example_does_what_the_page_says():
    """The wall keeps kernels wide, by the very formula (S + s V) / n."""
    names = example()
    low = names["narrowest"][0.0]
    high = names["narrowest"][2.0]
    assert f"a variance of {low:.0e}; with it, it keeps {high:.2f}." in " ".join(
        PAGE.read_text().split()
    )
    kernel = FAMILIES["diag"](np.zeros(2))
    moments = Moments(np.array([[4.0]]), np.array([[0.0, 0.0]]), np.array([[8.0, 2.0]]))
    wall = names["Wall"](3.0, np.array([1.0, 2.0]))
    found_ = kernel.estimate(moments, np.zeros((1, 2)), wall.rows(kernel, np.zeros((1, 2))))
    assert_allclose(found_.covariance, [[(8 + 3) / 4, (2 + 6) / 4]])
