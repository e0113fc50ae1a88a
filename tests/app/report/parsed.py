"""A report as its readers find it: text, tables, charts and the data of the explorer."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree


def plain(text):
    """With single spaces; those that do not break stay."""
    return re.sub("[ \n]+", " ", text).strip(" ")


class Page(HTMLParser):
    """A file or its text: tables as rows of (text, data-sort); images by the id of their figure."""

    def __init__(self, source):
        super().__init__()
        self.html = source if isinstance(source, str) else source.read_text("utf-8")
        self.tables = []
        self.ids = {}
        self.images = {}
        self.tags = []
        self.explorer = self.policy = self.figure = None
        self.words = []
        self.cell = None
        self.scripts = []
        self.feed(self.html)
        self.text = plain(" ".join(self.words))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "table":
            self.tables.append([])
            self.ids[found.get("id")] = self.tables[-1]
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ["", found.get("data-sort")]
            self.tables[-1][-1].append(self.cell)
        elif tag == "figure":
            self.figure = found["id"].removeprefix("chart-")
        elif tag == "img":
            self.images[self.figure] = found
        elif tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        if "data-explorer" in found:
            self.explorer = json.loads(found["data-explorer"])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.lasttag in ("style", "script"):
            self.scripts.append(data)
            return
        self.words.append(data)
        if self.cell is not None:
            self.cell[0] = plain(f"{self.cell[0]} {data}")

    def table(self, *heads):
        """The rows of the table that has an id or these heads, without the heads."""
        if len(heads) == 1:
            return self.ids[heads[0]][1:]
        return next(t[1:] for t in self.tables if [c[0] for c in t[0]][: len(heads)] == list(heads))

    def chart(self, name):
        """The SVG of a chart."""
        data = self.images[name]["src"].removeprefix("data:image/svg+xml,")
        return ElementTree.fromstring(unquote(data))


def column(rows, i, sort=True):
    """One column: numbers by which it is sorted, or text."""
    return [float(row[i][1]) if sort else row[i][0] for row in rows]
