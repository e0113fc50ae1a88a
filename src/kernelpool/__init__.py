"""Classifiers that pool kernels: shared Gaussian mixtures that know their densities.

Names are imported on first use (PEP 562), so that `kernelpool --help` does not wait for
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import inspection
    from .app.files import load, save
    from .app.onnx import to_onnx
    from .estimators import (
        CompetitiveNeuronsClassifier,
        ConformalClassifier,
        EMLogClassifier,
        EMLogRegressor,
        MultiEdit,
        ParzenClassifier,
        PooledClassifier,
        RBFNetworkClassifier,
        ReducedParzenClassifier,
        RejectClassifier,
        SharedKernelClassifier,
        SharingAverageClassifier,
    )
    from .inspection import bounds
    from .penalties import Overlap
    from .starts import Start
    from .training.shared_kernel import Training

__all__ = [
    "CompetitiveNeuronsClassifier",
    "ConformalClassifier",
    "EMLogClassifier",
    "EMLogRegressor",
    "MultiEdit",
    "Overlap",
    "ParzenClassifier",
    "PooledClassifier",
    "RBFNetworkClassifier",
    "ReducedParzenClassifier",
    "RejectClassifier",
    "SharedKernelClassifier",
    "SharingAverageClassifier",
    "Start",
    "Training",
    "bounds",
    "inspection",
    "load",
    "save",
    "to_onnx",
]

__version__ = "0.2.0"

_SUBMODULES = ("app", "errors", "inspection")
"""Modules that ``import kernelpool`` gives access to."""

_MODULES = {
    "bounds": "inspection",
    "load": "app.files",
    "save": "app.files",
    "to_onnx": "app.onnx",
    "Overlap": "penalties",
    "Start": "starts",
    "Training": "training.shared_kernel",
}
"""Where names are that are no estimators."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, 'estimators')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
