"""The smallest Parzen network that is almost as good as the full one: which sizes are tried, and when one suffices."""

from types import SimpleNamespace

import numpy as np

from kernelpool.training.parzen_size import SizeSearch


class FakeFold:
    """A fold of 100 rows, of which networks misclassify as many as it is told; the full one none."""

    full_wrong, weight, n_rows = np.zeros(100), np.ones(100), 1000

    def __init__(self, errors):
        self.errors, self.asked = errors, []

    def wrong(self, size):
        self.asked.append(size)
        return (np.arange(100) < self.errors[size]).astype(float)


def search(*errors, tolerance=0.05, reduction=None):
    folds = [FakeFold(e) for e in errors]
    return SizeSearch(
        reduction, folds, tolerance=tolerance, full_error=0.1, n_classes=2, n_rows=4000
    )


def test_the_search_doubles_then_halves_the_last_step():
    # 2 of 100 rows: 2 + 1.4 <= 5 points. 4 of 100: 4 + min(2.0, 2.5) > 5
    found = search({2: 30, 4: 20, 8: 4, 16: 2, 11: 2})
    assert found.smallest() == 11
    assert found.curve == [(2, 0.3), (4, 0.2), (8, 0.04), (11, 0.02), (16, 0.02)]
    assert search({2: 30, 4: 20, 8: 4, 16: 2, 11: 4}).smallest() == 16
    assert search({2: 2}).smallest() == 2


def test_where_rows_are_too_few_half_of_the_tolerance_must_do():
    found = search({2: 3}, tolerance=0.06)  # standard error 1.7 points, half of the tolerance 3
    assert found.suffices(2)
    # one row of 100: standard error 1 point, which is all of the tolerance
    assert not search({2: 1}, tolerance=0.01).suffices(2)
    assert search({2: 1}, tolerance=0.02).suffices(2)
    assert search({2: 0}, tolerance=0.0).suffices(2)


def test_hopeless_sizes_are_judged_by_some_rows_only():
    found = search({2: 50}, {2: 50})
    assert not found.suffices(2)
    assert [fold.asked for fold in found.folds] == [[2], []]
    close = search({2: 6}, {2: 6})
    assert not close.suffices(2)
    assert [fold.asked for fold in close.folds] == [[2], [2]]


class FakeReduction:
    """Networks of all rows whose errors are told beforehand; the full one errs on a tenth of the rows."""

    def __init__(self, errors):
        self.errors, self.asked = errors, []

    def reduce(self, size):
        self.asked.append(size)
        return SimpleNamespace(error=self.errors[size], size=size)

    def full_network(self):
        self.asked.append("all")

    def say(self, line):
        pass


def test_the_network_itself_must_pass_or_is_enlarged():
    # 2 of 100 rows, standard error 1.4 points: 3.6 of the tolerance of 5 are left
    found = FakeReduction({2: 0.14, 3: 0.137, 5: 0.135})
    assert search({2: 2}, reduction=found).build().size == 5
    assert found.asked == [2, 3, 5]
    never = FakeReduction(
        dict.fromkeys(
            (2, 3, 5, 8, 12, 17, 25, 36, 51, 73, 104, 148, 210, 297, 421, 596, 843, 1193, 1688), 1
        )
    )
    search({2: 2}, reduction=never).build()
    assert never.asked[-2:] == [1688, "all"]


def test_all_rows_are_kept_where_half_of_them_are_not_enough():
    found = search(dict.fromkeys((2, 4, 8, 16, 32, 64, 128, 256, 512), 50))
    assert found.smallest() == 4000
