"""A run from end to end: it can be interrupted, goes on, names what is missing, and writes a page
of its own.
"""

import json

import pytest

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
