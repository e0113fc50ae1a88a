"""EM-Log networks as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from typing import Any

import numpy as np

from ..mixtures.onnx import in_frame, log_kernels
from .network import LARGEST, EMLogNetwork, FittedEMLogClassifier, FittedEMLogRegressor


def to_graph(x: Any, fitted: FittedEMLogClassifier) -> dict[str, Any]:
    """Answers of an `EMLogClassifier`."""
    network = fitted.network
    logistic = network.smallest is None
    columns = hidden(x.indicators(fitted.door.columns.levels), network)
    outputs = columns @ network.readout[:-1] + network.readout[-1]
    if network.readout.shape[1] == 1:
        outputs = x.graph.concat([outputs * 0.0 if logistic else 1.0 - outputs, outputs])
    probability = outputs.softmax() if logistic else outputs.clip(network.smallest).shares()
    return {"scores": outputs, "probabilities": probability}


def regression_to_graph(x: Any, fitted: FittedEMLogRegressor) -> dict[str, Any]:
    """Means and deviations of an `EMLogRegressor`."""
    network = fitted.network
    columns = hidden(x, network)
    mean = columns @ network.readout[:-1] + network.readout[-1]
    spread = 0.5 * (fitted.readout_covariance + fitted.readout_covariance.T)
    inner = (columns * (columns @ spread[:-1, :-1])).sum(1, keepdims=True)
    outer = columns @ (2 * spread[:-1, -1:]) + spread[-1:, -1]
    leverage = (inner + outer).clip(0.0)  # (n, 1)
    std = np.sqrt((leverage + 1.0) * fitted.noise_variance[None, :])
    if fitted.single_output:
        mean = mean.squeeze(1)
        std = std.squeeze(1)
    return {"prediction": mean, "std": std}


def hidden(rows: Any, network: EMLogNetwork) -> Any:
    """Activations of the hidden layer, (n, M)."""
    g = rows.graph
    mixture = network.mixture
    rows, _, log_volume = in_frame(rows, mixture)
    log_density = log_kernels(rows, mixture, mixture.frame)
    temperature = network.temperature
    if network.activation == "normalized":
        return ((log_density + g.safe_log(network.mixing)) * (1 / temperature)).softmax()
    log_scale = network.activation_log_scale + log_volume / temperature
    largest = LARGEST if g.dtype == np.float64 else 80.0
    return np.exp((log_density * (1 / temperature) - log_scale).clip(high=largest))
