"""scikit-learn's own contract, to the letter."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import PooledClassifier, SharedKernelClassifier, SharingAverageClassifier


@parametrize_with_checks(
    [
        SharedKernelClassifier(n_folds=2, max_iter=20),
        SharedKernelClassifier.prbf(),
        SharingAverageClassifier(sharing=(0, 1)),
        PooledClassifier(
            [
                (
                    "tied",
                    SharedKernelClassifier.prbf(
                        3, covariance_type="tied", kernel_prior="conjugate"
                    ),
                ),
                (
                    "diag",
                    SharedKernelClassifier.prbf(
                        3, covariance_type="diag", kernel_prior="conjugate"
                    ),
                ),
            ],
            n_folds=2,
        ),
    ]
)
def test_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        SharedKernelClassifier.prbf(covariance_type="full", init="mixtures", sharing=0.5),
        SharedKernelClassifier.prbf(sharing="learned", split_by_class=True),
        SharingAverageClassifier(sharing=(0, "learned")),
    ]
)
def test_other_settings_pass_scikit_learns_checks(estimator, check):
    check(estimator)
