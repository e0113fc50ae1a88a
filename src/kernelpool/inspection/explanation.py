r"""Why a row got its class: the part of every feature in the log-odds, what was expected of it, and the kernels at work.

L. S. Shapley, "A value for n-person games", in Contributions to the Theory of Games II, Princeton 1953: the parts.

.. math::

    \log \frac{P(C_a \mid x)}{P(C_b \mid x)} = \log \frac{P(C_a)}{P(C_b)} + \sum_i \text{part}_i, \qquad
    \text{part}_i = \sum_{S \not\ni i} \frac{|S|!\,(d - |S| - 1)!}{d!} \left[ v(S \cup i) - v(S) \right]

with :math:`v(S) = \log P(C_a \mid x_S) / P(C_b \mid x_S)`, the log-odds of a row of which only the features S are known. A
mixture integrates the others out exactly (`inspection.marginals`); of any other classifier the mean probability is taken over
background rows that lend the features which are not in S.

==============  ===================================================================
:math:`v`       `SubsetModel.log_proba`, of all classes at once
part            `FeaturePart.part`; they sum to the log-odds but for the prior
==============  ===================================================================

Departures: beyond ten features there are too many sets. The mean is then taken over random orders of the features and the same
orders backwards. The sum is as exact as before, and `error` is the standard error of each part.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import factorial
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp

from ..text import percent, plural, shown
from .marginals import Marginals, normalized

MOST_SETS, MOST_SETS_OF_BACKGROUND = 1024, 256
"""Sets of features that are looked at one by one; where there are more, random orders are."""

LOWEST = -1e15
"""Stands for the logarithm of a probability of zero: differences stay finite."""

MOST_KERNELS = 5
"""Kernels that an explanation names."""


class SubsetModel(Protocol):
    """A classifier of rows of which some features are known."""

    def log_proba(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log P(C_k|x_S), (n, K)."""
        ...  # pragma: no cover


@dataclass(frozen=True)
class BackgroundModel:
    """Any classifier: features that are not known are lent by background rows, and probabilities averaged."""

    proba: Callable[[np.ndarray], Any]
    """Of rows with all features, (n, K)."""
    background: np.ndarray
    """(B, d)."""

    def log_proba(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log of the mean of P(C_k|x_S, b) over the background rows b, (n, K)."""
        mixed = np.repeat(self.background[None], len(x), axis=0)  # (n, B, d)
        mixed[:, :, list(columns)] = x[:, None, list(columns)]
        found = np.asarray(self.proba(mixed.reshape(-1, x.shape[1])), np.float64)
        mean = found.reshape(len(x), len(self.background), -1).mean(axis=1)
        return normalized(np.log(np.maximum(mean, np.finfo(np.float64).tiny)))


# -- the answer ---------------------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """Two decimals with a sign, and no minus zero."""
    return f"{round(value, 2) + 0.0:+.2f}"


@dataclass(frozen=True)
class FeaturePart:
    """What one feature has to do with the class of a row.

    Attributes
    ----------
    name : str
        Of the feature.
    value : float or str
        In the row.
    part : float
        In the log-odds of the class against the other; above zero it speaks for the class.
    error : float
        Standard error of `part`; zero where it is exact.
    without : float
        What the log-odds lose when this feature alone is left out.
    expected, deviation : float or None
        Mean and deviation of the feature given all others and the class; None where the model cannot tell.
    """

    name: str
    value: Any
    part: float
    error: float
    without: float
    expected: float | None = None
    deviation: float | None = None

    def __str__(self) -> str:
        value = f"{self.value:.4g}" if isinstance(self.value, float) else shown(self.value, 24)
        expected = (
            ""
            if self.expected is None
            else f"; {self.expected:.4g} ± {self.deviation:.2g} expected"
        )
        doubt = f" ± {self.error:.2f}" if self.error > 0.005 else ""
        return f"{shown(self.name, 40)} = {value}: {signed(self.part)}{doubt}{expected}"


@dataclass(frozen=True)
class KernelPart:
    """A kernel that a row belongs to.

    Attributes
    ----------
    index : int
        In the order of the fitted attributes.
    posterior : float
        P(j|x).
    label : object
        The class that the kernel serves most; None where that is not known.
    class_posterior : float or None
        P(C_k|j) of that class.
    """

    index: int
    posterior: float
    label: Any = None
    class_posterior: float | None = None

    def __str__(self) -> str:
        serves = (
            ""
            if self.class_posterior is None
            else f" ({shown(self.label, 24)} {percent(self.class_posterior, 0)})"
        )
        return f"kernel {self.index}{serves}: {percent(self.posterior)}"


@dataclass(frozen=True)
class Explanation:
    """Why a row got its class; prints as a table.

    Attributes
    ----------
    label : object
        The class that is explained.
    against : object
        The class that it is compared with.
    probability, against_probability : float
        Of both.
    log_odds : float
        log P(label|x) / P(against|x), the sum of `prior` and the parts of the features.
    prior : float
        What is left of it when nothing is known of the row.
    features : tuple of FeaturePart
        The largest parts first.
    kernels : tuple of KernelPart
        The kernels that the row belongs to most.
    log_density : float or None
        log p(x), where the model knows it.
    """

    label: Any
    against: Any
    probability: float
    against_probability: float
    log_odds: float
    prior: float
    features: tuple[FeaturePart, ...]
    kernels: tuple[KernelPart, ...] = ()
    log_density: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{shown(self.label)} ({percent(self.probability)}) rather than {shown(self.against)} "
            f"({percent(self.against_probability)}): log-odds {signed(self.log_odds)}",
            f"  before any feature: {signed(self.prior)}",
            *(f"  {feature}" for feature in self.features[:12]),
        ]
        rest = self.features[12:]
        if rest:
            lines.append(
                f"  {plural(len(rest), 'other feature')}: {signed(sum(feature.part for feature in rest))}"
            )
        if self.kernels:
            lines.append(f"  {'; '.join(map(str, self.kernels))}")
        return "\n".join(lines)


# -- parts --------------------------------------------------------------------------------------------------------


def shapley_parts(
    value: Callable[[tuple[int, ...]], np.ndarray],
    n_players: int,
    rng: np.random.Generator,
    most_sets: int = MOST_SETS,
) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values of a game with values in arrays, and their standard errors, two of shape (players, ...)."""
    known: dict[tuple[int, ...], np.ndarray] = {}

    def of(players: Sequence[int]) -> np.ndarray:
        key = tuple(sorted(players))
        if key not in known:
            known[key] = value(key)
        return known[key]

    if 2**n_players <= most_sets:
        parts = np.zeros((n_players, *of(()).shape))
        for i in range(n_players):
            others = [j for j in range(n_players) if j != i]
            for size in range(n_players):
                weight = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
                for chosen in combinations(others, size):
                    parts[i] += weight * (of((*chosen, i)) - of(chosen))
        return parts, np.zeros_like(parts)
    n_pairs = max(4, most_sets // (2 * n_players))
    total = square = np.zeros((n_players, *of(()).shape))
    for _ in range(n_pairs):
        order = rng.permutation(n_players).tolist()
        gain = np.zeros_like(total)
        for way in (order, order[::-1]):
            for t, i in enumerate(way):
                gain[i] += 0.5 * (of(way[: t + 1]) - of(way[:t]))
        total, square = total + gain, square + gain**2
    mean = total / n_pairs
    variance = np.maximum(square / n_pairs - mean**2, 0) * n_pairs / (n_pairs - 1)
    return mean, np.sqrt(variance / n_pairs)


@dataclass(frozen=True)
class ExplainedFeature:
    """A feature as its user knows it, and the columns that the model makes of it."""

    name: str
    columns: tuple[int, ...]
    values: Sequence[Any]
    """Of the rows to be explained, as the user knows them."""
    scale: float | None = 1.0
    """scale * column + offset is in the units of the user; None where it is not a number to begin with."""
    offset: float = 0.0


def explain_rows(
    model: SubsetModel,
    x: np.ndarray,
    features: Sequence[ExplainedFeature],
    classes: np.ndarray,
    *,
    codes: np.ndarray | None = None,
    against: int | None = None,
    kernel_posterior: np.ndarray | None = None,
    class_posterior: np.ndarray | None = None,
    log_density: np.ndarray | None = None,
    rng: np.random.Generator | None = None,
) -> list[Explanation]:
    """One explanation a row; `codes` (n,) are the classes to explain, the most probable ones where there are none."""

    def log_proba(columns: Sequence[int]) -> np.ndarray:
        return np.maximum(model.log_proba(x, columns), LOWEST)

    every = [c for feature in features for c in feature.columns]
    whole, rows = log_proba(every), np.arange(len(x))
    named = whole.argmax(axis=1) if codes is None else codes
    others = np.where(np.arange(len(classes)) == named[:, None], -np.inf, whole)
    rival = (
        others.argmax(axis=1)
        if against is None
        else np.where(named == against, others.argmax(axis=1), against)
    )

    def odds(columns: Sequence[int]) -> np.ndarray:
        scores = log_proba(columns)
        return np.asarray(scores[rows, named] - scores[rows, rival])

    def value(players: tuple[int, ...]) -> np.ndarray:
        return odds([c for i in players for c in features[i].columns])

    most_sets = MOST_SETS if isinstance(model, Marginals) else MOST_SETS_OF_BACKGROUND
    parts, errors = shapley_parts(
        value, len(features), rng or np.random.default_rng(0), most_sets
    )  # (features, n)
    total, prior = odds(every), odds([])
    without = [total - odds([c for c in every if c not in feature.columns]) for feature in features]
    expected = [_expected(model, x, feature, named, every) for feature in features]
    probability = np.exp(whole - logsumexp(whole, axis=1, keepdims=True))
    found = []
    for n in range(len(x)):
        columns = [
            FeaturePart(
                feature.name,
                feature.values[n],
                float(parts[i, n]),
                float(errors[i, n]),
                float(without[i][n]),
                *expected[i][n],
            )
            for i, feature in enumerate(features)
        ]
        columns.sort(key=lambda feature: -abs(feature.part))
        found.append(
            Explanation(
                classes[named[n]],
                classes[rival[n]],
                float(probability[n, named[n]]),
                float(probability[n, rival[n]]),
                float(total[n]),
                float(prior[n]),
                tuple(columns),
                ()
                if kernel_posterior is None
                else _kernels(kernel_posterior[n], class_posterior, classes),
                None if log_density is None else float(log_density[n]),
            )
        )
    return found


def _expected(
    model: Any, x: np.ndarray, feature: ExplainedFeature, codes: np.ndarray, known: list[int]
) -> list[tuple[float | None, float | None]]:
    """Mean and deviation of a feature of each row, in the units of the user."""
    if not isinstance(model, Marginals) or feature.scale is None or len(feature.columns) != 1:
        return [(None, None)] * len(x)
    mean, deviation = model.expected(x, feature.columns[0], codes, known)
    return list(
        zip(
            (feature.scale * mean + feature.offset).tolist(),
            (abs(feature.scale) * deviation).tolist(),
            strict=True,
        )
    )


def _kernels(
    posterior: np.ndarray, class_posterior: np.ndarray | None, classes: np.ndarray
) -> tuple[KernelPart, ...]:
    largest = [
        j
        for j in np.argsort(-posterior, kind="stable")[:MOST_KERNELS].tolist()
        if posterior[j] >= 0.01
    ]
    if class_posterior is None or len(class_posterior) != len(posterior):
        return tuple(KernelPart(j, float(posterior[j])) for j in largest)
    own = class_posterior.argmax(axis=1)
    return tuple(
        KernelPart(j, float(posterior[j]), classes[own[j]], float(class_posterior[j, own[j]]))
        for j in largest
    )
