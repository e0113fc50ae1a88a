"""Which estimators a model file may hold, and how they are written and rebuilt.

A file holds the estimators of this library that have a record in the registry, and three of scikit-learn's classes around
them, `Pipeline`, `StandardScaler` and `FrozenEstimator`, by their public parameters and attributes alone. Nothing is imported
by name from a file. Rebuilding calls the class with its parameters, sets the attributes that its record lists, checks that
they fit together, and asks the model for an answer at its own centers.
"""

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ... import estimators as _estimators  # noqa: F401  (puts the records of all into the registry)
from ...errors import KernelpoolError, ModelFileError
from ...registry import (
    FEATURE_NAMES,
    FEATURES,
    EstimatorRecord,
    Field,
    estimators,
    record_named,
    record_of,
    resolve,
)
from ...tables import encoder as _encoder  # noqa: F401
from .checks import PLAIN, Sizes, check_field, is_fitted
from .container import clipped, short
from .values import Reader, Same, Writer

AROUND: dict[str, EstimatorRecord] = {
    "Pipeline": EstimatorRecord(
        Pipeline,
        parameters={
            "steps": Field(
                "list",
                parts=(
                    Field(
                        "tuple", parts=(Field("str"), Field("model", options=(None, "passthrough")))
                    ),
                ),
            ),
            "memory": Field("choice", options=(None,)),
            "transform_input": Field("choice", options=(None,)),
            "verbose": Field("bool"),
        },
        required=frozenset({"steps"}),
        check="kernelpool.app.files.checks:pipeline",
    ),
    "StandardScaler": EstimatorRecord(
        StandardScaler,
        parameters={"copy": Field("bool"), "with_mean": Field("bool"), "with_std": Field("bool")},
        fitted={
            **FEATURES,
            "mean_": Field("floats", ("d",), options=(None,)),
            "var_": Field("floats", ("d",), low=0.0, options=(None,)),
            "scale_": Field("floats", ("d",), low=1e-150, options=(None,)),
            "n_samples_seen_": PLAIN,
        },
        optional=FEATURE_NAMES,
        check="kernelpool.app.files.checks:scaler",
    ),
    "FrozenEstimator": EstimatorRecord(
        FrozenEstimator,
        parameters={"estimator": Field("model")},
        required=frozenset({"estimator"}),
        check="kernelpool.app.files.checks:frozen",
    ),
}
"""The classes of scikit-learn that may stand around an estimator of ours."""

STORED_BY_0_1 = {
    "ColumnTransformer",
    "FunctionTransformer",
    "GaussianMixture",
    "KNeighborsClassifier",
    "LabelEncoder",
    "MissingIndicator",
    "OneHotEncoder",
    "OrdinalEncoder",
    "SimpleImputer",
}

PARAMETERS: dict[str, Field] = {
    "n_jobs": Field("integer", low=-256, high=256, options=(None,)),
    "callback": Field("choice", options=(None,)),
    "unlabeled": Field("label", finite=False, options=(None,)),
}
"""Parameters of any class that are held within bounds which no honest file leaves."""

PROBES = 16
"""Centers at which a rebuilt model is asked for an answer."""

UNFIT = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a model raises whose parts do not fit together."""

NOT_KEPT = {
    "_metadata_request": "requests of metadata routing (set_fit_request and the like); save one without",
    "_skl_callbacks": "callbacks; take them off with set_callbacks()",
}

ELSEWHERE = (
    "For models of other classes use skops (it asks which types you trust when you load) or joblib (loading runs whatever code "
    "the file holds); kernelpool checks neither."
)


def schema_of(estimator: Any, where: str = "") -> EstimatorRecord:
    """The record of an estimator, if files may hold it; `where` is the parameter or attribute that holds it."""
    name = type(estimator).__name__
    record = record_of(estimator) or AROUND.get(name)
    if record is None or record.cls is not type(estimator):
        what = f"{type(estimator).__module__}.{name}"
        raise ModelFileError(
            f"{f'{where} is a {what}, which' if where else what} cannot be saved; a model file may hold {_known()}. {ELSEWHERE}"
        )
    return record


def _known() -> str:
    return ", ".join(sorted([*(record.name for record in estimators()), *AROUND]))


# -- writing ------------------------------------------------------------------------------------------------------------


def write_model(writer: Writer, estimator: Any, where: str) -> dict[str, Any]:
    """An estimator as JSON; its arrays go to the writer."""
    record, path = schema_of(estimator, where), f"{where}/" if where else ""
    parameters = _parameters_to_write(record, estimator)
    node: dict[str, Any] = {"class": record.name}
    node["parameters"] = {
        name: writer.value(value, f"{path}{name}") for name, value in sorted(parameters.items())
    }
    state = _state_to_write(record, estimator, set(parameters))
    node["fitted"] = None
    if state or not record.fitted:
        shared = {
            id(value): name
            for name, value in parameters.items()
            if isinstance(value, BaseEstimator)
        }
        for name in state:  # an estimator that was handed in fitted is not written twice
            same = shared.get(id(state[name]))
            if same is not None:
                state[name] = Same(same)
        node["fitted"] = {
            name: writer.value(state[name], f"{path}{name}") for name in sorted(state)
        }
    return node


def _parameters_to_write(record: EstimatorRecord, estimator: Any) -> dict[str, Any]:
    """All parameters of our estimators; of scikit-learn's those that are known, and the others must be at their defaults."""
    found: dict[str, Any] = estimator.get_params(deep=False)
    if record.name in AROUND:
        for name in set(found) - set(record.parameters):
            if found.pop(name) != inspect.signature(record.cls).parameters[name].default:
                raise ModelFileError(
                    f"A {record.name} with {name} set cannot be saved. {ELSEWHERE}"
                )
    return found


def _state_to_write(
    record: EstimatorRecord, estimator: Any, parameters: set[str]
) -> dict[str, Any]:
    """What a fit has left behind."""
    known = {*record.fitted, *record.optional}
    if record.name in AROUND:
        return {name: getattr(estimator, name) for name in known if hasattr(estimator, name)}
    aside = {*parameters, *record.rebuilt, *record.not_kept}
    state = {name: value for name, value in vars(estimator).items() if name not in aside}
    for name in [name for name, value in state.items() if name in NOT_KEPT and not value]:
        del state[name]  # set_callbacks() without any
    for name in state:
        if name in NOT_KEPT:
            raise ModelFileError(
                f"A {record.name} cannot be saved with {NOT_KEPT[name]}, or use pickle."
            )
        if name not in known:
            raise ModelFileError(
                f"{record.name} has an attribute {name!r} that model files do not know, so it cannot be saved. "
                f"Delete it, or use pickle."
            )
    return state


# -- reading ------------------------------------------------------------------------------------------------------------


def read_model(reader: Reader, node: Any) -> Any:
    """The estimator that `node` describes, found to be one."""
    if not isinstance(node, dict) or set(node) != {"class", "parameters", "fitted"}:
        raise ModelFileError(f"A model must have class, parameters and fitted; got {short(node)}.")
    name = node["class"]
    record = (record_named(name) or AROUND.get(name)) if isinstance(name, str) else None
    if record is None:
        if name in STORED_BY_0_1:
            raise ModelFileError(
                f"The file holds a {name} of scikit-learn, which only version 0.1 of kernelpool stored. "
                f"Fit the model again: model files hold {_known()}. {ELSEWHERE}"
            )
        raise ModelFileError(f"The file holds a {short(name)}; a model file may hold {_known()}.")
    model = _with_parameters(record, reader, node["parameters"])
    if node["fitted"] is not None:
        _set_fitted(record, model, reader, node["fitted"])
    return model


def _with_parameters(record: EstimatorRecord, reader: Reader, nodes: Any) -> Any:
    name = record.name
    known = [
        parameter for parameter in inspect.signature(record.cls).parameters if parameter != "self"
    ]
    if not isinstance(nodes, dict):
        raise ModelFileError(f"The parameters of {name} must be a JSON object.")
    unknown = sorted(set(nodes) - set(record.parameters if name in AROUND else known))
    if unknown:
        raise ModelFileError(
            f"{name} has no parameter {short(unknown[0])} in this version of its library; "
            f"a newer one may have written the file."
        )
    missing = [
        parameter for parameter in known if parameter not in nodes and parameter in record.required
    ]
    if missing:
        raise ModelFileError(f"{name} lacks its parameter {missing[0]}.")
    parameters = {parameter: reader.value(node) for parameter, node in nodes.items()}
    for parameter, value in parameters.items():
        field = record.parameters.get(parameter, PARAMETERS.get(parameter, PLAIN))
        check_field(field, f"{name}.{parameter}", value, {}, {})
    try:
        model = record.cls(**parameters)
        if name not in AROUND:
            model._validate_params()
    except (ValueError, TypeError) as error:  # sklearn's InvalidParameterError is both
        raise ModelFileError(f"A parameter is out of range: {clipped(error)}") from None
    return model


def _set_fitted(record: EstimatorRecord, model: Any, reader: Reader, nodes: Any) -> None:
    name, fields = record.name, {**record.fitted, **record.optional}
    if not isinstance(nodes, dict):
        raise ModelFileError(f"The fitted attributes of {name} must be a JSON object.")
    unknown, missing = sorted(set(nodes) - set(fields)), sorted(set(record.fitted) - set(nodes))
    if unknown or missing:
        what = (
            f"has an attribute {short(unknown[0])} that is not known"
            if unknown
            else f"lacks its attribute {missing[0]}"
        )
        raise ModelFileError(f"The fitted {name} in the file {what}.")
    sizes: Sizes = {}
    found: dict[str, Any] = {}
    for (
        attribute,
        field,
    ) in fields.items():  # in the order of the record, which names sizes before it uses them
        if attribute in nodes:
            value = reader.value(nodes[attribute])
            if isinstance(value, Same):
                value = (
                    getattr(model, value.parameter, None)
                    if value.parameter in model.get_params(deep=False)
                    else None
                )
            check_field(field, f"{name}.{attribute}", value, sizes, found)
            found[attribute] = value
            setattr(model, attribute, value)
    _check_together(record, model, sizes)


def _check_together(record: EstimatorRecord, model: Any, sizes: Sizes) -> None:
    """What the parts must be together; an error anywhere in it means that the file is not what it claims to be."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if record.check is not None:
                resolve(record.check)(model, sizes)
            for attribute, make in record.rebuilt.items():
                setattr(model, attribute, make(model))
            if record.probe is not None:
                _probe(model, np.asarray(record.probe(model))[:PROBES])
    except KernelpoolError as error:
        raise ModelFileError(
            f"The {record.name} in the file does not fit together: {clipped(error)}"
        ) from None


def _probe(model: Any, x: np.ndarray) -> None:
    """At the model's own centers its answers are finite, and its probabilities sum to one."""
    classifies = hasattr(model, "predict_proba")
    answer = np.asarray(model.predict_proba(x) if classifies else model.predict(x))
    if not np.isfinite(answer).all():
        raise ModelFileError("at its own centers its answers are not finite.")
    if classifies and np.abs(answer.sum(axis=1) - 1).max() > 1e-6:
        raise ModelFileError("at its own centers its probabilities do not sum to one.")


def rebuilt_model(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The fitted estimator that a header's `model` and the arrays describe; every array must have its place."""
    reader = Reader(arrays, read_model)
    try:
        model = read_model(reader, node)
    except ModelFileError:
        raise
    except UNFIT as error:
        raise ModelFileError(
            f"The {short(node.get('class'))} in the file does not fit together; it cannot answer: "
            f"{type(error).__name__}, {clipped(error, 200)}."
        ) from None
    reader.finished()
    if node["fitted"] is None or not is_fitted(model):
        raise ModelFileError(f"The {node['class']} in the file is not fitted.")
    return model
