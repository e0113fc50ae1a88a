"""Settings chosen on held-out rows."""

import numpy as np
import pytest

from kernelpool import SharedKernelClassifier, Start
from kernelpool.datasets import make_clouds
from kernelpool.mixtures import search

EM = {"training": "em", "random_state": 0}


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(500, random_state=0)


@pytest.fixture(scope="module")
def chosen(clouds):
    return SharedKernelClassifier.auto(**EM).fit(*clouds)


def test_the_table_holds_the_choice_and_what_it_was_chosen_from(chosen):
    table = chosen.selection_
    (i,) = np.flatnonzero(table["chosen"])
    expected = chosen.n_kernels_, chosen.sharing_degree_, chosen.overlap_
    assert (table["n_kernels"][i], table["sharing"][i], table["overlap"][i]) == expected
    assert table["covariance_type"][i] == chosen.training_type_
    assert set(table["covariance_type"]) == {"full", "diag", "tied", "spherical"}
    # it is as good as the best by a standard error
    assert table["behind"][i] <= table["behind_error"][i]
    assert table["behind"].min() == 0


def test_a_network_of_the_chosen_settings_is_the_same(chosen, clouds):
    table = chosen.selection_
    (i,) = np.flatnonzero(table["chosen"])
    again = SharedKernelClassifier(
        np.bincount(chosen.owners_).tolist(),
        covariance_type=chosen.training_type_,
        sharing=chosen.sharing_degree_,
        kernel_prior={"none": None}.get(table["kernel_prior"][i], "conjugate"),
        overlap=chosen.overlap_,
        **EM,
    ).fit(*clouds)
    np.testing.assert_allclose(again.means_, chosen.means_)


def test_what_is_given_is_not_chosen(clouds):
    model = SharedKernelClassifier(
        [2, 3], covariance_type="diag", sharing="auto", overlap=5, **EM
    ).fit(*clouds)
    table = model.selection_
    assert set(table["n_kernels"]) == {5}
    assert set(table["covariance_type"]) == {"diag"}
    assert set(table["overlap"]) == {5}
    assert set(table["sharing"]) <= {0.1, *search.GRIDS["sharing"]}
    learned = SharedKernelClassifier("auto", sharing="learned", **EM).fit(*clouds)
    assert learned.sharing_.sum(axis=1) == pytest.approx(1)


def test_order_weights_and_units_change_nothing(clouds, chosen):
    X, y = clouds
    order = np.random.default_rng(0).permutation(len(y))
    other = SharedKernelClassifier.auto(**EM).fit(1000 * X[order] + 7, y[order])
    assert other.n_kernels_ == chosen.n_kernels_
    np.testing.assert_allclose(
        other.selection_["tempered_loss"], chosen.selection_["tempered_loss"], rtol=1e-6
    )


def test_a_warm_start_keeps_the_choice(clouds):
    model = SharedKernelClassifier.auto(warm_start=True, **EM).fit(*clouds)
    before = model.selection_
    objective = model.objective_
    model.fit(*clouds)
    assert model.selection_ is before
    assert model.objective_ >= objective - 1e-9


def test_two_rows_a_class_and_categories():
    X = np.array([[0.0, 1], [0.1, 2], [5, 1], [5.1, 2]])
    model = SharedKernelClassifier.auto(**EM).fit(X, [0, 0, 1, 1])
    assert model.predict(X).tolist() == [0, 0, 1, 1]


def test_an_interrupted_search_fits_the_best_so_far(clouds, monkeypatch):
    calls = []
    run = search.MixtureTraining.run

    def interrupted(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 10:  # three folds each
            raise KeyboardInterrupt
        return run(self, *args, **kwargs)

    monkeypatch.setattr(search.MixtureTraining, "run", interrupted)
    model = SharedKernelClassifier.auto(**EM)
    with pytest.raises(KeyboardInterrupt, match="the best so far was fitted to all rows"):
        model.fit(*clouds)
    assert model.score(*clouds) > 0.7
    assert len(model.selection_["chosen"]) == 3


@pytest.mark.parametrize("start", [{"means": np.zeros((2, 2))}, {"owners": [0, 1]}])
def test_first_parameters_are_refused(clouds, start):
    with pytest.raises(ValueError, match=f"take no {next(iter(start))}"):
        SharedKernelClassifier("auto", init=Start(**start), **EM).fit(*clouds)
