"""The report in a real browser."""

import json

import numpy as np
import pytest

from kernelpool import SharedKernelClassifier
from kernelpool.app.report import write_report

from .chromium import BINARY, REASON, Chromium

pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
pytestmark = pytest.mark.skipif(BINARY is None, reason=REASON)


@pytest.fixture(scope="module")
def browser():
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def customers_path(customers, tmp_path_factory):
    model, X, y = customers
    path = tmp_path_factory.mktemp("page") / "report.html"
    command = "kernelpool fit customers.csv " + " ".join(
        f"--set a-setting-{i}=5" for i in range(12)
    )
    rows = {"X_test": X[300:], "y_test": y[300:], "command": command}
    return write_report(model, X[:300], y[:300], path, **rows)


KERNELS = "document.querySelector('#kernel-table')"


def column(browser, i):
    cells = f"[...{KERNELS}.tBodies[0].rows].map(r => r.cells[{i}])"
    return browser.run(f"{cells}.map(c => c.dataset.sort ?? c.textContent.trim())")


def click(browser, i):
    browser.run(f"{KERNELS}.tHead.rows[0].cells[{i}].querySelector('button').click()")


def choose(browser, selector, value):
    control = f"document.querySelector('.explorer {selector}')"
    browser.run(
        f"{control}.value = {json.dumps(value)}; {control}.dispatchEvent(new Event('input'))"
    )


def shown(browser, selector):
    return browser.run(f"document.querySelector('.explorer {selector}').textContent")


def test_a_page_of_hostile_names_loads_nothing_runs_nothing_and_sorts(browser, hostile_path):
    browser.open(hostile_path)
    requests = [url for url in browser.requests if not url.startswith("data:")]
    assert requests == [hostile_path.resolve().as_uri()]
    assert browser.trouble == []
    events = "['mouseover', 'focus', 'click', 'error', 'load']"
    every = f"{events}.forEach(n => e.dispatchEvent(new Event(n)))"
    browser.run(f"document.querySelectorAll('*').forEach(e => {every})")
    assert browser.run("typeof window.pwned") == "undefined"
    browser.open(hostile_path)
    loaded = browser.run("[...document.images].map(i => i.complete && i.naturalWidth > 100)")
    assert loaded == [True] * 4
    share = [float(value) for value in column(browser, 1)]
    assert share == sorted(share, reverse=True)
    click(browser, 1)
    assert [float(value) for value in column(browser, 1)] == sorted(share)
    click(browser, 0)
    assert column(browser, 0) == [str(j) for j in range(9, -1, -1)]


def test_the_explorer_counts_rows_that_are_accepted_drawn_and_wrong(
    browser, customers_path, customers
):
    model, X, y = customers
    browser.open(customers_path)
    assert browser.trouble == []
    probability = model.predict_proba(X[300:])
    wrong = model.predict(X[300:]) != y[300:]
    ambiguity = 1 - probability.max(axis=1)
    drawn = X[300:][["age", "spend"]].notna().all(axis=1).to_numpy()
    assert browser.run("document.querySelectorAll('.point').length") == 100
    assert browser.run("document.querySelectorAll('.point.absent').length") == (~drawn).sum() > 0
    choose(browser, ".level", 0.2)
    kept = ambiguity <= 0.2
    said = shown(browser, ".counted")
    assert said.startswith(f"{kept.sum()} of 100 rows accepted")
    assert f"{100 * wrong[kept].mean():.1f} % of them wrong" in said
    assert f"in {100 - drawn.sum()} a value is missing" in said
    choose(browser, ".up", "0")  # age against age
    browser.run(
        "document.querySelector('.plane').dispatchEvent(new KeyboardEvent('keydown', {key: "
        "'ArrowRight'}))"
    )
    row = X.iloc[300]
    assert "age missing" in shown(browser, ".detail")
    for name in ("plan", "region"):
        cell = row[name] if row[name] == row[name] else "missing"
        assert f"{name} {cell}" in shown(browser, ".detail")
    browser.run("document.querySelector('.kernel').dispatchEvent(new MouseEvent('click'))")
    assert "of all rows" in shown(browser, ".profile")


def test_the_explorer_shows_most_rows_where_a_few_lie_far_out(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = rng.normal(size=(200, 2)) + y[:, None]
    X[:3, 0] = [900.0, 1000.0, -800.0]
    model = SharedKernelClassifier(2, training="em", random_state=0, tol=0.02).fit(X[3:], y[3:])
    browser.open(write_report(model, None, None, tmp_path / "page.html", X_test=X, y_test=y))
    assert browser.trouble == []
    assert shown(browser, ".counted").endswith("; 3 lie beyond the edge, where they are drawn")
    across = "[...document.querySelectorAll('.point')].map(p => +p.getAttribute('cx'))"
    places = np.array(browser.run(across))
    left, right = places.min(), places.max()
    np.testing.assert_array_equal(places[:3], [right, right, left])
    assert np.ptp(places[3:]) > 0.5 * (right - left)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["hostile_path", "customers_path"])
def test_the_page_fits_its_window_in_light_and_dark(browser, kind, width, dark, request):
    browser.open(request.getfixturevalue(kind))
    browser.resize(width, dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    dim = browser.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dim == dark
    assert overflowing(browser, "td, th, dd, dt") == []


def overflowing(browser, kinds):
    """Elements with more in them than they have room for."""
    full = "e => e.clientWidth && e.scrollWidth > e.clientWidth + 1"
    found = f"[...document.querySelectorAll('{kinds}')].filter({full})"
    return browser.run(f"{found}.map(e => e.outerHTML.slice(0, 80))")
