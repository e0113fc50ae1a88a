"""The commands of the README can be typed as they stand after `make demo`."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not installed")


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)


def test_commands_can_be_typed(tmp_path, monkeypatch):
    runner = pytest.importorskip("typer.testing", reason="the command line needs typer").CliRunner()
    pytest.importorskip("pyarrow", reason="the command line needs pyarrow")
    pytest.importorskip("jinja2", reason="reports need jinja2")
    from kernelpool.app.cli.app import app
    from kernelpool.app.cli.demo import write_tables

    write_tables(tmp_path / "kernelpool-demo")
    monkeypatch.chdir(tmp_path)
    typed = 0
    for line in "".join(blocks()).splitlines():
        command, *words = line.split("#")[0].split()
        if command == "cd":
            monkeypatch.chdir(words[0])
        elif command == "kernelpool":
            result = runner.invoke(app, words)
            assert result.exit_code == 0, (line, result.output)
            typed += 1
    assert typed >= 2


def test_targets_of_make_are_there():
    targets = re.findall(r"^make (\w+)", "".join(blocks()), re.M)
    makefile = (README.parent / "Makefile").read_text()
    assert {"demo", "test"} <= set(targets)
    assert all(f"\n{target}:" in makefile for target in targets)


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (README.parent / link).exists()]
    assert not missing
