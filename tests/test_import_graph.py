"""No module imports another that leads back to it, by local imports or for types alone either."""

import importlib.util
from pathlib import Path


def test_no_modules_import_each_other():
    path = Path(__file__).parents[1] / "docs" / "import_graph.py"
    spec = importlib.util.spec_from_file_location("import_graph", path)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)

    found = graph.imports(graph.modules())
    assert len(found) > 80
    assert graph.cycles(found) == []
    assert graph.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
