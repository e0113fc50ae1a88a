"""One table, whatever holds it: kinds of columns, codes and answers are the same in files of every
format, in data frames, on the command line and from a reloaded model.

The table has what real files have: `?` among numbers, NA in a category, dates, leading zeros,
exponents, three ways to write booleans, empty cells, line ends and quotes in a cell, a byte order
mark, and cells behind the first megabyte that contradict all before them.
"""

import gzip
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kernelpool import SharedKernelClassifier, load
from kernelpool.app.cli.app import app

pytestmark = pytest.mark.filterwarnings(
    "ignore::kernelpool.errors.ColumnWarning", "ignore::kernelpool.errors.UnfinishedWarning"
)

N = 6000
LONG = "x" * 700
MISSING = ["", "NA", "?", "None", "nan", "null"]
KINDS = {
    "age": "number",
    "income": "number",
    "zip": "category",
    "country": "category",
    "joined": "date",
    "active": "category",
    "class": "category",
    "note": "category",
    "late": "number",
    "odd": "category",
}
CATEGORIES = {
    "zip": ["01067", "02134", "10115", "90210"],
    "country": ["DE", "US"],
    "class": ["1", "2", "3", "crew"],
    "note": ['a "b"', "c\nd", "e,f", LONG],
    "odd": ["1", "2", "A"],
}


def written(n=N):
    """The texts of the table, and what they stand for: numbers, dates as days, categories."""
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, n)
    income = rng.lognormal(8, 1, n).round(2)
    joined = np.datetime64("2020-01-01") + rng.integers(0, 900, n)
    active = rng.random(n) < 0.4
    late = rng.normal(size=n).round(3)
    texts = pd.DataFrame(
        {
            "age": age.astype(str),
            "income": [f"{v:e}" if i % 7 == 0 else str(v) for i, v in enumerate(income)],
            "zip": rng.choice(CATEGORIES["zip"], n),
            "country": rng.choice(["DE", "US", "NA"], n),
            "joined": joined.astype(str),
            "active": np.where(
                active, *(rng.choice(w, n) for w in (["true", " TRUE"], ["0", "False "]))
            ),
            "class": rng.choice(CATEGORIES["class"], n),
            "note": rng.choice(CATEGORIES["note"], n),
            "late": late.astype(str),
            "odd": rng.choice(["1", "2"], n),
        },
        dtype=object,
    )
    meaning = texts.assign(age=age, income=income, late=late, active=active).astype(object)
    texts["country"] += rng.choice(["", " "], n)
    meaning["joined"] = (joined - np.datetime64("1970-01-01")).astype(int).astype(object)
    for name, share in {"age": 0.1, "joined": 0.05, "active": 0.05, "zip": 0.1}.items():
        empty = rng.random(n) < share
        texts.loc[empty, name] = rng.choice(MISSING, int(empty.sum()))
        meaning.loc[empty, name] = None
    meaning.loc[meaning.country == "NA", "country"] = None
    texts.loc[n - 3 :, "late"] = "?"  # behind the first megabyte
    meaning.loc[n - 3 :, "late"] = None
    texts.loc[n - 40 :, "odd"] = "A"
    meaning.loc[n - 40 :, "odd"] = "A"
    score = (age > 50) + active + (texts["class"] == "crew") + rng.normal(size=n)
    texts["target"] = np.where(score > 1.2, "yes", "no")
    return texts, meaning


TEXTS, MEANING = written()
X = TEXTS.drop(columns="target")
Y = TEXTS["target"].to_numpy(str)


def typed():
    """The table where its columns have types: numbers, dates, categories."""
    frame = MEANING.copy()
    for name in ("age", "income", "late"):
        frame[name] = frame[name].astype(float)
    frame["joined"] = pd.to_datetime(frame["joined"].astype(float), unit="D")
    frame["active"] = frame["active"].astype("boolean")
    return frame


def csv_file(folder, texts=TEXTS):
    path = folder / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + texts.to_csv(index=False).encode())
    return path


def gz_file(folder, texts=TEXTS):
    path = folder / "rows.csv.gz"
    path.write_bytes(gzip.compress(texts.to_csv(index=False).encode()))
    return path


def parts(folder, texts=TEXTS):
    path = folder / "parts"
    path.mkdir()
    for i, at in enumerate(np.array_split(np.arange(len(texts)), 3)):
        texts.iloc[at].to_csv(path / f"part{i}.csv", index=False)
    return path


def text_table(texts):
    return pa.table(
        {name: pa.array(column.tolist(), pa.string()) for name, column in texts.items()}
    )


def parquet_file(folder, texts=TEXTS):
    path = folder / "rows.parquet"
    pq.write_table(text_table(texts), path)
    return path


def arrow_file(folder, texts=TEXTS):
    path = folder / "rows.arrow"
    pa.feather.write_feather(text_table(texts), path)
    return path


FILES = {
    "csv": csv_file,
    "csv.gz": gz_file,
    "folder": parts,
    "parquet": parquet_file,
    "arrow": arrow_file,
}
FRAMES = {
    "pandas": lambda texts: texts,
    "pandas, typed": lambda texts: typed().loc[texts.index],
    "polars": lambda texts: polars.DataFrame(texts.to_dict("list")),
    "polars, typed": lambda texts: polars.from_pandas(typed().loc[texts.index]),
    "pyarrow": text_table,
    "pyarrow, typed": lambda texts: pa.Table.from_pandas(
        typed().loc[texts.index], preserve_index=False
    ),
}
close = partial(np.testing.assert_allclose, rtol=0, atol=1e-12)

MIXTURE = SharedKernelClassifier(2, training="em", max_iter=3, tol=1e-2, random_state=0)


@pytest.fixture(scope="module")
def whole():
    """The mixture of the frame of text."""
    return MIXTURE.fit(X, Y)


def assert_learned(columns):
    assert dict(zip(columns.names, columns.kinds, strict=True)) == KINDS
    for name, values in CATEGORIES.items():
        assert columns.categories[columns.names.index(name)].tolist() == values
    assert len(columns.categories[columns.names.index("active")]) == 2


def assert_cells(columns, table):
    """The codes of the table are those of what its texts stand for."""
    encoded = columns.encode(table)
    for i, name in enumerate(columns.names):
        expected = MEANING.loc[X.index[: len(encoded)], name]
        if KINDS[name] == "category" and name != "active":
            place = {value: code for code, value in enumerate(CATEGORIES[name])}
            expected = expected.map(place)
        close(encoded[:, i], expected.astype(float), rtol=1e-15)


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name, whole):
    frame = FRAMES[name](X)
    model = MIXTURE.fit(frame, Y)
    assert_learned(model.columns_)
    assert_cells(model.columns_, frame)
    assert (model.predict_proba(frame) == whole.predict_proba(X)).all()
    assert (whole.predict_proba(frame) == whole.predict_proba(X)).all()


@pytest.mark.parametrize("name", FILES)
def test_files(name, whole, tmp_path):
    path = FILES[name](tmp_path)
    model = MIXTURE.fit(path, "target")
    assert_learned(model.columns_)
    expected = whole.predict_proba(X)
    close(model.predict_proba(path), expected)
    close(whole.predict_proba(path), expected)
    assert whole.score(path, "target") == whole.score(X, Y)
    # rows of which no cell tells what their columns hold are read as those of the fit
    (tmp_path / "few").mkdir()
    at = np.flatnonzero(X["class"].ne("crew") & X["zip"].isin(["01067", "02134"]))[:50]
    few = FILES[name](tmp_path / "few", TEXTS.iloc[at].reset_index(drop=True))
    close(whole.predict_proba(few), expected[at])


@pytest.mark.parametrize("name", ["csv", "folder", "parquet"])
def test_command_line(name, whole, tmp_path):
    path = str(FILES[name](tmp_path))
    model = str(tmp_path / "m.safetensors")
    out = str(tmp_path / "out.parquet")
    fit = "fit {} -t target -m shared-kernel --set n_kernels=2 --set training=em --set max_iter=3 --set tol=0.01"
    command = [word.format(path) for word in fit.split()]
    run = CliRunner().invoke(app, [*command, "--holdout", "0", "-o", model])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(app, ["predict", model, path, "-o", out])
    assert run.exit_code == 0, run.output
    answers = pq.read_table(out).to_pandas()
    expected = whole.predict_proba(X)
    found = answers[["probability_no", "probability_yes"]].to_numpy()
    close(found, expected)
    again = load(model)
    assert_learned(again.columns_)
    for table in (X, Path(path), typed()):
        close(again.predict_proba(table), found)


def test_contradictions_stand_behind_the_first_megabyte():
    assert len(TEXTS.iloc[: N - 40].to_csv(index=False)) > 1 << 20
