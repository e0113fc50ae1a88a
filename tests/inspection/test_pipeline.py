"""The model inside pipelines, searches and refusals, and what its features are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.inspection import FittedPipeline, KernelTable, describe, innermost
from kernelpool.inspection.description import joined_tables

MODEL = SharedKernelClassifier.prbf(2, max_iter=5, tol=1, random_state=0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 3)) * [1, 10, 100] + [5, 0, -5]
    return pd.DataFrame(numbers, columns=["a", "b", "c"]), (numbers[:, 0] > 5).astype(int)


def test_the_model_is_found_inside_everything(rows):
    x, y = rows
    search = GridSearchCV(MODEL, {"n_kernels": [2, 3]}, cv=2)
    chain = make_pipeline(StandardScaler(), RobustScaler(), MaxAbsScaler(), search)
    inner = FrozenEstimator(chain.fit(x.to_numpy(), y))
    outer = RejectClassifier(make_pipeline(MinMaxScaler(), inner), ambiguity=0.1).fit(x, y)
    found = FittedPipeline(outer, x)
    assert type(found.model) is type(innermost(outer)) is SharedKernelClassifier
    kinds = ["RejectClassifier", "Pipeline", "FrozenEstimator", "Pipeline", "GridSearchCV"]
    assert [type(wrapper).__name__ for wrapper in found.wrappers] == kinds
    steps = ["MinMaxScaler", "StandardScaler", "RobustScaler", "MaxAbsScaler"]
    assert [type(step).__name__ for step in found.steps] == steps
    assert "exceeds 10 %" in describe(outer).sentence
    assert (found.features, found.made) == (["a", "b", "c"], False)
    assert_allclose(found.rows(x), x)


def test_kernels_are_in_the_units_of_the_input(rows):
    chain = make_pipeline(StandardScaler(), clone(MODEL).set_params(covariance_type="full"))
    table = FittedPipeline(chain.fit(*rows), rows[0]).kernels
    unit = np.diag(chain[0].scale_)
    assert_allclose(table.mean, chain[0].inverse_transform(chain[-1].means_))
    assert_allclose(table.covariance, unit @ chain[-1].covariances_ @ unit)
    assert_allclose(table.variance, table.covariance.diagonal(axis1=1, axis2=2))


def test_of_networks_of_the_same_name_the_kernels_of_one_are_listed():
    one = KernelTable(np.array([0.3, 0.7]))
    joined = joined_tables([one, one, one], [0.1, 0.5, 0.4], ["a", "a", "b"])
    assert_allclose(joined.share, [0.03, 0.07, 0.15, 0.35, 0.12, 0.28])
    assert joined.largest(9).tolist() == [5, 4, 1, 0]


def test_features_that_a_transformer_makes_have_its_names(rows):
    pipeline = make_pipeline(StandardScaler(), PCA(2), MODEL)
    assert innermost(pipeline) is MODEL
    found = FittedPipeline(pipeline.fit(*rows), rows[0])
    assert (found.features, found.made) == (["pca0", "pca1"], True)
