from urllib.error import URLError

import pytest
from sklearn.utils import Bunch

from papers.data import sources

from .copies import OPENML_LABELS, OPENML_NUMBERS


@pytest.fixture
def nowhere(monkeypatch):
    """No folder, no package, no network."""

    def unreachable(**_):
        raise URLError("no network in this test")

    monkeypatch.delenv("KERNELPOOL_DATA", raising=False)
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sources, "fetch_openml", unreachable)


@pytest.fixture
def folder(nowhere, monkeypatch, tmp_path):
    """An empty folder that KERNELPOOL_DATA names."""
    path = tmp_path / "sets"
    path.mkdir()
    monkeypatch.setenv("KERNELPOOL_DATA", str(path))
    return path


@pytest.fixture
def openml(nowhere, monkeypatch):
    """Call with a set's name and rows: they are then what OpenML holds under the set's number."""

    def serve(name, X, y):
        def fetch(data_id, **_):
            if data_id != OPENML_NUMBERS[name]:
                raise ValueError(f"unexpected data set {data_id}")
            return Bunch(data=X, target=[OPENML_LABELS[name][code] for code in y])

        monkeypatch.setattr(sources, "fetch_openml", fetch)

    return serve
