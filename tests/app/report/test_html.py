"""The page as text: what is escaped, what is cut, what the policy says, and how the file is written."""

import base64
import hashlib
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
import pytest

from kernelpool import ParzenClassifier, RejectClassifier, SharedKernelClassifier
from kernelpool.app.report import charts, html, render_html, summarize, write_html
from kernelpool.app.report.records import Bin
from kernelpool.errors import KernelpoolError
from kernelpool.text import text_of

from .conftest import HOSTILE

mpl = pytest.importorskip("matplotlib", reason="reports need matplotlib: pip install '.[report]'")
from matplotlib.figure import Figure  # noqa: E402


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
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert page.tags.count("link") == 1
    assert page.tags.count("input") == 3 + len(
        HOSTILE
    )  # a threshold, regions, kernels, and a box for each class
    assert not [
        name
        for name, _ in page.attributes
        if name.startswith("on") or name in ("autofocus", "style", "src", "action")
    ]
    links = {value for name, value in page.attributes if name in ("href", "xlink:href")}
    assert {value for value in links if not value.startswith("#")} == {"data:,"}
    assert page.open == []
    text = "".join(page.text)
    for name in (
        HOSTILE[0],
        HOSTILE[1],
        "{{7*7}}{% raw %}",
        HOSTILE[3],
        HOSTILE[4],
        HOSTILE[5],
        HOSTILE[6],
    ):
        assert name in text
    assert "\x00" not in hostile_page
    assert "\u202e" not in hostile_page


def test_the_policy_allows_the_pages_own_style_and_script_by_hash_and_nothing_else(hostile_page):
    attributes = Page(hostile_page).attributes
    content = next(
        value for name, value in attributes if name == "content" and "default-src" in value
    )
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
    n_classes, d, n_kernels = 200, 1_000, 200
    classes = np.array([f"class {k:03d}" for k in range(n_classes)])
    means = rng.normal(size=(n_kernels, d))
    model = SharedKernelClassifier.from_parameters(
        means,
        np.ones(n_kernels),
        np.eye(n_classes),
        np.full(n_classes, 1 / n_classes),
        classes,
        "spherical",
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
        "and 970 more columns",
        "and 180 more classes.",
        "and 180 more classes, of better recall",
        "and 160 more kernels",
        "and 25 more.",  # constant columns
        "and 54 more.",  # repeated: 34 of the constant ones and 30
        "more pairs of classes",
        "and 995 more</small>",
    ):
        assert kwargs in page, kwargs
    assert len(summary.kernels.rows[0].traits) == 5
    assert summary.map.axes[0] in {
        f"x{i}" for i in range(d)
    }  # two features, where there are too many for directions


def test_numbers_for_readers():
    assert html.number(-1234.6) == "\N{MINUS SIGN}1,235"
    assert (html.number(99.7, 2), html.number(123_456.0), html.number(0.5)) == (
        "100",
        "123,456",
        "0.5",
    )
    assert html.number(0.000123456) == "0.0001235"
    assert html.number(None) == html.number(float("nan")) == "\N{EN DASH}"
    assert html.number(-np.inf) == "\N{MINUS SIGN}∞"
    assert html.number(3e12) == "3.000e+12"
    assert html.beside(0.0023, 0.81) == "0.00"
    assert html.beside(12.3456, 0.04) == "12.346"
    assert html.beside(-0.001, 0.5) == "0.00"
    assert html.beside(48_213.7, 2500.0) == "48,200"
    assert html.percent(0.12345) == "12.3\N{NO-BREAK SPACE}%"
    assert (html.seconds(0.25), html.seconds(12.34), html.seconds(600)) == (
        "250 ms",
        "12.3 s",
        "10.0 min",
    )


# -- charts -------------------------------------------------------------------------------------------------------


def drawn(function, record):
    """The axes that a chart is drawn on."""
    figure = Figure(layout="constrained")
    ax = figure.add_subplot()
    function(ax, record)
    figure.canvas.draw()
    return ax


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_dots_of_the_calibration_chart_stand_where_they_belong(summary):
    """A dot below the axis was moved up to its edge: 44 % stood at 50, none at 20."""
    bins = tuple(
        Bin(low / 10, low / 10 + 0.1, low / 10 + 0.05, accuracy, 0.0, 1.0, 50)
        for low, accuracy in ((2, 0.0), (5, 0.44), (7, 0.1), (9, 1.0))
    )
    ax = drawn(charts._calibration, replace(summary.evaluation, calibration=bins))
    dots = ax.lines[1]
    np.testing.assert_allclose(
        dots.get_xydata(), [(0.25, 0.0), (0.55, 0.44), (0.75, 0.1), (0.95, 1.0)]
    )
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert left <= 0.25 < 0.95 <= right
    assert low <= 0 < 1 <= high


def test_intervals_of_the_charts_have_the_confidence_that_was_asked_for(fitted, two_clouds):
    found = summarize(fitted, *two_clouds, doubt=0.3).evaluation
    ax = drawn(charts._calibration, found)
    ends = [(segment[0][1], segment[1][1]) for segment in ax.containers[0][2][0].get_segments()]
    np.testing.assert_allclose(
        ends, [(b.accuracy_low, b.accuracy_high) for b in found.calibration], atol=1e-9
    )


def test_ellipses_of_the_map_are_those_of_the_summary(summary):
    ax = drawn(charts._map, summary.map)
    ellipses = ax.patches[1::2]  # each lies on a white one
    assert len(ellipses) == len(summary.map.ellipses) == 4
    for patch, e in zip(ellipses, summary.map.ellipses, strict=True):
        np.testing.assert_allclose(patch.center, (e.x, e.y))
        np.testing.assert_allclose(
            (patch.width, patch.height), (2 * e.long, 2 * e.short), rtol=1e-6
        )
        assert np.sin(np.radians(patch.angle - e.angle)) == pytest.approx(0, abs=1e-6)


def test_kernels_of_the_map_have_the_classes_of_the_model(fitted, summary):
    posterior = fitted.mixing_ * fitted.class_prior_
    posterior /= posterior.sum(axis=1, keepdims=True)
    order = np.argsort(-(fitted.mixing_ @ fitted.class_prior_), kind="stable")
    np.testing.assert_allclose([e.classes for e in summary.map.ellipses], posterior[order])


@pytest.mark.parametrize("name", HOSTILE)
def test_charts_hold_names_as_text(name, summary):
    """What a browser, matplotlib's mathematics or XML might take for something else."""
    shown = text_of(name)
    renamed = replace(summary.map, labels=(shown, f"$\\frac{shown}$"), axes=(shown, "$x$"))
    page = Page(charts.charts_of(replace(summary, map=renamed))["kernels"])
    assert set(page.tags) <= {
        "svg",
        "g",
        "defs",
        "clippath",
        "path",
        "rect",
        "use",
        "text",
        "title",
        "desc",
        "pattern",
    }
    assert not [
        key
        for key, _ in page.attributes
        if key.startswith("on") or key in ("style", "class", "src")
    ]
    assert {
        value
        for key, value in page.attributes
        if key == "href" and not value.startswith("#kernels-")
    } == set()
    assert {shown, f"$\\frac{shown}$", "$x$"} <= set(page.text)


def test_charts_are_named_for_those_who_cannot_see_them(summary):
    for name, drawing in charts.charts_of(summary).items():
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        title, description = root[0], root[1]
        assert (title.tag, title.get("id")) == ("title", root.get("aria-labelledby"))
        assert (description.tag, description.get("id")) == ("desc", root.get("aria-describedby"))
        assert len(title.text) > 10
        assert re.search("[0-9]", description.text), name


def test_ids_are_different_in_all_charts_and_lead_somewhere(summary):
    page = Page(render_html(summary))
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    targets = {
        value[1:] for key, value in page.attributes if key == "href" and value.startswith("#")
    }
    targets |= {
        found
        for _, value in page.attributes
        for found in re.findall(r"url\(#([^)]*)\)", value or "")
    }
    assert len(targets) > 10
    assert targets <= set(ids)


def test_charts_are_the_same_whatever_style_is_set_and_leave_it_alone(summary):
    before = charts.charts_of(summary)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True}):
        assert charts.charts_of(summary) == before
        assert mpl.rcParams["font.size"] == 30


def test_colors_follow_the_style_sheet(summary):
    """Of classes, lines and text; else a chart would not be readable in the dark."""
    found = charts.charts_of(summary)
    text = "".join(found.values())
    for name, drawing in found.items():
        mixed = (
            r"<path [^>]*>" if name == "kernels" else "no such shape"
        )  # shared kernels have colors between those of classes
        assert re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', re.sub(mixed, "", drawing)) == []
    style = (files("kernelpool.app.report") / "templates" / "report.css").read_text("utf-8")
    used = set(re.findall(r"var\((--\w+)\)", text))
    assert {"--ink", "--quiet", "--rule", "--s0", "--s1"} <= used
    assert all(style.count(f"{name}: #") == 3 for name in used)  # light, dark and print


# -- classifiers that refuse --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reject_classifier(two_clouds):
    x, y, x_test, y_test = two_clouds
    x_test, y_test = (
        np.concatenate([x_test, [[500.0, 500.0]] * 5]),
        np.concatenate([y_test, [0] * 5]),
    )
    model = RejectClassifier(
        SharedKernelClassifier.prbf(4, covariance_type="diag", random_state=0),
        ambiguity=0.2,
        novelty=0.05,
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
    assert (
        f"Of the {n} that it accepted ({100 * n / 205:.1f} %), {100 * wrong:.2f} % were wrong"
        in text
    )
    assert f"calls a row novel where its log p(x) is below {threshold}:" in text
    assert f"{n_novel} of the held out rows ({100 * n_novel / 205:.2f} %)." in text
    cells = " ".join(" ".join(page.text).split()).replace("\N{NO-BREAK SPACE}", " ")
    buys = cells[cells.index("What rejecting buys") : cells.index("Which classes")]
    assert buys.count("in use") == 1
    assert f"{100 * n / 205:.1f} % 0.8 {100 * wrong:.2f} %" in buys
    shares = [
        float(share)
        for share in re.findall("(?:interval|\N{EN DASH} [0-9.]+ %(?: in use)?) ([0-9.]+) %", buys)
    ]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == len(summary.evaluation.choices) + 1


def test_thresholds_in_use_are_marked_in_the_charts(reject_classifier):
    model, rows = reject_classifier
    summary = summarize(model, *rows)
    decision = model.decide(rows[2])
    coverage = np.mean(decision == 0)
    wrong = np.mean(model.predict(rows[2])[decision == 0] != rows[3][decision == 0])
    ax = drawn(charts._reject, summary.evaluation)
    star = next(line for line in ax.lines if line.get_marker() == "*")
    np.testing.assert_allclose(star.get_xydata(), [(100 * coverage, 100 * wrong)])
    assert f"in use: {100 * coverage:.0f} % accepted, {100 * wrong:.1f} % wrong" in legend(ax)
    ax = drawn(charts._novelty, summary.outliers)
    assert ax.lines[-1].get_xdata()[0] == model.novelty_threshold_
    assert ax.get_xlim()[0] < model.novelty_threshold_ < ax.get_xlim()[1]
    assert legend(ax)[-1] == f"threshold {html.number(model.novelty_threshold_)}"
    page = render_html(summary)
    assert "The star is what the classifier itself accepts." in page
    assert "Dashed: what the classifier calls novel below." in page


def test_the_point_in_use_stands_among_the_others_by_its_coverage(reject_classifier):
    model, rows = reject_classifier
    found = summarize(model, *rows).evaluation
    for coverage in (0.99, 0.85, 0.1):
        points = html._bought(
            found, charts.in_use(replace(found, refused=replace(found.refused, coverage=coverage)))
        )
        shares = [point.coverage for point, _ in points]
        assert shares == sorted(shares, reverse=True)
        assert [point.coverage for point, own in points if own] == [coverage]
        assert [point.threshold for point, own in points if own] == [0.8]


def test_thresholds_that_are_not_there_are_not_marked(reject_classifier, fitted):
    _, rows = reject_classifier
    unset = RejectClassifier(
        SharedKernelClassifier.prbf(4, random_state=0), ambiguity=None, novelty=None
    ).fit(*rows[:2])
    for model in (fitted, unset):
        summary = summarize(model, *rows)
        assert not [
            text for text in legend(drawn(charts._reject, summary.evaluation)) if "in use" in text
        ]
        assert not [
            text for text in legend(drawn(charts._novelty, summary.outliers)) if "threshold" in text
        ]
        page = render_html(summary)
        assert "The star is" not in page
        assert "Dashed:" not in page
        assert "in use" not in page
        assert "calls a row novel" not in page


@pytest.mark.parametrize(
    ("threshold", "text", "at"),
    [(-1e5, "threshold \N{MINUS SIGN}1e+05 ←", 0), (1e3, "threshold 1000 →", -1)],
)
def test_a_threshold_far_from_the_rows_is_marked_at_the_edge(
    reject_classifier, threshold, text, at
):
    model, rows = reject_classifier
    outliers = replace(summarize(model, *rows).outliers, novelty=threshold)
    ax = drawn(charts._novelty, outliers)
    assert ax.lines[-1].get_xdata()[0] == outliers.edges[at]
    assert legend(ax)[-1] == text
    assert np.ptp(ax.get_xlim()) < 2 * (outliers.edges[-1] - outliers.edges[0])


def test_rows_of_no_density_alone_are_novel(two_clouds):
    x, y, x_test, y_test = two_clouds
    far = np.concatenate([x_test, [[500.0, 500.0]]])
    lowest = float(np.finfo(float).min)
    model = RejectClassifier(
        ParzenClassifier("hypersphere", standardize=False, radius=1.5),
        novelty=lowest,
        novelty_rule="threshold",
    ).fit(x, y)
    summary = summarize(model, x, y, far, np.append(y_test, 0))
    assert legend(drawn(charts._novelty, summary.outliers)) == ["training", "held out"]
    page = render_html(summary)
    assert f"{(model.decide(far) == 2).sum()} novel (no density at all)" in page
    assert "calls a row novel where it has no density at all" in page


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
    names = {entry.name for entry in (files("kernelpool.app.report") / "templates").iterdir()}
    assert {"report.html", "report.css", "report.js"} <= names
