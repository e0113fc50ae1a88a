"""Words beside numbers: Gaussians times tables of probabilities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import log_loss

import kernelpool
from kernelpool import PooledClassifier, SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.kernels import Kernels
from kernelpool.networks.shared_kernel import Params, SharedKernel
from kernelpool.rows import as_rows
from kernelpool.training.validation import family_for, indicator_groups

FAMILIES = ("spherical", "diag", "full", "tied")
GROUPS = [[1, 2, 3], [5]]


def some_data(n=400, seed=0):
    """Two numbers (0 and 4), a word of three levels (1 to 3) and a yes or no (5)."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    numbers = rng.normal(size=(n, 2)) @ np.array([[1, 0.4], [0, 0.8]]) + 1.5 * code[:, None]
    shares = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])[code]
    word = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    yes = (rng.random(n) < np.array([0.2, 0.7])[code]).astype(float)
    X = np.column_stack([numbers[:, 0], np.eye(3)[np.minimum(word, 2)], numbers[:, 1], yes])
    return X, np.array(["a", "b"])[code]


def holed(X, share=0.25, seed=1):
    """Cells deleted at random, the indicators of a word together."""
    rng, out = np.random.default_rng(seed), X.copy()
    for columns in ([0], [1, 2, 3], [4], [5]):
        out[np.ix_(rng.random(len(X)) < share, columns)] = np.nan
    return out


def density_by_hand(model, row):
    """p(known cells|C_k), kernel by kernel, with scipy's Gaussians."""
    numbers = np.array([0, 4])
    by_kernel = np.ones(len(model.means_))
    for j, mean in enumerate(model.means_):
        covariance = np.asarray(model.covariances_)
        covariance = covariance if model.covariance_type == "tied" else covariance[j]
        matrix = covariance if covariance.ndim == 2 else np.diag(np.broadcast_to(covariance, 6))
        known = numbers[~np.isnan(row[numbers])]
        if len(known):
            by_kernel[j] *= multivariate_normal(mean[known], matrix[np.ix_(known, known)]).pdf(row[known])
        for group in GROUPS:
            if not np.isnan(row[group]).any():
                set_ = [i for i in group if row[i] == 1]
                by_kernel[j] *= mean[set_[0]] if set_ else 1 - mean[group].sum()
    return by_kernel @ model.mixing_


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_are_products(family):
    X, y = some_data()
    model = SharedKernelClassifier.prbf(4, covariance_type=family, indicators=GROUPS, random_state=0).fit(holed(X), y)
    assert model.indicator_groups_.tolist() == [-1, 0, 0, 0, -1, 1]
    other = X[:1].copy()
    other[0, 1:4] = 0  # a word that was never seen: the prior's share
    rows = np.concatenate([X[:5], holed(X)[:40], other, np.full((1, 6), np.nan)])
    expected = np.log([density_by_hand(model, row) for row in rows])
    np.testing.assert_allclose(model.log_density(rows), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(rows[-1:])[0], model.class_prior_)
    assert (np.diff(model.history_) >= -1e-10).all()
    assert model.score(X, y) > 0.85


def categories_by_hand(word, n_kernels, start, n_sweeps, strength=1.0):
    """EM for a mixture of one column of words, with the Dirichlet prior: probabilities (M, L) and weights (M,)."""
    theta, weight, n_levels = start.copy(), np.full(n_kernels, 1 / n_kernels), start.shape[1]
    one_hot = np.eye(n_levels)[word]
    for _ in range(n_sweeps):
        joint = weight * theta[:, word].T
        share = joint / joint.sum(axis=1, keepdims=True)
        counts = share.T @ one_hot
        theta = (counts + strength / n_levels) / (share.sum(axis=0)[:, None] + strength)
        weight = share.mean(axis=0)
    return theta, weight


def test_a_mixture_of_words_alone_is_em_by_hand():
    """One kernel a class: counts with the prior, exactly. Two words, so that kernels have something to find."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 300)
    word = (rng.random(300)[:, None] > np.cumsum(np.array([[0.7, 0.2], [0.2, 0.2]]), axis=1)[code]).sum(axis=1)
    X, y = np.eye(3)[word][:, :2], code  # the third word has no indicator
    model = SharedKernelClassifier.prbf([1, 1], covariance_type="diag", sharing=0.0, indicators=[[0, 1]], tol=1e-12).fit(X, y)
    for k in range(2):
        counts = np.bincount(word[code == k], minlength=3)
        np.testing.assert_allclose(model.means_[k], ((counts + 1 / 3) / (counts.sum() + 1))[:2], rtol=1e-9)
        theta, _ = categories_by_hand(word[code == k], 1, np.full((1, 3), 1 / 3), 2)
        np.testing.assert_allclose(model.means_[k], theta[0, :2], rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_levels_in_another_order_give_the_same_answers(family):
    X, y = some_data()
    X = holed(X)
    model = SharedKernelClassifier.prbf(4, covariance_type=family, indicators=GROUPS, random_state=0, tol=1e-9, max_iter=1000)
    first = model.fit(X, y).predict_proba(X)
    # places and owners are given, so that both start alike
    start = {"means_init": model.means_, "mixing_init": model.mixing_, "owners": model.owners_}
    order = [0, 3, 1, 2, 4, 5]
    again = model.set_params(**start).fit(X, y).predict_proba(X)
    turned = model.set_params(**{**start, "means_init": start["means_init"][:, order]})
    np.testing.assert_allclose(
        turned.fit(X[:, order], y).predict_proba(X[:, order]), again, atol=1e-3
    )  # both stop a little before the top
    assert np.abs(first - again).max() < 0.2


def test_groups_are_found():
    X, _ = some_data()
    assert indicator_groups(X) == (-1, 0, 0, 0, -1, 1)
    assert indicator_groups(holed(X)) == (-1, 0, 0, 0, -1, 1)
    assert indicator_groups(np.array([[1.0, 1, 0], [0, 1, 1]])) == (0, 1, 2)  # two at once are two words
    assert indicator_groups(X[:, [0, 4]]) == (-1, -1)


def test_words_travel_in_model_files_and_are_drawn_and_filled(tmp_path):
    X, y = some_data()
    model = SharedKernelClassifier.prbf(4, covariance_type="full", indicators="auto", random_state=0).fit(holed(X), y)
    kernelpool.save(model, tmp_path / "m.safetensors")
    again = kernelpool.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(holed(X)), model.predict_proba(holed(X)))
    drawn, _ = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), (model.mixing_ @ model.class_prior_) @ model.means_, atol=0.03)
    assert set(np.unique(drawn[:, [1, 2, 3, 5]])) == {0.0, 1.0}
    assert drawn[:, 1:4].sum(axis=1).max() == 1
    row = np.array([[X[0, 0], np.nan, np.nan, np.nan, X[0, 4], 1.0]])
    expected = model.impute(row)[0]
    filled = model.impute(np.repeat(row, 5000, axis=0), n_draws=1, random_state=0)[0]
    np.testing.assert_allclose(filled.mean(axis=0), expected, atol=0.03)
    levels = np.repeat(X[:1], 3, axis=0)
    levels[:, 1:4], levels[:, 5] = np.eye(3), 1
    density = np.exp(model.score_samples(levels))
    rest = np.exp(model.score_samples(np.array([[*X[0, :1], 0, 0, 0, X[0, 4], 1.0]])))
    np.testing.assert_allclose(expected[1:4], density / (density.sum() + rest), rtol=1e-8)


def test_the_marginal_of_numbers_and_of_words():
    X, y = some_data()
    model = SharedKernelClassifier.prbf(4, covariance_type="full", indicators=GROUPS, random_state=0).fit(X, y)
    gone = X.copy()
    gone[:, [1, 2, 3, 5]] = np.nan
    np.testing.assert_allclose(model.marginal([0, 4]).log_density(X[:, [0, 4]]), model.log_density(gone), rtol=1e-9, atol=1e-9)
    gone = X.copy()
    gone[:, [0]] = np.nan
    rest = [1, 2, 3, 4, 5]
    np.testing.assert_allclose(model.marginal(rest).log_density(X[:, rest]), model.log_density(gone), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"split_by_class": True}, "split_by_class=True is for numbers alone"),
        ({"overlap_penalty": 3.0}, "overlap_penalty is for numbers alone"),
        ({"indicators": [[1, 2], [2]]}, "each in one list at most"),
        ({"indicators": [[0]]}, "feature 0 of X does not"),
    ],
)
def test_what_words_cannot_do_yet_is_refused(setting, match):
    X, y = some_data()
    with pytest.raises(KernelpoolError, match=match):
        SharedKernelClassifier.prbf(4, **{"indicators": GROUPS, **setting}).fit(X, y)


@pytest.mark.filterwarnings("ignore::kernelpool.errors.StarvedKernelWarning")
@pytest.mark.parametrize("family", ["spherical", "full", "tied"])
def test_kernels_of_words_alone_have_no_shape(family, tmp_path):
    X, y = some_data()
    words = X[:, [1, 2, 3, 5]]
    expected = SharedKernelClassifier.prbf(4, indicators="auto", covariance_type="diag", random_state=0).fit(words, y)
    found = SharedKernelClassifier.prbf(4, indicators="auto", covariance_type=family, random_state=0).fit(words, y)
    assert found.covariance_type_ == "diag"
    kernelpool.save(found, tmp_path / "words.safetensors")
    np.testing.assert_array_equal(
        kernelpool.load(tmp_path / "words.safetensors").predict_proba(words), found.predict_proba(words)
    )
    np.testing.assert_array_equal(found.predict_proba(words), expected.predict_proba(words))


def test_indicators_as_words_beat_indicators_as_numbers():
    X, y = some_data(2000)
    settings = {"n_kernels": 4, "covariance_type": "diag", "random_state": 0}
    as_words = SharedKernelClassifier.prbf(**settings, indicators="auto").fit(X[::2], y[::2])
    as_numbers = SharedKernelClassifier.prbf(**settings).fit(X[::2], y[::2])
    assert as_words.score(X[1::2], y[1::2]) > as_numbers.score(X[1::2], y[1::2])


def test_gradients_of_words_and_numbers_are_differences():
    """The conditional likelihood of a network over words, rows with holes included, against central differences."""
    X, y = some_data(60)
    X, codes = holed(X), (y == "b").astype(int)
    groups = (-1, 0, 0, 0, -1, 1)
    kernel = family_for("full", np.full(6, 1e-9), groups)
    model = SharedKernelClassifier.prbf(3, covariance_type="full", indicators=GROUPS, random_state=0).fit(X, y)
    network = SharedKernel(kernel, np.ones((3, 2)))
    rows = as_rows(X, codes, holes=True, n_jobs=1)
    params = Params(Kernels(model.means_, model.covariances_), model.mixing_, model.class_prior_)
    start = network.to_vector(params)
    slope, _ = network.gradient(rows, network.from_vector(start, params))
    for i in range(len(start)):
        step = np.zeros_like(start)
        step[i] = 1e-5
        ends = [network.gradient(rows, network.from_vector(start + sign * step, params))[1] for sign in (1, -1)]
        np.testing.assert_allclose(slope[i], (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_tempered_kernels_are_powers(family):
    X, y = some_data()
    model = SharedKernelClassifier.prbf(3, covariance_type=family, indicators=GROUPS, random_state=0).fit(X, y)
    kernel = family_for(family, np.full(6, 1e-9), (-1, 0, 0, 0, -1, 1))
    before = Kernels(model.means_, model.covariances_)
    after = kernel.tempered(before, 0.3)
    both = [kernel.log_density(kernel.natural_params(k, 2.2e-16), X[:50]) for k in (before, after)]
    constant = 0.3 * kernel.log_peak(before) - kernel.log_peak(after)
    np.testing.assert_allclose(0.3 * both[0], both[1] + constant[:, None], rtol=1e-8, atol=1e-8)


def test_networks_over_words_decide_and_travel(tmp_path):
    X, y = some_data(600)
    X_new, y_new = some_data(1000, seed=5)
    settings = {"n_kernels": 4, "indicators": "auto", "random_state": 0}
    deciding = SharedKernelClassifier(**settings, n_folds=2).fit(holed(X), y)
    describing = SharedKernelClassifier(**settings, training="em").fit(holed(X), y)
    assert (np.diff(describing.history_) >= -1e-10).all()  # under the prior on the numbers and on the words
    loss = [log_loss(y_new, model.predict_proba(holed(X_new))) for model in (deciding, describing)]
    assert loss[0] < loss[1] + 0.01
    kernelpool.save(deciding, tmp_path / "m.safetensors")
    again = kernelpool.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X_new), deciding.predict_proba(X_new))


def test_the_pool_tries_a_mixture_over_words_where_there_are_words():
    X, y = some_data(300)
    model = PooledClassifier(budget="fast", n_folds=2, random_state=0).fit(X, y)
    assert "mixture over words" in model.trials_["name"].tolist()
    numbers = PooledClassifier(budget="fast", n_folds=2, random_state=0).fit(X[:, [0, 4]], y)
    assert "mixture over words" not in numbers.trials_["name"].tolist()
    assert model.score(X, y) > numbers.score(X[:, [0, 4]], y)
    heard = np.flatnonzero(model.density_weights_)
    assert not any(hasattr(model.networks_[i], "indicator_groups_") for i in heard)
    assert np.isfinite(model.predict_proba(holed(X))).all()
