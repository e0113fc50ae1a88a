"""Settings of a fit."""

from kernelpool import SharedKernelClassifier
from kernelpool.mixtures.fit import MixtureSettings


def test_settings_have_the_defaults_of_the_estimator():
    assert SharedKernelClassifier()._mixture_settings(seed=0) == MixtureSettings()
