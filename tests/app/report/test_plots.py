"""The plots against the models they draw."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import Ellipse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report import evaluate, plots
from kernelpool.app.report.plots import (
    plot_calibration,
    plot_kernels,
    plot_novelty,
    plot_reject_curve,
)
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import FittedPipeline

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def ellipses(ax):
    """Centers, covariances and patches of the ellipses that are drawn."""
    drawn = [p for p in ax.patches if isinstance(p, Ellipse) and p.get_edgecolor()[:3] != (1, 1, 1)]
    covariances = []
    for patch in drawn:
        angle = np.radians(patch.angle)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        covariances.append(turn @ np.diag([patch.width**2, patch.height**2]) @ turn.T / 4)
    return np.array([patch.center for patch in drawn]), np.array(covariances), drawn


@pytest.fixture(scope="module")
def blobs():
    """Three classes in four features that depend on each other."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    return rng.normal(size=(240, 4)) @ rng.normal(size=(4, 4)) + 3.0 * y[:, None], y


@pytest.mark.parametrize("family", ["spherical", "diag", "full", "tied"])
def test_ellipses_are_the_covariances_along_the_two_features(family, blobs):
    X, y = blobs
    model = SharedKernelClassifier.prbf(3, covariance_type=family, random_state=0, tol=0.02)
    model.fit(X, y)
    whole = np.asarray(model.covariances_)
    if family in ("spherical", "diag"):
        whole = np.array([np.eye(4) * v for v in whole])
    whole = np.broadcast_to(whole, (3, 4, 4))
    ax = plot_kernels(model, X, y, features=(3, 1))
    centers, covariances, _ = ellipses(ax)
    order = np.argsort(-(model.mixing_ * model.class_prior_).sum(axis=1), kind="stable")
    assert_allclose(centers, model.means_[order][:, [3, 1]])
    assert_allclose(covariances / 4, whole[order][:, [3, 1]][:, :, [3, 1]], atol=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 3", "feature 1")


def test_regions_are_decisions_refusals_included(rejecting, clouds):
    model, X, y = rejecting
    across = np.linspace(5, 16, 12)
    up = np.linspace(-52, -28, 9)
    code, decision = plots.regions_of(FittedPipeline(model, X), (0, 1), across, up)
    grid = np.column_stack([g.ravel() for g in np.meshgrid(across, up)])
    assert_array_equal(decision.ravel(), model.decide(grid))
    assert_array_equal(code.ravel(), model.predict_proba(grid).argmax(axis=1))
    assert set(decision.ravel()) == {0, 1, 2}
    texts = [t.get_text() for t in plot_kernels(model, X, y).get_legend().get_texts()]
    assert texts[-2:] == ["ambiguous", "novel"]


def test_what_cannot_be_drawn_is_named(clouds, fitted):
    X, y = clouds[:2]
    plain = LogisticRegression().fit(X, y)
    for call, message in (
        (lambda: plot_kernels(plain, X, y), "kernels have means; LogisticRegression has none"),
        (lambda: plot_kernels(fitted, X, y, features=(0, 7)), "needs two numeric features"),
        (lambda: plot_novelty(plain, X), "score_samples, log p.x.; LogisticRegression has none"),
    ):
        with pytest.raises(KernelpoolError, match=message):
            call()
    novel = RejectClassifier(fitted, novelty=1e9, novelty_rule="threshold").fit(X, y)
    with pytest.raises(KernelpoolError, match="every row is novel"):
        plot_reject_curve(novel, X, y)


def test_calibration_is_scikit_learns(clouds, fitted):
    X, y = clouds[2:]
    ax = plot_calibration(fitted, X, y)
    probability = fitted.predict_proba(X)
    right = fitted.classes_[probability.argmax(axis=1)] == y
    share, sure = calibration_curve(right, probability.max(axis=1), n_bins=10)
    (drawn,) = ax.containers
    assert_allclose(drawn.lines[0].get_xdata(), sure)
    assert_allclose(drawn.lines[0].get_ydata(), share)
    assert drawn.lines[0].get_linestyle() == "None"  # of few rows a line would be a zigzag


def test_the_histogram_holds_every_row_and_the_threshold(rejecting, clouds):
    model, X, _ = rejecting
    ax = plot_novelty(model, clouds[0], X)
    for patch in ax.patches:
        assert patch.get_data().values.sum() == pytest.approx(100)
    assert ax.lines[1].get_xdata()[0] == -12.0
    drawn = model.estimator_.sample(100_000, random_state=1)[0]
    below = model.score_samples(drawn) < ax.lines[0].get_xdata()[0]
    assert below.mean() == pytest.approx(0.01, rel=0.5)
    assert [t.get_text()[:8] for t in ax.get_legend().get_texts()] == [
        "training",
        "held-out",
        "one in 1",
        "novel be",
    ]


def test_plots_draw_results_as_they_draw_a_model_and_its_rows(rejecting, clouds):
    model, X, y = rejecting
    results = evaluate(model, X, y, X_train=clouds[0], y_train=clouds[1])
    for plot, rows in (
        (plot_calibration, (X, y)),
        (plot_reject_curve, (X, y)),
        (plot_novelty, (clouds[0], X)),
        (plot_kernels, clouds[:2]),
    ):
        texts, lines = zip(*(_drawn(ax) for ax in (plot(results), plot(model, *rows))), strict=True)
        assert texts[0] == texts[1]
        assert len(texts[0]) > 5
        assert_array_equal(lines[0], lines[1])


def _drawn(ax):
    """Texts, and the coordinates of all lines."""
    texts = [text.get_text() for text in ax.findobj(mpl.text.Text)]
    return texts, np.concatenate([line.get_xydata() for line in ax.lines])


def test_plots_draw_on_the_axes_given_and_leave_the_users_style_alone(clouds, fitted):
    import matplotlib.pyplot as plt

    with plt.rc_context({"axes.grid": False}):
        _, ax = plt.subplots()
        assert plot_kernels(fitted, *clouds[:2], ax=ax) is ax
        assert plt.rcParams["axes.grid"] is False
