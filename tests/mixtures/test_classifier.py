import naive
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernelpool import Overlap, SharedKernelClassifier, Start, Training
from kernelpool.datasets import make_clouds
from kernelpool.datasets.generators import CLOUDS_BAYES_ERROR


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_acceleration_reaches_the_same_place_in_fewer_sweeps():
    """Overlapping clusters, where plain EM crawls."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3)) + 1.2 * rng.normal(size=(6, 3))[rng.integers(6, size=2000)]
    y = np.arange(2000) % 2
    common = {"covariance_type": "spherical", "random_state": 3, "init": "random", "max_iter": 2000}
    plain = SharedKernelClassifier.prbf(
        6, training=Training("em", acceleration=None), tol=1e-7, **common
    ).fit(x, y)
    fast = SharedKernelClassifier.prbf(6, tol=1e-7, **common).fit(x, y)
    target = plain.objective_ - 1e-5
    assert fast.objective_ >= target
    sweeps = [int(np.argmax(model.history_ >= target)) for model in (plain, fast)]
    assert sweeps[1] * 3 <= sweeps[0]


def test_clouds_to_within_a_point_of_the_best_possible():
    x, y = make_clouds(random_state=0)
    test = make_clouds(20_000, random_state=1)
    for sharing in (0, 0.5, 1):
        model = SharedKernelClassifier.prbf(16, sharing=sharing, random_state=0).fit(x, y)
        assert 1 - model.score(*test) < CLOUDS_BAYES_ERROR + 0.01


@pytest.mark.parametrize("init", ["kmeans", "random", "mixtures"])
def test_every_start_is_reproducible_and_restarts_only_help(blobs, init):
    x, y = blobs
    settings = {"covariance_type": "diag", "random_state": 0}
    a, b, several = (
        SharedKernelClassifier.prbf(6, init=start, **settings).fit(x, y)
        for start in (init, Start(init), Start(init, n_init=3))
    )
    assert_array_equal(a.means_, b.means_)
    assert several.objective_ >= a.objective_ - 1e-12


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda: Overlap(-1), "strength of Overlap must be a number of at least 0; got -1"),
        (lambda: Overlap(1, "manhattan"), "distance of Overlap must be one of"),
        (lambda: Overlap(1, step="last"), "step of Overlap must be one of"),
        (lambda: Overlap(1, units="kg"), "units of Overlap must be one of"),
        (lambda: Start("somewhere"), "method of Start must be one of"),
        (lambda: Start(n_init=0), "n_init of Start must be at least 1; got 0"),
        (lambda: Training("by hand"), "method of Training must be one of"),
        (lambda: Training(n_folds=1), "n_folds of Training must be at least 2; got 1"),
        (
            lambda: Training(generative_weight=2),
            r"generative_weight of Training must lie in \[0, 1\]",
        ),
        (lambda: Training(acceleration="warp"), "acceleration of Training must be one of"),
    ],
)
def test_records_of_settings_are_checked(record, message):
    with pytest.raises(ValueError, match=message):
        record()


def test_warm_start_goes_on(blobs):
    x, y = blobs
    model = SharedKernelClassifier.prbf(
        6, max_iter=3, tol=0, warm_start=True, random_state=0, init="random"
    )
    with pytest.warns(
        Warning, match="EM stopped after max_iter=3 sweeps; the objective was still rising by"
    ) as caught:
        model.fit(x, y)
    assert caught[0].filename == __file__  # at the user's line, not somewhere inside
    first = model.objective_
    with pytest.warns(Warning, match="EM stopped"):
        model.fit(x, y)
    assert model.history_[0] == pytest.approx(first, abs=1e-12)
    assert model.objective_ > first
    with pytest.raises(ValueError, match="warm_start needs the classes"):
        model.fit(x, y + 1)


def test_unlabeled_rows_of_no_weight_do_not_exist(blobs):
    x, y = blobs
    hidden = np.arange(len(y)) % 3 == 0
    labels = np.where(hidden, -1, y)
    settings = {"n_kernels": 6, "random_state": 0}
    weightless = SharedKernelClassifier.prbf(unlabeled=-1, **settings).fit(x, labels, 1.0 * ~hidden)
    labeled = SharedKernelClassifier.prbf(**settings).fit(x[~hidden], y[~hidden])
    assert_allclose(weightless.means_, labeled.means_, rtol=1e-7)
    as_class = SharedKernelClassifier.prbf(**settings).fit(x, labels)
    assert as_class.classes_.tolist() == [-1, 0, 1, 2]


def test_sampling_has_the_moments_of_the_model(family, given_start):
    mean, covariance, mixing, _ = given_start
    prior = [0.5, 0.3, 0.2]
    model = SharedKernelClassifier.from_parameters(
        mean, covariance, mixing, prior, [0, 1, 2], covariance_type=family
    )
    x, y = model.sample(200_000, random_state=0)
    assert_allclose(np.bincount(y) / len(y), prior, atol=0.005)
    second = naive.matrices(covariance, family, 6, 3) + mean[:, :, None] * mean[:, None]
    for k in range(3):
        drawn = x[y == k]
        assert_allclose(drawn.mean(axis=0), mixing[:, k] @ mean, atol=0.05)
        expected = np.tensordot(mixing[:, k], second, axes=1)
        assert_allclose(drawn.T @ drawn / len(drawn), expected, rtol=0.05, atol=0.1)
    with pytest.raises(ValueError, match="n_samples must be at least 1; got 0"):
        model.sample(0)


@pytest.mark.parametrize(("sharing", "n_mixing"), [(1, 15), (0, 3)])
def test_information_criteria(blobs, family, sharing, n_mixing):
    x, y = blobs
    settings = {"covariance_type": family, "sharing": sharing, "random_state": 0}
    model = SharedKernelClassifier.prbf(6, **settings).fit(x, y)
    n_covariance = {"spherical": 6, "diag": 18, "full": 36, "tied": 6}[family]
    n_parameters = 18 + n_covariance + n_mixing + 2
    assert model.n_parameters() == n_parameters
    by_class = naive.kernel_densities(x, model.means_, model.covariances_, family) @ model.mixing_
    likelihood = np.log(by_class[np.arange(len(y)), y] * model.class_prior_[y]).sum()
    assert model.log_likelihood(x, y) == pytest.approx(likelihood)
    assert model.bic(x, y) == pytest.approx(-2 * likelihood + n_parameters * np.log(len(y)))
    assert model.aic(x, y) == pytest.approx(-2 * likelihood + 2 * n_parameters)


def test_float32_in_float32_out(blobs, family):
    x, y = blobs
    rows = x.astype(np.float32)
    model = SharedKernelClassifier.prbf(6, covariance_type=family, random_state=0)
    wide = clone(model).fit(x, y)
    narrow = clone(model).fit(rows, y)
    for method in ("predict_proba", "log_density", "score_samples"):
        assert getattr(narrow, method)(rows).dtype == np.float32
    assert narrow.means_.dtype == np.float64
    assert narrow.objective_ == pytest.approx(wide.objective_, abs=1e-3)
    assert clone(model).fit(np.round(x * 10).astype(int), y).predict_proba(x).dtype == np.float64


@pytest.mark.parametrize(
    ("n_kernels", "expected"), [(5, [3, 2]), ([1, 3], [1, 3]), (1, [1, 0]), (None, [5, 5])]
)
def test_kernels_are_dealt_out_evenly(n_kernels, expected):
    model = SharedKernelClassifier.prbf(n_kernels, random_state=0, max_iter=3, tol=1)
    model.fit(*make_clouds(800, random_state=0))
    assert np.bincount(model.owners_, minlength=2).tolist() == expected


def test_a_light_class_lets_the_objective_settle(blobs):
    """Its kernel accounts for less than a thousandth of a row, and to move it gains nothing."""
    x, y = blobs
    labels = np.append(y[:-1], 3)
    weight = np.append(np.ones(len(y) - 1), 5e-4)
    assert SharedKernelClassifier.prbf(sharing=0, random_state=0).fit(x, labels, weight).converged_


def test_samples_and_imputations_of_a_frame_are_frames_with_whole_numbers(blobs):
    x, y = blobs
    frame = pd.DataFrame({"visits": np.abs(x[:, 0].round()).astype(int), "dose": x[:, 1]})
    model = SharedKernelClassifier.prbf(6, random_state=0).fit(frame, y)
    drawn, _ = model.sample(300, random_state=0)
    assert drawn["visits"].between(0, frame["visits"].max()).all()
    imputed = model.impute(frame.assign(visits=frame["visits"].where(y > 0)))
    assert drawn.dtypes.tolist() == imputed.dtypes.tolist() == frame.dtypes.tolist()
