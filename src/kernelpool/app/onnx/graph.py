"""A small writer of ONNX graphs: tensors with NumPy's operators and functions, each of which adds a
node.

The converters of the methods (`kernelpool.rbf.onnx` and its like) get a `Tensor` of rows and a
fitted record, and import nothing from here. Forward steps that use NumPy's functions and operators
alone are written once, in the method's `network.py`, for arrays and tensors; what several converters
need besides is a method of `Tensor` or `Graph`. Distances are taken from x - mean, so that float32 loses no more than it must; squares are
expanded in float64 alone.
"""

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...tables.columns import indicators_of

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of the operators: the standard ones, and for categories those for machine learning."""

IR_VERSION = 9
"""Version of the format. Runtimes from 2023 on read it and `OPSETS` (onnxruntime 1.14)."""

LOGICAL: dict[Any, str] = {
    np.isinf: "IsInf",
    np.isnan: "IsNaN",
    np.logical_not: "Not",
    np.equal: "Equal",
    np.greater: "Greater",
    np.greater_equal: "GreaterOrEqual",
    np.less: "Less",
    np.less_equal: "LessOrEqual",
}
"""ONNX's names of NumPy's functions, of those whose answers are booleans."""

OPERATORS: dict[Any, str] = {
    **LOGICAL,
    np.add: "Add",
    np.subtract: "Sub",
    np.multiply: "Mul",
    np.true_divide: "Div",
    np.matmul: "MatMul",
    np.absolute: "Abs",
    np.exp: "Exp",
    np.log: "Log",
    np.sign: "Sign",
    np.sqrt: "Sqrt",
    np.tanh: "Tanh",
    np.maximum: "Max",
    np.minimum: "Min",
}
"""The same of all."""

COMPOSED: dict[Any, Callable[[Any], Any]] = {
    np.log1p: lambda a: np.log(a + 1),
    np.expm1: lambda a: np.tanh(a * 0.5) * (np.exp(a) + 1),
}
"""Functions that ONNX does not have, by those that it has."""


def kind_of(dtype: Any) -> int:
    """ONNX's number of a type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Tensor(NDArrayOperatorsMixin):
    """A value in a graph. `a + b`, `a @ b`, `np.exp(a)` ... add nodes; arrays and numbers among
    their operands become constants.
    """

    def __init__(self, graph: "Graph", name: str, dtype: Any = None) -> None:
        self.graph = graph
        self.name = name
        self.dtype = np.dtype(dtype or graph.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> "Tensor":
        if ufunc in COMPOSED:
            return COMPOSED[ufunc](*inputs)
        operands = self.graph.of_one_type(inputs)
        dtype = bool if ufunc in LOGICAL else self.dtype
        return self.graph.op(OPERATORS[ufunc], *operands, dtype=dtype)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> "Tensor":
        return getattr(self.graph, function.__name__)(*args, **kwargs)

    def node(self, operator: str, *inputs: Any, **attributes: Any) -> "Tensor":
        """The output of a node of this and further inputs, of the same type."""
        return self.graph.op(operator, self, *inputs, dtype=self.dtype, **attributes)

    def astype(self, dtype: Any) -> "Tensor":
        """In another type."""
        return self.graph.op("Cast", self, to=kind_of(dtype), dtype=dtype)

    def sum(self, axis: int, keepdims: bool = False) -> "Tensor":
        """Along an axis."""
        return self.node("ReduceSum", [axis], keepdims=int(keepdims))

    def max(self, axis: int, keepdims: bool = False) -> "Tensor":
        """Along an axis."""
        return self.node("ReduceMax", [axis], keepdims=int(keepdims))

    def min(self, axis: int, keepdims: bool = False) -> "Tensor":
        """Along an axis."""
        return self.node("ReduceMin", [axis], keepdims=int(keepdims))

    def argmax(self, axis: int, keepdims: bool = False) -> "Tensor":
        """The position of the largest along an axis."""
        keep = int(keepdims)
        return self.graph.op("ArgMax", self, axis=axis, keepdims=keep, dtype=np.int64)

    def unsqueeze(self, axis: int) -> "Tensor":
        """With a new axis."""
        return self.node("Unsqueeze", [axis])

    def squeeze(self, axis: int) -> "Tensor":
        """Without an axis of size one."""
        return self.node("Squeeze", [axis])

    def take(self, indices: Any) -> "Tensor":
        """Some of the columns."""
        return self.node("Gather", indices, axis=1)

    def row_of(self, table: np.ndarray, column: int) -> "Tensor":
        """The row of a table, (levels, m), at the code in a column: (n, m)."""
        code = self.take([column]).squeeze(1).astype(np.int64)
        return self.graph.op("Gather", table, code, axis=0)

    def slice(self, start: int, stop: int, axis: int = 1) -> "Tensor":
        """A range along an axis."""
        return self.node("Slice", [start], [stop], [axis])

    def clip(self, low: float = -np.inf, high: float = np.inf) -> "Tensor":
        """Within bounds."""
        return self.graph.op("Clip", self, float(low), float(high))

    def softmax(self, axis: int = 1) -> "Tensor":
        """exp(a) over its sum."""
        return self.graph.op("Softmax", self, axis=axis)

    def logsumexp(self) -> "Tensor":
        """log sum exp along the second axis; minus infinity where all are."""
        peak = self.max(1, keepdims=True).clip(float(np.finfo(self.dtype).min))
        return np.log(np.exp(self - peak).sum(1)) + peak.squeeze(1)

    # -- rows --------------------------------------------------------------------------------------

    def complete(self) -> "Tensor":
        """Rows for a network that takes complete ones: a missing cell ends the run with an error."""
        g = self.graph
        if g.complete:
            return self
        g.complete = True
        n_missing = g.op("ReduceSum", np.isnan(self).astype(np.int64), keepdims=0, dtype=np.int64)
        nothing = g.op("Gather", np.zeros(1), (n_missing > 0).astype(np.int64))
        # what a runtime quotes where the node fails
        g.nodes[-1].name = "A cell is missing, and the exported network takes complete rows only"
        return self + nothing

    def indicators(self, levels: tuple[int, ...]) -> "Tensor":
        """`Columns.indicators` of encoded rows, which must be complete: the numbers, then an
        indicator for each category.
        """
        x = self.complete()
        if not any(levels):
            return x
        numbers = [i for i, n in enumerate(levels) if not n]
        parts = [x.take(numbers)] if numbers else []
        for i, n_levels in enumerate(levels):
            if n_levels > 1:
                codes = np.arange(float(n_levels))[:, None]
                parts.append(x.row_of(indicators_of(codes, (n_levels,)), i))
        return x.graph.hstack(parts)

    def scaled(self, origin: np.ndarray, unit: np.ndarray) -> "Tensor":
        """(x - origin) / unit: float32 cannot hold an origin far from zero, so what is left of it is
        subtracted in a second step.
        """
        self.graph.offset = max(self.graph.offset, float(np.max(np.abs(origin / unit))))
        first = origin.astype(self.dtype).astype(np.float64)
        return (self - first - (origin - first)) * (1 / unit)

    def framed(self, frame: Any) -> "Tensor":
        """`Frame.inside`."""
        bound = frame.bound(float(np.finfo(self.dtype).eps))
        return self.scaled(frame.origin, frame.unit).clip(-bound, bound)

    # -- kernels -----------------------------------------------------------------------------------

    def squared_distances(
        self, center: np.ndarray, weight: np.ndarray | None = None, *, narrow: bool = False
    ) -> "Tensor":
        """Squared distances from centers, (n, M), along the features of each kernel where it has a
        `weight` for them, (M, d).

        By products where the type can bear the cancellation and kernels are not `narrow`, else a
        feature at a time.
        """
        weight = np.ones_like(center) if weight is None else weight
        if self.graph.dtype == np.float64 and not narrow:
            constant = (center**2 * weight).sum(axis=1)
            return self @ (-2 * (center * weight).T) + (self * self) @ weight.T + constant
        differences = [self.take([i]) - center[:, i] for i in range(center.shape[1])]
        squared: Any = sum(a * a * w for a, w in zip(differences, weight.T, strict=True))
        return squared  # type: ignore[no-any-return]

    def gaussian(
        self, mean: np.ndarray, variance: np.ndarray, known: "Tensor | None" = None
    ) -> "Tensor":
        """Log-densities of Gaussian kernels with diagonal covariances, (n, M), in the features
        whose `known`, (n, d), is one.
        """
        deviate = (self.unsqueeze(1) - mean) * variance**-0.5  # (n, M, d)
        by_feature = deviate * deviate * -0.5 + -0.5 * np.log(2 * math.pi * variance)
        if known is not None:
            by_feature = by_feature * known.unsqueeze(1)
        return by_feature.sum(2)


class Graph:
    """Nodes and constants of a model, with floating-point numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.complete = False
        self.offset = 0.0  # from zero, of the rows that come in, in units of the largest
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = count()

    def constant(self, value: Any) -> Tensor:
        """Floats in the type of the graph, whole numbers as int64, booleans as they are, anything
        else as text.
        """
        from onnx import numpy_helper

        array = np.asarray(value)
        types = {"f": self.dtype, "i": np.int64, "u": np.int64, "b": bool}
        kind = types.get(array.dtype.kind)
        array = array.astype(str).astype(object) if kind is None else array.astype(kind)
        name = f"/constant_{next(self._names)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return Tensor(self, name, array.dtype)

    def of_one_type(self, values: Sequence[Any]) -> list[Tensor]:
        """Tensors and constants as tensors of one type."""
        dtype = next((a.dtype for a in values if isinstance(a, Tensor)), self.dtype)
        return [a if isinstance(a, Tensor) else self.constant(np.asarray(a, dtype)) for a in values]

    def op(
        self,
        operator: str,
        *inputs: Any,
        name: str | None = None,
        dtype: Any = None,
        **attributes: Any,
    ) -> Tensor:
        """Add a node, and return its output, of the type of the graph if no other is given."""
        from onnx import helper

        names = [(a if isinstance(a, Tensor) else self.constant(a)).name for a in inputs]
        output = name or f"/{operator.lower()}_{next(self._names)}"
        node = helper.make_node(operator, names, [output], name=output, **attributes)
        self.nodes.append(node)
        return Tensor(self, output, dtype)

    def where(self, condition: Tensor, a: Any, b: Any) -> Tensor:
        """`a` where the condition is true, else `b`."""
        a, b = self.of_one_type([a, b])
        return self.op("Where", condition, a, b, dtype=a.dtype)

    def hstack(self, tensors: list[Tensor]) -> Tensor:
        """Tensors along the second axis."""
        return self.op("Concat", *tensors, axis=1)

    def stack(self, tensors: Sequence[Tensor]) -> Tensor:
        """Tensors along a new second axis."""
        return self.hstack([tensor.unsqueeze(1) for tensor in tensors])
