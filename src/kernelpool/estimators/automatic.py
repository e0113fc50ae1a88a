"""Settings chosen by the data: the shape and the number of the kernels, their sharing, and the overlap penalty.

What is "auto" is chosen on rows that took no part in training (`search`, `held_out`), and the network that is trained on all
rows starts from the one that the search ended with.
"""

from copy import copy
from typing import Any

from sklearn.utils import check_random_state

from ..errors import KernelpoolError
from ..training.validation import TrainingData, is_auto
from .search import Search

CHOSEN = ("n_kernels", "covariance_type", "sharing", "overlap_penalty")
"""The parameters that may be "auto"."""


def planned(estimator: Any, data: TrainingData) -> Any:
    """The estimator with what is "auto" filled in, and the start of its training; itself where nothing is.

    The plan carries `selection_`, the record of the search. A search that is interrupted (Ctrl-C) ends with the best setting so
    far, and the plan says so; interrupt again to end the fit.
    """
    if not any(is_auto(getattr(estimator, name)) for name in CHOSEN):
        return estimator
    _check(estimator)
    plan = copy(estimator)
    if estimator.warm_start and hasattr(estimator, "means_"):
        return _going_on(plan, estimator)
    seed = int(check_random_state(estimator.random_state).randint(2**31))
    search = Search(estimator, data, seed, _say if estimator.verbose else _nothing)
    try:
        chosen = search.run()
    except KeyboardInterrupt:
        if not search.tried:
            raise
        chosen, plan._interrupted = search.best, True
    plan.covariance_type, plan.overlap_penalty = chosen.covariance_type, chosen.overlap_penalty
    if is_auto(estimator.sharing):
        plan.sharing = chosen.sharing
    plan.selection_ = search.table(chosen)
    plan.random_state = seed
    if search.grows:
        part = search.finish(chosen)
        means, covariances, mixing = part.training(part.chosen).outside(part.params[part.chosen])
        plan.n_kernels, plan.owners = len(means), data.classes[part.owners[part.chosen.grown]]
        plan.means_init, plan.covariances_init, plan.mixing_init = means, covariances, mixing
    return plan


def _going_on(plan: Any, before: Any) -> Any:
    """`warm_start`: what was chosen by the previous fit stays chosen."""
    plan.n_kernels = before._n_kernels_asked
    plan.covariance_type, plan.overlap_penalty = before.covariance_type_, before.overlap_penalty_
    if is_auto(before.sharing):
        plan.sharing = before.sharing_degree_
    return plan


def _check(estimator: Any) -> None:
    if is_auto(estimator.n_kernels):
        for name in ("owners", "means_init", "covariances_init", "mixing_init"):
            if getattr(estimator, name) is not None:
                raise KernelpoolError(
                    f"n_kernels='auto' places the kernels itself and takes no {name}; leave it out, or say how many kernels."
                )
        if hasattr(estimator.sharing, "__len__") and not isinstance(estimator.sharing, str):
            raise KernelpoolError(
                "n_kernels='auto' takes no table of sharing, which has a line for each kernel; "
                "give one number, 'auto' or 'learned'."
            )
    if is_auto(estimator.covariance_type) and estimator.covariances_init is not None:
        raise KernelpoolError(
            "covariance_type='auto' takes no covariances_init, whose shape depends on the type; leave it out, or name the type."
        )


def _say(line: str) -> None:
    print(f"auto: {line}")


def _nothing(line: str) -> None:
    pass
