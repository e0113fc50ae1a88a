"""The report in a real browser: nothing goes wrong, nothing is asked of the network, nothing hostile runs, tables sort."""

import pytest

from kernelpool.report import write_html

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
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.resolve().as_uri()]
    assert browser.trouble == []


def test_hostile_names_are_text_and_do_not_run(browser, page):
    browser.open(page)
    everything = (
        "document.querySelectorAll('*').forEach(e => { for (const n of ['mouseover', 'focus', 'click', 'error', 'load'])"
    )
    browser.run(everything + " e.dispatchEvent(new Event(n)) })")
    assert browser.run("typeof window.pwned") == "undefined"
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.querySelectorAll('img, iframe, object, embed, base, form, svg[onload]').length") == 0
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on')).length"
    assert browser.run(handlers) == 0
    assert "<script>window.pwned=1</script>" in browser.run("document.body.textContent")
    assert "{{7*7}}" in browser.run("document.body.textContent")


def test_the_policy_stops_scripts_that_are_not_the_pages_own(browser, page):
    browser.open(page)
    browser.run("const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s); 0")
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
    assert browser.run(f"{head}.cells[0].ariaSort + ' ' + {head}.cells[1].getAttribute('aria-sort')") == "descending null"
    click(browser, 3)
    names = column(browser, 3)
    assert browser.run(f"{names!r}.sort((a, b) => a.localeCompare(b, undefined, {{numeric: true}}))") == names
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
