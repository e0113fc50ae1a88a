"""From `--model` and its settings to an estimator.

Settings are read as JSON, or as plain words where they are none, and go to the estimator's own checks; nothing is evaluated.

Distances in several units mean nothing, so features are standardized inside the saved model where the model uses plain
distances: spherical kernels and Parzen kernels. The other shapes of kernels adapt to units by themselves, and neurons
standardize inside. `--scale` overrules this.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..estimators.competitive import CompetitiveNeuronsClassifier
from ..estimators.parzen import ParzenClassifier, ReducedParzenClassifier
from ..estimators.rbf_network import RBFNetworkClassifier
from ..estimators.shared_kernel import SharedKernelClassifier
from ..estimators.sharing_average import SharingAverageClassifier
from .columns import CATEGORY, NUMBER, Feature
from .screen import CommandError, Exit, quoted

AUTO = "auto"
MODELS: dict[str, type] = {
    "shared-kernel": SharedKernelClassifier,
    "sharing-average": SharingAverageClassifier,
    "rbf": RBFNetworkClassifier,
    "neurons": CompetitiveNeuronsClassifier,
    "parzen": ParzenClassifier,
    "reduced-parzen": ReducedParzenClassifier,
}
NOT_SETTABLE = ("callback", "verbose", "random_state", "unlabeled")
"""Objects, or set by options of their own."""

ADAPTING = ("diag", "full", "tied")
"""Shapes of kernels that do not depend on the units of features."""

Setting = Any
"""A number, a word, true, false, null, or a list of those."""


@dataclass(frozen=True)
class ModelChoice:
    """What the command line asks for."""

    name: str = AUTO
    kernels: int | None = None
    covariance: str | None = None
    sharing: str | None = None
    settings: Sequence[str] = ()
    scale: str = "auto"
    seed: int = 0

    def estimator(self) -> Any:
        """The bare classifier."""
        given = self._given()
        if self.name == AUTO:
            return _recommended(given)
        known = MODELS[self.name]().get_params(deep=False)
        for name in given:
            if name not in known:
                may = ", ".join(sorted(set(known) - set(NOT_SETTABLE)))
                raise CommandError(Exit.USAGE, f"--model {self.name} has no setting {quoted(name)}; it has {may}.")
        return MODELS[self.name](**given)

    def _given(self) -> dict[str, Setting]:
        given: dict[str, Setting] = {"random_state": self.seed}
        if self.kernels is not None:
            given["n_neurons" if self.name == "neurons" else "n_kernels"] = self.kernels
        if self.covariance is not None:
            given["covariance_type"] = self.covariance
        if self.sharing is not None:
            given["sharing"] = _sharing(self.sharing, several=self.name == "sharing-average")
        for text in self.settings:
            name, value = setting(text)
            given[name] = value
        return given

    def pipeline(self, features: list[Feature]) -> Any:
        """The classifier behind the steps that its features need; the classifier alone where they need none."""
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

        estimator = self.estimator()
        scale = self.scale == "standard" or (self.scale == "auto" and needs_scale(estimator))
        words = [f.name for f in features if f.kind == CATEGORY]
        if not words:
            return Pipeline([("scale", StandardScaler()), ("model", estimator)]) if scale else estimator
        parts: list[Any] = [("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)]
        numbers = [f.name for f in features if f.kind == NUMBER]
        if numbers:  # "passthrough" would hand on an Arrow table, which scikit-learn cannot join to an array
            as_they_are = FunctionTransformer(validate=True, feature_names_out="one-to-one")
            parts.insert(0, ("numbers", StandardScaler() if scale else as_they_are, numbers))
        return Pipeline([("columns", ColumnTransformer(parts)), ("model", estimator)])


def _recommended(given: dict[str, Setting]) -> Any:
    make = getattr(SharedKernelClassifier, "auto", None)
    try:
        return SharedKernelClassifier(**given) if make is None else make(**given)
    except TypeError as error:
        raise CommandError(Exit.USAGE, f"--model auto: {error}.") from None


def needs_scale(estimator: Any) -> bool:
    """Whether the model measures distances in the units of the features as they come."""
    if isinstance(estimator, CompetitiveNeuronsClassifier):
        return False
    return getattr(estimator, "covariance_type", None) not in ADAPTING


def setting(text: str) -> tuple[str, Setting]:
    """`name=value` of `--set`; the value is JSON, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(Exit.USAGE, f"--set takes name=value, such as --set max_iter=500; got {quoted(text)}.")
    if name in NOT_SETTABLE:
        raise CommandError(Exit.USAGE, f"--set {name} is not possible on the command line{_instead(name)}.")
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    if isinstance(found, dict) or (isinstance(found, list) and any(isinstance(item, dict | list) for item in found)):
        raise CommandError(
            Exit.USAGE, f"--set {name} must be a number, a word, true, false, null or a list of those; got {quoted(value)}."
        )
    return name, found


def _instead(name: str) -> str:
    return {"random_state": "; use --seed", "unlabeled": "; use --unlabeled", "verbose": ""}.get(name, "")


def _sharing(text: str, several: bool) -> Setting:
    if text in ("learned", "auto") and not several:
        return text
    try:
        degrees = [float(part) for part in text.split(",")]
    except ValueError:
        raise CommandError(
            Exit.USAGE, f"--sharing takes a number from 0 to 1, or several with commas; got {quoted(text)}."
        ) from None
    if several:
        return degrees
    if len(degrees) > 1:
        raise CommandError(
            Exit.USAGE, f"--sharing takes one number here, several only with --model sharing-average; got {quoted(text)}."
        )
    return degrees[0]
