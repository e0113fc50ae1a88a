"""The published figures, read from the papers' pages once more, and how ours are compared with
them.
"""

from collections import Counter

import pytest

from papers.published import Cell, cells, verdict


def test_every_cell_is_there_once():
    assert Counter(cell.paper for cell in cells()) == {
        "shared-kernels": 175,
        "regularized-prbf": 100,
        "competitive-neurons": 20,
        "em-log": 4,
    }
    assert len({cell.key for cell in cells()}) == 299


@pytest.mark.parametrize(
    ("key", "error", "spread"),
    [
        (("shared-kernels", "clouds", "sharing", "1", "8"), 11.26, 0.75),  # table I
        (("shared-kernels", "ionosphere", "average", "", "4"), 13.71, 3.45),  # table II
        (("shared-kernels", "satimage5", "rbf", "", "36"), 14.15, 0.4),  # table V
        (("regularized-prbf", "pima", "penalty", "20", "14"), 25.38, None),  # table 1
        (("regularized-prbf", "ionosphere", "penalty", "0", "4"), 24.49, None),  # table 4
        (
            ("competitive-neurons", "bupa", "competitive-neurons", "", "16"),
            29.28,
            0.72,
        ),  # 100 - 70.72
    ],
)
def test_cells_as_printed(key, error, spread):
    cell = next(cell for cell in cells() if cell.key == key)
    assert (cell.error, cell.spread) == (error, spread)


def cell(
    paper="shared-kernels", dataset="pima", error=20.0, spread=1.0, method="sharing", parameter="0"
):
    return Cell(paper, dataset, method, parameter, "8", error, spread)


@pytest.mark.parametrize(
    ("ours", "expected"), [(22.0, "within"), (22.01, "higher"), (18.0, "within"), (17.99, "lower")]
)
def test_two_deviations_are_the_limit_on_both_sides(ours, expected):
    assert verdict(cell().deviations(ours)) == expected


@pytest.mark.parametrize(("dataset", "limit"), [("pima", 1.5), ("ionosphere", 4.0)])
def test_limits_where_no_deviation_is_printed(dataset, limit):
    bare = cell("regularized-prbf", dataset, spread=None)
    assert bare.deviations(20 + limit) == pytest.approx(2)
    assert bare.standard_errors(20 + limit, 0.1) is None


def test_standard_errors_of_the_difference():
    neurons = cell("competitive-neurons", spread=0.3)  # the paper prints standard errors
    assert neurons.standard_errors(21.0, 0.4) == pytest.approx(1 / 0.5)
    assert neurons.standard_errors(21.0, float("nan")) == pytest.approx(
        1 / 0.3
    )  # a single trial has none
    assert neurons.deviations(21.0) is None
    folds = cell(spread=1.5 * 5**0.5)  # over five folds: a mean of five has a standard error of 1.5
    assert folds.standard_errors(25.0, 2.0) == pytest.approx(5 / 2.5)


def test_methods_and_baselines():
    own = {(c.paper, c.method, c.parameter) for c in cells() if c.own}
    assert ("regularized-prbf", "penalty", "5") in own
    assert ("regularized-prbf", "penalty", "0") not in own  # plain PRBF
    assert Counter(c.paper for c in cells() if c.own) == {
        "shared-kernels": 150,
        "regularized-prbf": 80,
        "competitive-neurons": 8,
        "em-log": 2,
    }


def test_one_start_must_lie_in_the_range_of_ours():
    one = Cell("em-log", "strips", "kmeans-ls", "", "", 7.5, None)
    assert one.deviations(9.5, 1.0) == pytest.approx(2.0)  # starts from 7.5 to 11.5
    assert one.deviations(9.5, 0.0) == pytest.approx(16.0)  # an eighth of a point at least
    assert one.standard_errors(9.5, 1.0) is None
