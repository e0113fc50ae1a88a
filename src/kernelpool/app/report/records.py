"""What a report says, as plain data: frozen records of numbers and text, nothing of the model or the rows themselves.

Whatever was cut short says how much was left out (`n_more_...`). Labels and names are text; numbers that do not exist are None.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from ...inspection.metrics import Rate
from ...text import plain

# -- the data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One column of the training rows."""

    name: str
    kind: str
    """"number" or "text"."""
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    deviation: float | None = None
    n_distinct: int | None = None
    """Of text."""
    common: str | None = None
    """The most frequent text."""
    n_missing: int = 0
    constant: bool = False
    same_as: str | None = None
    """An earlier column that holds the same in every row."""


@dataclass(frozen=True)
class ClassCount:
    """Rows of one class."""

    name: str
    n_rows: int
    n_test: int | None = None


@dataclass(frozen=True)
class Data:
    """The data at a glance."""

    n_rows: int
    n_features: int
    n_test: int | None
    n_unlabeled: int
    n_missing: int
    columns: tuple[Column, ...]
    n_more_columns: int
    constant: tuple[str, ...]
    n_more_constant: int
    duplicates: tuple[tuple[str, str], ...]
    """(column, the earlier column that it repeats)."""
    n_more_duplicates: int
    classes: tuple[ClassCount, ...] = ()
    n_more_classes: int = 0
    n_classes: int = 0
    target_range: tuple[float, float, float] | None = None
    """Lowest, mean and highest target of a regression."""
    target: str | None = None
    source: str | None = None
    test_source: str | None = None
    numbered: bool = False
    """Whether rows have the numbers that were given with them; else they are counted from 0."""


# -- how good it is -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """How often one class was taken for another."""

    true: str
    named: str
    count: int


@dataclass(frozen=True)
class ClassScore:
    """How one class fared."""

    name: str
    n_rows: int
    n_named: int
    """Rows that were given this name."""
    recall: float | None
    precision: float | None


@dataclass(frozen=True)
class Confusion:
    """True classes down, named classes across; where there are too many classes, the worst pairs alone."""

    true: tuple[str, ...]
    named: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    scores: tuple[ClassScore, ...]
    n_more_scores: int
    pairs: tuple[Pair, ...]
    n_more_pairs: int


@dataclass(frozen=True)
class Bin:
    """Rows whose most probable class has a probability in one interval."""

    low: float
    high: float
    confidence: float
    """Mean probability of the class named."""
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    n_rows: int


@dataclass(frozen=True)
class Accepted:
    """What is left when rows below a probability are rejected."""

    threshold: float
    coverage: float
    rate: Rate


@dataclass(frozen=True)
class Refused:
    """What a classifier that may refuse did with the rows."""

    n_ambiguous: int
    n_novel: int
    accepted: Rate | None
    """None where every row was refused."""
    coverage: float = 0.0
    """Share of the rows that it accepted."""
    ambiguity: float | None = None
    """Rows whose class is less probable than one minus this are called ambiguous; None where none is for that."""
    novelty: float | None = None
    """Rows with a lower log p(x) are called novel; None where none is."""
    one_label: bool = False
    """Whether both kinds of refusal have the same label: all are then counted as ambiguous."""


@dataclass(frozen=True)
class Evaluation:
    """How well a classifier does on rows with known classes."""

    held_out: bool
    rate: Rate
    guessing: float
    """Error of always naming the most frequent class of these rows."""
    confusion: Confusion
    n_given: int
    """Rows that were given; `rate` may be of a random sample of them."""
    log_loss: float | None = None
    calibration: tuple[Bin, ...] = ()
    calibration_error: float | None = None
    """Mean of |accuracy - confidence| over the bins, weighted by rows."""
    curve: tuple[Accepted, ...] = ()
    """Of a classifier that calls rows novel, without those: it accepts them at no threshold."""
    choices: tuple[Accepted, ...] = ()
    """The points of the curve that a reader would ask for."""
    refused: Refused | None = None
    unseen: tuple[str, ...] = ()
    """Classes of these rows that the model was never shown."""


@dataclass(frozen=True)
class Regression:
    """How well a regressor does, one record an output."""

    output: str
    held_out: bool
    n_rows: int
    rmse: float
    rmse_low: float
    rmse_high: float
    mae: float
    r2: float | None
    within: float | None
    """Share of rows within two predicted deviations of the prediction."""
    points: tuple[tuple[float, float], ...]
    """(predicted, true) of some rows."""


# -- kernels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trait:
    """Where a kernel lies along a feature, in the units of the data."""

    feature: str
    mean: float
    width: float | None
    """Standard deviation; None for the weight of a neuron."""
    away: float
    """From the mean of the data, in deviations of the data."""


@dataclass(frozen=True)
class Near:
    """A training row near a kernel."""

    row: int
    label: str
    distance: float
    """In widths of the kernel."""


@dataclass(frozen=True)
class KernelRow:
    """One kernel, or neuron."""

    index: int
    group: str
    share: float
    n_rows: float
    """Rows that it accounts for."""
    classes: tuple[tuple[str, float], ...]
    """(class, probability of it given the kernel), most probable first."""
    n_more_classes: int
    traits: tuple[Trait, ...]
    n_more_traits: int
    near: tuple[Near, ...]
    weight: tuple[float, ...] = ()
    """Of the kernel in the output layer of a regressor."""
    apart: float | None = None
    """How far its classes lie apart, delta_j of the regularized PRBF (16); None where there is no such measure."""


@dataclass(frozen=True)
class KernelTable:
    """The kernels with the greatest shares."""

    word: str
    rows: tuple[KernelRow, ...]
    n_more: int
    features: tuple[str, ...]
    """Features with a column of their own; empty where there are too many for that."""
    sorted_traits: bool
    """Whether each kernel names the features in which it stands out most."""


@dataclass(frozen=True)
class Ellipse:
    """One standard deviation of a kernel, seen along two axes."""

    x: float
    y: float
    long: float
    short: float
    angle: float
    """Of the longer axis, in degrees."""
    label: int
    share: float
    classes: tuple[float, ...] = ()
    """Probability of each of the map's labels given the kernel."""


@dataclass(frozen=True)
class Map:
    """Rows and kernels along two axes: two features, or the two directions in which the classes differ most."""

    axes: tuple[str, str]
    labels: tuple[str, ...]
    points: tuple[tuple[float, float, int], ...]
    """(x, y, place of the class in `labels`, -1 for the others)."""
    ellipses: tuple[Ellipse, ...]
    linear: bool
    """Whether the axes are directions and not features."""
    word: str = "kernel"


# -- to be looked at from all sides ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExploredKernel:
    """A kernel along the features of an `Explorer`, in the units of the data."""

    index: int
    share: float
    classes: tuple[tuple[int, float], ...]
    """(place of a class, P(C_k|j)) of the greatest; empty where that is not known."""
    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Explorer:
    """Some rows and kernels, for a picture that can be touched; one entry a row unless said otherwise."""

    features: tuple[str, ...]
    """Names of the features, at most eight."""
    labels: tuple[str, ...]
    """Names of the classes."""
    numbers: tuple[int, ...]
    names: tuple[str, ...]
    """What is shown beside the numbers; empty where nothing is."""
    values: tuple[tuple[float, ...], ...]
    true: tuple[int, ...]
    """Place of the class in `labels`, -1 where it is not known."""
    named: tuple[int, ...]
    doubt: tuple[float, ...]
    """The model's own probability that the label is wrong."""
    score: tuple[float | None, ...]
    """log p(x)."""
    nearest: tuple[int, ...]
    """Index of the kernel that has most to do with the row, -1 where it is not drawn."""
    kernels: tuple[ExploredKernel, ...]
    threshold: float | None
    """The doubt above which the model itself refuses."""
    held_out: bool
    ranges: tuple[tuple[float, float], ...] = ()
    """Of the features in the picture; empty where there are no regions."""
    grid: tuple[int, int] = (0, 0)
    """Cells of the regions across and up."""
    regions: tuple[tuple[int, ...], ...] = ()
    """For each pair of features, first with second, first with third ...: the most probable class of every cell where these
    two features alone are known, as (class, number of cells) one after the other, from the lowest row of cells up."""


@dataclass(frozen=True)
class PageTable:
    """A table of texts above pictures; its first column names the rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_more: int = 0
    numbers: bool = False
    """Whether all columns but the first hold numbers."""
    sortable: bool = True


@dataclass(frozen=True)
class ImportantFeature:
    """What the log-loss rises by without a feature."""

    name: str
    rise: float
    error: float
    """Standard error."""


@dataclass(frozen=True)
class Importance:
    """Which features matter, the most important first."""

    features: tuple[ImportantFeature, ...]
    n_more: int
    method: str
    """"marginal" or "permutation"."""
    log_loss: float
    n_rows: int


# -- whether held-out rows are like training rows --------------------------------------------------------------------


@dataclass(frozen=True)
class MovedFeature:
    """A feature of the held-out rows beside that of the training rows."""

    name: str
    distance: float
    """Share of the rows that would have to move."""
    p_value: float
    """After Holm's correction for all features."""


@dataclass(frozen=True)
class ClassShare:
    """How frequent a class is."""

    name: str
    trained: float
    counted: float | None
    """Among the labels of the held-out rows."""
    estimate: float
    """From the held-out rows without their labels."""
    low: float
    high: float


@dataclass(frozen=True)
class Likeness:
    """Whether held-out rows are like training rows."""

    n_rows: int
    n_reference: int
    p_value: float
    """That no feature has moved."""
    features: tuple[MovedFeature, ...]
    n_more: int
    classes: tuple[ClassShare, ...]
    n_more_classes: int
    classes_p_value: float | None
    """That the frequencies of the classes are those of the training."""


# -- sets of classes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetCoverage:
    """How often sets hold the true class, for the rows of one class."""

    name: str
    n_rows: int
    coverage: float


@dataclass(frozen=True)
class Sets:
    """What the sets of a conformal classifier are like."""

    error: float
    """How often the true class may be missing."""
    per_class: bool
    held_out: bool
    n_rows: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_size: float
    sizes: tuple[int, ...]
    """Rows whose sets have 0, 1, 2 ... classes."""
    classes: tuple[SetCoverage, ...]
    n_more_classes: int


# -- outliers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OddFeature:
    """A feature of a row that its nearest kernel did not expect."""

    feature: str
    value: float
    expected: float
    away: float
    """In widths of the kernel."""


@dataclass(frozen=True)
class Outlier:
    """A row of low density."""

    where: str
    """"training" or "held out"."""
    row: int
    score: float
    label: str
    named: str
    odd: tuple[OddFeature, ...]
    name: str = ""
    """What is shown beside the number."""


@dataclass(frozen=True)
class Scores:
    """log p(x) of some rows, counted in bins."""

    name: str
    n_rows: int
    counts: tuple[int, ...]
    n_below: int
    """Rows below `Outliers.bound`."""
    n_novel: int | None = None
    """Rows below `Outliers.novelty`."""


@dataclass(frozen=True)
class Outliers:
    """The rows that the model finds least likely."""

    rows: tuple[Outlier, ...]
    bound: float | None
    """What one in `one_in` rows drawn from the model itself falls below."""
    one_in: int
    edges: tuple[float, ...]
    scores: tuple[Scores, ...]
    novelty: float | None = None
    """What the classifier itself calls novel lies below this; None where it calls no row that."""


# -- how it was made ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemberRow:
    """A member that was tried for a pool."""

    name: str
    loss: float | None
    """Log-loss a row on rows left out: of the first fold alone where it was given up."""
    pool_loss: float | None
    """That of the pool with it, on the same rows."""
    seconds: float
    outcome: str
    weight: float | None
    """How much it is heard; None where it is not."""


@dataclass(frozen=True)
class Tried:
    """A setting of one network that was tried on rows left out."""

    covariance_type: str
    n_kernels: int
    sharing: float | None
    kernel_prior: str
    overlap_penalty: float
    loss: float
    """Log-loss a row at the best temperature."""
    behind: float
    """How far that is behind the lowest."""
    behind_error: float
    plain_loss: float
    """Log-loss a row as it is."""
    error: float
    chosen: bool


@dataclass(frozen=True)
class Selection:
    """What was tried, the best first, and which was chosen."""

    rows: tuple[Tried, ...]
    n_more: int
    n_close: int
    """Settings within a standard error of the lowest loss."""


@dataclass(frozen=True)
class Parameter:
    """One parameter as it was set."""

    name: str
    value: str
    default: bool


@dataclass(frozen=True)
class History:
    """The objective, or loss, sweep by sweep."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Training:
    """How the model was trained."""

    parameters: tuple[Parameter, ...]
    n_sweeps: int | None
    converged: bool | None
    objective: float | None
    objective_name: str
    runs: tuple[History, ...]
    seed: str
    duration: float | None
    """Seconds."""
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rerun:
    """How to make the model again."""

    code: str
    command: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """Everything that a report says of a fitted model; `to_dict` and `to_json` give it to machines."""

    title: str
    created: str
    estimator: str
    sentence: str
    task: str
    """"classification" or "regression"."""
    data: Data
    evaluation: Evaluation | None
    regression: tuple[Regression, ...]
    kernels: KernelTable | None
    map: Map | None
    outliers: Outliers | None
    training: Training
    rerun: Rerun
    notes: tuple[str, ...]
    """What was sampled, left out or not possible, and why."""
    members: tuple[MemberRow, ...] = ()
    """Of a pool, those that were tried, in that order."""
    explorer: Explorer | None = None
    importance: Importance | None = None
    selection: Selection | None = None
    likeness: Likeness | None = None
    sets: Sets | None = None

    def to_dict(self) -> dict[str, Any]:
        """Dictionaries, lists, numbers and text; what is not finite is None."""
        return plain(asdict(self))  # type: ignore[no-any-return]

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON.

        Parameters
        ----------
        indent : int or None, default=None
            As in `json.dumps`.

        Returns
        -------
        text : str
            One JSON object.
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)
