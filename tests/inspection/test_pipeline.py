"""The model inside pipelines, searches and refusals, and what its features are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.inspection.pipeline import column_indices, unwrap


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 3)) * [1, 10, 100] + [5, 0, -5]
    table = pd.DataFrame(numbers, columns=["a", "b", "c"])
    table["word"] = np.where(rng.random(80) < 0.5, "yes", "no")
    return table, (numbers[:, 0] > 5).astype(int)


def test_the_model_is_found_inside_everything(frame):
    x, y = frame[0][["a", "b", "c"]], frame[1]
    inner = make_pipeline(
        StandardScaler(),
        GridSearchCV(SharedKernelClassifier.prbf(2, random_state=0), {"n_kernels": [2, 3]}, cv=2),
    )
    outer = RejectClassifier(
        make_pipeline(MinMaxScaler(), FrozenEstimator(inner.fit(x.to_numpy(), y))), ambiguity=0.1
    ).fit(x, y)
    found = unwrap(outer)
    assert type(found.inner) is SharedKernelClassifier
    kinds = ["RejectClassifier", "Pipeline", "FrozenEstimator", "Pipeline", "GridSearchCV"]
    assert [type(wrapper).__name__ for wrapper in found.wrappers] == kinds
    assert [type(step).__name__ for step in found.steps] == ["MinMaxScaler", "StandardScaler"]
    assert found.names == ("a", "b", "c")
    np.testing.assert_allclose(found.scale * found.transform(x) + found.offset, x)


def test_a_bare_model_is_itself():
    model = SharedKernelClassifier.prbf()
    found = unwrap(model)
    assert (found.inner, found.wrappers, found.steps) == (model, (), [])


SELECTIONS = [
    ["c", "a"],
    [2, 0],
    [-2, 0],
    slice(0, 2),
    slice("b", "c"),
    slice(None, "b"),
    [True, False, True, False],
    make_column_selector("[ab]"),
]


@pytest.mark.parametrize("columns", SELECTIONS, ids=range(len(SELECTIONS)))
def test_columns_are_those_that_scikit_learn_takes(frame, columns):
    """Each column as the transformer passes it on, beside what is said of it."""
    x = frame[0]
    transformer = ColumnTransformer([("some", StandardScaler(), columns)]).fit(x)
    found = unwrap(
        make_pipeline(transformer, SharedKernelClassifier.prbf(2, random_state=0)).fit(x, frame[1]),
        list(x.columns),
    )
    taken = transformer.transform(x)
    assert found.names == tuple(name.split("__")[1] for name in transformer.get_feature_names_out())
    np.testing.assert_allclose(found.scale * taken + found.offset, x[list(found.names)])


def test_words_and_the_rest_keep_their_names(frame):
    x, y = frame
    transformer = make_column_transformer(
        (OneHotEncoder(), ["word"]),
        (make_pipeline(StandardScaler(), PCA(1)), ["c"]),
        remainder="passthrough",
    )
    found = unwrap(
        make_pipeline(transformer, SharedKernelClassifier.prbf(2, random_state=0)).fit(x, y)
    )
    assert found.names == ("word_no", "word_yes", "pca0", "a", "b")
    assert [feature.made for feature in found.features] == [True, True, True, False, False]


def test_one_column_may_be_named_alone():
    assert column_indices("b", 3, ["a", "b", "c"]) == [1]
    assert column_indices(-1, 3, []) == [2]
    assert column_indices([], 3, []) == []
