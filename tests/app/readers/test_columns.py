"""Columns of a table as numbers, categories and classes; what can be neither is named, all of it at once."""

import pickle

import numpy as np
import pytest

from kernelpool.app.readers.labels import read_labeled
from kernelpool.app.readers.sources import TextStyle, source
from kernelpool.errors import KernelpoolError, TableError


def read(tmp_path, content, style=None, **options):
    (tmp_path / "d.csv").write_text(content)
    return read_labeled(source(str(tmp_path / "d.csv"), style), **{"target": "y", **options})


def rows(*cells):
    """A table of one column beside a number and a class."""
    return "odd;x;y\n" + "".join(
        f"{cell};{(i * 7) % 11};{'uv'[i % 2]}\n" for i, cell in enumerate(cells)
    )


def error(tmp_path, content, style=None, **options):
    with pytest.raises(TableError) as caught:
        read(tmp_path, content, style, **options)
    return str(caught.value)


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize(
    ("cells", "said", "advice"),
    [
        (["3,14", "2,7"], "'3,14' (a decimal comma)", "Pass decimal=','."),
        (
            ["1,234", "2,500,000.5"],
            "'1,234' (thousands are set apart)",
            "Write numbers with digits",
        ),
        (["$5", "$7.50"], "'$5' (an amount of money)", "Write numbers with digits"),
        (["5 %", "7%"], "'5 %' (a percentage)", "Write numbers with digits"),
        (
            ["1", "-", "3"],
            "'-' (a missing cell?)",
            "If '-' stands for a missing cell, pass missing='-'.",
        ),
        (["1", "unknown"], "'unknown' (a missing cell?)", "pass missing='unknown'."),
    ],
)
def test_numbers_in_other_notations_are_recognized_and_not_taken_for_words(
    tmp_path, cells, said, advice, encode
):
    found = error(tmp_path, rows(*cells, *cells), encode=encode)
    assert said in found
    assert advice in found
    assert "drop" not in found


def test_points_between_thousands_are_named_where_commas_are_decimal(tmp_path):
    found = error(tmp_path, rows("1.714,62", "2,7"), TextStyle(decimal=","))
    assert "'1.714,62' (thousands are set apart)" in found
    assert "a decimal comma alone" in found


def test_the_advice_works(tmp_path):
    table = read(tmp_path, rows("3,14", "2,7"), TextStyle(decimal=","))
    assert table.table.column("odd").to_pylist() == [3.14, 2.7]
    found = error(tmp_path, rows("1", "-", "3"), TextStyle(missing=("-",)))
    assert "1 missing cell in 1 of 3 rows: 'odd' (1, first in" in found


def test_all_that_is_wrong_is_in_one_message(tmp_path):
    content = "a,b,c,y\nx,1,,u\n1,1,2,v\n1,z,2,u\n"
    found = error(tmp_path, content)
    assert "row 1, column 'a': 'x'" in found
    assert "row 3, column 'b': 'z'" in found
    assert "1 missing cell: 'c' (1, first in" in found
    assert "there is no column 'p', 'q' to drop. There are 'a', 'b', 'c', 'y'." in error(
        tmp_path, content, drop=["p", "q"]
    )


def test_columns_that_teach_nothing_are_left_out_and_said_so(tmp_path):
    n = 60
    lines = [
        f"{i + 1},2024-01-{i % 28 + 1:02d},name {i},{'lmn'[i % 3]},{i % 7},{'uv'[i % 2]}"
        for i in range(n)
    ]
    found = read(tmp_path, "\n".join(["row,day,who,size,x,y", *lines, ""]), encode=True)
    assert [(f.name, f.kind) for f in found.features] == [("size", "category"), ("x", "number")]
    assert found.left_out["row"] == "it counts the rows"
    assert found.left_out["day"] == "it holds dates such as '2024-01-01'"
    assert "a different word in nearly every row (60 in 60" in found.left_out["who"]
    assert found.table.column_names == ["size", "x"]


def test_a_column_left_out_may_have_gaps(tmp_path):
    lines = [f"{'' if i == 5 else f'name {i}'},{i % 7},{'uv'[i % 2]}" for i in range(60)]
    assert list(read(tmp_path, "\n".join(["who,x,y", *lines, ""]), encode=True).left_out) == ["who"]


def test_numbers_that_only_look_like_counting_stay(tmp_path):
    lines = [f"{i + 5},{i // 2},{'uv'[i % 2]}" for i in range(60)]
    assert read(tmp_path, "\n".join(["year,x,y", *lines, ""])).left_out == {}


def test_the_target_is_asked_for_by_name(tmp_path):
    content = "a,Churn\n1,u\n2,v\n"
    assert "name the column that holds the classes; there are 'a', 'Churn'. Pass target=." in error(
        tmp_path, content, target=None
    )
    assert (
        "no column 'churn' for the target; did you mean 'Churn'? There are 'a', 'Churn'."
        in error(tmp_path, content, target="churn")
    )


def test_many_classes_of_two_rows_are_refused_at_once(tmp_path):
    content = "x,y\n" + "".join(f"{i % 7},class {i // 2}\n" for i in range(3000))
    found = error(tmp_path, content)
    assert "1,500 different values in 3,000 rows" in found
    assert "too many for classes, with 2 rows each" in found
    few = "x,y\n" + "".join(f"{i % 7},class {i // 2}\n" for i in range(40))
    assert len(np.unique(read(tmp_path, few).labels)) == 20


def test_the_error_is_one_of_ours_and_travels():
    found = TableError("d.csv: no.", "Pass drop=.", missing={"a": 1})
    assert isinstance(found, KernelpoolError)
    again = pickle.loads(pickle.dumps(found))
    assert (str(again), again.details) == ("d.csv: no. Pass drop=.", {"missing": {"a": 1}})
