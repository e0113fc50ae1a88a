"""Between fitted estimators and JSON that refers to arrays.

A model is its constructor parameters and its fitted state. Both consist of values of a few kinds;
anything else, a function for instance, is refused.

============================  =====================================================================
value                         JSON
============================  =====================================================================
None, bool, int, float, str   itself; ``{"float": "nan"}``, "inf" or "-inf" for what JSON lacks
list, tuple, dict             itself, ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``
array of numbers              ``{"array": name}``, with ``"order": "F"`` for column-major arrays
                              (rounding may depend on it); of shape () for a NumPy scalar
array of text or objects      ``{"objects": [...], "shape": [...], "text": whether all are text}``
RandomState                   ``{"random_state": its state}``
record                        ``{"record": class, "fields": {...}}``
estimator                     ``{"model": class, "parameters": {...}, "fitted": {...} or null}``, or
                              ``{"same": parameter}`` for what a parameter of the same estimator is
============================  =====================================================================

Classes are those of `SAVED_CLASSES` and `kernelpool.records.SAVED`; nothing is imported by a name from
a file. Fields that a record declares as `unsaved()` are left out.
"""

import inspect
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import kernelpool

from ...errors import ModelFileError
from ...records import SAVED, stored
from ...text import shorten
from .container import NAMES, is_shape, short

OURS: tuple[type, ...] = tuple(getattr(kernelpool, name) for name in kernelpool.ESTIMATORS)
OTHERS: tuple[type, ...] = (FrozenEstimator, Pipeline, StandardScaler)
"""The classes of scikit-learn that may stand around an estimator of ours."""

SAVED_CLASSES: dict[str, type] = {cls.__name__: cls for cls in (*OURS, *OTHERS)}


NOT_SAVABLE = {
    "_metadata_request": "requests of metadata routing (set_fit_request and the like); save one without",
    "_skl_callbacks": "callbacks; remove them with set_callbacks()",
}

MAX_JOBS = 256
"""Threads that a file may ask for."""

MAX_TEXT = 1 << 26
"""Characters of an array of text."""

MAX_NESTED_MODELS = 6
"""Estimators inside each other."""

PROBES = 16
"""Rows near the data at most that a model is asked about when it has been read; as many far from
it.
"""

PLAIN = str | bool | int | float | None

FAR = 1e6
"""How far away: in units of the data, and times the distance of the centers from zero."""

BESIDE_MODEL = ("calibration", "codes", "reference")
"""Entries of the header beside the model."""

SINGLE = 1e15
"""Rows below this are asked in single precision as well."""


def known_classes() -> str:
    """The classes that files hold, for messages."""
    return ", ".join(sorted(SAVED_CLASSES))


# -- writing ---------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.parameters: dict[int, str] = {}
        """Names of the estimators that are parameters of the one that is being written."""

    def value(self, value: Any, where: str) -> Any:
        """`value` as JSON; `where` names it in messages, and its arrays in the file."""
        if isinstance(value, str):
            return str(value)
        if value is None or type(value) in (bool, int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple):
            items = [self.value(item, f"{where}/{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, dict) and all(isinstance(key, str | int) for key in value):
            pairs = enumerate(value.items())
            return {"dict": [[k, self.value(v, f"{where}/{i}")] for i, (k, v) in pairs]}
        if isinstance(value, BaseEstimator):
            same = self.parameters.get(id(value))
            return self.model(value, where) if same is None else {"same": same}
        if SAVED.get(type(value).__name__) is type(value):
            return {"record": type(value).__name__, "fields": self._named(stored(value), where)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.value(value.get_state(legacy=False), where)}
        if hasattr(value, "__array__") and not isinstance(value, type):
            return self._array(np.asarray(value), where)
        what = "a function" if callable(value) else f"of type {type(value).__name__}"
        raise ModelFileError(
            f"{where} is {what}, which cannot be saved: a model file holds data, never code. "
            f"Set it to None or to one of the named choices with set_params before saving, or use "
            f"pickle."
        )

    def _named(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        path = f"{where}/" if where else ""
        return {name: self.value(value, f"{path}{name}") for name, value in sorted(values.items())}

    def model(self, estimator: Any, where: str = "") -> dict[str, Any]:
        """An estimator: its class, its parameters and what its fit has set."""
        cls = type(estimator)
        if SAVED_CLASSES.get(cls.__name__) is not cls:
            what = f"{cls.__module__}.{cls.__name__}"
            raise ModelFileError(
                f"{f'{where} is a {what}, which' if where else what} cannot be saved; a model file "
                f"may hold {known_classes()}. For models of other classes use skops (it asks which "
                f"types you trust when you load) or joblib (loading runs whatever code the file "
                f"holds); kernelpool checks neither."
            )
        values = estimator.get_params(deep=False)
        if "memory" in values:  # a folder of this machine
            values["memory"] = None
        state = {n: value for n, value in vars(estimator).items() if n not in values}
        for name, reason in NOT_SAVABLE.items():
            if state.pop(name, None):
                raise ModelFileError(
                    f"A {cls.__name__} cannot be saved with {reason}, or use pickle."
                )
        outer = self.parameters
        self.parameters = {}
        parameters = self._named(values, where)
        self.parameters = {id(p): n for n, p in values.items() if isinstance(p, BaseEstimator)}
        fitted = self._named(state, where)
        self.parameters = outer
        return {
            "model": cls.__name__,
            "parameters": parameters,
            "fitted": fitted if fitted or cls in (FrozenEstimator, Pipeline) else None,
        }

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype.kind in "UO":
            parts = [p.item() if isinstance(p, np.generic) else p for p in array.ravel().tolist()]
            odd = [type(part).__name__ for part in parts if not isinstance(part, PLAIN)]
            if odd:
                raise ModelFileError(
                    f"{where} holds an object of type {odd[0]}, which cannot be saved; expected "
                    f"text, numbers or None."
                )
            objects = [self.value(part, where) for part in parts]
            text = array.dtype.kind == "U"
            return {"objects": objects, "shape": list(array.shape), "text": text}
        if array.dtype.newbyteorder("=") not in NAMES:
            raise ModelFileError(
                f"{where} is an array of type {array.dtype}, which cannot be saved; expected "
                f"numbers, booleans or text."
            )
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        self.arrays[where] = np.asarray(native.T if turned else native, order="C")
        return {"array": where, "order": "F"} if turned else {"array": where}


# -- reading ---------------------------------------------------------------------------------------


class Reader:
    """Turns JSON back into values; every array is used once.

    What is no value, or does not fit together, raises an exception of any kind: see `read_file`.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.depth = 0
        self.parameters: dict[str, Any] = {}
        """Of the estimator that is being read."""

    def value(self, node: Any) -> Any:
        """The value that `node` stands for."""
        match node:
            case list():
                return [self.value(part) for part in node]
            case {"float": "nan" | "inf" | "-inf" as text}:
                return float(text)
            case {"tuple": list(parts)}:
                return tuple(self.value(parts))
            case {"dict": list(pairs)}:
                return {key: self.value(part) for key, part in pairs}
            case {"array": str(name)}:
                return self._array(name, node.get("order") == "F")
            case {"objects": list(parts), "shape": shape, "text": bool(text)}:
                return self._objects(self.value(parts), shape, text)
            case {"random_state": {"dict": _} as state}:
                return self._random_state(self.value(state))
            case {"record": str(name), "fields": dict(parts)} if name in SAVED:
                return SAVED[name](**self._named(parts))
            case {"same": str(name)}:
                return self.parameters[name]
            case {"model": str(_)}:
                return self.model(node)
            case dict():
                raise ModelFileError(f"The header holds a value that is not known, {short(node)}.")
        return node

    def _named(self, nodes: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(node) for name, node in nodes.items()}

    def _array(self, name: str, turned: bool) -> Any:
        array = self.arrays.pop(name, None)
        if array is None:
            raise ModelFileError(
                f"The header asks for an array {short(name)}, which is not in the file or already "
                f"taken."
            )
        if not array.ndim:
            return array[()]
        return array.T if turned else array

    def _objects(self, parts: list[Any], shape: Any, text: bool) -> np.ndarray:
        plain = all(isinstance(part, str if text else PLAIN) for part in parts)
        width = max(map(len, parts), default=0) if text and plain else 0
        if not plain or not is_shape(shape) or len(parts) * width > MAX_TEXT:
            raise ModelFileError("An array of objects may hold text, numbers and None only.")
        array = np.empty(len(parts), f"U{width}" if text else object)
        array[:] = parts
        return array.reshape(shape)

    def _random_state(self, state: Any) -> np.random.RandomState:
        if not 0 <= state["state"]["pos"] <= 624:  # NumPy does not look
            raise ModelFileError("A random state must be a state of MT19937.")
        random_state = np.random.RandomState(0)
        random_state.set_state(state)
        return random_state

    def model(self, node: Any) -> Any:
        """The estimator that `node` describes."""
        name = node["model"]
        self.depth += 1
        if name not in SAVED_CLASSES or self.depth > MAX_NESTED_MODELS:
            raise ModelFileError(
                f"The file holds a {short(name)}; a model file may hold {known_classes()}, at most "
                f"{MAX_NESTED_MODELS} inside each other."
            )
        cls: Any = SAVED_CLASSES[name]
        outer = self.parameters
        self.parameters = {}
        parameters = self._named(node["parameters"])
        unknown = sorted(set(parameters) - set(inspect.signature(cls).parameters))
        if unknown:
            raise ModelFileError(
                f"{name} has no parameter {short(unknown[0])} in this version of its library; "
                f"a newer one may have written the file."
            )
        if parameters.get("memory") is not None or abs(parameters.get("n_jobs") or 0) > MAX_JOBS:
            raise ModelFileError(f"memory must be None, and n_jobs at most {MAX_JOBS}, in a file.")
        model = cls(**parameters)
        if cls in OURS:
            model._validate_params()
        self.parameters = parameters
        for attribute, part in (node["fitted"] or {}).items():
            settable = attribute.isidentifier() and "_" in (attribute[0], attribute[-1])
            if not settable or attribute in NOT_SAVABLE or attribute in dir(cls):
                raise ModelFileError(f"{name} cannot have an attribute {short(attribute)}.")
            setattr(model, attribute, self.value(part))
        self.parameters = outer
        self.depth -= 1
        return model


# -- a whole model ---------------------------------------------------------------------------------


def overview(estimator: Any) -> dict[str, Any]:
    """What the header repeats of the model, for whoever reads it alone; `load` compares."""
    classes, names = (getattr(estimator, f"{n}_", None) for n in ("classes", "feature_names_in"))
    return {
        "estimator": type(estimator).__name__,
        "classes": None
        if classes is None
        else ["NaN" if label != label else label for label in np.ravel(classes).tolist()],
        "n_features": getattr(estimator, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
    }


def read_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fitted model that a header and arrays describe, rebuilt and asked once, and what stands
    beside it; every array must be used.
    """
    reader = Reader(arrays)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _check_numbers(arrays)
            model = reader.model(header["model"])
            recorded = {name: reader.value(header[name]) for name in BESIDE_MODEL}
            if reader.arrays:
                raise ModelFileError(
                    f"The file holds an array {short(next(iter(reader.arrays)))} that the model "
                    f"does not use."
                )
            check_is_fitted(model)
            for key, value in overview(model).items():
                if header[key] != value:
                    raise ModelFileError(
                        f"The header says {key} is {short(header[key])}; of the model it is "
                        f"{short(value)}."
                    )
            _probe(model, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a model raises whose parts do not fit together
        raise ModelFileError(
            f"The model in the file does not fit together: {type(error).__name__}, "
            f"{shorten(str(error), 400, '...')}."
        ) from None
    return {"model": model, **recorded}


def _check_numbers(arrays: dict[str, np.ndarray]) -> None:
    """Squares of the numbers, and of rows far from them, must not overflow.

    Histories, and the trials of a pool (a member may have failed), may hold NaN.
    """
    for name, array in arrays.items():
        may_lack = name.endswith("history") or "/trials/" in name
        if array.dtype.kind == "f" and not may_lack:
            largest = math.sqrt(np.finfo(array.dtype).max) / 1e4
            if not ((np.abs(array) <= largest) | (array == -np.inf)).all():
                raise ModelFileError(
                    f"Array {short(name)} holds NaN, or numbers beyond {largest:.0e}, and is no "
                    f"part of a model."
                )


def _probe(model: Any, arrays: dict[str, np.ndarray]) -> None:
    """Near its centers and far from them, and where cells are missing, the answers are finite; so
    are samples.
    """
    d = getattr(model, "n_features_in_", 0)
    most = sum(array.size + 1 for array in arrays.values())
    if not 0 <= d <= most:
        raise ModelFileError("The model in the file has more features than the file has numbers.")
    stored = [a for a in arrays.values() if a.ndim == 2 and a.shape[1] == d and a.dtype.kind == "f"]
    near = np.concatenate([np.zeros((1, d)), *(a[:PROBES] for a in stored)])[:PROBES]
    x: Any = np.concatenate([near, FAR * near, np.full((1, d), FAR), np.full((1, d), -FAR)])
    columns = _columns(model)
    if columns is not None:  # codes in range; in some rows one cell is missing, in one all are
        codes = np.arange(len(x))[:, None] % np.maximum(columns.levels, 1)
        x = np.where(np.array(columns.levels) > 0, codes, x)
        missing = np.repeat(x[:1], min(d, PROBES) + 1, axis=0)
        missing[np.eye(len(missing), d, dtype=bool)] = np.nan
        missing[-1] = np.nan
        takes_missing = type(model).__sklearn_tags__(model).input_tags.allow_nan
        x = replace(columns, frame=None).decode(
            np.concatenate([x, missing]) if takes_missing else x
        )
    asked = [x] if hasattr(model, "predict_proba") else []
    if asked and x.dtype == np.float64 and np.nanmax(np.abs(x)) < SINGLE:
        asked.append(x.astype(np.float32))
    for rows in asked:
        answer = np.asarray(model.predict_proba(rows))
        right = answer.shape == (len(x), len(model.classes_))
        if not right or not np.abs(answer.sum(axis=1) - 1).max() <= 1e-6:
            raise ModelFileError("The probabilities of the model in the file do not sum to one.")
    if hasattr(model, "predict"):
        answer = np.asarray(model.predict(x))
        if len(answer) != len(x) or (answer.dtype.kind == "f" and not np.isfinite(answer).all()):
            raise ModelFileError("The predictions of the model in the file are not finite.")
    if hasattr(model, "sample") and len(model.sample(3, random_state=0)[0]) != 3:
        raise ModelFileError("The model in the file cannot be sampled.")


def _columns(model: Any) -> Any:
    """The columns of the table that a model takes; None for transformers and pipelines, which take
    numbers.
    """
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    return None if isinstance(model, OTHERS) else getattr(model, "columns_", None)
