"""The documentation's page is built from the files beside it, and they say what the page claims."""

import json
from pathlib import Path

import pytest

from papers.page import page
from papers.remarks import UNKNOWN, remark
from papers.summary import count, read_csv

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "reproduction"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the documentation is not part of this copy"
)


def test_the_page_is_built_from_the_files():
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == page(FOLDER, "reproduction/")


def test_the_files_are_those_of_a_full_run():
    run = json.loads((FOLDER / "run.json").read_text(encoding="utf-8"))
    rows = read_csv(FOLDER / "results.csv")
    assert not run["quick"]
    assert run["skipped"] == {}
    assert len(rows) == 299
    assert all(row["repeats"] > 1 for row in rows)
    assert len(read_csv(FOLDER / "comparison.csv")) == 7 * 6


@pytest.mark.parametrize(("paper", "share"), [("shared-kernels", 0.90), ("regularized-prbf", 0.80)])
def test_cells_that_are_neither_lower_nor_higher(paper, share):
    counts = count(row for row in read_csv(FOLDER / "results.csv") if row["paper"] == paper)
    assert counts.run == counts.cells
    assert counts.within >= share * counts.cells


def test_higher_cells_have_a_remark():
    unexplained = [
        row
        for row in read_csv(FOLDER / "results.csv")
        if row["verdict"] == "higher" and remark(row) == UNKNOWN
    ]
    assert unexplained == []
