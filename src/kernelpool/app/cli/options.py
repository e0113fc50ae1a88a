"""Options that several commands have, so that they read alike everywhere."""

import codecs
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from ...text import quoted
from ..readers.files import TextStyle
from .output import CommandError, Exit

Unlabeled = StrEnum("Unlabeled", ["REFUSE", "DROP", "USE"])
OutputFormat = StrEnum("OutputFormat", ["CSV", "PARQUET", "ARROW", "JSONL"])
Precision = StrEnum("Precision", ["MIXED", "FLOAT32", "FLOAT64"])


def option(panel: str, *names: str, help: str, **kwargs: Any) -> Any:
    """An option in a panel of the help page."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **kwargs)


data, model, evaluation, output = (
    partial(option, panel) for panel in ("Data", "Model", "Evaluation", "Output")
)
rejection = partial(option, "Rejection")
column, share = partial(data, metavar="COLUMN"), {"metavar": "SHARE", "min": 0, "max": 1}


def given(metavar: str, help: str) -> Any:
    """An argument without a default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


Data = Annotated[
    str, given("DATA", "CSV, Parquet or Arrow (Feather): a file, a folder of them, or - for stdin.")
]
ModelPath = Annotated[str, given("MODEL", "A model file that `kernelpool fit` wrote.")]
Target = Annotated[
    str | None,
    column("--target", "-t", help="Column that holds the classes; the one of fit unless given."),
]
TEXT = (
    "How text files are written: decimal=, or encoding=NAME, delimiter=CHARACTER, missing=WORD, "
    "header=no (repeatable)."
)
Text = Annotated[list[str] | None, data("--text", metavar="NAME=VALUE", help=TEXT)]
Confidence = Annotated[
    float,
    evaluation(
        "--confidence", metavar="SHARE", help="Confidence of intervals.", min=0.5, max=0.999999
    ),
]
Reject = Annotated[bool, rejection("--reject", help="Reject rows that are ambiguous or novel.")]
AMBIGUITY = "Largest probability of an error to accept. [default with --reject: 0.2]"
Ambiguity = Annotated[float | None, rejection("--ambiguity", help=AMBIGUITY, **share)]
NOVELTY = "Share of ordinary rows that may be called novel. [default with --reject: 0.01]"
Novelty = Annotated[float | None, rejection("--novelty", help=NOVELTY, **share)]
KEEP = "Show this column of DATA, such as an identifier, beside the numbers of rows (repeatable)."
Keep = Annotated[list[str] | None, column("--keep", help=KEEP)]
Force = Annotated[bool, output("--force", "-f", help="Replace files that exist.")]
Json = Annotated[bool, output("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, output("--quiet", "-q", help="Print nothing but results and warnings.")]


def text_style(given: Sequence[str] | None) -> TextStyle:
    """`--text NAME=VALUE` of text files, checked."""
    found: dict[str, Any] = {"missing": ()}
    for pair in given or ():
        name, _, value = pair.partition("=")
        valid = {
            "delimiter": len(value.encode(errors="replace")) == 1 or value in ("tab", "\\t"),
            "decimal": value in (".", ","),
            "encoding": _is_codec(value),
            "header": value in ("yes", "no"),
            "missing": True,
        }.get(name, False)
        if not valid:
            raise CommandError(
                Exit.USAGE,
                f"--text {quoted(pair)}: expected decimal=, or encoding=latin-1, delimiter=; (one "
                f"character or tab), missing=WORD or header=no.",
            )
        if name == "missing":
            found["missing"] = (*found["missing"], value)
        elif name == "delimiter":
            found[name] = "\t" if len(value) > 1 else value
        else:
            found[name] = value == "yes" if name == "header" else value
    return TextStyle(**found)


def _is_codec(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return True
