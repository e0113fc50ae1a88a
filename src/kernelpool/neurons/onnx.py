"""Mixtures of neurons as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`, complete numbers.
"""

from typing import Any

from ..arrays import safe_log
from ..rows import Frame
from .network import NeuronNetwork, Softmax


def to_graph(x: Any, network: NeuronNetwork) -> dict[str, Any]:
    """Answers of a `CompetitiveNeuronsClassifier`."""
    g = x.graph
    params = network.params
    n_neurons, n_outputs, _ = params.weight.shape
    rows = x.framed(Frame(network.location, network.scale))
    weight = params.weight.reshape(n_neurons * n_outputs, -1)
    activation = rows @ weight[:, :-1].T + weight[:, -1]
    activation = g.op("Reshape", activation, [0, n_neurons, n_outputs])  # (n, M, C)
    neuron = network.competitive.neuron
    is_softmax = isinstance(neuron, Softmax)
    output = activation.softmax(2) if is_softmax else neuron.output(activation)
    share = (params.mixing / params.mixing.sum())[:, None]
    if params.place is not None:
        log_density = rows.gaussian(*params.place)
        share = (log_density + safe_log(params.mixing)).softmax().unsqueeze(2)  # (n, M, 1)
    probability = network.competitive.of_classes((output * share).sum(axis=1))
    return {"scores": probability, "probabilities": probability}
