"""Means and spreads by hand."""

import math

import pytest

from papers.summary import count, summarize


def record(
    repeat,
    fold,
    error,
    table="shared-kernels",
    dataset="clouds",
    method="sharing",
    parameter="1",
    kernels=8,
):
    return {
        "table": table,
        "dataset": dataset,
        "repeat": repeat,
        "fold": fold,
        "error": error,
        "method": method,
        "parameter": parameter,
        "kernels": kernels,
    }


def found(rows, **kwargs):
    return next(row for row in rows if all(row[name] == value for name, value in kwargs.items()))


def test_folds_and_repeats():
    records = [record(0, 0, 10.0), record(0, 1, 12.0), record(1, 0, 13.0), record(1, 1, 17.0)]
    rows = summarize(records, ["shared-kernels"])
    row = found(rows, dataset="clouds", parameter="1", kernels="8")
    assert len(rows) == 175
    assert row["ours"] == 13.0
    assert row["spread"] == pytest.approx(
        (2**0.5 + 8**0.5) / 2, abs=1e-3
    )  # standard deviations within the repeats
    assert row["between"] == pytest.approx(8**0.5, abs=1e-3)  # of 11 and 15
    assert row["deviations"] == pytest.approx((13 - 11.26) / 0.75, abs=5e-3)
    assert row["standard_errors"] == pytest.approx(
        (13 - 11.26) / math.hypot(0.75 / 5**0.5, 2.0), abs=5e-3
    )
    assert (row["repeats"], row["verdict"], row["verdict_in_standard_errors"]) == (
        2,
        "higher",
        "within",
    )
    assert count(rows) == (175, 1, 0, 0, 1)
    assert count(rows, "verdict_in_standard_errors") == (175, 1, 1, 0, 0)
    assert row["higher_alone"] == 1  # 11 does not differ from 11.26 ± 0.75, 15 does


def test_cells_that_were_not_run_are_named():
    rows = summarize([record(0, 0, 10.0), record(0, 1, 10.0)], ["shared-kernels"], skipped=["pima"])
    assert found(rows, dataset="pima")["verdict"] == "skipped"
    assert found(rows, dataset="phoneme")["verdict"] == "not run"
    assert count(rows) == (175, 1, 1, 0, 0)
