"""The target column as classes.

Whole numbers written plainly stay whole numbers; everything else, `007` and `1.0` included, stays the text it is. A column with
nearly as many values as rows, or with many fractional ones, is a measurement or a name and no class.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import TableError
from ..text import listed, plural, quoted
from .columns import FEW, is_text, words
from .sources import Batch

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
ROWS_A_CLASS = 3
"""Fewer rows a class than this, on average, teach nothing about most of them."""


@dataclass
class Labels:
    """The target of all rows, as it comes in: distinct values, and which of them each row has."""

    name: str
    as_text: bool = False
    values: dict[Any, int] = field(default_factory=dict)
    codes: list[np.ndarray] = field(default_factory=list)
    missing: int = 0
    first: tuple[str, int] | None = None

    def add(self, batch: Batch) -> None:
        """A batch."""
        distinct, index = distinct_cells(batch, self.name)
        at = [-1 if value is None else self.values.setdefault(value, len(self.values)) for value in distinct]
        codes = np.array([*at, -1])[index]  # the last is for cells that have no value at all
        gone = codes < 0
        if gone.any():
            self.missing += int(gone.sum())
            self.first = self.first or (batch.file, batch.first_row + int(np.argmax(gone)))
        self.codes.append(codes)

    def array(self) -> np.ndarray:
        """One label a row; None where there is none."""
        codes = np.concatenate(self.codes)
        counts = np.bincount(codes[codes >= 0], minlength=len(self.values))
        known = list(self.values)
        _check_classes(self.name, known, int(counts.sum()), self.as_text)
        as_text = self.as_text or not _all_whole(known)
        labels = np.asarray([_as_text(value) if as_text else int(value) for value in known])
        if not self.missing:
            return np.asarray(labels[codes])
        out = labels.astype(object)[codes]
        out[codes < 0] = None
        return np.asarray(out)


def distinct_cells(batch: Batch, name: str) -> tuple[list[Any], np.ndarray]:
    """The distinct labels of a batch, None where one is missing, and which of them each row has; -1 for nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = batch.columns[name]
    if pa.types.is_null(array.type):
        return [], np.full(batch.n_rows, -1)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        raise TableError(f"{batch.file}, column {quoted(name)}: {array.type} cannot be a class.")
    coded = array.dictionary_encode()
    index = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    return _cells(coded.dictionary), np.asarray(index, np.int64)


def _cells(array: Any) -> list[Any]:
    """Labels as Python has them: words, whole numbers, fractions, booleans and dates as words."""
    import pyarrow as pa

    kind = array.type
    if is_text(array):
        return list(words(array).to_pylist())
    if pa.types.is_boolean(kind):
        return [str(value).lower() for value in array.to_pylist()]
    if pa.types.is_integer(kind):
        return list(array.to_pylist())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [
            None if v != v else v if not np.isfinite(float(v)) else int(v) if v == v // 1 else float(v)
            for v in array.to_pylist()
        ]
    return [str(value) for value in array.to_pylist()]


def _as_text(value: Any) -> str:
    """A label as text."""
    return value if isinstance(value, str) else str(value)


def _all_whole(known: list[Any]) -> bool:
    return all(isinstance(v, int) or (isinstance(v, str) and WHOLE.fullmatch(v) is not None) for v in known)


def _check_classes(name: str, known: list[Any], n_rows: int, as_text: bool) -> None:
    distinct = sorted(known, key=str)
    if len(distinct) > FEW and not as_text and _fractions(distinct):
        raise TableError(
            f"Column {quoted(name)} holds {len(distinct):,} different fractional numbers such as {listed(distinct[:3])}: "
            f"a measurement, not classes.",
            "If they are classes, pass as_text=True.",
        )
    if len(distinct) > FEW and n_rows < ROWS_A_CLASS * len(distinct):
        raise TableError(
            f"Column {quoted(name)} holds {len(distinct):,} different values in {plural(n_rows, 'row')}, "
            f"such as {listed(distinct[:3])}: too many for classes, with {n_rows / len(distinct):.2g} rows each.",
            "Is target= the right column?",
        )
    if len(distinct) < 2:
        found = f"only {quoted(distinct[0])}" if distinct else "nothing"
        raise TableError(f"Column {quoted(name)} must hold at least two classes; found {found} in {plural(n_rows, 'row')}.")


def _fractions(distinct: list[Any]) -> bool:
    """Whether all are numbers and some are not whole."""
    try:
        numbers = [float(v) for v in distinct]
    except ValueError:
        return False
    return any(v != v // 1 for v in numbers)


def codes_of(batch: Batch, name: str, classes: np.ndarray) -> np.ndarray:
    """Which of the fitted classes each label is; -1 where there is none, an error where it is another."""
    distinct, index = distinct_cells(batch, name)
    known = {str(label): code for code, label in enumerate(classes.tolist())}
    at = [-1 if value is None else known.get(str(value), -2) for value in distinct]
    codes = np.array([*at, -1])[index]
    if (codes == -2).any():
        row = int(np.argmax(codes == -2))
        raise TableError(
            f"{batch.file}, row {batch.first_row + row}, column {quoted(name)}: the model knows no class "
            f"{quoted(distinct[index[row]])}, only {listed(classes.tolist(), 8)}.",
        )
    return codes


def codes_and_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes from 0, -1 where there is no label; and the classes."""
    known = has_label(labels)
    classes, inverse = np.unique(np.asarray(labels[known].tolist()), return_inverse=True)
    codes = np.full(len(labels), -1)
    codes[known] = inverse
    return codes, classes


def has_label(labels: np.ndarray) -> np.ndarray:
    """Whether each row has a label; None stands for none."""
    if labels.dtype != object:
        return np.ones(len(labels), bool)
    return np.array([label is not None for label in labels], bool)
