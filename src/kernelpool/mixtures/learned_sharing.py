r"""Degrees of sharing learned for every kernel and class.

After Titsias & Likas, "Class conditional density estimation using mixtures with constrained
component sharing", IEEE Transactions on Pattern Analysis and Machine Intelligence 25(7), 2003. What
is raised is

.. math:: \sum_k \sum_{x \in C_k} \log \sum_j r_{jk}\, \pi_{jk}\, p(x \mid j), \qquad
    \sum_k r_{jk} = 1, \quad \sum_j \pi_{jk} = 1

Each kernel has one unit of attention to give, and the classes compete for it. A class that has most
of a kernel's rows gets most of its attention, sees the kernel larger, and takes more of its rows;
so a kernel ends with one class, unless several lie so much alike in it that they cannot be told
apart there.

==================  ==================  =======  =====================================================================
paper               here                shape    meaning
==================  ==================  =======  =====================================================================
:math:`r_{jk}`      ``sharing``         (M, K)   attention of kernel j to class k; each row sums to one
:math:`\pi_{jk}`    ``mixing``          (M, K)   weight of kernel j for class k; each column sums to one
==================  ==================  =======  =====================================================================

One sweep is the E-step (29) of the shared-kernel network with :math:`\lambda_{jk} = r_{jk}`, its
M-step (35)-(37), and

.. math:: r_{jk} = \frac{\sum_{x \in C_k} h_{jk}(x)}{\sum_{k'} \sum_{x \in C_{k'}} h_{jk'}(x)}

which is the share of class k in the rows of kernel j. It is EM, so the objective never falls.

Deviations: rows may have weights or no label, and a penalty may be added, as to any network. As
with a fixed
:math:`\lambda`, the table plays a part in training alone: prediction is (2), with :math:`\pi_{jk}`.
"""

from dataclasses import replace

from ..arrays import Array, device, namespace
from ..rows import Rows
from ..sums import record
from .e_step import shares_of_classes
from .network import Params, SharedKernel, moves


@record
class Learned(Params):
    """A network and its sharing."""

    sharing: Array
    """(M, K); each row sums to one."""


def init_sharing(params: Params) -> Learned:
    """A start: every kernel heeds the classes as they use it, in the shares that the M-step would
    give.
    """
    xp = namespace(params.mixing)
    use = params.mixing * params.class_prior
    sharing = shares_of_classes(use, xp.ones_like(use) / use.shape[1])
    return Learned(params.kernels, params.mixing, params.class_prior, sharing)


class LearnedSharing(SharedKernel):
    """Networks of one kernel family whose table of sharing is learned with them."""

    def table(self, params: Learned) -> Array:  # type: ignore[override]
        """lambda_jk = r_jk."""
        return params.sharing

    @property
    def takes_classes_apart(self) -> bool:
        """Every class may use all kernels."""
        return self.penalty.by_class

    def sweep(self, rows: Rows, params: Learned) -> tuple[Learned, float]:  # type: ignore[override]
        """One E-step and one M-step: better parameters, and the objective a row of the given
        ones.
        """
        better, objective, mass = self.sweep_and_mass(rows, params)
        return replace(better, sharing=shares_of_classes(mass, params.sharing)), objective

    # -- coordinates in which steps may be extrapolated --------------------------------------------

    def coordinates(self, params: Learned) -> Array:  # type: ignore[override]
        """Square roots of the sharing behind the coordinates of the network."""
        xp = namespace(params.mixing)
        return xp.concat([super().coordinates(params), xp.reshape(params.sharing**0.5, (-1,))])

    def at(self, coordinates: Array, like: Learned) -> Learned:  # type: ignore[override]
        xp = namespace(coordinates)
        n = like.sharing.shape[0] * like.sharing.shape[1]
        params = super().at(coordinates[:-n], like)
        sharing = xp.reshape(coordinates[-n:], like.sharing.shape) ** 2
        return replace(params, sharing=shares_of_classes(sharing, like.sharing))

    # -- kernels that have lost their rows ---------------------------------------------------------

    def moved(  # type: ignore[override]
        self, rows: Rows, params: Learned, empty: list[int], owner: Array, class_weight: Array
    ) -> Learned:
        """The same network with empty kernels moved, which are then shared alike by all classes."""
        xp = namespace(params.mixing)
        moved = super().moved(rows, params, empty, owner, class_weight)
        went = list(moves(empty, owner).values())
        alike = xp.asarray(
            [[j in went] for j in range(params.sharing.shape[0])], device=device(params.sharing)
        )
        even = xp.ones_like(params.sharing) / params.sharing.shape[1]
        return replace(moved, sharing=xp.where(alike, even, params.sharing))
