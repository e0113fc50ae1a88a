"""Which estimator the command line asks for, and the steps that its features need before it.

Settings are read as JSON, or as plain words where they are none, and go to the estimator's own checks; nothing is evaluated.

Distances in several units mean nothing, so features are standardized inside the saved model where its record in the registry,
or that of its kernel family, says that answers depend on units. `--scale` overrules this.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import registry
from ...estimators.shared_kernel import SharedKernelClassifier
from ...kernels import FAMILIES
from ...tables.encoder import TableEncoder
from ...text import did_you_mean, plain, quoted
from ..readers.columns import CATEGORY, FeatureColumn
from .output import CommandError, Exit

POOL, AUTO, LARGE_MODEL = "pool", "auto", "shared-kernel"
NOT_SETTABLE = ("callback", "verbose", "random_state", "unlabeled", "members")
"""Objects, or set by options of their own."""

Setting = Any
"""A number, a word, true, false, null, or a list of those."""


@dataclass(frozen=True)
class ModelChoice:
    """What the command line asks for."""

    name: str = POOL
    kernels: int | None = None
    covariance: str | None = None
    sharing: str | None = None
    settings: Sequence[str] = ()
    scale: str = "auto"
    seed: int = 0
    time_limit: float | None = None

    def estimator(self) -> Any:
        """The bare estimator."""
        models = registry.commands()
        if self.name != AUTO and self.name not in models:
            raise CommandError(
                Exit.USAGE,
                f"--model {quoted(self.name)} is not known{did_you_mean(self.name, list(models))} There are "
                f"{', '.join((POOL, AUTO, *sorted(set(models) - {POOL})))}.",
            )
        if self.covariance is not None and self.covariance not in FAMILIES:
            raise CommandError(
                Exit.USAGE,
                f"--covariance must be one of {', '.join(FAMILIES)}; got {quoted(self.covariance)}.",
            )
        make = SharedKernelClassifier.auto if self.name == AUTO else models[self.name].cls
        given = self._given(make)
        known = _parameters(make)
        shape = [option for option, value in self._shape().items() if value is not None]
        if self.name == POOL and shape:
            raise CommandError(
                Exit.USAGE,
                f"{shape[0]} needs one network instead of a pool; name it with --model, such as --model shared-kernel.",
            )
        if self.time_limit is not None and self.name != POOL:
            raise CommandError(
                Exit.USAGE, f"--time-limit is for --model {POOL} alone; got --model {self.name}."
            )
        unknown = [name for name in given if name not in known and name != "random_state"]
        if unknown:
            hint = did_you_mean(unknown[0], list(known))
            raise CommandError(
                Exit.USAGE,
                f"--model {self.name} has no setting {quoted(unknown[0])}{hint} {_listing(known)}",
            )
        return make(**given)

    def _shape(self) -> dict[str, Any]:
        """What a single network is asked for."""
        return {
            "--kernels": self.kernels,
            "--covariance": self.covariance,
            "--sharing": self.sharing,
        }

    def _given(self, make: Callable[..., Any]) -> dict[str, Setting]:
        given: dict[str, Setting] = {"random_state": self.seed}
        record = registry.commands().get(self.name)
        if record is not None:
            given |= record.command_parameters
        if self.kernels is not None:
            given["n_kernels" if record is None else record.size_parameter] = self.kernels
        if self.covariance is not None:
            given["covariance_type"] = self.covariance
        if self.sharing is not None:
            several = not isinstance(_parameters(make).get("sharing", 1.0), float | int | str)
            given["sharing"] = _sharing(self.sharing, several)
        if self.time_limit is not None and self.name == POOL:
            given["budget"] = self.time_limit
        for text in self.settings:
            if text == "help":
                raise CommandError(
                    Exit.USAGE, f"--model {self.name}: {_listing(_parameters(make))}"
                )
            name, value = parse_setting(text)
            given[name] = value
        return given

    def pipeline(self, features: list[FeatureColumn]) -> Any:
        """The classifier behind the steps that its features need; the classifier alone where they need none."""
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        estimator = self.estimator()
        scale = self.scale == "standard" or (
            self.scale == "auto" and registry.needs_scaling(estimator)
        )
        words = [f.name for f in features if f.kind == CATEGORY]
        if not words:
            return (
                Pipeline([("scale", StandardScaler()), ("model", estimator)])
                if scale
                else estimator
            )
        if not scale and hasattr(estimator, "categorical_features"):  # it takes words as they are
            return estimator.set_params(categorical_features=words)
        return Pipeline([("columns", TableEncoder(words, standardize=scale)), ("model", estimator)])


def _parameters(make: Callable[..., Any]) -> dict[str, Any]:
    """The settings of an estimator with their defaults."""
    from inspect import Parameter, signature

    found = {p.name: p for p in signature(make).parameters.values()}
    if any(p.kind == Parameter.VAR_KEYWORD for p in found.values()):  # hands them on to the class
        found = {**{p.name: p for p in signature(make.__self__).parameters.values()}, **found}  # type: ignore[attr-defined]
    found = {
        name: p
        for name, p in found.items()
        if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    }
    return {name: p.default for name, p in sorted(found.items()) if name not in NOT_SETTABLE}


def _listing(known: dict[str, Any]) -> str:
    return f"Settings and their defaults: {', '.join(f'{name}={json.dumps(plain(value))}' for name, value in known.items())}."


def parse_setting(text: str) -> tuple[str, Setting]:
    """`name=value` of `--set`; the value is JSON, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(
            Exit.USAGE,
            f"--set takes name=value, such as --set max_iter=500, or help; got {quoted(text)}.",
        )
    if name in NOT_SETTABLE:
        instead = {
            "random_state": "; use --seed",
            "unlabeled": "; use --unlabeled",
        }.get(name, "")
        raise CommandError(
            Exit.USAGE, f"--set {name} is not possible on the command line{instead}."
        )
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    if (
        isinstance(found, list)
        and found
        and isinstance(found[0], list)
        and all(_is_row(r, len(found[0])) for r in found)
    ):
        return name, found
    if isinstance(found, dict) or (
        isinstance(found, list) and any(isinstance(item, dict | list) for item in found)
    ):
        raise CommandError(
            Exit.USAGE,
            f"--set {name} must be a number, a word, true, false, null, a list of those or a table of numbers, such as "
            f"[[1, 0.5], [0.5, 1]]; got {quoted(value)}.",
        )
    return name, found


def _is_row(item: Any, n_columns: int) -> bool:
    """Whether it is a row of a table of numbers."""
    return (
        isinstance(item, list)
        and len(item) == n_columns
        and all(type(cell) in (int, float) for cell in item)
    )


def _sharing(text: str, several: bool) -> Setting:
    if text in ("learned", "auto") and not several:
        return text
    try:
        degrees = [float(part) for part in text.split(",")]
    except ValueError:
        raise CommandError(
            Exit.USAGE,
            f"--sharing takes a number from 0 to 1, or several with commas; got {quoted(text)}.",
        ) from None
    if several:
        return degrees
    if len(degrees) > 1:
        raise CommandError(
            Exit.USAGE,
            f"--sharing takes one number here, several only with --model sharing-average; got {quoted(text)}.",
        )
    return degrees[0]
