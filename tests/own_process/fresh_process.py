"""Run by tests/test_public_names.py in a process of its own, function by function."""

import sys
import threading
from contextlib import suppress

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import kernelpool
from kernelpool.rows import ArrayRows, in_memory


def numpys_threads():
    """Threads of the BLAS that NumPy uses; SciPy and torch may have loaded others, which no sweep
    calls.
    """
    return [
        library["num_threads"] for library in threadpool_info() if "numpy" in library["filepath"]
    ]


def counted(block):
    return np.array(
        [len(block.x), block.x.sum(), 0 if block.weight is None else block.weight.sum()]
    )


def test_modules_are_there_without_another_import_and_torch_is_not():
    kernelpool.load, kernelpool.errors.KernelpoolError, kernelpool.to_onnx  # noqa: B018
    x = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
    y = np.arange(60) % 2
    kernelpool.SharedKernelClassifier(2, random_state=0).fit(x, y).predict(x)
    optional = {"torch", "triton", "jax", "onnxruntime", "skl2onnx", "safetensors", "typer"}
    assert not optional & set(sys.modules)
    assert "kernelpool.fused" not in sys.modules


def test_blas_gets_its_threads_back():
    before = numpys_threads()
    seen = []

    def look(block):
        seen.append(numpys_threads())
        return 0

    ArrayRows(np.ones((10, 2))).total(look)
    assert all(n == 1 for n in seen[0])
    threads = [
        threading.Thread(target=lambda: ArrayRows(np.ones((50_000, 2))).total(counted))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numpys_threads() == before
    with suppress(ZeroDivisionError):
        ArrayRows(np.ones((10, 2))).total(lambda block: 1 / 0)
    assert numpys_threads() == before


def test_threads_follow_the_limit_of_blas():
    with threadpool_limits(1, user_api="blas"):
        assert in_memory.n_threads_for(None) == 1
    assert in_memory.n_threads_for(3) == 3
    assert in_memory.n_threads_for(-1) >= 1


def test_a_hold_of_others_that_ends_first_is_not_brought_back():
    """k-means in one thread, a sweep in another: whoever leaves last, BLAS ends with what it had
    before both.
    """
    before = numpys_threads()
    others = threadpool_limits(1, user_api="blas")
    with in_memory.one_blas_thread():
        others.restore_original_limits()
    assert numpys_threads() == before
    others = threadpool_limits(1, user_api="blas")
    with in_memory.one_blas_thread():
        pass
    others.restore_original_limits()
    assert numpys_threads() == before


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
