import json

import pytest

pytest.importorskip("typer", reason="the command line needs typer: pip install '.[cli]'")
pytest.importorskip("pyarrow", reason="the command line needs pyarrow: pip install '.[cli]'")

from typer.testing import CliRunner

from kernelpool.app.cli.app import app

from .tables import NAMES, QUICK, colors, write_csv


class Ran:
    """What a command printed, and how it ended."""

    def __init__(self, words, input=None):
        result = CliRunner().invoke(app, [str(word) for word in words], input=input)
        self.code = result.exit_code
        self.out = result.stdout
        self.err = result.stderr
        self.text = " ".join((self.out + self.err).split())
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in an empty folder and checks its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words, code=0, input=None):
        ran = Ran(words, input)
        assert ran.code == code, (ran.code, ran.out, ran.err)
        return ran

    return call


def fit(folder, rows):
    data = write_csv(folder / "data.csv", NAMES, rows)
    model = str(folder / "model.safetensors")
    assert Ran(["fit", data, "--target", "color", "-o", model, *QUICK]).code == 0
    return data, model


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A data file and the model of its rows."""
    return fit(tmp_path_factory.mktemp("fitted"), colors())


@pytest.fixture(scope="session")
def blurred(tmp_path_factory):
    """The same for classes that overlap."""
    return fit(tmp_path_factory.mktemp("blurred"), colors(400, 1, 1.5))
