"""A small writer of ONNX graphs: tensors with NumPy's operators and functions, each of which adds a
node.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9
"""Runtimes from 2023 on read these (onnxruntime 1.14). Categories need ONNX's operators for machine
learning as well.
"""

LOG_ZERO = {np.dtype(np.float64): -1e300, np.dtype(np.float32): -1e37}
"""Stands for log 0: sums of it stay finite, and it is less than any log-density that a row can
have.
"""

OPERATORS: dict[Any, str] = {
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
    np.isnan: "IsNaN",
    np.logical_not: "Not",
    np.equal: "Equal",
    np.greater: "Greater",
    np.greater_equal: "GreaterOrEqual",
    np.less: "Less",
    np.less_equal: "LessOrEqual",
}
"""ONNX's names of NumPy's functions."""


class Tensor(NDArrayOperatorsMixin):
    """A value in a graph. `a + b`, `a @ b`, `np.exp(a)` ... add nodes; arrays and numbers among
    their operands become constants.
    """

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph = graph
        self.name = name

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> "Tensor":
        return self.graph.op(OPERATORS[ufunc], *inputs)

    def astype(self, dtype: Any) -> "Tensor":
        """In another type."""
        return self.graph.op("Cast", self, to=self.graph.kind(dtype))

    def sum(self, axis: int, keepdims: bool = False) -> "Tensor":
        """Along an axis."""
        return self.graph.op("ReduceSum", self, [axis], keepdims=int(keepdims))

    def max(self, axis: int) -> "Tensor":
        """Along an axis, which stays."""
        return self.graph.op("ReduceMax", self, [axis])

    def unsqueeze(self, axis: int) -> "Tensor":
        """With a new axis."""
        return self.graph.op("Unsqueeze", self, [axis])

    def squeeze(self, axis: int) -> "Tensor":
        """Without an axis of size one."""
        return self.graph.op("Squeeze", self, [axis])

    def take(self, indices: Any) -> "Tensor":
        """Some of the columns."""
        return self.graph.op("Gather", self, indices, axis=1)

    def slice(self, start: int, stop: int, axis: int = 1) -> "Tensor":
        """A range along an axis."""
        return self.graph.op("Slice", self, [start], [stop], [axis])

    def clip(self, low: float = -np.inf, high: float = np.inf) -> "Tensor":
        """Within bounds."""
        return self.graph.op("Clip", self, float(low), float(high))

    def softmax(self, axis: int = 1) -> "Tensor":
        """exp(a) over its sum."""
        return self.graph.op("Softmax", self, axis=axis)

    def shares(self) -> "Tensor":
        """Each row over its sum, (n, K)."""
        return self / self.sum(1, keepdims=True)

    def logsumexp(self, axis: int = 1) -> "Tensor":
        """log sum exp along an axis."""
        peak = self.max(axis)
        return np.log(np.exp(self - peak).sum(axis)) + peak.squeeze(axis)

    def scaled(self, origin: np.ndarray, unit: np.ndarray) -> "Tensor":
        """(x - origin) / unit: float32 cannot hold an origin far from zero, so what is left of it is
        subtracted in a second step.
        """
        self.graph.offset = max(self.graph.offset, float(np.max(np.abs(origin / unit))))
        first = origin.astype(self.graph.dtype).astype(np.float64)
        x = self - first
        return (x if (first == origin).all() else x - (origin - first)) * (1 / unit)


class Graph:
    """Nodes and constants of a model, with floating-point numbers of one type."""

    def __init__(self, dtype: Any, names: Iterator[int] | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.complete = False
        self.forbidden = LOG_ZERO[self.dtype]
        self.offset = 0.0  # from zero, of the rows that come in, in units of the largest
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = count() if names is None else names

    @staticmethod
    def kind(dtype: Any) -> int:
        """ONNX's number of a type."""
        from onnx import TensorProto, helper

        text = np.dtype(dtype).kind in "UO"
        return int(TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def constant(self, value: Any) -> str:
        """Floats in the type of the graph, whole numbers as int64, text and booleans as they
        are.
        """
        from onnx import helper

        array = np.asarray(value)
        name = f"/constant_{next(self._names)}"
        kinds = {"f": self.dtype, "i": np.dtype(np.int64), "u": np.dtype(np.int64)}
        kind = kinds.get(array.dtype.kind, array.dtype)
        text = kind.kind in "UO"
        flat: Any = array.ravel() if text else array.astype(kind).ravel()
        flat = [str(part).encode("utf-8") for part in flat] if text else flat
        self.constants.append(helper.make_tensor(name, self.kind(kind), list(array.shape), flat))
        return name

    def op(
        self,
        operator: str,
        *inputs: Any,
        name: str | None = None,
        message: str | None = None,
        **attributes: Any,
    ) -> Tensor:
        """Add a node, and return what it makes. A runtime quotes `message` where the node fails."""
        from onnx import helper

        given = [part.name if isinstance(part, Tensor) else self.constant(part) for part in inputs]
        made = name or f"/{operator.lower()}_{next(self._names)}"
        node = helper.make_node(operator, given, [made], name=message or made, **attributes)
        self.nodes.append(node)
        return Tensor(self, made)

    def where(self, condition: Tensor, a: Any, b: Any) -> Tensor:
        """`a` where the condition is true, else `b`."""
        return self.op("Where", condition, a, b)

    def concat(self, tensors: list[Tensor]) -> Tensor:
        """Tensors along the second axis."""
        return self.op("Concat", *tensors, axis=1)

    def choose(
        self,
        condition: Tensor,
        then: Callable[..., Tensor],
        otherwise: Callable[..., Tensor],
        *inputs: Tensor,
    ) -> Tensor:
        """What `then` makes of the inputs, (n, M), where the condition, a scalar, is true, and else
        what `otherwise` does.
        """
        from onnx import helper

        branches = {}
        for name, build in (("then_branch", then), ("else_branch", otherwise)):
            g = Graph(self.dtype, self._names)
            made = build(*(Tensor(g, tensor.name) for tensor in inputs)).name
            info = helper.make_tensor_value_info(made, self.kind(self.dtype), [None, None])
            branches[name] = helper.make_graph(g.nodes, name, [], [info], g.constants)
        return self.op("If", condition, **branches)

    def safe_log(self, p: np.ndarray) -> np.ndarray:
        """log p as an array, `forbidden` for log 0."""
        positive = np.asarray(p) > 0
        return np.where(positive, np.log(np.where(positive, p, 1.0)), self.forbidden)
