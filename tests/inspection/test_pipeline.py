"""The model inside pipelines, searches and refusals, and what its features are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.inspection import Inside, innermost

MODEL = SharedKernelClassifier.prbf(2, max_iter=5, tol=1, random_state=0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 3)) * [1, 10, 100] + [5, 0, -5]
    return pd.DataFrame(numbers, columns=["a", "b", "c"]), (numbers[:, 0] > 5).astype(int)


def test_the_model_is_found_inside_everything(rows):
    x, y = rows
    search = GridSearchCV(MODEL, {"n_kernels": [2, 3]}, cv=2)
    inner = FrozenEstimator(make_pipeline(StandardScaler(), search).fit(x.to_numpy(), y))
    outer = RejectClassifier(make_pipeline(MinMaxScaler(), inner), ambiguity=0.1).fit(x, y)
    found = Inside(outer, x)
    assert type(found.model) is type(innermost(outer)) is SharedKernelClassifier
    kinds = ["RejectClassifier", "Pipeline", "FrozenEstimator", "Pipeline", "GridSearchCV"]
    assert [type(wrapper).__name__ for wrapper in found.wrappers] == kinds
    assert [type(step).__name__ for step in found.steps] == ["MinMaxScaler", "StandardScaler"]
    assert (found.features, found.made) == (["a", "b", "c"], False)
    np.testing.assert_allclose(found.rows(x), x)


def test_features_that_a_transformer_makes_have_its_names(rows):
    pipeline = make_pipeline(StandardScaler(), PCA(2), MODEL)
    assert innermost(pipeline) is MODEL
    found = Inside(pipeline.fit(*rows), rows[0])
    assert (found.features, found.made) == (["pca0", "pca1"], True)


def test_a_model_of_categories_is_one_of_codes(rows):
    x, y = rows[0].assign(plan=["no", "yes"] * 40), rows[1]
    model = SharedKernelClassifier.prbf(2, max_iter=5, tol=1, random_state=0).fit(x, y)
    found = Inside(model)
    assert [v if v is None else v.tolist() for v in found.categories] == [
        *[None] * 3,
        ["no", "yes"],
    ]
    assert found.transform(x)[:2, 3].tolist() == [0, 1]
    np.testing.assert_array_equal(
        found.model.predict_proba(found.transform(x)), model.predict_proba(x)
    )
