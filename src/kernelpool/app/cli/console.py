"""What commands share: options, text and progress for people, JSON for programs, and files that are
written.

Results go to stdout, everything else to stderr, so that results can be piped. Nothing is read as
markup, and a stderr that is full or closed ends no command. No file is replaced without
`--force`, and files appear completely or not at all.
"""

import codecs
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum, StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text as Line

from ...text import percent, plain, quoted, shown

SHOWN_AFTER = 2.0
"""Seconds before progress is shown."""

MOST_RARE = 5
"""Rare classes that are listed on the screen."""

UNBOUNDED = 10_000
"""Columns of a table that is written to a file or a pipe: no cell is cut."""


class Exit(IntEnum):
    """Exit codes and their meanings; `docs/cli.md` lists them."""

    DONE = 0, "done"
    FAULT = 1, "a fault of kernelpool itself; please report it"
    USAGE = 2, "the command line is wrong"
    DATA = 3, "the data cannot be used"
    MODEL = 4, "the model file cannot be used, or not for this"
    FIT = 5, "the model cannot be fitted with these settings to these data"
    OUTPUT = 6, "the output exists already, or cannot be written"
    REFUTED = 7, "`evaluate --at-most`: not certified; `check --alarm`: rows have changed"
    EXTRA = 8, "a package that the command needs is not installed"
    INTERRUPTED = 130, "interrupted"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """An int with a meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


class CommandError(Exception):
    """Ends a command with a message for its user and an exit code."""

    def __init__(self, code: Exit, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class Plain(Console):
    """rich without markup: what data hold is text. A reader that has enough is no error of rich's."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(
            stderr=stderr,
            width=None if stderr or sys.stdout.isatty() else UNBOUNDED,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
        )

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to `app.run`."""
        raise BrokenPipeError


class Screen:
    """Where a command writes. With `--json` that is one JSON object at the end and nothing else."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.silent = as_json or quiet
        self.out = Plain()
        self.err = Plain(stderr=True)
        self.note = ""
        """How far the work has come."""
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        """A line along the way, for people."""
        if not self.silent:
            self._write(text)

    def warn(self, text: str) -> None:
        """A line that should not be missed, once."""
        if text not in self.warned:
            self.warned.append(text)
            if not self.as_json:
                self._write(f"Warning: {text}", "yellow")

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Warnings of the library become lines."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            self.warn(shown(warning.message, 400))

    def complain(self, text: str) -> None:
        """An error, for people."""
        self._write(f"Error: {text}", "red")

    def _write(self, text: str, style: str | None = None) -> None:
        """A line on stderr; a closed or full one ends no command."""
        with suppress(OSError):
            self.err.print(text, style=style)

    def result(self, text: str | Table) -> None:
        """A line of the result, or a table, for people."""
        if not self.as_json:
            self.out.print(text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table of the result, for people."""
        table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None)
        for i, name in enumerate(columns):
            table.add_column(shown(name, 30), justify="right" if i else "left")
        for row in rows:
            table.add_row(*(shown(cell, 30) for cell in row))
        self.result(table)

    def lines(self, texts: Mapping[str, str]) -> None:
        """Lines of the result, each with its title."""
        width = max(map(len, texts)) + 2
        for title, text in texts.items():
            self.result(f"{title + ':':{width}}{text}")

    def answer(self, record: dict[str, Any]) -> None:
        """The result, for programs."""
        if self.as_json:
            print(json.dumps(plain(record), allow_nan=False), flush=True)

    def fail(self, code: Exit, message: str, details: dict[str, Any]) -> NoReturn:
        """End the command with an error."""
        if self.as_json:
            error = {"code": int(code), "meaning": code.meaning, "message": message, **details}
            self.answer({"error": error})
        else:
            self.complain(message)
        raise typer.Exit(int(code))

    @contextmanager
    def working(self, title: str, limit: float | None = None) -> Iterator[None]:
        """Show `note` on stderr: on a terminal in a line that vanishes at the end, elsewhere in a
        line after 2, 4, 8, ... seconds. `limit` are the seconds that may pass.
        """
        done = threading.Event()
        start = time.monotonic()
        self.note = ""

        def show() -> None:
            wait = SHOWN_AFTER
            live = Live(
                console=self.err,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            while not done.wait(wait):
                passed = time.monotonic() - start
                text = f"{title}: {passed:.0f} s" + (f", {self.note}" if self.note else "")
                text += "" if limit is None else f", at most {max(0, limit - passed):.0f} s left"
                if self.err.is_terminal and not self.err.is_dumb_terminal:
                    live.start()
                    live.update(Line(text, no_wrap=True, overflow="ellipsis"), refresh=True)
                    wait = 0.2
                else:
                    self.say(text)
                    wait = 2 * wait
            live.stop()

        thread = threading.Thread(target=show, daemon=True)
        if not self.silent:
            thread.start()
        try:
            yield
        finally:
            done.set()
            if not self.silent:
                thread.join()


# -- files -----------------------------------------------------------------------------------------


def check_free(path: str, force: bool) -> None:
    """Refuse before any work is done what could not be written after it."""
    from ...atomic import is_special

    if path == "-":
        return
    target = Path(path)
    name = shown(path, 200)
    if target.is_dir():
        raise CommandError(Exit.OUTPUT, f"{name} is a folder; name a file.")
    if not target.parent.is_dir():
        raise CommandError(Exit.OUTPUT, f"{name}: there is no folder {shown(target.parent, 200)}.")
    if os.path.lexists(path) and not force and not is_special(path):
        raise CommandError(
            Exit.OUTPUT,
            f"{name} exists already; pass --force to replace it, or name another with -o.",
        )


@contextmanager
def placed(path: str, force: bool) -> Iterator[str]:
    """A name next to `path` to write to; the file is moved to `path` at the end, or removed.

    Without `force` a file that another process has put there in the meantime is kept.
    """
    from ...atomic import atomic_path
    from ...errors import KernelpoolError, TableError  # which need scikit-learn

    check_free(path, force)
    try:
        with atomic_path(path, replace=force) as temporary:
            yield temporary
    except FileExistsError:
        check_free(path, force)
        raise
    except TableError:  # of what was read to be written
        raise
    except (OSError, KernelpoolError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {shown(reason, 600)}") from None


# -- what fit and evaluate share --------------------------------------------------------------------


def figures(metrics: Any, classes: Sequence[Any], alpha: float) -> dict[str, str]:
    """How good a model is, one line a metric."""
    auc = metrics.auc
    frequent = classes[int(metrics.confusion.sum(axis=1)[: len(classes)].argmax())]
    lines = {
        "Error": f"{metrics.rate(alpha)}; {percent(metrics.baseline)} by always predicting "
        f"{quoted(frequent)}",
        "AUC": f"{auc:.3f}" + ", a mean over the classes" * (len(classes) > 2),
        "Log-loss": f"{metrics.log_loss:.3g} (Brier score {metrics.brier:.3g})",
        "Calibration": f"probabilities are off by {percent(metrics.calibration_error)} on average",
    }
    rare = [
        f"{quoted(classes[row['code']])} {percent(row['share'])} of the rows, recall "
        f"{percent(row['recall'])}, average precision {row['average_precision']:.3f}"
        for row in metrics.rare()[:MOST_RARE]
    ]
    if auc != auc:  # rows of one class
        del lines["AUC"]
    return lines | ({"Rare classes": "; ".join(rare)} if rare else {})


def check_report(path: str, force: bool) -> None:
    """Refuse before any work what could not be written after it."""
    if find_spec("jinja2") is None or find_spec("matplotlib") is None:
        raise CommandError(
            Exit.EXTRA,
            "A report needs jinja2 and matplotlib: pip install '.[report]' in kernelpool's folder.",
        )
    check_free(path, force)


def write_page(
    results: Any,
    rows: str,
    target: str | None,
    path: str,
    force: bool,
    screen: Screen,
    command: str | None = None,
) -> None:
    """The report of results on rows, which have a name."""
    from ..report import write_page as write

    facts = {"Rows": rows, "Target": target or ""}
    with placed(path, force) as temporary, screen.working("Writing the report"):
        write(results, temporary, facts=facts, command=command)
    screen.result(f"Report: {shown(path, 400)}")


# -- options ---------------------------------------------------------------------------------------

Unlabeled = StrEnum("Unlabeled", ["REFUSE", "DROP", "USE"])
OutputFormat = StrEnum("OutputFormat", ["CSV", "PARQUET", "ARROW", "JSONL"])
Precision = StrEnum("Precision", ["MIXED", "FLOAT32", "FLOAT64"])


def given(metavar: str, help: str) -> Any:
    """An argument without a default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(names: str, help: str, metavar: str | None = None, **limits: Any) -> Any:
    """An option by its names, which spaces separate."""
    return typer.Option(*names.split(), help=help, metavar=metavar, **limits)


SHARE: dict[str, Any] = {"metavar": "SHARE", "min": 0, "max": 1}
"""What an option takes that is a share."""

Data = Annotated[
    str, given("DATA", "CSV, Parquet, Arrow or Excel: a file, a folder of them, or -.")
]
ModelPath = Annotated[str, given("MODEL", "A model file that `kernelpool fit` wrote.")]
Target = Annotated[
    str | None,
    option("--target -t", "Column that holds the classes; the one of fit unless given.", "COLUMN"),
]
TEXT = "Text files: decimal=, encoding=NAME delimiter=C missing=WORD header=no (repeatable)."
Text = Annotated[list[str] | None, option("--text", TEXT, "NAME=VALUE")]
Confidence = Annotated[
    float, option("--confidence", "Confidence of intervals.", "SHARE", min=0.5, max=0.999999)
]
Reject = Annotated[bool, option("--reject", "Reject rows that are ambiguous or novel.")]
AMBIGUITY = "Probability of an error to accept. [--reject: 0.2]"
Ambiguity = Annotated[float | None, option("--ambiguity", AMBIGUITY, **SHARE)]
NOVELTY = "Ordinary rows to call novel. [--reject: 0.01]"
Novelty = Annotated[float | None, option("--novelty", NOVELTY, **SHARE)]
ROW_NAMES = "Identify rows by this column as well (repeatable)."
Keep = Annotated[list[str] | None, option("--keep", ROW_NAMES, "COLUMN")]
Force = Annotated[bool, option("--force -f", "Replace files that exist.")]
Json = Annotated[bool, option("--json", "Print one JSON object instead of text.")]
Quiet = Annotated[bool, option("--quiet -q", "Print nothing but results and warnings.")]


def read_options(pairs: Sequence[str] | None) -> Any:
    """`--text NAME=VALUE` of text files, checked, as a `ReadOptions`."""
    from ...tables.files import ReadOptions  # which needs scikit-learn

    style: dict[str, Any] = {"missing": ()}
    for pair in pairs or ():
        name, _, value = pair.partition("=")
        value = "\t" if value in ("tab", "\\t") else value
        valid = {
            "delimiter": len(value.encode(errors="replace")) == 1,
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
            style["missing"] = (*style["missing"], value)
        else:
            style[name] = value == "yes" if name == "header" else value
    return ReadOptions(**style)


def _is_codec(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return True
