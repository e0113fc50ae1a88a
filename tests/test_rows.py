import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelpool.rows import ArrayRows, Block, DaskRows, Frame, as_rows, in_memory
from kernelpool.rows.threads import over_threads


def counted(block):
    return np.array(
        [len(block.x), block.x.sum(), 0 if block.weight is None else block.weight.sum()]
    )


@pytest.mark.parametrize("n", [1, 511, 512, 513, 40_000])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_row_is_visited_once(n, n_jobs):
    x = np.arange(2.0 * n).reshape(n, 2)
    weight = np.arange(1.0 * n)
    rows = ArrayRows(x, None, weight, width=10**5, n_jobs=n_jobs)  # narrow blocks
    np.testing.assert_allclose(rows.total(counted), [n, x.sum(), weight.sum()])
    np.testing.assert_array_equal(rows.each(lambda block: block.x[:, 1] * 2), x[:, 1] * 2)
    np.testing.assert_array_equal(rows.each(lambda block: block.x), x)


def test_threads_and_blocks_do_not_change_a_bit():
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    sums = [ArrayRows(x, n_jobs=n).total(lambda block: block.x.T @ block.x) for n in (1, 2, 3)]
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def test_features_are_kept_between_sweeps_only_while_they_are_small(monkeypatch):
    made = []
    remember = lambda block: block.once("key", lambda b: made.append(1) or b.x.sum(), 1)  # noqa: E731
    rows = ArrayRows(np.ones((100, 2)))
    assert rows.total(remember) == rows.total(remember) == 200
    assert len(made) == 1
    monkeypatch.setattr(in_memory, "KEEP_BYTES", 10)
    rows = ArrayRows(np.ones((100, 2)))
    rows.total(remember)
    rows.total(remember)
    assert len(made) == 3


def test_a_block_keeps_as_much_as_it_has_room_for_and_one_version_of_each():
    made = []

    def make(name):
        return lambda _: made.append(name) or name

    block = Block(np.ones((7, 3)), keep_width=5)
    for _ in range(2):
        assert block.once("a", make("a"), 3) == "a"
        assert block.once("b", make("b"), 3) == "b"  # three of five numbers a row are taken
    assert made == ["a", "b", "b"]
    assert [block.once("a", make(v), 3, version=v) for v in ("v", "v", "w")] == ["v", "v", "w"]
    assert made[3:] == ["v", "w"]


def test_rows_are_held_through_the_sweeps_while_they_are_small(monkeypatch):
    monkeypatch.setattr(in_memory, "KEEP_BYTES", 8 * 100 * 2)
    for n, held in ((100, True), (101, False)):
        rows = ArrayRows(np.ones((n, 2)), width=1000)
        assert rows._block(0).keep_width == 0
        assert (rows._block(0) is rows._block(0)) == held


def test_blocks_of_wide_rows_stay_within_their_bytes():
    """Full kernels of a thousand features make half a million numbers a row: 32 rows at a time, 128 MB, not 512 and 2 GB."""
    assert ArrayRows(np.ones((1000, 2)), width=501_500).block_rows <= 32
    assert (
        ArrayRows(np.ones((1000, 2)), width=5_000).block_rows * 5_000 * 8 <= in_memory.BLOCK_BYTES
    )
    assert ArrayRows(np.ones((100_000, 2)), width=8).block_rows <= in_memory.BLOCK_ROWS


def test_blocks_on_a_device_are_as_large_as_its_memory_allows(monkeypatch):
    monkeypatch.setattr(in_memory, "device_memory", lambda like: 8 << 30)
    rows = ArrayRows(np.ones((1_000_000, 2)), width=64)
    assert rows.block_rows >= 500_000
    assert rows.block_rows * 64 * 8 <= (8 << 30) // 4
    assert rows._keep_width * 8 * rows.n_rows <= (8 << 30) // 4


def test_blocks_that_a_device_has_no_memory_for_are_cut():
    class OutOfMemoryError(RuntimeError):
        pass

    def sums(block, most):
        if len(block.x) > most:
            raise OutOfMemoryError
        return block.x.sum(axis=0)

    x = np.arange(2000.0).reshape(1000, 2)
    rows = ArrayRows(x)
    np.testing.assert_array_equal(rows.total(sums, 300), x.sum(axis=0))
    assert rows.block_rows <= 300
    with pytest.raises(OutOfMemoryError):
        rows.total(sums, 1)


def test_a_frame_that_float32_cannot_hold_stays_finite():
    frame = Frame(np.array([1e150, 0.0]), np.array([1e149, 1.0])).like(np.ones((1, 2), np.float32))
    assert frame.origin.dtype == np.float32
    assert np.isfinite(frame.inside(np.ones((3, 2), np.float32))).all()


def test_frame_goes_there_and_back_and_bounds_what_is_far():
    frame = Frame(np.array([1e6, -1.0]), np.array([0.25, 8.0]))
    x = np.array([[1e6 + 1, 7.0], [1e308, -1e308]])
    inside = frame.inside(x)
    np.testing.assert_array_equal(inside[0], [4, 1])
    assert np.isfinite(inside**2).all()
    np.testing.assert_array_equal(frame.outside(inside[:1]), x[:1])
    assert frame.log_volume == pytest.approx(np.log(2))


def test_blas_threads_in_a_process_of_their_own():
    """The number of BLAS threads is the whole process's: other tests, and the pools they start, would be judged too."""
    checks = Path(__file__).with_name("own_process") / "blas_threads.py"
    kwargs = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--override-ini=addopts=",
        str(checks),
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *kwargs], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert "4 passed" in run.stdout


def test_backends_are_chosen_by_the_type_of_x():
    da = pytest.importorskip("dask.array")
    assert isinstance(as_rows(np.ones((2, 2))), ArrayRows)
    assert isinstance(as_rows(da.ones((2, 2))), DaskRows)
    with pytest.raises(
        ValueError, match="Rows must be an array of an array-API library or of Dask; got list"
    ):
        as_rows([[1, 2]])


def test_an_empty_cluster_says_so():
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="no rows: every chunk is empty"):
        as_rows(da.ones((0, 2))).total(counted)


@pytest.mark.parametrize(
    ("n", "most"), [(1, 10), (10, 10), (11, 10), (65, 10), (100_000, 15_420), (100_000, 2818)]
)
def test_blocks_are_of_equal_size_and_an_even_number(n, most):
    size = in_memory._equal_blocks(n, most, 8)
    n_blocks = -(-n // size)
    assert 1 <= size <= most
    assert n_blocks == 1 or n_blocks % 2 == 0
    assert n_blocks < 8 or n_blocks % 8 == 0
    assert (
        n - (n_blocks - 1) * size > size - n_blocks
    )  # the last one lacks at most a row for each other


def test_rows_far_outside_the_frame_are_held_within_its_bounds():
    x = np.array([[1e308, -1e308], [0.0, 3.0]])
    frame = Frame(np.array([-1e308, 1.0]), np.array([1.0, 1e-10]))
    np.testing.assert_allclose(frame.inside(x), [[1e100, -1e100], [1e100, 2e10]])


@pytest.mark.parametrize("n_threads", [1, 3, 8])
def test_every_task_is_done_once_and_faults_come_back(n_threads):
    done = []
    over_threads(done.append, 20, n_threads)
    assert sorted(done) == list(range(20))
    for wrong in (0, 19):
        with pytest.raises(IndexError, match="mine"):
            over_threads(lambda task, wrong=wrong: fault(task, wrong), 20, n_threads)


def fault(task, wrong):
    if task == wrong:
        raise IndexError("mine")


def test_a_sweep_within_a_sweep_does_not_wait_for_ever():
    """A block that asks rows of its own: all threads of the pool may be taken by the outer sweep."""
    inner = ArrayRows(np.ones((40_000, 2)), n_jobs=2)
    outer = ArrayRows(np.ones((40_000, 2)), n_jobs=2)
    assert outer.total(lambda block: len(block.x) * inner.total(counted)[0] / 40_000) == 40_000
