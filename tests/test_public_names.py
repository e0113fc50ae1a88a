import subprocess
import sys
from pathlib import Path

import pytest

import kernelpool


def test_the_public_names_are_sorted_and_there():
    assert kernelpool.__all__ == sorted(kernelpool.__all__)
    for name in kernelpool.__all__:
        assert getattr(kernelpool, name).__doc__
    assert dir(kernelpool) == kernelpool.__all__
    with pytest.raises(AttributeError, match="no attribute 'PerceptronClassifier'"):
        kernelpool.PerceptronClassifier  # noqa: B018


def test_a_fresh_process():
    """Modules that are imported, and the number of BLAS threads, are those of the whole process."""
    checks = Path(__file__).with_name("own_process") / "fresh_process.py"
    run = subprocess.run([sys.executable, checks], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("test_") == 4
