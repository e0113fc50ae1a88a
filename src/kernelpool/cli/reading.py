"""Rows with their classes, read whole: what `fit`, `certify` and `report` need."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ..text import plural
from .columns import NUMBER, Feature, Features
from .labels import Labels
from .screen import CommandError, Exit, Screen, listed, quoted
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

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some of the rows."""
        return self.table.take(index), self.labels[index]

    def fingerprint(self) -> str:
        """Tells whether two sets of rows are the same, in the same order."""
        codes, classes = codes_and_classes(self.labels)
        mark = Fingerprint(self.features, classes)
        mark.add(self.table, codes)
        return mark.text()

    @property
    def known(self) -> np.ndarray:
        """Whether each row has a label."""
        if self.labels.dtype != object:
            return np.ones(len(self.labels), bool)
        return np.array([label is not None for label in self.labels], bool)


def check_column(name: str, names: list[str], source: str, option: str) -> None:
    """A column that was asked for must be there."""
    if name not in names:
        raise CommandError(
            Exit.DATA, f"{source}: there is no column {quoted(name)} for {option}; there are {listed(names, 12)}."
        )


def read_labeled(
    source: Source,
    target: str,
    screen: Screen,
    *,
    drop: list[str] | None = None,
    encode: bool = False,
    as_text: bool = False,
    unlabeled: str = "refuse",
) -> Labeled:
    """All rows of a source."""
    features: Features | None = None
    labels = Labels(target, as_text)
    with screen.working(f"Reading {source.label}", source.n_bytes) as bar:
        for batch in source.batches():
            if features is None:
                features = Features(_feature_names(source, target, drop or []), encode)
            labels.add(batch)
            features.add(batch)
            bar.at(source.bytes_read, plural(features.n_rows, "row"))
    if features is None:
        if source.names:
            check_column(target, source.names, source.label, "--target")
        raise CommandError(Exit.DATA, f"{source.label}: no rows below the header.")
    if labels.missing and unlabeled == "refuse":
        file, row = labels.first or ("", 0)
        raise CommandError(
            Exit.DATA,
            f"{plural(labels.missing, 'row')} of {features.n_rows:,} without a class in column {quoted(target)}, "
            f"first in {file}, row {row}. Pass --unlabeled drop to leave them out, "
            f"or --unlabeled use to learn from them without a class.",
            missing={target: labels.missing},
        )
    table, kinds = features.table()
    rows = Labeled(table, labels.array(), kinds, target, source.label, source.names)
    if labels.missing and unlabeled == "drop":
        table, left = rows.at(np.flatnonzero(rows.known))
        return Labeled(table, np.asarray(left.tolist()), kinds, target, source.label, source.names)
    return rows


def _feature_names(source: Source, target: str, drop: list[str]) -> list[str]:
    check_column(target, source.names, source.label, "--target")
    for name in drop:
        check_column(name, source.names, source.label, "--drop")
    spare = {target, *drop}
    names = [name for name in source.names if name not in spare]
    if "" in names:
        at = source.names.index("") + 1
        raise CommandError(
            Exit.DATA,
            f"{source.label}: column {at} has no name (row numbers are often written so). Name it, or pass --drop ''.",
        )
    if not names:
        raise CommandError(Exit.DATA, f"{source.label}: no column is left to learn from beside {quoted(target)}.")
    return names


def held_out(codes: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Whether each row is held out: of every class the same share, but never all of a class; codes below 0 never."""
    rng, out = np.random.default_rng(seed), np.zeros(len(codes), bool)
    for code in np.unique(codes[codes >= 0]):
        mine = rng.permutation(np.flatnonzero(codes == code))
        out[mine[: min(int(share * len(mine) + 0.5), len(mine) - 1)]] = True
    return out


def folds(codes: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each row, every class dealt out evenly; -1 for rows without a class."""
    rng, fold, dealt = np.random.default_rng(seed), np.full(len(codes), -1), 0
    for code in np.unique(codes[codes >= 0]):
        mine = rng.permutation(np.flatnonzero(codes == code))
        fold[mine] = (dealt + np.arange(len(mine))) % n_folds
        dealt += len(mine)
    return fold


def codes_and_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes from 0, -1 where there is no label; and the classes."""
    known = np.array([label is not None for label in labels], bool) if labels.dtype == object else np.ones(len(labels), bool)
    classes, inverse = np.unique(np.asarray(labels[known].tolist()), return_inverse=True)
    codes = np.full(len(labels), -1)
    codes[known] = inverse
    return codes, classes
