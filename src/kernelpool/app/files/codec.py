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
array of text, of objects     ``{"text": [...]}``, ``{"objects": [...]}``; of one dimension
RandomState                   ``{"random_state": {"tuple": its state as NumPy names it}}``
record                        ``{"record": class, "fields": {...}}``
estimator                     ``{"model": class, "fields": {...}}``: parameters, and what `fit` set
the same estimator again      ``{"same": number}``, once, in the order in which they end
============================  =====================================================================

Classes are those of `SAVED_CLASSES` and `kernelpool.records.SAVED`; nothing is imported by a name from
a file. Fields that a record declares as `unsaved()` are left out.
"""

import inspect
import math
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import kernelpool

from ...errors import ModelFileError
from ...records import SAVED, stored
from .container import NAMES, short

OTHERS: tuple[type, ...] = (FrozenEstimator, Pipeline, StandardScaler)
"""The classes of scikit-learn that may stand around an estimator of ours."""

SAVED_CLASSES: dict[str, type] = {cls.__name__: cls for cls in OTHERS} | {
    name: getattr(kernelpool, name) for name in kernelpool.ESTIMATORS
}

KNOWN = ", ".join(sorted(SAVED_CLASSES))
"""Their names, for messages."""

MAX_JOBS = 256
"""Threads that a file may ask for."""

MAX_TEXT = 1 << 26
"""Characters of an array of text."""

STAND_INS: dict[Any, Any] = {
    float: Real,
    int: Integral,
    bool: bool | np.bool_,
    np.ndarray: np.ndarray | np.generic,
    Any: object,
}
"""What may stand for a type that a field declares."""


# -- writing ---------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.estimators: list[int] = []
        """What has been written and not been referred to, by `id`; others are 0."""

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
            if id(value) not in self.estimators:
                return self._model(value, where)
            same = self.estimators.index(id(value))
            self.estimators[same] = 0
            return {"same": same}
        if SAVED.get(type(value).__name__) is type(value):
            return {"record": type(value).__name__, "fields": self._named(stored(value), where)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.value(value.get_state(), where)}
        if hasattr(value, "__array__") and not isinstance(value, type):
            return self._array(np.asarray(value), where)
        what = "a function" if callable(value) else f"of type {type(value).__name__}"
        raise ModelFileError(
            f"{where} is {what}, which cannot be saved: a model file holds data, never code. "
            f"Set it to None or to one of the named choices with set_params before saving, or use "
            f"pickle."
        )

    def _named(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        return {
            name: self.value(value, f"{where}/{name}") for name, value in sorted(values.items())
        }

    def _model(self, estimator: Any, where: str) -> dict[str, Any]:
        """An estimator: its class, its parameters and what its fit has set."""
        cls = type(estimator)
        if SAVED_CLASSES.get(cls.__name__) is not cls:
            raise ModelFileError(
                f"{where} is a {cls.__module__}.{cls.__name__}, which cannot be saved; a model file "
                f"may hold {KNOWN}. For models of other classes use skops (it asks which types you "
                f"trust when you load) or joblib (loading runs whatever code the file holds); "
                f"kernelpool checks neither."
            )
        values = vars(estimator) | estimator.get_params(deep=False)
        if "memory" in values:  # a folder of this machine
            values["memory"] = None
        fields = self._named(values, where)
        self.estimators.append(id(estimator))
        return {"model": cls.__name__, "fields": fields}

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype.kind in "UO" and array.ndim == 1:
            items = self.value(array.tolist(), where)
            return {"text" if array.dtype.kind == "U" else "objects": items}
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if little.dtype not in NAMES:
            raise ModelFileError(
                f"{where} is an array of type {array.dtype} with {array.ndim} dimensions, which "
                f"cannot be saved; expected numbers or booleans, or text in one dimension."
            )
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        self.arrays[where] = np.asarray(little.T if turned else little, order="C")
        return {"array": where, "order": "F"} if turned else {"array": where}


# -- reading ---------------------------------------------------------------------------------------


class Reader:
    """Turns JSON back into values; every array is used once.

    What is no value, or does not fit together, raises an exception of any kind: see `read_file` of `model_file`.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.estimators: list[Any] = []
        """What has been read and not been referred to; others are None."""

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
                array = self.arrays.pop(name).T if "order" in node else self.arrays.pop(name)
                return array if array.ndim else array[()]
            case {"text": list(parts)} if all(isinstance(part, str) for part in parts):
                if len(parts) * max(map(len, parts), default=0) <= MAX_TEXT:
                    return np.array(parts, str)
            case {"objects": list(parts)}:
                array = np.empty(len(parts), object)
                array[:] = self.value(parts)
                return array
            case {"random_state": {"tuple": [_, _, at, *_] as parts}} if 0 <= at <= 624:
                state = np.random.RandomState(0)
                state.set_state(tuple(self.value(parts)))  # does not look at `at`
                return state
            case {"record": str(name), "fields": dict(parts)} if name in SAVED:
                record = SAVED[name](**self._named(parts))
                check_types(record)
                return record
            case {"same": int(number)}:
                estimator, self.estimators[number] = self.estimators[number], None
                return estimator
            case {"model": str(name), "fields": dict(parts)}:
                return self._model(name, self._named(parts))
            case None | bool() | int() | float() | str():
                return node
        raise ModelFileError(f"The header holds a value that is not known, {short(node)}.")

    def _named(self, nodes: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(node) for name, node in nodes.items()}

    def _model(self, name: str, values: dict[str, Any]) -> Any:
        """The estimator of a class with these parameters and attributes."""
        if name not in SAVED_CLASSES:
            raise ModelFileError(f"The file holds a {short(name)}; a model file may hold {KNOWN}.")
        cls: Any = SAVED_CLASSES[name]
        known = inspect.signature(cls).parameters
        if values.get("memory") is not None or abs(values.get("n_jobs") or 0) > MAX_JOBS:
            raise ModelFileError(f"memory must be None, and n_jobs at most {MAX_JOBS}, in a file.")
        model = cls(**{key: values.pop(key) for key in known if key in values})
        if cls not in OTHERS:
            model._validate_params()
        for key, value in values.items():
            if "_" not in (key[0], key[-1]) or key in dir(cls):
                raise ModelFileError(
                    f"{name} has no parameter {short(key)} in this version of its library, and "
                    f"can have no such attribute; a newer one may have written the file."
                )
            setattr(model, key, value)
        self.estimators.append(model)
        return model


# -- types of fields -------------------------------------------------------------------------------


def check_types(record: Any) -> None:
    """ModelFileError where a field of a record is not of the type that it declares."""
    kinds = get_type_hints(type(record))
    for name, value in stored(record).items():
        if not fits(value, kinds[name]):
            raise ModelFileError(
                f"{name} of {type(record).__name__} is {short(value)}; expected "
                f"{inspect.formatannotation(kinds[name])}."
            )


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; what is inside of it is not looked at."""
    if isinstance(kind, UnionType):
        return any(fits(value, one) for one in get_args(kind))
    return isinstance(value, STAND_INS.get(kind, get_origin(kind) or kind))
