"""Words and missing cells in networks that are no mixtures: Parzen networks, RBF networks and neurons."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import get_tags

import kernelpool
from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    ParzenClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
)
from kernelpool.errors import KernelpoolError, UnfinishedWarning
from kernelpool.inspection.describe import describe

TOWNS = ("Athens", "Oslo", "Rome")
LEVELS = {"town": 4, "yes": 3}
"""Words of each column, and one for all others."""

KERNELS = ("gaussian", "hypersphere", "epanechnikov")


def some_table(n=300, seed=0):
    """Two numbers, a town and a yes or no, and the classes."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    numbers = rng.normal(size=(n, 2)) @ np.array([[1, 0.4], [0, 0.8]]) + 1.5 * code[:, None]
    shares = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])[code]
    town = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    yes = np.where(rng.random(n) < np.array([0.2, 0.7])[code], "yes", "no").astype(object)
    towns = np.array(TOWNS, object)[np.minimum(town, 2)]
    table = pd.DataFrame({"a": numbers[:, 0], "town": towns, "b": numbers[:, 1], "yes": yes})
    return table, np.array(["a", "b"])[code]


def holed(table, share=0.3, seed=1):
    """Cells deleted at random."""
    rng, out = np.random.default_rng(seed), table.copy()
    for name in out.columns:
        out.loc[rng.random(len(out)) < share, name] = (
            np.nan if out[name].dtype.kind == "f" else None
        )
    return out


def nothing_known(table):
    """One row of which nothing is known."""
    return pd.DataFrame(
        {name: [np.nan if table[name].dtype.kind == "f" else None] for name in table}
    )


NETWORKS = {
    "parzen": ParzenClassifier(),
    "hyperspheres": ParzenClassifier("hypersphere"),
    "reduced": ReducedParzenClassifier(30, max_sweeps=2),
    "path": RBFNetworkClassifier(40, width=2.0, ridge=0.2),
    "metric": RBFNetworkClassifier(40, width=2.0, ridge=0.2, metric="learned"),
    "em_log_link": EMLogClassifier(8, max_iter=20, temperature=1.0),
    "ridge": EMLogClassifier(
        8, training="two_stage", readout="least_squares", covariance_type="diag", temperature=1.0
    ),
    "neurons": CompetitiveNeuronsClassifier(4, max_iter=20, n_steps=5),
    "local": CompetitiveNeuronsClassifier(4, local=True, max_iter=20, n_steps=5),
}

HEIGHTS = {
    "gaussian": lambda squared: np.exp(-squared / 2),
    "hypersphere": lambda squared: np.where(squared <= 1, 1.0, 0.0),
    "epanechnikov": lambda squared: np.maximum(1 - squared, 0),
}


def heights(model, row, kernel):
    """Height of a kernel at a complete row, or at many rows that differ in their numbers, from the definition."""
    squared = 0.0
    for i, name in enumerate(["a", "town", "b", "yes"]):
        if name in LEVELS:
            words = model.categories_[i].tolist()
            code = words.index(row[name]) if row[name] in words else len(words)
            squared = squared + model.word_distance_**2 * (code != kernel[i])
        else:
            squared = squared + ((row[name] - kernel[i]) / model.scale_[i]) ** 2
    return HEIGHTS[model.kernel](squared / model.radius_**2)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_gaussian_kernel_is_a_product_with_that_of_aitchison_and_aitken(standardize):
    table, y = some_table(40)
    model = ParzenClassifier(standardize=standardize).fit(table, y)
    deviations = table[["a", "b"]].std(ddof=0) if standardize else pd.Series({"a": 1.0, "b": 1.0})
    np.testing.assert_allclose(model.scale_, [deviations["a"], 1, deviations["b"], 1])
    rows = some_table(20, seed=3)[0]
    rows.loc[0, "town"] = "Mars"
    odds = np.exp(-0.5 * (model.word_distance_ / model.radius_) ** 2)
    own = {name: 1 / (1 + (n - 1) * odds) for name, n in LEVELS.items()}  # 1 - lambda of the paper
    expected = np.zeros((len(rows), 2))
    for (n, row), (_, at, label) in itertools.product(
        rows.iterrows(), zip(range(40), table.iloc, y, strict=False)
    ):
        density = 1.0
        for name in table:
            if name in LEVELS:
                other = (1 - own[name]) / (LEVELS[name] - 1)
                density *= own[name] if row[name] == at[name] else other
            else:
                density *= norm.pdf(row[name], at[name], model.radius_ * deviations[name])
        expected[n, int(label == "b")] += density / (y == label).sum()
    np.testing.assert_allclose(model.log_density(rows), np.log(expected), rtol=1e-8)
    joint = np.log(expected * [(y == "a").mean(), (y == "b").mean()])
    odds = np.diff(joint, axis=1)[:, 0] / model.temperature_
    np.testing.assert_allclose(
        model.predict_proba(rows)[:, 1], 1 / (1 + np.exp(-odds)), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_densities_of_known_cells_are_those_of_the_definition_summed_and_integrated(kernel):
    table, y = some_table(30)
    model = ParzenClassifier(kernel, 0.7 if kernel == "gaussian" else 1.6, word_distance=1.0).fit(
        table, y
    )
    in_class = model.kernels_[model.kernel_classes_ == "a"]
    step = 0.1
    a, b = np.meshgrid(np.arange(-8, 10, step), np.arange(-8, 10, step), indexing="ij")
    towns, answers = [*TOWNS, "Mars"], ["no", "yes", "perhaps"]
    joint = {}
    for town, yes in itertools.product(towns, answers):
        at = {"a": a, "b": b, "town": town, "yes": yes}
        joint[town, yes] = sum(heights(model, at, kernel_at) for kernel_at in in_class)
    total = sum(part.sum() for part in joint.values()) * step**2
    rows, expected = [], []
    i, j = 90, 85
    for known in itertools.product([True, False], repeat=4):
        if not any(known):
            continue
        cells = {"a": a[i, j], "b": b[i, j], "town": "Oslo", "yes": "yes"}
        rows.append(
            {
                name: cells[name] if k else np.nan if name in "ab" else None
                for name, k in zip(cells, known, strict=True)
            }
        )
        found = 0.0
        for town, yes in itertools.product(
            ["Oslo"] if known[2] else towns, ["yes"] if known[3] else answers
        ):
            part = joint[town, yes]
            part = part[i : i + 1] if known[0] else part.sum(axis=0, keepdims=True) * step
            found += (part[:, j] if known[1] else part.sum(axis=1) * step)[0]
        expected.append(found / total)
    found = np.exp(model.log_density(pd.DataFrame(rows)[["a", "town", "b", "yes"]])[:, 0])
    np.testing.assert_allclose(found, expected, rtol=1e-6 if kernel == "gaussian" else 0.03)


def test_rows_apart_and_rows_with_holes_choose_the_width_by_their_known_cells():
    """The log-loss that is reported, each row left out, by a double loop over the kernels as they are."""
    table, y = some_table(40)
    gaps = holed(table)
    model = ParzenClassifier(random_state=0).fit(gaps, y)
    assert model.filled_.sum() == gaps.isna().sum().sum()
    order = np.argsort(model.kept_indices_)
    kernels, labels = model.kernels_[order], model.kernel_classes_[order]
    votes = np.zeros((40, 2))
    for i, j in itertools.product(range(40), range(40)):
        if i != j:
            known = {c: gaps.iloc[i, c] for c in range(4) if not pd.isna(gaps.iloc[i, c])}
            squared = 0.0
            for c, cell in known.items():
                words = model.categories_[c]
                away = (cell - kernels[j, c]) / model.scale_[c] if words is None else None
                squared += (
                    away**2
                    if words is None
                    else model.word_distance_**2 * (words[int(kernels[j, c])] != cell)
                )
            votes[i, int(labels[j] == "b")] += np.exp(-0.5 * squared / model.radius_**2)
    with np.errstate(divide="ignore"):
        odds = (np.log(votes[:, 1]) - np.log(votes[:, 0])) / model.temperature_
    expected = -np.logaddexp(0, -odds)
    np.testing.assert_allclose(model.leave_one_out_log_proba()[:, 1], expected, rtol=1e-6)
    right = np.where(y == "b", expected, -np.logaddexp(0, odds))
    assert -right.mean() == pytest.approx(model.radius_losses_.min(), rel=1e-4)


@pytest.mark.parametrize("model", [*NETWORKS.values()], ids=[*NETWORKS])
def test_names_and_order_of_words_mean_nothing(model):
    table, y = some_table(150)
    gaps = holed(table, 0.2)
    names = {"Athens": "z", "Oslo": "x", "Rome": "y"}
    other = gaps.assign(town=gaps["town"].map(names))
    model = clone(model).set_params(random_state=0)
    expected = [model.fit(table, y).predict_proba(rows) for rows in (table, gaps)]
    model.fit(table.assign(town=table["town"].map(names)), y)
    np.testing.assert_array_equal(
        model.predict_proba(table.assign(town=table["town"].map(names))), expected[0]
    )
    np.testing.assert_array_equal(model.predict_proba(other), expected[1])


@pytest.mark.parametrize(
    "model", [model for model in NETWORKS.values() if "missing" in model.get_params()]
)
def test_deleting_nothing_changes_nothing_to_the_last_bit(model):
    table, y = some_table(150)
    X = table[["a", "b"]].to_numpy()
    answers, model = [], clone(model)
    for missing in ("marginalize", "error"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnfinishedWarning)
            model.set_params(missing=missing, random_state=0).fit(X, y)
        answers.append(
            (model.predict_proba(X), model.log_density(X) if hasattr(model, "log_density") else 0.0)
        )
    for first, second in zip(*answers, strict=True):
        np.testing.assert_array_equal(first, second)


def test_numbers_alone_are_those_of_a_network_of_the_known_columns():
    """Of round kernels of one radius the marginal is the network of the columns that are left."""
    table, y = some_table(100)
    X, query = table[["a", "b"]].to_numpy(), some_table(30, seed=4)[0][["a", "b"]].to_numpy().copy()
    model = ParzenClassifier(radius=0.7, standardize=False).fit(X, y)
    alone = ParzenClassifier(radius=0.7, standardize=False).fit(X[:, :1], y)
    query[:, 1] = np.nan
    np.testing.assert_allclose(model.log_density(query), alone.log_density(query[:, :1]), rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(query), alone.predict_proba(query[:, :1]), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.kernel_posterior(query), alone.kernel_posterior(query[:, :1]), rtol=1e-9, atol=1e-12
    )


def test_drawn_rows_have_the_words_that_the_kernels_give_them():
    table, y = some_table(40)
    for kernel in KERNELS:
        model = ParzenClassifier(kernel, 1.6, word_distance=1.0, random_state=0).fit(table, y)
        drawn, _ = model.sample(20_000, random_state=0)
        drawn = pd.DataFrame(drawn, columns=table.columns)
        for town, yes in [("Oslo", "yes"), ("Rome", "no"), (None, "yes")]:
            # what lies in one cell of the table of words is the density of these words, numbers integrated out
            row = pd.DataFrame(
                {
                    "a": [np.nan],
                    "town": ["Mars" if town is None else town],
                    "b": [np.nan],
                    "yes": [yes],
                }
            )
            share = float(np.exp(model.score_samples(row)[0]))
            towns = drawn["town"].isna() if town is None else drawn["town"] == town
            assert (towns & (drawn["yes"] == yes)).mean() == pytest.approx(share, abs=0.012)
        # and the numbers of the rows have the mean and variance of the kernels
        numbers = drawn[["a", "b"]].astype(float)
        np.testing.assert_allclose(numbers.mean(), table[["a", "b"]].mean(), atol=0.06)


@pytest.mark.parametrize("model", [*NETWORKS.values()], ids=[*NETWORKS])
def test_networks_of_tables_travel_answer_and_explain(model, tmp_path):
    table, y = some_table(200)
    gaps = holed(table)
    model = clone(model).set_params(random_state=0)
    if "max_iter" in model.get_params():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnfinishedWarning)
            model.fit(gaps, y)
    else:
        model.fit(gaps, y)
    assert model.score(table, y) > 0.8
    assert get_tags(model).input_tags.allow_nan
    prior = (
        [(y == "a").mean(), (y == "b").mean()]
        if not hasattr(model, "class_prior_")
        else model.class_prior_
    )
    np.testing.assert_allclose(model.predict_proba(nothing_known(table))[0], prior)
    np.testing.assert_allclose(model.predict_proba(gaps).sum(axis=1), 1)
    kernelpool.save(model, tmp_path / "m.safetensors")
    again = kernelpool.load(tmp_path / "m.safetensors")
    for rows in (table, gaps, table.assign(town="Mars")):
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
        if hasattr(model, "log_density"):
            np.testing.assert_array_equal(again.log_density(rows), model.log_density(rows))
    assert describe(model).sentence
    if isinstance(model, ParzenClassifier) and model.kernel == "gaussian":
        why = model.explain(table[:1])[0]
        assert {feature.name for feature in why.features} == set(table.columns)
        assert why.log_odds == pytest.approx(
            why.prior + sum(feature.part for feature in why.features)
        )
        assert why.probability == pytest.approx(model.predict_proba(table[:1]).max())


def test_what_has_no_marginals_refuses_in_one_sentence():
    table, y = some_table(50)
    X = table[["a", "b"]].to_numpy()
    gaps = X.copy()
    gaps[3, 1] = np.nan
    for model in (
        ParzenClassifier(missing="error"),
        ParzenClassifier(metric="learned"),
        ParzenClassifier(lambda u: abs(u).max(1)),
    ):
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match="NaN"):
            model.fit(gaps, y)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(X, y).predict(gaps)
    with pytest.raises(
        KernelpoolError,
        match="columns of words, which a learned metric and a kernel that is a function do not",
    ):
        ParzenClassifier(metric="learned").fit(table, y)
    with pytest.raises(
        KernelpoolError,
        match="'town' of X holds words, and categorical_features=None takes it for numbers",
    ):
        ParzenClassifier(categorical_features=None).fit(table, y)


@pytest.mark.parametrize("name", ["path", "neurons", "local"])
def test_answers_for_known_cells_are_means_over_the_conditional_density(name, monkeypatch):
    """E[P(C|x) | known], by quadrature over the missing number, against many draws."""
    monkeypatch.setattr("kernelpool.estimators.describing.N_DRAWS", 300)
    table, y = some_table(200)
    X = table[["a", "b"]].to_numpy()
    model = clone(NETWORKS[name]).set_params(random_state=0).fit(X, y)
    grid = np.linspace(-8, 10, 3001)
    rows = np.column_stack([np.full(len(grid), 0.8), grid])
    density = np.exp(model.describing_network_.score_samples(rows))
    expected = density @ model.predict_proba(rows) / density.sum()
    np.testing.assert_allclose(model.predict_proba([[0.8, np.nan]])[0], expected, atol=0.05)


def test_words_of_a_missing_cell_are_summed_out(monkeypatch):
    monkeypatch.setattr("kernelpool.estimators.describing.N_DRAWS", 300)
    table, y = some_table(200)
    model = clone(NETWORKS["neurons"]).set_params(random_state=0).fit(table, y)
    row = table[:1]
    every = pd.concat([row.assign(town=town) for town in [*model.categories_[1], "Mars"]])
    described = model.describing_network_
    coded = np.array(
        [
            [row["a"][0], c, row["b"][0], model.categories_[3].tolist().index(row["yes"][0])]
            for c in range(4)
        ]
    )
    words = [described.categories_[3][int(coded[0, 3])]]
    rows = pd.DataFrame(
        {0: coded[:, 0], 1: [*described.categories_[1], "others"], 2: coded[:, 2], 3: words * 4}
    )
    density = np.exp(described.score_samples(rows.to_numpy(object)))
    expected = density @ model.predict_proba(every) / density.sum()
    np.testing.assert_allclose(model.predict_proba(row.assign(town=None))[0], expected, atol=0.05)


@pytest.mark.parametrize("name", ["parzen", "reduced", "path", "em_log_link", "neurons"])
def test_onnx_takes_the_words(name, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    from kernelpool.app.onnx import to_onnx

    table, y = some_table(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWarning)
        model = clone(NETWORKS[name]).set_params(random_state=0).fit(table, y)
    to_onnx(model, tmp_path / "m.onnx")
    session = ort.InferenceSession(tmp_path / "m.onnx")
    rows = table[:20].assign(town=["Mars", *table["town"][1:20]])
    feed = {}
    for entry in session.get_inputs():
        words = entry.type == "tensor(string)"
        feed[entry.name] = rows[entry.name].to_numpy(object if words else np.float32)[:, None]
    np.testing.assert_allclose(
        session.run(["probabilities"], feed)[0], model.predict_proba(rows), atol=1e-5
    )


def test_what_cannot_leave_cells_out_refuses_in_one_sentence():
    table, y = some_table(60)
    X = table[["a", "b"]].to_numpy()
    gaps = X.copy()
    gaps[3, 1] = np.nan
    for model in (
        RBFNetworkClassifier(20, missing="error"),
        CompetitiveNeuronsClassifier(2, missing="error"),
    ):
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match="NaN"):
            model.fit(gaps, y)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(X, y).predict(gaps)


def test_only_the_most_frequent_words_are_told_apart():
    rng = np.random.default_rng(0)
    words = np.array([f"w{i:03d}" for i in range(300)] * 3 + ["often"] * 100, object)
    table = pd.DataFrame({"word": rng.permutation(words), "a": rng.normal(size=len(words))})
    y = np.where(table["word"] == "often", "x", rng.choice(["x", "y"], len(words)))
    model = ParzenClassifier().fit(table, y)
    assert len(model.categories_[0]) == 255
    assert "often" in model.categories_[0].tolist()
    assert ParzenClassifier(min_frequency=50).fit(table, y).categories_[0].tolist() == ["often"]
