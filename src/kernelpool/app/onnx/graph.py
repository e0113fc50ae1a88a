"""A small writer of ONNX graphs: nodes go one by one into skl2onnx's container, and are named by themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np

OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9
"""Runtimes from 2023 on read these (onnxruntime 1.14). Words need ONNX's operators for machine learning as well."""

LOG_ZERO = {np.dtype(np.float64): -1e300, np.dtype(np.float32): -1e37}
"""Stands for log 0: sums of it stay finite, and it is less than any log-density that a row can have."""


class Graph:
    """Nodes and constants of one converter, with floating-point numbers of one type."""

    def __init__(self, scope: Any, container: Any, dtype: Any, complete: bool = False) -> None:
        self.scope, self.container = scope, container
        self.dtype, self.complete = np.dtype(dtype), complete
        self.forbidden = LOG_ZERO[self.dtype]

    def of_complete_rows(self) -> "Graph":
        """The same graph, for converters of rows without missing cells."""
        return Graph(self.scope, self.container, self.dtype, complete=True)

    def constant(self, value: Any) -> str:
        """A constant: floats in the type of the graph, whole numbers as int64, text and booleans as they are."""
        array = np.asarray(value)
        kind = {"f": self.dtype.name, "i": "int64", "u": "int64", "b": "bool"}.get(
            array.dtype.kind, "string"
        )
        name: str = self.scope.get_unique_variable_name("constant")
        flat = (
            [str(v).encode("utf-8") for v in array.ravel()]
            if kind == "string"
            else array.astype(kind).ravel()
        )
        self.container.add_initializer(name, self.kind(kind), list(array.shape), flat)
        return name

    @staticmethod
    def kind(name: str) -> int:
        """ONNX's number of a type."""
        from onnx import TensorProto, helper

        return int(
            TensorProto.STRING
            if name == "string"
            else helper.np_dtype_to_tensor_dtype(np.dtype(name))
        )

    def op(
        self,
        operator: str,
        *inputs: str,
        name: str | None = None,
        n_outputs: int = 1,
        message: str | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Adds a node; the name of what it makes, or a list of names. A runtime quotes `message` where the node fails."""
        made = [
            name or self.scope.get_unique_variable_name(operator.lower()) for _ in range(n_outputs)
        ]
        label = message or self.scope.get_unique_operator_name(operator)
        self.container.add_node(
            operator, list(inputs), made, op_domain=domain, name=label, **attributes
        )
        return made[0] if n_outputs == 1 else made

    # -- arithmetic -----------------------------------------------------------------------------------------------------

    def add(self, a: str, b: Any) -> str:
        """a + b; b a name or a constant."""
        return str(self.op("Add", a, self._named(b)))

    def subtract(self, a: str, b: Any) -> str:
        """a - b."""
        return str(self.op("Sub", a, self._named(b)))

    def multiply(self, a: str, b: Any) -> str:
        """a * b."""
        return str(self.op("Mul", a, self._named(b)))

    def matmul(self, a: str, b: Any) -> str:
        """a @ b."""
        return str(self.op("MatMul", a, self._named(b)))

    def divide(self, a: str, b: Any) -> str:
        """a / b."""
        return str(self.op("Div", a, self._named(b)))

    def _named(self, value: Any) -> str:
        return value if isinstance(value, str) else self.constant(np.asarray(value, np.float64))

    def cast(self, a: str, dtype: Any, name: str | None = None) -> str:
        """`a` in another type."""
        return str(self.op("Cast", a, name=name, to=self.kind(np.dtype(dtype).name)))

    def total(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Sum along an axis."""
        return str(self.op("ReduceSum", a, self.constant(np.array([axis])), keepdims=int(keepdims)))

    def most(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Largest along an axis."""
        return str(self.op("ReduceMax", a, self.constant(np.array([axis])), keepdims=int(keepdims)))

    def unsqueeze(self, a: str, axis: int) -> str:
        """A new axis."""
        return str(self.op("Unsqueeze", a, self.constant(np.array([axis]))))

    def squeeze(self, a: str, axis: int) -> str:
        """Without an axis of size one."""
        return str(self.op("Squeeze", a, self.constant(np.array([axis]))))

    def first(self, a: str, axis: int) -> str:
        """The first entry along an axis, which stays."""
        return self._slice(a, axis, 0, 1)

    def rest(self, a: str, axis: int) -> str:
        """All but the first entry along an axis."""
        return self._slice(a, axis, 1, np.iinfo(np.int64).max)

    def _slice(self, a: str, axis: int, start: int, end: int) -> str:
        ends = (self.constant(np.array([i])) for i in (start, end, axis))
        return str(self.op("Slice", a, *ends))

    def choose(
        self, condition: str, then: Callable[["Graph"], str], otherwise: Callable[["Graph"], str]
    ) -> str:
        """What `then` builds where the condition, a scalar, is true, and else what `otherwise` builds."""
        branches = {}
        for name, build in (("then_branch", then), ("else_branch", otherwise)):
            inside = _Branch()
            made = build(Graph(self.scope, inside, self.dtype))
            branches[name] = inside.graph(name, made, self.kind(self.dtype.name))
        return str(self.op("If", condition, **branches))

    def softmax(self, a: str, axis: int) -> str:
        """exp(a) over its sum."""
        return str(self.op("Softmax", a, axis=axis))

    def clip(self, a: str, low: float | None, high: float | None) -> str:
        """`a` within bounds."""
        ends = (-np.inf if low is None else low, np.inf if high is None else high)
        return str(self.op("Clip", a, *(self.constant(np.array(float(end))) for end in ends)))

    def log_of_sum(self, a: str, axis: int) -> str:
        """log sum exp along an axis."""
        peak = self.most(a, axis, keepdims=True)
        sums = self.total(str(self.op("Exp", self.subtract(a, peak))), axis)
        return self.add(
            str(self.op("Log", sums)),
            str(self.op("Squeeze", peak, self.constant(np.array([axis])))),
        )

    def safe_log(self, p: np.ndarray) -> np.ndarray:
        """log p as a constant, FORBIDDEN for log 0."""
        positive = np.asarray(p) > 0
        return np.where(positive, np.log(np.where(positive, p, 1.0)), self.forbidden)

    def centered(self, x: str, origin: np.ndarray) -> str:
        """x - origin: float32 cannot hold an origin far from zero, so what is left of it is taken off in a second step."""
        first = origin.astype(self.dtype).astype(np.float64)
        x = self.subtract(x, first)
        return x if (first == origin).all() else self.subtract(x, origin - first)


class _Branch:
    """Nodes and constants of a branch of `If`, in the place of skl2onnx's container."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_node(
        self,
        kind: str,
        inputs: list[str],
        outputs: list[str],
        op_domain: str = "",
        **attributes: Any,
    ) -> None:
        """As of the container."""
        from onnx import helper

        node = helper.make_node(kind, inputs, outputs, domain=op_domain, **attributes)
        self.nodes.append(node)

    def add_initializer(self, name: str, kind: int, shape: list[int], content: Any) -> None:
        """As of the container."""
        from onnx import helper

        self.constants.append(helper.make_tensor(name, kind, shape, content))

    def graph(self, name: str, output: str, kind: int) -> Any:
        """The branch, whose result is of two axes."""
        from onnx import helper

        made = helper.make_tensor_value_info(output, kind, [None, None])
        return helper.make_graph(self.nodes, name, [], [made], self.constants)
