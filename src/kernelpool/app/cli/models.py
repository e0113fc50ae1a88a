"""Which estimator the command line asks for.

Settings are read as JSON, or as plain words where they are none, and go to the estimator's own
checks; nothing is evaluated.
"""

import json
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

from ... import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    SharedKernelClassifier,
)
from ...text import did_you_mean, plain, quoted
from .output import CommandError, Exit

POOL, LARGE = "pool", "shared-kernel"
"""The models that are fitted unless another is named, to rows in memory and to larger files."""

MODELS: dict[str, Callable[..., Any]] = {
    POOL: PooledClassifier,
    "auto": SharedKernelClassifier.auto,
    LARGE: SharedKernelClassifier,
    "rbf": RBFNetworkClassifier,
    "neurons": CompetitiveNeuronsClassifier,
    "parzen": ParzenClassifier,
    "reduced-parzen": ReducedParzenClassifier,
}
NOT_SETTABLE = ("callback", "verbose", "random_state", "members")
"""Objects, or set by options of their own."""


def make_estimator(name: str, settings: Sequence[str], seed: int) -> Any:
    """The estimator that `--model` and `--set` ask for."""
    if name not in MODELS:
        raise CommandError(
            Exit.USAGE,
            f"--model {quoted(name)} is not known{did_you_mean(name, list(MODELS))} There are "
            f"{', '.join(MODELS)}.",
        )
    known = parameters_of(MODELS[name])
    defaults = ", ".join(f"{key}={json.dumps(plain(value))}" for key, value in known.items())
    if "help" in settings:
        raise CommandError(Exit.USAGE, f"--model {name}: settings and their defaults: {defaults}.")
    given = dict(map(parse_setting, settings))
    unknown = [key for key in given if key not in known]
    if unknown:
        raise CommandError(
            Exit.USAGE,
            f"--model {name} has no setting {quoted(unknown[0])}"
            f"{did_you_mean(unknown[0], list(known))} Settings and their defaults: {defaults}.",
        )
    return MODELS[name](random_state=seed, **given)


def parameters_of(make: Callable[..., Any]) -> dict[str, Any]:
    """The settings of an estimator with their defaults."""
    found = dict(signature(make).parameters)
    if any(p.kind == Parameter.VAR_KEYWORD for p in found.values()):  # auto(**parameters)
        found |= dict(signature(SharedKernelClassifier).parameters)
    several = Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL
    names = sorted(n for n, p in found.items() if p.kind not in several and n not in NOT_SETTABLE)
    return {name: found[name].default for name in names}


def parse_setting(text: str) -> tuple[str, Any]:
    """`name=value` of `--set`; the value is JSON, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(
            Exit.USAGE,
            f"--set takes name=value, such as --set max_iter=500, or help; got {quoted(text)}.",
        )
    if name in NOT_SETTABLE:
        instead = "; use --seed" if name == "random_state" else ""
        raise CommandError(
            Exit.USAGE, f"--set {name} is not possible on the command line{instead}."
        )
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    if isinstance(found, dict):
        raise CommandError(
            Exit.USAGE,
            f"--set {name} must be a number, a word, true, false, null or a list; got {quoted(value)}.",
        )
    return name, found
