"""Networks split by class: the split against its equations, and everything that must stay true of
the split network.
"""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from penalties.test_overlap import distance_of

from kernelpool import SharedKernelClassifier, Start, Training

BELIEF = 20.0


def births(x, y, mean, covariance, mixing, table, family, weight, prior):
    """The subkernels of every kernel and class, row by row, with 20 rows' worth of belief in the
    kernel itself.
    """
    (n_kernels, d), n_classes = mean.shape, mixing.shape[1]
    full = naive.matrices(covariance, family, n_kernels, d)
    h = naive.responsibilities(x, y, mean, covariance, mixing, table, family, weight, prior)
    mass = h.sum(axis=0)
    means = np.zeros((n_kernels, n_classes, d))
    scatters = np.zeros((n_kernels, n_classes, d, d))
    for j, k in np.ndindex(mass.shape):
        means[j, k] = (h[:, j, k] @ x + BELIEF * mean[j]) / (mass[j, k] + BELIEF)
        away = x - means[j, k]
        off = mean[j] - means[j, k]
        scatters[j, k] = (h[:, j, k, None] * away).T @ away + BELIEF * (
            full[j] + np.outer(off, off)
        )
    pooled = scatters / (mass + BELIEF)[:, :, None, None]
    return mass, means, naive.shaped(pooled, family, mass + BELIEF)


def chosen_from(mass, row_weight):
    pairs = [(j, k) for k in range(mass.shape[1]) for j in range(mass.shape[0])]
    return [(j, k) for j, k in pairs if mass[j, k] >= row_weight or j == mass[:, k].argmax()]


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize(("sharing", "hidden"), [(1.0, 0), (0.4, 0.3), ("learned", 0.3)])
def test_the_split_equals_the_equations(blobs, family, sharing, hidden):
    x, y = blobs
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3, size=len(y))
    labels = np.where(rng.random(len(y)) < hidden, -1, y)
    settings = {
        "covariance_type": family,
        "sharing": sharing,
        "unlabeled": -1,
        "random_state": 0,
        "max_iter": 5,
    }
    shared = SharedKernelClassifier.prbf(6, **settings).fit(x, labels, sample_weight=weight)
    split = shared.split_by_class(x, labels, weight, anchor=np.inf)
    params = shared.means_, shared.covariances_, shared.mixing_, shared.sharing_
    mass, means, covariances = births(x, labels, *params, family, weight, shared.class_prior_)
    pairs = chosen_from(mass, min(1.0, weight.mean()))
    assert split.parents_.tolist() == [j for j, _ in pairs]
    assert split.owners_.tolist() == [k for _, k in pairs]
    assert_allclose(split.means_, [means[j, k] for j, k in pairs], rtol=1e-8, atol=1e-10)
    expected = covariances if family == "tied" else np.array([covariances[j, k] for j, k in pairs])
    assert_allclose(split.covariances_, expected, rtol=1e-8, atol=1e-10)
    mixing = np.array([[mass[j, k] * (k == c) for c in range(3)] for j, k in pairs])
    assert_allclose(split.mixing_, mixing / mixing.sum(axis=0), rtol=1e-8, atol=1e-14)
    assert_array_equal(split.sharing_, split.owners_[:, None] == np.arange(3))


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_without_an_anchor_the_refinement_is_one_mixture_a_class(blobs, family):
    """EM without sharing from the split kernels."""
    x, y = blobs
    settings = {"covariance_type": family, "max_iter": 5, "tol": 0, "empty_kernels": "keep"}
    shared = SharedKernelClassifier.prbf(3, random_state=0, **settings).fit(x, y)
    born, refined = (shared.split_by_class(x, y, anchor=anchor) for anchor in (np.inf, 0))
    start = Start(
        owners=born.owners_, means=born.means_, covariances=born.covariances_, mixing=born.mixing_
    )
    alone = SharedKernelClassifier.prbf(sharing=0, init=start, **settings).fit(x, y)
    for name in ("means_", "covariances_", "mixing_"):
        assert_allclose(getattr(refined, name), getattr(alone, name), rtol=1e-7)
    assert not hasattr(shared, "parents_")
    assert refined.n_parameters() == alone.n_parameters()


def test_the_objective_is_the_likelihood_less_the_way_from_home(blobs, family):
    x, y = blobs
    shared = SharedKernelClassifier.prbf(
        5, covariance_type=family, random_state=0, empty_kernels="keep"
    ).fit(x, y)
    born, refined = (shared.split_by_class(x, y, anchor=anchor) for anchor in (np.inf, 7.0))
    assert (np.diff(refined.history_) >= -1e-10 * np.abs(refined.history_[1:])).all()
    by_class = np.log(
        naive.kernel_densities(x, born.means_, born.covariances_, family) @ born.mixing_
    )
    assert refined.history_[0] == pytest.approx(by_class[np.arange(len(y)), y].mean())
    assert born.objective_ == pytest.approx(refined.history_[0])
    by_class = np.log(
        naive.kernel_densities(x, refined.means_, refined.covariances_, family) @ refined.mixing_
    )
    homes, now = (naive.matrices(m.covariances_, family, *m.means_.shape) for m in (born, refined))
    moved = sum(
        distance_of("kullback_leibler", (m1, s1), (m0, s0))
        for m0, s0, m1, s1 in zip(born.means_, homes, refined.means_, now, strict=True)
    )
    assert moved > 0.01
    assert refined.objective_ == pytest.approx(
        (by_class[np.arange(len(y)), y].sum() - 7.0 * moved) / len(y)
    )
    held = shared.split_by_class(x, y, anchor=1e6)
    assert np.abs(held.means_ - born.means_).max() < 1e-3


def test_a_tiny_class_keeps_a_kernel(family):
    """Three rows in a thousand, of which two are equal: no kernel collapses, and the class can
    still be found.
    """
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(1000, 2)), [[0.5, 0.5], [0.5, 0.5], [0.4, 0.4]]])
    y = np.r_[np.arange(1000) % 2, [2, 2, 2]]
    network = SharedKernelClassifier.prbf(6, covariance_type=family, random_state=0).fit(x, y)
    model = network.split_by_class(x, y)
    assert (model.owners_ == 2).any()
    assert np.isfinite(model.log_density(x)).all()
    assert_allclose(model.mixing_.sum(axis=0), 1)


def test_splitting_where_the_rows_live(blobs):
    xp = pytest.importorskip("array_api_strict")
    x, y = blobs
    settings = {"covariance_type": "full", "random_state": 0, "unlabeled": 2}
    reference = SharedKernelClassifier.prbf(4, **settings).fit(x, y).split_by_class(x, y)
    there = xp.asarray(x), xp.asarray(y)
    found = SharedKernelClassifier.prbf(4, **settings).fit(*there).split_by_class(*there)
    assert_allclose(found.means_, reference.means_, rtol=1e-8, atol=1e-8)


def test_the_model_that_is_split_stays_as_it_is(blobs):
    x, y = blobs
    sweeps = []
    shared = SharedKernelClassifier(
        [1, 1, 1], random_state=0, max_iter=20, training=Training(n_folds=2), callback=sweeps.append
    ).fit(x, y)
    before = shared.means_.copy()
    n_sweeps = len(sweeps)
    split = shared.split_by_class(x, y)
    assert_array_equal(shared.means_, before)
    assert len(sweeps) > n_sweeps  # the callback is called
    assert split._fitted.discriminative is shared._fitted.discriminative
    assert_allclose(split.predict_proba(x), shared.predict_proba(x), rtol=1e-9)
    with pytest.raises(ValueError, match=r"split_by_class needs rows of the classes \[0, 1, 2\]"):
        shared.split_by_class(x[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="anchor must be at least 0; got -1"):
        shared.split_by_class(x, y, anchor=-1)
