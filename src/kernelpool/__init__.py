"""Classifiers that pool kernels: shared Gaussian mixtures that know their densities.

Names are imported on first use (PEP 562), so that `kernelpool --help` does not wait for
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bounds, inspection
    from .app.files import load, save
    from .app.onnx import to_onnx
    from .decide import ConformalClassifier, RejectClassifier
    from .em_log import EMLogClassifier, EMLogRegressor
    from .mixtures import SharedKernelClassifier, SharingAverageClassifier
    from .mixtures.fit import Training
    from .mixtures.start import Start
    from .neurons import CompetitiveNeuronsClassifier
    from .parzen import MultiEdit, ParzenClassifier, ReducedParzenClassifier
    from .penalties import Overlap
    from .pool import PooledClassifier
    from .rbf import RBFNetworkClassifier

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

_SUBMODULES = ("app", "bounds", "errors", "inspection")
"""Modules that ``import kernelpool`` gives access to."""

ESTIMATORS = {
    "CompetitiveNeuronsClassifier": "neurons",
    "ConformalClassifier": "decide",
    "EMLogClassifier": "em_log",
    "EMLogRegressor": "em_log",
    "MultiEdit": "parzen",
    "ParzenClassifier": "parzen",
    "PooledClassifier": "pool",
    "RBFNetworkClassifier": "rbf",
    "ReducedParzenClassifier": "parzen",
    "RejectClassifier": "decide",
    "SharedKernelClassifier": "mixtures",
    "SharingAverageClassifier": "mixtures",
}
"""The room of each estimator."""

_MODULES = ESTIMATORS | {
    "Overlap": "penalties",
    "Start": "mixtures",
    "Training": "mixtures",
    "load": "app.files",
    "save": "app.files",
    "to_onnx": "app.onnx",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
