"""Values as people read them: counts of things, shares, labels and names of any kind; and as JSON
has them.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import numpy as np

JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Invisible, and needed to write some languages."""

MAX_LENGTH = 200
"""Characters of a name, label or parameter; more are cut."""


def shorten(text: str, max_length: int, end: str = "…") -> str:
    """At most `max_length` characters; what was cut is marked by `end`."""
    return text if len(text) <= max_length else text[: max_length - len(end)] + end


def plural(n: int, word: str) -> str:
    """`12 kernels`, `1 kernel`, `3 classes`."""
    ending = "" if n == 1 else "es" if word.endswith("s") else "s"
    return f"{n:,} {word}{ending}"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f} %"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, and no minus zero."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def is_missing(value: Any) -> bool:
    """Whether a cell or label is None, NaN, masked, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def text_of(value: Any, max_length: int = MAX_LENGTH) -> str:
    """A label or name as a user reads it, without what could end a line or a file."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):  # several outputs
        text = ", ".join(text_of(part) for part in value.ravel())
    elif isinstance(value, float):
        text = repr(value).removesuffix(".0")  # no digit less: a cell is shown as it is
    else:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = text.encode("utf-8", "replace").decode("utf-8")  # halves of characters are no text
    text = "".join(
        c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return shorten(text, max_length)


def decimals_of(width: float, digits: int = 3) -> int:
    """With so many decimals a number has `digits` digits of a deviation or difference; 0 where that
    is large.
    """
    return max(0, digits - 1 - math.floor(math.log10(width))) if 0 < width < math.inf else 0


def date_text(days: float) -> str:
    """A date, given by the days since 1970, with the time of day where there is one."""
    if not abs(days) < 1e8:
        return text_of(days)
    text = str(np.datetime64(round(86400 * days), "s")).replace("T", " ")
    return text.removesuffix(" 00:00:00")


# -- names and cells in messages -------------------------------------------------------------------


def shown(name: Any, longest: int = 60) -> str:
    """A name or cell that may be printed: control characters are escaped, and it is not too
    long.
    """
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in str(name)
    )
    return shorten(text, longest)


def quoted(name: Any) -> str:
    """The same in quotes."""
    return f"'{shown(name)}'"


def listed(names: Sequence[Any], most: int = 5) -> str:
    """Names in quotes, separated by commas; those after the first `most` are counted."""
    text = ", ".join(quoted(name) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'Churn'?` where a known name is like the given one, and a full stop
    otherwise.
    """
    by_lower = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), list(by_lower), n=1)
    return f"; did you mean {quoted(by_lower[found[0]])}?" if found else "."


# -- for machines ----------------------------------------------------------------------------------


class JsonRecord:
    """A dataclass that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """For machines: plain numbers and text."""
        record: dict[str, Any] = plain(asdict(self))  # type: ignore[call-overload]
        return record


def plain(value: Any) -> Any:
    """Numbers, text, lists and mappings as JSON has them; what is not a finite number becomes
    null.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
