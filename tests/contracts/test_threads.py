"""The same seed gives the same model on any number of threads and of jobs."""

import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits
from zoo import CLASSIFIERS, table

from kernelpool import RBFNetworkClassifier

TABLES = {
    "tumors": load_breast_cancer(return_X_y=True),
    "mixed": table(90),
}
MODELS = {
    **CLASSIFIERS,
    "metric": RBFNetworkClassifier(10, metric="learned", random_state=0),
}


@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("name", MODELS)
def test_threads_and_jobs_do_not_change_a_model(name, rows):
    X, y = TABLES[rows]
    answers = []
    for n_threads, backend, n_jobs in ((1, "loky", 1), (4, "threading", 2)):
        model = clone(MODELS[name])
        if "n_jobs" in model.get_params(deep=False):
            model.set_params(n_jobs=n_jobs)
        with threadpool_limits(n_threads), parallel_config(backend=backend):
            answers.append(model.fit(X, y).predict_proba(X))
    assert_allclose(*answers, rtol=0, atol=1e-9)
