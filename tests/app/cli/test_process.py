"""What only a process of its own can show: signals, terminals, closed streams, a bare
installation.
"""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpool.app.files import read_header

from .tables import NAMES, QUICK, colors, write_csv

ENDLESS = ("--set", "tol=0", "--set", "max_iter=1000000000")
ANNOUNCING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from kernelpool.app.cli import console, fit
console.SHOWN_AFTER = 0.0
watcher = fit._watch_sweeps
def announcing(bar):
    watch = watcher(bar)
    def announced(info):
        print("sweep", info.sweep, file=sys.stderr, flush=True)
        return watch(info)
    return announced
fit._watch_sweeps = announcing
from kernelpool.__main__ import main
sys.argv = ["kernelpool", *sys.argv[1:]]
sys.exit(main())
"""
"""The command line, printing when each sweep is done, so that a test knows when to interrupt it."""


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A fit that would go on for ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal gets no bar
    write_csv("d.csv", NAMES, colors(300, 1, 1.5))
    return [sys.executable, "-c", ANNOUNCING, "fit", "d.csv", "-t", "color", *QUICK, *ENDLESS]


def converse(words, steps):
    """Runs a command on a terminal; `steps` are (what is seen, what is done then)."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = ""
    steps = list(steps)
    end = time.monotonic() + 60
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


@pytest.mark.parametrize("answer", ["y", pytest.param("n", marks=pytest.mark.slow)])
def test_on_a_terminal_an_interrupted_fit_is_offered(endless, answer):
    steps = [
        ("sweep 4", lambda child, _: child.send_signal(signal.SIGINT)),
        ("Keep it as d.safetensors? [Y/n]", lambda _, tty: os.write(tty, f"{answer}\n".encode())),
    ]
    code, seen = converse(endless, steps)
    assert code == 130, seen
    assert "Fitting: 0 s" in seen, seen  # progress, which appears at once here
    if answer == "y":
        assert read_header("d.safetensors")["summary"]["interrupted"]
    else:
        assert "nothing was saved" in seen
        assert sorted(path.name for path in Path().iterdir()) == ["d.csv"]


def shell(words, folder):
    """A command line as bash runs it."""
    command = words.replace("kernelpool", f"{sys.executable} -m kernelpool")
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=60, cwd=folder, text=True
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("set -o pipefail; cat d.csv | kernelpool predict MODEL - -q | head -1", 0),
        ("kernelpool predict MODEL d.csv > /dev/full", 6),
        *(
            pytest.param(words, code, marks=pytest.mark.slow)
            for words, code in (
                ("kernelpool predict MODEL d.csv >&-", 6),
                ("kernelpool --help > /dev/full", 6),
                ("kernelpool info MODEL >&-", 0),
                ("kernelpool predict MODEL d.csv -o o.csv 2>&-", 0),
                ("kernelpool predict MODEL none.csv 2>/dev/full", 3),
                ("kernelpool predict MODEL - <&-", 3),
            )
        ),
    ],
)
def test_full_or_closed_streams_end_cleanly(fitted, tmp_path, words, code):
    write_csv(tmp_path / "d.csv", ["a", "b"], [row[:2] for row in colors(9000)])
    ran = shell(words.replace("MODEL", fitted[1]), tmp_path)
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
    assert ran.returncode == code, ran.stderr
    if "head" in words:
        assert ran.stdout.startswith("label,")
