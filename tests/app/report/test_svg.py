"""Pictures in fewer characters against the ones that matplotlib wrote."""

import re
from io import StringIO
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest

from kernelpool.app.report.svg import address_of, compact

mpl = pytest.importorskip("matplotlib", reason="reports need matplotlib: pip install '.[report]'")

NAME = """it's 100 % "<b>&amp;#x</b>" style="fill: red" id="text_1" 0.123456"""
"""A label that might be taken for a part of the picture."""


@pytest.fixture(scope="module")
def drawn():
    """What matplotlib writes: a curve, marks of two classes, text, an image and a hatch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4))
    ax = figure.add_subplot()
    x = np.random.default_rng(0).normal(size=(200, 2))
    ax.plot(np.sort(x[:, 0]), label=NAME)
    ax.scatter(*x[:150].T, marker="o", alpha=0.5)
    ax.scatter(*x[150:].T, marker="^", color="red")
    ax.imshow(x[:4], extent=(0, 50, -1, 1), aspect="auto")
    ax.stairs([1, 2, 1], hatch="//", fill=True)
    ax.legend()
    file = StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    return file.getvalue()


def corners(root, kind):
    """Where the marks of a kind are, by the picture that matplotlib wrote."""
    uses = [use for use in root.iter() if use.tag.endswith("use")]
    styles = {use.get("style") for use in uses if kind in use.get("style", "")}
    return [[float(use.get(k)) for k in "xy"] for use in uses if use.get("style") in styles]


def test_a_picture_is_a_third_as_long_and_its_texts_are_the_same(drawn):
    small = compact(drawn)
    assert len(small) < len(drawn) / 3
    old, new = (ElementTree.fromstring(svg) for svg in (drawn, small))
    texts = [[t.text for t in root.iter() if t.tag.endswith("text")] for root in (old, new)]
    assert texts[0] == texts[1]
    assert NAME in texts[1]
    images = [[i for i in root.iter() if i.tag.endswith("image")] for root in (old, new)]
    assert [len(part) for part in images] == [1, 1]
    assert images[1][0].get("href") == images[0][0].get("{http://www.w3.org/1999/xlink}href")
    referred = set(re.findall(r'(?:href="|url\()#(\w+)', small))
    names = re.findall(r' id="(\w+)"', re.sub("<text.*?</text>", "", small))
    assert sorted(names) == sorted(referred)
    assert len(names) > 3


def test_marks_are_corners_a_tenth_of_a_point_from_where_they_were(drawn):
    old = ElementTree.fromstring(drawn)
    new = ElementTree.fromstring(compact(drawn))
    sheet = "".join(style.text for style in new.iter("{http://www.w3.org/2000/svg}style"))
    marked = re.findall(r"[.](s[0-9]+)[{]fill:none;marker:url", sheet)
    paths = [path.get("d") for path in new.iter() if path.get("class") in marked]
    for path, kind in zip(paths, ("fill-opacity: 0.5", "fill: #ff0000"), strict=True):
        places = np.array(re.findall(r"[ML](-?[0-9.]+) (-?[0-9.]+)", path), float)
        np.testing.assert_allclose(places, corners(old, kind), atol=0.051)


def test_an_address_stands_between_single_quotes(drawn):
    address = address_of(drawn)
    assert not set("'&#%").intersection(address.replace("%", "")) - {"%"}
    assert unquote(address).removeprefix("data:image/svg+xml,") == compact(drawn)
