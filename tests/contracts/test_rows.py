"""The contract of `Rows`: what every backend must do, checked on all of them against a loop over
the rows.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool.arrays import to_numpy
from kernelpool.rows import ArrayRows, DaskRows, Frame, Rows, Store, StoredRows

N = 403
D = 3


def in_numpy(x, y, w):
    return ArrayRows(x, y, w, width=30_000)


def in_threads(x, y, w):
    return ArrayRows(x, y, w, width=30_000, n_jobs=2)


def in_strict(x, y, w):
    xp = pytest.importorskip("array_api_strict")
    return ArrayRows(*map(xp.asarray, (x, y, w)), width=30_000)


def in_torch(x, y, w):
    torch = pytest.importorskip("torch")
    return ArrayRows(*map(torch.asarray, (x, y, w)), width=30_000)


def in_cuda(x, y, w):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return ArrayRows(*(torch.asarray(a, device="cuda") for a in (x, y, w)))


def in_dask(x, y, w):
    da = pytest.importorskip("dask.array")
    chunks = (100, 0, 200, 103)
    return DaskRows(
        *(da.from_array(a, chunks=(chunks, D)[: a.ndim]) for a in (x, y, w)), width=30_000
    )


def in_a_file(x, y, w):
    store = Store(D, x.dtype, weighted=True)
    for a, b in pairwise([0, 1, 1, 150, 400, N]):
        store.add(x[a:b], y[a:b], w[a:b])
    return StoredRows(store, width=30_000)


BACKENDS = [in_numpy, in_threads, in_strict, in_torch, in_cuda, in_dask, in_a_file]


@pytest.fixture(params=BACKENDS, ids=lambda make: make.__name__)
def backend(request):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D))
    y = rng.integers(-1, 3, size=N)
    w = rng.uniform(size=N)
    return request.param(x, y, w), x, y, w


def host(a):
    return to_numpy(a.compute() if hasattr(a, "compute") else a)


def moments(block, power):
    x, y, w = map(host, (block.x, block.y, block.weight))
    return np.array([len(x), w.sum(), *(w @ x**power), np.bincount(y + 1, minlength=4)[2]])


def expected(x, y, w, power):
    return np.array(
        [len(x), w.sum(), *sum(w[i] * x[i] ** power for i in range(len(x))), (y == 1).sum()]
    )


def twice(block):
    return block.x * 2


def test_what_a_home_says_of_itself(backend):
    rows, x, _, _ = backend
    asked: Rows = rows
    assert asked.n_features == D
    assert asked.backend.shape == (0,)
    assert asked.eps == np.finfo(x.dtype).eps


def test_sums_are_over_every_row_once(backend):
    rows, x, y, w = backend
    for some, power in ((rows, 1), (rows, 2), (rows.by_class(), 2)):
        assert_allclose(some.total(moments, power), expected(x, y, w, power), rtol=1e-12)


def test_answers_come_in_the_order_of_the_rows(backend):
    rows, x, _, _ = backend
    if isinstance(rows, DaskRows | StoredRows):
        pytest.skip("answers are made of parts in memory")
    assert_array_equal(host(rows.each(twice)), 2 * x)
    assert_array_equal(host(rows.by_class().each(twice)), 2 * x)


def test_rows_are_seen_in_the_frame(backend):
    rows, x, y, w = backend
    frame = Frame(np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.5, 4.0]))
    framed = rows.framed(frame, 20_000)
    inside = (x - frame.origin) / frame.unit
    assert_allclose(framed.total(moments, 2), expected(inside, y, w, 2), rtol=1e-12)
    assert_allclose(
        rows.total(moments, 2), expected(x, y, w, 2), rtol=1e-12
    )  # those before are as they were


def spans_hold_one_class(block):
    for code, span in (block.classes or {}).items():
        assert (host(block.y)[span] == code).all()
    return np.array([block.x.shape[0]])


def test_blocks_that_name_their_classes_are_right(backend):
    assert backend[0].by_class().total(spans_hold_one_class) == N


def test_a_sum_is_the_same_to_the_last_bit_every_time(backend):
    rows = backend[0]
    assert_array_equal(rows.total(moments, 2), rows.total(moments, 2))


def test_a_fault_in_a_block_comes_out(backend):
    with pytest.raises(Exception, match="mine"):
        backend[0].total(fault)


def fault(block):
    raise ValueError("mine")


def test_the_example_of_the_page_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "extending" / "add_a_backend.md"
    names = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)), names)
    assert names["difference"] < 1e-9
