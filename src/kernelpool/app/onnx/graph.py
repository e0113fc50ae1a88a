"""A small writer of ONNX graphs: nodes are added one by one, and named by themselves."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9
"""Runtimes from 2023 on read these (onnxruntime 1.14). Categories need ONNX's operators for machine
learning as well.
"""

LOG_ZERO = {np.dtype(np.float64): -1e300, np.dtype(np.float32): -1e37}
"""Stands for log 0: sums of it stay finite, and it is less than any log-density that a row can
have.
"""


class Graph:
    """Nodes and constants of a model, with floating-point numbers of one type.

    Where an operation takes a tensor, it takes a number or an array as well, which becomes a
    constant.
    """

    def __init__(self, dtype: Any, names: Iterator[int] | None = None) -> None:
        self.dtype, self.complete = np.dtype(dtype), False
        self.forbidden = LOG_ZERO[self.dtype]
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

        array, name = np.asarray(value), f"/constant_{next(self._names)}"
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
    ) -> str:
        """Adds a node; the name of what it makes. A runtime quotes `message` where the node
        fails.
        """
        return self._add(operator, inputs, [name], message, attributes)[0]

    def _add(
        self,
        operator: str,
        inputs: Any,
        names: list[str | None],
        message: str | None,
        attributes: dict[str, Any],
    ) -> list[str]:
        from onnx import helper

        given = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        made = [name or f"/{operator.lower()}_{next(self._names)}" for name in names]
        node = helper.make_node(operator, given, made, name=message or made[0], **attributes)
        self.nodes.append(node)
        return made

    # -- arithmetic --------------------------------------------------------------------------------

    def _floats(self, operator: str, *inputs: Any) -> str:
        return self.op(
            operator, *(p if isinstance(p, str) else np.asarray(p, np.float64) for p in inputs)
        )

    def add(self, a: Any, b: Any) -> str:
        """a + b."""
        return self._floats("Add", a, b)

    def subtract(self, a: Any, b: Any) -> str:
        """a - b."""
        return self._floats("Sub", a, b)

    def multiply(self, a: Any, b: Any) -> str:
        """a * b."""
        return self._floats("Mul", a, b)

    def matmul(self, a: Any, b: Any) -> str:
        """a @ b."""
        return self._floats("MatMul", a, b)

    def divide(self, a: Any, b: Any) -> str:
        """a / b."""
        return self._floats("Div", a, b)

    def shares(self, a: str) -> str:
        """Each row over its sum, (n, K)."""
        return self.divide(a, self.total(a, 1, keepdims=True))

    def cast(self, a: str, dtype: Any) -> str:
        """`a` in another type."""
        return self.op("Cast", a, to=self.kind(dtype))

    def total(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Sum along an axis."""
        return self.op("ReduceSum", a, [axis], keepdims=int(keepdims))

    def most(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Largest along an axis."""
        return self.op("ReduceMax", a, [axis], keepdims=int(keepdims))

    def unsqueeze(self, a: str, axis: int) -> str:
        """A new axis."""
        return self.op("Unsqueeze", a, [axis])

    def squeeze(self, a: str, axis: int) -> str:
        """Without an axis of size one."""
        return self.op("Squeeze", a, [axis])

    def first(self, a: str, axis: int) -> str:
        """The first entry along an axis, which stays."""
        return self.op("Slice", a, [0], [1], [axis])

    def rest(self, a: str, axis: int) -> str:
        """All but the first entry along an axis."""
        return self.op("Slice", a, [1], [np.iinfo(np.int64).max], [axis])

    def split(self, a: str, sizes: list[int]) -> list[str]:
        """Columns in several parts."""
        return self._add("Split", (a, sizes), [None] * len(sizes), None, {"axis": 1})

    def choose(
        self, condition: str, then: Callable[["Graph"], str], otherwise: Callable[["Graph"], str]
    ) -> str:
        """What `then` builds, (n, M), where the condition, a scalar, is true, and else what
        `otherwise` builds.
        """
        from onnx import helper

        branches = {}
        for name, build in (("then_branch", then), ("else_branch", otherwise)):
            g = Graph(self.dtype, self._names)
            made = helper.make_tensor_value_info(build(g), self.kind(self.dtype), [None, None])
            branches[name] = helper.make_graph(g.nodes, name, [], [made], g.constants)
        return self.op("If", condition, **branches)

    def softmax(self, a: str, axis: int) -> str:
        """exp(a) over its sum."""
        return self.op("Softmax", a, axis=axis)

    def clip(self, a: str, low: float | None, high: float | None) -> str:
        """`a` within bounds."""
        return self.op("Clip", a, -np.inf if low is None else low, np.inf if high is None else high)

    def log_of_sum(self, a: str, axis: int) -> str:
        """log sum exp along an axis."""
        peak = self.most(a, axis, keepdims=True)
        sums = self.total(self.op("Exp", self.subtract(a, peak)), axis)
        return self.add(self.op("Log", sums), self.squeeze(peak, axis))

    def safe_log(self, p: np.ndarray) -> np.ndarray:
        """log p as an array, `forbidden` for log 0."""
        positive = np.asarray(p) > 0
        return np.where(positive, np.log(np.where(positive, p, 1.0)), self.forbidden)

    def centered(self, x: str, origin: np.ndarray) -> str:
        """x - origin: float32 cannot hold an origin far from zero, so what is left of it is taken
        off in a second step.
        """
        first = origin.astype(self.dtype).astype(np.float64)
        x = self.subtract(x, first)
        return x if (first == origin).all() else self.subtract(x, origin - first)
