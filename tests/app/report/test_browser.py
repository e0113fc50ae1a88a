"""The report in a real browser: nothing goes wrong, nothing is asked of the network, nothing hostile runs, tables sort."""

import base64
import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report import summarize, write_html

from .chromium import BINARY, REASON, Chromium

pytestmark = pytest.mark.skipif(BINARY is None, reason=REASON)


@pytest.fixture(scope="module")
def browser():
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(hostile_summary, tmp_path_factory):
    return write_html(hostile_summary, tmp_path_factory.mktemp("page") / "report <b>&'.html")


KERNELS = "document.querySelector('#kernel-table')"


def column(browser, i, table=KERNELS):
    cells = f"[...{table}.tBodies[0].rows].map(r => r.cells[{i}])"
    return browser.run(f"{cells}.map(c => c.dataset.sort ?? c.textContent.trim())")


def click(browser, i, table=KERNELS):
    browser.run(f"{table}.tHead.rows[0].cells[{i}].querySelector('button').click()")


def test_the_page_loads_nothing_but_itself_and_is_silent(browser, page):
    browser.open(page)
    assert [url for url in browser.requests if not url.startswith("data:")] == [
        page.resolve().as_uri()
    ]
    assert browser.trouble == []


def test_hostile_names_are_text_and_do_not_run(browser, page):
    browser.open(page)
    everything = "document.querySelectorAll('*').forEach(e => { for (const n of ['mouseover', 'focus', 'click', 'error', 'load'])"
    browser.run(everything + " e.dispatchEvent(new Event(n)) })")
    assert browser.run("typeof window.pwned") == "undefined"
    assert browser.run("document.scripts.length") == 1
    assert (
        browser.run(
            "document.querySelectorAll('img, image, iframe, object, embed, base, form, foreignObject, svg[onload]').length"
        )
        == 0
    )
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on')).length"
    assert browser.run(handlers) == 0
    assert "<script>window.pwned=1</script>" in browser.run("document.body.textContent")
    assert "{{7*7}}" in browser.run("document.body.textContent")


def test_the_policy_stops_scripts_that_are_not_the_pages_own(browser, page):
    browser.open(page)
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s); 0"
    )
    assert browser.run("typeof window.pwned") == "undefined"
    assert any("Content Security Policy" in str(event) for event in browser.trouble)


def test_kernels_sort_by_number_and_by_name_and_back(browser, page):
    browser.open(page)
    share = [float(value) for value in column(browser, 1)]
    assert share == sorted(share, reverse=True)  # without a click
    assert len(set(share)) > 5
    click(browser, 1)
    assert [float(value) for value in column(browser, 1)] == sorted(share)
    click(browser, 1)
    assert [float(value) for value in column(browser, 1)] == sorted(share, reverse=True)
    click(browser, 0)
    assert [int(value) for value in column(browser, 0)] == sorted(range(len(share)), reverse=True)
    head = f"{KERNELS}.tHead.rows[0]"
    assert (
        browser.run(f"{head}.cells[0].ariaSort + ' ' + {head}.cells[1].getAttribute('aria-sort')")
        == "descending null"
    )
    click(browser, 3)
    names = column(browser, 3)
    assert (
        browser.run(f"{names!r}.sort((a, b) => a.localeCompare(b, undefined, {{numeric: true}}))")
        == names
    )
    assert len({tuple(sorted(names))}) == 1


def test_numbers_sort_as_numbers(browser, page):
    browser.open(page)
    columns = "document.querySelectorAll('#data table')[1]"
    lowest = [float(value) for value in column(browser, 1, columns)]
    assert max(lowest) < 0  # as text, -3 stands after -2
    click(browser, 1, columns)
    assert [float(value) for value in column(browser, 1, columns)] == sorted(lowest, reverse=True)


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window_in_light_and_dark(browser, page, width, dark):
    browser.open(page)
    browser.resize(width, dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    dim = browser.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dim == dark


A4 = {"paperWidth": 8.27, "paperHeight": 11.69}
INSIDE = 717
"""Pixels of an A4 page between Chromium's margins, 0.4 inches each."""


@pytest.fixture(scope="module")
def careful_page(tmp_path_factory):
    """A classifier that refuses, of ten classes one of which has a long name."""
    digits = load_digits()
    names = np.array(
        [
            "nought",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "a very long name of a class",
        ]
    )
    y = names[digits.target]
    inner = make_pipeline(
        StandardScaler(), SharedKernelClassifier.prbf(20, max_iter=20, tol=1e-2, random_state=0)
    )
    model = RejectClassifier(inner, ambiguity=0.1, novelty=-150.0, novelty_rule="threshold").fit(
        digits.data[:900], y[:900]
    )
    command = "kernelpool fit digits.csv " + " ".join(f"--set a-setting-{i}=5" for i in range(12))
    summary = summarize(
        model, digits.data[:900], y[:900], digits.data[900:1300], y[900:1300], command=command
    )
    return write_html(summary, tmp_path_factory.mktemp("careful") / "report.html")


def overflowing(browser, kinds):
    """Elements with more in them than they have room for."""
    full = f"[...document.querySelectorAll('{kinds}')].filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)"
    return browser.run(f"{full}.map(e => e.outerHTML.slice(0, 80))")


@pytest.mark.parametrize("kind", ["page", "careful_page"])
def test_nothing_is_cut_off_on_paper(browser, kind, request):
    browser.open(request.getfixturevalue(kind))
    browser.resize(INSIDE)
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.run("document.documentElement.scrollWidth") <= INSIDE
    beyond = f"[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > {INSIDE + 0.5})"
    assert browser.run(f"{beyond}.map(e => e.outerHTML.slice(0, 80))") == []
    assert overflowing(browser, "td, th, dd, dt, p, li, pre") == []
    # a button is not drawn again where the head of a table is repeated
    assert browser.run(
        "[...document.querySelectorAll('th button')].every(b => getComputedStyle(b).display == 'contents')"
    )
    size = "parseFloat(getComputedStyle(document.querySelector('{}')).fontSize)"
    sizes = [browser.run(size.format(kind)) for kind in ("h1", "h2", "body", "figcaption", "table")]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] == pytest.approx(10 * 96 / 72, abs=0.01)  # points
    pdf = base64.b64decode(browser.send("Page.printToPDF", printBackground=True, **A4)["data"])
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    browser.send("Emulation.setEmulatedMedia", media="")


def test_cells_keep_what_is_in_them_on_the_screen(browser, careful_page):
    browser.open(careful_page)
    for width in (390, 700, 1100):
        browser.resize(width)
        assert overflowing(browser, "td, th, dd, dt") == [], width


def test_commands_break_between_words(browser, careful_page):
    browser.open(careful_page)
    browser.resize(700)
    kwargs = "[...document.querySelectorAll('#rerun .word')]"
    assert browser.run(f"{kwargs}.map(w => w.textContent).join(' ')").startswith(
        "kernelpool fit digits.csv --set a-setting-0=5 --set"
    )
    assert browser.run(f"new Set({kwargs}.map(w => w.getBoundingClientRect().top)).size") > 1
    assert browser.run(f"new Set({kwargs}.map(w => w.getBoundingClientRect().height)).size") == 1


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("kind", ["page", "careful_page"])
def test_everything_lies_inside_its_chart(browser, kind, width, request):
    """In the browser's own font, which matplotlib does not know."""
    browser.open(request.getfixturevalue(kind))
    browser.resize(width)
    assert browser.run("document.querySelectorAll('.chart > svg text').length") > 40
    outside = "[...document.querySelectorAll('.chart > svg text')].filter(e => { const a = e.getBoundingClientRect(),"
    outside += " b = e.ownerSVGElement.getBoundingClientRect();"
    outside += " return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1 })"
    assert browser.run(f"{outside}.map(e => e.textContent)") == []


def test_charts_have_names_and_colors_of_the_page(browser, careful_page):
    browser.open(careful_page)
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    names = [
        node["name"]["value"]
        for node in tree
        if node.get("role", {}).get("value") == "image" and node.get("name")
    ]
    kinds = ["Calibration", "Reject curve", "Kernels over rows", "Densities", "Training"]
    assert [name.split(":")[0] for name in names if name] == kinds
    ink = {}
    for dark in (False, True):
        browser.resize(1100, dark)
        labels = (
            "[...document.querySelectorAll('.chart > svg text')].map(e => getComputedStyle(e).fill)"
        )
        body = browser.run("getComputedStyle(document.body).backgroundColor")
        ink[dark] = set(browser.run(labels))
        assert body not in ink[dark]
    assert ink[False].isdisjoint(ink[True])


def test_without_its_script_the_page_is_whole(browser, page, tmp_path):
    bare = tmp_path / "bare.html"
    text = page.read_text("utf-8")
    bare.write_text(text[: text.rindex("<script>")] + text[text.rindex("</script>") + 9 :], "utf-8")
    browser.open(bare)
    assert browser.run("document.scripts.length") == 0
    assert browser.run("document.querySelectorAll('th button').length") == 0
    share = [float(value) for value in column(browser, 1)]
    assert share == sorted(share, reverse=True)
    assert browser.trouble == []
