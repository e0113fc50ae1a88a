"""Fitted mixtures: what is computed once, and what is neither stored nor copied."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from zoo import example, fitted, table

from kernelpool.kernels import Gaussian, Product


@pytest.fixture
def n_built(monkeypatch):
    """How often kernels are made of arrays."""
    calls = []
    for family in (Gaussian, Product):
        original = family.from_arrays

        def counted(self, *arrays, original=original):
            calls.append(type(self))
            return original(self, *arrays)

        monkeypatch.setattr(family, "from_arrays", counted)
    return calls


@pytest.mark.parametrize("name", ["pool", "em", "conditional", "average"])
def test_predictions_build_no_kernels_twice(name, n_built):
    model = deepcopy(fitted(name))
    X, _ = table()
    model.predict_proba(X)
    model.log_density(X)
    assert n_built  # of a copy they are built anew
    n_built.clear()
    model.predict_proba(X)
    model.log_density(X)
    model.kernel_posterior(X)
    assert n_built == []


def test_what_is_computed_of_a_record_is_not_pickled():
    model, X = example("shared, conditional")
    network = model._fitted.network
    model.predict_proba(X)
    assert "frame" in vars(network)
    copied = pickle.loads(pickle.dumps(network))
    assert set(vars(copied)) == set(type(network).__dataclass_fields__)
    model.predict_proba(X.astype(np.float32))  # other natural parameters
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
