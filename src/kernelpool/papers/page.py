"""One HTML page that needs no other file: published figures beside ours, colored, and the papers' figures redrawn."""

from collections.abc import Sequence
from html import escape
from typing import Any

from . import comparison, competitive, grids, regularized_prbf, shared_kernels
from .drawing import as_text
from .figures import PICTURES, drawn
from .grids import MEASURES, TITLES, Grid, in_words
from .reasons import NOTES, grouped
from .summary import Row, agreeing

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --paper: #ffffff; --line: #d5dae2; --dim: #5b6675;
  --within: #dff0e1; --better: #dbe9fb; --outside: #fbd9c9; --none: #eef0f3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #14181f; --line: #384252; --dim: #9aa6b6;
  --within: #1e4029; --better: #1d3a5f; --outside: #70331a; --none: #232a35; } figure img { background: white; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h3 { margin: 1.6rem 0 0.4rem; }
h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: 0.4rem 0 1rem; }
th, td { padding: 0.25rem 0.6rem; border: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; } td small, p small, .dim { color: var(--dim); }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.within { background: var(--within); } .better { background: var(--better); }
.outside { background: var(--outside); font-weight: 600; } .none { background: var(--none); color: var(--dim); }
.key span { padding: 0.1rem 0.5rem; margin-right: 0.4rem; } .scroll { overflow-x: auto; } pre { white-space: pre-wrap; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; border: 1px solid var(--line); }
"""

PROTOCOLS = {module.NAME: module for module in (shared_kernels, regularized_prbf, competitive)}


def page(cells: Sequence[Row], others: Sequence[Row], run: dict[str, Any], draw: bool = True) -> str:
    """The whole page."""
    parts = [_head(run), _counts(cells), _skipped(run)]
    parts += [_paper(cells, name) for name in TITLES if any(row["paper"] == name for row in cells)]
    parts += [_comparison(others)] if others else []
    parts += [_pictures()] if draw else []
    title = "The papers' tables, rerun"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _head(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    sample = " A sample: not every cell was run." if run["quick"] else ""
    return (
        f"<p class=dim>{escape(run['date'])}, by <code>{escape(run['command'])}</code>; {escape(versions)}.{sample}</p><p>A "
        "cell shows the published error in percent and, below it, ours with its spread (the standard deviation over the "
        "folds; for competitive neurons the standard error of the mean), and the difference in deviations of the paper "
        "(where it prints none: in units of 0.75 points, on ionosphere 2; for competitive neurons: of the standard error "
        "of the difference).</p>"
        '<p class=key><span class="within">within two deviations</span><span class="better">lower error by more than two</span>'
        '<span class="outside">higher error by more than two</span><span class="none">not run, or skipped</span></p>'
    )


def _counts(cells: Sequence[Row]) -> str:
    lines = []
    for name in TITLES:
        mine = [row for row in cells if row["paper"] == name]
        if mine:
            good, run, every = agreeing(mine)
            share = f"{100 * good / run:.0f} %" if run else ""
            lines.append(
                f"<tr><th>{escape(TITLES[name])}</th><td>{good}</td><td>{run}</td><td>{share}</td><td>{every}</td></tr>"
            )
    head = "<tr><th>paper</th><th>agree or better</th><th>run</th><th>share</th><th>published</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _skipped(run: dict[str, Any]) -> str:
    if not run["skipped"]:
        return "<p>No data set was missing.</p>"
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(why)}</li>" for name, why in run["skipped"].items())
    return f"<p>Skipped, because their data were not found:</p><ul>{items}</ul>"


def _paper(cells: Sequence[Row], name: str) -> str:
    text = (PROTOCOLS[name].__doc__ or "").strip()
    parts = [
        f"<h2>{escape(TITLES[name])}</h2>",
        f"<details><summary>Protocol: what is printed, and what we chose</summary><pre>{escape(text)}</pre></details>",
    ]
    parts += [_table(grid, _cell) for grid in grids.published(cells, name)]
    parts.append(f"<p>{escape(NOTES[name])}</p>")
    if outside := grouped(row for row in cells if row["paper"] == name):
        items = "".join(f"<li>{escape('; '.join(map(in_words, rows)))}. {escape(why)}</li>" for why, rows in outside.items())
        parts.append(f"<h3>Outside</h3><ul>{items}</ul>")
    return "\n".join(parts)


def _table(grid: Grid, cell: Any) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.head)
    lines = "".join(f"<tr><th>{escape(name)}</th>{''.join(cell(row) for row in rows)}</tr>" for name, rows in grid.lines)
    title = f"<h3>{escape(grid.title)}</h3>" if grid.title else ""
    return f"{title}<div class=scroll><table><tr><th></th>{head}</tr>{lines}</table></div>"


def _cell(row: Row | None) -> str:
    if row is None:
        return "<td></td>"
    spread = f" ± {row['published_spread']:.2f}" if row["published_spread"] != "" else ""
    theirs = f"{row['published']:.2f}{spread}"
    if row["verdict"] in ("skipped", "not run"):
        return f'<td class="none">{theirs}<br>{row["verdict"]}</td>'
    own = f"{row['ours']:.2f}" + (f" ± {row['spread']:.2f}" if row["spread"] == row["spread"] else "")
    return f'<td class="{row["verdict"]}"><small>{theirs}</small><br>{own}<br><small>{row["away"]:+.1f}</small></td>'


def _comparison(rows: Sequence[Row]) -> str:
    text = (comparison.__doc__ or "").strip()
    grid = grids.compared(rows)
    parts = ["<h2>Beside scikit-learn</h2>", f"<details><summary>Protocol</summary><pre>{escape(text)}</pre></details>"]
    for measure, (title, form) in MEASURES.items():
        lines = []
        for name, cells in grid.lines:
            best = min(row[measure] for row in cells if row is not None)
            shown = "".join("<td></td>" if row is None else _measured(row[measure], form, best) for row in cells)
            lines.append(f"<tr><th>{escape(name)}</th>{shown}</tr>")
        head = "".join(f"<th>{escape(name)}</th>" for name in grid.head)
        parts.append(f"<h3>{title}</h3><div class=scroll><table><tr><th></th>{head}</tr>{''.join(lines)}</table></div>")
    return "\n".join(parts)


def _measured(value: float, form: str, best: float) -> str:
    return f'<td class="{"better" if value == best else ""}">{form.format(value)}</td>'


def _pictures() -> str:
    parts = ["<h2>The papers' figures, redrawn</h2>"]
    for picture in PICTURES:
        image, sentence = drawn(picture)
        shown = f'<img alt="{escape(picture.title)}" src="{as_text(image)}">' if image is not None else ""
        parts.append(f"<figure><h3>{escape(picture.title)}</h3>{shown}<figcaption>{escape(sentence)}</figcaption></figure>")
    return "\n".join(parts)
