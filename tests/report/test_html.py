"""The page as text: what is escaped, what is cut, what the policy says, and how the file is written."""

import base64
import hashlib
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from kernelpool import ParzenClassifier, RejectClassifier, SharedKernelClassifier
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
    for kwargs in (
        "and 9,970 more columns",
        "and 180 more classes.",
        "and 180 more classes, of better recall",
        "and 160 more kernels",
        "and 25 more.",  # constant columns
        "and 54 more.",  # repeated: 34 of the constant ones and 30
        "more pairs of classes",
        "and 9,995 more</small>",
    ):
        assert kwargs in page, kwargs
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


# -- classifiers that refuse --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reject_classifier(two_clouds):
    x, y, x_test, y_test = two_clouds
    x_test, y_test = np.concatenate([x_test, [[500.0, 500.0]] * 5]), np.concatenate([y_test, [0] * 5])
    model = RejectClassifier(
        SharedKernelClassifier(4, covariance_type="diag", random_state=0), ambiguity=0.2, novelty=0.05
    ).fit(x, y)
    return model, (x, y, x_test, y_test)


def test_the_page_says_what_is_refused_and_how_wrong_the_rest_is(reject_classifier):
    model, rows = reject_classifier
    decision, y = model.decide(rows[2]), rows[3]
    summary = summarize(model, *rows)
    page = Page(render_html(summary))
    text = " ".join("".join(page.text).split()).replace("\N{NO-BREAK SPACE}", " ")
    n_ambiguous, n_novel, n = (decision == 1).sum(), (decision == 2).sum(), (decision == 0).sum()
    threshold = html.number(model.novelty_threshold_)
    told = f"called {n_ambiguous} ambiguous (a probability below 0.8) and {n_novel} novel (log p(x) below {threshold})."
    assert told in text
    wrong = np.mean(model.predict(rows[2])[decision == 0] != y[decision == 0])
    assert f"Of the {n} that it accepted ({100 * n / 205:.1f} %), {100 * wrong:.2f} % were wrong" in text
    assert f"calls a row novel where its log p(x) is below {threshold}:" in text
    assert f"{n_novel} of the held out rows ({100 * n_novel / 205:.2f} %)." in text
    cells = " ".join(" ".join(page.text).split()).replace("\N{NO-BREAK SPACE}", " ")
    buys = cells[cells.index("What rejecting buys") : cells.index("Which classes")]
    assert buys.count("in use") == 1
    assert f"{100 * n / 205:.1f} % 0.8 {100 * wrong:.2f} %" in buys
    shares = [float(share) for share in re.findall("(?:interval|\N{EN DASH} [0-9.]+ %(?: in use)?) ([0-9.]+) %", buys)]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == len(summary.evaluation.choices) + 1


def test_thresholds_in_use_are_marked_in_the_charts(reject_classifier):
    model, rows = reject_classifier
    summary = summarize(model, *rows)
    chart = charts.reject_chart(summary.evaluation)
    decision = model.decide(rows[2])
    coverage = np.mean(decision == 0)
    wrong = np.mean(model.predict(rows[2])[decision == 0] != rows[3][decision == 0])
    x = chart.x(coverage)
    assert [line for line in chart.lines if line[1] == "own"] == [(f"{x},{chart.bottom} {x},{chart.top}", "own")]
    assert [dot[:2] for dot in chart.dots if dot[3] == "own"] == [(x, chart.y(wrong))]
    accepted, of_them = (label[3] for label in chart.labels)
    assert accepted == f"in use: {100 * coverage:.1f} % accepted,"
    assert of_them == f"{round(100 * wrong, 2):g} % of them wrong"
    chart = charts.novelty_chart(summary.outliers)
    x = chart.x(model.novelty_threshold_)
    assert chart.left < x < chart.right
    assert [line[0].split(",")[0] for line in chart.lines if line[1] == "own"] == [str(x)]
    assert [label[3] for label in chart.labels] == [f"novel below {html.number(model.novelty_threshold_)}"]
    page = render_html(summary)
    assert "The dot is what the classifier itself accepts." in page
    assert "Solid: what the classifier calls novel below." in page


def test_the_point_in_use_stands_among_the_others_by_its_coverage(reject_classifier):
    model, rows = reject_classifier
    found = summarize(model, *rows).evaluation
    for coverage in (0.99, 0.85, 0.1):
        points = charts.bought(replace(found, refused=replace(found.refused, coverage=coverage)))
        shares = [point.coverage for point, _ in points]
        assert shares == sorted(shares, reverse=True)
        assert [point.coverage for point, own in points if own] == [coverage]
        assert [point.threshold for point, own in points if own] == [0.8]


def test_a_label_stands_on_the_side_that_has_room():
    chart = charts.Chart("", "", "", (0.0, 1.0), (0.0, 1.0))
    chart.upright(0.1, "own", "a")
    chart.upright(0.9, "own", "b", "c")
    assert [(label[2], label[3]) for label in chart.labels] == [("start", "a"), ("end", "b"), ("end", "c")]
    (left, *_), (right, upper, *_), (_, lower, *_) = chart.labels
    assert left > chart.x(0.1)
    assert right < chart.x(0.9)
    assert chart.top < upper < lower


def test_thresholds_that_are_not_there_are_not_marked(reject_classifier, fitted):
    _, rows = reject_classifier
    unset = RejectClassifier(SharedKernelClassifier(4, random_state=0)).fit(*rows[:2])
    for model in (fitted, unset):
        summary = summarize(model, *rows)
        assert charts.reject_chart(summary.evaluation).labels == charts.novelty_chart(summary.outliers).labels == []
        page = render_html(summary)
        assert "The dot is" not in page
        assert "Solid:" not in page
        assert "in use" not in page
        assert "calls a row novel" not in page


@pytest.mark.parametrize(
    ("threshold", "text", "at"), [(-1e5, "← novel below \N{MINUS SIGN}100000", "left"), (1e3, "novel below 1000 →", "right")]
)
def test_a_threshold_far_from_the_rows_is_marked_at_the_edge(reject_classifier, threshold, text, at):
    model, rows = reject_classifier
    outliers = replace(summarize(model, *rows).outliers, novelty=threshold)
    chart = charts.novelty_chart(outliers)
    assert chart.x_range == charts.novelty_chart(replace(outliers, novelty=None)).x_range
    assert chart.labels[0][3] == text
    own = next(line for line, kind in chart.lines if kind == "own")
    assert float(own.split(",")[0]) == pytest.approx(getattr(chart, at), abs=0.01)


def test_rows_of_no_density_alone_are_novel(two_clouds):
    x, y, x_test, y_test = two_clouds
    far = np.concatenate([x_test, [[500.0, 500.0]]])
    lowest = float(np.finfo(float).min)
    model = RejectClassifier(ParzenClassifier(radius=1.5), novelty=lowest, novelty_rule="threshold").fit(x, y)
    summary = summarize(model, x, y, far, np.append(y_test, 0))
    assert charts.novelty_chart(summary.outliers).labels == []
    page = render_html(summary)
    assert f"{(model.decide(far) == 2).sum()} novel (no density at all)" in page
    assert "calls a row novel where it has no density at all" in page


def test_the_name_of_an_axis_has_room_beside_its_ticks():
    for high in (1.0, 0.00123, 123456.0):
        chart = charts.Chart("", "", "", (0.0, 1.0), (0.0, high)).axes()
        longest = max(len(text) for _, text in chart.y_ticks)
        assert chart.left - 7 - 7 * longest >= 13 + 9  # 7 a digit; the name stands at 13 and is 12 high


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
