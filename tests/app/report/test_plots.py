"""Displays: what they draw is looked up in the artists, and compared with mathematics or scikit-learn; never pixels."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    EMLogRegressor,
    ParzenClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.app.report.plots import (
    CalibrationDisplay,
    HistoryDisplay,
    KernelDisplay,
    NoveltyDisplay,
    RejectCurveDisplay,
    SharingDisplay,
)
from kernelpool.app.report.plots.style import COLORS, color_of, mark_of, rgb
from kernelpool.datasets import make_clouds, make_ripley
from kernelpool.errors import KernelpoolError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(800, random_state=0)


@pytest.fixture(scope="module")
def network(clouds):
    return SharedKernelClassifier.prbf(6, random_state=0).fit(*clouds)


def matrices(network):
    """Covariances as matrices, (M, d, d), family by family."""
    m, d = network.means_.shape
    given = network.covariances_
    return {
        "spherical": lambda: given[:, None, None] * np.eye(d),
        "diag": lambda: given[:, :, None] * np.eye(d),
        "full": lambda: given,
        "tied": lambda: np.broadcast_to(given, (m, d, d)),
    }[network.covariance_type]()


# -- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deviations", [1.0, 2.0])
def test_ellipses_are_those_of_the_covariances(family, clouds, deviations):
    """Axes are the roots of the eigenvalues; every point of an ellipse is so many deviations from its center."""
    X, y = clouds
    network = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0).fit(X, y)
    display = KernelDisplay.from_estimator(network, X, y, deviations=deviations)
    order = [np.argmin(np.abs(network.means_ - e.center).sum(axis=1)) for e in display.ellipses_]
    assert sorted(order) == [0, 1, 2, 3]
    for j, ellipse in zip(order, display.ellipses_, strict=True):
        matrix = matrices(network)[j]
        value = np.linalg.eigvalsh(matrix)
        np.testing.assert_allclose(ellipse.center, network.means_[j])
        np.testing.assert_allclose(
            sorted([ellipse.width, ellipse.height]), 2 * deviations * np.sqrt(value)
        )
        corners = [ellipse.get_co_vertices(), ellipse.get_vertices()]
        away = np.concatenate(corners) - network.means_[j]
        distance = np.sqrt(np.einsum("ia,ab,ib->i", away, np.linalg.inv(matrix), away))
        np.testing.assert_allclose(distance, deviations)
    assert display.ax_ in display.figure_.axes


def test_a_pair_of_features_shows_the_marginal_covariance(family, blobs):
    X, y = blobs
    network = SharedKernelClassifier.prbf(3, covariance_type=family, random_state=0).fit(X, y)
    display = KernelDisplay.from_estimator(network, X, y, features=(2, 0))
    expected = matrices(network)[:, [2, 0]][:, :, [2, 0]]
    order = [np.argmin(np.abs(network.means_[:, [2, 0]] - c).sum(axis=1)) for c in display.centers]
    np.testing.assert_allclose(display.covariances, expected[order])
    np.testing.assert_allclose(display.centers, network.means_[order][:, [2, 0]])
    assert display.names == ("feature 2", "feature 0")


def test_a_pipeline_is_drawn_in_the_units_of_the_input(blobs):
    """Standardizing features and fitting diagonal kernels is fitting diagonal kernels."""
    X, y = pd.DataFrame(blobs[0], columns=["a", "b", "c"]), blobs[1]
    plain = SharedKernelClassifier.prbf(3, covariance_type="diag", random_state=0).fit(
        X.to_numpy(), y
    )
    chain = make_pipeline(
        StandardScaler(), SharedKernelClassifier.prbf(3, covariance_type="diag", random_state=0)
    ).fit(X, y)
    ours = KernelDisplay.from_estimator(chain, X, y, features=("a", "c"))
    expected = KernelDisplay.from_estimator(plain, X.to_numpy(), y, features=(0, 2))
    np.testing.assert_allclose(ours.centers, expected.centers, rtol=1e-6)
    np.testing.assert_allclose(ours.covariances, expected.covariances, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.points, expected.points)
    assert (ours.ax_.get_xlabel(), ours.ax_.get_ylabel()) == ("a", "c")


def test_lda_finds_the_direction_in_which_classes_differ():
    """Three classes whose means lie in the plane of features 1 and 3 of five: the other features have no say."""
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 3
    X = rng.normal(size=(3000, 5)) * [5, 1, 5, 1, 5]
    X[:, [1, 3]] += np.array([[0, 0], [6, 0], [0, 6]])[y]
    network = SharedKernelClassifier.prbf(3, covariance_type="full", random_state=0).fit(X, y)
    display = KernelDisplay.from_estimator(network, X, y, max_rows=3000)
    rows = np.random.default_rng(0).permutation(3000)  # as they are drawn
    matrix = np.linalg.lstsq(np.column_stack([X[rows], np.ones(3000)]), display.points, rcond=None)[
        0
    ][:5]
    matrix = matrix * X.std(axis=0)[:, None]
    assert np.abs(matrix[[0, 2, 4]]).max() < 0.1 * np.abs(matrix[[1, 3]]).max()
    np.testing.assert_allclose(display.points.std(axis=0), 1, rtol=1e-6)
    assert display.names == ("discriminant axis 1", "discriminant axis 2")


def test_a_shadow_has_the_covariance_of_the_drawn_points(blobs):
    """Rows drawn from one kernel, then drawn in the plane, have the kernel's ellipse: linear maps of Gaussians."""
    X, y = blobs
    network = SharedKernelClassifier.prbf(3, covariance_type="full", random_state=0).fit(X, y)
    rng = np.random.default_rng(1)
    fresh = rng.multivariate_normal(network.means_[0], network.covariances_[0], size=20_000)
    plane = KernelDisplay.from_estimator(network, X, y, max_rows=len(X))
    rows = np.random.default_rng(0).permutation(len(X))
    affine = np.linalg.lstsq(np.column_stack([X[rows], np.ones(len(X))]), plane.points, rcond=None)[
        0
    ]
    found = np.cov((np.column_stack([fresh, np.ones(20_000)]) @ affine).T)
    at = np.argmin(np.abs(plane.centers - np.append(network.means_[0], 1) @ affine).sum(axis=1))
    np.testing.assert_allclose(found, plane.covariances[at], atol=0.05 * np.trace(found))


def test_two_classes_get_a_second_axis():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = rng.normal(size=(2000, 4)) * [1, 1, 3, 1]
    X[:, 0] += 8 * y
    network = SharedKernelClassifier.prbf(2, random_state=0).fit(X, y)
    display = KernelDisplay.from_estimator(network, X, y)
    assert display.names == ("discriminant axis 1", "widest axis 1")
    assert np.linalg.matrix_rank(np.cov(display.points.T)) == 2


def test_regions_are_the_predictions(network, clouds):
    display = KernelDisplay.from_estimator(network, *clouds)
    across, up, label = display.regions
    for i, j in [(0, 0), (120, 120), (200, 30), (17, 222)]:
        assert network.classes_[label[i, j]] == network.predict([[across[j], up[i]]])[0]
    np.testing.assert_array_equal(np.unique(label), [0, 1])
    assert KernelDisplay.from_estimator(network, *clouds, regions=None).regions is None


def test_everything_drawn_is_in_view_unless_limits_are_given(network, clouds):
    display = KernelDisplay.from_estimator(network, *clouds)
    left, right = display.ax_.get_xlim()
    assert left < display.points[:, 0].min() < display.points[:, 0].max() < right
    display = KernelDisplay.from_estimator(network, *clouds, limits=[(-9, 9), (-8, 7)])
    assert (*display.ax_.get_xlim(), *display.ax_.get_ylim()) == (-9, 9, -8, 7)
    assert (
        display.regions[0][0],
        display.regions[0][-1],
        display.regions[1][0],
        display.regions[1][-1],
    ) == (-9, 9, -8, 7)


def test_regions_of_more_features_are_bayes_rule_on_the_two_that_are_seen(blobs):
    """The marginal of a mixture of Gaussians, with scipy's densities."""
    X, y = blobs
    network = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0).fit(X, y)
    across, up, label = KernelDisplay.from_estimator(network, X, y, features=(0, 1)).regions
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    kernels = zip(network.means_, network.covariances_, strict=True)
    density = np.stack(
        [multivariate_normal(m[:2], c[:2, :2]).pdf(grid) for m, c in kernels], axis=-1
    )
    np.testing.assert_array_equal(
        label, np.argmax(density @ network.mixing_ * network.class_prior_, axis=-1)
    )


def test_a_slice_is_predicted_at_the_mean_of_the_other_features(blobs):
    X, y = blobs
    network = EMLogClassifier(5, random_state=0).fit(X, y)
    assert KernelDisplay.from_estimator(network, X, y, features=(0, 2)).regions is None
    across, up, label = KernelDisplay.from_estimator(
        network, X, y, features=(0, 2), regions="slice"
    ).regions
    for i, j in [(0, 0), (120, 120), (200, 30), (60, 180)]:
        assert label[i, j] == network.predict([[across[j], X[:, 1].mean(), up[i]]])[0]


def test_refused_regions_are_those_of_decide(clouds):
    X, y = clouds
    model = RejectClassifier(
        make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(6, random_state=0)),
        ambiguity=0.1,
        novelty=0.05,
    )
    display = KernelDisplay.from_estimator(model.fit(X, y), X, y)
    across, up, label = display.regions
    grid = np.column_stack([g.ravel() for g in np.meshgrid(across[::8], up[::8])])
    decision = model.decide(grid).reshape(len(up[::8]), -1)
    np.testing.assert_array_equal(np.maximum(label[::8, ::8] - 1, 0), decision)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"ambiguous", "novel"} <= set(names)


def test_colors_and_lines_tell_the_class_posterior():
    model = SharedKernelClassifier.from_parameters(
        [[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]],
        [1.0, 1.0, 1.0],
        [[0.5, 0], [0.5, 0.5], [0, 0.5]],
        [0.5, 0.5],
        ["a", "b"],
    )
    X, y = model.sample(200, random_state=0)
    display = KernelDisplay.from_estimator(model, X, y)
    at = np.argsort(display.centers[:, 0])
    np.testing.assert_allclose(display.class_posterior[at], [[1, 0], [0.5, 0.5], [0, 1]])
    edge = [np.array(display.ellipses_[j].get_edgecolor()[:3]) for j in at]
    np.testing.assert_allclose(edge[1], (edge[0] + edge[2]) / 2, atol=1e-9)
    assert [display.ellipses_[j].get_linestyle() in ("-", "solid") for j in at] == [
        True,
        False,
        True,
    ]
    assert display.marks_[at[0]].get_marker() == mark_of(0) != display.marks_[at[2]].get_marker()


def every_model(X, y):
    yield SharedKernelClassifier.prbf(4, random_state=0).fit(X, y)
    yield SharingAverageClassifier(4, sharing=(0.5, 1), covariance_type="tied", random_state=0).fit(
        X, y
    )
    yield ParzenClassifier("hypersphere", standardize=False, radius=0.5).fit(X, y)
    yield ReducedParzenClassifier(10, standardize=False, radius=0.5, random_state=0).fit(X, y)
    yield EMLogClassifier(4, random_state=0).fit(X, y)
    yield CompetitiveNeuronsClassifier(4, local=True, random_state=0).fit(X, y)
    yield GridSearchCV(SharedKernelClassifier.prbf(random_state=0), {"n_kernels": [4]}, cv=2).fit(
        X, y
    )
    yield RejectClassifier(SharedKernelClassifier.prbf(4, random_state=0), ambiguity=0.3).fit(X, y)


def test_every_model_with_kernels_can_be_drawn(clouds):
    X, y = clouds
    for model in every_model(X, y):
        display = KernelDisplay.from_estimator(model, X, y, max_kernels=50, max_rows=100)
        n = {
            "ParzenClassifier": 50,
            "ReducedParzenClassifier": 10,
            "SharingAverageClassifier": 8,
        }.get(type(model).__name__, 4)
        assert len(display.ellipses_) == n
        np.testing.assert_allclose(display.class_posterior.sum(axis=1), 1)
        assert display.n_left_out == (750 if n == 50 else 0)
        assert len(display.points) == 100
        plt.close("all")


def test_a_parzen_kernel_is_drawn_as_wide_as_it_reaches(clouds):
    """A disc of radius r has a deviation of r / 2 along each axis, so that two deviations are its rim."""
    display = KernelDisplay.from_estimator(
        ParzenClassifier("hypersphere", standardize=False, radius=0.5).fit(*clouds),
        *clouds,
        max_kernels=3,
    )
    for ellipse in display.ellipses_:
        np.testing.assert_allclose([ellipse.width, ellipse.height], 1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            LogisticRegression(),
            "KernelDisplay cannot draw a LogisticRegression: it is no classifier of kernelpool",
        ),
        (
            CompetitiveNeuronsClassifier(4, random_state=0),
            "its neurons have no places; fit it with local=True",
        ),
        (
            EMLogRegressor(4, random_state=0),
            "KernelDisplay cannot draw a EMLogRegressor: its kernels have no classes",
        ),
    ],
)
def test_models_without_kernels_to_draw_are_told(model, message, clouds):
    X, y = clouds
    with pytest.raises(KernelpoolError, match=message):
        KernelDisplay.from_estimator(model.fit(X, y * 1.0), X, y)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"features": "pca"}, "features must be two features or \"lda\"; got 'pca'."),
        ({"features": (0, 0)}, "features must be two different features; got (0, 0)."),
        (
            {"features": (0, 7)},
            "features must be numbers below 3 or names among feature 0, feature 1, feature 2; got 7.",
        ),
        (
            {"features": ("x", 0)},
            "features must be numbers below 3 or names among feature 0, feature 1, feature 2; got 'x'.",
        ),
        ({"regions": "all"}, "regions must be 'auto', 'slice' or None; got 'all'."),
    ],
)
def test_axes_that_do_not_exist_are_told(kwargs, message, blobs):
    network = SharedKernelClassifier.prbf(3, random_state=0).fit(*blobs)
    with pytest.raises(KernelpoolError, match=re.escape(message)):
        KernelDisplay.from_estimator(network, *blobs, **kwargs)


def test_one_feature_is_too_few(clouds):
    X, y = clouds[0][:, :1], clouds[1]
    with pytest.raises(KernelpoolError, match="needs at least two features; the model has 1"):
        KernelDisplay.from_estimator(SharedKernelClassifier.prbf(2, random_state=0).fit(X, y), X, y)


# -- sharing --------------------------------------------------------------------------------------------------------


def test_the_heat_map_is_bayes_rule():
    """P(C_k | j) = mixing_jk P(C_k) / sum over k; lines sorted by owner and share."""
    iris = load_iris()
    network = SharedKernelClassifier.prbf(6, random_state=0).fit(
        iris.data[:120], iris.target_names[iris.target[:120]]
    )
    display = SharingDisplay.from_estimator(network)
    joint = network.mixing_ * network.class_prior_
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(display.im_.get_array(), expected[display.kernels])
    np.testing.assert_allclose(display.values.sum(axis=1), 1)
    np.testing.assert_array_equal(
        network.classes_[display.owners], network.owners_[display.kernels]
    )
    assert (np.diff(display.owners) >= 0).all()
    np.testing.assert_allclose(display.share, joint.sum(axis=1)[display.kernels])
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == [
        "setosa",
        "versicolor",
        "virginica",
    ]
    frames = [p for p in display.ax_.patches if p.get_width() < 1]
    np.testing.assert_allclose([f.get_x() + f.get_width() / 2 for f in frames], display.owners)
    numbers = np.array([float(t.get_text()) for t in display.text_]).reshape(expected.shape)
    np.testing.assert_allclose(numbers, display.values, atol=0.0051)
    mixing = SharingDisplay.from_estimator(network, values="mixing")
    np.testing.assert_allclose(mixing.im_.get_array(), network.mixing_[mixing.kernels])


def test_an_average_shows_the_kernels_of_all_its_networks(clouds):
    average = SharingAverageClassifier(4, sharing=(0, 0.5, 1), random_state=0).fit(*clouds)
    display = SharingDisplay.from_estimator(average, values="mixing")
    assert display.groups == ("sharing 0",) * 4 + ("sharing 0.5",) * 4 + ("sharing 1",) * 4
    np.testing.assert_allclose(display.values.reshape(3, 4, 2).sum(axis=1), 1)
    np.testing.assert_allclose(display.share.sum(), 1)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            ParzenClassifier("hypersphere", standardize=False, radius=1.0),
            "each of its kernels belongs to one class alone",
        ),
        (
            EMLogClassifier(4, random_state=0),
            "only kernels of a shared-kernel network are weighed by every class",
        ),
        (
            LogisticRegression(),
            "only kernels of a shared-kernel network are weighed by every class",
        ),
    ],
)
def test_models_that_share_nothing_are_told(model, message, clouds):
    with pytest.raises(KernelpoolError, match=message):
        SharingDisplay.from_estimator(model.fit(*clouds))


def test_values_are_one_of_two(network):
    with pytest.raises(
        KernelpoolError, match="values must be 'class_posterior' or 'mixing'; got 'owners'"
    ):
        SharingDisplay.from_estimator(network, values="owners")


# -- history --------------------------------------------------------------------------------------------------------


def test_the_history_is_drawn_as_it_is(network):
    display = HistoryDisplay.from_estimator(network)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), network.history_)
    np.testing.assert_array_equal(
        display.lines_[0].get_xdata(), np.arange(1, len(network.history_) + 1)
    )
    gap = display.plot(gap=True)
    np.testing.assert_allclose(
        gap.lines_[0].get_ydata(), (network.history_.max() - network.history_)[:-1]
    )
    assert gap.ax_.get_yscale() == "log"


def test_histories_of_the_other_networks(clouds):
    average = SharingAverageClassifier(4, sharing=(0, 1), random_state=0).fit(*clouds)
    lines = HistoryDisplay.from_estimator(average).lines_
    for line, member in zip(lines, average.estimators_, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), member.history_)
    rbf = EMLogClassifier(6, random_state=0).fit(*make_ripley(1000, random_state=0))
    assert rbf.best_iter_ < rbf.n_iter_
    display = HistoryDisplay.from_estimator(rbf)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), rbf.history_)
    assert display.kept == rbf.best_iter_ == 1 + np.argmin(rbf.history_)
    neurons = CompetitiveNeuronsClassifier(3, random_state=0).fit(*clouds)
    display = HistoryDisplay.from_estimator(neurons)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), neurons.history_)
    bound = neurons.bound_history_[np.isfinite(neurons.bound_history_)]
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), bound)
    assert display.lines_[0].get_xdata()[-1] == neurons.n_iter_


def test_models_without_a_history_are_told(clouds):
    with pytest.raises(
        KernelpoolError, match="its kernels are rows, and nothing is trained step by step"
    ):
        HistoryDisplay.from_estimator(
            ParzenClassifier("hypersphere", standardize=False, radius=1.0).fit(*clouds)
        )
    known = SharedKernelClassifier.from_parameters(
        [[0.0], [1.0]], [1.0, 1.0], np.eye(2), [0.5, 0.5], [0, 1]
    )
    with pytest.raises(
        KernelpoolError, match="it has no history_; was it made from known parameters"
    ):
        HistoryDisplay.from_estimator(known)


# -- refusals -------------------------------------------------------------------------------------------------------


def test_the_reject_curve_is_counted(clouds):
    X, y = clouds
    model = LogisticRegression().fit(X, y)
    display = RejectCurveDisplay.from_estimator(model, X, y, name="logistic")
    sure, wrong = model.predict_proba(X).max(axis=1), model.predict(X) != y
    for coverage, error in list(
        zip(display.line_.get_xdata(), display.line_.get_ydata(), strict=True)
    )[::50]:
        kept = np.argsort(-sure, kind="stable")[: round(coverage * len(y) / 100)]
        assert error == pytest.approx(100 * wrong[kept].mean())
    assert display.line_.get_xdata()[-1] == pytest.approx(100)
    assert display.line_.get_ydata()[-1] == pytest.approx(100 * (1 - model.score(X, y)))
    assert display.point_ is None
    assert display.line_.get_label() == "logistic"


def test_thresholds_in_use_are_marked(clouds):
    X, y = clouds
    model = RejectClassifier(
        SharedKernelClassifier.prbf(6, random_state=0), ambiguity=0.1, novelty=0.05
    ).fit(X, y)
    display = RejectCurveDisplay.from_estimator(model, X, y)
    accepted = model.accepted(X)
    assert display.point_.get_xdata()[0] == pytest.approx(100 * accepted.mean())
    assert display.point_.get_ydata()[0] == pytest.approx(
        100 * (model.predict(X)[accepted] != y[accepted]).mean()
    )
    assert display.line_.get_xdata()[-1] == pytest.approx(100 * (model.decide(X) != 2).mean())


def test_no_accepted_row_is_no_curve(clouds):
    X, y = clouds
    model = RejectClassifier(SharedKernelClassifier.prbf(4, random_state=0), novelty=0.05).fit(X, y)
    with pytest.raises(KernelpoolError, match="Every row is novel to the model"):
        RejectCurveDisplay.from_estimator(model, X + 1000, y)


def test_curves_need_probabilities(clouds):
    model = LinearSVC().fit(*clouds)
    for display in (RejectCurveDisplay, CalibrationDisplay):
        with pytest.raises(KernelpoolError, match="needs predict_proba; LinearSVC has none"):
            display.from_estimator(model, *clouds)


# -- calibration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_those_of_scikit_learn(clouds, strategy):
    X, y = clouds
    model = LogisticRegression().fit(X, y)
    display = CalibrationDisplay.from_estimator(
        model, X, y, pos_label=1, n_bins=8, strategy=strategy
    )
    true, mean = calibration_curve(y, model.predict_proba(X)[:, 1], n_bins=8, strategy=strategy)
    np.testing.assert_allclose(display.accuracy, true)
    np.testing.assert_allclose(display.confidence, mean)
    np.testing.assert_allclose(display.line_.lines[0].get_ydata(), true)
    assert display.counts.sum() == len(y)
    assert [bar.get_height() for bar in display.bars_] == display.counts.tolist()


def test_rows_at_the_edge_of_a_bin_go_where_scikit_learn_puts_them():
    p, y = np.array([0.125, 0.25, 0.5, 0.5, 0.75, 1.0]), np.array([0, 1, 0, 1, 1, 1])
    display = CalibrationDisplay.from_predictions(
        y, np.column_stack([1 - p, p]), [0, 1], pos_label=1, n_bins=4
    )
    true, mean = calibration_curve(y, p, n_bins=4)
    np.testing.assert_allclose([display.accuracy, display.confidence], [true, mean])


def test_the_calibration_error_of_many_classes_is_counted():
    """sum over bins of |rows right - sum of probabilities| / n, for the most probable class."""
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.full(4, 0.4), size=500)
    y = np.array(["a", "b", "c", "d"])[rng.integers(4, size=500)]
    display = CalibrationDisplay.from_predictions(y, probability, ["a", "b", "c", "d"], n_bins=5)
    sure, right = probability.max(axis=1), np.array(list("abcd"))[probability.argmax(axis=1)] == y
    total = sum(
        abs(right[here].sum() - sure[here].sum())
        for low in np.arange(5) / 5
        for here in [(sure >= low) & (sure < low + 0.2)]
    )
    assert display.ece == pytest.approx(total / 500)
    label = display.ax_.get_legend().get_texts()[-1].get_text()
    assert label == f"ECE {display.ece:.3f}"


def test_probabilities_that_are_right_have_little_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=100_000)
    y = (rng.uniform(size=100_000) < p).astype(int)
    assert CalibrationDisplay.from_predictions(y, np.column_stack([1 - p, p]), [0, 1]).ece < 0.006
    assert (
        CalibrationDisplay.from_predictions(y, np.column_stack([1 - p**3, p**3]), [0, 1]).ece > 0.1
    )


def test_calibration_is_asked_in_words_that_exist(clouds):
    model = LogisticRegression().fit(*clouds)
    with pytest.raises(
        KernelpoolError, match=r"pos_label must be one of the classes \[0, 1\]; got 'x'"
    ):
        CalibrationDisplay.from_estimator(model, *clouds, pos_label="x")
    with pytest.raises(
        KernelpoolError,
        match="strategy must be 'uniform' or 'quantile', n_bins at least 1; got 'width', 10",
    ):
        CalibrationDisplay.from_estimator(model, *clouds, strategy="width")


# -- novelty --------------------------------------------------------------------------------------------------------


def test_the_histogram_holds_every_row_and_the_threshold(clouds):
    X, y = clouds
    model = RejectClassifier(SharedKernelClassifier.prbf(6, random_state=0), novelty=0.05).fit(X, y)
    far = np.vstack([X[:300], X[:100] + 50])
    display = NoveltyDisplay.from_estimator(model, X, far)
    for share in display.shares_.values():
        assert share.sum() == pytest.approx(1)
    assert display.shares_["test rows"][0] == pytest.approx(
        0.25, abs=0.02
    )  # the far ones, out of view
    score = model.score_samples(X)
    inside = (score >= display.edges_[10]) & (score < display.edges_[11])
    assert display.shares_["training rows"][10] == pytest.approx(inside.mean())
    assert display.line_.get_xdata()[0] == model.novelty_threshold_
    assert display.edges_[0] < model.novelty_threshold_ < display.edges_[-1]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"training rows (800): {100 * (model.decide(X) == 2).mean():.1f} % novel" in labels


def test_rows_of_no_density_are_counted(clouds):
    X, y = clouds
    network = ParzenClassifier("hypersphere", standardize=False, radius=0.5).fit(X, y)
    display = NoveltyDisplay.from_estimator(network, X, X[:50] + 100, names=("seen", "far"))
    assert display.shares_["far"][0] == 1
    assert display.line_ is None
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["seen (800)", "far (50), 50 of no density"]
    drawn = NoveltyDisplay.from_estimator(network, X, threshold=-3.0)
    assert drawn.line_.get_xdata()[0] == -3
    assert (
        NoveltyDisplay({"some": np.array([np.nan, 1.0, 2.0, -np.inf])}).plot().shares_["some"].sum()
        == 1
    )
    assert np.isfinite(NoveltyDisplay({"none": np.full(5, -np.inf)}).plot().edges_).all()


def test_novelty_needs_a_density(clouds):
    with pytest.raises(
        KernelpoolError,
        match=r"NoveltyDisplay needs .*\(score_samples\).*; LogisticRegression does not",
    ):
        NoveltyDisplay.from_estimator(LogisticRegression().fit(*clouds), clouds[0])


# -- the convention -------------------------------------------------------------------------------------------------


def test_displays_draw_where_they_are_told_and_again(network, clouds):
    X, y = clouds
    makers = [
        lambda ax: KernelDisplay.from_estimator(network, X, y, ax=ax),
        lambda ax: SharingDisplay.from_estimator(network, ax=ax),
        lambda ax: HistoryDisplay.from_estimator(network, ax=ax),
        lambda ax: RejectCurveDisplay.from_estimator(network, X, y, ax=ax),
        lambda ax: CalibrationDisplay.from_estimator(network, X, y, ax=ax),
        lambda ax: NoveltyDisplay.from_estimator(network, X, ax=ax),
    ]
    for make in makers:
        figure, (first, second) = plt.subplots(1, 2)
        display = make(first)
        assert display.ax_ is first
        assert display.figure_ is figure
        assert display.plot(ax=second) is display
        assert display.ax_ is second
        assert display.plot().figure_ is not figure
        display.figure_.canvas.draw()


def test_an_estimator_that_is_not_fitted_is_told(clouds):
    from sklearn.exceptions import NotFittedError

    for display in (HistoryDisplay, SharingDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(SharedKernelClassifier.prbf())


def test_classes_are_told_apart_by_more_than_color():
    assert len({(color_of(k), mark_of(k)) for k in range(49)}) == 49
    assert len({mark_of(k) for k in range(7)}) == 7


SEEN = {  # Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanope": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("eye", SEEN)
def test_colors_differ_for_every_common_eye(eye):
    """CIE 1976 distance of the simulated colors; 2.3 is just noticeable."""
    color = np.array([rgb(c) for c in COLORS])
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(SEEN[eye]).T, 0, 1)
    xyz = (
        seen
        @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    )
    f = np.cbrt(xyz / [0.9505, 1, 1.089])
    lab = np.column_stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )
    distance = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(lab), 1)]
    assert distance.min() > 10
