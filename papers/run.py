"""Run every experiment and write what was found beside the published figures.

    from papers.run import run
    run(out="reproduction")

Units of work go through a pool of processes with one BLAS thread each and are kept as they finish,
so that an interrupted run can be resumed. The folder then holds

====================  ====================================================================================================
``results.csv``       one row a published cell: the paper's figure, ours with its spread, the
difference in deviations ``readings.csv``      the regularized-PRBF tables under every reading of
its equation (29) ``comparison.csv``    our best automatic setting beside scikit-learn's classifiers
``run.json``          when, how long, with which versions; data sets that could not be found
``index.md``          all of it on one page, with the papers' figures redrawn (``*.png``, their
captions in ``figures.json``) ``units.jsonl``       the finished units
====================  ====================================================================================================
"""

import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from kernelpool import __version__
from kernelpool.errors import KernelpoolError, MissingDatasetError

from . import comparison, competitive_neurons, em_log, regularized_prbf, shared_kernels
from .experiment import Experiment, FinishedUnits, Record, Row, Unit, fingerprint, in_processes
from .folds import digest
from .page import draw_figures, page
from .summary import FIELDS, compared, count, summarize, write_csv

TABLES: dict[str, Experiment] = {
    module.NAME: cast(Experiment, module)
    for module in (shared_kernels, regularized_prbf, competitive_neurons, em_log, comparison)
}
"""What can be rerun, by name."""

REPEATED = (shared_kernels.NAME, regularized_prbf.NAME)
REPEATS = 1
"""Splits and starts of these two unless more are asked for; the papers have one, the recorded
tables five.
"""
ALL = "all"
"""Everything, the comparison included, which nobody published and is else run by its own name
only.
"""

Progress = Callable[[int, int, str], None]
"""Called with the number of finished units, of all units, and the name of the last one."""


@dataclass
class Results:
    """What a run found, and where it was written."""

    out: Path
    cells: list[Row] = field(default_factory=list)
    comparison: list[Row] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def skipped(self) -> dict[str, str]:
        """Data sets that could not be found, and why."""
        return dict(self.run["skipped"])

    def higher(self) -> list[Row]:
        """Cells whose error is higher than the published one by more than two deviations."""
        return [row for row in self.cells if row["verdict"] == "higher"]

    def __str__(self) -> str:
        lines = []
        for name in dict.fromkeys(row["paper"] for row in self.cells):
            mine = [row for row in self.cells if row["paper"] == name]
            n = count(mine)
            lines.append(f"{name}: {n.run} of {n.cells} cells run")
            for own, what in (("yes", "own method"), ("no", "baselines")):
                for away, verdict, unit in UNITS:
                    n = count(
                        (row for row in mine if row["own"] == own and row[away] != ""), verdict
                    )
                    if n.run:
                        lines.append(
                            f"  {what}: {n.within} of {n.run} within two {unit}, {n.lower} lower, "
                            f"{n.higher} higher"
                        )
        lines += [f"{name}: skipped. {reason}" for name, reason in self.skipped.items()]
        return "\n".join([*lines, str(self.out / "index.md")])


UNITS = (
    ("standard_errors", "verdict_in_standard_errors", "standard errors of the difference"),
    ("deviations", "verdict", "printed deviations"),
)


def run(
    tables: Sequence[str] | None = None,
    quick: bool = False,
    out: Path | str = Path("reproduction"),
    resume: bool = True,
    n_jobs: int = 2,
    progress: bool | Progress = True,
    figures: bool = True,
    repeats: int = REPEATS,
) -> Results:
    """Rerun the papers' tables.

    Parameters
    ----------
    tables : sequence of str or None, default=None
        Which of `TABLES`; None takes those that were published, "all" the comparison too.
    quick : bool, default=False
        Run a sample in about a minute instead of all cells.
    out : path, default="reproduction"
        Folder to write to.
    resume : bool, default=True
        Resume an earlier run in `out`. Units of another version, another protocol or other data are
        run anew.
    n_jobs : int, default=2
        Processes.
    progress : bool or callable, default=True
        Whether to print how far the run has come to stderr; or a function of the number of finished
        units, of all units, and the name of the last one.
    figures : bool, default=True
        Whether to redraw the papers' figures for the page; needs matplotlib.
    repeats : int
        Splits and starts of the shared-kernel and regularized-PRBF tables, at most five.

    Returns
    -------
    results : Results
        Figures beside the published ones.
    """
    names = _names(tables)
    out = _folder(Path(out))
    units = [
        unit
        for name in names
        for unit in TABLES[name].units(quick)
        if name not in REPEATED or unit.repeat < repeats
    ]
    digests, skipped = _available(units)
    units = [unit for unit in units if unit.dataset in digests]
    finished = FinishedUnits(out / "units.jsonl", resume)
    begin = time.perf_counter()
    fingerprints = {unit: _fingerprint(unit, digests) for unit in units}
    report = progress if callable(progress) else _print_progress if progress else None
    n_new = _run_units(units, fingerprints, finished, n_jobs, report)
    records = _collect(units, fingerprints, finished)
    facts = _facts(
        names, quick, repeats, n_jobs, skipped, n_new, len(units), time.perf_counter() - begin
    )
    readings = [record for record in records if record["table"] == regularized_prbf.NAME]
    steps = ("", regularized_prbf.STEP)
    published = [r for r in records if r["table"] != comparison.NAME and r.get("step", "") in steps]
    rivals = [record for record in records if record["table"] == comparison.NAME]
    results = Results(out, summarize(published, names, skipped), compared(rivals), facts)
    if readings:
        write_csv(out / "readings.csv", regularized_prbf.readings(readings))
    _write(results, figures)
    return results


def _names(tables: Sequence[str] | None) -> list[str]:
    if tables is None:
        return [name for name in TABLES if name != comparison.NAME]
    names = [tables] if isinstance(tables, str) else list(tables)
    if ALL in names:
        return list(TABLES)
    if unknown := [name for name in names if name not in TABLES]:
        raise KernelpoolError(f"tables must be among {', '.join(TABLES)}; got {unknown[0]!r}.")
    return names


def _named(names: list[str]) -> list[str]:
    """The tables as the command line names them."""
    return [] if names == _names(None) else [ALL] if names == list(TABLES) else names


def _options(quick: bool, repeats: int) -> list[str]:
    return ["--quick"] if quick else [] if repeats == REPEATS else [f"--repeats {repeats}"]


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise KernelpoolError(f"out must be a folder; {out} is a file.") from None
    except OSError as error:
        raise KernelpoolError(f"The folder {out} cannot be made: {error.strerror}.") from None
    return out


def _available(units: Sequence[Unit]) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the data sets that are here, and the reasons for those that are not."""
    digests: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(unit.dataset for unit in units):
        try:
            digests[name] = digest(name)
        except MissingDatasetError as error:
            skipped[name] = " ".join(str(error).split())
    return digests, skipped


def _fingerprint(unit: Unit, digests: dict[str, str]) -> str:
    protocol = TABLES[unit.table].PROTOCOL
    return fingerprint(
        __version__,
        version("scikit-learn"),
        protocol.get(unit.method, protocol),
        digests[unit.dataset],
    )


def _print_progress(done: int, total: int, name: str) -> None:
    """Print a line for each unit; on a terminal the lines replace each other."""
    start, end = ("\r\x1b[K", "\n" if done == total else "") if sys.stderr.isatty() else ("", "\n")
    print(f"{start}{done:4d} of {total}  {name}", end=end, file=sys.stderr, flush=True)


def _run_units(
    units: list[Unit],
    fingerprints: dict[Unit, str],
    finished: FinishedUnits,
    n_jobs: int,
    progress: Progress | None,
) -> int:
    """Run the units that are not finished, and return how many they were."""
    todo = [unit for unit in units if finished.records(unit.key, fingerprints[unit]) is None]
    for n_new, (unit, records, seconds) in enumerate(
        in_processes(_work, todo, n_jobs, ordered=False), 1
    ):
        finished.add(unit.key, fingerprints[unit], records, seconds)
        if progress is not None:
            progress(len(units) - len(todo) + n_new, len(units), unit.key)
    return len(todo)


def _work(unit: Unit) -> tuple[Unit, list[Record], float]:
    """What a unit found, and the processor seconds it took."""
    begin = time.process_time()
    records = TABLES[unit.table].work(unit)
    return unit, records, round(time.process_time() - begin, 2)


def _collect(
    units: list[Unit], fingerprints: dict[Unit, str], finished: FinishedUnits
) -> list[Record]:
    """All records, each with the table, data set and repeat it belongs to."""
    return [
        {"table": unit.table, "dataset": unit.dataset, "repeat": unit.repeat, **record}
        for unit in units
        for record in finished.records(unit.key, fingerprints[unit]) or []
    ]


def _facts(
    names: list[str],
    quick: bool,
    repeats: int,
    n_jobs: int,
    skipped: dict[str, str],
    n_new: int,
    n_units: int,
    seconds: float,
) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": " ".join(["python -m papers", *_named(names), *_options(quick, repeats)]),
        "tables": names,
        "quick": quick,
        "repeats": 1 if quick else repeats,
        "n_jobs": n_jobs,
        "units": n_units,
        "units_run_now": n_new,
        "seconds_now": round(seconds, 1),
        "skipped": skipped,
        "versions": {
            "kernelpool": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
    }


def _write(results: Results, figures: bool) -> None:
    if results.cells:
        write_csv(results.out / "results.csv", results.cells, FIELDS)
    if results.comparison:
        write_csv(results.out / "comparison.csv", results.comparison)
    (results.out / "run.json").write_text(
        json.dumps(results.run, indent=2) + "\n", encoding="utf-8"
    )
    if figures:
        draw_figures(results.out, results.run["n_jobs"])
    (results.out / "index.md").write_text(page(results.out), encoding="utf-8")
