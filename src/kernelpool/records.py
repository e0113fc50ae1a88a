"""Fitted records: which of them a model file may hold, and which fields are attributes.

A fitted estimator is one frozen record, composed of records: a network, the columns that it was
fitted to, and so on.
"""

from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

SAVED: dict[str, type] = {}
"""Every class of records that a model file may hold, by its name."""


@dataclass_transform(frozen_default=True)
def saved(cls: Any = None, **options: bool) -> Any:
    """Class decorator: a frozen dataclass, with its `options`, that a model file may hold."""
    if cls is None:
        return partial(saved, **options)
    record = dataclass(frozen=True, **options)(cls)
    SAVED[record.__name__] = record
    return record


def nested() -> Any:
    """A field that holds a record whose fields are attributes of the estimator as well."""
    return field(metadata={"nested": True})


def internal() -> Any:
    """A field that is no attribute of the estimator."""
    return field(metadata={"internal": True})


def unsaved() -> Any:
    """A field that model files leave out; it is None in a model that was loaded."""
    return field(default=None, metadata={"saved": False})


def stored(record: Any) -> dict[str, Any]:
    """The fields of a record that model files hold."""
    names = [f.name for f in fields(record) if f.init and f.metadata.get("saved", True)]
    return {name: getattr(record, name) for name in names}


def attributes(record: Any) -> dict[str, Any]:
    """The fields of a record and of the records nested in it, without internal ones and those that
    are None.
    """
    values: dict[str, Any] = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if f.metadata.get("nested"):
            values |= attributes(value)
        elif value is not None and not f.metadata.get("internal"):
            values[f.name] = value
    return values


def replaced(record: T, name: str, value: Any) -> T:
    """The record with another value of a field, which may be one of a nested record."""
    if name in record.__dataclass_fields__:  # type: ignore[attr-defined]
        return replace(record, **{name: value})  # type: ignore[type-var]
    for f in fields(record):  # type: ignore[arg-type]
        if f.metadata.get("nested"):
            with suppress(AttributeError):
                inner = replaced(getattr(record, f.name), name, value)
                return replace(record, **{f.name: inner})  # type: ignore[type-var]
    raise AttributeError(f"{type(record).__name__!r} has no field {name!r}")
