"""Choices on held-out rows: against independent computations, on problems whose answer is known, and on awkward data."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import CollapsedKernelError, StarvedKernelWarning
from kernelpool.networks import shared_kernel
from kernelpool.training.candidates import Candidate, CandidateFits
from kernelpool.training.config import FitConfig, KernelConfig, SharedKernelConfig, StartConfig
from kernelpool.training.held_out import Loss, draw_rows, held_out_loss, stratified_folds
from kernelpool.training.prepare import training_data
from kernelpool.training.search import DECIDING_SWEEPS, Search, resolve_auto

SMALL = {"max_iter": 30, "tol": 1e-3}


def crossed(n=200, seed=0):
    """Two classes of one center whose features are correlated in opposite ways."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    x = rng.normal(size=(n, 2))
    x[:, 1] = 0.95 * np.where(y == 0, 1, -1) * x[:, 0] + np.sqrt(1 - 0.95**2) * x[:, 1]
    return x, y


def chessboard(n=600, seed=0):
    """Class 0 in three round clouds, class 1 in two between them, in a row."""
    rng = np.random.default_rng(seed)
    cell = rng.integers(5, size=n)
    return np.column_stack(
        [2 * cell + 0.25 * rng.normal(size=n), 0.25 * rng.normal(size=n)]
    ), cell % 2


def waveform(n, seed):
    """Breiman, Friedman, Olshen & Stone (1984): each class mixes two of three triangular waves; 21 noisy features."""
    rng = np.random.default_rng(seed)
    waves = np.maximum(6 - np.abs(np.arange(1, 22) - np.array([[7], [15], [11]])), 0)
    y, share = rng.integers(3, size=n), rng.random((n, 1))
    first, second = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    return share * waves[first] + (1 - share) * waves[second] + rng.normal(size=(n, 21)), y


@parametrize_with_checks([SharedKernelClassifier.prbf("auto", random_state=0, tol=1e-2)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([SharedKernelClassifier.auto(random_state=0)])
def test_scikit_learns_checks_of_the_recommended_setting(estimator, check):
    check(estimator)


# -- against independent computations -----------------------------------------------------------------------------


def gaussians(x, code, family):
    """Means and covariances of one Gaussian a class, by NumPy."""
    mean = np.stack([x[code == k].mean(axis=0) for k in range(code.max() + 1)])
    full = np.stack([np.cov(x[code == k].T, bias=True) for k in range(len(mean))])
    share = np.bincount(code) / len(code)
    return mean, {
        "full": full,
        "diag": np.stack([np.diag(np.diag(c)) for c in full]),
        "spherical": np.stack([np.eye(len(c)) * np.trace(c) / len(c) for c in full]),
        "tied": np.stack([np.einsum("k,kab->ab", share, full)] * len(mean)),
    }[family]


def test_held_out_losses_are_those_of_gaussians_fitted_without_the_fold(blobs):
    x, y = blobs
    model = SharedKernelClassifier.prbf(
        [1, 1, 1], covariance_type="auto", sharing=0, random_state=3
    ).fit(x, y)
    tried = model.selection_
    assert tried["covariance_type"].tolist() == ["tied", "full", "diag", "spherical"]
    seed = int(np.random.RandomState(3).randint(2**31))
    rows = draw_rows(training_data(model, x, y, None, None, 1.0, None), seed)
    fold = stratified_folds(rows.code, 5, key=rows.key, weight=rows.weight)
    assert sorted(map(tuple, rows.x)) == sorted(map(tuple, x))
    joints = []
    for i, family in enumerate(tried["covariance_type"]):
        joint = np.empty((len(x), 3))
        for f in range(5):
            train = fold != f
            mean, covariance = gaussians(rows.x[train], rows.code[train], family)
            prior = np.bincount(rows.code[train]) / train.sum()
            for k in range(3):
                joint[~train, k] = multivariate_normal(mean[k], covariance[k]).logpdf(
                    rows.x[~train]
                ) + np.log(prior[k])
        joints.append(joint)
        judged = (
            fold < tried["n_folds"][i]
        )  # those that were clearly behind are judged on the first folds alone
        joint, code = joint[judged], rows.code[judged]
        chance = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
        assert tried["log_loss"][i] == pytest.approx(log_loss(code, chance), abs=1e-6)
        assert tried["error"][i] == pytest.approx(np.mean(chance.argmax(axis=1) != code))
        # the temperature by brute force
        betas = np.geomspace(0.2, 2, 400)
        scaled = [b * joint - np.logaddexp.reduce(b * joint, axis=1)[:, None] for b in betas]
        assert tried["tempered_loss"][i] == pytest.approx(
            min(-s[np.arange(len(code)), code].mean() for s in scaled), abs=1e-4
        )
    all_folds = tried["n_folds"] == 5
    assert all_folds.any()
    best = int(np.argmin(np.where(all_folds, tried["tempered_loss"], np.inf)))
    for i in range(4):
        judged = fold < tried["n_folds"][i]
        loss, lowest = (
            held_out_loss(joints[j][judged], rows.code[judged], rows.weight[judged])
            for j in (i, best)
        )
        difference = loss.tempered - lowest.tempered
        assert tried["behind"][i] == pytest.approx(difference.mean(), abs=1e-6)
        assert tried["behind_error"][i] == pytest.approx(
            difference.std() / np.sqrt(judged.sum()), abs=1e-5
        )
        assert all_folds[i] or tried["behind"][i] > tried["behind_error"][i]
    chosen = int(np.flatnonzero(tried["chosen"])[0])
    assert all_folds[chosen]
    assert tried["behind"][chosen] <= tried["behind_error"][chosen]
    assert model.covariance_type_ == tried["covariance_type"][chosen]


def test_the_network_is_the_chosen_one_trained_on_all_rows():
    x, y = crossed()
    auto = SharedKernelClassifier.prbf(
        2, covariance_type="auto", sharing="auto", overlap_penalty="auto", random_state=0
    ).fit(x, y)
    given = SharedKernelClassifier.prbf(
        2,
        covariance_type=auto.covariance_type_,
        sharing=auto.sharing_degree_,
        overlap_penalty=auto.overlap_penalty_,
        random_state=0,
    ).fit(x, y)
    np.testing.assert_allclose(
        np.sort(auto.means_, axis=0), np.sort(given.means_, axis=0), atol=1e-3
    )
    assert auto.objective_ == pytest.approx(given.objective_, abs=1e-4)
    assert auto.n_kernels == 2  # parameters stay what the user gave
    assert (auto.covariance_type, auto.sharing, auto.overlap_penalty) == ("auto", "auto", "auto")


# -- problems whose answer is known -------------------------------------------------------------------------------


def test_correlations_ask_for_full_kernels():
    x, y = crossed()
    model = SharedKernelClassifier.prbf(2, covariance_type="auto", sharing=0, random_state=0).fit(
        x, y
    )
    assert model.covariance_type_ == "full"
    test = crossed(4000, seed=1)
    # Bayes: the sign of x1 x2; P(wrong) = 1/2 - arcsin(0.95) / pi = 0.101
    assert 1 - model.score(*test) == pytest.approx(0.5 - np.arcsin(0.95) / np.pi, abs=0.02)


def test_waveforms_are_told_apart_by_matrices():
    # the book gives a Bayes error of 14 %
    x, y = waveform(1000, seed=0)
    model = SharedKernelClassifier.prbf(3, covariance_type="auto", random_state=0).fit(x, y)
    assert model.covariance_type_ in ("full", "tied")
    assert 1 - model.score(*waveform(2000, seed=1)) < 0.18


def test_units_of_features_do_not_matter_to_the_choice():
    x, y = crossed(100)
    unit = np.array([1e-3, 1e4])
    near = SharedKernelClassifier.prbf(
        "auto", covariance_type="auto", sharing=0.1, random_state=0, **SMALL
    )
    expected = near.fit(x, y).predict_proba(x)
    np.testing.assert_allclose(near.fit(x * unit, y).predict_proba(x * unit), expected, atol=0.05)


def test_growing_stops_at_as_many_kernels_as_the_classes_need():
    # two round kernels cut the clouds of class 1 out of a wide one of class 0: five would be one a cloud, three are enough
    x, y = chessboard()
    model = SharedKernelClassifier.prbf("auto", sharing=0.1, random_state=0).fit(x, y)
    assert 3 <= model.n_kernels_ <= 5
    assert len(model.means_) == model.n_kernels_
    assert model.score(*chessboard(seed=1)) > 0.97
    by_number = dict(zip(model.selection_["n_kernels"], model.selection_["error"], strict=True))
    assert by_number[2] > 0.2  # two round kernels cannot do it
    assert max(by_number) < 20  # 600 rows would allow 120; it has been seen that more bring nothing


def test_growing_finds_the_parts_of_clouds():
    # class 0 has three parts, class 1 one, all with axes along the features; the best possible error is 9.654 %
    x, y = make_clouds(2000, random_state=0)
    model = SharedKernelClassifier.prbf(
        "auto", covariance_type="auto", sharing=0.1, random_state=0
    ).fit(x, y)
    assert model.covariance_type_ in ("diag", "full")
    assert 4 <= model.n_kernels_ <= 8
    assert np.bincount(model.owners_)[0] >= 3
    assert (
        model.history_[0] > model.objective_ - 0.01
    )  # the last training starts from what was grown
    assert 1 - model.score(*make_clouds(20_000, random_state=1)) == pytest.approx(0.0965, abs=0.007)


def test_kernels_are_added_where_classes_are_mixed_up_not_where_rows_are_many():
    rng = np.random.default_rng(0)
    # class 0: 400 rows in two tight clouds far from everything, and 60 rows on both sides of class 1
    lonely = rng.normal(size=(400, 2)) * 0.1 + np.where(
        np.arange(400)[:, None] < 200, [20, 0], [20, 5]
    )
    around = rng.normal(size=(60, 2)) * 0.3 + np.where(np.arange(60)[:, None] < 30, [-2, 0], [2, 0])
    between = rng.normal(size=(60, 2)) * 0.3
    x, y = np.concatenate([lonely, around, between]), np.repeat([0, 1], [460, 60])
    model = SharedKernelClassifier.prbf("auto", sharing=0.1, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.99
    near = np.abs(model.means_[:, 0]) < 3
    assert near.sum() >= 3  # both sides and the middle
    assert (~near).sum() <= near.sum()


def test_classes_of_one_density_share():
    degrees, gains = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
        model = SharedKernelClassifier.prbf(6, sharing="auto", random_state=0, **SMALL).fit(x, y)
        tried = model.selection_
        assert tried["sharing"][tried["chosen"]] == model.sharing_degree_ == model.sharing_.min()
        assert set(tried["sharing"]) <= {0, 0.1, 0.25, 0.5, 0.75, 1}
        loss = dict(zip(tried["sharing"], tried["log_loss"], strict=True))
        if tried["n_folds"][tried["sharing"] == 0] == 5:
            gains.append(loss[0] - loss[model.sharing_degree_])
        degrees.append(model.sharing_degree_)
    assert (
        np.mean(degrees) > 0.6
    )  # a degree drawn at random is 0.43; by chance the classes of some sets are not alike
    assert len(gains) > 2
    assert np.mean(gains) > 0  # separate mixtures see differences that are not there


def test_sharing_can_be_opened_again():
    # EM leaves weights at zero that are zero: two classes of one density, seen as separate, must be able to share
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    model = SharedKernelClassifier.prbf([1, 1], random_state=0)
    rows = draw_rows(data := training_data(model, x, y, None, None, 1.0, None), 0)
    config = SharedKernelConfig(start=StartConfig([1, 1]), fit=FitConfig(20, 1e-4))
    fits = CandidateFits(config, data, rows, rows.where(rows.code == 0))
    alone, shared = Candidate("diag", 0, 0.0, 0.0), Candidate("diag", 0, 1.0, 0.0)
    fits.begin(alone)
    np.testing.assert_array_equal(fits.params[alone].mixing, np.eye(2))
    fits.change(shared, alone)
    assert fits.params[shared].mixing.min() > 0.02
    fits.change(alone, shared)
    np.testing.assert_array_equal(fits.params[alone].mixing, np.eye(2))


def test_penalty_is_chosen_from_the_papers_range():
    x, y = chessboard(200)
    model = SharedKernelClassifier.prbf(4, overlap_penalty="auto", random_state=0).fit(x, y)
    tried = model.selection_
    assert {0, 5} <= set(tried["overlap_penalty"]) <= {0, 5, 20}
    # after what changes nothing in the first fold, or is clearly behind, nothing stronger is tried
    given_up = tried["n_folds"][tried["overlap_penalty"] == 5] == 1
    assert not given_up or 20 not in tried["overlap_penalty"]
    assert tried["overlap_penalty"][tried["chosen"]].tolist() == [model.overlap_penalty_]
    assert tried["behind"][tried["chosen"]] <= tried["behind_error"][tried["chosen"]]
    given = SharedKernelClassifier.prbf(
        4, overlap_penalty=model.overlap_penalty_, random_state=0
    ).fit(x, y)
    assert model.objective_ == pytest.approx(given.objective_, abs=1e-3)
    np.testing.assert_allclose(model.mixing_.sum(axis=0), 1)


@pytest.mark.parametrize(
    ("n_kernels", "ahead", "given_up"), [(5, 0.0, False), (6, 0.0, True), (6, 0.7, False)]
)
def test_a_family_is_given_up_at_twice_the_numbers_of_a_better_one(n_kernels, ahead, given_up):
    # two full kernels in the plane are 2 (2 + 3) = 10 numbers, n diagonal ones are 4 n; a difference of 1 has an error of 0.2
    full, diag = Candidate("full", 0, 0.1, 0.0), Candidate("diag", 1, 0.1, 0.0)
    wave = np.resize([2.0, -2.0], 100)
    worse = Loss(1 - ahead + wave, 1 - ahead + wave, np.zeros(100, bool), 1.0, np.ones(100))
    best = Loss(np.zeros(100), np.zeros(100), np.zeros(100, bool), 1.0, np.ones(100))
    search = object.__new__(Search)
    search.data = SimpleNamespace(rows=SimpleNamespace(n_features=2))
    search.folds = [
        SimpleNamespace(owners={full.size_key: np.zeros(2), diag.size_key: np.zeros(n_kernels)})
    ]
    search.tried = {full: {1: best}, diag: {1: worse}}
    assert search._hopeless(diag) == given_up


def test_what_is_clearly_behind_in_one_fold_is_not_trained_on_the_others():
    # both classes have one mean and the same variances: without correlations of their own nothing tells them apart
    x, y = crossed(600)
    model = SharedKernelClassifier.prbf(2, covariance_type="auto", sharing=0)
    data, said = training_data(model, x, y, None, None, 1.0, None), []
    config = SharedKernelConfig(
        start=StartConfig(2), kernel=KernelConfig("auto"), fit=FitConfig(20, 1e-4), sharing=0.0
    )
    search = Search(config, data, said.append)
    chosen = search.run()
    assert chosen.covariance_type == "full"
    assert [{candidate.covariance_type for candidate in fold.params} for fold in search.folds] == [
        {"tied", "full", "diag", "spherical"},
        {"full"},
        {"full"},
    ]
    tried = search.table(chosen)
    assert tried["n_folds"].tolist() == [1, 3, 1, 1]
    np.testing.assert_allclose(tried["tempered_loss"][[0, 2, 3]], np.log(2), atol=0.03)


def test_a_search_that_is_interrupted_in_the_second_heat_keeps_who_led_in_the_first():
    x, y = chessboard(200)
    model = SharedKernelClassifier.prbf(4, covariance_type="auto", sharing=0)
    config = SharedKernelConfig(
        start=StartConfig(4), kernel=KernelConfig("auto"), fit=FitConfig(20, 1e-4), sharing=0.0
    )
    said = []

    def stop(line):
        said.append(line)
        if line.endswith("on 2 of 5 folds"):
            raise KeyboardInterrupt

    resolved = resolve_auto(config, training_data(model, x, y, None, None, 1.0, None), stop)
    assert resolved.interrupted
    tried = resolved.selection
    assert sorted(tried["n_folds"]) == [1, 1, 1, 2]
    heat = {line.split(",")[0]: float(line.split("loss ")[1].split()[0]) for line in said[:4]}
    assert resolved.config.kernel.covariance_type == min(heat, key=heat.get)


def test_networks_that_decide_go_on_from_the_grown_one_for_some_sweeps():
    x, y = chessboard(200)
    data = training_data(SharedKernelClassifier.prbf("auto"), x, y, None, None, 1.0, None)
    grown = resolve_auto(
        SharedKernelConfig(start=StartConfig("auto"), fit=FitConfig(500, 1e-5)),
        data,
        lambda _: None,
    )
    assert grown.config.fit.max_iter == 500
    assert grown.deciding == replace(
        grown.config, fit=replace(grown.config.fit, max_iter=DECIDING_SWEEPS)
    )
    placed = SharedKernelConfig(start=StartConfig(4), sharing="auto", fit=FitConfig(500, 1e-5))
    placed = resolve_auto(placed, data, lambda _: None)
    assert placed.deciding is placed.config


# -- awkward data and other parameters ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_twice_are_rows_of_weight_two_and_the_order_means_nothing():
    x, y = chessboard(100)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 3, size=len(y))
    times[:10] = 1
    # plain EM, a fixed number of sweeps: where a threshold says whether a step is taken or a fit has settled, rounding decides
    fixed = {"acceleration": None, "tol": 0.0, "max_iter": 10}
    model = SharedKernelClassifier.prbf(
        "auto", covariance_type="auto", sharing="auto", random_state=0, **fixed
    )
    weighted = model.fit(x, y, sample_weight=times)
    table, chance = weighted.selection_, weighted.predict_proba(x)
    order = rng.permutation(np.repeat(np.arange(len(y)), times))
    repeated = model.fit(x[order], y[order])
    np.testing.assert_allclose(
        repeated.selection_["tempered_loss"], table["tempered_loss"], rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(repeated.predict_proba(x), chance, atol=1e-6)


def test_classes_of_one_and_two_rows():
    x, y = chessboard(100)
    x, y = np.concatenate([x, [[30.0, 0], [0, 30], [1, 30]]]), np.concatenate([y, [2, 3, 3]])
    model = SharedKernelClassifier.auto(random_state=0, **SMALL).fit(x, y)
    assert set(model.owners_) == {0, 1, 2, 3}
    assert np.isfinite(model.predict_proba(x)).all()
    assert model.predict([[30.0, 0]]) == 2


def test_so_few_rows_that_none_can_be_held_out():
    model = SharedKernelClassifier.auto(random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    assert model.n_kernels_ == 2
    assert len(model.selection_["chosen"]) == 0
    assert model.predict([[0.1], [0.9]]).tolist() == ["a", "b"]


def test_unlabeled_rows_train_and_are_never_held_out():
    x, y = chessboard(200)
    hidden = np.where(np.arange(200) % 2, -1, y)
    model = SharedKernelClassifier.prbf(
        "auto", sharing=0.1, unlabeled=-1, random_state=0, **SMALL
    ).fit(x, hidden)
    assert model.classes_.tolist() == [0, 1]
    assert model.score(x, y) > 0.97
    data = training_data(model, x, hidden, None, -1, 1.0, None)
    rows = draw_rows(data, 0)
    assert (rows.code < 0).sum() == 100
    assert (
        stratified_folds(rows.code, 5, key=rows.key, weight=rows.weight)[rows.code < 0] == -1
    ).all()


def test_many_rows_are_sampled_with_their_classes_as_common_as_they_are():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6000, 2)), np.repeat([0, 1, -1], [4000, 500, 1500])
    model = SharedKernelClassifier.prbf(unlabeled=-1)
    rows = draw_rows(training_data(model, x, y, None, -1, 1.0, None), 0, most_rows=3000)
    assert np.bincount(rows.code + 1).tolist() == [1000, 1000, 500]
    np.testing.assert_allclose(
        np.bincount(rows.code + 1, rows.weight) / rows.weight.sum(),
        np.array([1500, 4000, 500]) / 6000,
    )
    assert rows.weight.sum() == pytest.approx(2500)


@pytest.mark.parametrize("home", ["array_api_strict", "dask"])
def test_rows_may_live_elsewhere(home):
    x, y = chessboard(200)
    model = SharedKernelClassifier.prbf(
        "auto", covariance_type="auto", sharing=0.1, random_state=0, **SMALL
    )
    expected = model.fit(x, y)
    chosen, chance = (expected.covariance_type_, expected.n_kernels_), expected.predict_proba(x)
    if home == "dask":
        da = pytest.importorskip("dask.array")
        there, labels = da.from_array(x, chunks=(70, 2)), da.from_array(y, chunks=70)
    else:
        xp = pytest.importorskip(home)
        there, labels = xp.asarray(x), xp.asarray(y)
    found = model.fit(there, labels)
    assert (found.covariance_type_, found.n_kernels_) == chosen
    np.testing.assert_allclose(np.asarray(found.predict_proba(there)), chance, atol=1e-6)


def test_what_is_given_is_not_chosen():
    x, y = chessboard(200)
    model = SharedKernelClassifier.auto(
        sharing=0.3, covariance_type="diag", overlap_penalty=5, random_state=0, **SMALL
    )
    tried = model.fit(x, y).selection_
    assert set(tried["covariance_type"]) == {"diag"}
    assert set(tried["sharing"]) == {0.3}
    assert set(tried["overlap_penalty"]) == {5}
    assert len(set(tried["n_kernels"])) > 2
    assert not hasattr(SharedKernelClassifier.prbf(4, random_state=0).fit(x, y), "selection_")


@pytest.mark.parametrize(
    "more", [{"sharing": "learned"}, {"split_by_class": True}, {"kernel_prior": "conjugate"}]
)
def test_other_choices_go_with_it(more):
    x, y = chessboard(200)
    model = SharedKernelClassifier.auto(
        **{"random_state": 0, **SMALL, "tol": 1e-2, "max_iter": 200, **more}
    ).fit(x, y)
    assert model.score(x, y) > 0.97
    if "sharing" in more:
        assert np.isnan(model.sharing_degree_)


def test_a_table_of_sharing_stays(blobs):
    x, y = blobs
    table = np.maximum(np.kron(np.eye(3), np.ones((2, 1))), 0.2)
    model = SharedKernelClassifier.prbf(
        6, covariance_type="auto", sharing=table, random_state=0
    ).fit(x, y)
    np.testing.assert_array_equal(model.sharing_, table)
    assert len(model.selection_["chosen"]) == 4


def test_warm_start_keeps_what_was_chosen():
    x, y = chessboard(200)
    model = SharedKernelClassifier.auto(random_state=0, warm_start=True, tol=1e-2).fit(x, y)
    before = (
        model.covariance_type_,
        model.sharing_degree_,
        model.overlap_penalty_,
        model.n_kernels_,
        model.objective_,
    )
    table = model.selection_
    model.set_params(tol=1e-5).fit(x, y)
    assert (
        model.covariance_type_,
        model.sharing_degree_,
        model.overlap_penalty_,
        model.n_kernels_,
    ) == before[:4]
    assert model.objective_ >= before[4]
    assert model.selection_ is table


def test_a_grown_network_is_pruned_without_a_word(monkeypatch):
    monkeypatch.setattr(shared_kernel, "STARVING", 45.0)  # kernels of fewer rows count as starved
    x, y = chessboard(200)
    with pytest.warns(StarvedKernelWarning, match="kernels lost all their rows"):
        SharedKernelClassifier.prbf(5, starving="drop", sharing=0, random_state=0).fit(x, y)
    model = SharedKernelClassifier.prbf("auto", starving="drop", sharing=0.1, random_state=0).fit(
        x, y
    )
    assert model.n_kernels_ == len(model.means_) == len(model.owners_)
    assert model.n_kernels_ < model.selection_["n_kernels"][model.selection_["chosen"]]


def test_a_callback_hears_of_the_last_training_only():
    x, y = chessboard(200)
    heard = []
    SharedKernelClassifier.prbf(
        "auto", sharing=0.1, random_state=0, callback=heard.append, **SMALL
    ).fit(x, y)
    assert [info.sweep for info in heard] == list(range(len(heard)))
    assert len({len(info.parameters["means_"]) for info in heard}) == 1


def test_verbose_tells_what_was_tried(capsys):
    x, y = chessboard(100)
    model = SharedKernelClassifier.prbf(
        4, covariance_type="auto", sharing=0, verbose=1, random_state=0, **SMALL
    ).fit(x, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("auto:")]
    tried = model.selection_
    assert len(tried["chosen"]) == 4
    assert [line.split()[1] for line in lines[:4]] == [
        f"{family}," for family in tried["covariance_type"]
    ]  # all on one fold
    assert all(line.endswith("on 1 of 5 folds") for line in lines[:4])
    assert len(lines) == tried["n_folds"].sum()  # a line for every fold more
    for family, loss, n_folds in zip(
        tried["covariance_type"], tried["tempered_loss"], tried["n_folds"], strict=True
    ):
        last = [
            line
            for line in lines
            if line.startswith(f"auto: {family}, 4 kernels, sharing 0, penalty 0")
        ][-1]
        assert f"held-out loss {loss:.4f} tempered" in last
        assert last.endswith(f"on {n_folds} of 5 folds")


def test_a_seed_gives_the_same_choice_again():
    x, y = make_clouds(300, random_state=0)
    model = SharedKernelClassifier.prbf("auto", sharing="auto", random_state=5, **SMALL)
    first = model.fit(x, y).selection_["tempered_loss"]
    np.testing.assert_array_equal(model.fit(x, y).selection_["tempered_loss"], first)
    other = model.set_params(random_state=6).fit(x, y).selection_["tempered_loss"]
    assert other[0] != first[0]
    placed = SharedKernelClassifier.prbf(
        6, init="random", covariance_type="auto", random_state=5, **SMALL
    )
    first = placed.fit(x, y).selection_["tempered_loss"]
    np.testing.assert_array_equal(placed.fit(x, y).selection_["tempered_loss"], first)


# -- errors -------------------------------------------------------------------------------------------------------

X, Y = make_clouds(100, random_state=0)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_kernels": "auto", "owners": [0, 1]}, "n_kernels='auto' places the kernels itself and takes no owners"),
        ({"n_kernels": "auto", "means_init": X[:2]}, "takes no means_init"),
        ({"n_kernels": "auto", "mixing_init": np.eye(2)}, "takes no mixing_init"),
        ({"n_kernels": "auto", "sharing": np.ones((2, 2))}, "n_kernels='auto' takes no table of sharing"),
        ({"n_kernels": 2, "covariance_type": "auto", "covariances_init": [1, 1]}, "='auto' takes no covariances_init"),
        ({"n_kernels": "many"}, "n_kernels"),
        ({"sharing": "much"}, "sharing"),
        ({"overlap_penalty": "much"}, "overlap_penalty"),
        ({"n_kernels": [1, 2, 3], "sharing": "auto"}, "n_kernels has 3 entries for 2 classes"),
    ],
)  # fmt: skip
def test_fit_refuses(parameters, match):
    with pytest.raises(ValueError, match=match):
        SharedKernelClassifier.prbf(**parameters).fit(X, Y)


def test_families_that_collapse_are_passed_over():
    line = np.repeat(X[:, :1], 2, axis=1) * [
        1,
        -1,
    ]  # no full matrix fits a line, a round kernel does
    model = SharedKernelClassifier.auto(random_state=0, covariance_floor=0, **SMALL).fit(line, Y)
    assert set(model.selection_["covariance_type"]) == {"spherical", "diag"}
    with pytest.raises(
        CollapsedKernelError, match="no width left along feature 0"
    ):  # nor any family a point
        SharedKernelClassifier.prbf(2, covariance_type="auto", covariance_floor=0).fit(
            np.ones_like(X), Y
        )


@pytest.mark.parametrize("n_kernels", [90, [45, 45]])
def test_as_many_kernels_as_rows_can_be_judged_with_fewer(n_kernels):
    model = SharedKernelClassifier.prbf(n_kernels, sharing="auto", random_state=0, **SMALL).fit(
        X, Y
    )
    assert len(model.selection_["chosen"]) == 6


def test_the_prior_is_tried_and_kept_where_rows_are_few():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = rng.normal(size=(120, 30)) @ rng.normal(size=(30, 30)) + 4 * rng.normal(size=(3, 30))[y]
    few = SharedKernelClassifier.prbf(
        3, covariance_type="full", sharing=0, kernel_prior="auto", random_state=0
    ).fit(x, y)
    assert few.kernel_prior_ == "conjugate"
    assert few.selection_["kernel_prior"].tolist() == [
        "conjugate"
    ]  # 40 rows a kernel, 30 features: none other is tried
    x, y = chessboard(400)
    many = SharedKernelClassifier.prbf(4, sharing=0, kernel_prior="auto", random_state=0).fit(x, y)
    assert many.selection_["kernel_prior"].tolist() == ["conjugate", "none"]
    losses = many.selection_["tempered_loss"]
    assert many.kernel_prior_ in (None, "conjugate")
    assert np.isfinite(losses).all()
    given = SharedKernelClassifier.prbf(
        4, sharing=0, kernel_prior=many.kernel_prior_, random_state=0
    ).fit(x, y)
    np.testing.assert_allclose(many.predict_proba(x), given.predict_proba(x), atol=0.05)


def test_mixtures_of_many_dimensions_are_judged_at_a_temperature_as_low_as_they_need():
    rng = np.random.default_rng(0)
    code = np.arange(300) % 2
    log_odds = 1000 * (
        np.where(code, 1.0, -1.0) + 1.2 * rng.normal(size=300)
    )  # the right sign four times of five
    loss = held_out_loss(np.column_stack([np.zeros(300), log_odds]), code, np.ones(300))
    betas = np.geomspace(1e-4, 1, 4000)
    brute = [np.logaddexp(0, -b * np.where(code, log_odds, -log_odds)).mean() for b in betas]
    assert loss.mean(loss.tempered) == pytest.approx(min(brute), abs=1e-4)
    assert loss.beta < 1 / 64


def test_the_defaults_tell_more_than_a_shrunk_quadratic_discriminant_on_most_sets():
    ahead = []
    for load_set in (load_iris, load_wine, load_breast_cancer):
        x, y = load_set(return_X_y=True)
        x, losses = (x - x.mean(axis=0)) / x.std(axis=0), []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
            models = (
                SharedKernelClassifier(random_state=0),
                QuadraticDiscriminantAnalysis(reg_param=0.1),
            )
            losses.append(
                [
                    log_loss(y[test], model.fit(x[train], y[train]).predict_proba(x[test]))
                    for model in models
                ]
            )
        ours, theirs = np.mean(losses, axis=0)
        ahead.append(ours < theirs)
    assert sum(ahead) >= 2


def test_heavy_rows_are_no_more_rows():
    """Weights count rows, but there are never more kernels than rows that differ: the search ends whatever they weigh."""
    x, y = crossed(40)
    model = SharedKernelClassifier.auto(random_state=0, **SMALL).fit(
        x, y, sample_weight=np.full(40, 1e9)
    )
    assert max(model.selection_["n_kernels"]) <= 40
