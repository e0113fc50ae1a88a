"""Neighborhood components, beside the definition written out."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist

from kernelpool.rbf.metric import EPSILON, learned_metric, neighborhood_objective


def written_out(metric, x, codes, weight, ridge):
    votes = np.exp(-0.5 * cdist(x @ metric.T, x @ metric.T, "sqeuclidean")) * weight
    np.fill_diagonal(votes, 0)
    own = np.where(codes[:, None] == codes, votes, 0).sum(axis=1) / votes.sum(axis=1)
    strain = np.sum((metric - np.eye(len(metric))) ** 2)
    return weight @ np.log(own + EPSILON) / weight.sum() - ridge * strain


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=(3, 3)),
        rng.normal(size=(25, 3)),
        rng.integers(0, 3, 25),
        rng.uniform(0.5, 2, 25),
        0.1,
    )


def test_the_objective_is_the_papers_and_its_gradient_that_of_differences(problem):
    assert neighborhood_objective(*problem)[0] == pytest.approx(written_out(*problem), rel=1e-12)
    metric, *rest = problem
    error = check_grad(
        lambda a: neighborhood_objective(a.reshape(3, 3), *rest)[0],
        lambda a: neighborhood_objective(a.reshape(3, 3), *rest)[1].ravel(),
        metric.ravel(),
    )
    assert error < 1e-6


def test_a_learned_metric_looks_at_the_feature_that_tells_classes_apart():
    rng = np.random.default_rng(0)
    codes = np.arange(400) % 2
    z = rng.normal(size=(400, 8))
    z[:, 0] = 2 * codes - 1 + 0.4 * z[:, 0]
    metric = learned_metric(z, codes, np.ones(400), np.random.default_rng(0))
    told, *others = np.linalg.norm(metric, axis=0)
    assert told > 2 * max(others)
