"""Files as they come: each is read, or refused by name."""

import csv
import gzip
import io
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from kernelpool.app.readers import sources as text_files
from kernelpool.app.readers.labels import read_labeled
from kernelpool.app.readers.sources import _end_of_rows, source
from kernelpool.errors import TableError

N = 90


def values(n=N):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)).round(3), np.array(["red", "green", "blue"])[np.arange(n) % 3]


def text():
    x, y = values()
    return "\n".join(
        [
            "a,b,color",
            *(f"{a},{b},{label}" for (a, b), label in zip(x.tolist(), y, strict=True)),
            "",
        ]
    )


def table():
    x, y = values()
    return pa.table({"a": x[:, 0], "b": x[:, 1], "color": y})


def cells(path, **options):
    return [
        row
        for batch in source(str(path), **options).batches()
        for row in pa.table(batch.columns).to_pylist()
    ]


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.parquet", "d.feather", "d.arrows"])
def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path, name):
    path, rng = tmp_path / name, np.random.default_rng(0)
    whole = table()
    if "csv" in name:
        path.write_bytes(gzip.compress(text().encode()) if name.endswith("gz") else text().encode())
    elif name == "d.parquet":
        pq.write_table(whole, path)
    elif name == "d.feather":
        feather.write_feather(whole, str(path), compression="uncompressed")
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, whole.schema) as stream:
            stream.write_table(whole)
    intact, refused = path.read_bytes(), []
    for _ in range(100):
        damaged = bytearray(intact)
        for at in rng.integers(len(intact), size=rng.integers(1, 5)):
            damaged[at] = rng.integers(256)
        if rng.random() < 0.3:
            del damaged[rng.integers(1, len(damaged)) :]
        path.write_bytes(damaged)
        try:
            read_labeled(source(str(path)), "color")
        except TableError as error:
            refused.append(error)
    assert len(refused) > 30


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04 and so on", "an Excel workbook (.xlsx) or another zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)"),
        (json.dumps([{"a": 1}]).encode(), "JSON"),
        (b'{"a": 1}\n{"a": 2}\n', "JSON"),
        (pickle.dumps({"a": 1}), "a Python pickle"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"<!DOCTYPE html><table>", "HTML or XML"),
        (b"# made by hand\na,b\n1,2\n", "the first line is a comment: '# made by hand'"),
    ],
)
def test_what_is_no_table_is_called_by_its_name(tmp_path, content, said):
    (tmp_path / "d.csv").write_bytes(content)
    with pytest.raises(TableError, match=r"d\.csv: ") as caught:
        cells(tmp_path / "d.csv")
    assert said in str(caught.value)


def test_brackets_in_a_header_are_no_json(tmp_path):
    (tmp_path / "d.csv").write_text("[id],[a]\n1,2\n")
    assert cells(tmp_path / "d.csv") == [{"[id]": "1", "[a]": "2"}]


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "\nsep=;\n"])
def test_the_line_that_spreadsheets_write_before_the_header_names_the_delimiter(tmp_path, first):
    (tmp_path / "d.csv").write_text(f"{first}a, x;b\n1;2\n", newline="")
    assert cells(tmp_path / "d.csv") == [{"a, x": "1", "b": "2"}]


def test_a_header_of_fifteen_thousand_long_names(tmp_path):
    names = [f"gene number {i}" for i in range(15_000)]
    assert len(",".join(names)) > csv.field_size_limit()
    (tmp_path / "d.csv").write_text(f"{','.join(names)}\n{','.join(map(str, range(15_000)))}\n")
    assert cells(tmp_path / "d.csv") == [dict(zip(names, map(str, range(15_000)), strict=True))]
    (tmp_path / "e.csv").write_text("x" * 200_000 + "\n1\n")
    with pytest.raises(TableError, match=r"no delimiter in its first 131,072 characters"):
        cells(tmp_path / "e.csv")


HARD = [
    ["plain", "two\nlines", 'a "quoted" word'],
    ["", "comma, inside", "ends with\r\n"],
    ['5" pipe', "x", '""'],
    ["ü", "\n\n", ","],
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [1, 7, 64, 1 << 24])
def test_blocks_end_where_rows_end_whatever_is_in_quotes(tmp_path, monkeypatch, end, block):
    monkeypatch.setattr(text_files, "BLOCK", max(block, 64))  # a row must fit
    monkeypatch.setattr("kernelpool.app.readers.sources.HEAD", block)
    out = io.StringIO()
    quoting = (
        csv.QUOTE_ALL if end == "\r" else csv.QUOTE_MINIMAL
    )  # which leaves \n bare where it ends no line
    csv.writer(out, lineterminator=end, quoting=quoting).writerows([["a", "b", "c"], *HARD * 5])
    (tmp_path / "d.csv").write_bytes(out.getvalue().encode())
    assert [list(row.values()) for row in cells(tmp_path / "d.csv")] == HARD * 5


def test_a_row_that_does_not_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 1000)
    monkeypatch.setattr("kernelpool.app.readers.sources.HEAD", 100)
    (tmp_path / "d.csv").write_text("a,b\n1,2\n3," + "x" * 5000 + "\n")
    with pytest.raises(
        TableError,
        match=r"after row 0: a row is longer than 1,000 bytes|after row 1: a row is longer",
    ):
        cells(tmp_path / "d.csv")


def test_the_file_is_left_alone_when_reading_stops(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n" + "1,2\n" * 100_000)
    batches = source(str(tmp_path / "d.csv")).batches()
    next(batches)
    batches.close()  # no thread of Arrow's holds the file


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_blocks_end_where_rows_end_wherever_quotes_and_ends_of_lines_are(quoting):
    rng = np.random.default_rng(0)
    letters = ['"', ",", "\n", "a", "b"]
    for _ in range(200):
        rows = [["".join(rng.choice(letters, rng.integers(4))) for _ in range(2)] for _ in range(4)]
        ends, text = [0], io.StringIO(newline="")
        for row in rows:
            csv.writer(text, quoting=quoting, lineterminator="\n").writerow(row)
            ends.append(len(text.getvalue()))
        whole = text.getvalue().encode()
        for cut in range(ends[1], len(whole) + 1):  # any number of bytes may have been read
            assert _end_of_rows(whole[:cut], b",") == max(end for end in ends if end <= cut)


def test_a_quote_inside_a_cell_is_a_letter():
    assert _end_of_rows(b'5" pipe,1\n6" pi', b",") == 10
    assert _end_of_rows(b'5" pipe,"a\nb"\n6" pi', b",") == 14
