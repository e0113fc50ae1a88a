"""A whole table with its classes, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from ..errors import TableError
from ..text import listed, plural, quoted
from .columns import NUMBER, Feature, Features, check_columns
from .labels import Labels, codes_and_classes, has_label
from .sources import Source


class Fingerprint:
    """Of rows in their order, however they are cut into batches and whatever file they come from."""

    def __init__(self, features: list[Feature], classes: np.ndarray) -> None:
        self.features, self.classes = features, classes
        self.marks = [blake2b(digest_size=16) for _ in range(len(features) + 1)]

    def add(self, table: Any, codes: np.ndarray) -> None:
        """Some rows, and the codes of their classes."""
        for mark, feature in zip(self.marks, self.features, strict=False):
            column = table.column(feature.name)
            if feature.kind == NUMBER:
                mark.update(np.ascontiguousarray(column.to_numpy()).tobytes())
            else:
                mark.update("".join(f"{word}\0" for word in column.to_pylist()).encode(errors="backslashreplace"))
        self.marks[-1].update(np.ascontiguousarray(codes, np.int64).tobytes())

    def text(self) -> str:
        """The fingerprint of all."""
        names = "".join(f"{f.name}\0{f.kind}\0" for f in self.features) + "".join(f"{c}\0" for c in self.classes.tolist())
        return blake2b(
            names.encode(errors="backslashreplace") + b"".join(mark.digest() for mark in self.marks), digest_size=16
        ).hexdigest()


@dataclass(frozen=True)
class Labeled:
    """Rows in memory: an Arrow table of features, and one label a row, None where there is none."""

    table: Any
    labels: np.ndarray
    features: list[Feature]
    target: str
    source: str
    columns: list[str]
    """All columns of the source."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that were left out because they can teach nothing, and why."""
    numbers: np.ndarray | None = None
    """Numbers of the rows in the source, from 1, where some of its rows were left out."""

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some of the rows."""
        return self.table.take(index), self.labels[index]

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of the rows in the source, from 1."""
        return np.arange(1, len(self) + 1) if self.numbers is None else self.numbers

    def fingerprint(self) -> str:
        """Tells whether two sets of rows are the same, in the same order."""
        codes, classes = codes_and_classes(self.labels)
        mark = Fingerprint(self.features, classes)
        mark.add(self.table, codes)
        return mark.text()


def read_labeled(
    source: Source,
    target: str | None,
    *,
    drop: Sequence[str] = (),
    encode: bool = False,
    as_text: bool = False,
    unlabeled: str = "refuse",
    progress: Callable[[int, int], None] | None = None,
) -> Labeled:
    """All rows of a source with their classes.

    Parameters
    ----------
    source : Source
    target : str or None
        Column that holds the classes; None is an error that lists the columns.
    drop : sequence of str
        Columns to leave out.
    encode : bool
        Whether columns of words are categories; otherwise they are an error.
    as_text : bool
        Whether classes are text, whatever they look like.
    unlabeled : {"refuse", "drop", "use"}
        What becomes of rows without a class.
    progress : callable, optional
        Called after every batch with the number of bytes and of rows that have been read.

    Returns
    -------
    Labeled
    """
    features: Features | None = None
    labels = Labels(target or "", as_text)
    for batch in source.batches():
        if features is None:
            features = Features(_feature_names(source, target, drop), encode, source.style)
        labels.add(batch)
        features.add(batch)
        if progress is not None:
            progress(source.bytes_read, features.n_rows)
    if features is None:
        if source.names:
            _check_target(source, target)
        raise TableError(f"{source.label}: no rows below the header.")
    if labels.missing and unlabeled == "refuse":
        file, row = labels.first or ("", 0)
        raise TableError(
            f"{plural(labels.missing, 'row')} of {features.n_rows:,} without a class in column {quoted(target)}, "
            f"first in {file}, row {row}.",
            "Pass unlabeled='drop' to leave them out, or unlabeled='use' to learn from them without a class.",
            missing={target: labels.missing},
        )
    table, kinds = features.table()
    classes, numbers = labels.array(), None
    if labels.missing and unlabeled == "drop":
        known = np.flatnonzero(has_label(classes))
        table, classes, numbers = table.take(known), np.asarray(classes[known].tolist()), known + 1
    return Labeled(table, classes, kinds, labels.name, source.label, source.names, features.left_out, numbers)


def _check_target(source: Source, target: str | None) -> None:
    if target is None:
        raise TableError(
            f"{source.label}: name the column that holds the classes; there are {listed(source.names, 40)}.", "Pass target=."
        )
    check_columns([target], source.names, source.label, "for the target")


def _feature_names(source: Source, target: str | None, drop: Sequence[str]) -> list[str]:
    _check_target(source, target)
    check_columns(drop, source.names, source.label, "to drop")
    spare = {target, *drop}
    names = [name for name in source.names if name not in spare]
    if "" in names:
        at = source.names.index("") + 1
        raise TableError(
            f"{source.label}: column {at} has no name (row numbers are often written so).", "Name it, or pass drop=''."
        )
    if not names:
        raise TableError(f"{source.label}: no column is left to learn from beside {quoted(target)}.")
    return names
