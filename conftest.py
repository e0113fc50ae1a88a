"""The README is run where its files are: in a folder with the tables that `make demo` writes."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder_of_the_demo(request, tmp_path, monkeypatch):
    """Write the tables of the demo, and run the README there."""
    if Path(request.node.path).name == "README.md":
        from kernelpool.app.cli.demo import write_tables

        write_tables(tmp_path / "kernelpool-demo")
        monkeypatch.chdir(tmp_path)
