"""Training data from rows that come in batches: labels, frame and the sample for the start in one pass."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..app.readers.labels import classes_of
from ..errors import KernelpoolError
from ..rows import BatchRows, Block, Frame, RowBatch, Rows, Spool, as_rows, read_ahead
from ..starts.sample import MOST_ROWS, ClassSample, Sample, sample_block
from ..tables.batches import (
    Cells,
    NumberSource,
    QueryRows,
    check_complete,
    check_width,
    checked_batches,
    number_source,
)
from ..tables.columns import Columns
from .prepare import (
    TrainingData,
    distinct_labels,
    is_unlabeled,
    surveyed,
    with_two_classes,
    zero_where_constant,
)

IN_MEMORY = 64 << 20
"""Bytes of rows that are kept when they have been read: so much, and they are as fast as an array."""

SEED = 0
"""Of the sample for the start: rows are drawn by their content."""


@dataclass(frozen=True)
class CodedBatches:
    """A source with its labels in codes."""

    source: NumberSource
    n_features: int
    codes: dict[Any, int]
    unlabeled_weight: float

    def __iter__(self) -> Iterator[RowBatch]:
        for batch in self.source.read():
            check_width(batch.x, self.n_features)
            codes = (
                np.full(len(batch.x), -1)
                if batch.target is None
                else _coded(batch.target, self.codes)
            )
            yield RowBatch(
                batch.x, codes, _weighted(batch.weight, codes, self.unlabeled_weight, batch.x.dtype)
            )


@dataclass(frozen=True)
class SpooledBatches:
    """Batches as they were read, their codes in the order of the classes."""

    spool: Spool
    place: np.ndarray
    """The code of each class by its code in the spool, and -1 last."""

    def __iter__(self) -> Iterator[RowBatch]:
        for x, y, weight in self.spool:
            yield RowBatch(x, self.place[y], weight)


def _coded(cells: Cells, codes: dict[Any, int]) -> np.ndarray:
    unknown = [value for value in cells.distinct if _key(value) not in codes]
    if unknown:
        raise KernelpoolError(
            f"y has a label {unknown[0]!r} that it had not when it was read first; it must not change."
        )
    return np.array([*(codes[_key(value)] for value in cells.distinct), -1])[cells.index]


def _weighted(
    weight: np.ndarray | None, codes: np.ndarray, unlabeled_weight: float, dtype: Any
) -> np.ndarray | None:
    if unlabeled_weight == 1:
        return weight
    factor = np.where(codes < 0, unlabeled_weight, 1.0).astype(dtype)
    return factor if weight is None else weight * factor


def _key(value: Any) -> Any:
    """NaN is not equal to itself, and so no key."""
    return None if isinstance(value, float) and value != value else value


@dataclass
class _FirstPass:
    """All that is learned of rows while they are read for the first time."""

    is_table: bool
    decodes: bool
    unlabeled: Any
    unlabeled_weight: float
    codes: dict[Any, int] = field(default_factory=dict)
    """Of labels, in the order in which they come; -1 for those that are none."""
    class_weight: list[float] = field(default_factory=list)
    unlabeled_total: float = 0.0
    n_batch_rows: int = 0
    n_rows: int = 0
    """Rows with any weight."""
    total: float = 0.0
    mean: Any = 0.0
    squares: Any = 0.0
    """Sum of squares about `mean`, (d,)."""
    has_holes: bool = False
    sample: Sample | None = None
    frame: Frame | None = None
    """Of the first batch: rows are drawn by their content in it."""
    kept: list[RowBatch] | None = field(default_factory=list)
    spool: Spool | None = None
    kept_bytes: int = 0

    def add(self, x: np.ndarray, cells: Cells | None, weight: np.ndarray | None) -> None:
        """A batch."""
        codes = self._codes(cells, len(x))
        weight = _weighted(weight, codes, self.unlabeled_weight, x.dtype)
        counts = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
        by_code = np.bincount(codes + 1, counts, minlength=len(self.class_weight) + 1)
        self.unlabeled_total += by_code[0]
        self.class_weight = (np.asarray(self.class_weight) + by_code[1:]).tolist()
        self.n_batch_rows += len(x)
        self.n_rows += int(np.count_nonzero(counts))
        self.has_holes = self.has_holes or bool(np.isnan(x).any())
        if not self.has_holes:
            self._add_spread(x, counts)
            self._add_sample(x, codes, weight)
        self._keep(RowBatch(x, codes, weight))

    def _codes(self, cells: Cells | None, n: int) -> np.ndarray:
        if cells is None:
            return np.full(n, -1)
        known = np.array([_key(value) is not None for value in cells.distinct], bool)
        marked = is_unlabeled(_as_objects(cells.distinct), self.unlabeled)
        if self.is_table and self.unlabeled is not None:  # text files hold text
            marked = marked | np.array(
                [str(value) == str(self.unlabeled) for value in cells.distinct], bool
            )
        for value, is_known, is_marked in zip(cells.distinct, known, marked, strict=True):
            if _key(value) in self.codes:
                continue
            labeled = is_known and not is_marked
            self.codes[_key(value)] = len(self.class_weight) if labeled else -1
            if labeled:
                self.class_weight.append(0.0)
            elif not is_marked and value is not None:
                raise ValueError(
                    "Input y contains NaN. If it marks rows without a label, say unlabeled=np.nan."
                )
        return _coded(cells, self.codes)

    def _add_spread(self, x: np.ndarray, weight: np.ndarray) -> None:
        """Chan, Golub & LeVeque 1983: means and squares about them, joined."""
        total = float(weight.sum())
        if total == 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = weight @ x / total
            squares = weight @ (x - mean) ** 2
            away, both = mean - self.mean, self.total + total
            self.squares = self.squares + squares + away**2 * (self.total * total / both)
            self.mean, self.total = self.mean + away * (total / both), both

    def _add_sample(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        if self.frame is None:
            with np.errstate(over="ignore", invalid="ignore"):
                deviation = x.std(axis=0)
            self.frame = Frame(x.mean(axis=0), np.where(deviation > 0, deviation, 1.0))
        most = max(MOST_ROWS // max(len(self.class_weight), 1), 1000)
        drawn = sample_block(Block(self.frame.inside(x), codes, weight), SEED, most)
        self.sample = (
            drawn if self.sample is None else drawn + self.sample
        )  # the later one knows more classes

    def _keep(self, batch: RowBatch) -> None:
        self.kept_bytes += sum(a.nbytes for a in batch if a is not None)
        if self.kept is not None:
            self.kept.append(batch)
            if self.kept_bytes > IN_MEMORY:
                self._begin_spool()
        elif self.spool is not None:
            self._spool(batch)

    def _begin_spool(self) -> None:
        """What was kept goes to the disk, if that spares anything: arrays need no decoding."""
        kept, self.kept = self.kept or [], None
        if self.decodes:
            with suppress(OSError):
                self.spool = Spool()
        for batch in kept:
            self._spool(batch)

    def _spool(self, batch: RowBatch) -> None:
        if self.spool is None:
            return
        try:
            if self.spool.has_room(batch):
                self.spool.add(batch)
                return
        except OSError:
            pass
        self.spool.close()  # the source is read in every sweep then
        self.spool = None

    def samples(self, order: np.ndarray) -> list[ClassSample]:
        """Rows of each class, the classes in this order, in the units of the data."""
        assert self.sample is not None
        assert self.frame is not None
        found = [self.sample.of_class(int(k)) for k in order]
        return [
            ClassSample(np.asarray(self.frame.outside(sample.x)), sample.weight) for sample in found
        ]


def batched_training_data(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    unlabeled: Any,
    unlabeled_weight: float,
) -> TrainingData:
    """As `training_data`, from a source that is read in batches."""
    source = number_source(X, y, sample_weight)
    data = _batched(source, y, unlabeled, unlabeled_weight, estimator.n_jobs, holes=True)
    columns = getattr(source, "columns", None)
    if isinstance(columns, Columns):
        data.columns = columns
    return data


def _batched(
    source: Any,
    y: Any,
    unlabeled: Any,
    unlabeled_weight: float,
    n_jobs: int | None,
    *,
    holes: bool,
) -> TrainingData:
    seen, n_features, dtype = (
        _FirstPass(source.is_table, source.decodes, unlabeled, unlabeled_weight),
        None,
        np.dtype(np.float64),
    )
    for batch in read_ahead(source.read()):
        if not len(batch.x):
            continue
        n_features = batch.x.shape[1] if n_features is None else n_features
        check_width(batch.x, n_features)
        n_bad = np.count_nonzero(~np.isfinite(batch.x))
        if n_bad and source.is_table and not holes:
            continue  # the source counts them to the end, and says where they are
        if n_bad and not (holes and not np.isinf(batch.x).any()):
            raise ValueError(
                f"Input X contains NaN or infinity in {n_bad} cells of a batch; impute or drop them first."
            )
        seen.add(batch.x, batch.target, batch.weight)
        dtype = batch.x.dtype
    if not holes:
        check_complete(source)
    if n_features is None or seen.n_batch_rows < 2:
        raise ValueError(
            f"{source.label} has {seen.n_batch_rows} rows, while a minimum of 2 is required."
        )
    classes, order = _classes(source, seen, y)
    codes = {
        value: -1 if code < 0 else int(np.flatnonzero(order == code)[0])
        for value, code in seen.codes.items()
    }
    class_weight = np.asarray(seen.class_weight)[order]
    if not class_weight.any():
        raise KernelpoolError(
            "sample_weight is zero for every labeled row; at least one must be positive."
        )
    names = None if source.names is None else tuple(map(str, source.names))
    columns = Columns((None,) * n_features, names)
    if seen.kept is not None:
        return _in_memory(seen.kept, classes, order, n_jobs, columns)
    coded: Any = CodedBatches(source, n_features, codes, unlabeled_weight)
    if seen.spool is not None:
        coded = SpooledBatches(seen.spool, np.append(np.argsort(order), -1))
    rows: Rows = BatchRows(coded, n_features, dtype, n_rows=seen.n_batch_rows, n_jobs=n_jobs)
    if (
        seen.has_holes
    ):  # means and variances of what is known take two more passes, and the start another
        return surveyed(rows, classes, columns)
    variance = seen.squares / seen.total
    if not np.isfinite(variance).all():
        worst = int(np.argmax(~np.isfinite(variance)))
        raise KernelpoolError(
            f"Feature {worst} of X is too large to be squared in float64; divide X by a constant."
        )
    mean, variance = zero_where_constant(
        np.asarray(seen.mean, np.float64), np.asarray(variance, np.float64), rows.eps
    )
    return TrainingData(
        rows,
        classes,
        class_weight,
        seen.unlabeled_total,
        float(seen.n_rows),
        mean,
        variance,
        columns,
        seen.samples(order),
    )


def _in_memory(
    kept: list[RowBatch],
    classes: np.ndarray,
    order: np.ndarray,
    n_jobs: int | None,
    columns: Columns,
) -> TrainingData:
    """What was kept, as an array: all follows as if it had been one."""
    place = np.append(np.argsort(order), -1)
    x = np.concatenate([batch.x for batch in kept])
    y = np.concatenate([place[batch.y] for batch in kept])
    weight = (
        None
        if kept[0].weight is None
        else np.concatenate([np.asarray(batch.weight) for batch in kept])
    )
    return surveyed(as_rows(np.ascontiguousarray(x), y, weight, n_jobs=n_jobs), classes, columns)


def _classes(source: NumberSource, seen: _FirstPass, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the code that each had while rows were read."""
    values = [value for value, code in seen.codes.items() if code >= 0]
    if source.is_table:
        labels = classes_of(str(y), values, seen.n_rows)
    else:
        distinct_labels(_as_objects(values), None)  # one kind, and classes
        labels = with_two_classes(np.asarray(values))
    order = np.argsort(labels, kind="stable")
    return np.asarray(labels[order]), order


def _as_objects(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def batched_query_rows(estimator: Any, X: Any) -> Rows:
    """Rows of a source, to be judged; columns are matched by name where the estimator knows names."""
    names, d = estimator.columns_.names, estimator.n_features_in_
    source = number_source(X, names=None if names is None else list(names))
    name = type(estimator).__name__
    return BatchRows(QueryRows(source, d, name, True), d, n_jobs=estimator.n_jobs)


@dataclass(frozen=True)
class LabeledQueryRows:
    """Rows to be judged with the codes of their classes: -1 where there is no label, -2 where it is none of the classes."""

    source: NumberSource
    n_features: int
    estimator: str
    classes: np.ndarray
    holes: bool

    def __iter__(self) -> Iterator[RowBatch]:
        told = str if self.source.is_table else _key  # text files hold text
        known = {told(label): code for code, label in enumerate(self.classes.tolist())}
        for batch in checked_batches(self.source, self.n_features, self.estimator, self.holes):
            if batch.target is None:
                raise KernelpoolError(
                    "score needs labels: name their column as y, or let every batch be (X, y)."
                )
            values = [_key(value) for value in batch.target.distinct]
            code_of = [-1 if value is None else known.get(told(value), -2) for value in values]
            yield RowBatch(batch.x, np.array([*code_of, -1])[batch.target.index], batch.weight)


def batched_labeled_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of a source and their classes, to be judged and compared."""
    names, d = estimator.columns_.names, estimator.n_features_in_
    source = number_source(X, y, sample_weight, names=None if names is None else list(names))
    rows = LabeledQueryRows(source, d, type(estimator).__name__, estimator.classes_, True)
    return BatchRows(rows, d, n_jobs=estimator.n_jobs)
