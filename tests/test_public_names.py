import pytest

import kernelpool


def test_the_public_names_are_sorted_and_there():
    assert kernelpool.__all__ == sorted(kernelpool.__all__)
    for name in kernelpool.__all__:
        assert getattr(kernelpool, name).__doc__
    assert dir(kernelpool) == kernelpool.__all__
    with pytest.raises(AttributeError, match="no attribute 'PerceptronClassifier'"):
        kernelpool.PerceptronClassifier  # noqa: B018
