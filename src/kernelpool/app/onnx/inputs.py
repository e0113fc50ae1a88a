"""Inputs of an exported model: one for all columns, or one for each column of a table with
categories; and what a pipeline does to them before the network.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from ...errors import KernelpoolError
from ...tables.columns import Columns, codes_of
from ...tables.kinds import CATEGORY, MISSING, NUMBER
from ...text import shorten
from .graph import OPSETS, Graph, Tensor
from .outputs import OUTPUTS


def inputs_of(g: Graph, steps: Any, network: Any, outside: Any) -> tuple[list[Any], Tensor]:
    """The inputs (name, column, kind, type, width), and the rows that the network takes."""
    columns = network.columns_
    if not steps and set(columns.kinds) != {NUMBER}:
        names = list(columns.names or (f"x{i}" for i in range(len(columns))))
        free = free_names(names)
        inputs = [
            (*entry, np.dtype(object) if entry[2] == CATEGORY else outside, 1)
            for entry in zip(free, names, columns.kinds, strict=True)
        ]
        return inputs, _coded([Tensor(g, name) for name in free], columns)
    width = int(steps[0].n_features_in_) if steps else len(columns)
    x = finite(Tensor(g, "X").astype(g.dtype))
    if steps:  # of skl2onnx's operators some have no rule for shapes
        x = _stepped(g, steps, x, width).node("Reshape", [-1, len(columns)])
    return [("X", "X", NUMBER, outside, width)], x


def _stepped(g: Graph, steps: Any, x: Tensor, n_features: int) -> Tensor:
    """Rows behind the steps of a pipeline before the network, by skl2onnx."""
    from onnx import compose
    from skl2onnx import convert_sklearn
    from skl2onnx.common import data_types as types

    number = types.DoubleTensorType if g.dtype == np.float64 else types.FloatTensorType
    initial = [("X", number([None, n_features]))]
    try:
        made = convert_sklearn(make_pipeline(*steps), initial_types=initial, target_opset=OPSETS)
    except Exception as error:  # skl2onnx raises many kinds where it has no answer
        raise KernelpoolError(
            f"A step before the classifier cannot be exported to ONNX: "
            f"{shorten(' '.join(str(error).split()), 300)} "
            f"Export the last step alone, and transform the rows yourself."
        ) from None
    graph = compose.add_prefix(made, "steps/").graph
    g.op("Identity", x, name=graph.input[0].name)
    g.nodes += graph.node
    g.constants += graph.initializer
    return Tensor(g, graph.output[0].name).astype(g.dtype)


def free_names(columns: Sequence[str]) -> list[str]:
    """The names of columns, with underscores behind those that are taken."""
    names: dict[str, None] = {}
    for at, column in enumerate(columns):
        # half a character is no text, and "" is no name
        name = column.encode("utf-8", "replace").decode("utf-8") or f"x{at}"
        while name in OUTPUTS or name in names:
            name += "_"
        names[name] = None
    return list(names)


def _coded(cells: list[Tensor], columns: Columns) -> Tensor:
    """Columns, each (n, 1), as encoded rows, (n, d): categories by their codes, NaN for a missing
    cell.
    """
    g = cells[0].graph
    missing = dict.fromkeys((*MISSING, *columns.missing), math.nan)
    encoded = []
    for column, names in zip(cells, columns.categories, strict=True):
        if names is not None:
            codes = codes_of(names.tolist()) | missing
            column = g.op(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=list(codes),
                values_floats=list(codes.values()),
                default_float=float(len(names)),
            )
        encoded.append(column.astype(g.dtype))
    return finite(g.hstack(encoded))


def finite(x: Tensor) -> Tensor:
    """Infinite numbers are missing cells, as in data frames."""
    return x.graph.where(np.isinf(x), np.nan, x)
