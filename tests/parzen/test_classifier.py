"""Parzen classifiers: against scikit-learn's neighbors and densities, and what reduction must
keep.
"""

import tracemalloc
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.neighbors import KernelDensity, RadiusNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier, bounds
from kernelpool.datasets import make_clouds
from kernelpool.parzen import reduce
from papers.star_shaped import StarShaped

ROWS = tuple(a[:300] for a in make_clouds(2000, random_state=0))
CUBE = StarShaped(lambda u: np.abs(u).max(axis=1), 2)


def parzen(kernel="hypersphere", radius="loo", **kwargs):
    """The network of the paper."""
    return ParzenClassifier(kernel, radius, **{"standardize": False, **kwargs})


def reduced_network(*args, **kwargs):
    """The reduced network of the paper."""
    return ReducedParzenClassifier(*args, **{"standardize": False, **kwargs})


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(2000, random_state=0)


@pytest.fixture(scope="module")
def new_clouds():
    return make_clouds(4000, random_state=1)


# -- the full network ------------------------------------------------------------------------------


def test_covered_rows_get_the_answers_of_scikit_learns_radius_neighbors(clouds, new_clouds):
    (X, y), (X_new, _) = clouds, new_clouds
    ours = parzen(radius=0.2).fit(X, y)
    covered = ours.in_support(X_new)
    theirs = RadiusNeighborsClassifier(0.2, outlier_label=-1).fit(X, y)
    with pytest.warns(UserWarning, match="Outlier"):
        labels = theirs.predict(X_new)
    assert_array_equal(covered, labels != -1)
    assert 0 < (~covered).sum() < 200
    assert_array_equal(ours.predict(X_new)[covered], labels[covered])
    expected = theirs.predict_proba(X_new[covered])
    assert_allclose(ours.predict_proba(X_new)[covered], expected, rtol=1e-12, atol=1e-15)


def test_ties_on_integer_grids_are_ties():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, size=(300, 3)).astype(float)
    y = rng.integers(0, 3, size=300)
    X_new = rng.integers(0, 12, size=(500, 3)).astype(float)
    ours = parzen(radius=5.0).fit(X, y)  # many distances are exactly 5
    theirs = RadiusNeighborsClassifier(5.0).fit(X, y)
    assert_array_equal(ours.predict(X_new), theirs.predict(X_new))


@pytest.mark.parametrize(
    ("kernel", "name"), [("hypersphere", "tophat"), ("gaussian",) * 2, ("epanechnikov",) * 2]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_are_scikit_learns(kernel, name, weighted):
    X, y = ROWS
    weight = np.random.default_rng(0).uniform(0.1, 2, size=300) if weighted else np.ones(300)
    network = parzen(kernel, 0.5, class_prior=[0.9, 0.1] if weighted else None).fit(X, y, weight)
    found = network.log_density(X)
    for k in (0, 1):
        theirs = KernelDensity(bandwidth=0.5, kernel=name)
        theirs.fit(X[y == k], sample_weight=weight[y == k])
        expected = np.exp(theirs.score_samples(X))
        assert_allclose(np.exp(found[:, k]), expected, rtol=1e-6, atol=1e-12)
    joint = np.exp(found) * ([0.9, 0.1] if weighted else np.bincount(y) / 300)
    density = joint.sum(axis=1, keepdims=True)
    assert_allclose(network.score_samples(X), np.log(density[:, 0]), rtol=1e-9)
    assert_allclose(network.predict_proba(X), joint / density, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["hypersphere", "epanechnikov", "gaussian", CUBE])
def test_rows_beyond_every_kernel_have_no_density_but_a_label(kernel):
    far = [[30.0, 0.0], [0.0, -40.0]]
    for network in (parzen(kernel, 0.5), reduced_network(4, kernel=kernel, radius=0.5, edit=False)):
        network.fit(*ROWS)
        for found in (
            network.in_support(far),
            np.isfinite(network.score_samples(far)),
            np.isfinite(network.log_density(far)).any(axis=1),
        ):
            assert found.tolist() == [kernel == "gaussian"] * 2
        probability = network.predict_proba(far)
        assert_allclose(probability.sum(axis=1), 1)
        assert_array_equal(network.predict(far), network.classes_[probability.argmax(axis=1)])


def test_the_radius_may_be_chosen_on_rows_set_aside(clouds, new_clouds):
    X, y = clouds
    given = parzen().fit(X, y, X_val=new_clouds[0], y_val=new_clouds[1])
    errors = [1 - parzen(radius=r).fit(X, y).score(*new_clouds) for r in given.radii_[::12]]
    assert_allclose(given.radius_errors_[::12], errors, atol=1e-12)
    best = given.radius_errors_.min()
    assert given.radius_errors_[given.radii_ == given.radius_] == pytest.approx(best)
    octaves = 4 * np.log2(given.radii_)  # from a list that does not depend on the rows
    assert_allclose(octaves, np.round(octaves), atol=1e-9)


@pytest.mark.parametrize("kernel", ["hypersphere", "epanechnikov", "gaussian", CUBE])
def test_samples_are_drawn_from_the_kernels(kernel):
    network = parzen(kernel, 2.0, class_prior=[0.25, 0.75]).fit(
        [[0.0, 0.0], [100.0, 0.0]], ["a", "b"]
    )
    X, y = network.sample(4000, random_state=0)
    assert np.mean(y == "b") == pytest.approx(0.75, abs=0.03)
    away = X - np.where(y == "b", 100.0, 0.0)[:, None] * [1, 0]
    # variance of a coordinate at radius r = 2: uniform on a disc r^2/4, Epanechnikov r^2/6,
    # Gaussian r^2, square r^2/3
    names = {"hypersphere": 1.0, "epanechnikov": 4 / 6, "gaussian": 4.0}
    expected = 4 / 3 if kernel is CUBE else names[kernel]
    assert_allclose(away.var(axis=0), expected, rtol=0.06)
    assert network.in_support(X).all()


def test_a_star_shaped_kernel_is_a_density():
    gauge = StarShaped(lambda u: np.abs(u).sum(axis=1), 2)
    diamond = parzen(gauge, 1.5).fit([[0.0, 0.0], [9.0, 9.0]], [0, 1])
    density = np.exp(diamond.log_density([[0.7, 0.7], [1.0, 0.6]]))[:, 0]
    assert density[0] == pytest.approx(
        1 / (2 * 1.5**2), rel=0.01
    )  # a diamond of half-diagonal r has the area 2 r^2
    assert density[1] == 0


def test_predictions_hold_no_table_of_rows_by_kernels():
    X, y = make_clouds(20_000, random_state=0)
    network = parzen(radius=0.1).fit(X, y)
    tracemalloc.start()
    network.predict(X[:4000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6  # the table would take 640 MB


# -- the reduced network ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reduced(clouds):
    return reduced_network(n_kernels=40, random_state=0).fit(*clouds)


def test_the_reduced_network_keeps_rows_of_its_own(clouds, reduced):
    X, y = clouds
    assert reduced.kernels_.shape == (40, 2)
    assert_array_equal(reduced.kernels_, X[reduced.kept_indices_])
    assert_array_equal(reduced.kernel_classes_, y[reduced.kept_indices_])
    assert len(set(reduced.kept_indices_)) == 40
    assert set(reduced.kept_indices_) <= set(reduced.edited_indices_)
    assert set(reduced.kernel_weights_) == {1.0}


def test_auto_takes_a_size_within_the_tolerance_and_none_that_failed(clouds):
    X, y = (a[300:600] for a in clouds)
    network = reduced_network("auto", tolerance=0.04, edit=False, random_state=0).fit(X, y)
    size = len(network.kernels_)
    assert 4 < size < 300
    sizes, errors = np.transpose(network.curve_)
    assert sizes.tolist() == sorted(sizes)
    assert (errors[sizes < min(size, sizes.max())] > network.full_error_ + 0.02).all()
    assert network.score(X, y) > 1 - network.full_error_ - 0.04


def test_where_all_rows_are_needed_the_network_is_the_full_one():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(60, 2)).astype(float)
    y = (X.sum(axis=1) % 2).astype(int)  # a chessboard: every field counts
    weight = rng.integers(1, 3, size=60)
    network = reduced_network("auto", tolerance=0, random_state=0).fit(X, y, weight)
    full = parzen(radius=network.full_radius_).fit(X, y, weight)
    assert len(network.kernels_) == len(np.unique(X, axis=0))
    assert_allclose(network.predict_proba(X), full.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("edit", [True, False, "auto"])
def test_editing_may_be_left_to_the_error(edit):
    network = reduced_network(16, edit=edit, random_state=0).fit(*ROWS)
    n = len(network.edited_indices_)
    assert (n == 300) if edit is False else (n < 300) if edit is True else n > 0


def test_any_resampler_may_edit(clouds):
    edit = MultiEdit(parzen(radius=0.3), max_iter=1, random_state=0)
    network = reduced_network(40, edit=edit, random_state=0).fit(*clouds)
    assert_array_equal(network.edited_indices_, clone(edit).fit(*clouds).sample_indices_)


# -- small and odd training sets -------------------------------------------------------------------


@pytest.mark.parametrize("n_kernels", [2, "auto"])
@pytest.mark.parametrize("edit", [False, "auto"])
def test_one_row_a_class_is_enough(n_kernels, edit):
    network = reduced_network(n_kernels, edit=edit, random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    assert network.predict([[-1.0], [2.0]]).tolist() == ["a", "b"]


# -- interrupted fits ------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [1, 2, 4])
def test_an_interrupted_reduction_keeps_the_best_network_tried(monkeypatch, call):
    network = reduced_network(8, random_state=0)
    calls = count()
    real = reduce.with_fewest_errors

    def interrupted(*args):
        if next(calls) == call:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(reduce, "with_fewest_errors", interrupted)
    with pytest.raises(
        KeyboardInterrupt, match="interrupted; the best network tried so far was kept"
    ):
        network.fit(*ROWS)
    assert network.kernels_.shape == (8, 2)
    assert network.score(*ROWS) > 0.7
    assert bounds.certify_by_compression(network, *ROWS).n_kernels == 8


# -- bad input -------------------------------------------------------------------------------------


class Careless:
    def fit_resample(self, X, y):
        return X, y


class OneClass:
    def fit_resample(self, X, y):
        self.sample_indices_ = np.flatnonzero(y == 0)


@pytest.mark.parametrize(
    ("estimator", "validation", "message"),
    [
        (parzen("cube"), {}, "The 'kernel' parameter of ParzenClassifier must be"),
        (parzen(class_prior=[1.0]), {}, r"class_prior must have shape \(2,\); got \(1,\)"),
        (reduced_network(301), {}, "not exceed the number of distinct rows, 300; got 301"),
        (reduced_network(1), {}, "n_kernels must be at least the number of classes, 2, .*; got 1"),
        (reduced_network(9, edit=Careless()), {}, "sample_indices_; Careless does not"),
        (reduced_network(9, edit=OneClass()), {}, "Editing left no row of class number 1"),
        (parzen(), {"X_val": ROWS[0]}, "y_val must be given with X_val"),
        (reduced_network("auto"), dict(zip(("X_val", "y_val"), ROWS, strict=True)), "not .auto"),
    ],
)
def test_bad_input_is_explained(estimator, validation, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*ROWS, **validation)


# -- the test set chooses --------------------------------------------------------------------------


@pytest.mark.parametrize("radius", ["loo", 0.5])
def test_rows_apart_choose_kernels_and_radius(radius):
    """Of nine scales and all radii, a quick and a whole trial of each."""
    X, y = make_clouds(400, random_state=0)
    X_val, y_val = make_clouds(1500, random_state=1)
    network = reduced_network(10, radius=radius, edit=False, random_state=0)
    by_training = clone(network).fit(X, y)
    chosen = network.fit(X, y, X_val=X_val, y_val=y_val)
    error = 1 - chosen.score(X_val, y_val)
    assert chosen.validation_error_ == pytest.approx(error)
    assert error <= 1 - by_training.score(X_val, y_val)
    assert len(chosen.kernels_) == 10
    assert np.array_equal(chosen.kernels_, X[chosen.kept_indices_])  # the rows apart are no kernels
    if radius == "loo":
        assert chosen.radius_errors_.min() == pytest.approx(error)
        assert chosen.n_tried_ == 2 * 9 * len(chosen.radii_)
    else:
        assert chosen.radius_ == 0.5
        assert chosen.n_tried_ == 2
    assert not hasattr(by_training, "n_tried_")


# -- units and metrics -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        ParzenClassifier(random_state=0),
        ParzenClassifier("hypersphere", "loo", random_state=0),
        ParzenClassifier(CUBE, 0.7),
        ReducedParzenClassifier(20, random_state=0),
    ],
)
def test_features_are_scaled_inside(network):
    X, y = ROWS
    X = X * [1000.0, 0.01] + [5e4, 3.0]
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    inside = clone(network).fit(X, y)
    before = clone(network).set_params(standardize=False).fit(Z, y)
    log_volume = np.log(scaler.scale_).sum()
    assert_allclose(inside.predict_proba(X), before.predict_proba(Z), atol=1e-9)
    assert_allclose(inside.log_density(X), before.log_density(Z) - log_volume, atol=1e-8)
    assert_allclose(inside.score_samples(X), before.score_samples(Z) - log_volume, atol=1e-8)
    assert_allclose(inside.kernel_posterior(X[:50]), before.kernel_posterior(Z[:50]), atol=1e-9)
    assert_array_equal(inside.kernels_, X[inside.kept_indices_])
    drawn = scaler.inverse_transform(before.sample(50, random_state=0)[0])
    assert_allclose(inside.sample(50, random_state=0)[0], drawn, rtol=1e-7)
    raw = clone(network).set_params(standardize=False).fit(X, y)
    assert np.abs(raw.predict_proba(X) - inside.predict_proba(X)).max() > 1e-3


def test_a_fraction_counts_rows_and_classes_get_their_shares():
    X, y = make_clouds(400, random_state=0)
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:40]])
    network = reduced_network(0.1, edit=False, random_state=0).fit(X[rare], y[rare])
    assert np.bincount(network.kernel_classes_).tolist() == [20, 4]


@pytest.mark.parametrize("kernel", ["hypersphere", "epanechnikov", "gaussian"])
@pytest.mark.parametrize("missing", [[1], [0, 2]])
def test_density_of_a_row_with_missing_cells_is_that_of_the_known_ones(kernel, missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1.0, 5.0, 0.1]
    network = ParzenClassifier(kernel, 1.4, random_state=0).fit(X, X[:, 0] > 0)
    row = X[0] * 0.9
    ends = [(X[:, i].min(), X[:, i].max(), 7 * X[:, i].std()) for i in missing]
    grids = [np.linspace(low - beyond, high + beyond, 801) for low, high, beyond in ends]
    cells = np.stack([g.ravel() for g in np.meshgrid(*grids)], axis=1)
    rows = np.tile(row, (len(cells), 1))
    rows[:, missing] = cells
    volume = np.prod([g[1] - g[0] for g in grids])
    integral = np.exp(network.log_density(rows)).sum(axis=0) * volume
    row[missing] = np.nan
    assert_allclose(np.exp(network.log_density([row]))[0], integral, rtol=2e-2 / len(missing) ** 2)
    row[:] = np.nan
    assert_allclose(network.log_density([row]), 0, atol=1e-12)
