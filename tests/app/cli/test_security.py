"""Nothing in a file name, a cell, a column or a class runs, breaks out of its place or paints the screen."""

import ast
import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelpool.app.cli
from kernelpool.app.cli.app import app
from kernelpool.app.cli.output import CommandError, placed
from kernelpool.text import shown

from .tables import QUICK, colors, write_csv

NAMES = ["a", "b", "color"]
FORMULA = "=cmd|' /C calc'!A0"
HTML = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "name",
    [
        "with space.csv",
        'quote\'d "twice".csv',
        "new\nline.csv",
        "ünïcödé 数据.csv",
        "[red]markup[blink].csv",
        "semi;colon&.csv",
        "~.csv",
        "%s{0}.csv",
    ],
)
def test_odd_file_names(run, name):
    write_csv(name, NAMES, colors())
    ran = run("fit", name, "-t", "color", *QUICK)
    model = str(Path(name).with_suffix(".safetensors"))
    assert Path(model).exists()
    assert f"Model: {shown(model)}\n" in ran.out
    assert f"{shown(name)}: 90 rows" in ran.err
    run("predict", model, name, "-o", f"out {name}")
    assert Path(f"out {name}").exists()
    ran = run("fit", f"no such {name}", "-t", "color", *QUICK, code=3)
    assert shown(f"no such {name}", 200) in ran.err.replace("\n", "") or "\n" in name


def test_names_that_begin_with_a_dash(run):
    write_csv("-data.csv", NAMES, colors())
    run("fit", "--target", "color", *QUICK, "--", "-data.csv")
    assert Path("-data.safetensors").exists()
    run("predict", "-o", "./-out.csv", "--", "-data.safetensors", "-data.csv")
    assert Path("-out.csv").exists()


def test_escape_sequences_do_not_reach_the_screen(run):
    evil = "\x1b[31mred\x1b]0;title\x07"
    write_csv(
        "d.csv", ["a", evil, "color"], [[a, b, evil if c == "red" else c] for a, b, c in colors()]
    )
    ran = run("fit", "d.csv", "-t", "color", *QUICK)
    assert "\x1b[31mred" not in ran.out + ran.err
    assert "\x07" not in ran.out + ran.err
    assert "\\x1b[31mred" in ran.err
    ran = run("evaluate", "d.safetensors", "d.csv")
    assert "\x07" not in ran.out + ran.err
    write_csv("e.csv", ["a", evil], [["1", "\x1b[2J"]])
    ran = run("predict", "d.safetensors", "e.csv", code=3)
    assert "\x1b[2J" not in ran.err
    assert "[bold]" in run("fit", "d.csv", "-t", "[bold]", *QUICK, "-f", code=3).err


def test_formulas_are_made_harmless_in_csv_alone(run):
    rows = [
        [a, b, c.replace("red", FORMULA), "@SUM(1)" if c == "red" else "-5" if c == "blue" else "+"]
        for a, b, c in colors()
    ]
    write_csv("d.csv", ["=A1", "b", "color", "+note"], rows)
    run("fit", "d.csv", "-t", "color", *QUICK, "--drop", "+note")
    words = ("predict", "d.safetensors", "d.csv", "--keep", "+note")
    csv = run(*words).out
    assert not [
        cell
        for line in csv.splitlines()
        for cell in line.split(",")
        if cell.lstrip('"')[:1] in ("=", "@")
    ]
    assert csv.splitlines()[0].startswith("'+note,label,probability_=cmd")
    assert "'@SUM(1)," in csv
    assert f"'{FORMULA}" in csv
    assert "\n-5," in csv  # a number is no formula
    assert "\n+," in csv
    raw = run(*words, "--raw").out
    assert "\n@SUM(1)," in raw
    assert f",{FORMULA}," in raw
    found = run(*words, "--format", "jsonl").out
    assert '"@SUM(1)"' in found
    drawn = run("sample", "d.safetensors").out
    assert drawn.startswith("'=A1,b,color\n")


def test_html_in_names_and_classes_is_text(run):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    write_csv(
        "d.csv", [HTML, "b", f"y{HTML}"], [[a, b, c.replace("red", HTML)] for a, b, c in colors()]
    )
    run("fit", "d.csv", "-t", f"y{HTML}", *QUICK, "--report", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert HTML not in page
    assert "&lt;script&gt;alert(1)" in page


def test_classes_and_columns_with_every_awkward_character_come_back(run):
    odd = 'comma, "quote"\nnewline'
    write_csv("d.csv", ["a", odd, "color"], [[a, b, c.replace("red", odd)] for a, b, c in colors()])
    run("fit", "d.csv", "-t", "color", *QUICK)
    run("predict", "d.safetensors", "d.csv", "-o", "out.csv")
    import csv as csv_module

    with open("out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv_module.reader(file))
    assert f"probability_{odd}" in rows[0]
    assert [row[0] for row in rows[1:]].count(odd) == 30


def test_pickles_are_not_read(run, tmp_path):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "hit",)

    write_csv("d.csv", ["a", "b"], [[1, 2]])
    for name in ("evil.pkl", "evil.safetensors", "evil.joblib"):
        Path(name).write_bytes(pickle.dumps(Evil()))
        run("predict", name, "d.csv", code=4)
        run("fit", name, "-t", "a", *QUICK, "-o", "x.st", code=3)
    assert not (tmp_path / "hit").exists()


def test_the_command_line_has_no_eval_and_no_pickle():
    forbidden = {"eval", "exec", "compile", "__import__"}
    for path in Path(kernelpool.app.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, path
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "joblib", "marshal", "shelve", "subprocess", "yaml"} & set(
                    names
                ), path


def test_what_a_model_file_says_of_itself_is_not_trusted(run):
    import pyarrow as pa

    rows = colors()
    x = pa.table({"a": [float(r[0]) for r in rows], "b": [float(r[1]) for r in rows]})
    model = kernelpool.SharedKernelClassifier.prbf(3, random_state=0).fit(x, [r[2] for r in rows])
    data = write_csv("d.csv", NAMES, rows)
    for i, summary in enumerate(
        (
            {
                "target": 5,
                "features": "a",
                "dropped": "x",
                "data": 3,
                "split": {"share": "x"},
                "held_out_densities": [1],
            },
            {
                "target": "color",
                "features": [{"name": "a", "kind": "category"}, 3],
                "held_out_densities": {"n_rows": "x"},
            },
            {
                "target": "color",
                "features": [{"name": "c", "kind": "number"}],
                "data": {"fingerprint": 1, "n_rows": "x"},
            },
        )
    ):
        kernelpool.save(model, f"{i}.st", summary=summary)
        for words in (
            ("evaluate", f"{i}.st", data, "-t", "color", "--reject"),
            ("predict", f"{i}.st", data, "--drop", "color"),
        ):
            result = CliRunner().invoke(app, words)
            assert result.exit_code in (0, 3, 4), (i, words, result.output, result.exception)


def written(path, force, text, before_the_end=lambda: None):
    with placed(str(path), force) as beside:
        Path(beside).write_text(text)
        before_the_end()


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "out.csv"
    with pytest.raises(CommandError, match="exists already"):
        written(target, False, "ours", lambda: target.write_text("theirs"))
    assert target.read_text() == "theirs"
    with pytest.raises(ZeroDivisionError):
        written(target, True, "half", lambda: 1 / 0)
    assert target.read_text() == "theirs"
    written(target, True, "ours")
    assert target.read_text() == "ours"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
