"""Mixtures of neurons as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from typing import Any

import numpy as np


def to_graph(x: Any, fitted: Any, *, margin: bool) -> dict[str, Any]:
    """Answers of a `CompetitiveNeuronsClassifier`, of `margin` neurons or smooth ones."""
    g = x.graph
    origin = fitted.location
    unit = fitted.scale
    rows = x.indicators(fitted.columns.levels).framed(origin, unit)
    n_neurons = len(fitted.mixing)
    weight = fitted.weights.reshape(-1, len(origin) + 1)  # (M * C, d + 1), in units of the data
    bias = weight[:, -1] + weight[:, :-1] @ origin
    n_outputs = len(weight) // n_neurons
    activation = rows @ (weight[:, :-1] * unit).T + bias
    activation = g.op("Reshape", activation, [-1, n_neurons, n_outputs])  # (n, M, C)
    if margin:
        output = (activation * 0.5 + 0.5).clip(0.0, 1.0)
    elif n_outputs == 1:
        output = np.tanh(activation * 0.5) * 0.5 + 0.5
    else:
        output = activation.softmax(2)
    share = (fitted.mixing / fitted.mixing.sum())[:, None]
    if fitted.means is not None:
        log_density = rows.gaussian((fitted.means - origin) / unit, fitted.covariances / unit**2)
        share = (log_density + g.safe_log(fitted.mixing)).softmax().unsqueeze(2)  # (n, M, 1)
    output = (output * share).sum(1)  # (n, C)
    if n_outputs == 1:
        output = output.clip(high=1.0)
        probability = g.concat([1.0 - output, output])
    else:
        total = output.sum(1, keepdims=True)
        voted = total > 0.0  # the outputs of all margin neurons may be zero
        even = np.full(n_outputs, 1 / n_outputs)
        probability = g.where(voted, output / g.where(voted, total, 1.0), even)
    return {"scores": probability, "probabilities": probability}
