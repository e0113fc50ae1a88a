"""Networks that describe rows, from which missing cells are drawn for those that need every cell."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, ndtri
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, match_array, namespace, safe_log, to_numpy
from ..rows import Block, Frame, Rows, RowsWithMissing, as_rows, is_lazy_frame, lives_elsewhere
from ..starts.sample import content_key, sample_rows
from ..tables.batches import is_source
from ..tables.columns import Columns
from ..tables.words import Indicators
from ..training.prepare import TrainingData, known_columns, query_rows, surveyed
from ..training.settings import Settings
from ..training.shared_kernel import fit_shared_kernel
from .base import ProbabilityClassifier, RowFunction, log_softmax
from .shared_kernel import SharedKernelClassifier

N_DRAWS = 8
"""Fillings of a row with missing cells over which the networks that cannot take them are averaged."""

ROWS_A_FEATURE = 20
"""Rows for each feature that a kernel of such a mixture needs."""

FILLING_KERNELS = 6
"""Most kernels, beside one a class, of the mixture from which missing cells of training rows are drawn."""


def describing_network(
    x: np.ndarray,
    weight: np.ndarray,
    columns: Columns,
    seed: int,
    codes: np.ndarray | None = None,
    *,
    family: str = "full",
) -> SharedKernelClassifier:
    """A small mixture of coded rows, cells of which may be missing; of one class, or of those of `codes`."""
    y = np.zeros(len(x), int) if codes is None else np.unique(codes, return_inverse=True)[1]
    n_classes = int(y.max()) + 1
    data = surveyed(as_rows(x, y, weight), np.arange(n_classes), columns)
    levels = data.levels
    n_kernels = (
        int(np.clip(len(x) // (ROWS_A_FEATURE * x.shape[1]), 1, FILLING_KERNELS)) + n_classes - 1
    )
    # given the class, matrices of few rows would tell it: rows left out are judged beside fillings that saw their labels
    enough = codes is None or 2 * len(x) >= ROWS_A_FEATURE * x.shape[1] * n_kernels
    family = "diag" if levels is not None and min(levels) > 0 else family if enough else "tied"
    settings = Settings(
        n_kernels,
        family,
        covariance_floor=1e-3,
        kernel_prior="conjugate",
        max_iter=50,
        tol=1e-3,
        seed=seed,
    )
    network = fit_shared_kernel(data, settings)
    return SharedKernelClassifier._model(network, np.arange(n_classes), family, columns.of_codes())


def drawn_fillings(
    network: SharedKernelClassifier,
    x: np.ndarray,
    codes: np.ndarray | None,
    n_draws: int,
    seed: int,
) -> np.ndarray:
    """Rows with their missing cells drawn, given the class where `codes` are told, (n_draws, n, d)."""
    rng, of = np.random.RandomState(seed), np.full(len(x), -1) if codes is None else codes
    return np.stack(
        [
            network._imputed(x, of, rng.uniform(size=len(x)), rng.normal(size=x.shape))
            for _ in range(n_draws)
        ]
    )


def imputation_mixture(
    x: np.ndarray, weight: np.ndarray, columns: Columns, seed: int
) -> SharedKernelClassifier:
    """A small mixture of encoded rows, from which missing cells are drawn."""
    at = np.argsort(content_key(x, seed), kind="stable")[:DESCRIBED_ROWS]
    family = "full" if columns.levels.count(0) <= MOST_FULL else "tied"
    return describing_network(x[at], weight[at], columns, seed, family=family)


def imputations(
    mixture: SharedKernelClassifier, x: np.ndarray, n_draws: int = N_DRAWS
) -> np.ndarray:
    """Encoded rows with their missing cells drawn given the others, (n_draws, n, d): a function of each row alone."""
    out, any_class = np.repeat(x[None], n_draws, axis=0), np.full(len(x), -1)
    for s in range(n_draws):
        pick, *uniform = (content_key(x, s * (x.shape[1] + 1) + i) for i in range(x.shape[1] + 1))
        noise = ndtri(np.column_stack(uniform))
        out[s] = np.where(np.isnan(x), mixture._imputed(x, any_class, pick, noise), x)
    return out


# -- networks that need every cell as a number ------------------------------------------------------------------------------

DESCRIBED_ROWS, MOST_FULL = 1000, 40
"""Rows, about, from which such a network learns what missing cells may be, and numbers up to which its kernels are full."""


@dataclass(frozen=True)
class TableRows:
    """How a network that needs every cell as a number is shown rows; one object, so that homes of rows hand it on as it is."""

    frame: Frame
    """Of the columns that the network sees, (D,)."""
    indicators: Indicators | None
    """How words are shown; rows come framed where there are none."""
    describing: SharedKernelClassifier | None
    """From which missing cells are drawn."""
    logs: bool
    """Whether the network's scores are logarithms of probabilities, up to a constant of the row; or probabilities."""
    class_shares: np.ndarray | None
    """What is said of a row of which nothing is known, (K,); None where it is no question of classes."""

    def _shown(self, x: np.ndarray, like: Array) -> Block:
        """Complete rows in the units of the data, words coded, as the network sees them."""
        x = x if self.indicators is None else np.asarray(self.indicators.of(x))
        return Block(match_array(namespace(like).asarray(self.frame.inside(x)), like=like))

    def answer(self, block: Block, function: Callable[..., Array], *params: Any) -> Array:
        """`function(rows, *params)`; of rows with missing cells, the mean of its answers over drawn fillings."""
        if block.missing is None:
            return function(
                block if self.indicators is None else self._shown(block.x, block.x), *params
            )
        assert self.describing is not None
        x = np.asarray(to_numpy(block.x), np.float64)
        x = self.frame.outside(x) if self.indicators is None else x
        x = np.where(to_numpy(block.missing.observed) > 0, x, np.nan)
        said = [
            np.asarray(to_numpy(function(self._shown(z, block.x), *params)))
            for z in imputations(self.describing, x)
        ]
        if self.logs:
            found = logsumexp(np.stack([log_softmax(scores) for scores in said]), axis=0) - np.log(
                len(said)
            )
        else:
            found = np.mean(said, axis=0)
        if self.class_shares is not None:
            known = ~np.isnan(x).all(axis=1, keepdims=True)
            found = np.where(
                known, found, safe_log(self.class_shares) if self.logs else self.class_shares
            )
        return match_array(namespace(block.x).asarray(found), like=block.x)


def in_memory(X: Any) -> bool:
    """Whether rows are in NumPy or a table, where cells that are missing can be filled."""
    return not (lives_elsewhere(X) or is_lazy_frame(X) or is_source(X))


def _answers(block: Block, table: TableRows, function: Callable[..., Array], *params: Any) -> Array:
    return table.answer(block, function, *params)


class TableClassifier(ProbabilityClassifier):
    """A classifier that is shown words by indicators, and missing cells as a network that describes the rows draws them."""

    _others = True
    """Whether words that were not told apart have an indicator."""

    describing_network_: SharedKernelClassifier
    class_shares_: np.ndarray

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "missing": [StrOptions({"marginalize", "error"})],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
    }

    @property
    def _takes_holes(self) -> bool:
        fitted = hasattr(self, "classes_")  # models from before there was a choice describe nothing
        return self.missing != "error" and (not fitted or hasattr(self, "describing_network_"))

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return query_rows(self, X)

    @property
    def _indicators(self) -> Indicators | None:
        """How words are seen, where there are any."""
        columns = known_columns(self)
        return None if columns is None else Indicators(columns.levels, self._others)

    def _described(self, data: TrainingData, seed: int) -> SharedKernelClassifier | None:
        """A network that describes the training rows; None where cells may not be missing."""
        if self.missing == "error":
            return None
        samples = sample_rows(data.rows, len(data.classes), seed, DESCRIBED_ROWS)
        x, weight = (np.concatenate(parts) for parts in zip(*samples, strict=True))
        n_numbers = x.shape[1] if data.levels is None else sum(not n for n in data.levels)
        return describing_network(
            x, weight, data.columns, seed, family="full" if n_numbers <= MOST_FULL else "tied"
        )

    def _every_cell(
        self, data: TrainingData, network: SharedKernelClassifier | None, seed: int
    ) -> TrainingData:
        """The rows as the network is shown them: missing cells drawn once, words by indicators; as they are without either."""
        holed, indicators = isinstance(data.rows, RowsWithMissing), self._indicators
        if not holed and indicators is None:
            return data
        x, y, weight = (getattr(data.rows, name) for name in ("x", "y", "weight"))
        x = filled_rows(x, network, seed)
        x = x if indicators is None else np.asarray(indicators.of(x))
        columns = data.columns if indicators is None else None
        return surveyed(as_rows(x, y, weight, n_jobs=self.n_jobs), data.classes, columns)

    def _keep_description(self, network: SharedKernelClassifier | None, data: TrainingData) -> None:
        for name in ("describing_network_", "class_shares_"):
            self.__dict__.pop(name, None)
        if network is not None:
            self.describing_network_ = network
            self.class_shares_ = np.asarray(data.class_weight / data.class_weight.sum())

    def _shown_to(
        self,
        rows: Rows,
        frame: Frame,
        width: int,
        function: Callable[..., Array],
        params: tuple[Any, ...],
        *,
        logs: bool,
        priors: bool = True,
    ) -> RowFunction:
        """`function` of complete rows of numbers in the frame, for all rows that there may be."""
        indicators, network = self._indicators, getattr(self, "describing_network_", None)
        framed = rows.framed(frame, width) if indicators is None else rows
        if indicators is None and network is None:
            return RowFunction(framed, function, params)
        table = TableRows(
            frame,
            indicators,
            network,
            logs,
            getattr(self, "class_shares_", None) if priors else None,
        )
        return RowFunction(framed, _answers, (table, function, *params))


def filled_rows(x: np.ndarray, network: SharedKernelClassifier | None, seed: int) -> np.ndarray:
    """Coded rows with their missing cells drawn once, (n, d); as they are where none is missing."""
    return (
        x
        if network is None or not np.isnan(x).any()
        else drawn_fillings(network, x, None, 1, seed)[0].astype(x.dtype)
    )
