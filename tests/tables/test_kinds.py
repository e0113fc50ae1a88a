"""Kinds: what text means, the same in Python's text and in Arrow's."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from kernelpool.tables.kinds import (
    CATEGORY,
    DATE,
    FEW,
    FEW_WORDS,
    MISSING,
    NUMBER,
    Cells,
    kind_of,
    odd_cell,
    parsed_days,
    parsed_numbers,
)

nan = np.nan
NUMBERS = [f"{i}.5" for i in range(200)]
"""Many."""
WORDS = [f"word {i}" for i in range(FEW_WORDS + 1)]
"""More than a few."""
DAYS = [f"2024-{month:02d}-{day:02d}" for month in range(1, 13) for day in range(1, 29)]

COLUMNS = {
    "numbers": (["1", "2.5", "-3", "+4", "1e3", " .5 ", "5."], NUMBER),
    "a number of minus zero": (["-0", "0", "0.50"], NUMBER),
    "missing alone": (list(MISSING), NUMBER),
    "numbers and a question mark": ([*NUMBERS, "?"], NUMBER),
    "a few numbers and a word": (["1", "2", "3", "crew"], CATEGORY),
    "words and None": (["US", "DE", "None"], CATEGORY),
    "booleans": (["true", "True", "0", "?"], CATEGORY),
    "more than booleans": (["true", "false", "maybe"], CATEGORY),
    "postal codes": (["02134", "90210"], CATEGORY),
    "agents": (["007", *NUMBERS], CATEGORY),
    "many numbers and words": ([*NUMBERS, *WORDS], CATEGORY),
    "many numbers and few words": ([*NUMBERS, *WORDS[1:]], None),
    "an odd cell": ([*NUMBERS, "oops"], None),
    "thousands": (["1,081", "12"], None),
    "percentages": (["12 %", "7 %"], None),
    "money": (["$5", "7"], None),
    "decimal commas": (["5,5", "3,4"], None),
    "days": (["2024-01-31", "2024-2-1", "31.12.2023", "2024/03/04"], DATE),
    "times": (["2013-05-17T18:00:00Z", "2013-05-17 18:00", "2013-05-17T18:00:00.25+02:00"], DATE),
    "days and missing ones": ([*DAYS, "", "NA", None], DATE),
    "many days and a word": ([*DAYS, "soon"], None),
    "no such day": (["2024-02-30", "2024-01-31"], CATEGORY),
    "months first, or days": (["01/02/2024", "03/04/2024"], CATEGORY),
    "hours": (["12:30", "12:31"], CATEGORY),
    "too large": (["1e999", "1"], CATEGORY),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_of_a_column_follows_from_its_cells(name):
    texts, kind = COLUMNS[name]
    assert kind_of(texts) == kind
    assert kind_of(pa.array(texts, pa.string())) == kind
    assert kind_of(pa.chunked_array([texts[:1], texts[1:]], pa.large_string())) == kind
    assert kind_of(pa.array(texts).dictionary_encode()) == kind
    assert kind_of(texts[::-1]) == kind
    one_by_one = Cells()
    for text in texts * 2:
        one_by_one.add([text])
    assert one_by_one.kind == kind
    in_parts = Cells()
    for start in range(0, len(texts), 50):
        in_parts.add(pa.array(texts[start : start + 50], pa.string()))
    assert in_parts.kind == kind


def test_few_values_are_categories_by_one_word():
    numbers = [str(i) for i in range(FEW)]
    assert kind_of([*numbers[1:], "crew"]) == CATEGORY
    assert kind_of([*numbers, "crew"]) is None


def test_the_odd_cell_is_neither_a_number_nor_a_date():
    for texts, odd in (
        ([*NUMBERS, "oops", "ouch"], "oops"),
        ([*DAYS, "soon", "7"], "soon"),
        ([*NUMBERS, *DAYS], DAYS[0]),
        ([*DAYS, *NUMBERS], DAYS[0]),
        (["1,081", "7"], "1,081"),
        (NUMBERS, None),
    ):
        cells = Cells()
        cells.add(texts)
        assert cells.odd == odd


@pytest.mark.parametrize("bad", ["oops", "1,081", "12 %", "inf", "-inf", "1e999", "0x10", "1_000"])
def test_cells_that_are_no_numbers_are_marked(bad):
    texts = ["1e3", " 7 ", "02134", "+.5", "5.", "?", None, "-0.1"]
    numbers = [1000, 7, 2134, 0.5, 5, nan, nan, -0.1]
    for cells in (texts, pa.array(texts), pa.chunked_array([texts[:2], texts[2:]])):
        x, odd = parsed_numbers(cells)
        assert_array_equal(x, numbers)
        assert not odd.any()
    for cells in ([*texts, bad], pa.array([*texts, bad])):
        x, odd = parsed_numbers(cells)
        assert_array_equal(x, [*numbers, nan])
        assert odd.tolist() == [False] * 8 + [True]


def test_numbers_are_those_of_python():
    """To the last bit, with Arrow or without."""
    rng = np.random.default_rng(0)
    texts = [
        repr(v) for v in (rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)).tolist()
    ]
    for cells in (texts, pa.array(texts)):
        assert parsed_numbers(cells)[0].tolist() == list(map(float, texts))


DATES = {
    "2024-01-31": datetime(2024, 1, 31, tzinfo=UTC),
    " 2024-1-3 ": datetime(2024, 1, 3, tzinfo=UTC),
    "31.12.1969": datetime(1969, 12, 31, tzinfo=UTC),
    "1.2.2024 7:05": datetime(2024, 2, 1, 7, 5, tzinfo=UTC),
    "2024-01-31 12:30:45.123": datetime(2024, 1, 31, 12, 30, 45, 123000, UTC),
    "2024-01-31T12:30:45.1234567": datetime(2024, 1, 31, 12, 30, 45, 123456, UTC),
    "2013-05-17T18:00:00Z": datetime(2013, 5, 17, 18, tzinfo=UTC),
    "2013-05-17T18:00:00+02:00": datetime(2013, 5, 17, 18, tzinfo=timezone(timedelta(hours=2))),
    "1955-05-17 18:00 -0330": datetime(1955, 5, 17, 18, tzinfo=timezone(-timedelta(hours=3.5))),
}


def test_days_are_counted_from_1970():
    texts = [*DATES, "NA", None, "soon", "2024-02-30", "2024-01-31 25:00", "7"]
    days = [
        (date - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1) for date in DATES.values()
    ]
    for cells in (texts, pa.array(texts)):
        x, bad = parsed_days(cells)
        assert_array_equal(x, [*days, *[nan] * 6])
        assert bad.tolist() == [False] * (len(DATES) + 2) + [True] * 4
    for text, day in zip(DATES, days, strict=True):  # Arrow may read one alone by itself
        assert_array_equal(parsed_days(pa.array([text, None])), [[day, nan], [False, False]])


@pytest.mark.parametrize(
    ("cell", "looks", "advice"),
    [
        ("1,081", "a thousands separator or a decimal comma", "--text decimal=,"),
        ("1,081,000.5", "a thousands separator", "digits"),
        ("0,126", "a decimal comma", "--text decimal=,"),
        ("5,5", "a decimal comma", "--text decimal=,"),
        ("12 %", "a percentage", "digits"),
        ("$5", "an amount of money", "digits"),
        ("unknown", "a missing cell?", "--text missing=unknown"),
        ("01/02/2024", "a date?", "2024-01-31"),
        ("oops", "", ""),
    ],
)
def test_odd_cells_are_explained(cell, looks, advice):
    assert odd_cell(cell)[0] == looks
    assert advice in odd_cell(cell)[1]
