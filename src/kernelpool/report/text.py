"""Labels, names and parameters as text. What the text means to a browser is the template's business."""

from typing import Any

import numpy as np

MINUS, DASH, SPACE = "\N{MINUS SIGN}", "\N{EN DASH}", "\N{NO-BREAK SPACE}"

JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Invisible, and needed to write some languages."""

LONGEST = 200
"""Characters of a name, label or parameter; more are cut."""


def text_of(value: Any, most: int = LONGEST) -> str:
    """A label or name as a user reads it, without what could end a line or a file."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):  # several outputs
        text = ", ".join(text_of(part) for part in value.ravel())
    elif isinstance(value, float):
        text = min(repr(value), f"{value:.5g}", key=len)
    else:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = text.encode("utf-8", "replace").decode("utf-8")  # halves of characters are no text
    text = "".join(c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
