"""Categories beside numbers: Gaussians times tables of probabilities."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from kernelpool import SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.kernels import ProductKernels, family_for
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import as_rows

TOWNS = ("Athens", "Oslo", "Rome")


def some_table(n=400, seed=0):
    """Two numbers, a town and a yes or no, and the classes."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    numbers = rng.normal(size=(n, 2)) @ np.array([[1, 0.4], [0, 0.8]]) + 1.5 * code[:, None]
    shares = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])[code]
    town = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    yes = rng.random(n) < np.array([0.2, 0.7])[code]
    towns = np.array(TOWNS, object)[np.minimum(town, 2)]
    table = pd.DataFrame({"a": numbers[:, 0], "town": towns, "b": numbers[:, 1], "yes": yes})
    return table, np.array(["a", "b"])[code]


def with_missing(table, share=0.25, seed=1):
    """Cells deleted at random."""
    rng = np.random.default_rng(seed)
    out = table.astype({"yes": "boolean"})
    for name in out.columns:
        out.loc[rng.random(len(out)) < share, name] = (
            pd.NA if name == "yes" else None if name == "town" else np.nan
        )
    return out


def tables_of(model):
    """The probabilities of the categories of each column and of other values, (M, levels)."""
    levels = [n for n in model.columns_.levels if n]
    return np.split(model.probabilities_, np.cumsum(levels)[:-1], axis=1)


def density_by_hand(model, row):
    """p(known cells|C_k), kernel by kernel, with scipy's Gaussians."""
    at = [i for i in (0, 2) if pd.notna(row.iloc[i])]
    by_kernel = np.ones(len(model.means_))
    for j, mean in enumerate(model.means_ if at else ()):
        matrix = model.covariances_ if model.covariance_type == "tied" else model.covariances_[j]
        matrix = matrix if np.ndim(matrix) == 2 else np.diag(np.broadcast_to(matrix, 4))
        gaussian = multivariate_normal(mean[at], matrix[np.ix_(at, at)])
        by_kernel[j] = gaussian.pdf(row.iloc[at].astype(float))
    categories = [c.tolist() for c in model.columns_.categories if c is not None]
    for name, known, table in zip(("town", "yes"), categories, tables_of(model), strict=True):
        if not pd.isna(row[name]):
            value = str(row[name])
            by_kernel *= table[:, known.index(value) if value in known else -1]
    return by_kernel @ model.mixing_


def test_densities_are_products(family):
    table, y = some_table()
    incomplete = with_missing(table)
    model = SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0)
    model.fit(incomplete, y)
    categories = [c if c is None else c.tolist() for c in model.columns_.categories]
    assert categories == [None, list(TOWNS), None, ["False", "True"]]
    for table_of_column in tables_of(model):
        assert_allclose(table_of_column.sum(axis=1), 1)
    unknown = table[:1].assign(town="Mars")
    nothing = incomplete[:1].astype(object)
    nothing[:] = None
    rows = pd.concat([incomplete[:40], pd.concat([table[:5], unknown]).astype({"yes": "boolean"})])
    expected = np.log([density_by_hand(model, row) for _, row in rows.iterrows()])
    assert_allclose(model.log_density(rows), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(model.predict_proba(nothing)[0], model.class_prior_)
    assert (np.diff(model.history_) >= -1e-10).all()
    assert model.score(table, y) > 0.85


def sweeps_by_hand(codes, n_kernels, start, n_sweeps):
    """EM for a mixture of independent columns of categories with the Dirichlet prior, in loops."""
    tables = [t.copy() for t in start]
    weight = np.full(n_kernels, 1 / n_kernels)
    for _ in range(n_sweeps):
        share = np.ones((len(codes), n_kernels)) * weight
        for n, row in enumerate(codes):
            for g, level in enumerate(row):
                share[n] *= tables[g][:, level]
        share /= share.sum(axis=1, keepdims=True)
        for table, column in zip(tables, codes.T, strict=True):
            for j, level in itertools.product(range(n_kernels), range(table.shape[1])):
                table[j, level] = share[column == level, j].sum() + 1 / table.shape[1]
            table /= table.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
    return tables, weight


def test_sweeps_over_categories_are_em_by_hand():
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, 3, 200), rng.integers(0, 2, 200)])
    codes[:100, 1] = codes[:100, 0] > 0
    start = [rng.dirichlet(np.ones(4), 2), rng.dirichlet(np.ones(3), 2)]
    kernel = family_for("diag", np.zeros(2), (4, 3))
    nothing = np.zeros((2, 0))
    params = Params(
        ProductKernels(nothing, nothing, np.hstack(start)), np.full((2, 1), 0.5), np.ones(1)
    )
    network = SharedKernel(kernel, np.ones((2, 1)))
    rows = as_rows(codes.astype(float), np.zeros(200, int))
    for _ in range(5):
        params, _ = network.sweep(rows, params)
    tables, weight = sweeps_by_hand(codes, 2, start, 5)
    assert_allclose(params.kernels.probability, np.hstack(tables), rtol=1e-9)
    assert_allclose(params.mixing[:, 0], weight, rtol=1e-9)


def test_categories_are_drawn_and_imputed():
    table, y = some_table()
    model = SharedKernelClassifier.prbf(4, covariance_type="full", random_state=0).fit(
        with_missing(table), y
    )
    drawn, _ = model.sample(20_000, random_state=0)
    share = model.mixing_ @ model.class_prior_
    assert_allclose(drawn[["a", "b"]].mean(), share @ model.means_[:, [0, 2]], atol=0.03)
    known = model.probabilities_[:, :3] / model.probabilities_[:, :3].sum(axis=1, keepdims=True)
    found = [(drawn["town"] == town).mean() for town in TOWNS]
    assert_allclose(found, share @ known, atol=0.02)
    assert drawn.notna().all(axis=None)
    assert model.predict(drawn[:10]).shape == (10,)  # drawn rows are rows
    row = with_missing(table)[:1].copy()
    row.loc[:, "town"], row.loc[:, "yes"] = None, True
    density = np.exp(model.score_samples(pd.concat([row.assign(town=town) for town in TOWNS])))
    imputed = model.impute(pd.concat([row] * 5000), n_draws=1, random_state=0)[0][:, 1]
    found = [np.mean([value == town for value in imputed]) for town in TOWNS]
    assert_allclose(found, density / density.sum(), atol=0.02)
    assert sum(found) == pytest.approx(1)
    assert model.impute(row).iloc[0, 1] == TOWNS[np.argmax(density)]


def test_the_marginal_and_the_conditional_of_numbers_and_of_categories():
    table, y = some_table()
    model = SharedKernelClassifier.prbf(4, covariance_type="full", random_state=0).fit(table, y)
    cells = table.astype(object)
    for known in (["a", "b"], ["town", "b", "yes"], ["yes", "town"], ["a", "town"], ["b"]):
        rest = [name for name in table.columns if name not in known]
        gone = cells.assign(**dict.fromkeys(rest))
        density = model.log_density(gone)
        found = model.marginal(known).log_density(table[known])
        assert_allclose(found, density, rtol=1e-9, atol=1e-9)
        # p(rest|known, C) = p(all|C) / p(known|C)
        some = model.conditional(cells.iloc[0], given=known)
        assert_allclose(some.class_prior_, model.predict_proba(gone[:1])[0], rtol=1e-9)
        expected = model.log_density(table[:1]) - density[:1]
        assert_allclose(some.log_density(table[rest][:1]), expected, rtol=1e-8)


def test_gradients_of_categories_and_numbers_are_differences():
    """The conditional likelihood of a network over categories, with missing cells, against central
    differences.
    """
    table, y = some_table(60)
    table = with_missing(table)
    model = SharedKernelClassifier.prbf(3, covariance_type="full", random_state=0).fit(table, y)
    kernel = family_for("full", np.full(4, 1e-9), model.columns_.levels)
    kernels = kernel.from_arrays(model.means_, model.covariances_, model.probabilities_)
    params = Params(kernels, model.mixing_, model.class_prior_)
    x = model.columns_.encode(table)
    network = SharedKernel(kernel, np.ones((3, 2)))
    rows = as_rows(x, (y == "b").astype(int), n_jobs=1)
    start = network.to_vector(params)
    slope, _ = network.gradient(rows, network.from_vector(start, params))
    for found, step in zip(slope, 1e-5 * np.eye(len(start)), strict=True):
        ends = [
            network.gradient(rows, network.from_vector(vector, params))[1]
            for vector in (start + step, start - step)
        ]
        assert_allclose(found, (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-6)


def test_the_overlap_of_categories_is_the_distance_of_their_tables():
    """One kernel and categories alone: the Bhattacharyya distances of the tables of the classes,
    weighted by the classes.
    """
    table, y = some_table(500)
    table = table[["town", "yes"]]
    model = SharedKernelClassifier.prbf(1, random_state=0).fit(table, y)
    assert model.covariance_type_ == "diag"  # without numbers there is no shape
    with pytest.raises(KernelpoolError, match="of numbers; this model has categories besides"):
        model.subkernels(table, y)
    codes = model.columns_.encode(table).astype(int)
    expected = 0.0
    for label in ("a", "b"):
        for code, (of_all,) in zip(codes[y == label].T, tables_of(model), strict=True):
            counts = np.bincount(code, minlength=len(of_all)) + 1 / len(of_all)
            own = counts / counts.sum()
            expected -= (y == label).mean() * np.log(np.sqrt(own * of_all).sum())
    assert model.kernel_overlap(table, y)[0] == pytest.approx(expected)


def test_where_categories_are_not_taken_one_sentence_says_so():
    table, y = some_table(50)
    tensor = pytest.importorskip("torch").zeros((50, 2))
    for categorical, X, target, message in (
        (None, table, y, "'town' of X must hold numbers; row 0 holds .*categorical_features"),
        ([1], tensor, y, r"=\[1\] needs rows in NumPy or a table; encode the categories"),
    ):
        with pytest.raises(KernelpoolError, match=message):
            SharedKernelClassifier(categorical_features=categorical).fit(X, target)


def test_many_levels_take_no_array_of_rows_by_levels():
    """Ten thousand categories in 20,000 rows: an array of both would be 1.6 GB."""
    import tracemalloc

    rng = np.random.default_rng(0)
    value = rng.integers(0, 10_000, 20_000)
    y = rng.integers(0, 2, 20_000)
    table = pd.DataFrame(
        {"value": np.char.add("v", value.astype(str)), "x": rng.normal(size=20_000) + y}
    )
    tracemalloc.start()
    model = SharedKernelClassifier([1, 1], training="em", random_state=0).fit(table, y)
    probability = model.predict_proba(table)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert probability.shape == (20_000, 2)
    codes = model.columns_.encode(table[:50])[:, 0].astype(int)
    for k in range(2):
        counts = np.bincount(value[y == k], minlength=10_000)
        expected = (counts[value[:50]] + 1 / len(model.probabilities_[0])) / (counts.sum() + 1)
        found = model.probabilities_[k, codes]
        assert_allclose(found, expected, rtol=1e-8)
