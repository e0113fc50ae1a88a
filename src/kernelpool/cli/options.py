"""Options that several commands have, so that they read alike everywhere."""

import codecs
from enum import StrEnum
from typing import Annotated, Any

import typer

from ..tables.text import TextStyle
from ..text import quoted
from .screen import CommandError, Exit

DATA_PANEL, MODEL_PANEL, JUDGE_PANEL, OUTPUT_PANEL = "Data", "Model", "Judging", "Output"
REJECT_PANEL, TEXT_PANEL = "Refusing rows", "Text files"


class Scale(StrEnum):
    """Whether features are standardized inside the model."""

    AUTO = "auto"
    STANDARD = "standard"
    NONE = "none"


class Unlabeled(StrEnum):
    """What becomes of rows without a class."""

    REFUSE = "refuse"
    DROP = "drop"
    USE = "use"


class OutputFormat(StrEnum):
    """Formats of tables."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"


class Precision(StrEnum):
    """Of an ONNX model."""

    MIXED = "mixed"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


class DecimalPoint(StrEnum):
    """Of numbers in text files."""

    POINT = "."
    COMMA = ","


def option(*names: str, panel: str, help: str, **kwargs: Any) -> Any:
    """An option in a panel of the help page."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **kwargs)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV, Parquet or Arrow (Feather): a file, a folder of them, or - for stdin.", show_default=False
    ),
]
ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model file that `kernelpool fit` wrote.", show_default=False)
]
Target = Annotated[
    str | None,
    option(
        "--target", "-t", panel=DATA_PANEL, help="Column that holds the classes; the one of fit unless given.", metavar="COLUMN"
    ),
]
Drop = Annotated[
    list[str] | None, option("--drop", panel=DATA_PANEL, help="Leave this column out (repeatable).", metavar="COLUMN")
]
Seed = Annotated[int, option("--seed", metavar="N", panel=JUDGE_PANEL, help="Seed of everything random.", min=0, max=2**32 - 1)]
Confidence = Annotated[
    float, option("--confidence", metavar="SHARE", panel=JUDGE_PANEL, help="Confidence of intervals.", min=0.5, max=0.999999)
]
Force = Annotated[bool, option("--force", "-f", panel=OUTPUT_PANEL, help="Replace files that exist.")]
Json = Annotated[bool, option("--json", panel=OUTPUT_PANEL, help="Print one JSON object instead of words.")]
Quiet = Annotated[bool, option("--quiet", "-q", panel=OUTPUT_PANEL, help="Say nothing but results and warnings.")]
Format = Annotated[
    OutputFormat | None,
    option("--format", panel=OUTPUT_PANEL, help="Told from the name of the output unless given; csv on stdout."),
]
Raw = Annotated[
    bool, option("--raw", panel=OUTPUT_PANEL, help="CSV: do not put an apostrophe before cells that a spreadsheet would run.")
]
Delimiter = Annotated[
    str | None,
    option(
        "--delimiter", metavar="CHARACTER", panel=TEXT_PANEL, help="Character between cells; told from the header unless given."
    ),
]
Decimal = Annotated[DecimalPoint, option("--decimal", panel=TEXT_PANEL, help="Decimal point of numbers.")]
Encoding = Annotated[
    str | None, option("--encoding", metavar="NAME", panel=TEXT_PANEL, help="Such as latin-1; UTF-8 or UTF-16 unless given.")
]
Missing = Annotated[
    list[str] | None,
    option("--missing", metavar="WORD", panel=TEXT_PANEL, help="A word that stands for a missing number (repeatable)."),
]
NoHeader = Annotated[
    bool, option("--no-header", panel=TEXT_PANEL, help="The first line is data; columns are called c1, c2, ...")
]
Reject = Annotated[bool, option("--reject", panel=REJECT_PANEL, help="Refuse rows that are ambiguous or novel.")]
Ambiguity = Annotated[
    float | None,
    option(
        "--ambiguity",
        metavar="SHARE",
        panel=REJECT_PANEL,
        help="Largest probability of an error to accept. [default with --reject: 0.2]",
        min=0,
        max=1,
    ),
]
Novelty = Annotated[
    float | None,
    option(
        "--novelty",
        metavar="SHARE",
        panel=REJECT_PANEL,
        help="Share of ordinary rows that may be called novel. [default with --reject: 0.01]",
        min=0,
        max=1,
    ),
]


def text_style(
    delimiter: str | None, decimal: DecimalPoint, encoding: str | None, no_header: bool, missing: list[str] | None
) -> TextStyle:
    """How text files are written, checked."""
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    if delimiter is not None and len(delimiter.encode(errors="replace")) != 1:
        raise CommandError(Exit.USAGE, f"--delimiter must be one character, or tab; got {quoted(delimiter)}.")
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise CommandError(
                Exit.USAGE, f"--encoding: nobody knows {quoted(encoding)}; try utf-8, latin-1 or cp1252."
            ) from None
    return TextStyle(delimiter, str(decimal), encoding, not no_header, tuple(missing or ()))
