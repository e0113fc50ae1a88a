"""A small writer of ONNX graphs: nodes are added one by one and named by themselves."""

from typing import Any

import numpy as np

OPSET = 18
IR_VERSION = 9
ML = "ai.onnx.ml"
ML_OPSET = 3
"""Runtimes from 2023 on read these (onnxruntime 1.14). Words need ONNX's operators for machine learning as well."""

LOG_ZERO = {np.dtype(np.float64): -1e300, np.dtype(np.float32): -1e37}
"""Stands for log 0: sums of it stay finite, and it is less than any log-density that a row can have."""


class Graph:
    """Nodes and constants, with floating-point numbers of one type inside, and of another or the same outside."""

    def __init__(self, dtype: Any, outside: Any = None) -> None:
        self.dtype = np.dtype(dtype)
        self.outside = np.dtype(dtype if outside is None else outside)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.forbidden = LOG_ZERO[self.dtype]
        self.taken: set[str] = set()
        """Names of inputs, which nothing else may have."""

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant: floats in the type of the graph or in the one given, whole numbers as int64, text as it is."""
        from onnx import helper, numpy_helper

        array, name = np.asarray(value), self._free(f"constant_{len(self.constants)}")
        if array.dtype.kind == "U":
            text = [str(part).encode("utf-8") for part in array.ravel()]
            self.constants.append(helper.make_tensor(name, self.kind("string"), array.shape, text))
            return name
        array = (
            array.astype(self.dtype if dtype is None else dtype)
            if array.dtype.kind == "f"
            else array.astype(np.int64)
            if array.dtype.kind in "iu"
            else array
        )
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    @staticmethod
    def kind(name: str) -> int:
        """ONNX's number of a type."""
        from onnx import TensorProto, helper

        if name == "string":
            return int(TensorProto.STRING)
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(name)))

    def _free(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    def op(
        self,
        operator: str,
        *inputs: str,
        name: str | None = None,
        n_outputs: int = 1,
        says: str | None = None,
        domain: str | None = None,
        **attributes: Any,
    ) -> Any:
        """Adds a node; the name of what it makes, or a list of names. A runtime quotes `says` where the node fails."""
        from onnx import helper

        made = [name or self._free(f"{operator.lower()}_{len(self.nodes)}")]
        if n_outputs > 1:
            made = [self._free(f"{operator.lower()}_{len(self.nodes)}_{i}") for i in range(n_outputs)]
        said = None if says is None else f"{says} (node {len(self.nodes)})"  # a runtime wants different names
        self.nodes.append(helper.make_node(operator, list(inputs), made, name=said, domain=domain, **attributes))
        return made[0] if n_outputs == 1 else made

    def opsets(self) -> list[Any]:
        """The versions of the operators that are there."""
        from onnx import helper

        more = [helper.make_opsetid(ML, ML_OPSET)] if any(node.domain == ML for node in self.nodes) else []
        return [helper.make_opsetid("", OPSET), *more]

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

    def multiply_whole(self, a: str, factor: int) -> str:
        """a * factor, of whole numbers."""
        return str(self.op("Mul", a, self.constant(np.array(factor))))

    def _named(self, value: Any) -> str:
        return value if isinstance(value, str) else self.constant(np.asarray(value, np.float64))

    def cast(self, a: str, dtype: Any, name: str | None = None) -> str:
        """`a` in another type."""
        return str(self.op("Cast", a, name=name, to=self.kind(np.dtype(dtype).name)))

    def inwards(self, a: str) -> str:
        """What comes from outside, in the type of the graph."""
        return a if self.outside == self.dtype else self.cast(a, self.dtype)

    def outwards(self, a: str) -> str:
        """Numbers as they would be outside."""
        return a if self.outside == self.dtype else self.cast(a, self.outside)

    def total(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Sum along an axis."""
        return str(self.op("ReduceSum", a, self.constant(np.array([axis])), keepdims=int(keepdims)))

    def most(self, a: str, axis: int, keepdims: bool = False) -> str:
        """Largest along an axis."""
        return str(self.op("ReduceMax", a, self.constant(np.array([axis])), keepdims=int(keepdims)))

    def unsqueeze(self, a: str, axis: int) -> str:
        """A new axis."""
        return str(self.op("Unsqueeze", a, self.constant(np.array([axis]))))

    def softmax(self, a: str, axis: int) -> str:
        """exp(a) over its sum."""
        return str(self.op("Softmax", a, axis=axis))

    def clip(self, a: str, low: float | None, high: float | None) -> str:
        """`a` within bounds."""
        ends = ["" if end is None else self.constant(np.array(float(end))) for end in (low, high)]
        return str(self.op("Clip", a, *ends))

    def log_of_sum(self, a: str, axis: int) -> str:
        """log sum exp along an axis."""
        peak = self.most(a, axis, keepdims=True)
        sums = self.total(str(self.op("Exp", self.subtract(a, peak))), axis)
        return self.add(str(self.op("Log", sums)), str(self.op("Squeeze", peak, self.constant(np.array([axis])))))

    def safe_log(self, p: np.ndarray) -> np.ndarray:
        """log p as a constant, FORBIDDEN for log 0."""
        positive = np.asarray(p) > 0
        return np.where(positive, np.log(np.where(positive, p, 1.0)), self.forbidden)

    def centered(self, x: str, origin: np.ndarray) -> str:
        """x - origin: float32 cannot hold an origin far from zero, so what is left of it is taken off in a second step."""
        first = origin.astype(self.dtype).astype(np.float64)
        x = self.subtract(x, first)
        return x if (first == origin).all() else self.subtract(x, origin - first)
