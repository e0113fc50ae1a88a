"""What a report of the command line says: names of columns, and numbers of rows as they are in the file."""

import re
from pathlib import Path

import numpy as np
import pytest

import kernelpool

from .tables import QUICK, blurred, features, write_csv

pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
pytest.importorskip("matplotlib", reason="reports need matplotlib: pip install '.[report]'")


@pytest.fixture
def data():
    return write_csv("d.csv", ["length of leaf", "width", "color"], blurred())


def text_of(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


@pytest.mark.parametrize("command", ["fit", "report", "test"])
def test_columns_have_their_names_and_no_data_stand_in_for_them(run, data, command):
    run(
        "fit",
        data,
        "-t",
        "color",
        *QUICK,
        "-o",
        "m.st",
        *(["--report", "r.html"] if command == "fit" else []),
    )
    if command != "fit":
        run(
            "report", "m.st", data, "-o", "r.html", *(["--test", data] if command == "test" else [])
        )
    page = Path("r.html").read_text("utf-8")
    columns = page[page.index("<h3>Columns</h3>") : page.index('id="quality"')]
    assert re.findall(r'<tr><th scope="row"><span class="name">([^<]*)</span>', columns) == [
        "length of leaf",
        "width",
    ]
    heads = page[page.index('id="kernel-table"') :]
    assert "length of leaf" in heads[: heads.index("</thead>")]
    assert "ChunkedArray" not in page
    assert "[\n" not in text_of(page)


def test_rows_have_the_numbers_of_the_file(run, data):
    """From 1, those held out among them: the rows nearest to kernels are found again by their numbers."""
    run("fit", data, "-t", "color", *QUICK, "-o", "m.st", "--report", "r.html")
    page = Path("r.html").read_text("utf-8")
    assert "Rows are counted from 0." not in page
    rows, model = blurred(), kernelpool.load("m.st")
    outliers = page[page.index("The least likely rows") :]
    told = re.findall(
        r'<td class="nowrap">([^<]*)</td><th scope="row" class="num" data-sort="(\d+)">.*?data-sort="([^"]*)"',
        outliers,
    )
    assert {where for where, _, _ in told} == {"training", "held out"}
    score = np.asarray(model.score_samples(_table(rows)))
    for _, number, shown in told:
        assert score[int(number) - 1] == pytest.approx(float(shown), abs=1e-9)


def test_rows_without_a_class_that_are_left_out_count(run):
    rows = blurred()
    for i in range(0, 300, 7):
        rows[i][2] = ""
    gaps = write_csv("gaps.csv", ["length of leaf", "width", "color"], rows)
    run(
        "fit",
        gaps,
        "-t",
        "color",
        *QUICK,
        "-o",
        "m.st",
        "--unlabeled",
        "drop",
        "--report",
        "r.html",
    )
    run("report", "m.st", gaps, "-o", "again.html")
    page, again = (Path(name).read_text("utf-8") for name in ("r.html", "again.html"))
    assert page[page.index('id="kernels"') : page.index('id="training"')] in again
    for number, label in re.findall(
        r'<span class="trait">(\d+) <small>\(<span class="name">(\w+)</span>', page
    ):
        assert rows[int(number) - 1][2] == label


def _table(rows):
    import pyarrow as pa

    x = features(rows)
    return pa.table({"length of leaf": x[:, 0], "width": x[:, 1]})
