"""Missing cells are integrated out, in training and in prediction."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError

FAMILIES = ("spherical", "diag", "full", "tied")


def some_data(n=300, d=3, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=(2, d, d))
    X = np.concatenate(rng.normal(size=(2, n, d)) @ turn + [[[1]], [[-1]]])
    y = np.repeat(["a", "b"], n)
    incomplete = np.where(rng.random(X.shape) < share, np.nan, X)
    return X, incomplete, y


# -- training --------------------------------------------------------------------------------------


def em_by_hand(x, n_sweeps):
    """Little & Rubin 2002, section 11.2: one Gaussian, row by row."""
    d = x.shape[1]
    mean = np.nanmean(x, axis=0)
    covariance = np.diag(np.nanvar(x, axis=0))
    for _ in range(n_sweeps):
        first = np.zeros(d)
        second = np.zeros((d, d))
        for row in x:
            o = ~np.isnan(row)
            h = np.isnan(row)
            expected = row.copy()
            spread = np.zeros((d, d))
            slope = covariance[np.ix_(h, o)] @ np.linalg.pinv(covariance[np.ix_(o, o)])
            expected[h] = mean[h] + slope @ (row[o] - mean[o])
            spread[np.ix_(h, h)] = covariance[np.ix_(h, h)] - slope @ covariance[np.ix_(o, h)]
            first += expected
            second += np.outer(expected, expected) + spread
        mean = first / len(x)
        covariance = second / len(x) - np.outer(mean, mean)
    return mean, covariance


def test_one_full_kernel_a_class_is_em_by_hand():
    _, X, y = some_data(n=40)
    model = SharedKernelClassifier.prbf(
        [1, 1], covariance_type="full", sharing=0.0, tol=1e-13, max_iter=400
    ).fit(X, y)
    for k, name in enumerate("ab"):
        mean, covariance = em_by_hand(X[y == name], 100)
        assert_allclose(model.means_[k], mean, atol=1e-6)
        assert_allclose(model.covariances_[k], covariance, atol=1e-6)


def test_one_diagonal_kernel_a_class_has_the_moments_of_the_known_cells():
    """Where features are independent, a missing cell adds nothing to the likelihood."""
    _, X, y = some_data()
    model = SharedKernelClassifier.prbf(
        [1, 1], covariance_type="diag", sharing=0.0, tol=1e-14, max_iter=2000
    ).fit(X, y)
    for k, name in enumerate("ab"):
        assert_allclose(model.means_[k], np.nanmean(X[y == name], axis=0), rtol=1e-5)
        assert_allclose(model.covariances_[k], np.nanvar(X[y == name], axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "setting"),
    [
        *((family, {}) for family in FAMILIES),
        ("diag", {"sharing": 0.0}),
        ("tied", {"sharing": 0.3, "kernel_prior": "conjugate"}),
        ("full", {"sharing": "learned"}),
        ("full", {"init": "mixtures"}),
        ("tied", {"init": "random"}),
    ],
    ids=str,
)
def test_the_objective_is_the_likelihood_of_what_is_known_and_never_falls(family, setting):
    _, X, y = some_data(n=150)
    labels = np.where(np.arange(len(y)) % 7 == 0, "?", y)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model = SharedKernelClassifier.prbf(
        4, covariance_type=family, unlabeled="?", random_state=0, max_iter=40, tol=1e-4, **setting
    )
    model.fit(X, labels, weight)
    assert (np.diff(model.history_) >= -1e-10).all()
    if not setting:  # elsewhere a prior or a table of sharing has a part in it
        prior = np.log(model.class_prior_)[(labels == "b").astype(int)]
        known = np.where(
            labels == "?", 0.0, prior
        )  # the objective has no class priors, unless the class is summed out
        expected = (model.log_likelihood(X, labels, weight) - weight @ known) / weight.sum()
        assert_allclose(model.objective_, expected, rtol=1e-9)


# -- what means "missing" --------------------------------------------------------------------------


def test_every_mark_of_a_missing_cell_is_taken():
    _, X, y = some_data(n=60)
    expected = SharedKernelClassifier.prbf(4, random_state=0).fit(X, y).predict_proba(X)
    objects = X.astype(object)
    objects[np.isnan(X)] = None
    marked = {
        "None": objects,
        "masked": np.ma.masked_array(np.nan_to_num(X, nan=7.0), np.isnan(X)),
        "pandas NA": pd.DataFrame(objects).astype("Float64"),
    }
    for name, given in marked.items():
        model = SharedKernelClassifier.prbf(4, random_state=0).fit(given, y)
        assert_array_equal(model.predict_proba(given), expected, err_msg=name)


# -- refusals --------------------------------------------------------------------------------------


def test_a_feature_that_is_never_known_in_a_class_is_named_where_kernels_are_not_shared():
    X, _, y = some_data()
    X[y == "b", 2] = np.nan
    table = pd.DataFrame(X, columns=["length", "width", "height"])
    message = "Feature 'height' of X is missing in every row of class 'b'"
    with pytest.raises(KernelpoolError, match=message):
        SharedKernelClassifier.prbf(sharing=0.0).fit(table, y)
    SharedKernelClassifier.prbf(sharing=1.0, tol=1e-3).fit(table, y)  # learned from the other class


# -- imputations -----------------------------------------------------------------------------------


def conditional_by_quadrature(model, row, feature, grid):
    """Mean, and probability of each class, of one missing feature: by the density of complete rows
    on a grid.
    """
    rows = np.repeat(row[None, :], len(grid), axis=0)
    rows[:, feature] = grid
    joint = np.exp(model.log_density(rows)) * model.class_prior_
    density = joint.sum(axis=1)
    return (density @ grid) / density.sum(), joint.sum(axis=0) / density.sum()


def test_missing_cells_are_imputed_by_their_conditional_mean(family):
    X, incomplete, y = some_data()
    model = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0).fit(X, y)
    imputed = model.impute(incomplete)
    assert_array_equal(imputed[~np.isnan(incomplete)], incomplete[~np.isnan(incomplete)])
    grid = np.linspace(-40, 40, 20_001)
    for i in np.flatnonzero(np.isnan(incomplete).sum(axis=1) == 1)[:5]:
        feature = int(np.flatnonzero(np.isnan(incomplete[i]))[0])
        mean, proba = conditional_by_quadrature(model, incomplete[i], feature, grid)
        assert_allclose(imputed[i, feature], mean, rtol=1e-6)
        assert_allclose(model.predict_proba(incomplete[i : i + 1])[0], proba, rtol=1e-6)
    own = model.impute(incomplete, y)
    assert not np.allclose(own, imputed)  # a known class counts
    nothing = model.impute(np.full((1, 3), np.nan), ["b"])
    assert_allclose(nothing[0], model.mixing_[:, 1] @ model.means_, rtol=1e-9)


def test_draws_have_the_conditional_moments(family):
    X, _, y = some_data()
    model = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0).fit(X, y)
    row = np.array([X[3, 0], np.nan, np.nan])
    drawn = model.impute(np.repeat(row[None, :], 40_000, axis=0), n_draws=1, random_state=0)[0]
    known = model.conditional(row)
    assert_allclose(drawn[:, 1:].mean(axis=0), model.impute(row[None, :])[0, 1:], atol=0.05)
    there, _ = known.sample(40_000, random_state=1)
    assert_allclose(np.cov(drawn[:, 1:].T), np.cov(there.T), atol=0.15)
    assert model.impute(row[None, :], n_draws=3, random_state=0).shape == (3, 1, 3)


def test_questions_about_no_feature_are_refused():
    X, _, y = some_data()
    model = SharedKernelClassifier.prbf(4, random_state=0).fit(X, y)
    with pytest.raises(KernelpoolError, match="features must be positions below 3; got 'wid"):
        model.marginal(["width"])
    with pytest.raises(KernelpoolError, match="and one that is not given"):
        model.conditional(X[0])
    with pytest.raises(KernelpoolError, match="conditional needs known values"):
        model.conditional([np.nan, 1, 2], given=[0])
