"""The registry: one record an estimator."""

import inspect

import pytest
from sklearn.base import BaseEstimator

import kernelpool
from kernelpool import registry


def test_every_public_estimator_has_a_record():
    public = {name for name in kernelpool.__all__ if inspect.isclass(getattr(kernelpool, name))}
    public = {name for name in public if issubclass(getattr(kernelpool, name), BaseEstimator)}
    assert len(public) >= 9
    assert public <= {record.name for record in registry.estimators()}
    assert {registry.record_of(getattr(kernelpool, name)).cls for name in public} == {
        getattr(kernelpool, n) for n in public
    }


def test_records_are_of_the_very_class():
    class SharedKernelClassifier(kernelpool.SharedKernelClassifier):
        pass

    assert registry.record_of(SharedKernelClassifier.prbf()) is None
    assert registry.record_of(kernelpool.SharedKernelClassifier.prbf()).command == "shared-kernel"


def test_names_are_registered_once():
    record = registry.record_named("ParzenClassifier")
    with pytest.raises(
        ValueError, match="'ParzenClassifier' or a command 'parzen' is registered already"
    ):
        registry.register(record)


@pytest.mark.parametrize(
    ("estimator", "scaled"),
    [
        (kernelpool.SharedKernelClassifier.prbf(), True),
        (kernelpool.SharedKernelClassifier.prbf(covariance_type="full"), False),
        (kernelpool.SharedKernelClassifier.auto(), False),
        (kernelpool.SharedKernelClassifier(covariance_type="spherical"), False),
        (kernelpool.SharingAverageClassifier(standardize=False), True),
        (kernelpool.ParzenClassifier(), False),
        (kernelpool.CompetitiveNeuronsClassifier(), False),
        (kernelpool.RBFNetworkClassifier(covariance_type="spherical"), False),
    ],
)
def test_what_depends_on_units_is_scaled(estimator, scaled):
    """Spherical kernels and balls measure distances in the units they are given."""
    assert registry.needs_scaling(estimator) is scaled


def test_references_are_resolved_on_use():
    assert registry.resolve("math:prod") is registry.resolve(registry.resolve("math:prod"))
    with pytest.raises(AttributeError):
        registry.resolve("math:product")
