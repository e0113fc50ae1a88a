"""A run from end to end: it can be interrupted, goes on, names what is missing, and writes a page
of its own.
"""

import json

import pytest

from kernelpool.errors import KernelpoolError
from papers import folds, shared_kernels
from papers import run as runner
from papers.__main__ import main
from papers.experiment import Unit


@pytest.fixture
def small(monkeypatch):
    """Three units that take no time; wdbc comes with scikit-learn."""
    units = [Unit("shared-kernels", "wdbc", kernels) for kernels in (2, 4, 6)]
    monkeypatch.setattr(shared_kernels, "units", lambda quick=False: units)
    monkeypatch.setattr(shared_kernels, "work", fake)
    return units


def done(out):
    return [json.loads(line)["unit"] for line in (out / "units.jsonl").read_text().splitlines()]


def go(out, **kwargs):
    return runner.run(
        ["shared-kernels"], out=out, n_jobs=1, figures=False, **{"progress": False, **kwargs}
    )


def test_an_interrupted_run_goes_on(small, tmp_path):
    def interrupt(count, total, name):
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, progress=interrupt)
    assert done(tmp_path) == [unit.key for unit in small[:2]]
    told = []
    results = go(tmp_path, progress=lambda *kwargs: told.append(kwargs))
    assert told == [(3, 3, small[2].key)]
    assert done(tmp_path) == [unit.key for unit in small]
    assert results.run["units_run_now"] == 1


@pytest.mark.parametrize("change", ["protocol", "version", "data", "resume"])
def test_a_changed_run_starts_anew(small, tmp_path, monkeypatch, change):
    go(tmp_path)
    if change == "protocol":
        monkeypatch.setitem(shared_kernels.PROTOCOL, "revision", -1)
    elif change == "version":
        monkeypatch.setattr(runner, "__version__", "0.0.0")
    elif change == "data":
        monkeypatch.setattr(runner, "digest", lambda name: "other")
    assert go(tmp_path, resume=change != "resume").run["units_run_now"] == 3


def test_the_pool_finds_the_same(monkeypatch, tmp_path):
    units = [Unit("shared-kernels", "wdbc", 2, repeat) for repeat in (0, 1)]
    monkeypatch.setattr(shared_kernels, "units", lambda quick=False: units)
    go(tmp_path / "one")
    runner.run(["shared-kernels"], out=tmp_path / "two", n_jobs=2, figures=False, progress=False)

    def records(name):
        lines = map(json.loads, (tmp_path / name / "units.jsonl").read_text().splitlines())
        return sorted(
            (line["unit"], line["fingerprint"], json.dumps(line["records"])) for line in lines
        )

    assert records("one") == records("two")


@pytest.fixture
def nothing(monkeypatch, tmp_path):
    """No data set can be found but those that need no file."""

    def absent(*_, **__):
        raise sources._AbsentError("not in this test.")

    from papers.data import sources

    for place in ("from_folder", "from_package", "from_openml"):
        monkeypatch.setattr(sources, place, absent)
    folds._loaded.cache_clear()
    yield
    folds._loaded.cache_clear()


def test_missing_sets_are_named(nothing, monkeypatch, tmp_path):
    units = [Unit("shared-kernels", "pima", 6), Unit("shared-kernels", "clouds", 8)]
    monkeypatch.setattr(shared_kernels, "units", lambda quick=False: units)
    monkeypatch.setattr(shared_kernels, "work", fake)
    results = go(tmp_path)
    assert list(results.skipped) == ["pima"]
    assert "KERNELPOOL_DATA" in results.skipped["pima"]
    assert "pima: skipped" in str(results)
    assert {row["verdict"] for row in results.cells if row["dataset"] == "pima"} == {"skipped"}
    assert "Skipped: pima." in (tmp_path / "index.md").read_text()


def fake(unit, error=30.0):
    """Five folds with the same error for one method."""
    return [
        {
            "method": "sharing",
            "parameter": "1",
            "kernels": unit.kernels,
            "fold": fold,
            "error": error + 0.001 * fold,
        }
        for fold in range(5)
    ]


def test_the_page_of_a_run(monkeypatch, tmp_path):
    monkeypatch.setattr(
        shared_kernels, "units", lambda quick=False: [Unit("shared-kernels", "clouds", 8)]
    )
    monkeypatch.setattr(shared_kernels, "work", fake)
    results = go(tmp_path)
    page = (tmp_path / "index.md").read_text()
    assert "| **11.26 / 30.00 (+25.0)°** |" in page
    assert (
        "clouds, sharing 1, 8 kernels: 11.26 published, 30.00 ours, not higher in 0 of 1 single "
        "runs." in page
    )
    assert "its own method | 1 run, of 150 | 0 | 0 | 1 | 0 | 0 | 1 |" in page
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 176
    assert [row["kernels"] for row in results.higher()] == ["8"]
    assert (
        "own method: 0 of 1 within two standard errors of the difference, 0 lower, 1 higher"
        in str(results)
    )
    assert "agree" not in str(results)


def test_unknown_tables(tmp_path):
    with pytest.raises(
        KernelpoolError, match=r"tables must be among shared-kernels, .*; got 'table 1'\."
    ):
        runner.run(["table 1"], out=tmp_path)


def test_from_the_command_line(small, tmp_path, capsys):
    words = ["shared-kernels", "--quick", "--jobs", "1", "--no-figures", "--output", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "shared-kernels: 0 of 175 cells run" in said.out
    assert "3 of 3" in said.err
    assert (tmp_path / "index.md").exists()
    assert main([*words, "--quiet", "--anew"]) == 0
    assert capsys.readouterr().err == ""
    assert len(done(tmp_path)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table 1"], "invalid choice: 'table 1' (choose from 'shared-kernels'"),
        (["--jobs", "0"], "must be a whole number from 1 on; got '0'"),
        (["--output", "file"], "out must be a folder; file is a file."),
    ],
)
def test_mistakes_on_the_command_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    try:
        code = main(words)
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_an_interrupted_command_says_how_to_resume(small, monkeypatch, tmp_path, capsys):
    def interrupt(unit):
        raise KeyboardInterrupt

    monkeypatch.setattr(shared_kernels, "work", interrupt)
    assert main(["shared-kernels", "--jobs", "1", "--output", str(tmp_path)]) == 130
    assert "the same command resumes the run" in capsys.readouterr().err
