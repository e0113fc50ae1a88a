"""Neighborhood components, beside the definition written out row by row."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.neighbors import KNeighborsClassifier

from kernelpool.rbf.metric import EPSILON, learned_metric, neighborhood_objective


def written_out(metric, x, codes, weight, ridge):
    total = 0.0
    for i in range(len(x)):
        votes = np.array(
            [
                0.0 if j == i else weight[j] * np.exp(-0.5 * np.sum((metric @ (x[i] - x[j])) ** 2))
                for j in range(len(x))
            ]
        )
        total += weight[i] * np.log(votes[codes == codes[i]].sum() / votes.sum() + EPSILON)
    return total / weight.sum() - ridge * np.sum((metric - np.eye(len(metric))) ** 2)


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


def test_a_learned_metric_separates_classes_on_new_rows():
    """One feature of eight is informative: nearest neighbors err less in the metric, on new
    rows.
    """
    rng = np.random.default_rng(0)
    codes = np.arange(800) % 2
    z = np.column_stack([(codes - 0.5) * 2 + 0.4 * rng.normal(size=800), rng.normal(size=(800, 7))])
    metric = learned_metric(z[:400], codes[:400], np.ones(400), np.random.default_rng(0))
    error = [
        1
        - KNeighborsClassifier(5).fit(z[:400] @ a.T, codes[:400]).score(z[400:] @ a.T, codes[400:])
        for a in (np.eye(8), metric)
    ]
    assert error[1] < 0.5 * error[0]
