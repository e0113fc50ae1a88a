"""The commands as a whole: help, exit codes, JSON, the demo; and that nothing in a file can run."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelpool
import kernelpool.__main__ as entry
from kernelpool.app.cli import demo
from kernelpool.app.cli.app import ELSEWHERE, app
from kernelpool.app.cli.console import Exit
from kernelpool.text import shown

from .tables import NAMES, QUICK, colors, labels, table, write_csv

FORMULA = "=cmd|' /C calc'!A0"
HTML = "<script>alert(1)</script>"


def test_version_and_mistakes(run):
    assert run("--version").out == f"kernelpool {kernelpool.__version__}\n"
    run("frobnicate", code=2)
    for name, instead in ELSEWHERE.items():
        assert instead in run(name, "x", code=2).text
    run("fit", code=2)


def test_with_json_stdout_is_one_object_whatever_happens(run):
    write_csv("d.csv", NAMES, colors())
    ran = run("fit", "d.csv", "-t", "color", *QUICK, "--json")
    assert ran.out.count("\n") == 1
    assert ran.json["model"] == "d.safetensors"
    assert ran.err == ""
    ran = run("fit", "d.csv", "-t", "colour", *QUICK, "--json", "-f", code=3)
    error = ran.json["error"]
    assert (error["code"], error["meaning"]) == (3, Exit.DATA.meaning)
    assert error["message"].startswith("d.csv: there is no column 'colour' for the target; did you")
    assert ran.err == ""


def test_help_needs_no_scikit_learn():
    code = "import sys; from kernelpool.app.cli.app import run; run(sys.argv[1:]); "
    code += "print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert "kernelpool.app.cli.app" in loaded
    assert not loaded & {"sklearn", "scipy", "pyarrow"}


def test_the_demo_ends_with_a_model_and_a_report(run, monkeypatch):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    make = demo.make_clouds
    monkeypatch.setattr(demo, "make_clouds", lambda n, random_state: make(300, random_state=0))
    ran = run("demo")
    assert "kernelpool-demo/clouds.safetensors" in ran.out
    assert kernelpool.load("kernelpool-demo/clouds.safetensors").means_.shape == (12, 2)
    assert "Clouds" in Path("kernelpool-demo/report.html").read_text(encoding="utf-8")
    monkeypatch.chdir("kernelpool-demo")
    text = run("fit", "tumors.csv", "--target", "kind", *QUICK).text
    assert "Categories: 'size' (3)" in text
    assert "missing cells" in text
    words = ("predict", "tumors.safetensors", "new.csv", "--keep", "id", "--reject")
    rows = run(*words).out.splitlines()
    assert rows[3].startswith("C,,novel,")
    assert rows[4].startswith("D,malignant,accepted,")  # from the cells that are known


def test_without_its_packages_the_command_says_what_to_install(monkeypatch, capsys):
    bare = {"typer", "pyarrow"}
    monkeypatch.setattr(entry, "find_spec", lambda name: None if name in bare else object())
    assert entry.main(["fit", "d.csv"]) == 8
    text = capsys.readouterr().err
    assert "needs typer, pyarrow" in text
    assert "pip install '.[cli]'" in text


# -- nothing runs, breaks out of its place or paints the screen ------------------------------------


@pytest.mark.parametrize(
    "name", ['quote\'d "twice" ü数.csv', "new\nline.csv", "[red]markup[blink];%s{0}.csv", "-d.csv"]
)
def test_odd_file_names(run, name):
    write_csv(name, NAMES, colors())
    ran = run("fit", "-t", "color", *QUICK, "--", name)
    model = str(Path(name).with_suffix(".safetensors"))
    assert Path(model).exists()
    assert shown(model) in ran.out
    assert f"{shown(name)}: 90 rows" in ran.err
    run("predict", "-o", f"out {name}", "--", model, name)
    assert Path(f"out {name}").exists()


def test_escape_sequences_and_html_are_text(run):
    evil = f"\x1b[31mred\x1b]0;title\x07{HTML}"
    rows = [[a, b, evil if c == "red" else c] for a, b, c in colors()]
    write_csv("d.csv", ["a", evil, "color"], rows)
    ran = run("fit", "d.csv", "-t", "color", *QUICK, "--report", "r.html")
    ran.err += run("evaluate", "d.safetensors", "d.csv").text
    assert "\x1b[31mred" not in ran.out + ran.err
    assert "\x07" not in ran.out + ran.err
    assert "\\x1b[31mred" in ran.err
    assert HTML not in Path("r.html").read_text(encoding="utf-8")
    assert "[bold]" in run("fit", "d.csv", "-t", "[bold]", *QUICK, "-f", code=3).err


def test_formulas_are_made_harmless_in_csv_alone(run):
    notes = {"red": "@SUM(1)", "blue": "-5", "green": "+"}
    rows = [[a, b, c.replace("red", FORMULA), notes[c]] for a, b, c in colors()]
    write_csv("d.csv", ["=A1", "b", "color", "+note"], rows)
    run("fit", "d.csv", "-t", "color", *QUICK, "--drop", "+note")
    words = ("predict", "d.safetensors", "d.csv", "--keep", "+note")
    out = run(*words).out
    cells = [cell.lstrip('"') for line in out.splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if cell[:1] in ("=", "@")]
    assert out.splitlines()[0].startswith("'+note,label,probability_=cmd")
    assert "'@SUM(1)," in out
    assert f"'{FORMULA}" in out
    assert "\n-5," in out  # a number is no formula
    raw = run(*words, "--raw").out
    assert "\n@SUM(1)," in raw
    assert f",{FORMULA}," in raw
    assert '"@SUM(1)"' in run(*words, "--format", "jsonl").out


@pytest.mark.parametrize(
    "summary",
    [
        {"target": 5, "text": 3, "held_out": [1]},
        {"target": "color", "text": [{"decimal": 1}, None], "first_rows": 7},
        {"target": ["color"], "text": "decimal=,", "held_out": {"error": "x"}},
    ],
)
def test_what_a_model_file_says_of_its_training_is_not_trusted(run, summary):
    rows = colors()
    model = kernelpool.SharedKernelClassifier(3, training="em", random_state=0)
    kernelpool.save(model.fit(table(rows), labels(rows)), "m.st", summary=summary)
    data = write_csv("d.csv", NAMES, rows)
    for words in (
        ("evaluate", "m.st", data, "-t", "color", "--reject"),
        ("predict", "m.st", data, "--sets", "0.1"),
        ("check", "m.st", data),
        ("info", "m.st"),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code in (0, 3, 4), (words, result.output, result.exception)
