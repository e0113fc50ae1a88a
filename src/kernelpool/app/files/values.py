"""Between Python's values and JSON that refers to arrays; a closed list of what a value may be, and nothing else.

==========================  =====================================================================================
value                       JSON
==========================  =====================================================================================
None, bool, int, str        itself
float                       itself; ``{"float": "nan"}``, ``"inf"`` or ``"-inf"`` where JSON has no word
list                        itself
tuple, dict                 ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``
array of numbers, booleans  ``{"array": name}``, with ``"order": "F"`` where columns come first: rounding may depend on it
array of text               ``{"text": name}``: code points, (..., width), filled up with zeros
array of objects            ``{"objects": [...], "shape": [...]}``: text, numbers and None mixed
NumPy scalar                ``{"scalar": name}``
RandomState                 ``{"random_state": name, "position": ..., "has_gauss": ..., "gauss": ...}``
the same as a parameter     ``{"same": parameter}``: an estimator that was fitted before is not written twice
estimator                   ``{"model": {"class": ..., "parameters": {...}, "fitted": {...} or null}}``
==========================  =====================================================================================
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ...arrays import is_array, is_numpy_array, to_numpy
from ...errors import ModelFileError
from ...tables.columns import Columns
from .container import NAMES, is_shape, short

MOST_CODE_POINT = 0x10FFFF

WIDEST_TEXT = 4096
"""Characters of one entry in an array of text, all of which are as wide as the widest."""

MOST_MODELS_DEEP = 6
"""Estimators inside each other: a classifier that refuses, around a pipeline, around a network that was given another."""


@dataclass(frozen=True)
class Same:
    """The very object that a parameter of the same estimator holds."""

    parameter: str


class Writer:
    """Turns values into JSON and collects the arrays."""

    def __init__(self, write_model: Callable[["Writer", Any, str], Any]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.write_model = write_model

    def value(self, value: Any, where: str) -> Any:
        """`value` as JSON; `where` names it in messages, and its arrays in the file."""
        if value is None or isinstance(value, bool | str):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, np.generic):
            return {"scalar": self._keep(np.asarray(value), where)}
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
            items = enumerate(value.items())
            return {
                "dict": [
                    [self.value(k, f"{where}/{i}/key"), self.value(v, f"{where}/{i}")]
                    for i, (k, v) in items
                ]
            }
        return self._other(value, where)

    def _other(self, value: Any, where: str) -> Any:
        if isinstance(value, Columns):
            return {
                "columns": [
                    self.value(part, f"{where}/{i}")
                    for i, part in enumerate(
                        (value.categories, value.names, value.frame, value.types, value.coded)
                    )
                ]
            }
        if isinstance(value, Same):
            return {"same": value.parameter}
        if isinstance(value, np.random.RandomState):
            return self._random_state(value, where)
        if isinstance(value, BaseEstimator):
            return {"model": self.write_model(self, value, where)}
        if not isinstance(value, type) and (is_array(value) or hasattr(value, "__array__")):
            return self._array(value, where)
        what = "a function" if callable(value) else f"of type {type(value).__name__}"
        raise ModelFileError(
            f"{where} is {what}, which cannot be saved: a model file holds data, never code. "
            f"Set it to None or to one of the named choices with set_params before saving, or use pickle."
        )

    def _random_state(self, value: np.random.RandomState, where: str) -> Any:
        state: Any = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise ModelFileError(
                f"{where} is a RandomState around {state['bit_generator']}; only MT19937 can be saved."
            )
        return {
            "random_state": self._keep(np.array(state["state"]["key"]), where),
            "position": int(state["state"]["pos"]),
            "has_gauss": int(state["has_gauss"]),
            "gauss": float(state["gauss"]),
        }

    def _array(self, value: Any, where: str) -> Any:
        array = (
            value
            if is_numpy_array(value)
            else to_numpy(value)
            if is_array(value)
            else np.asarray(value)
        )
        if array.dtype == object:
            parts = [
                part.item() if isinstance(part, np.generic) else part
                for part in array.ravel().tolist()
            ]
            for part in parts:
                if not (part is None or isinstance(part, str | bool | int | float)):
                    raise ModelFileError(
                        f"{where} holds an object of type {type(part).__name__}, which cannot be saved; "
                        f"expected text, numbers or None."
                    )
            return {
                "objects": [self.value(part, where) for part in parts],
                "shape": list(array.shape),
            }
        if array.dtype.kind == "U":
            if array.dtype.itemsize > 4 * WIDEST_TEXT:
                raise ModelFileError(
                    f"{where} holds text of more than {WIDEST_TEXT} characters, which cannot be saved."
                )
            points = (
                np.ascontiguousarray(array)
                .astype(array.dtype.newbyteorder("="), copy=False)
                .view(np.uint32)
            )
            return {
                "text": self._keep(
                    points.reshape(*array.shape, max(1, array.dtype.itemsize // 4)), where
                )
            }
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"array": self._keep(array.T, where), "order": "F"}
        return {"array": self._keep(array, where)}

    def _keep(self, array: np.ndarray, where: str) -> str:
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        if array.dtype not in NAMES:
            raise ModelFileError(
                f"{where} is an array of type {array.dtype}, which cannot be saved; expected one of "
                f"{', '.join(str(dtype) for dtype in NAMES)}, or text."
            )
        self.arrays[where] = array
        return where


class Reader:
    """Turns JSON back into values; every array must be asked for once."""

    def __init__(
        self, arrays: dict[str, np.ndarray], read_model: Callable[["Reader", Any], Any]
    ) -> None:
        self.arrays = dict(arrays)
        self.read_model = read_model
        self.depth = 0
        self._readers = {
            "float": self._float,
            "tuple": lambda node: tuple(self._list(node, "tuple")),
            "dict": self._dict,
            "array": self._array,
            "text": self._text,
            "objects": self._objects,
            "scalar": self._scalar,
            "random_state": self._random_state,
            "model": self._model,
            "same": self._same,
            "columns": self._columns,
        }

    def value(self, node: Any) -> Any:
        """The value that `node` stands for."""
        if isinstance(node, list):
            return [self.value(part) for part in node]
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), None)
        if kind not in self._readers:
            raise ModelFileError(f"The header holds a value of unknown kind {short(kind)}.")
        return self._readers[kind](node)

    def finished(self) -> None:
        """Nothing may be left over."""
        if self.arrays:
            raise ModelFileError(
                f"The file holds an array {short(next(iter(self.arrays)))} that no part of the model asks for."
            )

    # -- one kind of value each -----------------------------------------------------------------------------------------

    def _taken(self, node: dict[str, Any], *others: str) -> np.ndarray:
        kind = next(iter(node))
        name = node[kind]
        if set(node) - {kind, *others}:
            raise ModelFileError(
                f"A value of kind {kind!r} has entries that are not known: {short(sorted(node))}."
            )
        if not isinstance(name, str) or name not in self.arrays:
            raise ModelFileError(
                f"The header asks for an array {short(name)}, which is not in the file or already taken."
            )
        return self.arrays.pop(name)

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        array = self._taken(node, "order")
        if node.get("order", "C") not in ("C", "F"):
            raise ModelFileError(f"order must be 'C' or 'F'; got {short(node['order'])}.")
        return array.T if node.get("order") == "F" else array

    def _scalar(self, node: dict[str, Any]) -> Any:
        array = self._taken(node)
        if array.shape != ():
            raise ModelFileError(f"A scalar must have shape (); got {array.shape}.")
        return array[()]

    def _text(self, node: dict[str, Any]) -> np.ndarray:
        points = self._taken(node)
        if points.dtype != np.uint32 or points.ndim < 1 or not 1 <= points.shape[-1] <= WIDEST_TEXT:
            raise ModelFileError(
                f"Text must be code points of type U32 with a width; got {points.dtype} of {points.shape}."
            )
        if points.size and points.max() > MOST_CODE_POINT:
            raise ModelFileError(f"Text holds {points.max()}, which is no code point.")
        return points.view(f"<U{points.shape[-1]}" if points.dtype.isnative else ">U")[..., 0]

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        parts, shape = self._list(node, "objects", "shape"), node.get("shape")
        fits = isinstance(shape, list) and is_shape(shape) and math.prod(shape) == len(parts)
        if not isinstance(shape, list) or not fits or max(shape, default=0) > len(parts):
            raise ModelFileError(f"{len(parts)} objects cannot have shape {short(shape)}.")
        if not all(part is None or isinstance(part, str | bool | int | float) for part in parts):
            raise ModelFileError("An array of objects may hold text, numbers and None only.")
        array = np.empty(len(parts), object)
        array[:] = parts
        return array.reshape(shape)

    def _list(self, node: dict[str, Any], kind: str, *others: str) -> list[Any]:
        if not isinstance(node[kind], list) or set(node) - {kind, *others}:
            raise ModelFileError(
                f"A value of kind {kind!r} must be a list and nothing else; got {short(node[kind])}."
            )
        return [self.value(part) for part in node[kind]]

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._list(node, "dict")
        if not all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int)
            for pair in pairs
        ):
            raise ModelFileError(
                "A dict must be a list of pairs whose keys are text or whole numbers."
            )
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelFileError("A dict holds a key twice.")
        return found

    def _float(self, node: dict[str, Any]) -> float:
        if node["float"] not in ("nan", "inf", "-inf") or len(node) > 1:
            raise ModelFileError(
                f"A float that is no number is 'nan', 'inf' or '-inf'; got {short(node)}."
            )
        return float(node["float"])

    def _columns(self, node: dict[str, Any]) -> Columns:
        try:
            columns = Columns(*self._list(node, "columns"))
            texts = [*(columns.names or ()), *columns.types]
            texts += [t for values in columns.categories if values is not None for t in values]
            if (
                all(isinstance(text, str) for text in texts)
                and columns.frame in (None, "pandas", "polars", "pyarrow")
                and len(columns.names or columns.categories) == len(columns) > 0
                and len(columns.types or columns.categories) == len(columns)
                and all(len(v) == len(set(v)) for v in columns.categories if v is not None)
            ):
                return columns
        except (TypeError, ValueError, AttributeError):
            pass
        raise ModelFileError("Columns must be names, categories and types of columns.")

    def _same(self, node: dict[str, Any]) -> Same:
        if not isinstance(node["same"], str) or not node["same"].isidentifier() or len(node) > 1:
            raise ModelFileError(
                f"A value of kind 'same' must name a parameter; got {short(node)}."
            )
        return Same(node["same"])

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        key = self._taken(node, "position", "has_gauss", "gauss")
        position, has_gauss, gauss = (node.get(name) for name in ("position", "has_gauss", "gauss"))
        good = (
            key.dtype == np.uint32
            and key.shape == (624,)
            and type(position) is int
            and 0 <= position <= 624
        )
        spare = {"has_gauss": has_gauss, "gauss": gauss}
        if (
            not good
            or has_gauss not in (0, 1)
            or type(has_gauss) is not int
            or type(gauss) is not float
        ):
            raise ModelFileError(
                "A random state must be 624 numbers of type U32, a position and a spare deviate."
            )
        state = np.random.RandomState(0)
        state.set_state(
            {"bit_generator": "MT19937", "state": {"key": key, "pos": position}, **spare}
        )
        return state

    def _model(self, node: dict[str, Any]) -> Any:
        if len(node) > 1:
            raise ModelFileError(
                f"A value of kind 'model' has entries that are not known: {short(sorted(node))}."
            )
        if self.depth >= MOST_MODELS_DEEP:
            raise ModelFileError(
                f"Models are nested too deep; at most {MOST_MODELS_DEEP} are read inside each other."
            )
        self.depth += 1
        try:
            return self.read_model(self, node["model"])
        finally:
            self.depth -= 1
