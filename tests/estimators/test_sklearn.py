"""scikit-learn's own contract, to the letter."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import SharedKernelClassifier, SharingAverageClassifier


@parametrize_with_checks(
    [
        SharedKernelClassifier(),
        SharedKernelClassifier(covariance_type="full", init="mixtures", sharing=0.5),
        SharedKernelClassifier(sharing="learned", split_by_class=True),
        SharingAverageClassifier(sharing=(0, 1)),
        SharingAverageClassifier(sharing=(0, "learned"), weights="held_out"),
    ]
)
def test_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)
