"""Every table of the papers, rerun by one call.

    from kernelpool.papers import reproduce
    reproduce.run(out="reproduction")

Units of work go through a pool of processes with one BLAS thread each and are kept as they finish, so that an interrupted
run goes on where it stopped. Written are

====================  ====================================================================================================
``results.csv``       one row a published cell: the paper's figure, ours with its spread, the difference in deviations
``comparison.csv``    our best automatic setting beside scikit-learn's classifiers
``run.json``          when, how long, with which versions; data sets that could not be found
``index.html``        all of it on one page that needs no other file, with the papers' figures redrawn
``units.jsonl``       the finished units
====================  ====================================================================================================
"""

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from .. import __version__
from ..errors import KernelpoolError, MissingDatasetError
from . import comparison, competitive, regularized_prbf, shared_kernels
from .bar import Progress, progress_of
from .folds import digest
from .ledger import Ledger, fingerprint
from .summary import FIELDS, Row, agreeing, compared, figures, write_csv
from .units import Record, Table, Unit

TABLES: dict[str, Table] = {
    module.NAME: cast(Table, module) for module in (shared_kernels, regularized_prbf, competitive, comparison)
}
"""What can be rerun, by name."""


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

    @property
    def page(self) -> Path:
        """The HTML page."""
        return self.out / "index.html"

    def outside(self) -> list[Row]:
        """Cells that do not agree with the paper."""
        return [row for row in self.cells if row["verdict"] == "outside"]

    def __str__(self) -> str:
        lines = []
        for name in dict.fromkeys(row["paper"] for row in self.cells):
            good, run, every = agreeing(row for row in self.cells if row["paper"] == name)
            share = f" ({100 * good / run:.0f} %)" if run else ""
            lines.append(f"{name}: {good} of {run} cells agree{share}; {every - run} of {every} not run")
        lines += [f"{name}: skipped. {reason}" for name, reason in self.skipped.items()]
        return "\n".join([*lines, f"{self.page}"])


def run(
    tables: Sequence[str] | None = None,
    quick: bool = False,
    out: Path | str = Path("reproduction"),
    resume: bool = True,
    n_jobs: int = 2,
    progress: bool | Callable[[int, int, str], None] = True,
    figures: bool = True,
) -> Results:
    """Rerun the papers' tables.

    Parameters ---------- tables : sequence of str or None, default=None Which of `TABLES`; None takes all. quick : bool,
    default=False Run a sample in about a minute instead of all cells. out : path, default="reproduction" Folder for what is
    written. resume : bool, default=True Go on where an earlier run in `out` stopped. Units of another version, another
    protocol or other data are run anew. n_jobs : int, default=2 Processes. progress : bool or callable, default=True A bar
    where `rich` is installed and lines otherwise; or a function of units done, units in all, and the name of the last.
    figures : bool, default=True Whether to redraw the papers' figures on the page; needs matplotlib.

    Returns
    -------
    results : Results
        Figures beside the published ones.
    """
    names = _names(tables)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    units = [unit for name in names for unit in TABLES[name].units(quick)]
    digests, skipped = _available(units)
    units = [unit for unit in units if unit.dataset in digests]
    ledger = Ledger(out / "units.jsonl", resume)
    begin = time.perf_counter()
    prints = {unit: _fingerprint(unit, digests) for unit in units}
    n_new = _work(units, prints, ledger, n_jobs, progress_of(progress))
    records = _collected(units, prints, ledger)
    about = _about(names, quick, n_jobs, skipped, n_new, len(units), time.perf_counter() - begin)
    results = summarized(out, names, records, about)
    write(results, draw=figures)
    return results


def _names(tables: Sequence[str] | None) -> list[str]:
    names = list(TABLES) if tables is None else [tables] if isinstance(tables, str) else list(tables)
    if unknown := [name for name in names if name not in TABLES]:
        raise KernelpoolError(f"tables must be among {', '.join(TABLES)}; got {unknown[0]!r}.")
    return names


def _available(units: Sequence[Unit]) -> tuple[dict[str, str], dict[str, str]]:
    """Data sets that are here, by their digest, and those that are not, with the reason."""
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
    return fingerprint(__version__, version("scikit-learn"), protocol.get(unit.method, protocol), digests[unit.dataset])


def _work(units: list[Unit], prints: dict[Unit, str], ledger: Ledger, n_jobs: int, progress: Progress) -> int:
    """Run what is not finished; returns how many units that were."""
    todo = [unit for unit in units if ledger.records(unit.key, prints[unit]) is None]
    with progress.begin(len(units), len(units) - len(todo)) as tell:
        for unit, records in _results(todo, n_jobs):
            ledger.add(unit.key, prints[unit], records)
            tell(unit.key)
    return len(todo)


def _results(todo: list[Unit], n_jobs: int) -> Any:
    if n_jobs == 1 or len(todo) < 2:
        with threadpool_limits(1):
            yield from map(_one, todo)
        return
    with parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs, return_as="generator_unordered")(delayed(_one)(unit) for unit in todo)


def _one(unit: Unit) -> tuple[Unit, list[Record]]:
    return unit, TABLES[unit.table].work(unit)


def _collected(units: list[Unit], prints: dict[Unit, str], ledger: Ledger) -> list[Record]:
    """All records, each with the table, data set and repeat it belongs to."""
    return [
        {"table": unit.table, "dataset": unit.dataset, "repeat": unit.repeat, **record}
        for unit in units
        for record in ledger.records(unit.key, prints[unit]) or []
    ]


def _about(
    names: list[str], quick: bool, n_jobs: int, skipped: dict[str, str], n_new: int, n_units: int, seconds: float
) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": "python -m kernelpool.papers" + (" --quick" if quick else ""),
        "tables": names,
        "quick": quick,
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


def summarized(out: Path, names: Sequence[str], records: list[Record], about: dict[str, Any]) -> Results:
    """Records as figures beside the published ones."""
    published = [record for record in records if record["table"] != comparison.NAME]
    others = [record for record in records if record["table"] == comparison.NAME]
    rows = figures(published, names, about["skipped"])
    return Results(out, rows, compared(others), about)


def write(results: Results, draw: bool = True) -> None:
    """The CSV files, the facts of the run, and the page."""
    from .page import page

    if results.cells:
        write_csv(results.out / "results.csv", results.cells, FIELDS)
    if results.comparison:
        write_csv(results.out / "comparison.csv", results.comparison)
    (results.out / "run.json").write_text(json.dumps(results.run, indent=2) + "\n", encoding="utf-8")
    results.page.write_text(page(results.cells, results.comparison, results.run, draw), encoding="utf-8")
