"""The picture that can be touched, in a real browser: axes, rows, kernels, classes, the threshold, keys, names."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier, questions
from kernelpool.report import summarize, write_html
from kernelpool.report.html import render_explorer

from .chromium import BINARY, REASON, Chromium


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    x = rng.normal(size=(600, 3)) * [1, 10, 0.1] + np.array([[0, 0, 0], [2, 20, 0], [0, 30, 0.4]])[y] + [100, 0, 5]
    labels = np.array(["<b>red</b>", "green", "blue"])[y]
    model = make_pipeline(StandardScaler(), SharedKernelClassifier(6, covariance_type="full", random_state=0))
    model = RejectClassifier(model, ambiguity=0.3).fit(x[:400], labels[:400])
    names = [f"id {i}" for i in range(200)]
    return model, x, labels, summarize(model, x[:400], labels[:400], x[400:], labels[400:], test_row_names=names)


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
    np.testing.assert_allclose(first.mean, inner.means_[0] * scaler.scale_ + scaler.mean_, rtol=1e-4)
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
    assert summarize(model, x[:400], labels[:400]).importance is None  # the rows of the fit cannot judge


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
    assert text(browser, ".told").startswith(f"Row {first} (id {first}): named {explorer.labels[explorer.named[first]]}")
    browser.run(f"{ROOT}.querySelectorAll('.kernel')[2].dispatchEvent(new Event('click'))")
    assert text(browser, ".profile h3").startswith("Kernel 2, ")
    members = sum(nearest == 2 for nearest in explorer.nearest)
    assert f"{members} of these rows" in text(browser, ".profile")
    assert browser.run(f"{ROOT}.querySelectorAll('.kernel.chosen').length") == 1
    assert browser.trouble == []


def test_keys_and_names_for_those_who_do_not_see_or_point(browser, page):
    browser.open(page)
    key = "new KeyboardEvent('keydown', {key: '%s', bubbles: true})"
    browser.run(f"{ROOT}.querySelector('.plane').dispatchEvent({key % 'ArrowRight'})")
    assert text(browser, ".told").startswith("Row 0 (id 0)")
    browser.run(f"{ROOT}.querySelector('.plane').dispatchEvent({key % 'ArrowLeft'})")
    assert text(browser, ".told").startswith("Row 199 ")
    browser.run(f"{ROOT}.querySelector('.kernel').dispatchEvent({key % 'Enter'})")
    assert browser.run(f"{ROOT}.querySelector('.kernel').getAttribute('aria-pressed')") == "true"
    names = browser.run(f"[...{ROOT}.querySelectorAll('.kernel')].map(e => e.getAttribute('aria-label'))")
    assert all(name.startswith("Kernel ") and "mostly" in name for name in names)
    assert browser.run(f"{ROOT}.querySelectorAll('[role=status]').length") == 2
    assert browser.run(f"[...{ROOT}.querySelectorAll('select, input')].every(e => e.closest('label'))")


def test_hostile_names_are_text_and_two_models_stand_side_by_side(browser, case, tmp_path):
    explorer = case[3].explorer
    path = tmp_path / "both.html"
    path.write_text(render_explorer("a <script>", ["one & two"], [("first", explorer), ("second", explorer)]), encoding="utf-8")
    browser.open(path)
    assert browser.trouble == []
    assert browser.run("document.querySelectorAll('.explorer').length") == 2
    assert browser.run("document.querySelectorAll('.explorer b').length") == 0
    assert "<b>red</b>" in browser.run("document.querySelector('.classes').textContent")
    browser.send("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.send("Emulation.clearDeviceMetricsOverride")
