"""Every network of mixtures: what drivers of EM, and solvers, may rely on.

Networks are found in the room: classes with a method `sweep(rows, params)`, on any backend. How one
is made stands in `SCENES`.
"""

import inspect
import pkgutil
from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

import array_api_strict as strict
import numpy as np
import pytest
from made_up_families import MADE_UP, some_kernels
from numpy.testing import assert_allclose, assert_array_equal

import kernelpool.mixtures
from kernelpool.arrays import match_array
from kernelpool.kernels import FAMILIES
from kernelpool.mixtures.learned_sharing import Learned, LearnedSharing
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import ArrayRows, Frame

M = 4
K = 3
D = 3
N = 240


def found():
    """Every network of the room."""
    names = (m.name for m in pkgutil.iter_modules(kernelpool.mixtures.__path__))
    modules = [import_module(f"kernelpool.mixtures.{name}") for name in names]
    return [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
        and list(inspect.signature(getattr(cls, "sweep", len)).parameters)
        == ["self", "rows", "params"]
    ]


class Scene(NamedTuple):
    """A network, parameters to start from, and the same with kernels in another order."""

    network: object
    params: object
    permuted: object


def mixing(rng):
    return rng.dirichlet(np.ones(M), size=K).T


ORDER = np.array([2, 0, 3, 1])


def shared_kernel(family, like):
    rng = np.random.default_rng(0)
    kernel = every(family)(match_array(np.full(D, 1e-9), like=like))
    kernels = some_kernels(every(family)(np.full(D, 1e-9)), M, D)
    share = mixing(rng)
    sharing = rng.uniform(0.2, 1, (M, K))
    prior = rng.dirichlet(np.ones(K))

    def at(order):
        taken = every(family)(np.full(D, 1e-9)).take(kernels, order)
        network = SharedKernel(kernel, match_array(sharing[order], like=like))
        return network, match_array(Params(taken, share[order], prior), like=like)

    return Scene(*at(np.arange(M)), at(ORDER))


def learned_sharing(family, like):
    plain = shared_kernel(family, like)
    sharing = match_array(np.random.default_rng(1).dirichlet(np.ones(K), size=M), like=like)

    def at(params, order):
        attention = match_array(np.asarray(sharing)[order], like=like)
        return Learned(params.kernels, params.mixing, params.class_prior, attention)

    network = LearnedSharing(plain.network.kernel, plain.network.sharing)
    return Scene(network, at(plain.params, np.arange(M)), (network, at(plain.permuted[1], ORDER)))


SCENES = {
    SharedKernel: shared_kernel,
    LearnedSharing: learned_sharing,
}
EVERY = {**FAMILIES, **MADE_UP}


def every(name):
    return EVERY[name]


@pytest.fixture(params=found(), ids=lambda cls: cls.__name__)
def make(request):
    assert request.param in SCENES, f"say in SCENES how {request.param.__name__} is made"
    return SCENES[request.param]


@pytest.fixture(params=list(EVERY))
def any_family(request):
    return request.param


@pytest.fixture
def data():
    """Rows, their classes and weights."""
    rng = np.random.default_rng(2)
    y = rng.integers(K, size=N)
    x = rng.normal(size=(N, D)) + 1.5 * rng.normal(size=(K, D))[y]
    return x, y, rng.integers(1, 4, size=N).astype(float)


def rows_of(x, y, weight=None, **more):
    frame = Frame(*match_array((np.zeros(D), np.ones(D)), like=x))
    return ArrayRows(x, y, weight, frame=frame, **more)


def numbers(params):
    """All numbers of a record of parameters, in order."""
    flat = []
    for value in vars(params).values():
        if hasattr(value, "__dataclass_fields__"):
            flat.append(numbers(value))
        elif hasattr(value, "shape"):
            flat.append(np.asarray(value).ravel())
    return np.concatenate(flat)


def assert_same(one, other):
    """Parameters, or a gradient, with the objective."""
    assert other[1] == pytest.approx(one[1], rel=1e-11)
    a, b = (np.asarray(numbers(p) if hasattr(p, "mixing") else p) for p, _ in (one, other))
    assert_allclose(b, a, rtol=1e-8, atol=1e-10)


def test_the_objective_never_falls(make, any_family, data):
    network, params, _ = make(any_family, np.zeros(1))
    rows = rows_of(*data)
    history = []
    for _ in range(12):
        params, objective = network.sweep(rows, params)
        history.append(objective)
    assert (np.diff(history) >= -1e-10).all()
    assert history[-1] > history[0] + 1e-4


def test_parameters_are_not_written_over(make, any_family, data):
    network, params, _ = make(any_family, np.zeros(1))
    before = numbers(params)
    first, second = (network.sweep(rows_of(*data), params) for _ in range(2))
    assert_array_equal(numbers(params), before)
    assert_array_equal(numbers(first[0]), numbers(second[0]))
    assert first[1] == second[1]


@pytest.mark.parametrize("method", ["sweep", "gradient"])
def test_equal_rows_give_equal_answers(make, any_family, data, method):
    """Rows as often as their weight, cut, in another order, by class, of another library; or the
    kernels in another order.
    """
    x, y, weight = data
    network, params, (turned_network, turned) = make(any_family, np.zeros(1))
    if not hasattr(network, method):
        return
    answer = getattr(network, method)
    expected = answer(rows_of(*data), params)
    times = weight.astype(int)
    order = np.random.default_rng(0).permutation(N)
    cut = rows_of(x[order], y[order], weight[order], width=40_000)
    assert cut.n_blocks > 1
    for rows in (rows_of(np.repeat(x, times, axis=0), np.repeat(y, times)), cut, cut.by_class()):
        assert_same(expected, answer(rows, params))
    there, moved, _ = make(any_family, strict.asarray(np.zeros(1)))
    assert_same(expected, getattr(there, method)(rows_of(*map(strict.asarray, data)), moved))
    other, objective = getattr(turned_network, method)(rows_of(*data), turned)
    assert objective == pytest.approx(expected[1], rel=1e-11)
    if method == "sweep":
        mixing = np.asarray(expected[0].mixing)[ORDER]
        assert_allclose(np.asarray(other.mixing), mixing, rtol=1e-8, atol=1e-12)


# -- those that have a gradient --------------------------------------------------------------------


@pytest.fixture(
    params=[cls for cls in found() if hasattr(cls, "gradient")],
    ids=lambda cls: cls.__name__,
)
def differentiable(request):
    return SCENES[request.param]


def conditional(network, params, x, y, weight):
    """The mean of log P(y|x) over the rows with a class, by Bayes' rule on the densities."""
    natural_params = network.kernel.natural_params(params.kernels, 2.2e-16)
    density = (
        np.exp(network.kernel.log_density(natural_params, x)).T @ params.mixing * params.class_prior
    )
    known = y >= 0
    own = density[np.arange(len(y)), y] / density.sum(axis=1)
    return (weight * np.log(own))[known].sum() / weight[known].sum()


@pytest.mark.parametrize("hidden", [0.0, 0.3], ids=["labeled", "unlabeled"])
def test_gradients_are_slopes(differentiable, any_family, data, hidden):
    """By central differences of Bayes' rule, with weights; rows without a class take no part, and
    zero stays zero.
    """
    x, y, weight = data
    y = np.where(np.random.default_rng(0).random(N) < hidden, -1, y)
    network, params, _ = differentiable(any_family, np.zeros(1))
    share = np.array(params.mixing)
    share[1, 2] = 0
    params = replace(params, mixing=share / share.sum(axis=0))
    found_, objective = network.gradient(rows_of(x, y, weight), params)
    assert objective == pytest.approx(conditional(network, params, x, y, weight), rel=1e-12)
    vector = network.to_vector(params)
    step = 1e-5

    def value(at):
        return conditional(network, network.from_vector(at, params), x, y, weight)

    slope = [
        (value(vector + step * e) - value(vector - step * e)) / (2 * step)
        for e in np.eye(len(vector))
    ]
    assert_allclose(found_, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
    away = network.from_vector(
        vector + 0.1 * np.random.default_rng(1).normal(size=len(vector)), params
    )
    assert ((away.mixing == 0) == (params.mixing == 0)).all()
    assert_allclose(
        numbers(network.from_vector(vector, params)), numbers(params), rtol=1e-10, atol=1e-12
    )


def test_gradients_where_densities_underflow(differentiable, any_family, data):
    """One row lies a thousand deviations out, where every density is zero: the gradient is that of
    exact logarithms.
    """
    weight = data[2]
    network, params, _ = differentiable(any_family, np.zeros(1))
    alone = np.full((1, D), 1000.0), np.array([1]), np.ones(1)
    far = [np.concatenate(pair) for pair in zip(data, alone, strict=True)]
    whole, near, out = (
        np.append(*network.gradient(rows_of(*part), params)) for part in (far, data, alone)
    )
    share = weight.sum() / (weight.sum() + 1)
    assert_allclose(whole, share * near + (1 - share) * out, rtol=1e-7, atol=1e-9)
    assert np.isfinite(whole).all()
