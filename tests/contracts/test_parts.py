"""Every class answers, and learns from, rows of files, of batches and of Dask as it does rows in
memory.
"""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from zoo import CLASSIFIERS, META, fitted, table

from kernelpool import ConformalClassifier, EMLogRegressor, MultiEdit, RejectClassifier
from kernelpool.base.parts import ANSWERS
from kernelpool.errors import SampleWarning, TableError
from kernelpool.tables import draw

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")

ALL = {**CLASSIFIERS, **META}
X, Y = table()
WHOLE = X.assign(label=Y)
REGRESSOR = EMLogRegressor(5, random_state=0, max_iter=20)
N = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for i, at in enumerate(np.array_split(np.arange(len(X)), 3)):
        WHOLE.iloc[at].to_parquet(folder / f"{i}.parquet")
    return folder


def in_frames(folder):
    return dd.from_pandas(WHOLE, npartitions=3, sort=False)


def in_folder(folder):
    return str(folder)


def in_dataset(folder):
    return ds.dataset(folder)


def in_batches(folder):
    return (WHOLE[i : i + 40] for i in range(0, len(WHOLE), 40))


def in_frame(folder):
    return WHOLE


SOURCES = [in_folder, in_dataset, in_frame, in_batches]


def assert_same(found, expected, rtol=1e-7):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        assert_allclose(found, expected, rtol=rtol, atol=1e-9)
    else:
        assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ALL)
def test_every_method_answers_part_by_part(name, folder):
    model = fitted(name)
    methods = [method for method in ANSWERS if hasattr(model, method)]
    assert {"predict", "predict_proba"} <= {*methods}
    makes = itertools.cycle((in_folder, in_dataset, in_batches))
    for method in methods:
        expected = getattr(model, method)(X)
        lazy = getattr(model, method)(in_frames(folder)[["dose", "label", "town", "age"]])
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        assert_same(lazy.compute(), expected)
        assert_same(getattr(model, method)(next(makes)(folder)), expected)


@pytest.mark.parametrize("name", ALL)
def test_every_class_is_fitted_to_and_scored_on_any_rows(name, folder):
    in_memory = fitted(name)
    expected = in_memory.score(X, Y)
    assert 0 < expected < 1
    for make in (in_frames, SOURCES[[*ALL].index(name) % 4]):
        assert in_memory.score(make(folder), "label") == pytest.approx(expected, abs=1e-12)
        if in_memory.takes_any_rows and make is in_batches:
            continue  # it is read more than once by an average
        found = clone(ALL[name]).fit(make(folder), "label")
        error = 1e-8 if in_memory.takes_any_rows else 0  # sums in another order
        assert_allclose(found.predict_proba(X), in_memory.predict_proba(X), rtol=0, atol=error)


def test_arrays_of_dask_with_chunks_of_any_size():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = rng.normal(size=(200, 3)) + y[:, None]
    sizes = (50, 0, 120, 30)
    there = da.from_array(x, chunks=(sizes, 3))
    unknown = there[da.from_array(np.arange(200), chunks=(sizes,)) >= 60]  # of unknown length
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        clone(ALL["em"]).fit(unknown, y)
    with pytest.raises(ValueError, match="X has 200 rows in 4 chunks and y or sample_weight 199"):
        clone(ALL["em"]).fit(there, da.from_array(y[:-1], chunks=70))
    for name in ("rbf", "conformal"):
        model = clone(ALL[name]).fit(x, y)
        for rows, labels in (
            (there, da.from_array(y, chunks=70)),
            (there, y),
            (da.from_array(x, chunks=(70, 2)), y),
        ):
            found = clone(ALL[name]).fit(rows, labels)
            assert_array_equal(found.predict_proba(x), model.predict_proba(x))
        lazy = model.predict_proba(there)
        assert lazy.chunks[0] == (50, 120, 30)
        assert_allclose(lazy.compute(), model.predict_proba(x), rtol=1e-9)
        assert_array_equal(model.predict(unknown).compute(), model.predict(x[60:]))
        assert model.score(there, y) == pytest.approx(model.score(x, y))


def test_arrays_of_other_libraries_are_taken_to_the_host():
    strict = pytest.importorskip("array_api_strict")
    x = X[["age", "dose"]].fillna(0.0).to_numpy()
    for name in ("rbf", "pool"):
        found = clone(ALL[name]).fit(strict.asarray(x), Y)
        expected = clone(ALL[name]).fit(x, Y).predict_proba(x)
        assert_array_equal(found.predict_proba(strict.asarray(x)), expected)


def test_the_regressor_and_multi_edit(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    y = np.sin(frame.a) + frame.b
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    there = dd.from_pandas(frame.assign(y=y), npartitions=3, sort=False)
    model = clone(REGRESSOR).fit(frame, y)
    for rows in (tmp_path / "rows.parquet", there):
        found = clone(REGRESSOR).fit(rows, "y")
        assert_array_equal(found.predict(frame), model.predict(frame))
        assert model.score(rows, "y") == pytest.approx(model.score(frame, y))
    for lazy, expected in zip(
        model.predict(there, return_std=True), model.predict(frame, return_std=True), strict=True
    ):
        assert_allclose(lazy.compute(), expected)
    mean, _ = model.predict(tmp_path / "rows.parquet", return_std=True)
    assert_allclose(mean, model.predict(frame))
    edit = MultiEdit(random_state=0)
    left = edit.fit_resample(there.assign(y=(there.y > 0).astype(int)), "y")[0]
    pd.testing.assert_frame_equal(left, edit.fit_resample(frame, (y > 0).astype(int))[0])


def test_classifiers_of_other_libraries_inside(folder):
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    numbers = X[["age", "dose"]].fillna(0.0)
    there = dd.from_pandas(numbers, npartitions=3, sort=False)
    for model in (
        RejectClassifier(inner, ambiguity=0.3),
        ConformalClassifier(inner),
    ):
        model.fit(numbers, Y)
        assert_same(model.predict(there).compute(), model.predict(numbers))
        proba = model.predict_proba(there)
        assert_allclose(proba.compute(), model.predict_proba(numbers), rtol=1e-9)


def test_mixtures_learn_columns_of_any_kind_from_frames_of_dask():
    """Some partitions lack some categories, and text of one of them reads as numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120)})
    frame["code"] = [str(i % 4) if i < 60 else "abcd"[i % 4] for i in range(120)]
    frame["day"] = pd.date_range("2024-01-01", periods=120).astype(str)
    frame["flag"] = rng.random(120) < 0.5
    frame["town"] = pd.Categorical(rng.choice(["Oslo", "Rome"], 120))
    frame["label"] = np.where(frame.x + frame.flag > 0.5, "yes", "no")
    in_memory = clone(CLASSIFIERS["em"]).fit(frame.drop(columns="label"), frame.label)
    there = dd.from_pandas(frame, npartitions=4, sort=False)
    found = clone(CLASSIFIERS["em"]).fit(there, "label")
    assert found.columns_.kinds == ("number", "category", "date", "category", "category")
    assert found.columns_.types == in_memory.columns_.types
    expected = in_memory.predict_proba(frame.drop(columns="label"))
    assert_allclose(found.predict_proba(there).compute(), expected, atol=1e-8)
    named = clone(CLASSIFIERS["em"]).set_params(categorical_features=["x"])
    assert named.fit(there[["x", "flag", "label"]], "label").columns_.levels[0] == 121


# -- more rows than fit in memory ------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch, tmp_path):
    """Rows of which a third fits, 2 % of them of a rare class, as a file, its parts and frames."""
    monkeypatch.setattr(draw, "MOST_CELLS", N)
    monkeypatch.setattr(draw, "DRAWN_OF_CLASS", 50)
    rng = np.random.default_rng(0)
    y = np.array(["common", "other", "rare"])[np.searchsorted([0.7, 0.99], rng.random(N))]
    frame = pd.DataFrame(rng.normal(size=(N, 3)) + (y == "other")[:, None], columns=list("abc"))
    frame["label"] = y
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "parts").mkdir()
    for i, at in enumerate(np.split(np.arange(N), [100, 1900])):
        frame.iloc[at].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    cut = dd.from_pandas(frame, npartitions=7, sort=False)
    return frame, [tmp_path / "rows.parquet", tmp_path / "parts", cut]


def test_one_sample_from_a_file_its_parts_and_a_collection(large):
    frame, sources = large
    models = []
    for source in sources:
        model = clone(CLASSIFIERS["rbf"])
        with pytest.warns(
            SampleWarning, match=r"RBFNetworkClassifier learns from 1,0\d\d of 3,000 "
        ):
            models.append(model.fit(source, "label"))
    for model in models[1:]:
        assert_array_equal(model.means_, models[0].means_)
        assert_array_equal(model.readout_, models[0].readout_)
    parzen = clone(CLASSIFIERS["parzen"])
    with pytest.warns(SampleWarning):
        parzen.fit(sources[1], "label")
    drawn = np.bincount(np.searchsorted(parzen.classes_, parzen.kernel_classes_))
    rare = (frame.label == "rare").sum()
    assert drawn[2] == rare < 50  # all of them
    # weights make up for the rows of the rare class that are drawn beyond its share
    share = frame.label.value_counts(normalize=True)[parzen.classes_]
    assert_allclose(parzen.class_prior_, share, rtol=1e-9)


def test_rows_that_decide_are_drawn_and_do_not_train(large):
    """Thresholds, sets and held-out rows of a pool are those of the drawn rows, each predicted by
    networks that were not fitted to it.
    """
    _, sources = large
    for name in ("reject", "conformal", "pool"):
        model = clone(ALL[name])
        if name != "pool":
            model.set_params(estimator__n_kernels=3)
        with pytest.warns(SampleWarning):
            model.fit(sources[0], "label")
        if name == "conformal":
            assert 1000 <= len(model.calibration_codes_) < 1050
        if name == "pool":
            assert 1000 <= len(model.held_out_proba_) < 1050


def test_refused_before_any_row_is_read(large, monkeypatch):
    _, sources = large
    with pytest.raises(ValueError, match="'n_kernels' parameter of RBFNetworkClassifier"):
        clone(CLASSIFIERS["rbf"]).set_params(n_kernels=-1).fit(sources[0], "label")
    with pytest.raises(ValueError, match="no column 'lable'"):
        clone(CLASSIFIERS["rbf"]).fit(sources[2], "lable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(CLASSIFIERS["em"]).fit(sources[0], "label")  # mixtures learn from all rows


def test_named_categories_of_files_are_never_numbers(tmp_path):
    rng = np.random.default_rng(0)
    zip_code = rng.choice(["1", "2", "3"], 60)
    rows = pd.DataFrame({"x": rng.normal(size=60), "zip": zip_code, "label": rng.random(60) < 0.5})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rbf = clone(CLASSIFIERS["rbf"]).set_params(categorical_features=["zip"])
    for model in (rbf, RejectClassifier(rbf, ambiguity=0.2)):
        columns = model.fit(tmp_path / "rows.csv", "label").columns_
        assert columns.categories[1].tolist() == ["1", "2", "3"]
        assert model.classes_.tolist() == [False, True]


@pytest.mark.parametrize("name", ["rbf", "em"])
def test_a_part_that_cannot_be_read_names_itself_before_any_row_is_read(name, large, monkeypatch):
    _, sources = large
    part = sources[1] / "2.parquet"
    part.write_bytes(part.read_bytes()[:-100])

    def read(*_, **__):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", read)
    with pytest.raises(TableError, match=r"2\.parquet"):
        clone(CLASSIFIERS[name]).fit(sources[1], "label")
