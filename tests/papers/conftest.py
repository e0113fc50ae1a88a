from urllib.error import URLError

import pytest
import sklearn.datasets._openml as fetcher

from papers.data import sources

from .copies import Answer, openml_answers


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder, no package, no network, no cache."""

    def unreachable(*_, **__):
        raise URLError("no network in this test")

    monkeypatch.delenv("KERNELPOOL_DATA", raising=False)
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(fetcher, "urlopen", unreachable)
    monkeypatch.setattr(fetcher.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


@pytest.fixture
def folder(nowhere, monkeypatch, tmp_path):
    """An empty folder that KERNELPOOL_DATA names."""
    path = tmp_path / "sets"
    path.mkdir()
    monkeypatch.setenv("KERNELPOOL_DATA", str(path))
    return path


@pytest.fixture
def openml(nowhere, monkeypatch):
    """Call with a set's name and rows: scikit-learn then gets them from a server that answers as
    OpenML does.
    """

    def serve(name, X, y):
        answers = openml_answers(name, X, y)

        def urlopen(request, **_):
            address = request.full_url
            match = [content for end, content in answers.items() if address.endswith(end)]
            if not match:
                raise URLError(f"unexpected address {address}")
            return Answer(match[0])

        monkeypatch.setattr(fetcher, "urlopen", urlopen)

    return serve
