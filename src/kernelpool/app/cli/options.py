"""Options that several commands have, so that they read alike everywhere.

A command may have a parameter whose value is made of several options: it is annotated with the function that makes it, such as
`TextOptions`, and on the command line stands for the parameters of that function.
"""

import codecs
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from inspect import Parameter, isfunction, signature
from typing import Annotated, Any

import typer

from ...text import quoted
from ..readers.sources import TextStyle
from .output import CommandError, Exit, Screen

Scale = StrEnum("Scale", ["AUTO", "STANDARD", "NONE"])
Unlabeled = StrEnum("Unlabeled", ["REFUSE", "DROP", "USE"])
OutputFormat = StrEnum("OutputFormat", ["CSV", "PARQUET", "ARROW", "JSONL"])
Precision = StrEnum("Precision", ["MIXED", "FLOAT32", "FLOAT64"])
DecimalPoint = StrEnum("DecimalPoint", {"POINT": ".", "COMMA": ","})


def option(panel: str, *names: str, help: str, **kwargs: Any) -> Any:
    """An option in a panel of the help page."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **kwargs)


data, model, judging, output = (
    partial(option, panel) for panel in ("Data", "Model", "Judging", "Output")
)
refusing, text = partial(option, "Refusing rows"), partial(option, "Text files")
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
Drop = Annotated[list[str] | None, column("--drop", help="Leave this column out (repeatable).")]
Seed = Annotated[
    int, judging("--seed", metavar="N", help="Seed of everything random.", min=0, max=2**32 - 1)
]
Confidence = Annotated[
    float,
    judging(
        "--confidence", metavar="SHARE", help="Confidence of intervals.", min=0.5, max=0.999999
    ),
]
OutputPath = Annotated[
    str, output("--output", "-o", metavar="FILE", help="File to write, - for stdout.")
]
Force = Annotated[bool, output("--force", "-f", help="Replace files that exist.")]
Json = Annotated[bool, output("--json", help="Print one JSON object instead of words.")]
Quiet = Annotated[bool, output("--quiet", "-q", help="Say nothing but results and warnings.")]
Format = Annotated[
    OutputFormat | None,
    output("--format", help="Told from the name of the output unless given; csv on stdout."),
]
Raw = Annotated[
    bool,
    output(
        "--raw", help="CSV: do not put an apostrophe before cells that a spreadsheet would run."
    ),
]
Delimiter = Annotated[
    str | None,
    text(
        "--delimiter",
        metavar="CHARACTER",
        help="Character between cells; told from the header unless given.",
    ),
]
Decimal = Annotated[DecimalPoint, text("--decimal", help="Decimal point of numbers.")]
Encoding = Annotated[
    str | None,
    text("--encoding", metavar="NAME", help="Such as latin-1; UTF-8 or UTF-16 unless given."),
]
Missing = Annotated[
    list[str] | None,
    text("--missing", metavar="WORD", help="A word that stands for a missing number (repeatable)."),
]
NoHeader = Annotated[
    bool, text("--no-header", help="The first line is data; columns are called c1, c2, ...")
]
Reject = Annotated[bool, refusing("--reject", help="Refuse rows that are ambiguous or novel.")]
AMBIGUITY = "Largest probability of an error to accept. [default with --reject: 0.2]"
Ambiguity = Annotated[float | None, refusing("--ambiguity", help=AMBIGUITY, **share)]
NOVELTY = "Share of ordinary rows that may be called novel. [default with --reject: 0.01]"
Novelty = Annotated[float | None, refusing("--novelty", help=NOVELTY, **share)]


# -- parameters made of several options -----------------------------------------------------------------------------


def make_screen(as_json: Json = False, quiet: Quiet = False) -> Screen:
    """Where the command speaks."""
    return Screen(as_json, quiet)


def text_style(
    delimiter: Delimiter = None,
    decimal: Decimal = DecimalPoint.POINT,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    missing: Missing = None,
) -> TextStyle:
    """How text files are written, checked."""
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    if delimiter is not None and len(delimiter.encode(errors="replace")) != 1:
        raise CommandError(
            Exit.USAGE, f"--delimiter must be one character, or tab; got {quoted(delimiter)}."
        )
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise CommandError(
                Exit.USAGE,
                f"--encoding: nobody knows {quoted(encoding)}; try utf-8, latin-1 or cp1252.",
            ) from None
    return TextStyle(delimiter, str(decimal), encoding, not no_header, tuple(missing or ()))


ScreenOptions = Annotated[Screen, make_screen]
TextOptions = Annotated[TextStyle, text_style]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer sees it: parameters annotated with a function become the parameters of that function."""
    parameters, makers = [], {}
    for parameter in signature(command).parameters.values():
        make = next(filter(isfunction, getattr(parameter.annotation, "__metadata__", ())), None)
        if make is None:
            parameters.append(parameter)
        else:
            makers[parameter.name] = make
            parameters += [
                own.replace(kind=Parameter.KEYWORD_ONLY)
                for own in signature(make).parameters.values()
            ]

    def wide(**kwargs: Any) -> None:
        for name, make in makers.items():
            kwargs[name] = make(**{own: kwargs.pop(own) for own in signature(make).parameters})
        command(**kwargs)

    wide.__name__, wide.__doc__ = command.__name__, command.__doc__
    wide.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    wide.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wide
