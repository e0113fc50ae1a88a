"""`kernelpool certify`: an upper bound on the error, as a sentence that holds with a stated confidence."""

from typing import Annotated

import numpy as np
import typer

from ...bounds import certify as certified
from ..readers.labels import codes_and_classes
from ..readers.sources import source
from . import options as o
from .output import CommandError, Exit
from .saved import open_saved


def certify(
    model: o.ModelPath,
    data: o.Data,
    target: o.Target = None,
    drop: o.Drop = None,
    confidence: o.Confidence = 0.95,
    tried: Annotated[
        int,
        o.judging(
            "--tried", help="Among how many models DATA were used to choose this one.", min=1
        ),
    ] = 1,
    at_most: Annotated[
        float | None,
        o.judging(
            "--at-most",
            help="Exit with code 7 unless the error is certified to be at most this.",
            min=0,
            max=1,
        ),
    ] = None,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """State how many new rows a model misclassifies at most.

    DATA are rows that played no part in making the model, drawn as the new rows will be. If they are the rows of the fit, those
    that were held out count.

    Example: kernelpool certify irises.safetensors irises.csv --at-most 0.1
    """
    saved = open_saved(model, screen)
    rows = saved.read(
        source(data, style),
        saved.target_of(target),
        screen,
        list(drop or []),
    )
    codes, _ = codes_and_classes(rows.labels)
    same, test = saved.split_of(rows.fingerprint(), codes)
    if same and (test is None or not test.any()):
        raise CommandError(
            Exit.DATA,
            "The model was fitted to these very rows: they can certify nothing. Pass rows that it has not seen.",
        )
    at = np.flatnonzero(codes >= 0 if test is None else test)
    if not len(at):
        raise CommandError(
            Exit.DATA, f"{rows.source}: no row has a class: nothing can be certified."
        )
    if same:
        screen.say(
            f"These are the rows of the fit; counted are the {len(at):,} that were held out."
        )
    table, labels = rows.at(at)
    with screen.working("Judging"):
        found = certified(saved.model, table, np.asarray(labels.tolist()), 1 - confidence, tried)
    screen.result(str(found))
    holds = at_most is None or found.error <= at_most
    if not holds and at_most is not None:
        screen.result(f"Not certified: at most {100 * at_most:g} % was asked for.")
    screen.answer(
        {
            "sentence": str(found),
            "error": found.error,
            "n_rows": found.n_rows,
            "n_errors": found.n_errors,
            "confidence": confidence,
            "n_tried": tried,
            "certifies": found.certifies,
            "at_most": at_most,
            "holds": holds,
        }
    )
    if not holds:
        raise typer.Exit(Exit.REFUTED)
