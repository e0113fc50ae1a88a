"""The table of candidates, and classifiers that are listed."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB

from kernelpool import ParzenClassifier, RBFNetworkClassifier, SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.pool.members import SETS, candidates_of
from kernelpool.tables.columns import Columns

NUMBERS = Columns.numbers(2)
CATEGORIES = Columns((np.array(["a", "b"], object), None))


@pytest.mark.parametrize("members", SETS)
@pytest.mark.parametrize("columns", [NUMBERS, CATEGORIES])
@pytest.mark.parametrize("missing", [False, True])
def test_sets_begin_with_a_mixture_and_their_names_are_distinct(members, columns, missing):
    candidates = candidates_of(members, 2, columns, missing)
    assert candidates[0].has_densities
    names = [candidate.name for candidate in candidates]
    assert len(set(names)) == len(names)
    more = missing or columns is CATEGORIES  # as the guide says
    assert len(names) == {"auto": 8, "fast": 5}[members] + more


def test_listed_classifiers_take_codes_or_the_table():
    members = [
        ("mixture", SharedKernelClassifier()),
        ParzenClassifier(),
        ("rbf", RBFNetworkClassifier()),
        GaussianNB(),
        HistGradientBoostingClassifier(),
    ]
    candidates = candidates_of(members, 2, CATEGORIES)
    assert [(c.name, c.view) for c in candidates] == [
        ("mixture", "codes"),
        ("ParzenClassifier 2", "codes"),
        ("rbf", "codes"),
        ("GaussianNB 4", "complete table"),
        ("HistGradientBoostingClassifier 5", "table"),
    ]
    assert [c.has_densities for c in candidates] == [True, False, False, False, False]
    assert [c.kind.leave_one_out is not None for c in candidates] == [False, True] + [False] * 3
    rbf = RBFNetworkClassifier(10).fit(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
    assert candidates[2].narrowed(rbf).estimator.width == rbf.width_


def test_what_is_no_classifier_is_refused():
    with pytest.raises(KernelpoolError, match=r"or one of .*'fast'.*; str 1 is 'catboost'"):
        candidates_of(["catboost"], 2, NUMBERS)
    with pytest.raises(KernelpoolError, match="got an empty list"):
        candidates_of([], 2, NUMBERS)
