"""Location and scale of features, against NumPy and definitions."""

import numpy as np
import pytest
from zoo import CLASSIFIERS

from kernelpool.data import door, scale


@pytest.mark.parametrize("name", ["rbf", "neurons", "em_log"])
def test_the_rows_of_a_fit_are_surveyed_in_two_passes(name, monkeypatch):
    passes = []

    def counted(block, about, n_classes):
        passes.append(about)
        return survey(block, about, n_classes)

    survey = scale.survey
    x = np.random.default_rng(0).normal(size=(90, 3))
    for module in (door, scale):
        monkeypatch.setattr(module, "survey", counted)
    CLASSIFIERS[name].fit(x, np.arange(90) % 2)
    assert len(passes) == 2
    np.testing.assert_array_equal(passes[0], np.zeros(3))
    np.testing.assert_allclose(passes[1], x.mean(axis=0), rtol=1e-12)
