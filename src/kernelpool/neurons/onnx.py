"""Mixtures of neurons as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`, complete numbers.
"""

from typing import Any

import numpy as np

from .network import NeuronNetwork


def to_graph(x: Any, network: NeuronNetwork) -> dict[str, Any]:
    """Answers of a `CompetitiveNeuronsClassifier`."""
    g = x.graph
    params = network.params
    n_neurons, n_outputs, _ = params.weight.shape
    rows = x.framed(network.location, network.scale)
    weight = params.weight.reshape(n_neurons * n_outputs, -1)
    activation = rows @ weight[:, :-1].T + weight[:, -1]
    activation = g.op("Reshape", activation, [-1, n_neurons, n_outputs])  # (n, M, C)
    if network.competitive.margin:
        output = (activation * 0.5 + 0.5).clip(0.0, 1.0)
    elif n_outputs == 1:
        output = np.tanh(activation * 0.5) * 0.5 + 0.5
    else:
        output = activation.softmax(2)
    share = (params.mixing / params.mixing.sum())[:, None]
    if params.place is not None:
        log_density = rows.gaussian(*params.place)
        share = (log_density + g.safe_log(params.mixing)).softmax().unsqueeze(2)  # (n, M, 1)
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
