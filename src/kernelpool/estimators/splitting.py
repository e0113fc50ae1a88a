"""What `split_by_class` does to a trained network: one subkernel for each class, then refined."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from ..arrays import match_array
from ..em import Fit, Outcome
from ..networks.hierarchical import split
from ..networks.learned_sharing import Learned
from ..networks.shared_kernel import Params, sharing_table
from ..penalties import Anchor
from ..rows import one_blas_thread
from .training import Training


@dataclass(frozen=True)
class Result:
    """A fitted network, whether split or not, with what belongs to its kernels."""

    fit: Fit[Params]
    sharing: np.ndarray
    """(M, K)."""
    owners: np.ndarray
    """(M,)."""
    parents: np.ndarray | None = None
    """The shared kernel that each was split from, (M,); None if nothing was split."""


def split_by_class(
    training: Training, shared: Result, anchor: float, on_sweep: Callable[[Fit[Params]], bool] | None = None
) -> Result:
    """`shared` split and refined; `anchor` rows' worth of belief hold each subkernel near where it was born."""
    training, fit = copy(training.penalized(0.0)), shared.fit
    training.starving = "keep" if training.starving == "keep" else "drop"  # a moved subkernel would leave its kernel
    table = fit.params.sharing if isinstance(fit.params, Learned) else match_array(shared.sharing, like=training.rows.home)
    with one_blas_thread():
        least = min(1.0, training.data.weight / training.data.n_rows)  # a row, also where all rows weigh less than one
        born = split(training.kernel, training.rows, fit.params, table, least)
    owners, parents = np.asarray(born.owner), np.asarray(born.parent)
    alone = sharing_table(owners, 0.0, len(training.data.classes))
    refined = _refined(training, born.params, alone, owners, anchor, fit, on_sweep)
    starved = training.starved(refined.params)
    if starved:  # a subkernel that its siblings have made needless; nobody asked for it by number, so nobody is warned
        refined.params = training.without(refined.params, starved)
        alone, owners, parents = (np.delete(a, starved, axis=0) for a in (alone, owners, parents))
    return Result(_joined(fit, refined), alone, owners, parents)


def _refined(
    training: Training,
    born: Params,
    alone: np.ndarray,
    owners: np.ndarray,
    anchor: float,
    shared: Fit[Params],
    on_sweep: Callable[[Fit[Params]], bool] | None,
) -> Fit[Params]:
    """EM from the subkernels; none if they are to stay as they are, or if the fit was told to stop."""
    if np.isfinite(anchor) and shared.outcome is not Outcome.STOPPED:
        return training.run(born, alone, owners, on_sweep, Anchor(anchor, born.kernels) if anchor else None)
    _, objective = training._network(alone).sweep(training.rows, born)
    return Fit(born, objective, [objective], change=shared.change, outcome=shared.outcome)


def _joined(shared: Fit[Params], refined: Fit[Params]) -> Fit[Params]:
    """The refined fit, which cost the sweeps of both and is finished if both are."""
    refined.n_sweeps += shared.n_sweeps
    if shared.outcome not in (Outcome.CONVERGED, Outcome.STOPPED):
        refined.outcome, refined.change = shared.outcome, shared.change
    return refined
