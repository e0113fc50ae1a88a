"""A kernel family that the package does not have: what it takes to add one."""

import math

import numpy as np

from kernelpool.arrays import Array, match_array, namespace
from kernelpool.kernels import Kernel, KernelSums, NaturalParams
from kernelpool.sums import record


@record
class Centers:
    """The parameters of `Unit`: no covariance at all."""

    center: Array


@record
class CenterSums(KernelSums):
    first: Array


class Unit(Kernel):
    """Gaussians of width one, written as an exponential family that knows nothing of `Gaussian`:
    phi(x) = x.
    """

    name = "unit"
    equivariant = False

    def __init__(self, floor=None):
        pass

    def n_features(self, d):
        return d

    def write_features(self, out, block):
        out[...] = block.x.T

    def natural_params(self, kernels, eps):
        xp = namespace(kernels.center)
        d = kernels.center.shape[1]
        return NaturalParams(
            kernels.center,
            -0.5 * xp.sum(kernels.center**2, axis=1) - 0.5 * d * math.log(2 * math.pi),
            (),
            0 * kernels.center,
        )

    def common(self, natural_params, x):
        return -0.5 * namespace(x).sum(x * x, axis=1)

    def log_peak(self, kernels):
        return 0 * kernels.center[:, 0] - 0.5 * kernels.center.shape[1] * math.log(2 * math.pi)

    def sums(self, phi, x, responsibility):
        return phi @ responsibility.T

    def moments(self, mass, sums, natural_params, x, responsibility):
        return CenterSums(mass, sums.T)

    def with_pseudocounts(self, moments, moment_origin, vanished, kernels, mass):
        xp = namespace(moment_origin)
        trace = mass / moments.mass.shape[1] + 0 * moments.mass
        return CenterSums(
            xp.where(vanished[:, None], trace, moments.mass),
            xp.where(vanished[:, None], mass * kernels.center, moments.first),
        )

    def estimate(self, moments, moment_origin, prior=None):
        return Centers(moments.first / namespace(moments.mass).sum(moments.mass, axis=1)[:, None])

    def coordinates(self, kernels):
        return namespace(kernels.center).reshape(kernels.center, (-1,))

    def at(self, coordinates, like):
        return Centers(namespace(coordinates).reshape(coordinates, like.center.shape))

    def pullback(self, kernels, moments, moment_origin):
        xp = namespace(kernels.center)
        return xp.reshape(
            moments.first - xp.sum(moments.mass, axis=1)[:, None] * kernels.center, (-1,)
        )

    def n_parameters(self, n_kernels, d):
        return n_kernels * d

    def take(self, kernels, index):
        return Centers(namespace(kernels.center).take(kernels.center, index, axis=0))

    def move(self, kernels, to):
        center = namespace(kernels.center).asarray(kernels.center, copy=True)
        for j, row in to.items():
            center[j, :] = row
        return Centers(center)

    def place(self, groups):
        return Centers(namespace(groups[0][0]).concat([centers for centers, _, _ in groups]))

    def given(self, kernels, known, rest, x):
        xp = namespace(kernels.center)
        return Unit(), Centers(xp.take(kernels.center, xp.asarray(rest), axis=1))

    def sample(self, kernels, j, n, rng):
        return kernels.center[j, :] + match_array(
            rng.standard_normal((n, kernels.center.shape[1])), like=kernels.center
        )

    def into(self, kernels, frame):
        return Centers((kernels.center - frame.origin) / frame.unit)

    def out_of(self, kernels, frame):
        return Centers(kernels.center * frame.unit + frame.origin)


MADE_UP = {"unit": Unit}


def some_kernels(kernel, n_kernels, d, seed=0):
    """Kernels of any family, not like each other: placed at random rows, then moved in the family's
    coordinates.
    """
    rng = np.random.default_rng(seed)
    groups = [(rng.normal(size=(n_kernels, d)), rng.normal(size=(50, d)), np.ones(50))]
    placed = kernel.place(groups)
    vector = kernel.coordinates(placed)
    # what is zero stays: coordinates may have entries that count nothing
    return kernel.at(vector + 0.3 * rng.normal(size=vector.shape), placed)
