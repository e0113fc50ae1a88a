"""What only a process of its own can show: signals, terminals, pipes, and a bare installation."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import kernelpool
from kernelpool.app.files import read_header

from .tables import QUICK, blurred, colors, write_csv

ENDLESS = ("--set", "tol=0", "--set", "max_iter=1000000000", "--set", "acceleration=null")
TELLING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in a shell's background inherit a deaf ear
from kernelpool.app.cli import work, output
output.BAR_AFTER = 0.0
watcher = work._watcher
def telling(*words):
    watch = watcher(*words)
    def told(info):
        print("sweep", info.sweep, file=sys.stderr, flush=True)
        return watch(info)
    return told
work._watcher = telling
from kernelpool.__main__ import main
sys.argv = ["kernelpool", *sys.argv[1:]]
sys.exit(main())
"""
"""The command line, saying on stderr when each sweep is done, so that a test knows when to interrupt it."""


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A fit that would go on for ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")  # a dumb one, as some machines say theirs is, gets no bar
    write_csv("d.csv", ["a", "b", "color"], blurred())
    return [sys.executable, "-c", TELLING, "fit", "d.csv", "-t", "color", *QUICK, *ENDLESS]


def test_an_interrupted_fit_is_kept_beside_where_nobody_can_be_asked(endless):
    words = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    with subprocess.Popen(endless, **words) as child:
        for line in child.stderr:
            if line.startswith("sweep 4"):
                child.send_signal(signal.SIGINT)
                break
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert "the best parameters so far were kept" in err
    assert "Model: d.interrupted.safetensors" in out
    assert not Path("d.safetensors").exists()
    summary = read_header("d.interrupted.safetensors")["summary"]
    assert summary["interrupted"].startswith("interrupted after")
    assert summary["held_out"]["n_rows"] == 60
    table = pa.table({"a": [0.0], "b": [0.0]})
    assert len(kernelpool.load("d.interrupted.safetensors").predict(table)) == 1


def converse(words, steps):
    """Runs a command on a terminal; `steps` are (what is seen, what is done then)."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen, end = "", time.monotonic() + 60
    steps = list(steps)
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            chunk = os.read(ours, 65536) if ready else b""
        except OSError:  # the other side has closed
            break
        seen += chunk.decode(errors="replace")
        while steps and steps[0][0] in seen:
            steps.pop(0)[1](child, ours)
        if not chunk and child.poll() is not None:
            break
    child.wait(timeout=10)
    os.close(ours)
    return child.returncode, seen


def interrupt(child, _):
    child.send_signal(signal.SIGINT)


def test_on_a_terminal_what_was_fitted_is_offered_and_kept(endless):
    code, seen = converse(
        endless,
        [
            ("sweep 4", interrupt),
            ("Keep it as d.safetensors? [Y/n]", lambda _, tty: os.write(tty, b"y\n")),
        ],
    )
    assert code == 130, seen
    assert "Fitting" in seen  # the bar, which shows up at once here
    assert "objective" in seen
    assert read_header("d.safetensors")["summary"]["interrupted"]


def test_on_a_terminal_what_was_fitted_can_be_thrown_away(endless):
    code, seen = converse(
        endless, [("sweep 4", interrupt), ("Keep it as", lambda _, tty: os.write(tty, b"n\n"))]
    )
    assert code == 130, seen
    assert "nothing was saved" in seen
    assert sorted(path.name for path in Path().iterdir()) == ["d.csv"]


def kernelpool_command(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "kernelpool", *words], capture_output=True, timeout=600, **options
    )


def test_pipes_in_and_out(fitted, tmp_path):
    data = Path(
        write_csv(tmp_path / "d.csv", ["a", "b"], [row[:2] for row in colors()])
    ).read_bytes()
    ran = kernelpool_command("predict", fitted[1], "-", "-q", input=data)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(b"\n") == 91
    assert ran.stderr == b""
    assert ran.stdout.decode().splitlines()[1].startswith("red,")


def test_a_reader_that_has_enough_is_no_fault(fitted, tmp_path):
    write_csv(tmp_path / "d.csv", ["a", "b"], [row[:2] for row in colors(20_000)])
    words = f"{sys.executable} -m kernelpool predict {fitted[1]} d.csv -q | head -1"
    ran = subprocess.run(
        ["bash", "-c", words], capture_output=True, timeout=60, cwd=tmp_path, text=True
    )
    assert ran.stdout.startswith("label,")
    assert "Traceback" not in ran.stderr


def shell(words, folder):
    """A command line as bash runs it, with its exit code at the end."""
    command = words.replace("kernelpool", f"{sys.executable} -m kernelpool")
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=60, cwd=folder, text=True
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("kernelpool --help > /dev/full", 6),
        ("kernelpool predict MODEL d.csv > /dev/full", 6),
        ("kernelpool predict MODEL d.csv >&-", 6),
        ("kernelpool info MODEL >&-", 0),
        ("kernelpool predict MODEL d.csv -o out.csv 2>&-", 0),
        ("kernelpool predict MODEL d.csv -o out.csv 2>/dev/full", 0),
        ("kernelpool predict MODEL none.csv 2>/dev/full", 3),
        ("kernelpool predict MODEL - <&-", 3),
    ],
)
def test_full_or_closed_streams_end_cleanly(fitted, tmp_path, words, code):
    write_csv(tmp_path / "d.csv", ["a", "b"], [row[:2] for row in colors()])
    ran = shell(words.replace("MODEL", fitted[1]), tmp_path)
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
    assert ran.returncode == code, ran.stderr


@pytest.mark.slow
def test_an_error_ends_with_its_own_code_two_hundred_times_on_a_busy_machine(fitted, tmp_path):
    data = write_csv(tmp_path / "d.csv", ["a", "c"], [row[:2] for row in colors()])

    def code(_):
        return kernelpool_command("predict", fitted[1], data, "--reject").returncode

    with ThreadPoolExecutor(
        4 * (os.cpu_count() or 1)
    ) as busy:  # each run is the load of the others
        codes = list(busy.map(code, range(200)))
    assert set(codes) == {3}


def test_without_its_packages_the_command_says_what_to_install(monkeypatch, capsys):
    import kernelpool.__main__ as entry

    monkeypatch.setattr(
        entry, "find_spec", lambda name: None if name in ("typer", "rich") else object()
    )
    assert entry.main(["fit", "d.csv"]) == 8
    said = capsys.readouterr().err
    assert "needs typer, rich" in said
    assert "pip install '.[cli]'" in said


BARE = """
import sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("typer", "rich", "pyarrow", "safetensors", "jinja2", "pandas", "matplotlib", "onnx"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Bare())
import importlib.util
import kernelpool.__main__ as entry
def find_spec(name):
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
entry.find_spec = find_spec
from kernelpool.app.cli import demo
demo.N_KERNELS = (8,)
make = demo.make_clouds
demo.make_clouds = lambda n, random_state: make(500, random_state=random_state)
sys.exit(entry.main(["demo", "-o", "here"]))
"""


def test_the_demo_runs_from_a_bare_installation(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", BARE], capture_output=True, timeout=60, cwd=tmp_path, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "average over all of these" in ran.stdout
    assert "here/clouds.safetensors" in ran.stdout
    assert "pip install '.[report]'" in ran.stdout
