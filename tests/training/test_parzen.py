"""Parzen networks from rows: the stages of a reduction, and star-shaped kernels."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier
from kernelpool.datasets import make_clouds
from kernelpool.networks.parzen import log_votes, parzen_params
from kernelpool.networks.parzen_kernels import PROFILES
from kernelpool.rows import Block
from kernelpool.training.parzen import (
    ParzenConfig,
    Reduction,
    ReductionConfig,
    StarShaped,
    apportion_kernels,
    labeled,
    multi_edit,
)


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(2000, random_state=0)


def reduction_of(X, y, seed=0, *, radius=None, edit=False, max_sweeps=1, **options):
    rows = labeled(ReducedParzenClassifier(), X, y, None).merge_duplicates()
    parzen = ParzenConfig(PROFILES["hypersphere"](), radius)
    config = ReductionConfig("entropy", "equal", 64, max_sweeps, 1e-3, edit)
    return Reduction(rows, parzen, config, np.random.RandomState(seed), **options)


def test_a_star_shaped_set_is_given_by_its_gauge():
    cube = StarShaped(lambda u: np.abs(u).max(axis=1), math.log(4))
    net = parzen_params(np.zeros((1, 2)), np.ones(1), (0, 1), np.zeros(1), 2.0)
    votes = log_votes(Block(np.array([[1.9, -1.9], [2.1, 0.0]])), cube, net)
    assert votes[:, 0].tolist() == [0.0, -math.inf]


def test_a_cube_has_its_volume():
    assert StarShaped.measured(lambda u: np.abs(u).max(axis=1), 3).log_volume(3) == pytest.approx(
        math.log(8), abs=0.01
    )


def test_the_full_network_is_judged_by_every_row_left_out(clouds):
    X, y = clouds[0][:200], clouds[1][:200]
    reduction = reduction_of(X, y, radius=0.3)
    wrong = [
        ParzenClassifier("hypersphere", standardize=False, radius=0.3)
        .fit(np.delete(X, i, 0), np.delete(y, i))
        .predict(X[i : i + 1])[0]
        != y[i]
        for i in range(200)
    ]
    np.testing.assert_array_equal(reduction.full_wrong(), np.asarray(wrong)[reduction.data.index])


def test_editing_may_end_after_its_first_round(clouds):
    """Whatever is kept, it is what one of the two left; and on these rows one round leaves more than many."""
    X, y = clouds[0][:800], clouds[1][:800]
    judge = ParzenClassifier(
        "hypersphere",
        standardize=False,
        radius=ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0)
        .fit(X, y)
        .radius_,
    )
    pools = reduction_of(X, y, edit=True).pools
    assert len(pools) == 2
    assert set(pools[1]) < set(pools[0])  # the first round is the same in both
    once = MultiEdit(judge, max_rounds=1, random_state=0).fit(X, y)
    assert len(pools[0]) == pytest.approx(len(once.sample_indices_), rel=0.02)


def test_a_fixed_radius_lets_the_errors_choose_the_rows(monkeypatch):
    X, y = make_clouds(300, random_state=0)
    reduction = reduction_of(X, y, radius=0.5, edit="auto", max_sweeps=0)
    assert len(reduction.pools) == 3
    made = reduction.reduce(20)
    for best in range(3):

        def trial(some, way, *_, best=best):
            return replace(made, error=float(way[0] != best))

        monkeypatch.setattr(reduction, "_trial", trial)
        assert reduction._best_way(20, 0) == (best, 0)
    network = ReducedParzenClassifier(
        20, standardize=False, radius=0.5, max_sweeps=0, random_state=0
    ).fit(X, y)
    assert network.radius_ == 0.5
    assert not hasattr(network, "radii_")


def test_trials_are_records_and_the_best_is_kept(clouds):
    reduction = reduction_of(clouds[0][:300], clouds[1][:300])
    assert reduction.best_trial is None
    first, second = reduction.reduce(4), reduction.reduce(20)
    assert first.network.kernels.shape == (4, 2)
    assert second.network.kernels.shape == (20, 2)
    assert reduction.best_trial.error <= min(first.error, second.error)


def test_editing_spares_the_last_rows_of_a_class():
    codes = np.array([0] * 9 + [1] * 3)
    edited = multi_edit(
        codes, lambda judges, part: np.zeros(len(part), int), np.random.RandomState(0), max_rounds=1
    )
    assert edited.spared.tolist() == [1]
    assert edited.kept.tolist() == list(range(12))
    assert edited.history.tolist() == [12, 12]


def test_kernels_are_dealt_out_by_websters_method():
    assert apportion_kernels(np.array([53.0, 24.0, 23.0]), np.array([99, 99, 99]), 7) == [3, 2, 2]
    assert apportion_kernels(np.array([98.0, 1.0, 1.0]), np.array([3, 99, 99]), 7) == [3, 2, 2]
