r"""One probability from those of several members, and the weights of the members.

Genest & Zidek, "Combining probability distributions: a critique and an annotated bibliography",
Statistical Science 1(1), 1986: the logarithmic and the linear opinion pool. Smyth & Wolpert,
"Linearly combining density estimators via stacking", Machine Learning 36, 1999: `stacked`.

.. math::

    P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m} \qquad \text{or} \qquad
    P(C_k \mid x) = \sum_m w_m P_m(C_k \mid x), \quad \sum_m w_m = 1

==================  ====================  ==========  ==============================================================
paper               here                  shape       meaning
==================  ====================  ==========  ==============================================================
:math:`P_m`         ``log_proba``         (L, n, K)   predictions of member m, trained without row n
:math:`w_m`         ``weight``            (L,)        not negative; of the logarithmic pool they need not sum to one
==================  ====================  ==========  ==============================================================

The weights minimize the log-loss on held-out rows, which is convex in both cases. Those of the
logarithmic pool are a temperature as well: members that are overconfident together get weights that
sum to less than one. A small penalty (`PRICE`) sets the weights of members without use to zero. A
ridge towards equal weights (`RIDGE`) fades as rows become many.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from ..arrays import safe_log
from ..base.classifier import encoded_log_proba, prior_shift
from ..base.estimator import fitted_record
from ..complete.imputation import draws_of
from ..em import Stop, em
from ..inspection.predictions import Predictions
from ..lbfgs import maximize
from ..mixtures.fitted import Average, ClassDensities
from ..records import saved, unsaved
from ..tables.columns import Columns
from .views import TABLES, View, ViewedRows

POOLINGS = ("log_linear", "linear")

PRIOR_ROWS = 1.0
"""Rows that each density is taken to have explained before any is seen."""

PRICE = 1e-3
"""Penalty on the sum of the weights, in log-loss per row."""

RIDGE = 20.0
"""Strength of the ridge towards equal weights, in rows: held-out losses of few rows are noisy."""

LEAST_WEIGHT = 0.08
"""Weights below this are set to zero: such members cost time and, on the sets of development,
accuracy.
"""

LEAST_LOG_PROBA = float(np.log(1e-12))
"""The least log-probability of a member: no class is impossible."""


# -- the fitted pool -------------------------------------------------------------------------------


@saved(eq=False)
class PoolNetwork:
    """A fitted network of a pool."""

    estimator: Any
    member: str
    """The candidate that it belongs to."""
    view: str
    """How it takes rows, see `kernelpool.pool.views`."""
    density_weight: float = 0.0
    """Its weight in the densities of the pool."""

    def log_proba(self, rows: Any) -> np.ndarray:
        """log P(C_k|x) of rows in its view, none below `LEAST_LOG_PROBA`, (n, K).

        Networks of this library are asked without a check of the rows.
        """
        if self.view in TABLES:
            log_proba = safe_log(np.asarray(self.estimator.predict_proba(rows), np.float64))
        else:
            log_proba = encoded_log_proba(self.estimator, rows)
        return np.maximum(log_proba, LEAST_LOG_PROBA)


@saved(eq=False)
class FittedPool:
    """The fitted state of a pool; see the attributes of `PooledClassifier`."""

    columns: Columns
    classes: np.ndarray
    class_prior: np.ndarray
    class_shares: np.ndarray
    members: list[str]
    weights: np.ndarray
    pooling: str
    loss: float
    networks: tuple[PoolNetwork, ...]
    views: dict[str, View]
    trials: dict[str, np.ndarray]
    imputation: ClassDensities | None
    """The mixture from which missing cells are drawn; None where all networks take rows as they
    are.
    """
    input_columns: Columns
    """The columns of the table that was passed to `fit`, which members in the views "table" and
    "complete table" take.
    """
    held_out_proba: np.ndarray | None = unsaved()
    held_out_log_density: np.ndarray | None = unsaved()

    @property
    def density_networks(self) -> list[PoolNetwork]:
        """The networks that have a part in the densities."""
        return [network for network in self.networks if network.density_weight > 0]

    @property
    def densities(self) -> Average:
        """The mean of the mixtures that have a part in the densities."""
        networks = self.density_networks
        mixtures = [fitted_record(network.estimator).network for network in networks]
        return Average(mixtures, [network.density_weight for network in networks])

    @property
    def held_out(self) -> Predictions:
        """For the training rows, by networks that were trained without them."""
        score = None
        if self.held_out_log_density is not None:
            score = logsumexp(self.held_out_log_density + safe_log(self.class_prior), axis=1)
        return Predictions.of(
            self.classes,
            self.held_out_proba,
            score=score,
            log_density=self.held_out_log_density,
        )

    def scores(self, x: np.ndarray, table: Any) -> np.ndarray:
        """log P(C_k|x) up to a constant of the row, of encoded rows, (n, K); `table` is what was
        encoded.
        """
        table = None if self.columns.coded else table
        draws = draws_of(self.imputation, x)
        rows = ViewedRows(x, table, self.input_columns, self.views, draws)
        networks = [[n for n in self.networks if n.member == name] for name in self.members]
        log_proba = np.stack([log_mean_proba(of_member, rows) for of_member in networks])
        scores = self.pooled(log_proba)
        is_empty = np.isnan(x).all(axis=1, keepdims=True)
        return np.where(is_empty, safe_log(self.class_prior), scores)

    def pooled(self, log_proba: Any) -> Any:
        """log P(C_k|x) up to a constant of the row, (n, K), from those of the members, (L, n, K)."""
        shift = prior_shift(self.class_prior, self.class_shares)
        return pooled_scores(log_proba, self.weights, self.pooling) + shift


def log_mean_proba(networks: Sequence[PoolNetwork], rows: ViewedRows) -> np.ndarray:
    """The log of the mean probability of the networks of one member, (n, K)."""

    def log_mean(rows_in_view: Any) -> np.ndarray:
        proba = [np.exp(network.log_proba(rows_in_view)) for network in networks]
        return np.log(np.mean(proba, axis=0))

    return rows.averaged(networks[0].view, log_mean)


# -- weights ---------------------------------------------------------------------------------------


def combined(log_proba: np.ndarray, weight: np.ndarray, pooling: str) -> np.ndarray:
    """log P(C_k|x), (n, K), from those of the members, (L, n, K)."""
    return log_softmax(pooled_scores(log_proba, weight, pooling), axis=1)


def pooled_scores(log_proba: Any, weight: np.ndarray, pooling: str) -> Any:
    """The same up to a constant of the row; of members none of whose log-probabilities is below
    `LEAST_LOG_PROBA`.
    """
    members = zip(weight, log_proba, strict=True)
    if pooling == "linear":
        return np.log(sum(w * np.exp(of_member) for w, of_member in members))
    return sum(w * of_member for w, of_member in members)


def log_loss(log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray) -> float:
    """Mean of -log P(C_y|x) over the rows."""
    return float(-(row_weight @ log_proba[np.arange(len(codes)), codes]) / row_weight.sum())


def best_combination(
    log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray, pooling: str = "auto"
) -> tuple[np.ndarray, str, float]:
    """The weights of the least held-out loss, (L,), the pool that they are for, by "auto" the better
    one, and the loss.
    """
    own = log_proba[:, np.arange(len(codes)), codes]  # (L, n)
    combinations = []
    for kind in POOLINGS if pooling == "auto" else (pooling,):
        if kind == "linear":
            weight = stacked(own, row_weight)
            weight = np.where(weight >= min(LEAST_WEIGHT, weight.max()), weight, 0.0)
            weight = weight / weight.sum()
        else:
            weight = _log_linear(log_proba, own, row_weight)
        loss = log_loss(combined(log_proba, weight, kind), codes, row_weight)
        combinations.append((weight, kind, loss))
    return min(combinations, key=lambda combination: combination[2])


def _log_linear(log_proba: np.ndarray, own: np.ndarray, row_weight: np.ndarray) -> np.ndarray:
    """The weights of a logarithmic pool, (L,)."""
    n_members = len(log_proba)
    share = row_weight / row_weight.sum()
    own_mean = own @ share
    ridge = RIDGE / row_weight.sum()

    def objective(weight: np.ndarray) -> tuple[np.ndarray, float]:
        scores = np.tensordot(weight, log_proba, axes=1)
        log_total = logsumexp(scores, axis=1)
        expected = np.exp(scores - log_total[:, None]) * share[:, None]  # (n, K)
        deviation = weight - weight.mean()
        gradient = own_mean - np.tensordot(log_proba, expected, axes=2)
        likelihood = weight @ own_mean - share @ log_total
        value = likelihood - PRICE * weight.sum() - ridge * deviation @ deviation
        return gradient - PRICE - 2 * ridge * deviation, float(value)

    start = np.full(n_members, 1 / n_members)
    bounds = [(0, None)] * n_members
    weight = maximize(objective, start, max_iter=200, bounds=bounds).point
    keep = weight >= LEAST_WEIGHT
    if not keep.any():  # no member is better than chance: the best one is the pool
        return np.eye(n_members)[own_mean.argmax()]
    if not keep.all():
        weight = np.zeros(n_members)
        weight[keep] = _log_linear(log_proba[keep], own[keep], row_weight)
    return weight


def stacked(log_density: np.ndarray, weight: np.ndarray) -> np.ndarray:
    r"""Weights of several density estimates, (L,), from rows that none of them was trained on.

    Smyth & Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999:

    .. math:: \max_w \; \sum_n \log \sum_i w_i\, p_i(x_n), \qquad w_i \ge 0, \quad \sum_i w_i = 1

    The objective is concave, so EM finds its one maximum from anywhere. `log_density` (L, n) is
    that of network i, trained without row n. Deviations: rows may have weights, and a Dirichlet
    prior of `PRIOR_ROWS` a network keeps the weights near equal where few rows are held out.
    """
    n_networks = len(log_density)
    total = weight.sum() + PRIOR_ROWS * n_networks
    most = log_density.max(axis=0)
    density = np.exp(log_density - most)  # (L, n), relative to the largest
    constant = weight @ most

    def sweep(share: np.ndarray) -> tuple[np.ndarray, float]:
        evidence = share @ density
        mass = share * (density @ (weight / evidence))
        log_prior = PRIOR_ROWS * np.log(share).sum()
        objective = weight @ np.log(evidence) + constant + log_prior
        return (mass + PRIOR_ROWS) / total, float(objective / total)

    return em(sweep, np.full(n_networks, 1 / n_networks), Stop(max_iter=2000, tol=1e-10)).params
