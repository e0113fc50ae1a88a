r"""Shared kernels split into one subkernel for each class.

Titsias & Likas, "Mixture of experts classification using a hierarchical mixture model", Neural
Computation 14(9), 2002.

.. math:: p(x \mid C_k) = \sum_j \pi_{jk}\, p(x \mid j, k)

A row is drawn from a source j, a kernel of the shared network; within it each class has a source of
its own. The sources are found with the kernels shared, and the subkernels from the responsibilities
:math:`h_{jk}` that the shared kernels leave behind: kernel j as the rows of class k alone would
have it.

======================  ============  =======================================================================
paper                   here          meaning
======================  ============  =======================================================================
:math:`p(x \mid j)`     ``shared``    the trained network that is split
:math:`p(x \mid j, k)`  ``Parts``     one kernel for each pair of a kernel and a class with rows in it
======================  ============  =======================================================================

Deviations. A class may have a handful of rows in a kernel, or none: each subkernel starts with
`BELIEF` rows' worth of belief that it looks like its shared kernel, and a pair with less than a row
is left out. What is returned is an ordinary network in which no kernel is shared, so everything
that is true of networks is true of it.
"""

from typing import Any, cast

from ..arrays import Array, device, match_array, namespace
from ..kernels import Kernel
from ..penalties import Anchor, NoPenalty
from ..rows import Rows
from ..sums import record
from .network import VANISHED, Params, SharedKernel, TotalsByClass

BELIEF = 20.0
"""Rows' worth of belief that a class looks, in a kernel, as all its classes do together."""


@record
class Parts:
    """A network of subkernels, class by class."""

    params: Params
    owner: list[int]
    """The class of each subkernel, (M,)."""
    parent: list[int]
    """The shared kernel that each was split from, (M,)."""


class _ByClass(NoPenalty):
    """Maximum likelihood that asks for the moments of each class."""

    by_class = True


def split(
    kernel: Kernel, rows: Rows, shared: Params, sharing: Array, least: float, belief: float = BELIEF
) -> Parts:
    """The subkernels of every kernel; pairs with less than `least` of mass are left out."""
    network = SharedKernel(kernel, sharing, _ByClass())
    e_step_params = network.e_step_params(shared, rows.eps)
    totals = cast(TotalsByClass, network.totals(rows, e_step_params))
    xp = namespace(shared.mixing)
    mass = network.by_class(totals.moments.mass, e_step_params)  # (M, K)
    n_kernels, n_classes = mass.shape
    every = [j for _ in range(n_classes) for j in range(n_kernels)]
    index = xp.asarray(every, dtype=xp.int64, device=device(mass))
    home = kernel.take(shared.kernels, index)
    moment_origin = xp.take(
        kernel.moment_origin(match_array(e_step_params.natural_params, like=mass)), index, axis=0
    )
    moments = kernel.concat_moments(
        cast(Any, totals.by_class), xp.reshape(mass.T, (-1, 1))
    )  # those of class 0 first
    absent = moments.mass[:, 0] <= VANISHED * totals.weight / n_kernels
    moments = kernel.with_pseudocounts(moments, moment_origin, absent, home, VANISHED)
    born = kernel.estimate(
        moments,
        moment_origin,
        Anchor(belief, home).prior_statistics(kernel, moments, moment_origin, None),
    )
    chosen = _chosen(mass, least)
    mixing = xp.stack([_column(mass, k, chosen) for k in range(n_classes)], axis=1)
    keep = xp.asarray([k * n_kernels + j for j, k in chosen], dtype=xp.int64, device=device(mass))
    params = Params(kernel.take(born, keep), mixing, shared.class_prior)
    return Parts(params, [k for _, k in chosen], [j for j, _ in chosen])


def _chosen(mass: Array, least: float) -> list[tuple[int, int]]:
    """Pairs of kernel and class with enough mass, class by class; a class keeps its largest in any
    case.
    """
    xp, (n_kernels, n_classes) = namespace(mass), mass.shape
    largest = [int(xp.argmax(mass[:, k])) for k in range(n_classes)]
    return [
        (j, k)
        for k in range(n_classes)
        for j in range(n_kernels)
        if float(mass[j, k]) >= least or j == largest[k]
    ]


def _column(mass: Array, k: int, chosen: list[tuple[int, int]]) -> Array:
    """pi_jk of class k over all chosen pairs; a class without weight has equal shares of its
    own.
    """
    xp = namespace(mass)
    mine = xp.asarray([float(c == k) for _, c in chosen], dtype=mass.dtype, device=device(mass))
    column = mine * xp.stack([mass[j, c] for j, c in chosen])
    column = column if float(xp.sum(column)) > 0 else mine
    return column / xp.sum(column)
