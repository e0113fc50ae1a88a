"""Tables of words and numbers as arrays of numbers; what ``kernelpool fit`` puts before a model."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..errors import KernelpoolError
from ..text import shorten

WORDS = (
    "string",
    "large_string",
    "str",
    "object",
    "category",
    "categorical",
    "enum",
    "bool",
    "dictionary",
    "utf8",
)
"""How the names of types of words begin, in pandas, polars and Arrow."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers as they are or standardized, then an indicator for each word of each column of words.

    A word that was not there at the fit has no indicator: all those of its column are zero. Where a cell is missing they are
    NaN, as a missing number is.

    Parameters
    ----------
    words : sequence of str, default=()
        Names of the columns that hold words; all others hold numbers.
    standardize : bool, default=False
        Whether numbers are shifted and scaled to mean zero and deviation one.

    Attributes
    ----------
    categories_ : list of ndarray of str
        The words of each column of words, sorted.
    mean_, scale_ : ndarray
        Of each column of numbers; zeros and ones where they are not standardized.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "words": ["array-like"],
        "standardize": ["boolean"],
    }

    def __init__(self, words: Sequence[str] = (), *, standardize: bool = False) -> None:
        self.words = words
        self.standardize = standardize

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn words, means and deviations.

        Parameters
        ----------
        X : data frame or Arrow table
            Columns with names.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        names = _column_names(X)
        unknown = [name for name in self.words if name not in names]
        if unknown:
            raise KernelpoolError(
                f"words must be names of columns; got {shorten(str(unknown[0]), 200)!r}."
            )
        self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = len(names)
        self.categories_ = [
            np.array(sorted(set(_words(X, name)) - {None}), object) for name in self.words
        ]
        numbers = self._numbers(X)
        self.mean_, self.scale_ = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
        if self.standardize and numbers.shape[1]:
            scaler = StandardScaler().fit(numbers)
            self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        return self

    def set_fitted(
        self,
        names: Sequence[str],
        categories: Sequence[Sequence[str]],
        scale: Sequence[tuple[float, float]],
    ) -> Self:
        """As if it had been fitted to a table that is known otherwise.

        Parameters
        ----------
        names : sequence of str
            Of all columns.
        categories : sequence of sequence of str
            The words of each column of words, sorted.
        scale : sequence of tuple of float
            Mean and deviation of each column of numbers.

        Returns
        -------
        self : TableEncoder
        """
        self.feature_names_in_, self.n_features_in_ = np.array(names, object), len(names)
        self.categories_ = [np.array(words, object) for words in categories]
        self.mean_, self.scale_ = np.zeros(len(scale)), np.ones(len(scale))
        if self.standardize and len(scale):
            self.mean_, self.scale_ = np.array(scale, np.float64).T.copy()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Rows as numbers.

        Parameters
        ----------
        X : data frame or Arrow table
            The columns of the fit, in whatever order.

        Returns
        -------
        x : ndarray of shape (n, d)
            Numbers first, then indicators.
        """
        check_is_fitted(self)
        missing = [name for name in self.feature_names_in_ if name not in _column_names(X)]
        if missing:
            raise KernelpoolError(
                f"X lacks the column {shorten(missing[0], 200)!r} that the model was fitted to."
            )
        parts = [(self._numbers(X) - self.mean_) / self.scale_]
        for name, categories in zip(self.words, self.categories_, strict=True):
            codes = _codes(X, name, categories)
            indicators = (codes[:, None] == np.arange(len(categories))).astype(np.float64)
            indicators[codes == -2] = np.nan
            parts.append(indicators)
        return np.concatenate(parts, axis=1)

    def inverse_transform(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Columns as they were, by name; of words the one with the largest indicator.

        Parameters
        ----------
        x : ndarray of shape (n, d)

        Returns
        -------
        columns : dict of str to ndarray
        """
        check_is_fitted(self)
        n = len(self.mean_)
        found = dict(zip(self.numbers_, (x[:, :n] * self.scale_ + self.mean_).T, strict=True))
        for name, categories in zip(self.words, self.categories_, strict=True):
            found[name] = categories[x[:, n : n + len(categories)].argmax(axis=1)]
            n += len(categories)
        return {name: found[name] for name in self.feature_names_in_}

    def unknown_words(self, X: Any) -> dict[str, int]:
        """How many rows of each column of words hold one that was not there at the fit.

        Parameters
        ----------
        X : data frame or Arrow table

        Returns
        -------
        counts : dict of str to int
        """
        known = dict(zip(self.words, self.categories_, strict=True))
        return {name: int((_codes(X, name, words) == -1).sum()) for name, words in known.items()}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of what `transform` makes: those of the columns of numbers, then ``column_word``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        hot = [
            f"{name}_{word}"
            for name, words in zip(self.words, self.categories_, strict=True)
            for word in words
        ]
        return np.array([*self.numbers_, *hot], object)

    @property
    def numbers_(self) -> list[str]:
        """Names of the columns of numbers."""
        return [str(name) for name in self.feature_names_in_ if name not in self.words]

    def _numbers(self, X: Any) -> np.ndarray:
        columns = [np.asarray(X[name], np.float64) for name in self.numbers_]
        return np.column_stack(columns) if columns else np.empty((len(X), 0))


def word_columns(X: Any) -> list[str]:
    """The columns of a table that hold words, by their type: strings, categories, booleans and Python objects.

    Parameters
    ----------
    X : data frame of pandas or polars, or Arrow table
        Columns with names.

    Returns
    -------
    names : list of str
        For `TableEncoder`. Numbers, nullable ones included, and dates are not among them.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelpool.tables.encoder import word_columns
    >>> word_columns(pd.DataFrame({"age": [40, 50], "town": ["Athens", None], "married": [True, False]}))
    ['town', 'married']
    """
    names = _column_names(X)
    types = (
        X.schema.types if hasattr(X, "column_names") else list(X.dtypes)
    )  # Arrow tables, data frames
    return [
        name for name, kind in zip(names, types, strict=True) if str(kind).lower().startswith(WORDS)
    ]


def _column_names(X: Any) -> list[str]:
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow tables, data frames
    if names is None:
        raise KernelpoolError(
            f"X must be a table whose columns have names; got {type(X).__name__}."
        )
    return [str(name) for name in names]


def _codes(X: Any, name: str, categories: np.ndarray) -> np.ndarray:
    """Which of the words each cell of a column is, -1 for another, -2 where one is missing, (n,)."""
    if (
        hasattr(X, "column_names") and str(X.schema.field(name).type) == "string"
    ):  # Arrow is a hundred times as fast
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.index_in(X[name], value_set=pa.array(categories.tolist(), pa.string()))
        codes = pc.if_else(pc.is_null(X[name]), pa.scalar(-2, pa.int32()), pc.fill_null(found, -1))
        return np.asarray(codes.to_numpy(), np.int64)
    place = {word: at for at, word in enumerate(categories)}
    return np.array(
        [-2 if word is None else place.get(word, -1) for word in _words(X, name)], np.int64
    )


def _words(X: Any, name: str) -> list[Any]:
    """The words of a column, None where one is missing."""
    cells = np.asarray(X[name], object).tolist()
    gaps = (type(cell).__name__ == "NAType" or cell is None or cell != cell for cell in cells)
    return [
        None if gap else cell if isinstance(cell, str) else str(cell)
        for cell, gap in zip(cells, gaps, strict=True)
    ]
