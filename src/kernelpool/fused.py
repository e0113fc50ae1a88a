r"""The sums of an E-step on an NVIDIA card, in Triton.

.. math:: r_{nj} = w_n \operatorname{softmax}_j(W_j \cdot \phi(x_n)), \qquad \text{sums}_{pj} = \sum_n \phi_p(x_n)\, r_{nj}

Every feature is a product of two columns, :math:`\phi_p = x_{a(p)} x_{b(p)}`. So a tile of features
is made where it is multiplied and never leaves the chip. One kernel makes the responsibilities of
`SHARE_BYTES` of rows, softmax included; a second one sums them.

Products are those of float32 on the matrix units: each operand in two parts, three products of
tf32, which together carry some 21 bits. Exponentials are full float32, sums over more than `SPLIT`
rows are float64. Partial sums are added in a fixed order, so that a fit gives the same numbers
twice.

Only `arrays` imports this module, and only when float32 tensors come that live on a card: Triton
comes with torch for CUDA.
"""

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

SPLIT = 2048
"""Rows that are summed in float32."""

SHARE_BYTES = 1 << 29
"""Responsibilities, and partial sums, that are written out at a time."""

MOST_KERNELS = 256
"""Beyond it the softmax of a tile of rows no longer fits into registers."""


@triton.jit
def _features(columns, left, right, row, valid, first, stride, BLOCK_P: tl.constexpr):
    """Features first ... first + BLOCK_P of some rows, (BLOCK_P, rows); rows past the last one have
    none.
    """
    p = first + tl.arange(0, BLOCK_P)
    a = tl.load(left + p).to(tl.int64) * stride
    b = tl.load(right + p).to(tl.int64) * stride
    product = tl.load(columns + a[:, None] + row[None, :], mask=valid[None, :], other=0.0)
    return product * tl.load(columns + b[:, None] + row[None, :], mask=valid[None, :], other=0.0)


@triton.jit
def _leading(a):
    """The part of a float32 number that tf32 holds exactly."""
    return (a.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def _dot(a, b, total, APART: tl.constexpr):
    """total + a @ b by three products of tf32: what is left out is the product of the two small
    parts.

    The matrix units cut off what they add up. Sums of many tiles are made `APART` from them, in
    other registers.
    """
    a_high = _leading(a)
    b_high = _leading(b)
    if APART:
        some = tl.dot(a - a_high, b_high, input_precision="tf32")
    else:
        some = tl.dot(a - a_high, b_high, total, input_precision="tf32")
    some = tl.dot(a_high, b - b_high, some, input_precision="tf32")
    some = tl.dot(a_high, b_high, some, input_precision="tf32")
    if APART:
        some += total
    return some


@triton.jit
def _share_kernel(
    columns, row_weight, left, right, natural, share, log_evidence, start, n_some, stride, padded, n_kernels,
    HAS_WEIGHT: tl.constexpr, M: tl.constexpr, P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_P: tl.constexpr,
    APART: tl.constexpr,
):  # fmt: skip
    """Responsibilities of a tile of rows, (M, BLOCK_N), and log sum exp."""
    place = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    valid = place < n_some
    m = tl.arange(0, M)
    row = start + place
    log_joint = tl.zeros((BLOCK_N, M), tl.float32)
    for first in range(0, P, BLOCK_P):
        phi = _features(columns, left, right, row, valid, first, stride, BLOCK_P)
        weight = tl.load(natural + m[:, None] * padded + (first + tl.arange(0, BLOCK_P))[None, :])
        log_joint = _dot(tl.trans(phi), tl.trans(weight), log_joint, APART)
    log_joint = tl.where((m < n_kernels)[None, :], log_joint, -float("inf"))
    peak = tl.max(log_joint, axis=1)
    likelihood = tl.exp(log_joint - peak[:, None])
    total = tl.sum(likelihood, axis=1)
    tl.store(log_evidence + row, tl.log(total) + peak, mask=valid)
    scale = 1.0 / total
    if HAS_WEIGHT:
        scale *= tl.load(row_weight + row, mask=valid, other=0.0)
    tl.store(
        share + m.to(tl.int64)[None, :] * n_some + place[:, None],
        likelihood * scale[:, None],
        mask=valid[:, None],
    )


@triton.jit
def _sum_kernel(
    columns, left, right, share, sums, start, n_some, stride, padded, M,
    SPLIT: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_M: tl.constexpr,
    TURNED: tl.constexpr,
):  # fmt: skip
    """A tile of the table of sums over SPLIT rows; it is made turned over where that side is the
    longer one.
    """
    first = tl.program_id(0) * BLOCK_P
    split = tl.program_id(2)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_P) if TURNED else (BLOCK_P, BLOCK_M), tl.float32)
    for some in range(0, SPLIT, BLOCK_N):
        place = split * SPLIT + some + tl.arange(0, BLOCK_N)
        valid = place < n_some
        phi = _features(columns, left, right, start + place, valid, first, stride, BLOCK_P)
        r = tl.load(
            share + m.to(tl.int64)[:, None] * n_some + place[None, :],
            mask=valid[None, :],
            other=0.0,
        )
        if TURNED:
            total = _dot(r, tl.trans(phi), total, True)
        else:
            total = _dot(phi, tl.trans(r), total, True)
    p = split.to(tl.int64) * padded + first + tl.arange(0, BLOCK_P)
    if TURNED:
        tl.store(sums + p[None, :] * M + m[:, None], total)
    else:
        tl.store(sums + p[:, None] * M + m[None, :], total)


@triton.jit
def _transpose_kernel(x, out, n, d, stride, BLOCK_N: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.arange(0, D)
    tile = tl.load(
        x + row[:, None] * d + column[None, :], mask=(row < n)[:, None] & (column < d)[None, :]
    )
    there = out + column[:, None].to(tl.int64) * stride + row[None, :]
    tl.store(there, tl.trans(tile), mask=(column < d)[:, None] & (row < n)[None, :])


def transpose_into(out: Any, x: Any) -> None:
    """out = x', of rows (n, d) that lie one after the other; torch's own copy takes several times
    as long.
    """
    n, d = x.shape
    block_n = 128
    columns = triton.next_power_of_2(d)
    _transpose_kernel[(triton.cdiv(n, block_n),)](
        x, out, n, d, out.stride(0), BLOCK_N=block_n, D=columns
    )


@lru_cache(maxsize=16)
def _pairs(pairs: tuple[tuple[int, int], ...], padded: int, device: Any) -> tuple[Any, Any]:
    """Left and right columns of each feature, on the device; what only fills up takes any
    column.
    """
    filled = [*pairs, *[(0, 0)] * (padded - len(pairs))]
    left, right = torch.tensor(filled, dtype=torch.int32).T.contiguous().to(device)
    return left, right


def fused_sums(
    columns: Any, pairs: tuple[tuple[int, int], ...], row_weight: Any | None, natural: Any
) -> tuple[Any, Any]:
    """sum_n phi_n r_n', (P, M) in float64, and the log-evidence of each row, (n,), in float32.

    Feature p of row n is the product of `columns` (c, n) at `pairs[p]`; `natural` (M, P) is what
    the features are multiplied with. All are float32 on one card; M is at most `MOST_KERNELS`.
    """
    n, (n_kernels, n_features) = columns.shape[1], natural.shape
    if columns.stride(1) != 1:
        columns = columns.contiguous()
    # the shapes of tiles are those that were fastest on an H200
    m = max(16, triton.next_power_of_2(n_kernels))
    block_n = 64
    block_p = 32 if m <= 128 else 16
    turned = m >= 64
    sum_p = 32 if turned and n_features <= 32 else 64
    sum_m = min(m, 64)
    sum_n = 64 if m >= 256 and sum_p == 64 else 32
    padded = triton.cdiv(n_features, sum_p) * sum_p
    left, right = _pairs(pairs, padded, columns.device)
    weight = natural.new_zeros((m, padded))
    weight[:n_kernels, :n_features] = natural
    log_evidence = columns.new_empty(n)
    total = None
    # neither the responsibilities nor the partial sums of the rows of one step take more than this
    step = SPLIT * max(1, min(SHARE_BYTES // (4 * m * SPLIT), SHARE_BYTES // (4 * m * padded)))
    for start in range(0, n, step):
        n_some = min(step, n - start)
        share = columns.new_empty((m, n_some))
        n_splits = triton.cdiv(n_some, SPLIT)
        sums = columns.new_empty((n_splits, padded, m))
        _share_kernel[(triton.cdiv(n_some, block_n),)](
            columns, columns if row_weight is None else row_weight, left, right, weight, share, log_evidence,
            start, n_some, columns.stride(0), padded, n_kernels, HAS_WEIGHT=row_weight is not None, M=m,
            P=triton.cdiv(n_features, block_p) * block_p, BLOCK_N=block_n, BLOCK_P=block_p, APART=m <= 128,
            num_warps=4, num_stages=1,
        )  # fmt: skip
        _sum_kernel[(padded // sum_p, m // sum_m, n_splits)](
            columns, left, right, share, sums, start, n_some, columns.stride(0), padded, m,
            SPLIT=SPLIT, BLOCK_N=sum_n, BLOCK_P=sum_p, BLOCK_M=sum_m, TURNED=turned, num_warps=4, num_stages=1,
        )  # fmt: skip
        some = torch.sum(sums, 0, dtype=torch.float64)
        total = some if total is None else total + some
    return total[:n_features, :n_kernels], log_evidence  # type: ignore[index]
