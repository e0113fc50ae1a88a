"""The tutorial prints what it shows, and the reference lists the options there are."""

import enum
import re
import runpy
import typing
from pathlib import Path

import pytest

from kernelpool.app.cli.app import COMMANDS, load_command
from kernelpool.app.cli.console import Exit

from .conftest import Ran

DOCS = Path(__file__).resolve().parents[3] / "docs"
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
LOOSE = re.compile(
    r"(?<=for # classes in # features).*|^Fitting.*|^\w.*: # s(, .*)?$|(?<=#)\.(?= by)"
)
"""What a choice on held-out rows may decide differently on another machine."""

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the docs are not part of this installation"
)


def lines(text):
    """Lines without numbers and without the space between words; stdout and stderr may mix."""
    plain = (" ".join(LOOSE.sub("", NUMBER.sub("#", line)).split()) for line in text.splitlines())
    return sorted({line for line in plain if line})


def typed(block, capsys):
    """Runs the lines of a block in this process; what they print."""
    block = re.sub(
        r"cat > (\S+) <<END\n(.*?)^END\n",
        lambda found: Path(found[1]).write_text(found[2]) and "",
        block,
        flags=re.M | re.S,
    )
    out = ""
    for line in block.splitlines():
        command, *words = line.split()
        if command == "kernelpool":
            ran = Ran(words)
            assert ran.code == 0, (line, ran.err)
            out += ran.out + ran.err
        elif command == "python":
            capsys.readouterr()
            runpy.run_path(words[0])
            out += capsys.readouterr().out
        else:
            assert (command, words[0]) == ("head", "-3"), line
            out += "".join(Path(words[1]).read_text().splitlines(True)[:3])
    return out


def test_the_tutorial_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    for name in ("jinja2", "onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"the tutorial needs {name}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    shown = ""
    checked = 0
    for kind, text in re.findall(r"^```(sh|text)\n(.*?)^```$", page, re.M | re.S):
        if kind == "text":
            assert lines(shown) == lines(text)
            checked += 1
        elif not text.startswith("pip install"):
            shown = typed(text, capsys)
    assert checked >= 8


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
            value = parameter.metavar or choices(command.callback, parameter.name)
            value = "" if parameter.is_flag else f" {value}"
            names = ", ".join(f"`{o}{value if o.startswith('--') else ''}`" for o in parameter.opts)
        text = (parameter.help or "").replace("|", "\\|")
        default = parameter.default
        if parameter.param_type_name != "argument" and default is not None and default is not False:
            text += f" Default: `{getattr(default, 'value', default)}`."
        rows.append(f"| {names} | {text} |")
    return "\n".join(rows)


def choices(callback, name):
    hint = typing.get_type_hints(callback)[name]
    kinds = [k for k in (hint, *typing.get_args(hint)) if isinstance(k, enum.EnumType)]
    return "{" + ",".join(choice.value for choice in kinds[0]) + "}" if kinds else name.upper()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_lists_every_option(name):
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = page.split(f"## {name}\n", 1)[1].split("\n## ", 1)[0]
    assert options_of(name) in section, f"docs/cli.md, section {name}:\n\n{options_of(name)}"


def test_the_reference_lists_every_exit_code():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for code in Exit:
        assert f"| {code.value} | {code.meaning} |" in page
