"""The tutorial does what it says, and the reference lists the options there are."""

import enum
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from kernelpool.app.cli.app import COMMANDS, load_command
from kernelpool.app.cli.output import MEANINGS, Exit

DOCS = Path(__file__).resolve().parents[3] / "docs"
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
LOOSE = re.compile(
    r"\b(spherical|diagonal|full|tied)\b|(?<=sweep)s"
    r"|(?<=are weighted and )\w+: .*(?= Held-out)|(?<=loss #, )(kept|given up)( after one fold)?(?=, #)|; pool #(?=;)"
)
"""What the automatic choice may see differently on another machine: shapes of kernels, and who is heard in a pool."""

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the docs are not part of this installation"
)


def blocks(path):
    return re.findall(r"^```(sh|text)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)


def words(text):
    """Lines without numbers, without what goes with them, and without the space between words; stdout and stderr may mix."""
    lines = [" ".join(LOOSE.sub("", NUMBER.sub("#", line)).split()) for line in text.splitlines()]
    return sorted(line for line in lines if line and not set(line) <= {"─", " "})


def test_the_tutorial_runs_and_prints_what_it_shows(tmp_path):
    for name in ("jinja2", "onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"the tutorial needs {name}")
    bin = tmp_path / "bin"
    bin.mkdir()
    for name, command in (("python", ""), ("kernelpool", " -m kernelpool")):
        (bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n')
        (bin / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin}:{os.environ['PATH']}",
        "COLUMNS": "120",
        "OPENBLAS_NUM_THREADS": "1",
    }
    found = blocks(DOCS / "tutorial.md")
    said = None
    checked = 0
    for kind, text in found:
        if kind == "sh":
            if text.startswith("pip install"):
                continue
            ran = subprocess.run(
                ["bash", "-e", "-c", text],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert ran.returncode == 0, text + ran.stderr
            said = ran.stdout + ran.stderr
        else:
            assert words(said) == words(text)
            checked += 1
    assert checked >= 8
    assert "novel" in said or (tmp_path / "tumors.html").exists()


def options_of(name):
    """The table of a command's options, as `docs/cli.md` must have it."""
    command = load_command(name)
    rows = ["| | |", "|---|---|"]
    for parameter in command.params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            given = parameter.opts + parameter.secondary_opts
            value = (
                ""
                if parameter.is_flag
                else f" {parameter.metavar or value_of(command.callback, parameter.name)}"
            )
            names = ", ".join(
                f"`{option}{value if option.startswith('--') else ''}`" for option in given
            )
        text = (parameter.help or "").replace("|", "\\|")
        default = parameter.default
        if parameter.param_type_name != "argument" and default is not None and default is not False:
            text += f" Default: `{getattr(default, 'value', default)}`."
        rows.append(f"| {names} | {text} |")
    return "\n".join(rows)


def value_of(callback, name):
    """Choices, or the name of the parameter."""
    hint = typing.get_type_hints(callback)[name]
    kinds = [
        k
        for k in (hint, *typing.get_args(hint))
        if isinstance(k, type) and issubclass(k, enum.Enum)
    ]
    return "{" + ",".join(choice.value for choice in kinds[0]) + "}" if kinds else name.upper()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_lists_every_option(name):
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert f"## {name}\n" in page
    section = page.split(f"## {name}\n", 1)[1].split("\n## ", 1)[0]
    assert options_of(name) in section, (
        f"docs/cli.md, section {name}, must hold this table:\n\n{options_of(name)}"
    )


def test_the_reference_lists_every_exit_code():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for code in Exit:
        assert f"| {code.value} | {MEANINGS[code]} |" in page
