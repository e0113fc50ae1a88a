from dataclasses import dataclass

import numpy as np
import pytest
from zoo import CLASSIFIERS, META, fitted

from kernelpool.base.estimator import Estimator
from kernelpool.records import attributes, nested, replaced, unsaved
from kernelpool.tables.columns import Columns


@dataclass(frozen=True)
class Network:
    means: np.ndarray
    ridge: float | None = None


@dataclass(frozen=True)
class Fitted:
    columns: Columns
    network: Network = nested()
    trace: list | None = unsaved()


@dataclass(frozen=True)
class Settings:
    width: float
    seed: int


class Model(Estimator):
    def __init__(self, width=1.0):
        self.width = width


def fit():
    model = Model(width=2.0)
    model._fitted = Fitted(Columns.numbers(3), Network(np.arange(3.0)))
    return model


def test_fields_of_nested_records_are_attributes():
    model = fit()
    assert model.means_ is model._fitted.network.means
    assert model.n_features_in_ == 3
    assert {"means_", "columns_", "n_features_in_", "width"} <= set(dir(model))
    assert not {"ridge_", "trace_", "network_", "feature_names_in_"} & set(dir(model))
    for name in ("ridge_", "trace_", "network_", "other_", "means"):
        with pytest.raises(AttributeError, match=f"'Model' object has no attribute '{name}'"):
            getattr(model, name)
    assert "means_" not in dir(Model())


def test_a_field_is_replaced_where_it_is():
    record = fit()._fitted
    changed = replaced(record, "ridge", 0.5)
    assert (changed.network.ridge, record.network.ridge) == (0.5, None)
    assert changed.network.means is record.network.means
    assert replaced(record, "trace", [1]).trace == [1]
    with pytest.raises(AttributeError, match="'Fitted' has no field 'other'"):
        replaced(record, "other", 1)
    assert set(attributes(changed)) == {"columns", "means", "ridge"}


def test_settings_are_parameters_but_for_what_is_resolved():
    assert Model(3.0)._settings(Settings, seed=7) == Settings(3.0, 7)
    with pytest.raises(AttributeError, match="seed"):
        Model()._settings(Settings)


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize("name", [*CLASSIFIERS, *META])
def test_fitted_attributes_are_listed(name):
    assert {"classes_", "n_features_in_", "feature_names_in_"} <= set(dir(fitted(name)))
