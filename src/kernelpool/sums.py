"""Records of arrays that add up.

A statistic that adds is the whole interface between the E-step, which sees rows, and the M-step,
which does not. A frozen dataclass is used, not a NamedTuple: `+` on two tuples concatenates them.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass of arrays, compared by identity."""
    return dataclass(frozen=True, eq=False)(cls)


class Sums:
    """Field-by-field addition for a record; a tuple is added entry by entry."""

    def __add__(self, other: Self) -> Self:
        names = (f.name for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(_plus(getattr(self, name), getattr(other, name)) for name in names))


def _plus(a: Any, b: Any) -> Any:
    return tuple(map(_plus, a, b)) if isinstance(a, tuple) else a + b
