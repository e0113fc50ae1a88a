"""The commands together, and how errors become exit codes.

Whatever a command raises for its user is a `CommandError`: it is printed without a traceback, as JSON where `--json` asks for
it, and ends the process with its code. Anything else is a fault of ours and keeps its traceback.
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from .. import __version__
from . import certify, demo, evaluate, export, fit, options, predict, report, sample
from .screen import MEANINGS, CommandError, Exit, Screen

EPILOG = "Exit codes:\n\n" + "\n\n".join(f"- {code.value}: {MEANINGS[code]}" for code in Exit)

app = typer.Typer(
    name="kernelpool",
    help="Classifiers that pool kernels: fit them to tables, see how good they are, and let them say when they do not know.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kernelpool {__version__}")
        raise typer.Exit()


def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for the model and the report.", metavar="FOLDER")
    ] = demo.FOLDER,
) -> None:
    """Take a first look, on generated data, in under a minute."""
    try:
        demo.run(output)
    except OSError as error:
        raise CommandError(Exit.OUTPUT, f"{output}: {(error.strerror or str(error)).lower()}.") from None


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors for users become messages and exit codes."""

    @functools.wraps(command)
    def guard(*args: Any, **kwargs: Any) -> None:
        screen = Screen(bool(kwargs.get("as_json")))
        try:
            command(*args, **kwargs)
        except CommandError as error:
            _fail(screen, error.code, error.message, error.details)
        except KeyboardInterrupt as error:
            _fail(screen, Exit.INTERRUPTED, f"Interrupted{f': {error}' if str(error) else ''}.", {})
        except typer.Abort:  # Ctrl-C or the end of input where a question was asked
            _fail(screen, Exit.INTERRUPTED, "Interrupted: nothing was saved.", {})
        except BrokenPipeError:  # whoever read our output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(Exit.OUTPUT) from None

    return guard


def _fail(screen: Screen, code: Exit, message: str, details: dict[str, Any]) -> None:
    if screen.as_json:
        screen.answer({"error": {"code": int(code), "meaning": MEANINGS[code], "message": message, **details}})
    else:
        from .screen import _console

        console = _console(stderr=True)
        console.print("Error: ", style="bold red", end="", markup=False, highlight=False)
        console.print(message, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(int(code))


app.callback()(_common)
for _name, _command in (
    ("fit", fit.fit),
    ("predict", predict.predict),
    ("evaluate", evaluate.evaluate),
    ("report", report.report),
    ("sample", sample.sample),
    ("certify", certify.certify),
    ("export", export.export),
    ("demo", _demo),
):
    app.command(_name)(guarded(_command))

__all__ = ["app", "options"]
