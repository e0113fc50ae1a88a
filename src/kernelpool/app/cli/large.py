"""Fits to files larger than memory, which are read in batches: for the fit, and to evaluate it.

The first batch tells what the columns hold. A row is held out by a number made from its content and
the seed, so that every reading knows it and equal rows are held out together.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ...errors import TableError
from ...inspection.metrics import Metrics
from ...text import listed, plural
from ..readers.table import WHOLE, cells_of, table_of
from .job import FitJob

IN_MEMORY = 256_000_000
"""Bytes of files that are read whole."""

MOST_SAMPLED = 50_000
"""Rows, held out and not, that stand for all of them in the model file and in a report."""


class LargeJob(FitJob):
    """One fit to rows of which `rows` are the first ones, with labels as they were read."""

    def __init__(self, *settings: Any) -> None:
        self.source, self.unlabeled = settings[-2:]
        super().__init__(*settings[:-2])

    def _run(self) -> None:
        self.whole = all(
            isinstance(cell, int) or (isinstance(cell, str) and WHOLE.fullmatch(cell))
            for cell in set(self.rows.y.tolist()) - {None}
        )
        train, everything = np.zeros(0, int), np.zeros(1, int)
        self._final(self.estimator, train)
        with self.screen.working(f"Evaluating by {self.rows.source}"):
            self._evaluate_all()
        again = self.refit and self.interrupted is None
        if again and self._final(clone(self.estimator), everything):
            self.test = None

    def _data(self, at: np.ndarray) -> tuple[Any, Any]:
        def tables() -> Iterator[Any]:
            for table, out in self._batches():
                yield table if len(at) else table.filter(~out)

        return tables(), self.rows.target

    def _batches(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Features and target of every batch, and whether each row is held out."""
        import pyarrow as pa

        for batch in self.source.batches():
            table, unreadable = table_of(batch, self.rows.kinds, self.source.style)
            where = f"{batch.file}, row {batch.first_row} and below"
            if unreadable:
                raise TableError(
                    f"{where}: columns {listed(list(unreadable))} hold cells that are no numbers.",
                    "Pass --columns COLUMN=category.",
                )
            cells = cells_of(batch, self.rows.target).tolist()
            labels = pa.array([None if v is None else str(v) for v in cells], pa.string())
            if labels.null_count and self.unlabeled == "refuse":
                raise TableError(f"{where}: rows without a class.", "Pass --unlabeled drop or use.")
            out = content_keys(table, self.seed) < self.holdout
            if self.whole:
                labels = labels.cast(pa.int64())
            table = table.append_column(self.rows.target, labels)
            known = labels.is_valid()
            out &= known.to_numpy(zero_copy_only=False)
            if self.unlabeled == "drop" and labels.null_count:
                table, out = table.filter(known), out[known.to_numpy(zero_copy_only=False)]
            yield table, out

    def _evaluate_all(self) -> None:
        """One more reading: metrics of held-out rows, and samples of both parts."""
        import pyarrow as pa

        self.n_rows, parts = 0, (Sample(), Sample())
        classes = np.asarray(self.model.classes_)
        for table, out in self._batches():
            self.n_rows += len(table)
            for part, which in zip(parts, (~out, out), strict=True):
                part.add(table.filter(which))
            held = table.filter(out)
            if len(held):
                codes = np.searchsorted(classes, held.column(self.rows.target).to_pylist())
                probability = self.model.predict_proba(held.drop_columns([self.rows.target]))
                found = Metrics.of(codes, np.asarray(probability))
                self.metrics = found if self.metrics is None else self.metrics + found
        train, test = (part.table() for part in parts)
        both = pa.concat_tables([part for part in (train, test) if part is not None])
        self.rows = replace(
            self.rows,
            table=both.drop_columns([self.rows.target]).combine_chunks(),
            y=np.array(both.column(self.rows.target).to_pylist(), object),
            numbers=np.arange(1, len(both) + 1),
            source=f"{self.rows.source}, {plural(len(both), 'row')} of {self.n_rows:,}",
        )
        self._encode(classes)
        at, n_train = np.arange(len(both)), 0 if train is None else len(train)
        if test is not None:
            self.test, metrics = at[n_train:], self.metrics
            self._evaluate(self.model, self.test)
            self.metrics = metrics  # of all rows, not of the sample
        self._keep(at[:n_train])


class Sample:
    """All rows that are added, or every second, fourth, ... where there are many."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.every, self.n_seen = 1, 0

    def add(self, table: Any) -> None:
        """Rows of a batch."""
        at = np.arange(-self.n_seen % self.every, len(table), self.every)
        self.n_seen += len(table)
        self.parts.append(table.take(at))
        while sum(map(len, self.parts)) > MOST_SAMPLED:
            whole, self.every = self.table(), 2 * self.every
            self.parts = [whole.take(np.arange(0, len(whole), 2))]

    def table(self) -> Any:
        """The rows; None where there are none."""
        import pyarrow as pa

        return pa.concat_tables(self.parts) if sum(map(len, self.parts)) else None


def content_keys(table: Any, seed: int) -> np.ndarray:
    """A number in [0, 1) for each row, equal for equal rows; mixed as by splitmix64, (n,)."""
    key = np.full(len(table), seed, np.uint64)
    for column in table.columns:
        if str(column.type) == "string":
            coded = column.combine_chunks().dictionary_encode()
            marks = [zlib.crc32(cell.encode()) for cell in coded.dictionary.to_pylist()]
            index = coded.indices.fill_null(len(marks)).to_numpy(zero_copy_only=False)
            cells = np.array([*marks, 0], np.uint64)[index]
        else:
            x = column.to_numpy() + 0.0  # -0.0 is 0.0
            cells = np.where(np.isnan(x), np.inf, x).view(np.uint64)
        with np.errstate(over="ignore"):
            key = (key ^ cells) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
    return np.asarray((key >> np.uint64(11)).astype(np.float64) / 2.0**53)
