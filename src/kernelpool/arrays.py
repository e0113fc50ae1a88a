"""The one module that knows array libraries.

Everything else asks an array for its namespace and then speaks the array API standard, so NumPy,
torch and any conforming library run the same lines. Where a library can do better than the standard
asks (work in place), it is done here and nowhere else.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import is_
from typing import Any
from warnings import warn

import array_api_compat.numpy as numpy_namespace
import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array
from array_api_compat import device as device
from array_api_compat import is_writeable_array as is_writeable_array
from numpy.lib.stride_tricks import as_strided
from scipy.linalg.lapack import dtrtri
from scipy.special import ndtr

Array = Any
"""An array of any library; shapes are in the comments and docstrings."""

is_array = is_array_api_obj


_namespaces: dict[type, Any] = {np.ndarray: numpy_namespace}


_NUMPY = (np.ndarray, np.generic)


def is_numpy_array(a: Any) -> bool:
    """Whether `a` belongs to NumPy."""
    return isinstance(a, _NUMPY)


def namespace(a: Array) -> Any:
    """The array API of the library that `a` belongs to."""
    xp = _namespaces.get(type(a))  # hundreds of times a sweep
    if xp is None:
        xp = _namespaces[type(a)] = array_namespace(a)
    return xp


# -- where rows live -------------------------------------------------------------------------------


def is_lazy(x: Any) -> bool:
    """Whether rows are computed only when they are asked for: those of Dask."""
    return hasattr(x, "to_delayed") and hasattr(x, "rechunk")


def is_lazy_frame(x: Any) -> bool:
    """Whether it is a data frame or a series of Dask."""
    return hasattr(x, "to_dask_array") and hasattr(x, "npartitions")


def is_foreign_array(x: Any) -> bool:
    """Whether `x` is an array of another library than NumPy, or of Dask: it stays where it is."""
    return is_lazy(x) or (is_array(x) and not is_numpy_array(x))


def column_like(x: Array, column: Any) -> Any:
    """A column in the library and device of `x`; floats also in its float type."""
    if is_lazy(x) or is_numpy_array(x):
        return column.astype(x.dtype) if column.dtype.kind == "f" else column
    return match_array(namespace(x).asarray(column), like=x)


def of_parts(column: Any, function: Callable[..., Any], *params: Any) -> list[Any]:
    """`function(part, *params)` for every part in which a column lives: one for what is in
    memory.
    """
    if not is_lazy(column):
        return [function(column, *params)]
    import dask

    return list(
        dask.compute(
            *(dask.delayed(function)(part, *params) for part in column.to_delayed().ravel())
        )
    )


def map_column(column: Any, function: Callable[..., np.ndarray], *params: Any, dtype: Any) -> Any:
    """`function(column, *params)`, entry by entry, where the column lives."""
    return (
        column.map_blocks(function, *params, dtype=dtype)
        if is_lazy(column)
        else function(column, *params)
    )


def is_dataset(X: Any) -> bool:
    """Whether it is a data set of pyarrow."""
    return hasattr(X, "get_fragments") and hasattr(X, "schema")


def is_table(X: Any) -> bool:
    """Whether a data frame or an Arrow table is in memory: those of Dask are not."""
    frame = hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc")
    return (frame or hasattr(X, "__arrow_c_array__")) and not hasattr(X, "npartitions")


# -- numbers ----------------------------------------------------------------------------------------

LOG_ZERO = -1e30
"""Stands for log 0 inside matrix products, where 0 * -inf would be NaN."""


def eps_of(x: Array) -> float:
    """Spacing of the floating-point type of `x` at one."""
    return float(namespace(x).finfo(x.dtype).eps)


def to_numpy(a: Array) -> np.ndarray:
    """`a` as a NumPy array on the host."""
    if is_torch_array(a):
        a = detach(a).cpu()
    return (
        a if is_numpy_array(a) else np.from_dlpack(a) if hasattr(a, "__dlpack__") else np.asarray(a)
    )


@lru_cache
def _fields_of(record: type) -> tuple[str, ...] | None:
    return tuple(f.name for f in fields(record)) if is_dataclass(record) else None


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """`value`, an array or a record or tuple of arrays, with `function` of each array in their
    place; itself where all stay as they are.
    """
    kind = type(value)
    if kind is np.ndarray:
        return function(value)
    names = _fields_of(value.__class__)
    if names is None and kind is not tuple:
        return function(value) if is_array(value) else value
    parts = value if names is None else [getattr(value, name) for name in names]
    mapped = [_mapped(part, function) for part in parts]
    if all(map(is_, mapped, parts)):
        return value
    return tuple(mapped) if names is None else kind(**dict(zip(names, mapped, strict=True)))


def match_array(value: Any, like: Array) -> Any:
    """`value`, an array or a record or tuple of arrays, in the library, device and float type of
    `like`.
    """
    if on_accelerator(like):
        return _upload(value, like)
    return _mapped(value, lambda a: _matched(a, like))


def _matched(value: Any, like: Array) -> Any:
    if type(value) is np.ndarray and type(like) is np.ndarray and value.dtype == like.dtype:
        return value
    xp = namespace(like)
    home = device(like)
    if namespace(value) is not xp:
        value = xp.asarray(to_numpy(value))
    if xp.isdtype(value.dtype, "real floating"):
        return xp.asarray(value, dtype=like.dtype, device=home)
    return xp.asarray(value, device=home)


HOST_DEVICES = ("cpu",)
"""Types of torch devices whose memory is the host's."""


def on_accelerator(a: Array) -> bool:
    """Whether `a` lives on a device of its own, where a launch takes longer than small arrays and a
    copy makes it wait.
    """
    return is_torch_array(a) and a.device.type not in HOST_DEVICES


def _in_one_copy(
    value: Any,
    chosen: Callable[[Array], bool],
    move: Callable[[list[Array]], list[Array]],
    rest: Callable[[Any], Any],
) -> Any:
    """`value` with its `chosen` arrays moved at once, by `move` from a list to a list, and `rest`
    made of each other one.
    """
    arrays: list[Array] = []

    def collect(a: Any) -> Any:
        if chosen(a):
            arrays.append(a)
        return a

    _mapped(value, collect)
    moved = iter(move(arrays) if arrays else ())
    return _mapped(value, lambda a: next(moved) if chosen(a) else rest(a))


def _upload(value: Any, like: Array) -> Any:
    """`value` beside `like`, an array on an accelerator; all float arrays of the host by one
    copy.
    """

    def is_host_float(a: Any) -> bool:
        return type(a) is np.ndarray and a.dtype.kind == "f"

    import torch

    def move(arrays: list[Array]) -> list[Array]:
        dtype = np.float64 if like.dtype == torch.float64 else np.float32
        flat = np.concatenate([a.ravel() for a in arrays], dtype=dtype, casting="same_kind")
        parts = torch.from_numpy(flat).to(like.device).split([a.size for a in arrays])
        return [part.view(a.shape) for part, a in zip(parts, arrays, strict=True)]

    return _in_one_copy(value, is_host_float, move, lambda a: _matched(a, like))


def to_host(value: Any) -> Any:
    """What lives on an accelerator in `value`, an array or a record or tuple of arrays, as NumPy
    arrays, floats in float64.
    """

    def is_card_float(a: Any) -> bool:
        return on_accelerator(a) and bool(a.is_floating_point())

    def move(arrays: list[Array]) -> list[Array]:
        import torch

        flat = torch.cat([a.detach().reshape(-1).double() for a in arrays])
        parts = np.split(flat.cpu().numpy(), np.cumsum([a.numel() for a in arrays])[:-1])
        return [part.reshape(a.shape) for part, a in zip(parts, arrays, strict=True)]

    return _in_one_copy(
        value, is_card_float, move, lambda a: to_numpy(a) if on_accelerator(a) else a
    )


def detach(a: Array) -> Array:
    """`a` without the record of gradients that torch may keep of it."""
    return a.detach() if is_torch_array(a) else a


def as_float64(a: Array) -> Array:
    """`a` in float64: sums over many rows are kept in it whatever the type of the rows."""
    xp = namespace(a)
    return a if a.dtype == xp.float64 else xp.astype(a, xp.float64)


def empty(shape: tuple[int, ...], like: Array) -> Array:
    """An array of the library, device and type of `like`, its entries not set."""
    return namespace(like).empty(shape, dtype=like.dtype, device=device(like))


_thread_local = threading.local()


def thread_scratch(name: str, shape: tuple[int, ...], like: Array) -> Array:
    """Like `empty`, but memory of the calling thread that the next call with the same `name`
    returns again.

    Fresh pages cost as much as the sums that are written into them. Arrays of different names never
    overlap.
    """
    if not is_numpy_array(like):
        return empty(shape, like)
    arrays = _thread_local.__dict__
    size = math.prod(shape)
    out = arrays.get(name)
    if out is None or out.dtype != like.dtype or not size <= out.size <= 4 * size:
        out = arrays[name] = np.empty(size, like.dtype)
    return out[:size].reshape(shape)


DEVICE_MEMORY = 4 << 30
"""Bytes taken to be free on an accelerator that does not tell."""


def device_memory(like: Array) -> int | None:
    """Free bytes on the accelerator that holds `like`; None on a CPU, where blocks are cut for its
    caches instead.
    """
    if not on_accelerator(like):
        return None
    if like.device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(like.device)
        return int(free)
    return DEVICE_MEMORY


def transpose_into(out: Array, x: Array) -> None:
    """out = x', rows as columns."""
    if can_fuse(x, 1) and x.shape[1] <= 64 and x.is_contiguous() and out.stride(1) == 1:
        import torch

        from . import fused

        with torch.cuda.device_of(x):  # Triton launches on the current device
            fused.transpose_into(out, x)
    else:
        out[...] = x.T


def clip(a: Array, low: float, high: float) -> Array:
    """`a` between `low` and `high`; the standard's clip takes five times as long on small
    arrays.
    """
    return np.clip(a, low, high) if is_numpy_array(a) else namespace(a).clip(a, min=low, max=high)


def multiply_into(out: Array, a: Array, b: Array, name: str = "multiply") -> None:
    """out = a * b, or another function of the standard, without a copy where the library can."""
    function = getattr(namespace(out), name)
    if is_numpy_array(out) or is_torch_array(out):
        function(a, b, out=out)
    else:
        out[...] = function(a, b)


def matmul_into(out: Array, a: Array, b: Array) -> None:
    """out = a @ b, without a copy where the library can."""
    multiply_into(out, a, b, "matmul")


def multiply_pairs_into(out: Array, x: Array) -> None:
    """The products of all pairs of rows of `x` (d, n), in the order of `triangle`, (d (d + 1) / 2,
    n).
    """
    d, n = x.shape
    whole = (d + 1) // 2
    if is_numpy_array(out) and n:  # one call: between many small ones threads wait for each other
        ring = np.concatenate([x, x[: d // 2]])
        turned = as_strided(ring, (whole, d, n), (ring.strides[0], *ring.strides), writeable=False)
        np.multiply(turned, x, out=out[: whole * d].reshape(whole, d, n))
    else:
        for k in range(whole):
            multiply_into(out[k * d : (k + 1) * d - k, :], x[: d - k, :], x[k:, :])
            multiply_into(out[(k + 1) * d - k : (k + 1) * d, :], x[d - k :, :], x[:k, :])
    if d % 2 == 0:
        multiply_into(out[whole * d :, :], x[: d // 2, :], x[d // 2 :, :])


def take_columns(a: Array, columns: list[int]) -> Array:
    """Some columns of `a`, along its last axis; ten times as fast as by the standard where there
    are few rows.
    """
    if is_numpy_array(a):
        return a.take(np.asarray(columns, np.int64), axis=-1)
    xp = namespace(a)
    return xp.take(a, xp.asarray(columns, dtype=xp.int64, device=device(a)), axis=-1)


def safe_log(p: Array) -> Array:
    """log p with log 0 = -inf and no warning: a probability of zero is a statement, not an
    accident.
    """
    xp = namespace(p)
    positive = p > 0  # what is below zero, or no number, counts as zero
    one = xp.ones_like(p)
    return xp.where(positive, xp.log(xp.where(positive, p, one)), -xp.inf * one)


def logsumexp(a: Array, axis: int) -> Array:
    """log sum exp along `axis`, exact at -inf and free of overflow."""
    xp = namespace(a)
    peak = xp.max(a, axis=axis, keepdims=True)
    peak = xp.where(xp.isfinite(peak), peak, xp.zeros_like(peak))
    return safe_log(xp.sum(xp.exp(a - peak), axis=axis)) + xp.squeeze(peak, axis=axis)


def without_overflow_warnings() -> Any:
    """A context in which NumPy does not warn of infinities."""
    return np.errstate(over="ignore", invalid="ignore")


def exp_at_least(a: Array, smallest: float) -> Array:
    """exp(max(a, smallest)), in place where the library can."""
    if is_numpy_array(a):
        if a.min() < smallest:
            np.maximum(a, smallest, out=a)
        return np.exp(a, out=a)
    if is_torch_array(a):
        return a.clamp_(min=smallest).exp_()
    xp = namespace(a)
    return xp.exp(xp.clip(a, min=smallest))


FLOAT32_ROWS = 8192
"""Rows of a product that are summed in float32 on an accelerator: blocks are far larger there."""


def feature_sums(phi: Array, responsibility: Array) -> Array:
    """phi @ responsibility', (P, M), from (P, n) and (M, n); in float64 over more rows than a block
    has on a CPU.
    """
    n = phi.shape[1]
    if not on_accelerator(phi) or eps_of(phi) < 1e-10 or n <= FLOAT32_ROWS:
        return phi @ responsibility.T
    import torch

    whole = n // FLOAT32_ROWS * FLOAT32_ROWS
    left, right = (a[:, :whole].unflatten(1, (-1, FLOAT32_ROWS)) for a in (phi, responsibility))
    parts = torch.bmm(left.transpose(0, 1), right.permute(1, 2, 0))
    return torch.sum(parts, 0, dtype=torch.float64) + phi[:, whole:] @ responsibility[:, whole:].T


def counts_of_codes(weight: Array, codes: Array, n_levels: int) -> Array:
    """Weights (M, n) summed by the codes (n,) of the columns, (M, n_levels), in float64."""
    xp = namespace(weight)
    shape = (weight.shape[0], n_levels)
    if is_numpy_array(weight):
        counts = [np.bincount(codes, w, minlength=n_levels) for w in weight]
        return np.reshape(counts, shape).astype(np.float64, copy=False)
    if is_torch_array(weight):
        counts = xp.zeros(shape, dtype=xp.float64, device=weight.device)
        return counts.index_add_(1, codes, as_float64(weight))
    counts = counts_of_codes(to_numpy(weight), to_numpy(codes), n_levels)
    return xp.asarray(counts, device=device(weight))


def can_fuse(x: Array, n_kernels: int) -> bool:
    """Whether `fused_sums` takes so many kernels: it needs float32 rows on an NVIDIA card, and
    Triton.
    """
    if not is_torch_array(x) or x.device.type != "cuda" or eps_of(x) < 1e-10 or not x.shape[0]:
        return False
    fused = _fused_on(x.device)
    return fused is not None and n_kernels <= fused.MOST_KERNELS


@lru_cache
def _fused_on(card: Any) -> Any | None:
    """The module of fused kernels where it works on the card: it takes Triton, a C compiler and
    units for tf32.
    """
    import torch

    if torch.version.hip is not None or torch.cuda.get_device_capability(card) < (8, 0):
        return None
    try:
        from . import fused
    except ImportError:  # torch without Triton
        return None
    try:
        with torch.cuda.device_of(rows := torch.zeros((4, 4), device=card)):
            fused.transpose_into(torch.empty_like(rows), rows)
    except Exception as error:  # whatever a compiler may have to say
        warn(
            f"Triton does not work on {card}, which is used without fused kernels: {error}",
            stacklevel=2,
        )
        return None
    return fused


def fused_sums(
    columns: Array, pairs: tuple[tuple[int, int], ...], weight: Array | None, natural: Array
) -> tuple[Array, Array]:
    """sum_n phi_n r_n', (P, M) in float64, and log sum exp, (n,), by kernels that keep the features
    on the chip.

    Feature p of a row is the product of the `columns` (c, n) named by `pairs[p]`; responsibilities
    are the softmax of `natural` (M, P) times features, times the `weight` of the row.
    """
    import torch

    from . import fused

    with torch.cuda.device_of(columns):
        sums: tuple[Array, Array] = fused.fused_sums(columns, pairs, weight, natural)
    return sums


NEGLIGIBLE = 1e-20
"""A weight this small beside the largest is left out of sums of squares: what n rows lose is below
n * 1e-20 of one row.
"""


def squared_distances(x: np.ndarray, center: np.ndarray, exact: bool = False) -> np.ndarray:
    """|x - center|², (n, m), of rows (n, d) and centers (m, d) of NumPy.

    They come from one matrix product, whose rounding may leave values just below zero; or, `exact`
    and slower, from differences, which do not cancel.
    """
    if not exact:
        left = np.column_stack([-2 * x, (x**2).sum(axis=1), np.ones(len(x))])
        right = np.column_stack([center, np.ones(len(center)), (center**2).sum(axis=1)])
        return left @ right.T
    squared = np.zeros((len(x), len(center)))
    for column, centers in zip(x.T, center.T, strict=True):
        squared += np.subtract.outer(column, centers) ** 2
    return squared


CACHED_NUMBERS = 1 << 15
"""Cells of which whitened distances are taken at once, so that the products stay in the caches."""

MIN_CACHED_ROWS = 256
"""Rows at least of which they are taken at once."""


def whitened_distances(x: Array, mean: Array, factor: Array) -> Array:
    """|factor (x - mean)|², (n,), of rows (n, d) and a lower triangular matrix (d, d)."""
    if not is_numpy_array(x):
        white = (x - mean) @ factor.T
        return namespace(x).vecdot(white, white)
    n, d = x.shape
    out = np.empty(n, x.dtype)
    step = min(n, max(CACHED_NUMBERS // max(d, 1), MIN_CACHED_ROWS))
    width = d if d < 128 else -(-d // 4)
    deviation = thread_scratch("deviation", (step, d), x)
    white = thread_scratch("white", (step, d), x)
    for i in range(0, n, max(step, 1)):
        k = min(step, n - i)
        np.subtract(x[i : i + k], mean, out=deviation[:k])
        for j in range(0, d, max(width, 1)):  # the entries above the diagonal are zero
            end = j + width
            np.matmul(deviation[:k, :end], factor[j:end, :end].T, out=white[:k, j:end])
        np.einsum("nd,nd->n", white[:k], white[:k], out=out[i : i + k])
    return out


def rows_above(a: Array, limit: float) -> Array | None:
    """Where `a` (n,) exceeds `limit`; None where that is nearly everywhere, or where to ask would
    make an accelerator wait.
    """
    if not is_numpy_array(a):
        return None
    above = a > limit
    return None if 8 * np.count_nonzero(above) > 7 * a.size else np.flatnonzero(above)


def rows_that_count(weight: Array) -> Array | None:
    """Where weights (n,), of either sign, are more than `NEGLIGIBLE` beside the largest; None as
    above.
    """
    if not is_numpy_array(weight) or not weight.size:
        return None
    size = np.abs(weight)
    return rows_above(size, NEGLIGIBLE * float(size.max()))


def weighted_gram(x: Array, weight: Array) -> Array:
    """sum_n weight_n x_n x_n', (d, d), from rows (n, d)."""
    # BLAS takes half the time for a matrix times itself
    if is_numpy_array(x) and x.size and weight.min() >= 0:
        root = x * np.sqrt(weight)[:, None]
        return root.T @ root
    return (x * weight[:, None]).T @ x


def outer_sums(x: Array, weight: Array) -> tuple[Array, Array] | None:
    """sum_n weight[j, n] x_n, (M, d), and sum_n weight[j, n] x_n x_n', (M, d, d), from the weights
    that count alone.

    Weights may be negative. None where too few of the weights (M, n) are negligible for that to
    pay: in many dimensions nearly all of them are, and a product over all pairs of kernels and rows
    is mostly spent on zeros.
    """
    n_kernels, n = weight.shape
    d = x.shape[1]
    # about this many features make gathering the rows of one kernel cheaper than a product over all
    # rows (measured)
    if not is_numpy_array(weight) or weight.size == 0 or d < 12:
        return None
    low = weight.min()
    high = weight.max()
    limit = NEGLIGIBLE * max(-low, high)
    counts = weight > limit
    if low < -limit:
        counts |= weight < -limit
    if 8 * np.count_nonzero(counts) > weight.size:
        return None
    pairs = np.flatnonzero(counts)  # sorted by kernel
    ends = np.searchsorted(pairs, n * np.arange(n_kernels + 1))
    gathered = x.take(pairs % n, axis=0)
    weighted = gathered * weight.reshape(-1)[pairs][:, None]
    first = np.zeros((n_kernels, d), x.dtype)
    second = np.zeros((n_kernels, d, d), x.dtype)
    used = np.flatnonzero(ends[1:] > ends[:-1])
    first[used] = np.add.reduceat(weighted, ends[used], axis=0)
    for j in used:
        of_kernel = slice(ends[j], ends[j + 1])
        np.matmul(weighted[of_kernel].T, gathered[of_kernel], out=second[j])
    return first, second


def normal_cdf(a: Array) -> Array:
    """The standard normal distribution function; on the host, where it is needed for a few draws
    only.
    """
    return match_array(namespace(a).asarray(ndtr(to_numpy(a))), like=a)


def cholesky(a: Array) -> Array | None:
    """Lower Cholesky factors of a stack of matrices, or None where one of them is not positive
    definite.
    """
    xp = namespace(a)
    try:
        factor = xp.linalg.cholesky(a)
    except Exception as error:  # each library has its own LinAlgError
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return factor if bool(xp.all(xp.isfinite(factor))) else None


def with_diagonal(a: Array, diagonal: Array) -> Array:
    """Matrices (..., d, d) with another diagonal, (..., d)."""
    one = namespace(a).eye(a.shape[-1], dtype=a.dtype, device=device(a))
    return a * (1 - one) + diagonal[..., None] * one


def inverse_of_lower(factor: Array, *, overwrite: bool = False) -> Array:
    """Inverses of a stack of lower triangular matrices, (..., d, d); in their own memory where that
    may be and can.
    """
    if not is_numpy_array(factor) or factor.shape[-1] < 8:
        return namespace(factor).linalg.inv(factor)
    inverse = factor if overwrite else factor.copy()
    # LAPACK's own takes a third of the time, though one at a time; turned, since it wants columns.
    # It tells of a zero on the diagonal, which a Cholesky factor does not have
    for index in np.ndindex(factor.shape[:-2]):
        inverse[index] = dtrtri(inverse[index].T, lower=0, overwrite_c=1)[0].T
    return inverse


def _ring_pairs(d: int) -> tuple[np.ndarray, np.ndarray]:
    position = np.arange(d * (d + 1) // 2)
    first = position % d
    apart = position // d
    return first, (first + apart) % d


@lru_cache
def triangle_pairs(d: int) -> tuple[tuple[int, int], ...]:
    """The pairs of rows of `multiply_pairs_into`: a row with itself, the next one, ... in a ring,
    every pair once.
    """
    first, second = _ring_pairs(d)
    return tuple(zip(first.tolist(), second.tolist(), strict=True))


@lru_cache(maxsize=8)
def _triangle_arrays(d: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second = _ring_pairs(d)
    back = np.empty((d, d), np.int64)
    back[first, second] = back[second, first] = np.arange(len(first))
    upper = np.minimum(first, second) * d + np.maximum(first, second)
    return upper, back.reshape(-1), np.where(first == second, 1, 2).astype(dtype)


def triangle(like: Array, d: int) -> tuple[Array, Array, Array]:
    """Positions of the upper triangle in a flat (d, d) matrix, the way back, and how often each
    entry occurs.
    """
    if is_numpy_array(like):
        return _triangle_arrays(d, like.dtype.type)
    return match_array(_triangle_arrays(d, float), like=like)  # type: ignore[no-any-return]


# -- hashing ---------------------------------------------------------------------------------------


def splitmix64(z: Array) -> Array:
    """One step of SplitMix64 from each state, int64: numbers that look independent of one another.

    In signed numbers, which every library has: products and sums wrap around as unsigned ones do.
    """
    z = z + (0x9E3779B97F4A7C15 - 2**64)
    z = (z ^ shifted(z, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    z = (z ^ shifted(z, 27)) * (0x94D049BB133111EB - 2**64)
    return z ^ shifted(z, 31)


def shifted(z: Array, bits: int) -> Array:
    """Shifted to the right, zeros moving in."""
    if is_numpy_array(z):
        return (z.view(np.uint64) >> np.uint64(bits)).view(np.int64)
    return (z >> bits) & (2 ** (64 - bits) - 1)
