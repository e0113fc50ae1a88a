"""The picture that can be touched, in a real browser: axes, rows, kernels, classes, the threshold, keys, names."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import ConformalClassifier, RejectClassifier, SharedKernelClassifier, questions
from kernelpool.app.report import summarize, write_html
from kernelpool.app.report.html import render_explorer, render_html

from .chromium import BINARY, REASON, Chromium


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    x = (
        rng.normal(size=(600, 3)) * [1, 10, 0.1]
        + np.array([[0, 0, 0], [2, 20, 0], [0, 30, 0.4]])[y]
        + [100, 0, 5]
    )
    labels = np.array(["<b>red</b>", "green", "blue"])[y]
    model = make_pipeline(
        StandardScaler(), SharedKernelClassifier(6, covariance_type="full", random_state=0)
    )
    model = RejectClassifier(model, ambiguity=0.3).fit(x[:400], labels[:400])
    names = [f"id {i}" for i in range(200)]
    return (
        model,
        x,
        labels,
        summarize(model, x[:400], labels[:400], x[400:], labels[400:], test_row_names=names),
    )


def test_the_picture_holds_what_the_model_says(case):
    model, x, labels, summary = case
    explorer = summary.explorer
    assert explorer.features == ("x0", "x1", "x2")
    np.testing.assert_allclose(explorer.values, x[400:], rtol=1e-4)
    assert explorer.numbers == tuple(range(200))
    assert explorer.names[3] == "id 3"
    probability = model.predict_proba(x[400:])
    np.testing.assert_allclose(explorer.doubt, 1 - probability.max(axis=1), atol=1e-5)
    np.testing.assert_array_equal(np.array(explorer.labels)[list(explorer.true)], labels[400:])
    assert explorer.threshold == 0.3
    assert explorer.held_out
    inner, scaler = model.estimator_[-1], model.estimator_[0]
    first = explorer.kernels[0]
    np.testing.assert_allclose(
        first.mean, inner.means_[0] * scaler.scale_ + scaler.mean_, rtol=1e-4
    )
    expected = inner.covariances_[0] * np.outer(scaler.scale_, scaler.scale_)
    np.testing.assert_allclose(first.covariance, expected, rtol=1e-4, atol=1e-6)
    nearest = inner.kernel_posterior(scaler.transform(x[400:])).argmax(axis=1)
    np.testing.assert_array_equal(explorer.nearest, nearest)


def test_importance_is_that_of_held_out_rows(case):
    model, x, labels, summary = case
    expected = questions.feature_importance(model, x[400:], labels[400:])
    found = {feature.name: feature.rise for feature in summary.importance.features}
    np.testing.assert_allclose([found[f"x{i}"] for i in range(3)], expected.importance)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert summary.importance.method == "marginal"
    assert summary.importance.n_rows == 200
    assert (
        summarize(model, x[:400], labels[:400]).importance is None
    )  # the rows of the fit cannot judge


def cells_of(explorer, pair):
    """Centers of the cells of a region, lowest row of cells first, and their classes."""
    (across, up), (a, b) = explorer.grid, pair
    k = len(explorer.features)
    runs = explorer.regions[[(i, j) for i in range(k) for j in range(i + 1, k)].index(pair)]
    codes = np.repeat(runs[::2], runs[1::2])
    right, top = (
        np.linspace(*explorer.ranges[f], n, endpoint=False) for f, n in ((a, across), (b, up))
    )
    right, top = right + 0.5 * (right[1] - right[0]), top + 0.5 * (top[1] - top[0])
    return np.array([[x, y] for y in top for x in right]), codes


def test_regions_are_the_densities_of_two_features(case):
    model, _, _, summary = case
    inner, scaler = model.estimator_[-1], model.estimator_[0]
    explorer = summary.explorer
    assert len(explorer.regions) == 3
    networks = getattr(inner, "deciding_networks_", [inner])
    for a, b in ((0, 1), (0, 2), (1, 2)):
        cells, codes = cells_of(explorer, (a, b))
        z = (cells - scaler.mean_[[a, b]]) / scaler.scale_[[a, b]]
        posterior = np.zeros((len(z), 3))
        for network in networks:
            density = [
                multivariate_normal(mean[[a, b]], covariance[np.ix_([a, b], [a, b])]).pdf(z)
                for mean, covariance in zip(network.means_, network.covariances_, strict=True)
            ]
            joint = np.array(density).T @ network.mixing_ * network.class_prior_
            posterior += joint / joint.sum(axis=1, keepdims=True) / len(networks)
        best = np.sort(posterior, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-3
        names, expected = np.array(explorer.labels)[codes], inner.classes_[posterior.argmax(axis=1)]
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(names[clear], expected[clear])


def test_regions_of_a_classifier_that_needs_all_features_are_means_over_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(int)
    model = LogisticRegression().fit(x, y)
    explorer = summarize(model, x, y).explorer
    cells, codes = cells_of(explorer, (0, 2))
    lent = np.array(explorer.values)[np.linspace(0, 89, 20).astype(int)]
    rows = np.repeat(lent[None], len(cells), axis=0)
    rows[:, :, [0, 2]] = cells[:, None]
    mean = model.predict_proba(rows.reshape(-1, 3)).reshape(len(cells), 20, 2).mean(axis=1)
    clear = np.abs(mean[:, 0] - 0.5) > 1e-3  # values of the page are rounded
    np.testing.assert_array_equal(codes[clear], mean.argmax(axis=1)[clear])


def test_held_out_rows_are_compared_with_training_rows(case):
    model, x, labels, summary = case
    report = questions.check_drift(None, x[400:], x[:400])
    assert summary.likeness.p_value == report.p_value
    assert [part.name for part in summary.likeness.features] == [
        part.name.replace("feature ", "x") for part in report.parts
    ]
    for part in summary.likeness.classes:
        assert part.trained == pytest.approx((labels[:400] == part.name).mean())
        assert part.counted == pytest.approx((labels[400:] == part.name).mean())
        assert part.low <= part.estimate <= part.high
    moved = summarize(model, x[:400], labels[:400], x[400:] + np.array([0, 30, 0]), labels[400:])
    assert moved.likeness.features[0].name == "x1"
    assert moved.likeness.p_value < 1e-6
    assert summarize(model, x[:400], labels[:400]).likeness is None


def test_sets_are_counted(case):
    _, x, labels, _ = case
    model = ConformalClassifier(SharedKernelClassifier.prbf(3, random_state=0), error=0.2).fit(
        x[:400], labels[:400]
    )
    sets = summarize(model, x[:400], labels[:400], x[400:], labels[400:]).sets
    members = model.predict_set(x[400:])
    inside = members[np.arange(200), np.searchsorted(model.classes_, labels[400:])]
    assert sets.coverage == pytest.approx(inside.mean())
    assert sets.coverage_low < inside.mean() < sets.coverage_high
    assert sets.sizes == tuple(np.bincount(members.sum(axis=1)))
    assert {part.name: part.coverage for part in sets.classes} == {
        name: pytest.approx(inside[labels[400:] == name].mean()) for name in model.classes_
    }
    assert sets.held_out
    assert "Sets of classes" in render_html(summarize(model, x[:400], labels[:400]))


def test_what_was_tried_is_told_with_the_setting_that_was_chosen(case):
    _, x, labels, _ = case
    model = SharedKernelClassifier.prbf(n_kernels="auto", random_state=0).fit(x[:400], labels[:400])
    summary = summarize(model, x[:400], labels[:400])
    found = model.selection_
    (chosen,) = [row for row in summary.selection.rows if row.chosen]
    assert chosen.n_kernels == found["n_kernels"][found["chosen"]][0]
    assert summary.selection.rows[0].behind == 0
    assert summary.selection.n_close == sum(found["behind"] <= found["behind_error"])
    assert len(summary.selection.rows) + summary.selection.n_more == len(found["behind"])
    assert "why this was chosen" in render_html(summary)


@pytest.fixture(scope="module")
def browser():
    if BINARY is None:
        pytest.skip(REASON)
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(case, tmp_path_factory):
    return write_html(case[3], tmp_path_factory.mktemp("explorer") / "report.html")


ROOT = "document.querySelector('.explorer')"


def fire(browser, selector, value=None, event="input"):
    setting = "" if value is None else f"e.value = {value!r};"
    browser.run(
        f"(() => {{ const e = {ROOT}.querySelector('{selector}'); {setting} e.dispatchEvent(new Event('{event}')); }})()"
    )


def text(browser, selector):
    return browser.run(f"{ROOT}.querySelector('{selector}').textContent")


def n_points(browser, more=""):
    return browser.run(f"{ROOT}.querySelectorAll('.point{more}').length")


def test_the_threshold_counts_what_is_accepted(browser, page, case):
    browser.open(page)
    assert browser.trouble == []
    explorer = case[3].explorer
    for level in (0.3, 0.05):
        fire(browser, ".doubt", str(level))
        doubt = np.array(explorer.doubt)
        accepted = doubt <= level
        wrong = np.array(explorer.true)[accepted] != np.array(explorer.named)[accepted]
        told = text(browser, ".counted")
        assert told.startswith(f"{accepted.sum()} of 200 rows accepted")
        assert f"{100 * wrong.mean():.1f} % of them wrong" in told
        assert n_points(browser, ".refused") == (~accepted).sum()


def test_axes_classes_rows_and_kernels_can_be_chosen(browser, page, case):
    browser.open(page)
    explorer = case[3].explorer
    assert n_points(browser) == 200
    axes = f"[...{ROOT}.querySelectorAll('.axis')].map(e => e.textContent)"
    assert browser.run(axes) == ["x0", "x1"]
    fire(browser, ".up", "2")
    assert browser.run(axes) == ["x0", "x2"]
    browser.run(f"{ROOT}.querySelector('.classes input').checked = false")
    fire(browser, ".classes input")
    assert n_points(browser) == sum(true != 0 for true in explorer.true)
    browser.run(f"{ROOT}.querySelector('.point').dispatchEvent(new Event('mouseenter'))")
    first = next(i for i, true in enumerate(explorer.true) if true != 0)
    assert text(browser, ".told").startswith(
        f"Row {first} (id {first}): named {explorer.labels[explorer.named[first]]}"
    )
    shown = [kernel.index for kernel in explorer.kernels if kernel.classes[0][0] != 0]
    assert (
        browser.run(f"{ROOT}.querySelectorAll('.kernel').length")
        == len(shown)
        < len(explorer.kernels)
    )
    browser.run(f"{ROOT}.querySelectorAll('.kernel')[1].dispatchEvent(new Event('click'))")
    assert text(browser, ".profile h3").startswith(f"Kernel {shown[1]}, ")
    members = sum(nearest == shown[1] for nearest in explorer.nearest)
    assert f"{members} of these rows" in text(browser, ".profile")
    assert browser.run(f"{ROOT}.querySelectorAll('.kernel.chosen').length") == 1
    assert browser.trouble == []


def test_regions_and_kernels_can_be_put_away_and_classes_take_free_colors(browser, page, tmp_path):
    browser.open(page)
    assert browser.run(f"{ROOT}.querySelectorAll('.region').length") > 10
    assert browser.run(f"{ROOT}.querySelectorAll('.kernel').length") == 6
    for name in ("ground", "rings"):
        browser.run(f"{ROOT}.querySelector('.{name}').checked = false")
        fire(browser, f".{name}")
    assert browser.run(f"{ROOT}.querySelectorAll('.region, .kernel').length") == 0
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(26), 12)
    x = rng.normal(size=(len(y), 2)) + rng.normal(size=(26, 2))[y] * 4
    model = SharedKernelClassifier.prbf(60, random_state=0).fit(x, y)
    many = write_html(summarize(model, x, y), tmp_path / "many.html")
    browser.open(many)
    assert browser.trouble == []
    assert (
        browser.run(f"{ROOT}.querySelectorAll('.kernel').length") == 0
    )  # sixty at once hide the rows
    assert n_points(browser, ".other") > 200
    fire(browser, ".none", event="click")
    assert n_points(browser) == 0
    browser.run(
        f"[...{ROOT}.querySelectorAll('.classes input')].slice(19).forEach((box) => box.click())"
    )
    assert n_points(browser) == 7 * 12
    assert n_points(browser, ".other") == 0
    fire(browser, ".all", event="click")
    assert n_points(browser) == len(y)


def test_labels_are_as_large_on_a_phone_as_elsewhere(browser, page):
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    browser.open(page)
    height = f"{ROOT}.querySelector('.axis').getBoundingClientRect().height"
    assert browser.run(height) > 10
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_keys_and_names_for_those_who_do_not_see_or_point(browser, page):
    browser.open(page)
    key = "new KeyboardEvent('keydown', {key: '%s', bubbles: true})"
    browser.run(f"{ROOT}.querySelector('.plane').dispatchEvent({key % 'ArrowRight'})")
    assert text(browser, ".told").startswith("Row 0 (id 0)")
    browser.run(f"{ROOT}.querySelector('.plane').dispatchEvent({key % 'ArrowLeft'})")
    assert text(browser, ".told").startswith("Row 199 ")
    browser.run(f"{ROOT}.querySelector('.kernel').dispatchEvent({key % 'Enter'})")
    assert browser.run(f"{ROOT}.querySelector('.kernel').getAttribute('aria-pressed')") == "true"
    names = browser.run(
        f"[...{ROOT}.querySelectorAll('.kernel')].map(e => e.getAttribute('aria-label'))"
    )
    assert all(name.startswith("Kernel ") and "mostly" in name for name in names)
    assert browser.run(f"{ROOT}.querySelectorAll('[role=status]').length") == 2
    assert browser.run(
        f"[...{ROOT}.querySelectorAll('select, input')].every(e => e.closest('label'))"
    )


def test_hostile_names_are_text_and_two_models_stand_side_by_side(browser, case, tmp_path):
    explorer = case[3].explorer
    path = tmp_path / "both.html"
    path.write_text(
        render_explorer("a <script>", ["one & two"], [("first", explorer), ("second", explorer)]),
        encoding="utf-8",
    )
    browser.open(path)
    assert browser.trouble == []
    assert browser.run("document.querySelectorAll('.explorer').length") == 2
    assert browser.run("document.querySelectorAll('.explorer b').length") == 0
    assert "<b>red</b>" in browser.run("document.querySelector('.classes').textContent")
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.send("Emulation.clearDeviceMetricsOverride")
