"""`kernelpool size`: how many test rows it takes before a network that they choose can be trusted."""

import math
from typing import Annotated

from ...bounds import test_size
from ...errors import KernelpoolError
from . import options as o
from .output import CommandError, Exit, Screen


def size(
    kernels: Annotated[int, o.judging("--kernels", help="Kernels to choose from, N.", min=1)],
    kept: Annotated[int, o.judging("--kept", help="Kernels chosen, K.", min=1)],
    error: Annotated[
        float, o.judging("--error", help="The error to certify.", metavar="SHARE")
    ] = 0.1,
    slack: Annotated[
        float,
        o.judging("--slack", help="How far below it the test error must stay, as a part of it."),
    ] = 0.5,
    confidence: o.Confidence = 0.95,
    chosen_radius: Annotated[
        bool, o.judging("--chosen-radius", help="The test rows choose the radius too.")
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Say how many test rows it takes to certify a network of few kernels.

    The bounds of Kraaijveld & Duin (1991), which hold for any K of N kernels that the test rows may choose: Corollary 1, or
    with --chosen-radius Theorem 3.

    Example: kernelpool size --kernels 1000 --kept 20 --error 0.1
    """
    screen = Screen(as_json)
    try:
        n_rows = test_size(
            n_kernels=kernels,
            n_kept=kept,
            error=error,
            doubt=1 - confidence,
            slack=slack,
            radius="chosen" if chosen_radius else "fixed",
        )
    except KernelpoolError as problem:
        raise CommandError(Exit.USAGE, str(problem)) from None
    needed = math.ceil(n_rows)
    screen.result(
        f"{needed:,} test rows: if {kept} of {kernels} kernels{', and a radius,' if chosen_radius else ''} that they choose "
        f"misclassify at most {100 * (1 - slack) * error:g} % of them, then with {100 * confidence:g} % confidence at most "
        f"{100 * error:g} % of new rows."
    )
    screen.answer(
        {
            "n_rows": needed,
            "n_kernels": kernels,
            "n_kept": kept,
            "error": error,
            "slack": slack,
            "confidence": confidence,
        }
    )
