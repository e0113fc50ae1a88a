"""What the rest of the package must know of an estimator: one record each.

Model files, the command line, inspection, reports and ONNX read these records; none of them has a list of its own. To add an
estimator is to write its file and to end it with `register(EstimatorRecord(...))`. Functions of layers above are named as
object references, ``"package.module:function"``, as entry points are, and imported on first use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

Reference = str | Callable[..., Any]
"""A function, or its object reference ``"package.module:function"``."""


def resolve(reference: Reference) -> Callable[..., Any]:
    """The function that a reference names."""
    if callable(reference):
        return reference
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


# -- what model files hold ------------------------------------------------------------------------------------------------

Kind = Literal[
    "floats",  # array of float64, finite
    "shares",  # array of float64 whose columns are distributions
    "covariances",  # array as the family named by covariance_type_ has it
    "matrices",  # array of float64, symmetric and positive definite along the last two axes
    "integers",  # array of whole numbers
    "bools",  # array of booleans
    "labels",  # array of numbers, booleans or text
    "names",  # array of text
    "float",
    "integer",
    "bool",
    "str",
    "label",  # number or text
    "family",  # name of a kernel family
    "choice",  # one of `options`
    "list",
    "tuple",
    "dict",
    "model",  # estimator
    "member",  # estimator, or a tuple of its name and the estimator
    "plain",  # whatever a parameter may be, but no estimator
]


@dataclass(frozen=True)
class Field:
    """What an attribute or a parameter may be, as plain data; `kernelpool.app.files` checks it."""

    kind: Kind
    shape: tuple[str, ...] = ()
    """Sizes of an array by letter: d features, M kernels, K classes, others as they come; "M+1" is one more than M."""
    low: float = -1e150
    high: float = 1e150
    open_low: bool = False
    """Whether `low` itself is refused."""
    finite: bool = True
    """Whether NaN and infinity are refused."""
    float32: bool = False
    """Whether float32 is accepted beside float64."""
    distinct: bool = False
    """Whether an array holds no entry twice; labels must be sorted as well."""
    options: tuple[Any, ...] = ()
    """Values accepted whatever the kind, such as None."""
    classes: tuple[str, ...] = ()
    """Names of the classes an estimator may be of; empty for any that files hold."""
    parts: tuple["Field", ...] = ()
    """What the entries of a tuple are, one by one; of a list or a dict, what each of them is."""
    size: str = ""
    """The letter that this number, or the length of this list, stands for."""


COUNT = Field("integer", low=0, high=2**53)
FLOAT = Field("float", finite=False)
BOOL = Field("bool")
HISTORY = Field("floats", ("H",), finite=False)
FEATURES: Mapping[str, Field] = {"n_features_in_": Field("integer", low=1, high=2**31, size="d")}
FEATURE_NAMES: Mapping[str, Field] = {"feature_names_in_": Field("names", ("d",))}
COLUMNS: Mapping[str, Field] = {"columns_": Field("columns", size="d")}
CLASSES: Mapping[str, Field] = {**COLUMNS, "classes_": Field("labels", ("K",), distinct=True)}


# -- estimators -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EstimatorRecord:
    """One estimator, as the layers above see it."""

    cls: type
    command: str | None = None
    """Its name on the command line (``--model``); None where it is not offered there."""
    size_parameter: str = "n_kernels"
    """What ``--kernels`` sets."""
    depends_on_units: bool | None = None
    """Whether its answers change with the units of single features, so that the command line standardizes them; None
    leaves it to the kernel family, see `needs_scaling`."""
    command_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that the command line sets unless told otherwise."""
    has_density: bool = False
    """Whether it has `log_density` and `score_samples`."""
    keeps_rows: bool = False
    """Whether its training rows must be in memory."""

    fitted: Mapping[str, Field] = field(default_factory=dict)
    """Attributes that a fitted one must have, in the order in which letters of shapes are bound."""
    optional: Mapping[str, Field] = field(default_factory=dict)
    """Attributes that it may have."""
    parameters: Mapping[str, Field] = field(default_factory=dict)
    """Parameters of which more is asked than its own validation does: those that may hold estimators or do harm."""
    required: frozenset[str] = frozenset()
    """Parameters without a default; others may be missing in older files."""
    rebuilt: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that files do not hold, and the function of the estimator that returns each."""
    not_kept: frozenset[str] = frozenset()
    """Attributes that files leave out: one entry for every training row."""
    check: Reference | None = None
    """check(model, sizes) raises a ModelFileError where the attributes do not fit together."""
    probe: Callable[[Any], Any] | None = None
    """Rows at which a loaded model is asked for an answer: its own centers."""

    describe: Reference | None = None
    """describe(model) -> `inspection.pool.Description`: the fitted model in words, and its kernels."""
    onnx: Reference | None = None
    """onnx(graph, x, model) -> names of its outputs; None where it cannot be exported."""

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.cls.__name__


_ESTIMATORS: dict[str, EstimatorRecord] = {}


def register(record: EstimatorRecord) -> None:
    """Make an estimator known; names of classes and commands must be free."""
    commands = {known.command for known in _ESTIMATORS.values()} - {None}
    if record.name in _ESTIMATORS or record.command in commands:
        raise ValueError(
            f"An estimator {record.name!r} or a command {record.command!r} is registered already."
        )
    _ESTIMATORS[record.name] = record


def unregister(name: str) -> None:
    """Forget an estimator, by the name of its class."""
    del _ESTIMATORS[name]


def estimators() -> tuple[EstimatorRecord, ...]:
    """Every registered estimator."""
    return tuple(_ESTIMATORS.values())


def record_of(estimator: Any) -> EstimatorRecord | None:
    """The record of an estimator's own class, not of its bases; None where there is none."""
    cls = estimator if isinstance(estimator, type) else type(estimator)
    record = _ESTIMATORS.get(cls.__name__)
    return record if record is not None and record.cls is cls else None


def record_named(name: str) -> EstimatorRecord | None:
    """The record of a class by its name."""
    return _ESTIMATORS.get(name)


def commands() -> dict[str, EstimatorRecord]:
    """The records of those that the command line offers, by their names there."""
    return {record.command: record for record in _ESTIMATORS.values() if record.command is not None}


def needs_scaling(estimator: Any) -> bool:
    """Whether answers of an estimator depend on the units of single features."""
    record = record_of(estimator)
    if record is not None and record.depends_on_units is not None:
        return record.depends_on_units
    equivariant = getattr(estimator, "covariance_type", None) in ("diag", "full", "tied")
    return not getattr(estimator, "standardize", False) and not equivariant
