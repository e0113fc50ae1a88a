"""The page as text: what is escaped, what is cut, what the policy says, and how the file is written."""

import base64
import hashlib
import os
import stat
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.report import charts, html, render_html, summarize, write_html

from .conftest import HOSTILE


class Page(HTMLParser):
    """Elements and attributes of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def hostile_page(hostile_summary):
    return render_html(hostile_summary)


def test_names_from_the_data_stay_text(hostile_page):
    page = Page(hostile_page)
    assert page.tags.count("script") == page.tags.count("style") == page.tags.count("title") == 1
    assert not {"img", "iframe", "object", "embed", "base", "form", "input"} & set(page.tags)
    assert page.tags.count("link") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("autofocus", "style", "src", "action")]
    links = {value for name, value in page.attributes if name in ("href", "xlink:href")}
    assert {value for value in links if not value.startswith("#")} == {"data:,"}
    assert page.open == []
    text = "".join(page.text)
    for name in (HOSTILE[0], HOSTILE[1], "{{7*7}}{% raw %}", HOSTILE[3], HOSTILE[4], HOSTILE[5], HOSTILE[6]):
        assert name in text
    assert "\x00" not in hostile_page
    assert "\u202e" not in hostile_page


def test_the_policy_allows_the_pages_own_style_and_script_by_hash_and_nothing_else(hostile_page):
    attributes = Page(hostile_page).attributes
    content = next(value for name, value in attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        inside = hostile_page.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in content
    assert ("charset", "utf-8") in attributes
    assert "http://" not in hostile_page.replace("http://example.invalid", "")
    assert "https://" not in hostile_page


def test_long_tables_are_cut_and_say_so():
    rng = np.random.default_rng(0)
    n_classes, d, n_kernels = 200, 10_000, 200
    classes = np.array([f"class {k:03d}" for k in range(n_classes)])
    means = rng.normal(size=(n_kernels, d))
    model = SharedKernelClassifier.from_parameters(
        means, np.ones(n_kernels), np.eye(n_classes), np.full(n_classes, 1 / n_classes), classes, "spherical"
    )
    y = np.arange(n_classes)
    x = means[y] + rng.normal(size=(n_classes, d))
    x[:, 5:40] = 1.0
    x[:, 50:80] = x[:, [49]]
    wrong = classes[np.where(rng.random(n_classes) < 0.3, (y + 1) % n_classes, y)]
    summary = summarize(model, x, classes[y], x, wrong)
    page = render_html(summary)
    assert len(page) < 400_000
    for words in (
        "and 9,970 more columns",
        "and 180 more classes.",
        "and 180 more classes, of better recall",
        "and 160 more kernels",
        "and 25 more.",  # constant columns
        "and 54 more.",  # repeated: 34 of the constant ones and 30
        "more pairs of classes",
        "and 9,995 more</small>",
    ):
        assert words in page, words
    assert len(summary.kernels.rows[0].traits) == 5
    assert summary.map.axes[0] in {f"x{i}" for i in range(d)}  # two features, where there are too many for directions


def test_numbers_for_readers():
    assert html.number(-1234.6) == "\N{MINUS SIGN}1,235"
    assert (html.number(99.7, 2), html.number(123_456.0), html.number(0.5)) == ("100", "123,456", "0.5")
    assert html.number(0.000123456) == "0.0001235"
    assert html.number(None) == html.number(float("nan")) == "\N{EN DASH}"
    assert html.number(-np.inf) == "\N{MINUS SIGN}∞"
    assert html.number(3e12) == "3.000e+12"
    assert html.beside(0.0023, 0.81) == "0.00"
    assert html.beside(12.3456, 0.04) == "12.346"
    assert html.beside(-0.001, 0.5) == "0.00"
    assert html.beside(48_213.7, 2500.0) == "48,200"
    assert html.percent(0.12345) == "12.3\N{NO-BREAK SPACE}%"
    assert (html.seconds(0.25), html.seconds(12.34), html.seconds(600)) == ("250 ms", "12.3 s", "10.0 min")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.7, 12), (1e-9, 3e-9), (1e15, 1e15 + 40), (-0.004, -0.001)])
def test_ticks_are_round_and_inside(low, high):
    ticks = charts.rounds(low, high)
    assert 3 <= len(ticks) <= 11
    assert min(ticks) >= low - 1e-9 * abs(low)
    assert max(ticks) <= high + 1e-9 * abs(high)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0], rtol=1e-3)
    lead = steps[0] / 10 ** np.floor(np.log10(steps[0]) + 1e-6)
    assert np.isclose([1, 2, 2.5, 5, 10], lead, rtol=1e-3).any()


def test_ellipses_are_drawn_as_they_stretch():
    """Points on the ellipse in the units of the data must lie on the ellipse in the picture."""
    chart = charts.Chart("", "", "", (-2.0, 6.0), (10.0, 40.0))
    x, y, long, short, angle = 1.0, 22.0, 3.0, 0.5, 70.0
    cx, cy, rx, ry, turned = charts._drawn(chart, x, y, long, short, angle)
    t = np.linspace(0, 2 * np.pi, 50)
    a, b = np.radians(angle), np.radians(turned)
    px = x + long * np.cos(t) * np.cos(a) - short * np.sin(t) * np.sin(a)
    py = y + long * np.cos(t) * np.sin(a) + short * np.sin(t) * np.cos(a)
    dx = np.array([chart.x(v) for v in px]) - cx
    dy = np.array([chart.y(v) for v in py]) - cy
    along, across = dx * np.cos(b) + dy * np.sin(b), -dx * np.sin(b) + dy * np.cos(b)
    assert np.allclose((along / rx) ** 2 + (across / ry) ** 2, 1, atol=0.02)


# -- files --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def summary(fitted, two_clouds):
    return summarize(fitted, *two_clouds)


def test_a_file_is_replaced_whole_or_not_at_all(summary, tmp_path, monkeypatch):
    path = tmp_path / "a report; $(x) 'é.html"
    assert write_html(summary, path) == path
    first = path.read_text("utf-8")
    assert first.startswith("<!doctype html>")
    assert first.rstrip().endswith("</html>")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_html(replace(summary, title="another"), str(path))
    assert path.read_text("utf-8") == first
    assert os.listdir(tmp_path) == [path.name]


def test_places_that_cannot_be_written_to_are_named(summary, tmp_path):
    with pytest.raises(KernelpoolError, match=r"There is no folder .*nowhere"):
        write_html(summary, tmp_path / "nowhere" / "report.html")
    with pytest.raises(KernelpoolError, match="is a folder"):
        write_html(summary, tmp_path)


def test_the_templates_are_in_the_package():
    names = {entry.name for entry in (files("kernelpool.report") / "templates").iterdir()}
    assert {"report.html", "chart.html", "report.css", "report.js"} <= names
