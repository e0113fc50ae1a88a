"""The published figures, read from the papers' pages once more, and the rule by which ours agree with them."""

from collections import Counter

import pytest

from kernelpool.papers.published import Cell, cells, columns


def test_every_cell_is_there_once():
    assert Counter(cell.paper for cell in cells()) == {
        "shared-kernels": 175,
        "regularized-prbf": 100,
        "competitive-neurons": 20,
    }
    assert len({cell.key for cell in cells()}) == 295


@pytest.mark.parametrize(
    ("key", "error", "spread"),
    [
        (("shared-kernels", "clouds", "sharing", "1", "8"), 11.26, 0.75),  # table I
        (("shared-kernels", "ionosphere", "average", "", "4"), 13.71, 3.45),  # table II
        (("shared-kernels", "satimage5", "rbf", "", "36"), 14.15, 0.4),  # table V
        (("regularized-prbf", "pima", "penalty", "20", "14"), 25.38, None),  # table 1
        (("regularized-prbf", "ionosphere", "penalty", "0", "4"), 24.49, None),  # table 4
        (("competitive-neurons", "bupa", "competitive-neurons", "", "16"), 29.28, 0.72),  # 100 - 70.72
    ],
)
def test_cells_as_printed(key, error, spread):
    cell = next(cell for cell in cells() if cell.key == key)
    assert (cell.error, cell.spread) == (error, spread)


def test_columns():
    assert len(columns("shared-kernels")) == 25
    assert columns("regularized-prbf")[:2] == [("pima", 6), ("pima", 8)]


def cell(paper="shared-kernels", dataset="pima", error=20.0, spread=1.0):
    return Cell(paper, dataset, "sharing", "0", "8", error, spread)


@pytest.mark.parametrize(("ours", "verdict"), [(22.0, "within"), (22.01, "outside"), (18.0, "within"), (17.99, "better")])
def test_two_deviations_are_the_limit(ours, verdict):
    assert cell().verdict(ours, 0.1) == verdict


@pytest.mark.parametrize(("dataset", "limit"), [("pima", 1.5), ("ionosphere", 4.0)])
def test_limits_where_no_deviation_is_printed(dataset, limit):
    bare = cell("regularized-prbf", dataset, spread=None)
    assert bare.verdict(20 + limit, 0.1) == "within"
    assert bare.verdict(20.01 + limit, 0.1) == "outside"


def test_two_standard_errors_add_up():
    neurons = cell("competitive-neurons", spread=0.3)
    assert neurons.deviation(0.4) == pytest.approx(0.5)
    assert neurons.verdict(20.99, 0.4) == "within"
    assert neurons.verdict(21.01, 0.4) == "outside"
    assert neurons.deviation(float("nan")) == 0.3  # a single trial has none
