"""JSON as a reader that trusts nothing needs it, and what its messages may repeat of a file."""

import json
import math
from typing import Any

from ..errors import ModelFileError
from ..text import shorten

DEEPEST = 96
"""Levels of JSON inside JSON; a classifier in a pipeline of column transformers has about 30."""


def parse_json(text: str, what: str) -> Any:
    """`text` as JSON with no name twice, no NaN, no number beyond float64 or 64 bits, and not nested beyond reason."""
    try:
        found = json.loads(
            text, object_pairs_hook=_once_each, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except ModelFileError as error:
        raise ModelFileError(f"The {what} is damaged: {error}") from None
    except RecursionError:
        raise ModelFileError(f"The {what} is nested too deep; at most {DEEPEST} levels are read.") from None
    except ValueError as error:
        raise ModelFileError(f"The {what} is not JSON: {error}.") from None
    check_depth(found, what)
    return found


def check_depth(value: Any, what: str) -> None:
    """At most DEEPEST lists and objects inside each other."""
    level, depth = [value], 0
    while level:
        level = [
            v for part in level if isinstance(part, list | dict) for v in (part.values() if isinstance(part, dict) else part)
        ]
        depth += 1
        if depth > DEEPEST:
            raise ModelFileError(f"The {what} is nested too deep; at most {DEEPEST} levels are read.")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ModelFileError(f"the name {short(name)} occurs twice in one object.")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise ModelFileError(f"{text} is not a number in JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ModelFileError(f"the number {short(text)} is beyond float64.")
    return number


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 20 else 2**64
    if not -(2**63) <= number < 2**64:
        raise ModelFileError(f"the number {short(text)} is beyond 64 bits.")
    return number


def short(value: Any) -> str:
    """`value` for a message: what comes from a file may be long."""
    return shorten(repr(value), 60, "...")
