import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelpool.rows import ArrayRows, DaskRows, Frame, as_rows, in_memory


def counted(block):
    return np.array(
        [len(block.x), block.x.sum(), 0 if block.weight is None else block.weight.sum()]
    )


def test_threads_and_blocks_do_not_change_a_bit():
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    sums = [ArrayRows(x, n_jobs=n).total(lambda block: block.x.T @ block.x) for n in (1, 2, 3)]
    assert_array_equal(sums[0], sums[1])
    assert_array_equal(sums[0], sums[2])


def test_blocks_of_wide_rows_stay_within_their_bytes():
    """Full kernels of a thousand features make half a million numbers a row: 32 rows at a time, 128
    MB, not 512 and 2 GB.
    """
    assert ArrayRows(np.ones((1000, 2)), width=501_500).block_rows <= 32
    assert (
        ArrayRows(np.ones((1000, 2)), width=5_000).block_rows * 5_000 * 8 <= in_memory.BLOCK_BYTES
    )
    assert ArrayRows(np.ones((100_000, 2)), width=8).block_rows <= in_memory.BLOCK_ROWS


def test_blocks_that_a_device_has_no_memory_for_are_cut():
    class OutOfMemoryError(RuntimeError):
        pass

    def sums(block, most):
        if len(block.x) > most:
            raise OutOfMemoryError
        return block.x.sum(axis=0)

    x = np.arange(2000.0).reshape(1000, 2)
    rows = ArrayRows(x)
    assert_array_equal(rows.total(sums, 300), x.sum(axis=0))
    assert rows.block_rows <= 300
    with pytest.raises(OutOfMemoryError):
        rows.total(sums, 1)


def test_frame_goes_there_and_back_and_bounds_what_is_far():
    frame = Frame(np.array([1e6, -1.0]), np.array([0.25, 8.0]))
    x = np.array([[1e6 + 1, 7.0], [1e308, -1e308]])
    inside = frame.inside(x)
    assert_array_equal(inside[0], [4, 1])
    assert np.isfinite(inside**2).all()
    assert_array_equal(frame.outside(inside[:1]), x[:1])
    assert frame.log_volume == pytest.approx(np.log(2))


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


def test_a_sweep_within_a_sweep_does_not_wait_for_ever():
    """A block that asks rows of its own: all threads of the pool may be taken by the outer
    sweep.
    """
    inner = ArrayRows(np.ones((40_000, 2)), n_jobs=2)
    outer = ArrayRows(np.ones((40_000, 2)), n_jobs=2)
    assert outer.total(lambda block: len(block.x) * inner.total(counted)[0] / 40_000) == 40_000
