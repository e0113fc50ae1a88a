import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from kernelpool import Overlap, SharedKernelClassifier, SharingAverageClassifier


def average(n_kernels, sharing=(0, 1), overlap=None, **settings):
    network = SharedKernelClassifier.prbf(n_kernels, random_state=0, **settings)
    return SharingAverageClassifier(network, sharing=sharing, overlap=overlap)


def test_densities_are_averaged(blobs, family):
    """(38), from the members' own parameters and SciPy's densities."""
    x, y = blobs
    model = average(6, (0, 0.25, 0.5, 0.75, 1), covariance_type=family).fit(x, y)
    densities = np.array(
        [
            naive.kernel_densities(x, member.means_, member.covariances_, family) @ member.mixing_
            for member in model.estimators_
        ]
    )
    density = densities.mean(axis=0)
    assert_allclose(model.log_density(x), np.log(density), rtol=1e-9)
    joint = density * model.class_prior_
    assert_allclose(model.predict_proba(x), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8)
    assert_allclose(model.score_samples(x), logsumexp(np.log(joint), axis=1), rtol=1e-9)
    # the share of a network in a row is its share of the density
    posterior = model.kernel_posterior(x).reshape(len(x), 5, 6)
    share = densities @ model.class_prior_
    assert_allclose(posterior.sum(axis=2).T, share / share.sum(axis=0), rtol=1e-8)
    certain = model.with_class_prior([1, 0, 0])
    assert np.isfinite(certain.kernel_posterior(x)).all()


@pytest.mark.parametrize("init", ["kmeans", "random", "mixtures"])
@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0)], ids=["int", "generator"])
def test_all_networks_start_alike(blobs, init, random_state):
    first = []

    def remember(info):
        if info.sweep == 0:
            first.append(info.parameters["means_"])

    model = average(6, (0.25, 0.5, 1), init=init, callback=remember, max_iter=10, tol=1)
    model.estimator.set_params(random_state=random_state)
    model.fit(*blobs)
    assert_array_equal(first[0], first[1])
    assert_array_equal(first[0], first[2])


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_a_member_is_the_network_trained_alone(blobs):
    x, y = blobs
    penalties = (0, 5, Overlap(10, "hellinger"))
    model = average(6, (0.5, 1, "learned"), penalties, max_iter=20).fit(x, y)
    expected = [(degree, penalty) for degree in (0.5, 1, "learned") for penalty in penalties]
    for member, (degree, penalty) in zip(model.estimators_, expected, strict=True):
        alone = SharedKernelClassifier.prbf(
            6, sharing=degree, overlap=penalty, random_state=0, max_iter=20
        ).fit(x, y)
        assert_array_equal(alone.means_, member.means_)
    assert model.n_iter_ == max(member.n_iter_ for member in model.estimators_)


def test_the_network_is_trained_by_em_whatever_its_training(blobs):
    x, y = blobs
    network = SharedKernelClassifier([1, 1, 1], random_state=0)
    model = SharingAverageClassifier(network, sharing=(0,)).fit(x, y)
    assert not hasattr(model.estimators_[0], "discriminative_")
    alone = SharedKernelClassifier([1, 1, 1], training="em", random_state=0).fit(x, y)
    assert_allclose(model.predict_proba(x), alone.predict_proba(x), rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sharing": (0, "guessed")}, r"must be a number in \[0, 1\] or 'learned'; got 'guessed'"),
        ({"sharing": (0, 2)}, r"Each value of sharing must lie in \[0, 1\]; got 2"),
        ({"sharing": ()}, "sharing and overlap must hold at least one value"),
        ({"overlap": (0, -1)}, "'overlap' parameter"),
        ({"estimator": 6}, "'estimator' parameter"),
    ],
)
def test_bad_settings_are_named(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        SharingAverageClassifier(**parameters).fit(*blobs)
