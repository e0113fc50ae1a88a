"""The commands together, and how errors become exit codes.

A command is imported when it is called, so that `--help` and `--version` need no scikit-learn. What
a command raises for its user (`CommandError`, `TableError`) is printed without a traceback, as JSON
with `--json`, and ends the process with its code. Anything else is a fault of ours and keeps its
traceback.
"""

import functools
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ... import __version__
from .console import CommandError, Exit, Screen

DEMO_FOLDER = "Folder for the model and the report."
EPILOG = "\b\nExit codes:\n" + "\n".join(f"{code.value:>3}: {code.meaning}" for code in Exit)
COMMANDS = {
    "fit": ("fit", "Fit a model to a table and write it to a file."),
    "predict": ("predict", "Predict the classes of new rows."),
    "evaluate": ("evaluate", "Measure the error of models on rows whose classes are known."),
    "report": ("evaluate", "Write a report (HTML) on a model and rows."),
    "check": ("evaluate", "Test whether new rows are like those that a model was fitted to."),
    "export": ("model", "Write a model as ONNX, to be run by onnxruntime and others."),
    "info": ("model", "Describe a model file."),
    "demo": ("app", "Take a first look, on generated data, in under a minute."),
}
"""The commands, their modules, and the first sentences of their docstrings."""

ELSEWHERE = {
    "explain": "kernelpool predict MODEL DATA --explain",
    "compare": "kernelpool evaluate MODEL MODEL DATA",
    "certify": "kernelpool evaluate MODEL DATA --at-most ERROR",
    "explore": "kernelpool report MODEL DATA",
    "sample": "kernelpool.load(MODEL).sample(n), from Python",
    "size": "kernelpool.bounds.test_size, from Python",
    "train": "kernelpool fit DATA --target COLUMN",
    "test": "kernelpool evaluate MODEL DATA",
}
"""What to type in place of commands that one may look for."""


def load_command(name: str) -> TyperCommand:
    """The command itself, imported."""
    single = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    module = import_module(f".{COMMANDS[name][0]}", __package__)
    single.command(name)(guarded(getattr(module, name)))
    command = typer.main.get_command(single)
    assert isinstance(command, TyperCommand)
    return command


class Commands(TyperGroup):
    """The commands by name; their help lines are known without importing them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing:  # shell completion
            return load_command(cmd_name)
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
        if args[0] in ELSEWHERE:
            ctx.fail(f"There is no command {args[0]!r}. Instead: {ELSEWHERE[args[0]]}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


app = typer.Typer(
    name="kernelpool",
    cls=Commands,
    help="Classifiers that pool kernels: fit them to tables, measure how good they are, and let "
    "them reject rows that are ambiguous or novel.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kernelpool {__version__}")
        raise typer.Exit()


def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


app.callback()(_common)


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help=DEMO_FOLDER, metavar="FOLDER")
    ] = "kernelpool-demo",
) -> None:
    """Take a first look, on generated data, in under a minute.

    Compares a pool and scikit-learn's classifiers, shows what sharing kernels does to the
    error, and writes a model, a report and a table to try.
    """
    from .demo import run as run_demo

    try:
        run_demo(output)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(Exit.OUTPUT, f"{output}: {reason}.") from None


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors for users become messages and exit codes."""

    @functools.wraps(command)
    def guard(*args: Any, **kwargs: Any) -> None:
        from ...errors import TableError, without_column_warnings

        screen = Screen(bool(kwargs.get("as_json")))
        try:
            with without_column_warnings():  # commands have their own
                command(*args, **kwargs)
        except CommandError as error:
            screen.fail(error.code, str(error), error.details)
        except TableError as error:
            screen.fail(Exit.DATA, str(error), error.details)
        except KeyboardInterrupt as error:
            screen.fail(Exit.INTERRUPTED, f"Interrupted{f': {error}' if str(error) else ''}.", {})
        except BrokenPipeError:  # whoever reads the output has enough
            raise typer.Exit(Exit.DONE) from None
        except typer.Abort:  # Ctrl-C or the end of input at a question
            screen.fail(Exit.INTERRUPTED, "Interrupted: nothing was saved.", {})

    return guard


def run(arguments: list[str]) -> int:
    """The command line as a process: streams that are closed or full end it cleanly."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (as long as the process lives)
    try:
        app(arguments, prog_name="kernelpool")
        code: int = Exit.DONE
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except OSError as error:
        if error.filename is not None:
            raise
        code = _stdout_failed(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _stdout_failed(error)
    return int(code)


def _stdout_failed(error: OSError) -> int:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())  # or the end of the process would flush it again
    if isinstance(error, BrokenPipeError):
        return Exit.DONE
    Screen().complain(f"stdout: {(error.strerror or str(error)).lower()}.")
    return Exit.OUTPUT
