"""Loaders of the papers' data sets, as scikit-learn's Bunch.

Nothing is imputed or rescaled; rows come in their source's order; classes are 0, 1, .... The module
`sources` says where the files are looked for. A set that cannot be found raises
`MissingDatasetError`, which names the places and what each said.

Every loader takes the words that scikit-learn's own take:

=====================  =====================================================================================
`return_X_y`           return ``(data, target)`` instead of a Bunch `as_frame`             data as a
pandas DataFrame, target as a Series, and both in the Bunch's ``frame`` `download_if_missing`
whether OpenML may be asked
=====================  =====================================================================================

and returns a Bunch with ``data``, ``target``, ``feature_names``, ``target_names``, ``DESCR``,
``source`` (where the rows came from, in words) and ``filename`` (the file, or None where there is
not exactly one).
"""

from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import Bunch

from kernelpool.errors import KernelpoolError, MissingDatasetError

from . import sets
from .sets import Dataset
from .sources import Found, find, how_to_get


def load_phoneme(
    *, return_X_y: bool = False, as_frame: bool = False, download_if_missing: bool = True
) -> Any:
    """Phoneme: nasal or oral vowel (5404 rows, 5 features, 2 classes)."""
    found = find(sets.PHONEME, download_if_missing)
    return _bunch(sets.PHONEME, found, return_X_y, as_frame)


def load_satimage(
    *,
    dims: Literal[36, 5] = 36,
    return_X_y: bool = False,
    as_frame: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Satimage: what covers the ground (6435 rows, 36 features, 6 classes; 6430 rows from OpenML).

    With ``dims=5`` the 36 features are projected onto the five axes of linear discriminant
    analysis, fitted on all rows as ELENA did (so that test folds leak into the axes, in the papers
    too), and left on its own scale: unit variance within classes. Standardizing these axes would
    undo that, and spoil the data for spherical kernels.
    """
    if dims not in (36, 5):
        raise KernelpoolError(f"dims must be 36 or 5; got {dims!r}.")
    dataset = sets.SATIMAGE
    found = find(sets.SATIMAGE, download_if_missing)
    if dims == 36:
        return _bunch(dataset, found, return_X_y, as_frame)
    axes = LinearDiscriminantAnalysis(n_components=dims).fit_transform(found.data, found.target)
    names = [f"lda{i}" for i in range(1, dims + 1)]
    note = "\n\nThe features are the five axes of linear discriminant analysis of all rows, on its own scale."
    return _bunch(dataset, found._replace(data=axes), return_X_y, as_frame, names=names, note=note)


def load_pima(
    *,
    missing: Literal["zero", "nan"] = "zero",
    return_X_y: bool = False,
    as_frame: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Pima: diabetes within five years (768 rows, 8 features, 2 classes).

    Missing values are zeros, as in the source and the papers, or with ``missing="nan"`` NaN: in
    glucose (5 rows), pressure (35), triceps (227), insulin (374) and mass (11).
    """
    if missing not in ("zero", "nan"):
        raise KernelpoolError(f"missing must be 'zero' or 'nan'; got {missing!r}.")
    dataset = sets.PIMA
    found = find(sets.PIMA, download_if_missing)
    columns = [dataset.features.index(name) for name in sets.PIMA_MISSING]
    zero = found.data[:, columns] == 0
    counts = dict(zip(sets.PIMA_MISSING, zero.sum(axis=0).tolist(), strict=True))
    if counts != sets.PIMA_MISSING:
        raise KernelpoolError(
            f"Zeros in pima must number {sets.PIMA_MISSING}; got {counts} ({found.source}). "
            f"Replace the file."
        )
    if missing == "nan":
        found.data[:, columns] = np.where(zero, np.nan, found.data[:, columns])
    return _bunch(dataset, found, return_X_y, as_frame)


def load_ionosphere(
    *, return_X_y: bool = False, as_frame: bool = False, download_if_missing: bool = True
) -> Any:
    """Ionosphere: does the radar return show structure (351 rows, 34 features, 2 classes); feature
    a02 is constant.
    """
    found = find(sets.IONOSPHERE, download_if_missing)
    return _bunch(sets.IONOSPHERE, found, return_X_y, as_frame)


def load_bupa(
    *, return_X_y: bool = False, as_frame: bool = False, download_if_missing: bool = True
) -> Any:
    """Bupa: liver disorders (345 rows, 6 features, 2 classes); the class is really a train/test
    marker.
    """
    found = find(sets.BUPA, download_if_missing)
    return _bunch(sets.BUPA, found, return_X_y, as_frame)


def load_wdbc(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """WDBC: breast tumors (569 rows, 30 features; 0 is malignant). Comes with scikit-learn, so it
    is always there.
    """
    bunch = load_breast_cancer()
    dataset = sets.wdbc(tuple(bunch.feature_names), bunch.DESCR)
    found = Found(bunch.data, bunch.target, "scikit-learn's load_breast_cancer", None)
    return _bunch(dataset, found, return_X_y, as_frame)


def load_ripley(
    *,
    subset: Literal["train", "test"] = "train",
    return_X_y: bool = False,
    as_frame: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Ripley's synthetic problem: his 250 training rows or his 1000 test rows (2 features). See
    also `make_ripley`.
    """
    if subset not in ("train", "test"):
        raise KernelpoolError(f"subset must be 'train' or 'test'; got {subset!r}.")
    dataset = sets.KNOWN[f"ripley_{subset}"]
    return _bunch(dataset, find(dataset, download_if_missing), return_X_y, as_frame)


def missing_reason(name: str, *, download_if_missing: bool = False) -> str | None:
    """Why a data set cannot be loaded here, in one line that says how to get it; None where it can.

    For tests and long runs that would rather skip a set than fail. `name` is phoneme, satimage,
    pima, ionosphere, bupa, wdbc, ripley_train or ripley_test. OpenML is left alone unless
    `download_if_missing`, so that asking takes no network. A file that is there but wrong still
    raises.

    >>> from papers.data import missing_reason
    >>> missing_reason("wdbc") is None  # comes with scikit-learn
    True
    """
    if name == "wdbc":
        return None
    if name not in sets.KNOWN:
        raise KernelpoolError(
            f"name must be one of {', '.join(sorted([*sets.KNOWN, 'wdbc']))}; got {name!r}."
        )
    try:
        find(sets.KNOWN[name], download_if_missing)
    except MissingDatasetError:
        return f"The data set {name!r} is not on this machine. {how_to_get(sets.KNOWN[name])}"
    return None


def _bunch(
    dataset: Dataset,
    found: Found,
    return_X_y: bool,
    as_frame: bool,
    names: list[str] | None = None,
    note: str = "",
) -> Any:
    data = found.data
    target = found.target
    frame = None
    names = names or list(dataset.features)
    if as_frame:
        data, target, frame = _framed(data, target, names)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=names,
        target_names=np.array(dataset.target_names),
        DESCR=dataset.description + note,
        source=found.source,
        filename=found.filename,
    )


def _framed(data: np.ndarray, target: np.ndarray, names: list[str]) -> tuple[Any, Any, Any]:
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise KernelpoolError(
            "as_frame=True needs pandas, which is not installed: pip install pandas."
        ) from error
    frame = pd.DataFrame(data, columns=names).assign(**{"class": target})
    return frame[names], frame["class"], frame
