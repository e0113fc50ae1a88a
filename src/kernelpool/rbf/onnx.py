"""RBF networks as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`, complete numbers.
"""

from typing import Any

import numpy as np

from .network import RBFNetwork


def to_graph(x: Any, network: RBFNetwork) -> dict[str, Any]:
    """Answers of an `RBFNetworkClassifier`."""
    readout = network.readout
    n_kernels = len(network.means)
    unit = network.scale * network.width
    rows = x.framed(network.location, unit)
    mapped = rows
    center = (network.means - network.location) / unit
    if network.metric is not None:
        mapped = rows @ network.metric.T
        center = center @ network.metric.T
    features = network.kernel_features
    weight = None if features is None else features.astype(np.float64)
    kernels = np.exp(mapped.squared_distances(center, weight).clip(0.0) * -0.5)
    linear = rows @ (readout[n_kernels:-1] * network.width) + readout[-1]
    scores = kernels @ readout[:n_kernels] + linear
    if readout.shape[1] == 1:  # the log-odds of the second of two classes
        scores = x.graph.concat([scores * 0.0, scores])
    return {"scores": scores, "probabilities": scores.softmax()}
