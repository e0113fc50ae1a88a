"""RBF networks as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`, complete numbers.
"""

from typing import Any

from ..rows import Frame
from .network import RBFNetwork


def to_graph(x: Any, network: RBFNetwork) -> dict[str, Any]:
    """Answers of an `RBFNetworkClassifier`."""
    z = x.framed(Frame(network.location, network.scale))
    center = network.mapped((network.means - network.location) / network.scale)
    features = network.kernel_features
    weight = None if features is None else 1.0 * features
    squared = network.mapped(z).squared_distances(center, weight).clip(0.0)
    scores = network.scores(network.heights(squared), z)
    return {"scores": scores, "probabilities": scores.softmax()}
