"""No module imports another that leads back to it, by local imports or for types alone either; and
the page of the architecture shows the rooms as they are.
"""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "docs" / "import_graph.py"


@pytest.fixture(scope="module")
def graph():
    spec = importlib.util.spec_from_file_location("import_graph", PATH)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    return graph


def test_no_modules_import_each_other(graph):
    imports = graph.imports(graph.modules())
    assert len(imports) > 80
    assert graph.cycles(imports) == []
    assert graph.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_the_page_shows_the_rooms_and_their_imports(graph):
    """Sizes are no test."""
    page = graph.TARGET.read_text(encoding="utf-8").split(graph.JOURNEYS)[0].splitlines()
    shown, today = (
        {row[1]: row[-2] for row in (line.split("|") for line in lines) if len(row) == 7}
        for lines in (page, graph.tree())
    )
    assert len(today) > 20
    assert shown == today, "run docs/import_graph.py"
