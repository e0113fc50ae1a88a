"""What a fitted attribute may be: kinds of values, each of which can tell whether it is one."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import ModelFileError
from .strict_json import short

Sizes = dict[str, int]
"""What the letters of shapes stand for: d features, M kernels, K classes; bound where a letter is met first."""

SUM_SLACK = 1e-6
"""By how much the sum of shares may miss one."""


class Kind(Protocol):
    """Something that values can be."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        """Raises a ModelFileError if `value` is none of this kind."""


def refused(where: str, expected: str, found: Any) -> ModelFileError:
    """The error that says so."""
    return ModelFileError(f"{where} must be {expected}; got {found}.")


def fit_shape(where: str, found: tuple[int, ...], shape: tuple[str | int, ...], sizes: Sizes) -> None:
    """Every size is the one that its letter stands for; 'd+1' is one more than d."""
    wanted = []
    for axis, size in enumerate(shape):
        if isinstance(size, str):
            letter, _, more = size.partition("+")
            if letter not in sizes and axis < len(found):
                sizes[letter] = found[axis] - int(more or 0)
            size = sizes.get(letter, 0) + int(more or 0)
        wanted.append(size)
    if found != tuple(wanted):
        named = ", ".join(map(str, shape))
        raise refused(where, f"of shape ({named}) = {tuple(wanted)}", f"shape {found}")


@dataclass(frozen=True)
class Numbers:
    """An array of floating-point numbers, finite unless said otherwise."""

    shape: tuple[str | int, ...] | None
    low: float = -1e150
    high: float = 1e150
    any_value: bool = False
    """NaN and infinity are fine too: a history may hold them."""
    single: bool = False
    """float32 is fine too."""
    open_low: bool = False
    """`low` itself is out."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        wide = ("float64", "float32") if self.single else ("float64",)
        if not isinstance(value, np.ndarray) or value.dtype.name not in wide:
            raise refused(where, f"an array of {' or '.join(wide)}", f"{type(value).__name__} {getattr(value, 'dtype', '')}")
        if self.shape is not None:
            fit_shape(where, value.shape, self.shape, sizes)
        if self.any_value or not value.size:
            return
        if not np.isfinite(value).all():
            raise refused(where, "finite", "NaN or infinity")
        least, most = float(value.min()), float(value.max())
        if least < self.low or most > self.high or (self.open_low and least <= self.low):
            between = f"{'above' if self.open_low else 'at least'} {self.low} and at most {self.high}"
            raise refused(where, between, f"values from {least} to {most}")


@dataclass(frozen=True)
class Shares:
    """An array of shares: none negative, and every column sums to one."""

    shape: tuple[str | int, ...]

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        Numbers(self.shape, low=0.0, high=1 + SUM_SLACK).check(where, value, sizes)
        total = value.sum(axis=0)
        if not value.shape[0] or np.abs(total - 1).max(initial=0) > SUM_SLACK:
            raise refused(where, "shares that sum to one", f"sums {short(np.ravel(total)[:4].tolist())}")


@dataclass(frozen=True)
class Wholes:
    """An array of whole numbers."""

    shape: tuple[str | int, ...]
    low: int = 0
    high: int = 2**40
    distinct: bool = False

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            raise refused(where, "an array of whole numbers", f"{type(value).__name__} {getattr(value, 'dtype', '')}")
        fit_shape(where, value.shape, self.shape, sizes)
        if value.size and (int(value.min()) < self.low or int(value.max()) > self.high):
            raise refused(where, f"from {self.low} to {self.high}", f"values from {value.min()} to {value.max()}")
        if self.distinct and len(np.unique(value)) != value.size:
            raise refused(where, "distinct", "a number twice")


@dataclass(frozen=True)
class Labels:
    """An array of labels: numbers, booleans or text, and finite."""

    shape: tuple[str | int, ...]
    distinct: bool = False
    """And sorted."""
    objects: bool = False
    """Objects are fine too, as scikit-learn keeps them, None and NaN among them, in whatever order."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        kinds = "biufUO" if self.objects else "biufU"
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            raise refused(where, "an array of labels", f"{type(value).__name__} {getattr(value, 'dtype', '')}")
        fit_shape(where, value.shape, self.shape, sizes)
        if value.dtype.kind == "f" and not self.objects and not np.isfinite(value).all():
            raise refused(where, "finite", "NaN or infinity")
        if self.distinct and (not len(value) or not np.array_equal(np.unique(value), value)):
            raise refused(where, "distinct and sorted labels, one at least", short(value[:8].tolist()))


@dataclass(frozen=True)
class Names:
    """An array of names, as objects, as scikit-learn keeps them."""

    shape: tuple[str | int, ...]

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != object or not all(isinstance(v, str) for v in value.ravel()):
            raise refused(where, "an array of names", type(value).__name__)
        fit_shape(where, value.shape, self.shape, sizes)


@dataclass(frozen=True)
class Number:
    """One number."""

    low: float = -1e300
    high: float = 1e300
    whole: bool = False
    any_value: bool = False
    open_low: bool = False
    binds: str | None = None
    """The letter of shapes that this number is."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        kinds = (int, np.integer) if self.whole else (int, float, np.integer, np.floating)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise refused(where, f"a {'whole ' if self.whole else ''}number", type(value).__name__)
        if self.any_value:
            return
        if not self.low <= value <= self.high or (self.open_low and value <= self.low):
            raise refused(where, f"{'above' if self.open_low else 'at least'} {self.low} and at most {self.high}", value)
        if self.binds is not None:
            sizes[self.binds] = int(value)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, bool | np.bool_):
            raise refused(where, "True or False", type(value).__name__)


@dataclass(frozen=True)
class Text:
    """Any text."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, str):
            raise refused(where, "text", type(value).__name__)


@dataclass(frozen=True)
class Choice:
    """One of some words, or whatever else is listed."""

    options: tuple[Any, ...]

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not any(type(value) is type(option) and value == option for option in self.options):
            raise refused(where, f"one of {self.options}", short(value))


@dataclass(frozen=True)
class Listed:
    """A list, each part of one kind."""

    kind: Kind
    size: str | None = None

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, list):
            raise refused(where, "a list", type(value).__name__)
        if self.size is not None:
            fit_shape(where, (len(value),), (self.size,), sizes)
        for i, part in enumerate(value):
            self.kind.check(f"{where}/{i}", part, {k: v for k, v in sizes.items() if k in "dK"})


@dataclass(frozen=True)
class Tupled:
    """A tuple, each part of its own kind."""

    kinds: tuple[Kind, ...]

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, tuple) or len(value) != len(self.kinds):
            raise refused(where, f"a tuple of {len(self.kinds)}", short(value))
        for i, (kind, part) in enumerate(zip(self.kinds, value, strict=True)):
            kind.check(f"{where}/{i}", part, sizes)


@dataclass(frozen=True)
class Keyed:
    """A dict whose values are of one kind."""

    kind: Kind

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict):
            raise refused(where, "a dict", type(value).__name__)
        for key, part in value.items():
            self.kind.check(f"{where}/{short(key)}", part, dict(sizes))


@dataclass(frozen=True)
class Either:
    """One of several kinds."""

    kinds: tuple[Kind, ...]

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        last: ModelFileError | None = None
        for kind in self.kinds:
            trial = dict(sizes)
            try:
                kind.check(where, value, trial)
            except ModelFileError as error:
                last = error
            else:
                sizes.update(trial)
                return
        assert last is not None
        raise last


@dataclass(frozen=True)
class Model:
    """An estimator, of one of the classes named, or of any that files may hold."""

    names: tuple[str, ...] = ()

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        from .models import SCHEMAS

        name = type(value).__name__
        if name not in SCHEMAS or SCHEMAS[name].type is not type(value) or (self.names and name not in self.names):
            raise refused(where, f"a {' or '.join(self.names) or 'model'}", name)


@dataclass(frozen=True)
class Anything:
    """Whatever a parameter may be; scikit-learn's own ranges of parameters say more."""

    models: bool = False
    """Estimators among them."""

    def check(self, where: str, value: Any, sizes: Sizes) -> None:
        from sklearn.base import BaseEstimator

        if isinstance(value, list | tuple):
            for part in value:
                self.check(where, part, sizes)
        elif isinstance(value, dict):
            for part in value.values():
                self.check(where, part, sizes)
        elif isinstance(value, BaseEstimator) and not self.models:
            raise refused(where, "plain data", type(value).__name__)


NOTHING = Choice((None,))


def maybe(kind: Kind) -> Either:
    """`kind`, or None."""
    return Either((NOTHING, kind))
