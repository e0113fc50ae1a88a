"""Fits to files larger than memory: estimators read them in batches, once.

The first batch tells what the columns hold. Rows are held out by their content while the others are
fitted, and kept in memory together with as many of the others; both stand for all rows in the
evaluation, in the model file and in a report.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ...errors import TableError
from ...inspection import row_keys
from ...text import listed, plural
from ..readers.table import WHOLE, cells_of, table_of
from .job import FitJob

IN_MEMORY = 256_000_000
"""Bytes of files that are read whole."""

MOST_KEPT = 50_000
"""Rows, held out and not, that are kept, approximately."""


class LargeJob(FitJob):
    """One fit to rows of which `rows` are the first ones, with labels as they were read."""

    def __init__(self, *settings: Any) -> None:
        self.source, self.unlabeled = settings[-2:]
        super().__init__(*settings[:-2])

    def _run(self) -> None:
        import pyarrow as pa

        first, target = self.rows, self.rows.target
        self.whole = all(WHOLE.fullmatch(str(v)) for v in first.y.tolist() if v is not None)
        n_rows = self.source.n_bytes / max(first.table.nbytes, 1) * len(first.y)
        self.share, self.kept = min(self.holdout or 0.2, MOST_KEPT / n_rows), ([], [])  # type: ignore[var-annotated]
        self._final(self.estimator, np.zeros(0, int))
        parts = [pa.concat_tables(part) for part in self.kept]
        both = pa.concat_tables(parts)
        self.rows = replace(
            first,
            table=both.drop_columns([target]).combine_chunks(),
            y=np.array(both.column(target).to_pylist(), object),
            ids=np.arange(1, len(both) + 1),
            source=f"{first.source}, {plural(len(both), 'row')} of {self.n_rows:,}",
        )
        self._encode(np.asarray(self.model.classes_))
        at = np.arange(len(both))
        if self.holdout > 0:
            self.test = at[len(parts[0]) :]
            self._evaluate(self.model, self.test)
        self._keep(at[: len(parts[0])])
        again = self.refit and self.interrupted is None
        if again and self._final(clone(self.estimator), at):
            self.test = None

    def _data(self, at: np.ndarray) -> tuple[Any, Any]:
        """An iterable of tables; without `at` those of all rows but the held-out ones."""
        return self._tables(everything=len(at) > 0), self.rows.target

    def _tables(self, everything: bool) -> Iterator[Any]:
        import pyarrow as pa

        self.n_rows = 0
        for batch in self.source.batches():
            table, unreadable = table_of(batch, self.rows.kinds, self.source.style)
            where = f"{batch.file}, row {batch.first_row} and below"
            if unreadable:
                raise TableError(
                    f"{where}: columns {listed(list(unreadable))} hold cells that are no numbers.",
                    "Pass --columns COLUMN=category.",
                )
            cells = cells_of(batch, self.rows.target).tolist()
            y = pa.array([None if v is None else str(v) for v in cells], pa.string())
            if y.null_count and self.unlabeled == "refuse":
                raise TableError(f"{where}: rows without a class.", "Pass --unlabeled drop or use.")
            key, labeled = row_keys(table, seed=self.seed), y.is_valid().to_numpy(False)
            table = table.append_column(self.rows.target, y.cast(pa.int64()) if self.whole else y)
            if self.unlabeled == "drop":
                table, key, labeled = table.filter(labeled), key[labeled], labeled[labeled]
            self.n_rows += len(table)
            if not everything:
                out = (key < self.share) & labeled & (self.holdout > 0)
                self.kept[0].append(table.filter(~out & (key > 1 - self.share)))
                self.kept[1].append(table.filter(out))
                table = table.filter(~out)
            yield table
