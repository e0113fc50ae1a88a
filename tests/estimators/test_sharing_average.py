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


def test_numbers_of_kernels_are_averaged_too(blobs):
    x, y = blobs
    model = SharingAverageClassifier(
        kernel_totals=(3, 7), sharing=(0, "learned"), standardize=False, random_state=0
    ).fit(x, y)
    assert [(len(m.means_), m.sharing) for m in model.estimators_] == [
        (3, 0),
        (3, "learned"),
        (7, 0),
        (7, "learned"),
    ]
    np.testing.assert_array_equal(model.weights_, [0.25] * 4)
    for member in model.estimators_:
        alone = SharedKernelClassifier.prbf(
            len(member.means_), sharing=member.sharing, random_state=0
        ).fit(x, y)
        np.testing.assert_array_equal(alone.means_, member.means_)
        assert member.n_kernels == len(member.means_)
    densities = [
        naive.kernel_densities(x, m.means_, m.covariances_, "spherical") @ m.mixing_
        for m in model.estimators_
    ]
    np.testing.assert_allclose(model.log_density(x), np.log(np.mean(densities, axis=0)), rtol=1e-9)
    assert model.kernel_posterior(x).shape == (len(x), 20)
    # a sequence for n_kernels is still the kernels of each class
    per_class = SharingAverageClassifier(n_kernels=(1, 2, 3), sharing=(0,), random_state=0).fit(
        x, y
    )
    assert per_class.estimators_[0].owners_.tolist() == [0, 1, 1, 2, 2, 2]


def mixed(model, x, family):
    """The weighted mean of the members' densities, by SciPy."""
    densities = [
        naive.kernel_densities(x, m.means_, m.covariances_, family) @ m.mixing_
        for m in model.estimators_
    ]
    return np.tensordot(model.weights_, densities, axes=1)


def test_weights_from_held_out_rows(blobs, family):
    x, y = blobs
    settings = {
        "covariance_type": family,
        "kernel_totals": (3, 12),
        "sharing": (0, 1),
        "random_state": 0,
    }
    model = SharingAverageClassifier(weights="held_out", **settings).fit(x, y)
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ > 0).all()
    assert np.ptp(model.weights_) > 0.01
    density = mixed(model, x, family)
    np.testing.assert_allclose(model.log_density(x), np.log(density), rtol=1e-9)
    joint = density * model.class_prior_
    np.testing.assert_allclose(model.score_samples(x), np.log(joint.sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(x), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-12
    )
    # the members are trained on all rows, whatever they weigh
    equal = SharingAverageClassifier(**settings).fit(x, y)
    for one, other in zip(model.estimators_, equal.estimators_, strict=True):
        np.testing.assert_array_equal(one.means_, other.means_)
    posterior = model.kernel_posterior(x)
    each = np.exp([member.score_samples(x) for member in model.estimators_])
    share = model.weights_[:, None] * each / (model.weights_ @ each)
    first = len(model.estimators_[0].means_)
    np.testing.assert_allclose(posterior[:, :first].sum(axis=1), share[0], rtol=1e-7, atol=1e-12)
    drawn, labels = model.sample(30_000, random_state=0)
    means = np.array([m.mixing_.T @ m.means_ for m in model.estimators_])  # (L, K, d)
    for k in range(3):
        np.testing.assert_allclose(
            drawn[labels == k].mean(axis=0), model.weights_ @ means[:, k], atol=0.1
        )


def test_held_out_weights_find_the_network_that_fits():
    """One kernel against six for three far-off spots a class: nearly all weight goes to six, and new rows are likelier."""
    rng = np.random.default_rng(0)

    def draw(n):
        part = rng.integers(6, size=n)
        return rng.normal(size=(n, 2)) * 0.3 + 5 * np.column_stack([part % 3, part // 3]), part % 2

    (x, y), (x_new, y_new) = draw(300), draw(2000)
    settings = {"kernel_totals": (2, 6), "sharing": (1,), "random_state": 0}
    model = SharingAverageClassifier(weights="held_out", **settings).fit(x, y)
    assert model.weights_[1] > 0.98
    equal = SharingAverageClassifier(**settings).fit(x, y)
    gain = (
        model.log_density(x_new)[np.arange(2000), y_new]
        - equal.log_density(x_new)[np.arange(2000), y_new]
    )
    assert 0.5 < gain.mean() <= np.log(2)  # half of the equal average is all but wasted
    spots = 5 * np.array([[i % 3, i // 3] for i in range(6)])
    far = [
        (
            np.linalg.norm(m.sample(2000, random_state=0)[0][:, None] - spots, axis=2).min(axis=1)
            > 1.5
        ).mean()
        for m in (model, equal)
    ]
    assert far[0] < 0.03 < 0.1 < far[1]  # samples come from the networks by their weights


def test_held_out_rows_took_no_part_in_training():
    """One Gaussian a class and thirty kernels for sixty rows: they know their own rows by heart and no others."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = SharingAverageClassifier(
        kernel_totals=(2, 30), sharing=(0,), weights="held_out", random_state=0
    ).fit(x, y)
    one, thirty = (member.objective_ for member in model.estimators_)
    assert thirty > one + 0.5  # on rows it was trained on the large network would win every time
    assert model.weights_[0] > 0.8


def test_tiny_classes_are_never_held_out():
    """Three rows of a class: they always train, and the fit goes on; with tiny classes alone the weights stay equal."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(63, 2))
    y = np.r_[np.arange(60) % 2, [2, 2, 2]]
    settings = {"sharing": (0, 1), "weights": "held_out", "random_state": 0}
    model = SharingAverageClassifier(n_kernels=(4, 4, 3), **settings).fit(x, y)
    assert model.weights_.sum() == pytest.approx(1)
    few = SharingAverageClassifier(2, **settings).fit(x[:12], y[:12])
    np.testing.assert_array_equal(few.weights_, [0.5, 0.5])
    crowded = SharingAverageClassifier(kernel_totals=(20, 24), **settings).fit(x[:24], y[:24])
    assert np.isfinite(crowded.log_density(x)).all()


def test_held_out_weights_do_not_depend_on_the_order_of_rows(blobs):
    x, y = blobs
    order = np.random.default_rng(0).permutation(len(x))
    settings = {
        "kernel_totals": (3, 9),
        "sharing": (0.5,),
        "weights": "held_out",
        "random_state": 0,
    }
    one = SharingAverageClassifier(**settings).fit(x, y)
    other = SharingAverageClassifier(**settings).fit(x[order], y[order])
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-5)
    twice = SharingAverageClassifier(**settings).fit(np.repeat(x, 2, axis=0), np.repeat(y, 2))
    double = SharingAverageClassifier(**settings).fit(x, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(twice.weights_, double.weights_, rtol=1e-4)


def test_unlabeled_rows_and_other_homes(blobs):
    x, y = blobs
    da = pytest.importorskip("dask.array")
    labels = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    settings = {
        "kernel_totals": (3, 6),
        "sharing": (1,),
        "weights": "held_out",
        "unlabeled": -1,
        "random_state": 0,
    }
    model = SharingAverageClassifier(**settings).fit(x, labels)
    far = SharingAverageClassifier(**settings).fit(
        da.from_array(x, chunks=(100, 3)), da.from_array(labels, chunks=100)
    )
    np.testing.assert_allclose(far.weights_, model.weights_, rtol=1e-6)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"kernel_totals": ()}, "must hold at least one value"),
        (
            {"kernel_totals": (4, 0)},
            "Each value of kernel_totals must be a whole number above zero; got 0",
        ),
        (
            {"kernel_totals": (4, 2.5)},
            "Each value of kernel_totals must be a whole number above zero; got 2.5",
        ),
        (
            {"kernel_totals": (4,), "n_kernels": 5},
            "n_kernels and kernel_totals both say how many kernels",
        ),
        (
            {"kernel_totals": (4,), "means_init": [[0, 0, 0]]},
            "means_init and kernel_totals both say how many kernels",
        ),
        ({"sharing": (0, "guessed")}, "must be a number in \\[0, 1\\] or 'learned'; got 'guessed'"),
        ({"sharing": (0, "auto")}, "must be a number in \\[0, 1\\] or 'learned'; got 'auto'"),
        ({"weights": "fair"}, "'weights' parameter"),
        ({"n_kernels": "auto"}, "'n_kernels' parameter"),
    ],
)
def test_bad_words_are_named(blobs, kwargs, message):
    with pytest.raises(ValueError, match=message):
        SharingAverageClassifier(**kwargs).fit(*blobs)


def test_a_stop_by_the_user_while_weights_are_found(blobs, monkeypatch):
    from kernelpool.training import stacking

    def interrupted(*_):
        raise KeyboardInterrupt("interrupted while weights were found")

    monkeypatch.setattr(stacking, "stacked", interrupted)
    model = SharingAverageClassifier(4, sharing=(0, 1), weights="held_out", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*blobs)
    np.testing.assert_array_equal(
        model.weights_, [0.5, 0.5]
    )  # the networks are there and count the same
    assert model.predict(blobs[0]).shape == (300,)


def test_the_prior_is_not_chosen_here(blobs):
    with pytest.raises(ValueError, match="'kernel_prior' parameter of SharingAverageClassifier"):
        SharingAverageClassifier(kernel_prior="auto").fit(*blobs)
