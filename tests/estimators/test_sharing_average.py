import naive
import numpy as np
import pytest
from scipy.special import logsumexp

from kernelpool import SharedKernelClassifier, SharingAverageClassifier


def test_densities_are_averaged(blobs, family):
    """(38), from the members' own parameters and SciPy's densities."""
    x, y = blobs
    model = SharingAverageClassifier(6, covariance_type=family, random_state=0).fit(x, y)
    assert len(model.estimators_) == 5
    densities = [
        naive.kernel_densities(x, member.means_, member.covariances_, family) @ member.mixing_
        for member in model.estimators_
    ]
    average = np.mean(densities, axis=0)
    np.testing.assert_allclose(model.log_density(x), np.log(average), rtol=1e-9)
    joint = average * model.class_prior_
    np.testing.assert_allclose(
        model.predict_proba(x), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8
    )
    np.testing.assert_allclose(model.score_samples(x), logsumexp(np.log(joint), axis=1), rtol=1e-9)


@pytest.mark.parametrize("init", ["kmeans", "random", "mixtures"])
def test_all_networks_start_alike(blobs, init):
    x, y = blobs
    first = {}

    def remember(info):
        first.setdefault(info.start, info.parameters["means_"])

    SharingAverageClassifier(
        6, sharing=(0.25, 0.5, 1), init=init, random_state=0, callback=remember
    ).fit(x, y)
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[0], first[2])


def test_a_member_is_the_network_trained_alone(blobs, family):
    x, y = blobs
    average = SharingAverageClassifier(
        6, covariance_type=family, sharing=(0.5, 1), standardize=False, random_state=3
    ).fit(x, y)
    alone = SharedKernelClassifier.prbf(6, covariance_type=family, sharing=1, random_state=3).fit(
        x, y
    )
    np.testing.assert_array_equal(average.estimators_[1].means_, alone.means_)
    assert average.n_iter_ == max(member.n_iter_ for member in average.estimators_)
    assert average.converged_


def test_kernel_posterior_and_samples(blobs):
    x, y = blobs
    model = SharingAverageClassifier(6, sharing=(0, 1), random_state=0).fit(x, y)
    posterior = model.kernel_posterior(x)
    assert posterior.shape == (len(x), 12)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    # the share of a network in a row is its share of the density
    each = np.exp([member.score_samples(x) for member in model.estimators_])
    np.testing.assert_allclose(posterior[:, :6].sum(axis=1), each[0] / each.sum(axis=0), rtol=1e-8)
    drawn, labels = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn[labels == 1].mean(axis=0), x[y == 1].mean(axis=0), atol=0.1)
    certain = SharingAverageClassifier(
        4, sharing=(0, 1), class_prior=[1, 0, 0], random_state=0
    ).fit(x, y)
    assert np.isfinite(certain.kernel_posterior(x)).all()


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_strengths_of_the_overlap_penalty_are_averaged_too(blobs):
    x, y = blobs
    model = SharingAverageClassifier(
        6, sharing=(0.5, 1), overlap_penalty=(0, 5, 10), standardize=False, random_state=0
    ).fit(x, y)
    choices = [(member.sharing, member.overlap_penalty) for member in model.estimators_]
    assert choices == [(0.5, 0), (0.5, 5), (0.5, 10), (1, 0), (1, 5), (1, 10)]
    for member in model.estimators_:
        alone = SharedKernelClassifier.prbf(
            6, sharing=member.sharing, overlap_penalty=member.overlap_penalty, random_state=0
        ).fit(x, y)
        np.testing.assert_array_equal(alone.means_, member.means_)
    average = np.logaddexp.reduce([member.log_density(x) for member in model.estimators_]) - np.log(
        6
    )
    np.testing.assert_allclose(model.log_density(x), average, rtol=1e-9)
    with pytest.raises(
        ValueError, match="Each value of overlap_penalty must be at least 0; got -1"
    ):
        SharingAverageClassifier(6, overlap_penalty=(0, -1)).fit(x, y)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"sharing": (0, "guessed")}, "must be a number in \\[0, 1\\] or 'learned'; got 'guessed'"),
        ({"sharing": (0, "auto")}, "must be a number in \\[0, 1\\] or 'learned'; got 'auto'"),
        ({"n_kernels": "auto"}, "'n_kernels' parameter"),
    ],
)
def test_bad_words_are_named(blobs, kwargs, message):
    with pytest.raises(ValueError, match=message):
        SharingAverageClassifier(**kwargs).fit(*blobs)


def test_the_prior_is_not_chosen_here(blobs):
    with pytest.raises(ValueError, match="'kernel_prior' parameter of SharingAverageClassifier"):
        SharingAverageClassifier(kernel_prior="auto").fit(*blobs)
