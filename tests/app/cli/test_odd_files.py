"""Files as they come: every format, encoding and oddity is read alike or refused with a reason."""

import datetime
import decimal
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import kernelpool
from kernelpool.app.files import read_header
from kernelpool.app.readers.labels import read_labeled
from kernelpool.app.readers.sources import source

from .tables import QUICK, colors, write_csv

NAMES = ["a", "b", "color"]


def table(**extra):
    rows = colors()
    columns = {
        "a": [float(r[0]) for r in rows],
        "b": [float(r[1]) for r in rows],
        "color": [r[2] for r in rows],
    }
    return pa.table({**columns, **extra})


def fingerprint(path):
    return read_header(path)["summary"]["data"]["fingerprint"]


def text(delimiter=",", end="\n", decimal="."):
    lines = [
        delimiter.join(NAMES),
        *(
            delimiter.join([a.replace(".", decimal), b.replace(".", decimal), c])
            for a, b, c in colors()
        ),
    ]
    return end.join([*lines, ""])


FORMS = {
    "plain": (lambda: text().encode(), []),
    "byte order mark": (lambda: b"\xef\xbb\xbf" + text().encode(), []),
    "CRLF": (lambda: text(end="\r\n").encode(), []),
    "semicolons": (lambda: text(delimiter=";").encode(), []),
    "tabs": (lambda: text(delimiter="\t").encode(), []),
    "pipes": (lambda: text(delimiter="|").encode(), []),
    "decimal comma": (lambda: text(delimiter=";", decimal=",").encode(), ["--decimal", ","]),
    "UTF-16": (lambda: text().encode("utf-16"), []),
    "latin-1": (lambda: text().encode("latin-1"), ["--encoding", "latin-1"]),
    "gzip": (lambda: gzip.compress(text().encode()), []),
    "no last end of line": (lambda: text().rstrip("\n").encode(), []),
    "blank lines": (lambda: b"\n" + text().replace("\n", "\n\n").encode(), []),
    "space after commas": (lambda: text(delimiter=", ").encode(), []),
    "quotes": (
        lambda: ('"' + text().replace(",", '","').replace("\n", '"\n"').removesuffix('"')).encode(),
        [],
    ),
    "given delimiter": (lambda: text(delimiter="~").encode(), ["--delimiter", "~"]),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The rows of `colors`, read in the plainest way."""
    path = tmp_path_factory.mktemp("plain") / "d.csv"
    path.write_bytes(text().encode())
    return read_labeled(source(str(path)), "color").fingerprint()


@pytest.mark.parametrize("name", FORMS)
def test_text_in_all_its_forms_holds_the_same_rows(run, plain, name):
    make, words = FORMS[name]
    Path("d.csv").write_bytes(make())
    run("fit", "d.csv", "-t", "color", *QUICK, *words, "--holdout", 0)
    assert fingerprint("d.safetensors") == plain


def test_parquet_arrow_feather_folders_and_pipes_hold_the_same_rows(run, plain):
    whole = table()
    pq.write_table(whole, "a.parquet", row_group_size=7)
    feather.write_feather(whole, "b.feather")
    with pa.OSFile("c.arrows", "wb") as sink, pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole, max_chunksize=11)
    folder = Path("d")
    folder.mkdir()
    pq.write_table(whole.slice(0, 30), folder / "1.parquet")
    write_csv(folder / "2.csv", ["b", "color", "a"], [[b, c, a] for a, b, c in colors()[30:60]])
    feather.write_feather(whole.slice(60), str(folder / "3.arrow"))
    (folder / ".hidden.csv").write_text("x")
    (folder / "notes.md").write_text("x")
    pq.write_table(whole.set_column(2, "color", whole.column("color").dictionary_encode()), "e.pq")
    for i, name in enumerate(("a.parquet", "b.feather", "c.arrows", "d", "e.pq")):
        run("fit", name, "-t", "color", *QUICK, "--holdout", 0, "-o", f"{i}.st")
        assert fingerprint(f"{i}.st") == plain
    for i, data in enumerate(
        (text().encode(), Path("a.parquet").read_bytes(), Path("c.arrows").read_bytes())
    ):
        run("fit", "-", "-t", "color", *QUICK, "--holdout", 0, "-o", f"pipe{i}.st", input=data)
        assert fingerprint(f"pipe{i}.st") == plain


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n\n\n", "the file is empty"),
        (b"sep=;\n\n", "nothing below the line 'sep=;'"),
        (b"a,b,color", "no rows below the header"),
        (b"a,b,color\n", "no rows below the header"),
        (b"a,b,color\n1,2,red\n", "at least two classes; found only 'red' in 1 row"),
        (b"a,b,color\n1,2,red\n3,4\n", "row 2: 2 cells where the header has 3: '3,4'"),
        (b"a,b,color\n1,2,red\n3,4,blue,5\n", "row 2: 4 cells where the header has 3"),
        (b"a,a,color\n1,2,red\n", "several columns are named 'a'"),
        (b"a,,color\n1,2,red\n3,4,blue\n", "column 2 has no name"),
        (b"1,2,red\n3,4,blue\n", "no column 'color'"),
        (b"1,2,3\n3,4,5\n", "looks like data: '1', '2', '3'"),
        (b"a,b,color\n1,2,red\n1,\xff,red\n", "row 2, column 'b': not utf-8 text"),
        (b"a,\xff,color\n1,2,red\n", "the header is not utf-8 text"),
        (b"a,b,color\n1,inf,red\n", "row 1, column 'b': an infinite number"),
        (b"a,b,color\n1,1e999,red\n", "row 1, column 'b': an infinite number"),
        (b"color\nred\nblue\n", "no column is left to learn from"),
        (b"a,b,color\n1,x,red\n2,3,blue\n", "row 1, column 'b': 'x'"),
        (b"a,b,color\n1,1_000,red\n", "'1_000'"),
        (
            b"a,color\n2020-01-01,red\n2020-01-02,blue\n",
            "it holds dates such as '2020-01-01'",
        ),
        (b'a,b,color\n1,"2,red\n3,4,blue\n', "row 1"),
        (b"PAR1 but not really", "d.csv"),
        (b"ARROW1 but not really", "d.csv"),
        (b"\x1f\x8b but not really", "d.csv"),
        (b"FEA1", "Feather version 1"),
        (bytes(range(256)) * 10, "d.csv"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(run, content, said):
    Path("d.csv").write_bytes(content)
    ran = run("fit", "d.csv", "-t", "color", *QUICK, code=3)
    assert said in ran.text
    assert [path.name for path in Path().iterdir()] == ["d.csv"]


def test_truncated_files_are_refused(run):
    pq.write_table(table(), "d.parquet")
    feather.write_feather(table(), "d.feather")
    for name in ("d.parquet", "d.feather"):
        whole = Path(name).read_bytes()
        Path(name).write_bytes(whole[: len(whole) // 2])
        assert name in run("fit", name, "-t", "color", *QUICK, code=3).err


def test_missing_files_and_folders(run):
    assert "no such file" in run("fit", "none.csv", "-t", "x", *QUICK, code=3).err
    Path("empty").mkdir()
    assert "no data files in this folder" in run("fit", "empty", "-t", "x", *QUICK, code=3).err
    assert "with -o when the data come from stdin" in run("fit", "-", "-t", "x", *QUICK, code=2).err
    write_csv("empty/1.csv", NAMES, colors()[:9])
    write_csv("empty/2.csv", ["a", "c", "color"], colors()[9:])
    ran = run("fit", "empty", "-t", "color", *QUICK, code=3)
    assert (
        "2.csv: its columns differ from those of empty/1.csv: it lacks 'b' and has 'c' besides"
        in ran.text
    )


def test_one_column_has_no_name_and_can_be_dropped(run):
    write_csv("d.csv", ["", *NAMES], [[i, *row] for i, row in enumerate(colors())])
    run("fit", "d.csv", "-t", "color", *QUICK, "--drop", "")
    assert read_header("d.safetensors")["feature_names"] == ["a", "b"]


def test_no_header(run, plain):
    Path("d.csv").write_text(text().split("\n", 1)[1])
    run("fit", "d.csv", "-t", "c3", *QUICK, "--no-header", "--holdout", 0)
    assert read_header("d.safetensors")["feature_names"] == ["c1", "c2"]
    assert len(run("predict", "d.safetensors", "d.csv", "--no-header").out.splitlines()) == 91


# -- types -------------------------------------------------------------------------------------------------------


def test_booleans_decimals_and_small_integers_are_numbers(run):
    n = 90
    flags, small = [i % 4 == 0 for i in range(n)], pa.array([i % 5 for i in range(n)], pa.int8())
    money = pa.array([decimal.Decimal(i) / 4 for i in range(n)], pa.decimal128(10, 2))
    whole = table(flag=flags, money=money, small=small)
    pq.write_table(whole, "d.parquet")
    run("fit", "d.parquet", "-t", "color", *QUICK, "--holdout", 0, "--scale", "standard")
    pa_csv = [
        [f"{r['a']!r}", f"{r['b']!r}", r["color"], str(r["flag"]), str(r["money"]), r["small"]]
        for r in whole.to_pylist()
    ]
    write_csv("d.csv", whole.column_names, pa_csv)
    run(
        "fit", "d.csv", "-t", "color", *QUICK, "--holdout", 0, "--scale", "standard", "-o", "csv.st"
    )
    assert fingerprint("csv.st") == fingerprint("d.safetensors")
    model = kernelpool.load("d.safetensors")
    np.testing.assert_allclose(
        model[0].mean_[2:], [np.mean(flags), np.mean(np.arange(n) / 4), np.mean(np.arange(n) % 5)]
    )


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            lambda n: [datetime.date(2020, 1, 1 + i % 28) for i in range(n)],
            "'2020-01-01 (date32[day])'",
        ),
        (lambda n: [datetime.datetime(2020, 1, 1, i % 24) for i in range(n)], "timestamp"),
        (lambda n: [[1, 2]] * n, "list"),
        (lambda n: [b"\x00"] * n, "binary"),
        (lambda n: [{"u": 1}] * n, "struct"),
    ],
)
def test_dates_and_nested_cells_are_no_features(run, column, said):
    pq.write_table(table(odd=pa.array(column(90))), "d.parquet")
    dates = said in ("timestamp", "'2020-01-01 (date32[day])'")
    ran = run("fit", "d.parquet", "-t", "color", *QUICK, code=0 if dates else 3)
    assert said in ran.text or dates
    assert ("column 'odd' is left out: it holds dates or times" in ran.text) == dates
    assert ("row 1, column 'odd'" in ran.text) != dates
    ran = run(
        "fit",
        "d.parquet",
        "-t",
        "color",
        *QUICK,
        "--columns",
        "odd=number",
        "-o",
        "other.st",
        code=3,
    )
    assert "row 1, column 'odd'" in ran.text


def test_strings_in_typed_files_are_words_whatever_they_hold(run):
    pq.write_table(table(code=[str(i % 3) for i in range(90)]), "d.parquet")
    ran = run("fit", "d.parquet", "-t", "color", *QUICK, "--columns", "code=number", code=3)
    assert "row 1, column 'code': '0'" in ran.text
    ran = run("fit", "d.parquet", "-t", "color", *QUICK)
    assert "Words: 'code' (3 words). Numbers: 'a', 'b'. --columns corrects it." in ran.text
    told = read_header("d.safetensors")["summary"]["features"]
    assert [entry["kind"] for entry in told] == ["number", "number", "category"]
    assert (
        run("evaluate", "d.safetensors", "d.parquet", "--json").json["counted"] == "rows held out"
    )


def test_a_bad_cell_far_down_is_named_by_its_own_row(run, monkeypatch):
    from kernelpool.app.readers import sources as text_files

    monkeypatch.setattr(text_files, "BLOCK", 200)
    rows = colors()
    rows[79][1] = "x"
    write_csv("d.csv", NAMES, rows)
    assert (
        "d.csv, row 80, column 'b': 'x'" in run("fit", "d.csv", "-t", "color", *QUICK, code=3).text
    )


def test_nulls_and_nans_in_parquet_are_missing_cells(run):
    b = [None if i == 3 else float("nan") if i == 5 else 1.0 * i for i in range(90)]
    pq.write_table(table(c=b, d=pa.nulls(90)), "d.parquet")
    ran = run("fit", "d.parquet", "-t", "color", "-m", "neurons", "--set", "missing=error", code=3)
    assert (
        "92 missing cells in 90 of 90 rows: 'd' (90, first in d.parquet, row 1), 'c' (2, first in d.parquet, row 4)"
        in ran.text
    )
    ran = run("fit", "d.parquet", "-t", "color", *QUICK)
    assert "2 missing cells in 2 of 90 rows: 'c' (2, first in d.parquet, row 4)" in ran.text
    assert "column 'd' is left out: it has no value at all" in ran.text


@pytest.mark.parametrize(
    ("labels", "words", "classes"),
    [
        (["0", "1"], [], [0, 1]),
        (["0", "1"], ["--text-target"], ["0", "1"]),
        (["007", "012"], [], ["007", "012"]),
        (["1.0", "2.0"], [], ["1.0", "2.0"]),
        (["-1", "1"], [], [-1, 1]),
        (["yes", "no"], [], ["no", "yes"]),
        (["True", "False"], [], ["False", "True"]),
        (["NA", "DE"], [], ["DE", "NA"]),
        (["+", "-"], [], ["+", "-"]),
        (["99999999999999999999", "1"], [], ["1", "99999999999999999999"]),
    ],
)
def test_targets_in_text(run, labels, words, classes):
    write_csv("d.csv", NAMES, [[a, b, labels[i % 2]] for i, (a, b, _) in enumerate(colors())])
    run("fit", "d.csv", "-t", "color", *QUICK, *words)
    assert kernelpool.load("d.safetensors").classes_.tolist() == classes
    assert run("evaluate", "d.safetensors", "d.csv", "--json").json["n_rows"] == 18
    run("predict", "d.safetensors", "d.csv", "-o", "p.parquet")
    assert set(pq.read_table("p.parquet").column("label").to_pylist()) <= set(classes)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (pa.array([3, 5] * 45, pa.uint8()), [3, 5]),
        (pa.array([3.0, 5.0] * 45), [3, 5]),
        (pa.array([0.5, 1.5] * 45), ["0.5", "1.5"]),
        (pa.array([True, False] * 45), ["false", "true"]),
        (
            pa.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 45),
            ["2020-01-01", "2021-01-01"],
        ),
        (pa.array([decimal.Decimal("1"), decimal.Decimal("2")] * 45), [1, 2]),
    ],
)
def test_targets_with_types(run, labels, classes):
    pq.write_table(table().set_column(2, "color", labels), "d.parquet")
    run("fit", "d.parquet", "-t", "color", *QUICK)
    assert kernelpool.load("d.safetensors").classes_.tolist() == classes
    assert run("evaluate", "d.safetensors", "d.parquet", "--json").json["n_rows"] == 18


def test_measurements_and_names_are_no_targets(run):
    rows = [[a, b, f"{float(a) * 1.01:.5f}"] for a, b, _ in colors()]
    write_csv("d.csv", NAMES, rows)
    assert "fractional numbers" in run("fit", "d.csv", "-t", "color", *QUICK, code=3).err
    write_csv("e.csv", NAMES, [[a, b, i] for i, (a, b, _) in enumerate(colors())])
    assert (
        "90 different values in 90 rows" in run("fit", "e.csv", "-t", "color", *QUICK, code=3).err
    )
    pq.write_table(table().set_column(2, "color", pa.array([[1]] * 90)), "f.parquet")
    assert "cannot be a class" in run("fit", "f.parquet", "-t", "color", *QUICK, code=3).err


# -- size --------------------------------------------------------------------------------------------------------


def test_ten_thousand_columns(run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 10_000)).round(2) + 3 * (np.arange(12) % 2)[:, None]
    buffer = io.StringIO()
    np.savetxt(buffer, x, fmt="%.2f", delimiter=",")
    lines = buffer.getvalue().splitlines()
    names = ",".join(f"column {i}" for i in range(10_000))
    body = [f"{line},{'xy'[i % 2]}" for i, line in enumerate(lines)]
    Path("d.csv").write_text("\n".join([f"{names},kind", *body, ""]))
    run("fit", "d.csv", "-t", "kind", "-m", "shared-kernel", "-k", 2, "--covariance", "diag")
    found = run("predict", "d.safetensors", "d.csv").out.splitlines()
    assert [line[0] for line in found[1:]] == list("xy" * 6)
    (last := x)[3, 7777] = np.nan
    text = "\n".join(
        [f"{names}", *(",".join("" if v != v else f"{v:.2f}" for v in row) for row in last), ""]
    )
    Path("e.csv").write_text(text)
    assert (
        "1 row with missing cells judged by the cells that are known"
        in run("predict", "d.safetensors", "e.csv").text
    )
    Path("f.csv").write_text(
        ",".join(f"column {i}" for i in range(9_000)) + "\n" + ",".join(["1"] * 9_000) + "\n"
    )
    ran = run("predict", "d.safetensors", "f.csv", code=3)
    assert "'column 9007' and 992 more" in ran.text


def test_a_file_larger_than_a_block_is_read_in_pieces(run, fitted, monkeypatch):
    from kernelpool.app.readers import sources

    seen = []
    original = sources._parsed
    monkeypatch.setattr(sources, "BLOCK", 1 << 14)
    monkeypatch.setattr(sources, "HEAD", 1 << 14)
    monkeypatch.setattr(
        sources, "_parsed", lambda *w: (seen.append(b.num_rows) or b for b in original(*w))
    )
    write_csv("d.csv", NAMES, colors(6000))
    run("predict", fitted[1], "d.csv", "-o", "out.csv")
    assert sum(seen) == 6000
    assert max(seen) < 2000
    assert len(Path("out.csv").read_text().splitlines()) == 6001
    Path("long.csv").write_text("a,b\n1," + "9" * (1 << 15) + "\n")
    assert "a row is longer than" in run("predict", fitted[1], "long.csv", code=3).text
