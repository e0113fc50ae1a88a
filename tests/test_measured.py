"""Measured tables of the pages are those of the stored records."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("measured", ROOT / "docs" / "measured.py")
measured = importlib.util.module_from_spec(spec)
spec.loader.exec_module(measured)
RECORDS = sorted(path.stem for path in measured.RECORDS.glob("*.md"))


@pytest.mark.parametrize("page", measured.pages(), ids=lambda page: page.name)
def test_a_page_shows_what_was_recorded(page):
    assert page.read_text() == measured.written(page.read_text()), "run: python docs/measured.py"


def test_every_record_is_shown_and_says_how_it_was_measured():
    texts = [page.read_text() for page in measured.pages()]
    shown = {match[2] for text in texts for match in measured.BLOCK.finditer(text)}
    assert shown == set(RECORDS)
    for name in RECORDS:
        head, tables = measured.read(name)
        assert set(head) == {"command", "quick", "version", "date"}, name
        assert tables, name


def test_a_changed_figure_is_noticed():
    table = measured.read("sharing")[1][0]
    page = f"<!-- measured: sharing 1 -->\n\n{table}\n<!-- end -->\n"
    changed = page.replace(table, table.replace("3", "4"))
    assert changed != page
    assert measured.written(page) == measured.written(changed) == page
