"""Between fitted estimators and JSON that refers to arrays.

A model is its constructor parameters and its fitted state. Both consist of values of a few kinds;
anything else, a function for instance, is refused.

============================  ========================================================================================
value                         JSON
============================  ========================================================================================
None, bool, int, float, str   itself; ``{"float": "nan"}``, ``"inf"`` or ``"-inf"`` for numbers that
JSON lacks list, tuple, dict             itself, ``{"tuple": [...]}``, ``{"dict": [[key, value],
...]}`` array, NumPy scalar           ``{"array": name}``, with ``"order": "F"`` for column-major
arrays (rounding may depend on
                              it) and ``"scalar": true`` for scalars; ``{"text": name}``: code
                              points, (..., width), padded by zeros; ``{"objects": [...], "shape":
                              [...]}``: text, numbers and None mixed
RandomState                   ``{"random_state": {...}}``: its state record
``{"record": class, "fields": {...}}`` estimator                     ``{"model": class,
"parameters": {...}, "fitted": {...} or null}``, or ``{"same":
                              parameter}`` for the object that a parameter of the same estimator
                              holds
============================  ========================================================================================

Classes are those of `ESTIMATORS` and `RECORDS`; nothing is imported by a name from a file.
"""

import inspect
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ... import estimators
from ...errors import ModelFileError
from .container import NAMES, clipped, is_shape, short

OURS: tuple[type, ...] = tuple(getattr(estimators, name) for name in estimators.__all__)
OTHERS: tuple[type, ...] = (FrozenEstimator, Pipeline, StandardScaler)
"""The classes of scikit-learn that may stand around an estimator of ours."""

ESTIMATORS: dict[str, type] = {cls.__name__: cls for cls in (*OURS, *OTHERS)}


def _records() -> dict[str, type]:
    """The frozen records of the modules of our estimators."""
    modules = [vars(sys.modules[cls.__module__]) for base in OURS for cls in base.__mro__]
    found = (value for names in modules for value in names.values())
    return {
        cls.__name__: cls
        for cls in found
        if isinstance(cls, type)
        and is_dataclass(cls)
        and cls.__module__.startswith("kernelpool.")
        and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    }


RECORDS = _records()

NOT_SAVED = {"_imputes", "held_out_log_density_", "held_out_proba_", "validation_log_proba_"}
"""Attributes, and fields of records without the underscore, that are not saved: values for every
training row.
"""

NOT_SAVABLE = {
    "_metadata_request": "requests of metadata routing (set_fit_request and the like); save one without",
    "_skl_callbacks": "callbacks; remove them with set_callbacks()",
}

ELSEWHERE = (
    "For models of other classes use skops (it asks which types you trust when you load) or joblib "
    "(loading runs whatever code "
    "the file holds); kernelpool checks neither."
)

MAX_JOBS, MAX_TEXT_WIDTH, MAX_NESTED_MODELS = 256, 4096, 6
"""Threads that a file may ask for, characters of an entry in an array of text, and estimators
inside each other.
"""

PLACES = ("memory",)
"""Parameters that name folders and files of the machine that fitted the model: a later fit would
write there.
"""

PROBES = 16
"""Rows near the data at most that a model is asked about when it has been read; as many far from
it.
"""

FAR = 1e6
"""How far away: in units of the data, and times the distance of the centers from zero."""

PLAIN = str | bool | int | float | None


def known_classes() -> str:
    """The classes that files hold, for messages."""
    return ", ".join(sorted(ESTIMATORS))


# -- writing ---------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def value(self, value: Any, where: str) -> Any:
        """`value` as JSON; `where` names it in messages, and its arrays in the file."""
        if isinstance(value, np.generic):
            return {"array": self._keep(np.asarray(value), where), "scalar": True}
        if isinstance(value, str):
            return str(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise ModelFileError(
                    f"{where} is {value}, which has more than 64 bits and cannot be saved."
                )
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple):
            parts = [self.value(part, f"{where}/{i}") for i, part in enumerate(value)]
            return parts if isinstance(value, list) else {"tuple": parts}
        if isinstance(value, dict):
            if not all(isinstance(key, str | int) for key in value):
                raise ModelFileError(f"{where} is a dict whose keys are not all text or integers.")
            pairs = enumerate(value.items())
            return {"dict": [[k, self.value(v, f"{where}/{i}")] for i, (k, v) in pairs]}
        if isinstance(value, BaseEstimator):
            return self.model(value, where)
        if RECORDS.get(type(value).__name__) is type(value):
            names = [f.name for f in fields(RECORDS[type(value).__name__]) if f.init]  # type: ignore[arg-type]
            kept = {n: None if f"{n}_" in NOT_SAVED else getattr(value, n) for n in names}
            return {"record": type(value).__name__, "fields": self._named(kept, where)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self._named(dict(value.get_state(legacy=False)), where)}
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
        if ESTIMATORS.get(cls.__name__) is not cls:
            what = f"{cls.__module__}.{cls.__name__}"
            raise ModelFileError(
                f"{f'{where} is a {what}, which' if where else what} cannot be saved; a model file "
                f"may hold "
                f"{known_classes()}. {ELSEWHERE}"
            )
        parameters = estimator.get_params(deep=False)
        parameters |= {name: None for name in PLACES if name in parameters}
        unsaved = {*parameters, *NOT_SAVED}
        state = {name: value for name, value in vars(estimator).items() if name not in unsaved}
        for name in NOT_SAVABLE:
            if state.pop(name, None):
                raise ModelFileError(
                    f"A {cls.__name__} cannot be saved with {NOT_SAVABLE[name]}, or use pickle."
                )
        same = {id(p): name for name, p in parameters.items() if isinstance(p, BaseEstimator)}
        written = self._named({n: v for n, v in state.items() if id(v) not in same}, where)
        written |= {n: {"same": same[id(v)]} for n, v in state.items() if id(v) in same}
        return {
            "model": cls.__name__,
            "parameters": self._named(parameters, where),
            "fitted": written if written or cls in (FrozenEstimator, Pipeline) else None,
        }

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype == object:
            parts = [
                part.item() if isinstance(part, np.generic) else part
                for part in array.ravel().tolist()
            ]
            for part in parts:
                if not isinstance(part, PLAIN):
                    raise ModelFileError(
                        f"{where} holds an object of type {type(part).__name__}, which cannot be "
                        f"saved; "
                        f"expected text, numbers or None."
                    )
            objects = [self.value(part, where) for part in parts]
            return {"objects": objects, "shape": list(array.shape)}
        if array.dtype.kind == "U":
            width = max(1, array.dtype.itemsize // 4)
            if width > MAX_TEXT_WIDTH:
                raise ModelFileError(
                    f"{where} holds text of more than {MAX_TEXT_WIDTH} characters, which cannot be "
                    f"saved."
                )
            native = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
            points = native.view(np.uint32).reshape(*array.shape, width)
            return {"text": self._keep(points, where)}
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"array": self._keep(array.T, where), "order": "F"}
        return {"array": self._keep(array, where)}

    def _keep(self, array: np.ndarray, where: str) -> str:
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        if array.dtype not in NAMES:
            raise ModelFileError(
                f"{where} is an array of type {array.dtype}, which cannot be saved; expected one "
                f"of "
                f"{', '.join(str(dtype) for dtype in NAMES)}, or text."
            )
        self.arrays[where] = array
        return where


# -- reading ---------------------------------------------------------------------------------------


class Reader:
    """Turns JSON back into values; every array is used once."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.depth = 0
        self.field = ""  # the parameter, attribute or field that is read
        self._kinds: dict[str, tuple[Callable[[dict[str, Any]], Any], set[str]]] = {
            "float": (self._float, set()),
            "tuple": (lambda node: tuple(self._list(node["tuple"])), set()),
            "dict": (self._dict, set()),
            "array": (self._array, {"order", "scalar"}),
            "text": (self._text, set()),
            "objects": (self._objects, {"shape"}),
            "random_state": (self._random_state, set()),
            "record": (self._record, {"fields"}),
            "model": (self._nested_model, {"parameters", "fitted"}),
        }

    def value(self, node: Any) -> Any:
        """The value that `node` stands for."""
        if isinstance(node, list):
            return self._list(node)
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), None)
        if kind not in self._kinds:
            raise ModelFileError(f"The header holds a value of unknown kind {short(kind)}.")
        read, others = self._kinds[kind]
        if set(node) - {kind} - others:
            raise ModelFileError(
                f"A value of kind {kind!r} has entries that are not known: {short(sorted(node))}."
            )
        return read(node)

    def finished(self) -> None:
        """Nothing may be left over."""
        if self.arrays:
            raise ModelFileError(
                f"The file holds an array {short(next(iter(self.arrays)))} that the model does not "
                f"use."
            )

    def _list(self, node: Any) -> list[Any]:
        if not isinstance(node, list):
            raise ModelFileError(f"A list was expected in the header; got {short(node)}.")
        return [self.value(part) for part in node]

    def _named(self, node: Any, what: str) -> dict[str, Any]:
        if not isinstance(node, dict):
            raise ModelFileError(f"{what} must be a JSON object.")
        found = {}
        for name, part in node.items():
            self.field = name
            found[name] = self.value(part)
        return found

    def _float(self, node: dict[str, Any]) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise ModelFileError(f"A float must be 'nan', 'inf' or '-inf'; got {short(node)}.")
        return float(node["float"])

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._list(node["dict"])
        if not all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int)
            for pair in pairs
        ):
            raise ModelFileError("A dict must be a list of pairs whose keys are text or integers.")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelFileError("A dict holds a key twice.")
        return found

    def _taken(self, name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in self.arrays:
            raise ModelFileError(
                f"The header asks for an array {short(name)}, which is not in the file or already "
                f"taken."
            )
        return self.arrays.pop(name)

    def _array(self, node: dict[str, Any]) -> Any:
        array = self._taken(node["array"])
        if array.dtype.kind == "f" and self.field:
            self._check_range(array, node["array"])
        if node.get("scalar", False) is not False:
            if array.shape != ():
                raise ModelFileError(f"A scalar must have shape (); got {array.shape}.")
            return array[()]
        if node.get("order", "C") not in ("C", "F"):
            raise ModelFileError(f"order must be 'C' or 'F'; got {short(node['order'])}.")
        return array.T if node.get("order") == "F" else array

    def _check_range(self, array: np.ndarray, name: str) -> None:
        """Squares of the numbers, and of rows far from them, must not overflow.

        Histories, and the trials of a pool (a member may have failed), may have gaps.
        """
        largest = math.sqrt(np.finfo(array.dtype).max) / 1e4
        gaps = np.isnan(array).any() and not self.field.endswith(("history", "trials"))
        if gaps or (np.abs(array[np.isfinite(array)]) > largest).any():
            raise ModelFileError(
                f"Array {short(name)} holds NaN, or numbers beyond {largest:.0e}, and is no part "
                f"of a model."
            )

    def _text(self, node: dict[str, Any]) -> np.ndarray:
        points = self._taken(node["text"])
        width = points.shape[-1] if points.ndim else 0
        if points.dtype != np.uint32 or not 1 <= width <= MAX_TEXT_WIDTH:
            raise ModelFileError(
                f"Text must be code points of type U32 with a width; got {points.dtype} of "
                f"{points.shape}."
            )
        if points.size and points.max() > sys.maxunicode:
            raise ModelFileError(f"Text holds {points.max()}, which is no code point.")
        return points.view(f"U{width}")[..., 0]

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        parts, shape = self._list(node["objects"]), node.get("shape")
        fits = is_shape(shape) and math.prod(shape) == len(parts) >= max(shape, default=0)  # type: ignore[arg-type]
        if not fits:
            raise ModelFileError(f"{len(parts)} objects cannot have shape {short(shape)}.")
        if not all(isinstance(part, PLAIN) for part in parts):
            raise ModelFileError("An array of objects may hold text, numbers and None only.")
        array = np.empty(len(parts), object)
        array[:] = parts
        return array.reshape(shape)  # type: ignore[arg-type]

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        state = self._named(node["random_state"], "A random state")
        inner = state.get("state")
        key, position = (inner.get("key"), inner.get("pos")) if isinstance(inner, dict) else (0, 0)
        good = (
            state.get("bit_generator") == "MT19937"
            and isinstance(key, np.ndarray)
            and (key.dtype, key.shape) == (np.uint32, (624,))
            and type(position) is int
            and 0 <= position <= 624
            and state.get("has_gauss") in (0, 1)
            and type(state.get("gauss")) is float
        )
        if not good:
            raise ModelFileError("A random state must be a state of MT19937.")
        made = np.random.RandomState(0)
        made.set_state(state)
        return made

    def _record(self, node: dict[str, Any]) -> Any:
        name = node["record"]
        cls = RECORDS.get(name) if isinstance(name, str) else None
        if cls is None:
            raise ModelFileError(f"The file holds a record {short(name)} that is not known.")
        parts = self._named(node.get("fields"), f"The fields of {name}")
        if set(parts) != {f.name for f in fields(cls) if f.init}:
            raise ModelFileError(f"The fields of a {name} in the file are not those of the class.")
        return cls(**parts)

    def _nested_model(self, node: dict[str, Any]) -> Any:
        if self.depth >= MAX_NESTED_MODELS:
            raise ModelFileError(
                f"Models are nested too deep; at most {MAX_NESTED_MODELS} are read inside each "
                f"other."
            )
        self.depth += 1
        model = self.model(node)
        self.depth -= 1
        return model

    def model(self, node: Any) -> Any:
        """The estimator that `node` describes."""
        if not isinstance(node, dict) or set(node) != {"model", "parameters", "fitted"}:
            raise ModelFileError(
                f"A model must have model, parameters and fitted; got {short(node)}."
            )
        name = node["model"]
        cls: Any = ESTIMATORS.get(name) if isinstance(name, str) else None
        if cls is None:
            raise ModelFileError(
                f"The file holds a {short(name)}; a model file may hold {known_classes()}."
            )
        parameters = self._named(node["parameters"], f"The parameters of {name}")
        signature = inspect.signature(cls).parameters
        unknown = sorted(set(parameters) - set(signature))
        if unknown:
            raise ModelFileError(
                f"{name} has no parameter {short(unknown[0])} in this version of its library; "
                f"a newer one may have written the file."
            )
        places = [parameter for parameter in PLACES if parameters.get(parameter) is not None]
        if places:
            raise ModelFileError(f"{name}.{places[0]} must be None in a file.")
        jobs = parameters.get("n_jobs")
        if isinstance(jobs, int) and abs(jobs) > MAX_JOBS:
            raise ModelFileError(f"n_jobs must be at most {MAX_JOBS}; got {jobs}.")
        try:
            model = cls(**parameters)
            if cls in OURS:
                model._validate_params()
        except (ValueError, TypeError) as error:  # sklearn's InvalidParameterError is both
            raise ModelFileError(f"A parameter is out of range: {clipped(error)}") from None
        if node["fitted"] is not None:
            self._set_state(model, node["fitted"])
        return model

    def _set_state(self, model: Any, nodes: Any) -> None:
        name = type(model).__name__
        if not isinstance(nodes, dict):
            raise ModelFileError(f"The fitted attributes of {name} must be a JSON object.")
        for attribute, node in nodes.items():
            settable = attribute.isidentifier() and "_" in (attribute[0], attribute[-1])
            if not settable or attribute in NOT_SAVABLE or attribute in dir(type(model)):
                raise ModelFileError(f"{name} cannot have an attribute {short(attribute)}.")
            if isinstance(node, dict) and set(node) == {"same"}:
                value = model.get_params(deep=False).get(str(node["same"]))
                if not isinstance(value, BaseEstimator):
                    raise ModelFileError(f"{name} holds no estimator {short(node['same'])}.")
            else:
                self.field = attribute
                value = self.value(node)
            setattr(model, attribute, value)


# -- a whole model ---------------------------------------------------------------------------------


def read_model(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The fitted estimator that JSON and arrays describe, rebuilt and asked once; every array must
    be used.
    """
    reader = Reader(arrays)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = reader.model(node)
            reader.finished()
            check_is_fitted(model)
            _probe(model, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a model raises whose parts do not fit together
        raise ModelFileError(
            f"The {short(node['model'])} in the file does not fit together; it cannot answer: "
            f"{type(error).__name__}, {clipped(error, 200)}."
        ) from None
    return model


def _probe(model: Any, arrays: dict[str, np.ndarray]) -> None:
    """Near its centers and far from them, and where cells are missing, the answers are finite; so
    are samples.
    """
    d, most = getattr(model, "n_features_in_", 0), sum(array.size + 1 for array in arrays.values())
    if not 0 <= d <= most:
        raise ModelFileError("The model in the file has more features than the file has numbers.")
    stored = [a for a in arrays.values() if a.ndim == 2 and a.shape[1] == d and a.dtype.kind == "f"]
    near = np.concatenate([np.zeros((1, d)), *(a[:PROBES] for a in stored)])[:PROBES]
    x: Any = np.concatenate([near, FAR * near, np.full((1, d), FAR), np.full((1, d), -FAR)])
    columns = _columns(model)
    if (
        columns is not None
    ):  # codes within range; one cell missing in each of some rows, and all in one
        x[:, np.array(columns.levels) > 0] = 0
        gaps = np.repeat(x[:1], min(d, PROBES) + 1, axis=0)
        gaps[np.eye(len(gaps), d, dtype=bool)] = np.nan
        gaps[-1] = np.nan
        takes_gaps = type(model).__sklearn_tags__(model).input_tags.allow_nan
        x = replace(columns, frame=None).decode(np.concatenate([x, gaps]) if takes_gaps else x)
    if hasattr(model, "predict_proba"):
        answer = np.asarray(model.predict_proba(x))
        if answer.shape != (len(x), len(model.classes_)) or not np.isfinite(answer).all():
            raise ModelFileError("The probabilities of the model in the file are not finite.")
        if np.abs(answer.sum(axis=1) - 1).max() > 1e-6:
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
    if isinstance(model, estimators.RejectClassifier):
        return _columns(model.estimator_)
    if isinstance(model, estimators.ConformalClassifier):
        return _columns(model.estimators_[0])
    if isinstance(model, FrozenEstimator):
        return _columns(model.estimator)
    return None if isinstance(model, OTHERS) else getattr(model, "columns_", None)
