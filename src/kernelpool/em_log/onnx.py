"""EM-Log networks as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from typing import Any

from ..arrays import safe_log
from ..mixtures.onnx import in_frame, log_kernels
from .network import EMLogNetwork, FittedEMLogClassifier, FittedEMLogRegressor, scaled_columns


def to_graph(x: Any, fitted: FittedEMLogClassifier) -> dict[str, Any]:
    """Answers of an `EMLogClassifier`."""
    network = fitted.network
    activations = activations_of(x.indicators(fitted.door.columns.levels), network)
    outputs = network.class_outputs(activations)
    if network.smallest is None:
        return {"scores": outputs, "probabilities": outputs.softmax()}
    return {"scores": outputs, "probabilities": outputs / outputs.sum(axis=1, keepdims=True)}


def regression_to_graph(x: Any, fitted: FittedEMLogRegressor) -> dict[str, Any]:
    """Means and deviations of an `EMLogRegressor`."""
    mean, std = fitted.predicted(activations_of(x.complete(), fitted.network))
    if fitted.single_output:
        mean = mean.squeeze(1)
        std = std.squeeze(1)
    return {"prediction": mean, "std": std}


def activations_of(rows: Any, network: EMLogNetwork) -> Any:
    """Columns of the readout without the bias, (n, M)."""
    mixture = network.mixture
    rows, _, log_volume = in_frame(rows, mixture)
    log_density = log_kernels(rows, mixture, mixture.frame) * (1 / network.temperature)
    if network.activation == "normalized":
        log_joint = log_density + safe_log(network.mixing) / network.temperature
        return log_joint.softmax()
    log_scale = network.activation_log_scale + log_volume / network.temperature
    return scaled_columns(log_density, log_scale)
