"""What scikit-learn's estimators must hold: those that stand between a table and a classifier, and those inside one."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, LabelEncoder, OneHotEncoder, OrdinalEncoder, StandardScaler

from ..errors import ModelFileError
from .kinds import (
    NOTHING,
    Anything,
    Choice,
    Either,
    Flag,
    Keyed,
    Kind,
    Labels,
    Listed,
    Model,
    Names,
    Number,
    Numbers,
    Shares,
    Sizes,
    Text,
    Tupled,
    Wholes,
    maybe,
    refused,
)
from .library import COUNT, FEATURES, check_covariances
from .schema import Schema, answers, is_fitted


class OutputConfig:
    """What set_output keeps."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict) or set(value) - {"transform"}:
            raise refused(where, "what set_output takes", type(value).__name__)
        Choice(("default", "pandas", "polars")).check(where, value.get("transform"), sizes)


class DType:
    """A NumPy dtype."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.dtype):
            raise refused(where, "a dtype", type(value).__name__)


class Slice:
    """A slice."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, slice):
            raise refused(where, "a slice", type(value).__name__)


NAMED: dict[str, Kind] = {"feature_names_in_": Names(("d",)), "_sklearn_output_config": OutputConfig()}
STEP = Tupled((Text(), Either((NOTHING, Choice(("passthrough", "drop")), Model()))))
PART = Tupled((Text(), Either((Choice(("passthrough", "drop")), Model())), Anything()))
POSITIONS = Listed(Number(0, 2**31, whole=True))
GROUPS = Listed(maybe(Wholes(("q",))), "d")


# -- tables -------------------------------------------------------------------------------------------------------------


def _one_hot(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    for dropped in (model.drop_idx_, model._drop_idx_after_grouping):
        if dropped is not None:
            for at, categories in zip(dropped, model.categories_, strict=True):
                if at is not None and not (type(at) is int and 0 <= at < len(categories)):
                    raise ModelFileError("drop_idx_ must be positions of categories_.")
    _grouped(model)
    if model._compute_n_features_outs() != model._n_features_outs:
        raise ModelFileError("_n_features_outs is not what the rest of the encoder makes it.")


def _grouped(model: Any) -> None:
    if model._infrequent_enabled != hasattr(model, "_infrequent_indices"):
        raise ModelFileError("_infrequent_indices must be there where categories are grouped, and only there.")
    for name in ("_infrequent_indices", "_default_to_infrequent_mappings"):
        for group, categories in zip(getattr(model, name, []), model.categories_, strict=False):
            if group is not None and len(group) and (group.max() >= len(categories) or len(group) > len(categories)):
                raise ModelFileError(f"{name} must be positions of categories_.")
    for mapping, categories in zip(getattr(model, "_default_to_infrequent_mappings", []), model.categories_, strict=False):
        if mapping is not None and len(mapping) != len(categories):
            raise ModelFileError("_default_to_infrequent_mappings must have a place for every category.")


def _ordinal(model: Any, sizes: Sizes) -> None:
    _grouped(model)
    for feature, at in model._missing_indices.items():
        if type(feature) is not int or not 0 <= feature < sizes["d"] or not 0 <= at < len(model.categories_[feature]):
            raise ModelFileError("_missing_indices must be positions of categories_.")


def _imputer(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    for value in model.statistics_.ravel().tolist():
        if isinstance(value, int | float) and abs(value) > 1e150:  # NaN stands for a column without any number
            raise ModelFileError(f"statistics_ must be at most 1e150; got {value}.")


def _indicator(model: Any, sizes: Sizes) -> None:
    if model._n_features != sizes["d"] or (len(model.features_) and model.features_.max() >= sizes["d"]):
        raise ModelFileError("features_ must be among those there are.")


def _columns(model: Any, sizes: Sizes) -> None:
    places, names = model._transformer_to_input_indices, [name for name, _, _ in model.transformers_]
    if len(set(names)) != len(names) or not set(names) <= set(places):
        raise ModelFileError("transformers_ must have distinct names, each with its columns.")
    for name, part, _ in model.transformers_:
        if any(at >= sizes["d"] for at in places[name]):
            raise ModelFileError(f"the columns of {name!r} must be among the {sizes['d']} there are.")
        n_features = getattr(part, "n_features_in_", len(places[name]))
        if not isinstance(part, str) and places[name] and n_features != len(places[name]):
            raise ModelFileError(f"{name!r} expects {n_features} columns and gets {len(places[name])}.")


def _pipeline(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    names = [name for name, _ in model.steps]
    if not names or len(set(names)) != len(names) or any("__" in name for name in names):
        raise ModelFileError("a pipeline must have steps with distinct names.")
    for name, step in model.steps[:-1]:
        if step not in (None, "passthrough") and not hasattr(step, "transform"):
            raise ModelFileError(f"step {name!r} of a pipeline must transform.")


# -- a row that a model should be able to answer for ------------------------------------------------------------------------


def example(model: Any) -> list[Any]:
    """A value for every feature: of text, one that was seen in training."""
    if isinstance(model, OneHotEncoder | OrdinalEncoder):
        return [categories[0] for categories in model.categories_]
    if isinstance(model, SimpleImputer):
        return [0.0 if value != value else value for value in model.statistics_]
    if isinstance(model, Pipeline):
        return next((example(step) for _, step in model.steps if not isinstance(step, str | None)), [0.0])
    row: list[Any] = [0.0] * model.n_features_in_
    if isinstance(model, ColumnTransformer):
        for name, part, _ in model.transformers_:
            places = model._transformer_to_input_indices[name]
            if not isinstance(part, str) and places:
                for at, value in zip(places, example(part), strict=True):
                    row[at] = value
    return row


def _ask(model: Any) -> None:
    """A fitted pipeline answers for an example row."""
    if not is_fitted(model):  # a column transformer keeps its pipelines as they were before it was fitted
        return
    row = example(model)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        kind = float if all(isinstance(value, float | np.floating) for value in row) else object
        x: Any = np.array([row], dtype=kind)
    else:
        try:
            import pandas as pd
        except ImportError:
            return
        x = pd.DataFrame({name: [value] for name, value in zip(names, row, strict=True)})
    answer = model.predict(x) if hasattr(model, "predict") else model.transform(x)
    if answer.shape[0] != 1:
        raise ModelFileError("a row gets no answer.")


# -- the classes --------------------------------------------------------------------------------------------------------


def _mixture(model: Any, sizes: Sizes) -> None:
    shapes = {"spherical": ("M",), "diag": ("M", "d"), "full": ("M", "d", "d"), "tied": ("d", "d")}
    shape = tuple(sizes[letter] for letter in shapes[model.covariance_type])
    check_covariances("covariances_", model.covariances_, shape, model.covariance_type)


SCIKIT = (
    Schema(
        StandardScaler,
        fitted={
            **FEATURES,
            "mean_": maybe(Numbers(("d",))),
            "var_": maybe(Numbers(("d",), low=0.0)),
            "scale_": maybe(Numbers(("d",), low=1e-150)),
            "n_samples_seen_": Either((Number(0), Numbers(("d",), low=0.0), Wholes(("d",)))),
        },
        optional=NAMED,
    ),
    Schema(
        OneHotEncoder,
        fitted={
            **FEATURES,
            "categories_": Listed(Labels(("c",), objects=True), "d"),
            "drop_idx_": maybe(Labels(("d",), objects=True)),
            "_infrequent_enabled": Flag(),
            "_drop_idx_after_grouping": maybe(Labels(("d",), objects=True)),
            "_n_features_outs": Listed(COUNT, "d"),
        },
        optional={**NAMED, "_infrequent_indices": GROUPS, "_default_to_infrequent_mappings": GROUPS},
        check=_one_hot,
    ),
    Schema(
        OrdinalEncoder,
        fitted={
            **FEATURES,
            "categories_": Listed(Labels(("c",), objects=True), "d"),
            "_infrequent_enabled": Flag(),
            "_missing_indices": Keyed(COUNT),
        },
        optional={**NAMED, "_infrequent_indices": GROUPS, "_default_to_infrequent_mappings": GROUPS},
        check=_ordinal,
    ),
    Schema(
        SimpleImputer,
        fitted={
            **FEATURES,
            "statistics_": Labels(("d",), objects=True),
            "indicator_": maybe(Model(("MissingIndicator",))),
            "_fit_dtype": DType(),
            "_fill_dtype": DType(),
        },
        optional=NAMED,
        check=_imputer,
    ),
    Schema(
        MissingIndicator,
        fitted={**FEATURES, "features_": Wholes(("f",)), "_n_features": COUNT, "_precomputed": Flag()},
        optional=NAMED,
        check=_indicator,
    ),
    Schema(LabelEncoder, fitted={"classes_": Labels(("K",), objects=True)}),
    Schema(
        FunctionTransformer,  # what ColumnTransformer makes of "passthrough"
        fitted=FEATURES,
        optional=NAMED,
        parameters={"func": NOTHING, "inverse_func": NOTHING},
    ),
    Schema(
        ColumnTransformer,
        fitted={
            **FEATURES,
            "transformers_": Listed(PART),
            "sparse_output_": Flag(),
            "output_indices_": Keyed(Slice()),
            "_columns": Anything(),
            "_transformer_to_input_indices": Keyed(POSITIONS),
            "_remainder": Tupled((Text(), Either((Choice(("passthrough", "drop")), Model())), Anything())),
        },
        optional={
            **NAMED,
            "_n_features": COUNT,
            "_name_to_fitted_passthrough": Keyed(Model(("FunctionTransformer",))),
            "_transformers_feature_names_out": Labels(("u",), objects=True),
            "_remainder_columns_dtype": maybe(Text()),
            "_transformed_to_remainder_columns_dtype": Flag(),
        },
        parameters={
            "transformers": Listed(PART),
            "remainder": Either((Choice(("passthrough", "drop")), Model())),
            "verbose_feature_names_out": Flag(),
        },
        needs=frozenset({"transformers"}),
        check=_columns,
    ),
    Schema(
        Pipeline,
        fitted={},
        optional={"_sklearn_output_config": OutputConfig()},
        parameters={"steps": Listed(STEP), "memory": NOTHING},
        needs=frozenset({"steps"}),
        check=_pipeline,
        probe=_ask,
    ),
    Schema(FrozenEstimator, fitted={}, parameters={"estimator": Model()}, needs=frozenset({"estimator"})),
    Schema(
        GaussianMixture,
        fitted={
            **FEATURES,
            "means_": Numbers(("M", "d")),
            "weights_": Shares(("M",)),
            "covariances_": Numbers(None),
            "precisions_": Numbers(None),
            "precisions_cholesky_": Numbers(None),
            "converged_": Flag(),
            "n_iter_": COUNT,
            "lower_bound_": Number(any_value=True),
        },
        optional={
            "feature_names_in_": Names(("d",)),
            "lower_bounds_": Listed(Number(any_value=True)),
        },
        check=_mixture,
        probe=answers(lambda model: model.means_),
    ),
    # as the judge of MultiEdit, which keeps it unfitted; its constructor sets a radius that is no parameter
    Schema(KNeighborsClassifier, fitted={}, rebuilt=frozenset({"radius"})),
)
