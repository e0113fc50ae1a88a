"""A whole model file: a model, what was recorded of rows beside it, and what must be true of both.

Values of the right types may still be no model. So what was read is asked: the model about rows
near its own numbers, far from them, and with missing cells. Its answers must be such as those that
were recorded: probabilities that sum to one, codes of classes, densities that are not infinite.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ...errors import ModelFileError
from ...inspection import DECISIONS, DriftReference, Predictions, predictions
from ...text import plain, shorten
from .codec import Reader, check_types
from .container import short

PARTS = ("model", "calibration", "codes", "reference")
"""Fields of a `ModelFile` that the codec writes and reads."""

OVERVIEW = {
    "classes": "classes_",
    "n_features": "n_features_in_",
    "feature_names": "feature_names_in_",
}
"""Attributes of a model that the header repeats, where it has them."""

PROBES = 16
"""Rows near the data at most that a model is asked about when it has been read; as many far from
it on either side.
"""

FAR = 1e6
"""How far away: in units of the data, and times the distance of the centers from zero."""

SINGLE = 1e15
"""Rows below this are asked in single precision as well."""

MAY_LACK = ("history", "/trials/", "calibration")
"""Arrays so named may hold NaN: a member of a pool may have failed, a density may be unknown."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds: a fitted model, and what was recorded of rows beside it.

    Attributes
    ----------
    model : estimator
        Any fitted estimator of this library, `RejectClassifier` and `ConformalClassifier` among
        them, alone or behind a `StandardScaler` in a `Pipeline`.
    calibration : Predictions or None
        Its predictions of rows that it was not fitted to: `RejectClassifier.from_predictions` and
        `ConformalClassifier.from_predictions` set thresholds and sets by them.
    codes : ndarray of int of shape (n_calibration,) or None
        The classes of these rows, as positions in `classes_`.
    reference : DriftReference or None
        Counts of the rows of the fit, for `check_drift`.
    summary : dict or None
        What people may want to know of the training: anything that JSON can hold.
    """

    model: BaseEstimator
    calibration: Predictions | None = None
    codes: np.ndarray | None = None
    reference: DriftReference | None = None
    summary: dict[str, Any] | None = None

    def check(self) -> None:
        """ModelFileError where the parts are not of these types, or are not those of one model."""
        check_types(self)
        check_is_fitted(self.model)
        if (self.calibration is None) != (self.codes is None):
            raise ModelFileError("calibration and codes must be given together.")
        if self.calibration is not None and self.codes is not None:
            _check_predictions(self.calibration, len(self.codes), self.model)
            _check_codes("codes", self.codes, *self.calibration.probability.shape)
        if self.reference is not None:
            names = list(self.reference.columns.names or ())
            known = overview(self.model)["feature_names"]
            n_features = len(self.reference.columns)
            if n_features != self.model.n_features_in_ or (names and known and names != known):
                raise ModelFileError("The reference is of other features than the model.")


def overview(model: Any) -> dict[str, Any]:
    """What the header repeats of a model, for whoever reads it alone; `load` compares."""
    attributes = {key: plain(getattr(model, name, None)) for key, name in OVERVIEW.items()}
    return {"estimator": type(model).__name__, **attributes}


def read_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> ModelFile:
    """What a header and arrays describe, rebuilt and asked once; every array must be used."""
    reader = Reader(arrays)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _check_numbers(arrays)
            parts = {name: reader.value(header[name]) for name in PARTS}
            if reader.arrays:
                raise ModelFileError(
                    f"The file holds an array {short(next(iter(reader.arrays)))} that the model "
                    f"does not use."
                )
            file = ModelFile(**parts, summary=header["overview"]["summary"])
            file.check()
            if header["overview"] | overview(file.model) != header["overview"]:
                raise ModelFileError("The overview in the header is that of another model.")
            _ask(file, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a model raises whose parts do not fit together
        raise ModelFileError(
            f"The model in the file does not fit together: {type(error).__name__}, "
            f"{shorten(str(error), 400, '...')}."
        ) from None
    return file


# -- numbers ---------------------------------------------------------------------------------------


def _check_numbers(arrays: dict[str, np.ndarray]) -> None:
    """Squares of the numbers, and of rows far from them, must not overflow."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not any(text in name for text in MAY_LACK):
            largest = math.sqrt(np.finfo(array.dtype).max) / 1e4
            if not ((np.abs(array) <= largest) | (array == -np.inf)).all():
                raise ModelFileError(
                    f"Array {short(name)} holds NaN, or numbers beyond {largest:.0e}, and is no "
                    f"part of a model."
                )


def _check_codes(name: str, codes: np.ndarray, n_rows: int, n_codes: int) -> None:
    """Whole numbers below `n_codes`, one a row."""
    right = codes.shape == (n_rows,) and codes.dtype.kind in "iu"
    if not right or not ((codes >= 0) & (codes < n_codes)).all():
        raise ModelFileError(
            f"{name} must be whole numbers from 0 to {n_codes - 1} for {n_rows} rows."
        )


def _check_predictions(rows: Predictions, n_rows: int, model: Any) -> None:
    """Predictions of so many rows by a model."""
    classes = np.asarray(model.classes_)
    wide = n_rows, len(classes)
    shapes = {"probability": wide, "score": wide[:1], "log_density": wide, "sets": wide}
    for name, shape in shapes.items():
        values = getattr(rows, name)
        if values is not None and (
            values.shape != shape or values.dtype.kind not in "fb" or (values == np.inf).any()
        ):
            raise ModelFileError(f"{name} must be finite numbers or booleans of shape {shape}.")
    _check_codes("predicted", rows.predicted, *wide)
    _check_codes("decision", rows.decision, n_rows, len(DECISIONS))
    total = rows.probability.sum(axis=1)
    if not (rows.probability >= 0).all() or not (np.abs(total - 1) <= 1e-6).all():
        raise ModelFileError("The probabilities of the model in the file do not sum to one.")
    if repr(rows.classes.tolist()) != repr(classes.tolist()):  # NaN may be one
        raise ModelFileError("The classes of the predictions are not those of the model.")


# -- answers ---------------------------------------------------------------------------------------


def _ask(file: ModelFile, arrays: dict[str, np.ndarray]) -> None:
    """Near its centers and far from them, and where cells are missing, a model answers; it can be
    sampled, and such rows compared with the reference.
    """
    model: Any = file.model
    d = getattr(model, "n_features_in_", 0)
    if not 0 <= d <= sum(array.size + 1 for array in arrays.values()):
        raise ModelFileError("The model in the file has more features than the file has numbers.")
    if hasattr(model, "calibration_codes_"):
        codes = model.calibration_codes_
        _check_codes("calibration_codes_", codes, len(codes), len(model.classes_))
    x = _rows(model, d, arrays)
    asked = [x] if hasattr(model, "predict_proba") else []
    if asked and x.dtype == np.float64 and np.nanmax(np.abs(x)) < SINGLE:
        asked.append(x.astype(np.float32))
    for rows in asked:
        _check_predictions(predictions(model, rows), len(x), model)
    if hasattr(model, "predict"):
        answer = np.asarray(model.predict(x))
        if len(answer) != len(x) or (answer.dtype.kind == "f" and not np.isfinite(answer).all()):
            raise ModelFileError("The predictions of the model in the file are not finite.")
    if hasattr(model, "sample") and len(model.sample(3, random_state=0)[0]) != 3:
        raise ModelFileError("The model in the file cannot be sampled.")
    if file.reference is not None:
        file.reference.compare(file.reference.count(x))


def _rows(model: Any, d: int, arrays: dict[str, np.ndarray]) -> Any:
    """Rows that a model takes: near numbers of its own and far from them, and where it allows that
    some that lack ever more cells.
    """
    own = [array[:PROBES] for array in arrays.values() if array.shape[1:] == (d,)]
    near = np.nan_to_num(np.concatenate([np.eye(2, d), *own])[:PROBES], neginf=0.0)
    x = np.concatenate([near, FAR * near, -FAR * near])
    columns = getattr(model, "columns_", None)
    if columns is None:  # transformers and pipelines take numbers
        return x
    levels = np.array(columns.levels)
    x = np.where(levels > 0, np.arange(len(x))[:, None] % np.maximum(levels, 1), x)
    if get_tags(model).input_tags.allow_nan:
        missing = np.tri(PROBES, d, d - PROBES, dtype=bool)  # in the last row all are
        x = np.concatenate([x, np.where(missing, np.nan, x[:1])])
    return replace(columns, frame=None).decode(x)
