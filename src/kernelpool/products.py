"""Matrix products over many rows, tile by tile where that is faster.

On processors with AVX-512, OpenBLAS multiplies small matrices as they lie and packs larger ones first. With a few dozen
kernels and features the packing costs as much as it saves: cut into tiles of some hundred rows, products over thousands of
rows are up to 1.7 times faster. Elsewhere tiles cost a little, and the product is left whole.
"""

from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from .arrays import Array, is_numpy_array

UNPACKED = frozenset({"SkylakeX", "Cooperlake", "SapphireRapids"})
"""OpenBLAS's names of the processors on which it knows small products."""

SMALL_WORK = 1_000_000
"""Multiplications in the largest product that it takes as it lies."""

SMALL_ANSWER = 1200
"""Numbers in the largest answer of such a product when its second factor is transposed."""

TILE = 400
"""Rows of a tile: long enough to hide the cost of a call, and not a power of two, whose rows would share cache lines."""


def linear_scores(weight: Array, phi: Array) -> Array:
    """weight @ phi, (M, n), from (M, P) and (P, n)."""
    if not _tiles_pay(phi):
        return weight @ phi
    (n_kernels, p), n = weight.shape, phi.shape[1]
    tile = min(TILE, SMALL_WORK // (n_kernels * p) // 8 * 8)
    if tile < 48 or n * n_kernels * p <= SMALL_WORK:
        return weight @ phi
    n_tiles, cut = n // tile, n // tile * tile
    answer = np.empty((n_kernels, n), phi.dtype)
    np.matmul(weight, _tiled(phi[:, :cut], n_tiles), out=_tiled(answer[:, :cut], n_tiles))
    np.matmul(weight, phi[:, cut:], out=answer[:, cut:])
    return answer


def weighted_feature_sums(phi: Array, responsibility: Array) -> Array:
    """phi @ responsibility', (P, M), from (P, n) and (M, n)."""
    if not _tiles_pay(phi):
        return phi @ responsibility.T
    (p, n), n_kernels = phi.shape, responsibility.shape[0]
    most = SMALL_ANSWER // n_kernels
    if most < 8 or n < TILE or (p <= most and n * n_kernels * p <= SMALL_WORK):
        return phi @ responsibility.T
    n_tiles, cut = n // TILE, n // TILE * TILE
    tiles = _tiled(responsibility[:, :cut], n_tiles).transpose(0, 2, 1)  # (tiles, TILE, M)
    size = -(-p // -(-p // most))  # features of a group: as even as they come, so that few are left over
    n_groups, grouped = p // size, p // size * size
    answer = np.empty((p, n_kernels), phi.dtype)
    groups = phi[:grouped, :cut].reshape(n_groups, size, n_tiles, TILE).transpose(2, 0, 1, 3)
    answer[:grouped] = (groups @ tiles[:, None]).sum(axis=0).reshape(grouped, n_kernels)
    if grouped < p:
        answer[grouped:] = (_tiled(phi[grouped:, :cut], n_tiles) @ tiles).sum(axis=0)
    if cut < n:
        answer += phi[:, cut:] @ responsibility[:, cut:].T
    return answer


def _tiled(a: np.ndarray, n_tiles: int) -> np.ndarray:
    """(..., rows, n) as (tiles, rows, n / tiles), a view."""
    return a.reshape(a.shape[0], n_tiles, -1).transpose(1, 0, 2)


def _tiles_pay(like: Array) -> bool:
    return is_numpy_array(like) and _unpacked()


@lru_cache
def _unpacked() -> bool:
    return any(library.get("architecture") in UNPACKED for library in ThreadpoolController().info())
