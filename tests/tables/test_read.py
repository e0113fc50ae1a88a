"""Files as they come: every format, encoding and oddity is read alike or refused with a reason."""

import csv
import datetime
import decimal
import gzip
import math
import os
import re
import string
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpool.errors import TableError
from kernelpool.tables import files
from kernelpool.tables.files import ReadOptions, stem_of
from kernelpool.tables.kinds import CATEGORY, COLUMN_KINDS, DATE, MISSING, NUMBER
from kernelpool.tables.read import read_table, scan

NAMES = ["a", "b", "color"]
ROWS = [[f"{i / 4}", f"{(7 * i) % 90 - 3.5}", ("red", "green", "blue")[i % 3]] for i in range(90)]


def text(delimiter=",", end="\n", decimal="."):
    cells = [[a.replace(".", decimal), b.replace(".", decimal), c] for a, b, c in ROWS]
    return end.join([*map(delimiter.join, [NAMES, *cells]), ""])


def table(**extra):
    a, b, color = zip(*ROWS, strict=True)
    return pa.table({"a": map(float, a), "b": map(float, b), "color": color, **extra})


def read(path, target="color", style=None, **options):
    return read_table(scan(str(path), style or ReadOptions()), target, **options)


def same(rows):
    """Whether these are the rows above, in any order of the columns."""
    expected = table().to_pydict()
    found = rows.X.select(["a", "b"]).to_pydict() | {"color": rows.y.tolist()}
    return found == expected


@pytest.fixture
def d(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "d.csv"


# -- formats ---------------------------------------------------------------------------------------

QUOTED = '"' + text().replace(",", '","').replace("\n", '"\n"').removesuffix('"')
FORMS = {
    "plain": (text().encode(), {}),
    "byte order mark": (b"\xef\xbb\xbf" + text().encode(), {}),
    "CRLF": (text(end="\r\n").encode(), {}),
    "pipes": (text("|").encode(), {}),
    "decimal comma": (text(";", decimal=",").encode(), {"decimal": ","}),
    "UTF-16": (text().encode("utf-16"), {}),
    "latin-1": (text().replace("red", "réd").encode("latin-1"), {}),
    "an encoding": (text().replace("red", "réd").encode("cp437"), {"encoding": "cp437"}),
    "gzip": (gzip.compress(text().encode()), {}),
    "blank lines": (b"\n" + text().replace("\n", "\n\n").encode(), {}),
    "space after commas": (text(", ").encode(), {}),
    "quotes": (QUOTED.encode(), {}),
    "given delimiter": (text("~").encode(), {"delimiter": "~"}),
    "other missing": (
        text().replace("\n", "\nunknown,1,\n", 1).encode(),
        {"missing": ("unknown",)},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_text_in_all_its_forms_holds_the_same_rows(d, name):
    content, style = FORMS[name]
    d.write_bytes(content)
    rows = read(d, style=ReadOptions(**style))
    rows = rows.at(np.array([label is not None for label in rows.y]))
    rows.y[rows.y == "réd"] = "red"
    assert same(rows)
    assert rows.kinds == {"a": NUMBER, "b": NUMBER}


def test_typed_files_folders_and_pipes_hold_the_same_rows(d):
    whole = table()
    pq.write_table(whole, "a.parquet", row_group_size=7)
    feather.write_feather(whole, "b.feather")
    with pa.OSFile("c.arrows", "wb") as sink, pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole, max_chunksize=11)
    pq.write_table(whole.set_column(2, "color", whole.column("color").dictionary_encode()), "e.pq")
    Path("f").mkdir()
    pq.write_table(whole.slice(0, 30), "f/1.parquet")
    lines = [["b", "color", "a"], *([b, c, a] for a, b, c in ROWS[30:60])]
    Path("f/2.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    feather.write_feather(whole.slice(60), "f/3.arrow")
    for name in ("f/.hidden.csv", "f/notes.md"):
        Path(name).write_text("x")
    for name in ("a.parquet", "b.feather", "c.arrows", "e.pq", "f"):
        assert same(read(name)), name
    for name in ("a.parquet", "c.arrows"):
        os.mkfifo("pipe")
        if os.fork() == 0:
            Path("pipe").write_bytes(Path(name).read_bytes())
            os._exit(0)
        source = scan("pipe")
        assert same(read_table(source, "color"))
        assert same(read_table(source, "color"))  # a copy is kept
        os.wait()
        Path("pipe").unlink()


def days_of(rows, name):
    cells = rows.X.column(name).cast(pa.timestamp("us")).to_pylist()
    return [day and (day - datetime.datetime(1970, 1, 1)) / datetime.timedelta(1) for day in cells]


def test_workbooks_hold_the_same_rows(d, monkeypatch):
    openpyxl = pytest.importorskip(
        "openpyxl", reason="Excel needs openpyxl: pip install '.[excel]'"
    )
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([*NAMES, "day", None])
    sheet.append([*[None] * 4, " "])
    for i, (a, b, color) in enumerate(ROWS):
        sheet.append([float(a), float(b), color, datetime.datetime(2020, 1, 1 + i % 28)])
    book.save("d.xlsx")
    rows = read("d.xlsx")
    assert same(rows)
    assert rows.kinds["day"] == DATE
    assert days_of(rows, "day")[:2] == [18_262, 18_263]
    assert stem_of("d.xlsx") == "d"
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"need openpyxl\. pip install '\.\[excel\]'"):
        read("d.xlsx")


@pytest.mark.parametrize("kind", [pa.string(), pa.date32(), pa.timestamp("ns")])
def test_dates_become_days_when_asked(d, kind):
    days = range(18_261, 18_350)  # from 2019-12-31
    when = pa.array([None, *days], pa.int32()).cast(pa.date32()).cast(kind)
    pq.write_table(table(when=when), "d.parquet")
    rows = read("d.parquet", kinds={"when": DATE})
    assert rows.kinds["when"] == DATE
    assert days_of(rows, "when") == [None, *days]
    pq.write_table(table(when=["1/2/2020", "2020-01-02"] * 45), "d.parquet")
    message = r"Not a number or date: .*row 1, column 'when': '1/2/2020'.* 31\.01\.2024"
    with pytest.raises(TableError, match=message):
        read("d.parquet", kinds={"when": DATE})


cell = st.text(string.printable + "éß數", max_size=8)


@given(st.lists(st.tuples(cell, cell, st.sampled_from("uv")), min_size=3, max_size=30))
@settings(max_examples=40, deadline=None)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    # one line end inside of cells, as Arrow's readers do; \x00 and lone \r have no meaning in CSV
    clean = [[c.replace("\r", "") for c in row] for row in written]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["p", "q", "y"], *clean])
    found = [row for batch in scan(str(path)).batches() for row in batch.table.to_pylist()]
    assert [[cell or "" for cell in row.values()] for row in found] == clean


def test_small_blocks_change_nothing_but_the_batches(d, monkeypatch):
    quoted = [[a, b, f"{c}\n,second line"] for a, b, c in ROWS]
    with open(d, "w", newline="") as file:
        csv.writer(file).writerows([NAMES, *quoted])
    monkeypatch.setattr(files, "BLOCK", 300)
    batches = list(scan(str(d)).batches())
    assert len(batches) > 3
    assert [batch.row for batch in batches[:2]] == [1, len(batches[0].table) + 1]
    assert read(d).y.tolist() == [row[2] for row in quoted]
    d.write_text("a,b,color\n1,2,red\n" + "9" * 1000 + ",2,red\n")
    with pytest.raises(TableError, match=r"after row .: a row is longer than 300 bytes"):
        read(d)


def odd_column(cell):
    """Many numbers, and one other cell in row 31."""
    b = [*range(30), cell, *range(30, 60)]
    lines = [f"{i / 4},{v},{('red', 'blue')[i % 2]}\n" for i, v in enumerate(b)]
    return "".join(["a,b,color\n", *lines]).encode()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a,b,color\n", "no rows below the header"),
        (b"a,b,color\n1,2,red\n3,4\n", "row 2: 2 cells where the header has 3: '3,4'"),
        (b"\n\na,b,color\n1,2,red\n\n3\n", "row 2: 1 cell where"),
        (b"a,a,color\n1,2,red\n", "several columns are named 'a'"),
        (b"a,,color\n1,2,red\n3,4,blue\n", "column 2 has no name"),
        (b"1,2,red\n3,4,blue\n", "no column 'color' for the target"),
        (b"a,b,Color\n3,4,blue\n", "did you mean 'Color'"),
        (b"1,2,3\n3,4,5\n", "looks like data: '1', '2', '3'"),
        (b"# a comment\n3,4,5\n", "the first line is a comment"),
        (odd_column("inf"), "row 31, column 'b': 'inf'"),
        (b"color\nred\nblue\n", "no column is left to learn from"),
        (odd_column("x"), "row 31, column 'b': 'x'"),
        (b"a;b;color\n1;5,5;red\n2;3,4;blue\n", "(a decimal comma). Pass --text decimal=,"),
        (b"a,color\n,red\n?,blue\n", "No column is left to learn from: 'a': it has no value at"),
        (b"PAR1 but not really", "d.csv"),
        (b"\x1f\x8b but not really", "d.csv"),
        (b"PK\x03\x04", "no Excel workbook that can be read (BadZipFile)"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b'[{"a": 1}]', "this is JSON"),
        (b"FEA1", "Feather version 1"),
        (bytes(range(256)) * 10, "d.csv"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(d, content, message):
    d.write_bytes(content)
    with pytest.raises(TableError) as error:
        read(d)
    assert message in str(error.value)


def test_bytes_that_are_no_utf8_far_down_are_named_by_their_row(d, monkeypatch):
    monkeypatch.setattr(files, "HEAD", 100)
    monkeypatch.setattr(files, "BLOCK", 400)
    d.write_bytes(text().encode() + b"1,2,\xff\n")
    with pytest.raises(TableError, match=r"row 91, column 'color': not UTF-8.*encoding=latin-1"):
        read(d)


def test_damaged_missing_and_unequal_files(d):
    pq.write_table(table(), "d.parquet")
    feather.write_feather(table(), "d.feather")
    for name in ("d.parquet", "d.feather"):
        whole = Path(name).read_bytes()
        Path(name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(TableError, match=name):
            read(name)
    Path("empty").mkdir()
    Path("f").mkdir()
    Path("f/1.csv").write_text("a,b,color\n1,2,red\n")
    Path("f/2.csv").write_text("a,c,color\n1,2,red\n")
    for name, target, message in (
        ("none.csv", "color", r"none\.csv: no such file"),
        ("empty", "color", "no data files in this folder"),
        ("f", "color", r"2\.csv: its columns differ.*lacks 'b' and has 'c'"),
        ("f/1.csv", None, "name the column that holds the classes; there are 'a'"),
    ):
        with pytest.raises(TableError, match=message):
            read(name, target)


def test_headers(d):
    d.write_text(text().split("\n", 1)[1])
    rows = read(d, "c3", ReadOptions(header=False))
    assert list(rows.kinds) == ["c1", "c2"]
    assert len(rows.y) == 90
    d.write_text("0,1,2\n" + text().split("\n", 1)[1])  # as pandas writes arrays
    assert len(read(d, "2").y) == 90
    assert [stem_of(n) for n in ("x/d.csv", "d.csv.gz", "d.CSV", "d.model")] == [*"ddd", "d.model"]


# -- columns ---------------------------------------------------------------------------------------


def test_kinds_of_columns_in_text_and_in_typed_files(d):
    money = [decimal.Decimal(i) / 4 for i in range(6)] * 15
    whole = table(
        flag=[True, False, False] * 30,
        money=pa.array(money, pa.decimal128(10, 2)),
        small=pa.array([*range(5)] * 18, pa.int8()),
        word=["x", "y", None] * 30,
        digits=[*"012"] * 30,
    )
    pq.write_table(whole, "d.parquet")
    whole.to_pandas().to_csv(d, index=False)
    typed = read("d.parquet")
    plain = read(d)
    kinds = dict.fromkeys(["a", "b", "money", "small"], NUMBER)
    assert typed.kinds == kinds | {"flag": CATEGORY, "word": CATEGORY, "digits": NUMBER}
    assert plain.kinds == typed.kinds
    for name in ("money", "small", "word"):
        assert typed.X.column(name).to_pylist() == plain.X.column(name).to_pylist()
    assert str(plain.X.schema.field("small").type) == "int64"
    assert typed.X.column("money").to_pylist()[:3] == [0, 0.25, 0.5]
    assert set(typed.X.column("flag").to_pylist()) == {True, False}
    assert read(d, kinds={"digits": CATEGORY}).kinds["digits"] == CATEGORY
    assert read("d.parquet", kinds={"digits": NUMBER}).kinds["digits"] == NUMBER
    with pytest.raises(TableError, match="row 1, column 'word': 'x'"):
        read("d.parquet", kinds={"word": NUMBER})
    days = [datetime.date(2024, 1, 1 + i % 9) for i in range(90)]
    pq.write_table(table(day=pa.array(days).cast(pa.timestamp("us"))), "t.parquet")
    with pytest.raises(TableError, match="row 1, column 'day': '2024-01-01"):
        read("t.parquet", kinds={"day": NUMBER})
    with pytest.raises(TableError, match="no column 'none' whose kind is given"):
        read(d, kinds={"none": NUMBER})


def test_categories_that_are_no_text_are_categories_in_parquet(d):
    """Parquet keeps their values alone; what pandas and Arrow write beside them says the rest."""
    cells = {
        "codes": [3, 1, None, 3],
        "flag": [True, None, False, True],
        "half": [0.5, 1.5, 0.5, None],
    }
    encoded = {name: pa.array(values).dictionary_encode() for name, values in cells.items()}
    whole = pa.table({**encoded, "y": [0, 1, 0, 1]})
    pq.write_table(whole, "d.parquet", row_group_size=2)
    feather.write_feather(whole, "d.arrow")
    for path in ("d.parquet", "d.arrow"):
        rows = read_table(scan(path), "y")
        assert set(rows.kinds.values()) == {CATEGORY}
        assert {name: rows.X[name].to_pylist() for name in cells} == cells
        asked = read_table(scan(path), "y", kinds=dict.fromkeys(cells, NUMBER))
        assert asked.X["flag"].to_pylist() == [1, None, 0, 1]
        assert asked.X["half"].to_pylist() == cells["half"]
    pq.write_table(whole, "d.parquet", store_schema=False)
    assert read_table(scan("d.parquet"), "y").kinds["half"] == NUMBER


def test_columns_that_teach_nothing_are_left_out_unless_their_kind_is_given(d):
    dates = [datetime.date(2020, 1, 1 + i) for i in range(30)] * 3
    extra = {
        "when": dates,
        "day": map(str, dates),
        "row": range(1, 91),
        "Unnamed: 0": [3 * i + i % 2 for i in range(90)],
        "name": [f"n{i}" for i in range(90)],
        "nothing": pa.nulls(90),
        "blank": [""] * 90,
    }
    pq.write_table(table(**extra), "d.parquet")
    rows = read("d.parquet")
    assert list(rows.kinds) == ["a", "b", "when", "day"]
    assert list(rows.left_out) == list(extra)[2:]
    assert rows.left_out["row"] == "it counts the rows"
    assert "90 in 90" in rows.left_out["name"]
    assert read("d.parquet", kinds={"name": CATEGORY}).kinds["name"] == CATEGORY
    assert list(read("d.parquet", drop=["name"]).left_out)[-1] == "blank"
    for cell, what in (
        ([1, 2], "list<element: int64>"),
        (b"\x00", "binary"),
        (datetime.time(7), "time64[us]"),
    ):
        pq.write_table(table(odd=[cell] * 90), "d.parquet")
        assert read("d.parquet").left_out == {"odd": f"it holds {what}"}


def test_missing_cells(d):
    c = [None if i == 3 else math.nan if i == 5 else 1.0 * (i % 7) for i in range(90)]
    pq.write_table(table(c=c), "d.parquet")
    found = read("d.parquet").X.column("c").to_numpy()
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 5]
    cells = ["", "NA", "N/A", "?", "null", "NaN", "+1", ".5", "1e3", " 2 "]
    d.write_text("x,w,y\n" + "".join(f"{v},{v},{i % 2}\n" for i, v in enumerate(cells)))
    (batch,) = scan(d).batches(["w"])
    assert batch.table["w"].to_pylist() == [None, *cells[1:]]  # to be copied as it is
    rows = read(d, "y", kinds={"w": CATEGORY})
    assert rows.X.column("x").to_pylist()[6:] == [1, 0.5, 1000, 2]
    assert np.isnan(rows.X.column("x").to_numpy()[:6]).all()
    assert rows.X.column("w").to_pylist() == [*[None] * 6, "+1", ".5", "1e3", "2"]


NUMBERS = [7 * i % 33 for i in range(99)]
DAYS = {
    "2024-01-31": datetime.datetime(2024, 1, 31),
    "1.2.2024": datetime.datetime(2024, 2, 1),
    "2024-02-01": datetime.datetime(2024, 2, 1),
}
LATE = {
    # first cells, the last cell, expected kind and cells, or message
    "a missing one": (NUMBERS, "?", NUMBER),
    "a fraction": (NUMBERS, "0.5", NUMBER),
    "an odd one": (
        NUMBERS,
        "oops",
        "row 100, column 'c': 'oops'. For a column of categories pass --columns c=category",
    ),
    "a zip code": ([100 + v for v in NUMBERS], "02134", CATEGORY),
    "few numbers, a word": ([1, 2] * 50, "A", CATEGORY),
    "nothing, a word": ([""] * 99, "A", CATEGORY),
    "nothing, a number": ([""] * 99, "7", NUMBER),
    "booleans, a number": (["true", "false"] * 50, "1", CATEGORY),
    "numbers, a boolean": ([0, 1] * 50, "true", CATEGORY),
    "dates, one of them late": (["2024-01-31", "1.2.2024"] * 50, "2024-02-01", DATE),
    "nothing, a date": ([""] * 99, "2024-02-01", DATE),
    "dates, a word": (
        [f"2024-0{1 + i % 9}-{1 + i // 9:02}" for i in range(99)],
        "x",
        "row 100, column 'c': 'x'",
    ),
}


@pytest.mark.parametrize("block", [100, 1 << 20])
@pytest.mark.parametrize("form", ["a file", "a folder", "typed"])
@pytest.mark.parametrize("name", LATE)
def test_the_last_cell_counts_as_the_first_does(d, monkeypatch, name, form, block):
    """It lies behind the first block, in another file, or in text of a file with types."""
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(files, "CELLS", block)
    first, last, expected = LATE[name]
    cells = [*map(str, first), last]
    n = len(cells)
    whole = {"c": cells, "x": [i / 7 for i in range(n)], "y": [*"uv"] * (n // 2) + ["u"] * (n % 2)}
    if form == "a folder":
        d = d.parent / "folder"
        d.mkdir()
        write(d / "1.csv", **{name: column[:-1] for name, column in whole.items()})
        write(d / "2.csv", **{name: column[-1:] for name, column in whole.items()})
    elif form == "a file":
        write(d, **whole)
    else:
        d = d.with_suffix(".parquet")
        pq.write_table(pa.table(whole), d)
    if expected not in COLUMN_KINDS:
        message = expected.replace("row 100", "row 1") if form == "a folder" else expected
        with pytest.raises(TableError, match=re.escape(message)):
            read_table(scan(d), "y")
        return
    rows = read_table(scan(d), "y")
    assert rows.kinds["c"] == expected
    known = [None if cell in MISSING else cell for cell in cells]
    if expected == NUMBER:
        known = [cell and float(cell) for cell in known]
    elif expected == DATE:
        known = [cell and DAYS[cell] for cell in known]
    assert rows.X["c"].to_pylist() == known


def write(path, **columns):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])


@pytest.mark.parametrize(
    ("first", "last", "classes"),
    [
        ("01", "1.0", [0.0, 1.0]),
        ("01", "2x", ["0", "1", "2x"]),
        ("01", "true", [False, True]),
        ("12", "002", ["002", "1", "2"]),
        ("ab", "NA", ["a", "b"]),
    ],
)
def test_labels_are_read_by_all_of_them(d, monkeypatch, first, last, classes):
    """Of all blocks, and of all files of a folder."""
    monkeypatch.setattr(files, "BLOCK", 50)
    Path("folder").mkdir()
    write("folder/1.csv", x=[i / 7 for i in range(40)], y=[*first] * 20)
    write("folder/2.csv", x=[i / 7 for i in range(40)], y=[*first] * 19 + [last] * 2)
    labels = read_table(scan("folder"), "y").y.tolist()
    assert sorted({repr(v) for v in labels if v is not None}) == sorted(map(repr, classes))


def test_files_with_types_that_differ(d):
    Path("f").mkdir()
    a = [pa.array([1, 2], pa.int8()), pa.array([0.5, None]), ["3", " 4 "]]
    b = [pa.array([1, 2]), pa.array([3.5, 4]), pa.array([5, None], pa.decimal128(4, 1))]
    c = [["u", "v"], pa.array(["v", None]).dictionary_encode(), [True, False]]
    e = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], kind), words)
        for kind, words in ((pa.int8(), ["1", "2"]), (pa.int16(), [3, 4]), (pa.int8(), ["1", "4"]))
    ]
    for i in range(3):
        part = pa.table({"a": a[i], "b": b[i], "c": c[i], "e": e[i], "y": [0, 1]})
        feather.write_feather(part, f"f/{i}.arrow")
    rows = read_table(scan("f"), "y")
    assert rows.X["a"].to_pylist() == [1, 2, 0.5, None, 3, 4]
    assert rows.X["b"].to_pylist() == [1, 2, 3.5, 4, 5, None]
    assert rows.X["c"].to_pylist() == ["u", "v", "v", None, "true", "false"]
    assert rows.X["e"].to_pylist() == ["1", "2", "3", "4", "1", "4"]
    assert rows.kinds == {"a": NUMBER, "b": NUMBER, "c": CATEGORY, "e": CATEGORY}


def test_of_many_cells_rows_are_drawn(d, monkeypatch):
    """The same of a file and of its parts; what a column holds is decided by all rows."""
    monkeypatch.setattr(files, "BLOCK", 1000)
    n = 5000
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 500 == 7, "rare", np.where(rng.random(n) < 0.3, "a", "b"))
    w = rng.integers(1, 4, n)
    x, c = [i / 7 for i in range(n)], ["u" if i else "7" for i in range(n)]
    write(d, x=x, c=c, w=w, y=y, id=range(n))
    Path("f").mkdir()
    for i in range(0, n, 1300):
        at = slice(i, i + 1300)
        write(f"f/{i:04}.csv", x=x[at], c=c[at], w=w[at], y=y[at], id=range(n)[at])
    whole = read_table(scan(d), "y", "w")
    assert whole.left_out == {"id": "it counts the rows"}
    assert len(whole.y) == whole.n_rows == n
    assert whole.weight.tolist() == w.tolist()
    drawn = [read_table(scan(s), "y", "w", keep=["id"], most_cells=2000) for s in (d, "f")]
    for rows in drawn:
        assert rows.kinds == {"x": NUMBER, "c": CATEGORY}
        assert rows.n_rows == n
        assert 1000 <= len(rows.y) < 1100
        at = rows.positions
        assert rows.X["x"].to_pylist() == [x[i] for i in at]
        assert rows.y.tolist() == y[at].tolist()
        assert sum(rows.y == "rare") == 10  # all of them
        share = w[y == "a"].sum() / w.sum()
        assert rows.weight[rows.y == "a"].sum() / rows.weight.sum() == pytest.approx(share)
    assert drawn[0].positions.tolist() == drawn[1].positions.tolist()
    assert drawn[1].ids.tolist() == [f"{i % 1300 + 1} ({i})" for i in drawn[1].positions]
    assert read_table(scan(d), "y", "w", most_cells=2000).left_out == whole.left_out
    part = drawn[0].at(drawn[0].y == "rare")
    assert part.ids.tolist() == [f"{i + 1} ({i})" for i in range(7, n, 500)]


def test_weights_and_targets_of_numbers(d):
    write(d, x=[1.5, 2, 3.5], w=["1", "-2", "x"], y=["0.5", "-1e3", "2"])
    rows = read_table(scan(d), "y", drop=["w"], labeled=False)
    assert rows.y.tolist() == [0.5, -1000, 2]
    with pytest.raises(TableError, match="row 2, column 'w': '-2' is no weight"):
        read_table(scan(d), "y", "w")
    with pytest.raises(TableError, match="y must hold numbers; found 'x'"):
        read_table(scan(d), "w", labeled=False)


# -- targets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["0", "1"], [0, 1]),
        (["007", "012"], ["007", "012"]),
        (["1.0", "2.0"], [1.0, 2.0]),
        (["True", "False"], [False, True]),
        (["true", "FALSE"], [False, True]),
        (["001", "1"], ["001", "1"]),
        (["99999999999999999999", "1"], ["1", "99999999999999999999"]),
        (pa.array([3, 5], pa.uint8()), [3, 5]),
        (pa.array([True, False]), [False, True]),
        (pa.array([0, 366], pa.date32()), ["1970-01-01", "1971-01-02"]),
        (pa.array([0, 86_460], pa.timestamp("s")), ["1970-01-01", "1970-01-02 00:01:00"]),
        (pa.array([decimal.Decimal(1), decimal.Decimal(2)]), [1, 2]),
        (pa.array(["u", "v"]).dictionary_encode(), ["u", "v"]),
    ],
)
def test_targets_keep_their_type_and_are_known_again(d, labels, classes):
    if isinstance(labels, list):
        d.write_text("x,y\n" + "".join(f"{i / 3},{labels[i % 2]}\n" for i in range(10)))
        path = d
    else:
        path = "d.parquet"
        pq.write_table(pa.table({"x": [0.1, 0.2], "y": labels}), path)
    rows = read(path, "y", kinds={"x": NUMBER})
    assert list(map(repr, np.unique(rows.y).tolist())) == list(map(repr, classes))
    text = read(path, "y", kinds={"x": NUMBER, "y": CATEGORY})
    assert np.unique(text.y).tolist() == sorted(
        map(str, set(labels) if isinstance(labels, list) else classes)
    )


def test_rows_without_a_class_and_names_of_rows(d):
    d.write_text("id,z,x,y\n" + "".join(f"k{i},{i},{i / 2},{'uv '[i % 3]}\n" for i in range(9)))
    rows = read(d, "y", keep=["id", "z"])
    assert rows.y.tolist() == [*"uv", None] * 3
    assert rows.ids[[3, 4]].tolist() == ["4 (k3, 3)", "5 (k4, 4)"]
    assert list(rows.kinds) == ["x"]
    labeled = read(d, "y", drop=["id"]).at(np.array([label is not None for label in rows.y]))
    assert labeled.ids.tolist() == [1, 2, 4, 5, 7, 8]
    assert labeled.y.tolist() == [*"uv"] * 3
