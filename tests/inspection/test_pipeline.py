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
from kernelpool.inspection.pipeline import innermost, unwrap


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 3)) * [1, 10, 100] + [5, 0, -5]
    table = pd.DataFrame(numbers, columns=["a", "b", "c"])
    table["plan"] = np.where(rng.random(80) < 0.5, "yes", "no")
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
    assert innermost(model) is model
    assert innermost(make_pipeline(PCA(2), model)) is model


def test_features_that_a_transformer_makes_have_its_names(frame):
    x, y = frame[0][["a", "b", "c"]], frame[1]
    steps = StandardScaler(), PCA(2), SharedKernelClassifier.prbf(2, random_state=0)
    found = unwrap(make_pipeline(*steps).fit(x, y))
    assert found.names == ("pca0", "pca1")
    assert found.made


def test_a_model_of_categories_is_one_of_codes(frame):
    x, y = frame
    model = SharedKernelClassifier.prbf(2, random_state=0).fit(x, y)
    found = unwrap(model)
    assert found.categories[:3] == (None, None, None)
    assert found.categories[3].tolist() == ["no", "yes"]
    rows = found.transform(x)
    assert rows[:, 3].tolist() == (x.plan == "yes").astype(float).tolist()
    np.testing.assert_array_equal(found.inner.predict_proba(rows), model.predict_proba(x))
