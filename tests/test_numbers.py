"""Measured tables of the pages are those of the stored records."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("numbers_of_pages", ROOT / "docs" / "numbers.py")
numbers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(numbers)
RECORDS = sorted(path.stem for path in numbers.RECORDS.glob("*.md"))


@pytest.mark.parametrize("page", numbers.pages(), ids=lambda page: page.name)
def test_a_page_shows_what_was_recorded(page):
    assert page.read_text() == numbers.written(page.read_text()), "run: python docs/numbers.py"


def test_every_record_is_shown_and_says_how_it_was_measured():
    texts = [page.read_text() for page in numbers.pages()]
    shown = {match[2] for text in texts for match in numbers.BLOCK.finditer(text)}
    assert shown == set(RECORDS)
    for name in RECORDS:
        head, tables = numbers.read(name)
        assert set(head) == {"command", "quick", "version", "date"}, name
        assert tables, name


def test_a_changed_figure_is_noticed():
    table = numbers.read("sharing")[1][0]
    page = f"<!-- measured: sharing 1 -->\n\n{table}\n<!-- end -->\n"
    changed = page.replace(table, table.replace("3", "4"))
    assert changed != page
    assert numbers.written(page) == numbers.written(changed) == page
