"""Tables larger than memory, with their classes: surveyed in one pass, then read in batches as often as they are asked for.

Which rows are held out follows from their place in the table and a seed alone, so that every reading knows it and no list of
rows is kept: row i is held out where the number that splitmix64 (Steele, Lea & Flood 2014) makes of seed and i, as a fraction,
is below the share.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...errors import TableError
from ...tables.columns import Columns
from ...tables.encoder import TableEncoder
from ...text import quoted
from .columns import CATEGORY, NUMBER, FeatureColumn, Features, Gaps, check_columns, fitted_features
from .labels import TargetColumn, distinct_cells, feature_names, refuse_unlabeled
from .sources import Source

Progress = Callable[[int, int], None]
"""Called after every batch with the number of bytes and of rows that have been read."""


def place_keys(first: int, n: int, seed: int) -> np.ndarray:
    """A number in [0, 1) for each of `n` rows from number `first` on, by splitmix64, (n,)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = (np.arange(first, first + n, dtype=np.uint64) + np.uint64(1)) * step + np.uint64(
            seed
        ) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)).astype(np.float64) / 2.0**53)


@dataclass(frozen=True)
class PlaceSplit:
    """Rows that are held out by their place."""

    share: float
    seed: int

    def of(self, codes: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Whether rows from number `first` on are held out, those without a class never; and their keys."""
        keys = place_keys(first, len(codes), self.seed)
        return (keys < self.share) & (codes >= 0), keys


class LargeBatch(NamedTuple):
    """Some rows of a large table."""

    table: Any
    """Arrow table of the features: float64, and words."""
    codes: np.ndarray
    """Of the classes, -1 where there is none, (n,)."""
    held_out: np.ndarray
    """(n,)."""
    keys: np.ndarray
    """Random numbers in [0, 1), below the share where a row is held out, (n,)."""
    first: int
    """Number of the first row, from 0."""


@dataclass
class LargeTable:
    """What a survey has found out, and how to read the rows again."""

    origin: Source
    target: str
    features: list[FeatureColumn]
    classes: np.ndarray
    """Sorted."""
    counts: np.ndarray
    """Rows of each class, (K,)."""
    learned: np.ndarray
    """Rows of each class that are not held out, (K,)."""
    codes: dict[Any, int]
    """The class of each cell of the target."""
    split: PlaceSplit
    unlabeled: str
    holes: bool
    n_rows: int
    numbers: dict[str, tuple[float, float]]
    """Mean and deviation of columns of numbers, of the rows not held out."""
    words: dict[str, list[str]]
    """Of columns of words, sorted."""
    left_out: dict[str, str]
    gaps: Gaps
    progress: Progress | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def source(self) -> str:
        """What the rows are called in messages."""
        return self.origin.label

    def batches(self) -> Iterator[LargeBatch]:
        """All rows."""
        first = n_read = 0
        gaps = Gaps()
        for batch in self.origin.batches():
            table, _ = fitted_features(batch, self.features, gaps, holes=self.holes)
            if gaps.counts:
                raise gaps.error(batch.n_rows)
            codes = self._codes(*distinct_cells(batch, self.target))
            if self.unlabeled == "drop" and (codes < 0).any():
                at = np.flatnonzero(codes >= 0)
                table, codes = table.take(at), codes[at]
            yield LargeBatch(table, codes, *self.split.of(codes, first), first)
            first, n_read = first + len(codes), n_read + batch.n_rows
            if self.progress is not None:
                self.progress(self.origin.bytes_read, n_read)
        if first != self.n_rows:
            raise TableError(
                f"{self.source}: {self.n_rows:,} rows at first and {first:,} when it was read again; do not change files while "
                f"they are fitted."
            )

    def _codes(self, distinct: list[Any], index: np.ndarray) -> np.ndarray:
        new = [value for value in distinct if value is not None and value not in self.codes]
        if new:
            raise TableError(
                f"{self.source}: column {quoted(self.target)} holds {quoted(new[0])}, which it did not at first."
            )
        return np.array([*(-1 if value is None else self.codes[value] for value in distinct), -1])[
            index
        ]

    def encoder(self, standardize: bool) -> TableEncoder:
        """What makes numbers of such tables, as if it had been fitted to the rows."""
        names = [f.name for f in self.features]
        words = [f.name for f in self.features if f.kind == CATEGORY]
        scale = [self.numbers[f.name] for f in self.features if f.kind == NUMBER]
        return TableEncoder(words, standardize=standardize).set_fitted(
            names, [self.words[name] for name in words], scale
        )

    @property
    def columns(self) -> Columns | None:
        """The columns and their words; None where all are numbers."""
        words = [
            np.array(self.words[f.name], object) if f.kind == CATEGORY else None
            for f in self.features
        ]
        names = tuple(f.name for f in self.features)
        return None if all(one is None for one in words) else Columns(tuple(words), names)

    def class_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes, sorted, and how many rows each has."""
        return self.classes, self.counts

    def n_words(self, name: str) -> int:
        """Different words of a column of words."""
        return len(self.words[name])


@dataclass
class LargeNumbers:
    """The rows of a large table that are not held out, batch by batch, with their labels."""

    rows: LargeTable
    encoder: TableEncoder | None = None
    """What makes numbers of a batch; None where estimators take columns by their names."""
    everything: bool = False
    """Whether rows that are held out are there too."""

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        labels = np.array([*self.rows.classes.tolist(), None], object)
        for batch in self.rows.batches():
            at = np.flatnonzero(~batch.held_out | self.everything)
            table = batch.table.take(at)
            x = table if self.encoder is None else self.encoder.transform(table)
            yield x, labels[batch.codes[at]]


class RowSample:
    """The rows with the smallest keys of all that are added, at most so many: as good as drawn at random."""

    def __init__(self, most: int) -> None:
        self.most, self.limit, self.n = most, np.inf, 0
        self.parts: list[tuple[Any, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, batch: LargeBatch, at: np.ndarray) -> None:
        """Some rows of a batch."""
        at = at[batch.keys[at] < self.limit]
        self.parts.append((batch.table.take(at), batch.codes[at], batch.keys[at], batch.first + at))
        self.n += len(at)
        if self.n > 2 * self.most:
            self._shrink()

    def _shrink(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        import pyarrow as pa

        table = pa.concat_tables([part[0] for part in self.parts]).combine_chunks()
        codes, keys, places = (np.concatenate([part[i] for part in self.parts]) for i in (1, 2, 3))
        if len(keys) > self.most:
            self.limit = float(np.partition(keys, self.most)[self.most])
            at = np.flatnonzero(keys < self.limit)
            table, codes, keys, places = table.take(at), codes[at], keys[at], places[at]
        self.parts, self.n = [(table, codes, keys, places)], len(keys)
        return self.parts[0]

    def rows(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Their table, class codes, keys and places, in the order in which they were added."""
        return self._shrink()


def survey_labeled(
    source: Source,
    target: str | None,
    split: PlaceSplit,
    *,
    drop: Sequence[str] = (),
    as_text: bool = False,
    unlabeled: str = "refuse",
    kinds: Mapping[str, str] | None = None,
    holes: bool = False,
    cautious: bool = False,
    progress: Progress | None = None,
) -> LargeTable:
    """What one reading of a source tells; parameters as in `read_labeled`.

    A column that begins with numbers and goes on with words is found out when it is too late to know its first words: then the
    source is read once more.
    """
    again: set[str] = set()
    while True:
        features: Features | None = None
        labels = TargetColumn(target or "", as_text, keep=False)
        first, learned = 0, np.zeros(0, np.int64)
        for batch in source.batches():
            if features is None:
                names = feature_names(source, target, drop)
                check_columns(list(kinds or ()), names, source.label, "whose kind is given")
                features = Features(
                    names, True, source.style, kinds or {}, holes, cautious, False, again
                )
            codes = labels.add(batch)
            known = codes >= 0
            kept = np.flatnonzero(known) if unlabeled == "drop" else np.arange(batch.n_rows)
            taught = np.ones(batch.n_rows, bool)
            taught[kept] = ~split.of(np.where(known, 0, -1)[kept], first)[0]
            more = np.bincount(codes[taught & known], minlength=len(labels.values))
            more[: len(learned)] += learned
            first, learned = first + len(kept), more
            features.add(batch, taught)
            if progress is not None:
                progress(source.bytes_read, features.n_rows)
        if features is None:
            raise TableError(f"{source.label}: no rows below the header.")
        if not features.turned_to_words:
            break
        again |= features.turned_to_words
    if labels.missing and unlabeled == "refuse":
        raise refuse_unlabeled(labels, features.n_rows)
    columns = features.columns()
    values, classes = labels.classes()
    order, place = np.unique(classes, return_inverse=True)  # two cells may be one class
    found = {
        n: (features.numbers[n].mean, features.numbers[n].scale)
        for n in (f.name for f in columns if f.kind == NUMBER)
    }
    words = {
        f.name: sorted(features.texts[f.name].distinct.drop_null().to_pylist())
        for f in columns
        if f.kind == CATEGORY
    }
    return LargeTable(
        origin=source,
        target=labels.name,
        features=columns,
        classes=order,
        counts=np.bincount(place, labels.counts).astype(np.int64),
        learned=np.bincount(place, learned).astype(np.int64),
        codes=dict(zip(values, place.tolist(), strict=True)),
        split=split,
        unlabeled=unlabeled,
        holes=holes,
        n_rows=first,
        numbers=found,
        words=words,
        left_out=features.left_out,
        gaps=features.gaps,
    )
