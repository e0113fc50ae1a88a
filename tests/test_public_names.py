import subprocess
import sys

import pytest

import kernelpool


def test_the_public_names_are_sorted_and_there():
    assert kernelpool.__all__ == sorted(kernelpool.__all__)
    for name in kernelpool.__all__:
        assert getattr(kernelpool, name).__doc__
    assert dir(kernelpool) == kernelpool.__all__
    with pytest.raises(AttributeError, match="no attribute 'PerceptronClassifier'"):
        kernelpool.PerceptronClassifier  # noqa: B018


def test_modules_of_the_guide_are_there_without_another_import():
    code = (
        "import kernelpool; kernelpool.load, kernelpool.errors.KernelpoolError, kernelpool.to_onnx"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
