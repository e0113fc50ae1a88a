"""The commands as a whole: help, exit codes, JSON, progress, and the demo."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import kernelpool
from kernelpool.app.cli import demo
from kernelpool.app.cli.app import COMMANDS, as_options, load_command
from kernelpool.app.cli.output import MEANINGS, Exit, Screen
from kernelpool.text import plain, plural, shown

from .tables import QUICK, colors, write_csv


def test_help_names_every_command_and_exit_code(run):
    text = run("--help").text
    for name in COMMANDS:
        assert f" {name} " in text
    for code in Exit:
        assert f"{code.value}: " in text
    assert set(MEANINGS) == set(Exit)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run, name):
    text = run(name, "--help").text
    assert f"Usage: kernelpool {name}" in text
    assert load_command(name).callback.__doc__.split("\n")[0] == COMMANDS[name]
    assert COMMANDS[name] in text
    if name != "demo":
        assert f"Example: kernelpool {name}" in text
        assert "--json" in text


def test_version_and_mistakes(run):
    assert run("--version").out == f"kernelpool {kernelpool.__version__}\n"
    run("frobnicate", code=2)
    run("fit", code=2)
    run("fit", "d.csv", "-t", "y", "--model", "perceptron", code=2)
    run("fit", "d.csv", "-t", "y", "--holdout", "2", code=2)
    assert "one character" in run("fit", "d.csv", "-t", "y", "--delimiter", "::", code=2).err
    assert (
        "nobody knows 'klingon'"
        in run("fit", "d.csv", "-t", "y", "--encoding", "klingon", code=2).err
    )


def test_with_json_stdout_is_one_object_whatever_happens(run):
    write_csv("d.csv", ["a", "b", "color"], colors())
    ran = run("fit", "d.csv", "-t", "color", *QUICK, "--json")
    assert ran.out.count("\n") == 1
    assert ran.json["model"] == "d.safetensors"
    assert ran.err == ""
    ran = run("fit", "d.csv", "-t", "colour", *QUICK, "--json", "-f", code=3)
    assert ran.json["error"]["code"] == 3
    assert ran.json["error"]["meaning"] == MEANINGS[Exit.DATA]
    said = "d.csv: there is no column 'colour' for the target; did you mean 'color'? There are 'a', 'b', 'color'."
    assert ran.json["error"]["message"] == said
    assert ran.err == ""


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_needs_no_scikit_learn(words):
    code = "import sys; from kernelpool.app.cli.app import run; run(sys.argv[1:]); print(*sorted(m for m in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=60
    )
    assert "kernelpool" in ran.stdout
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert "kernelpool.app.cli.app" in loaded
    assert not loaded & {"sklearn", "scipy", "pyarrow"}


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (
            "Leave such columns out with drop=, or pass encode=True.",
            "Leave such columns out with --drop, or pass --encode.",
        ),
        ("Name it, or pass drop=''.", "Name it, or pass --drop ''."),
        (
            "Pass as_text=True, header=False or encoding='latin-1'.",
            "Pass --text-target, --no-header or --encoding latin-1.",
        ),
        ("Leave it out with drop='a b'.", "Leave it out with --drop 'a b'."),
    ],
)
def test_advice_names_options(advice, said):
    assert as_options(advice) == said


def test_info_says_what_is_in_a_model_file(run, fitted):
    text = run("info", fitted[1]).text
    for part in (
        "3 full Gaussian kernels",
        "'blue', 'green', 'red'",
        "2: 'a', 'b'",
        "Target: color",
        "Density: known",
    ):
        assert part in text
    found = run("info", fitted[1], "--json").json
    assert found["classes"] == ["blue", "green", "red"]
    assert found["features"] == [{"name": "a", "kind": "number"}, {"name": "b", "kind": "number"}]
    assert found["chosen"]["n_kernels"] == 3
    assert found["held_out"]["n_rows"] == 18
    assert "is not a model file" in run("info", fitted[0], code=4).err


def test_quiet_says_results_alone(run):
    write_csv("d.csv", ["a", "b", "color"], colors())
    assert run("fit", "d.csv", "-t", "color", *QUICK, "-q").err == ""


def test_plain_data_for_json():
    import numpy as np

    found = plain(
        {
            "a": np.float64("nan"),
            "b": np.arange(2),
            "c": [np.int8(3), float("inf")],
            "d": None,
            5: "x",
            "e": Path("p"),
        }
    )
    assert found == {"a": None, "b": [0, 1], "c": [3, None], "d": None, "5": "x", "e": "p"}
    json.dumps(found, allow_nan=False)


def test_shown_is_printable_and_short():
    assert shown("a\x1b[0m\n\udc80é") == "a\\x1b[0m\\n\\udc80é"
    assert len(shown("x" * 100)) == 60
    assert (plural(1, "row"), plural(2000, "row")) == ("1 row", "2,000 rows")


def test_no_bar_before_two_seconds_nor_off_a_terminal(capsys, monkeypatch):
    from kernelpool.app.cli import output

    assert output.BAR_AFTER == 2.0
    with Screen().working("Work") as bar:
        bar.at(1)
    assert not bar.visible
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Screen().working("Work") as bar:
        assert bar.visible
        bar.at(1)
        assert bar._bar is None
    assert capsys.readouterr().err == ""


def test_the_demo_ends_with_a_model_and_a_report(run, monkeypatch, capsys):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    monkeypatch.setattr(demo, "N_KERNELS", (8,))
    make = demo.make_clouds
    monkeypatch.setattr(
        demo, "make_clouds", lambda n, random_state: make(500, random_state=random_state)
    )
    ran = run("demo")
    assert "kernelpool-demo/clouds.safetensors" in ran.out
    assert "kernelpool-demo/report.html" in ran.out
    assert kernelpool.load("kernelpool-demo/clouds.safetensors").means_.shape == (12, 2)
    assert "Clouds" in Path("kernelpool-demo/report.html").read_text(encoding="utf-8")
    monkeypatch.chdir("kernelpool-demo")
    told = run("fit", "tumors.csv", "--target", "kind", *QUICK).text
    assert "'size' (3 words)" in told
    assert "missing cells in" in told
    rows = run(
        "predict", "tumors.safetensors", "new.csv", "--keep", "id", "--reject"
    ).out.splitlines()
    assert rows[3].startswith("C,,novel,")
    assert rows[4].startswith("D,malignant,accepted,")  # by the cells that are known


def test_sizes_of_test_sets(run):
    """The figures of the paper's Corollary 1 and Theorem 3, as in tests/networks/test_bounds.py."""
    ran = run("size", "--kernels", 1000, "--kept", 20)
    assert (
        "8,099 test rows: if 20 of 1000 kernels that they choose misclassify at most 5 % of them"
        in ran.text
    )
    assert (
        run("size", "--kernels", 1000, "--kept", 20, "--chosen-radius", "--json").json["n_rows"]
        == 1_207_958
    )
    strict = run(
        "size",
        "--kernels",
        1000,
        "--kept",
        20,
        "--error",
        0.05,
        "--slack",
        1,
        "--confidence",
        0.99,
        "--json",
    ).json
    assert strict["n_rows"] == math.ceil(2 * (20 * math.log(math.e * 50) + math.log(100)) / 0.05)
    assert "n_kept" in run("size", "--kernels", 10, "--kept", 20, code=2).err


def test_tables_of_sharing(run):
    write_csv("d.csv", ["a", "b", "color"], colors())
    classes = len({row[-1] for row in colors()})
    table = [[1.0] + [0.5] * (classes - 1)] * 2 + [[0.5] * (classes - 1) + [1.0]] * 2
    run(
        "fit",
        "d.csv",
        "-t",
        "color",
        "-m",
        "shared-kernel",
        "--set",
        "n_kernels=4",
        "--set",
        f"sharing={json.dumps(table)}",
    )
    assert kernelpool.load("d.safetensors").sharing_.tolist() == table
    for bad in ("[[1, 0.5], [1]]", '[[1, "a"]]', "[1, [2]]"):
        assert (
            "a table of numbers"
            in run("fit", "d.csv", "-t", "color", "--set", f"sharing={bad}", code=2).err
        )
