"""Which estimators a model file may hold, what each must hold, and how they are written and rebuilt.

A class that is not in `SCHEMAS` is neither written nor read: nothing is imported by name from a file. Rebuilding calls the
class with its parameters, sets the attributes that its schema lists, checks that they fit together, and asks the model for an
answer at its own centers.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import KernelpoolError, ModelFileError
from .kinds import Anything, Kind, Number, Sizes, maybe
from .library import LIBRARY
from .schema import Schema
from .scikit import SCIKIT
from .strict_json import short
from .values import Reader, Same, Writer

SCHEMAS: dict[str, Schema] = {schema.type.__name__: schema for schema in (*LIBRARY, *SCIKIT)}
"""Every class that a file may hold, by its name."""

PARAMETERS: dict[str, Kind] = {
    "n_jobs": maybe(Number(-256, 256, whole=True)),
    "callback": Anything(),
}
"""Parameters of any class that are held within bounds which no honest file leaves."""

SETTINGS = {"_sklearn_output_config"}
"""Attributes that an estimator may have before it is fitted (set_output)."""

NOT_KEPT = {
    "_metadata_request": "requests of metadata routing (set_fit_request and the like); save one without",
    "_skl_callbacks": "callbacks; take them off with set_callbacks()",
}


def schema_of(estimator: Any) -> Schema:
    """The schema of an estimator, if files may hold it."""
    schema = SCHEMAS.get(type(estimator).__name__)
    if schema is None or schema.type is not type(estimator):
        raise ModelFileError(
            f"{type(estimator).__module__}.{type(estimator).__name__} cannot be saved; a model file may hold "
            f"{', '.join(sorted(SCHEMAS))}. Use pickle or joblib for others."
        )
    return schema


# -- writing ------------------------------------------------------------------------------------------------------------


def write_model(writer: Writer, estimator: Any, where: str) -> dict[str, Any]:
    """An estimator as JSON; its arrays go to the writer."""
    schema, path = schema_of(estimator), f"{where}/" if where else ""
    parameters = estimator.get_params(deep=False)
    node: dict[str, Any] = {"class": schema.type.__name__}
    node["parameters"] = {name: writer.value(value, f"{path}{name}") for name, value in sorted(parameters.items())}
    state = {name: value for name, value in vars(estimator).items() if name not in parameters and name not in schema.rebuilt}
    for name in [name for name, value in state.items() if name in NOT_KEPT and not value]:
        del state[name]  # set_callbacks() without any
    for name in state:
        if name not in schema.fitted and name not in schema.optional:
            raise ModelFileError(_unknown_attribute(schema, name))
    node["fitted"] = None
    if state or not schema.fitted:
        shared = {id(value): name for name, value in parameters.items() if isinstance(value, BaseEstimator)}
        for name in state:  # an estimator that was handed in fitted is not written twice
            same = shared.get(id(state[name]))
            if same is not None:
                state[name] = Same(same)
        node["fitted"] = {name: writer.value(state[name], f"{path}{name}") for name in sorted(state)}
    return node


def _unknown_attribute(schema: Schema, name: str) -> str:
    if name in NOT_KEPT:
        return f"A {schema.type.__name__} cannot be saved with {NOT_KEPT[name]}, or use pickle."
    return (
        f"{schema.type.__name__} has an attribute {name!r} that model files do not know, so it cannot be saved. "
        f"Delete it, or use pickle."
    )


# -- reading ------------------------------------------------------------------------------------------------------------


def read_model(reader: Reader, node: Any) -> Any:
    """The estimator that `node` describes, found to be one."""
    if not isinstance(node, dict) or set(node) != {"class", "parameters", "fitted"}:
        raise ModelFileError(f"A model must have class, parameters and fitted; got {short(node)}.")
    name = node["class"]
    if not isinstance(name, str) or name not in SCHEMAS:
        raise ModelFileError(f"The file holds a {short(name)}; a model file may hold {', '.join(sorted(SCHEMAS))}.")
    schema = SCHEMAS[name]
    model = _with_parameters(schema, reader, node["parameters"])
    if node["fitted"] is not None:
        _set_fitted(schema, model, reader, node["fitted"])
    return model


def _with_parameters(schema: Schema, reader: Reader, nodes: Any) -> Any:
    name = schema.type.__name__
    known = schema.type._get_param_names()
    if not isinstance(nodes, dict):
        raise ModelFileError(f"The parameters of {name} must be a JSON object.")
    unknown = sorted(set(nodes) - set(known))
    if unknown:
        raise ModelFileError(
            f"{name} has no parameter {short(unknown[0])} in this version of its library; "
            f"a newer one may have written the file."
        )
    missing = [parameter for parameter in known if parameter not in nodes and parameter in schema.needs]
    if missing:
        raise ModelFileError(f"{name} lacks its parameter {missing[0]}.")
    parameters = {parameter: reader.value(node) for parameter, node in nodes.items()}
    for parameter, value in parameters.items():
        kind = schema.parameters.get(parameter, PARAMETERS.get(parameter, Anything()))
        kind.check(f"{name}.{parameter}", value, {})
    try:
        model = schema.type(**parameters)
        if hasattr(model, "_parameter_constraints"):  # LabelEncoder has no parameters
            model._validate_params()
    except (ValueError, TypeError) as error:  # sklearn's InvalidParameterError is both
        raise ModelFileError(f"A parameter is out of range: {error}") from None
    return model


def _set_fitted(schema: Schema, model: Any, reader: Reader, nodes: Any) -> None:
    name = schema.type.__name__
    if not isinstance(nodes, dict):
        raise ModelFileError(f"The fitted attributes of {name} must be a JSON object.")
    unknown = sorted(set(nodes) - set(schema.fitted) - set(schema.optional))
    missing = sorted(set(schema.fitted) - set(nodes)) if set(nodes) - SETTINGS else []
    if unknown or missing:
        what = f"has an attribute {short(unknown[0])} that is not known" if unknown else f"lacks its attribute {missing[0]}"
        raise ModelFileError(f"The fitted {name} in the file {what}.")
    sizes: Sizes = {}
    kinds = {**schema.fitted, **schema.optional}
    for attribute in kinds:  # in the order of the schema, which names sizes before it uses them
        if attribute in nodes:
            value = reader.value(nodes[attribute])
            if isinstance(value, Same):
                value = getattr(model, value.parameter, None)
            kinds[attribute].check(f"{name}.{attribute}", value, sizes)
            setattr(model, attribute, value)
    if set(nodes) - SETTINGS or not schema.fitted:
        checked(schema, model, sizes)


def checked(schema: Schema, model: Any, sizes: Sizes) -> None:
    """What the parts must be together; an error anywhere in it means that the file is not what it claims to be."""
    name = schema.type.__name__
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            schema.check(model, sizes)
            schema.rebuild(model)
            schema.probe(model)
    except KernelpoolError as error:
        raise ModelFileError(f"The {name} in the file does not fit together: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The {name} in the file does not fit together; it cannot answer: {type(error).__name__}, {short(str(error))}."
        ) from None
