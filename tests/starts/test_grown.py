import numpy as np

from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.starts.grown import needs, split


def test_need_is_the_loss_of_the_owners_rows():
    responsibility = np.array([[0.75, 0.5, 0.0], [0.25, 0.5, 1.0]])
    owned = np.array([[True, True, False], [False, False, True]])
    found = needs(responsibility, np.array([2.0, 1.0, 3.0]), np.array([1.0, 4.0, 2.0]), owned)
    np.testing.assert_allclose(found, [0.75 * 2 * 1 + 0.5 * 1 * 4, 1.0 * 3 * 2])


def two_clusters(seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.normal(size=(40, 3)) * 0.1 + [5, 0, 0], rng.normal(size=(60, 3)) * 0.1 - [5, 0, 0]]
    )


def start(family, x, n_kernels=2):
    kernel = FAMILIES[family](np.zeros(3))
    shape = kernel.shape(n_kernels, 3)
    eye = np.eye(3) if len(shape) > 1 and shape[-2:] == (3, 3) else np.ones(shape[1:])
    covariance = np.eye(3) if family == "tied" else np.broadcast_to(eye, shape).copy()
    return kernel, Kernels(np.stack([x.mean(axis=0), np.full(3, 9.0)]), covariance)


def test_a_kernel_over_two_clusters_becomes_one_for_each(family):
    x = two_clusters()
    kernel, kernels = start(family, x)
    mixing = np.array([[0.75, 0.5], [0.25, 0.5]])
    member, weight = np.zeros(100, int), np.ones(100)
    grown, shares, parent = split(
        kernel, kernels, mixing, np.array([5.0, 1.0]), x, member, weight, 1
    )
    assert parent.tolist() == [0, 1, 0]
    centers = sorted([x[:40].mean(axis=0).tolist(), x[40:].mean(axis=0).tolist()])
    np.testing.assert_allclose(sorted(grown.mean[[0, 2]].tolist()), centers)
    np.testing.assert_array_equal(grown.mean[1], kernels.mean[1])
    np.testing.assert_allclose(shares, [[0.375, 0.25], [0.25, 0.5], [0.375, 0.25]])
    assert grown.covariance.shape == kernel.shape(3, 3)


def test_a_weight_is_as_many_rows():
    x = two_clusters()
    kernel, kernels = start("full", x)
    mixing, need = np.full((2, 2), 0.5), np.array([5.0, 1.0])
    times = np.random.default_rng(0).integers(1, 4, size=len(x))
    weighted, _, _ = split(
        kernel, kernels, mixing, need, x, np.zeros(100, int), times.astype(float), 1
    )
    rows = np.repeat(x, times, axis=0)
    repeated, _, _ = split(
        kernel, kernels, mixing, need, rows, np.zeros(len(rows), int), np.ones(len(rows)), 1
    )
    np.testing.assert_allclose(
        np.sort(weighted.mean[[0, 2]], axis=0), np.sort(repeated.mean[[0, 2]], axis=0)
    )


def test_kernels_of_few_or_equal_rows_stay_whole():
    kernel, kernels = start("diag", np.zeros((1, 3)))
    mixing, need = np.full((2, 1), 0.5), np.array([1.0, 5.0])
    few = np.eye(3)  # three rows
    _, _, parent = split(kernel, kernels, mixing, need, few, np.ones(3, int), np.ones(3), 2)
    assert parent.tolist() == [0, 1]
    equal = np.full((50, 3), 7.0)
    _, _, parent = split(kernel, kernels, mixing, need, equal, np.ones(50, int), np.ones(50), 2)
    assert parent.tolist() == [0, 1]
    # the neediest cannot be split: the next one is
    rows, member = (
        np.concatenate([equal, two_clusters()]),
        np.r_[np.ones(50, int), np.zeros(100, int)],
    )
    _, _, parent = split(kernel, kernels, mixing, need, rows, member, np.ones(150), 1)
    assert parent.tolist() == [0, 1, 0]


def test_the_neediest_kernel_is_split_first():
    x = np.concatenate([two_clusters(), two_clusters() + 100])
    kernel, kernels = start("spherical", x)
    member = np.repeat([0, 1], 100)
    for need in ([5.0, 1.0], [1.0, 5.0]):
        _, _, parent = split(
            kernel, kernels, np.full((2, 2), 0.5), np.array(need), x, member, np.ones(200), 1
        )
        assert parent.tolist() == [0, 1, int(np.argmax(need))]


def test_the_cut_is_at_the_weighted_mean():
    x = np.zeros((4, 3))
    x[:, 0] = [0, 1, 2, 10]
    kernel, kernels = start("full", x)
    # the mean is 13/33: only the heavy row lies below it
    heavy = np.array([30.0, 1, 1, 1])
    grown, _, _ = split(
        kernel, kernels, np.full((2, 2), 0.5), np.array([1.0, 0]), x, np.zeros(4, int), heavy, 1
    )
    np.testing.assert_allclose(np.sort(grown.mean[[0, 2], 0]), [0, 13 / 3])
