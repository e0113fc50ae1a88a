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

from ..arrays import Array, device, namespace
from ..kernels import Kernel
from ..penalties import Anchor
from ..rows import Rows
from ..sums import record
from .network import Params, SharedKernel, sharing_table

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


def split(
    kernel: Kernel, rows: Rows, shared: Params, sharing: Array, least: float, belief: float = BELIEF
) -> Parts:
    """The subkernels of every kernel; pairs with less than `least` of mass are left out, but for
    the largest of a class.

    They come from one sweep of a network that has a copy of each kernel for each class: its
    responsibilities are those of the shared kernels.
    """
    xp = namespace(shared.mixing)
    n_kernels, n_classes = shared.mixing.shape
    home = device(shared.mixing)
    parent = xp.asarray([*range(n_kernels)] * n_classes, dtype=xp.int64, device=home)
    owner = xp.repeat(xp.arange(n_classes, dtype=xp.int64, device=home), n_kernels)
    own = sharing_table(owner, 0.0, n_classes)  # (K M, K)
    copies = kernel.take(shared.kernels, parent)
    mixing = own * xp.take(shared.mixing, parent, axis=0)
    table = own * xp.take(sharing, parent, axis=0)
    network = SharedKernel(kernel, table, Anchor(belief, copies))
    start = Params(copies, mixing, shared.class_prior)
    better, _, mass = network.sweep_and_mass(rows, start)
    of_pair = xp.sum(mass, axis=1)
    largest = {int(xp.argmax(better.mixing[:, k])) for k in range(n_classes)}
    pairs = range(n_classes * n_kernels)
    absent = [i for i in pairs if i not in largest and float(of_pair[i]) < least]
    kept = [i for i in pairs if i not in absent]
    return Parts(
        network.without(better, absent),
        [i // n_kernels for i in kept],
        [i % n_kernels for i in kept],
    )
