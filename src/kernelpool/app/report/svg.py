"""matplotlib's SVG in a fifth of the characters: the same picture.

Each style stands once, marks of one kind are the corners of one path, numbers are exact to a tenth
of a point, and what nothing refers to has no name.
"""

import re
from string import punctuation
from urllib.parse import quote
from xml.etree.ElementTree import Element, fromstring, tostring

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
LENGTHS = ("d", "x", "y", "width", "height")
DECIMALS = re.compile(r"-?\d+\.\d+(e-?\d+)?")

LETTER = re.compile(r"\s*([A-Za-z])\s*")
"""A command in a path, and the space around it."""

UNQUOTED = " " + punctuation.translate(dict.fromkeys(map(ord, "'&#%")))
"""What may stand in an address between single quotes as it is."""


def address_of(svg: str) -> str:
    """A picture as an address, which may stand in HTML between single quotes."""
    return "data:image/svg+xml," + quote(compact(svg), safe=UNQUOTED)


def compact(svg: str) -> str:
    """A figure that matplotlib wrote, in fewer characters."""
    root = fromstring(svg)
    for element in [*root.iter()]:
        _join_marks(element)
    names: dict[str, str] = {}
    styles: dict[str, str] = {}

    def renamed(reference: re.Match[str]) -> str:
        return reference[1] + names.setdefault(reference[2], f"r{len(names)}")

    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.tail = None
        attributes = [*element.items()]
        element.attrib.clear()
        for key, value in attributes:
            if key == HREF:
                element.set("href", re.sub("^(#)(.+)", renamed, value))
                continue
            value = re.sub(r"(url\(#)(\w+)", renamed, value)
            if key == "style":
                key = "class"
                value = styles.setdefault(re.sub("([:;]) ", r"\1", value), f"s{len(styles)}")
            elif key in LENGTHS:
                value = DECIMALS.sub(lambda n: f"{float(n[0]):.1f}".removesuffix(".0"), value)
                value = LETTER.sub(r"\1", value).strip()
            if not value.startswith("rotate(-0 "):
                element.set(key, value)
    for element in reversed([*root.iter()]):  # those inside first
        name = names.get(element.attrib.pop("id", ""))
        if name is not None:
            element.set("id", name)
        element[:] = [
            part
            for child in element
            if child.tag != "metadata" and (len(child) or child.tag != "defs")
            for part in (child if child.tag == "g" and not child.attrib else [child])
        ]
    sheet = Element("style")
    sheet.text = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    root.insert(1, sheet)
    root.set("xmlns", SVG[1:-1])
    return tostring(root, "unicode").replace(" />", "/>")


def _join_marks(group: Element) -> None:
    """Marks of one symbol and one style become one path, which has the symbol at each corner."""
    kinds = {(mark.tag, mark.get(HREF), mark.get("style")) for mark in group}
    if len(group) < 3 or len(kinds) > 1 or group[0].tag != f"{SVG}use":
        return
    corners = "L".join(f"{mark.get('x')} {mark.get('y')}" for mark in group)
    symbol = group[0]
    name = f"{symbol.get(HREF, '')[1:]}s"
    del symbol.attrib["x"], symbol.attrib["y"]
    marker = Element(f"{SVG}marker", id=name, overflow="visible", markerUnits="userSpaceOnUse")
    marker.append(symbol)
    style = f"fill: none; marker: url(#{name})"
    group[:] = [marker, Element(f"{SVG}path", d=f"M{corners}", style=style)]
