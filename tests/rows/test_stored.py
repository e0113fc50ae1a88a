"""Rows that come in batches give the model of the same rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool import SharedKernelClassifier, Training
from kernelpool.data.door import training_data
from kernelpool.rows import Store, StoredRows, stored
from kernelpool.tables import draw, files

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c"]
QUICK = {"random_state": 0, "max_iter": 5, "tol": 0, "training": Training("em", acceleration=None)}

pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")


@pytest.fixture(autouse=True)
def larger_than_memory(monkeypatch):
    monkeypatch.setattr(draw, "MOST_CELLS", 200)
    monkeypatch.setattr(files, "CELLS", 256)
    monkeypatch.setattr(files, "BLOCK", 4096)
    monkeypatch.setattr(stored, "CHUNK_ROWS", 50)


def table_of(x, y):
    return pa.table({**{name: x[:, i] for i, name in enumerate(NAMES)}, "label": y})


def parquet_file(x, y, folder):
    pq.write_table(table_of(x, y), folder / "rows.parquet", row_group_size=70)
    return folder / "rows.parquet", "label"


def partitioned(x, y, folder):
    settings = {"partitioning": ["label"], "partitioning_flavor": "hive"}
    ds.write_dataset(table_of(x, y), folder, format="parquet", **settings)
    return ds.dataset(folder, partitioning="hive"), "label"


def array_batches(x, y, folder=None):
    return [(x[:100], y[:100]), (x[100:100], y[100:100]), (x[100:], y[100:])], None


def generator(x, y, folder):
    return (batch for batch in array_batches(x, y)[0]), None


def frames(x, y, folder):
    frame = pd.DataFrame(x, columns=NAMES).assign(label=y)
    return [frame.iloc[:120], frame.iloc[120:]], "label"


def one_frame(x, y, folder):
    return pd.DataFrame(x, columns=NAMES).assign(label=y), "label"


SOURCES = [parquet_file, partitioned, array_batches, generator, frames, one_frame]
IN_ANOTHER_ORDER = (partitioned,)
READ_ONCE = (generator, one_frame)
MODEL = SharedKernelClassifier()


@pytest.fixture(scope="module")
def reference(module_blobs):
    return SharedKernelClassifier.prbf(6, covariance_type="full", **QUICK).fit(*module_blobs)


@pytest.fixture(scope="module")
def module_blobs():
    rng = np.random.default_rng(0)
    y = rng.permutation(300) % 3
    return rng.normal(size=(300, 3)) + 3 * np.eye(3)[y], y


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_model_of_the_rows_in_memory(
    make, module_blobs, reference, tmp_path
):
    x, y = module_blobs
    source, target = make(x, y, tmp_path)
    if make not in READ_ONCE:
        assert isinstance(training_data(source, target, name="").rows, StoredRows)
    found = SharedKernelClassifier.prbf(6, covariance_type="full", **QUICK).fit(source, target)
    for name in ("means_", "covariances_", "mixing_", "objective_", "class_prior_"):
        assert_allclose(getattr(found, name), getattr(reference, name), rtol=1e-8, atol=1e-9)
    assert found.classes_.tolist() == [0, 1, 2]
    if make in IN_ANOTHER_ORDER + READ_ONCE:
        return
    for method in ("predict_proba", "log_density", "predict"):
        assert_allclose(
            getattr(found, method)(source), getattr(reference, method)(x), rtol=1e-7, atol=1e-8
        )
    expected = np.mean(reference.predict(x) == y)
    assert 0 < expected < 1
    assert found.score(source, target) == pytest.approx(expected, abs=1e-12)


def test_conditional_training(module_blobs):
    x, y = module_blobs
    model = SharedKernelClassifier(3, training="conditional", random_state=0, max_iter=5)
    expected = model.fit(x, y).predict_proba(x)
    found = model.fit(*array_batches(x, y)).predict_proba(x)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("most_cells", [200, 1 << 20])
def test_categories_and_missing_cells(most_cells, tmp_path, monkeypatch):
    """Categories that come late, in another order in each batch, and cells that are missing."""
    monkeypatch.setattr(draw, "MOST_CELLS", most_cells)
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 90)
    frame = pd.DataFrame(rng.normal(size=(180, 2)) + 2 * (y == "yes")[:, None], columns=["a", "b"])
    frame["color"] = np.where(
        np.arange(180) < 100, rng.choice(["red", "blue"], 180), rng.choice(["red", "green"], 180)
    )
    frame[rng.uniform(size=frame.shape) < 0.1] = None
    frame.loc[frame.isna().all(axis=1), "a"] = 0.0
    expected = SharedKernelClassifier.prbf(4, **QUICK).fit(frame, y)
    whole = frame.assign(label=y)
    whole.to_csv(tmp_path / "rows.csv.gz", index=False)
    pq.write_table(pa.Table.from_pandas(whole, preserve_index=False), tmp_path / "rows.parquet")
    batched = [pa.Table.from_pandas(whole[i : i + 40]) for i in range(0, 180, 40)]
    batched = [part.select([*frame.columns, "label"]) for part in batched]
    for source in (tmp_path / "rows.csv.gz", tmp_path / "rows.parquet", batched):
        found = SharedKernelClassifier.prbf(4, **QUICK).fit(source, "label")
        assert found.columns_.categories[2].tolist() == ["blue", "green", "red"]
        assert_allclose(found.means_, expected.means_, rtol=1e-8, atol=1e-9)
        assert_allclose(found.probabilities_, expected.probabilities_, rtol=1e-8)
        assert_allclose(
            found.predict_proba(source), expected.predict_proba(frame), rtol=1e-6, atol=1e-8
        )


def test_weights_text_labels_and_missing_labels(module_blobs, tmp_path):
    x, y = module_blobs
    weight = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
    labels = np.array(["no", "yes", None], object)[y]
    table = table_of(x, labels).append_column("weight", pa.array(weight))
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="Input y contains NaN: 100 of 300 labels are missing"):
        SharedKernelClassifier.prbf(4, **QUICK).fit(tmp_path / "rows.parquet", "label")
    reference, found = (SharedKernelClassifier.prbf(4, unlabeled=np.nan, **QUICK) for _ in range(2))
    reference.fit(x, labels, sample_weight=weight)
    found.fit(tmp_path / "rows.parquet", "label", sample_weight="weight")
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == NAMES
    assert_allclose(found.means_, reference.means_, rtol=1e-8)
    # another order of columns, and one that the model was not fitted to
    mixed = table_of(x[:, ::-1], labels).rename_columns([*NAMES[::-1], "label"])
    mixed = mixed.append_column("id", pa.array(range(len(x))))
    pq.write_table(mixed, tmp_path / "other.parquet")
    assert_allclose(
        found.predict_proba(tmp_path / "other.parquet"), reference.predict_proba(x), rtol=1e-7
    )
    right = found.predict(pd.DataFrame(x, columns=NAMES)) == labels
    known = labels != None  # noqa: E711
    assert found.score(tmp_path / "rows.parquet", "label") == pytest.approx(right[known].mean())
    batch = pd.DataFrame(x, columns=NAMES), labels, weight
    assert found.score([batch], None) == pytest.approx(
        np.average(right[known], weights=weight[known])
    )


def test_refusals(module_blobs, tmp_path):
    x, y = module_blobs
    path, target = parquet_file(x, y, tmp_path)
    model = SharedKernelClassifier.prbf(4, **QUICK)
    words = np.where(x > 0, "high", "low")
    for source, label, message in (
        (path, "lable", r"no column 'lable' for the target; did you mean 'label'\?"),
        (path, y, "y must be the name of a column"),
        (array_batches(x, y)[0], y, "bring their labels and weights along"),
        (tmp_path / "none.parquet", "label", "no such file"),
        ([(x, y), (x[:, :2], y)], None, "A batch of X has 2 features; the first one has 3"),
        ([(x, y), (x[:1] + np.inf, y[:1])], None, "Input X contains infinity"),
        ([(x, y[:5])], None, "Batch 1: 300 rows of X and 5 of y"),
        ([(x, y, -y)], None, "Batch 1: sample_weight must hold finite numbers, none negative"),
        (iter([]), None, "X has 0 rows"),
        ([table_of(x, y), table_of(words, y)], "label", "categories in a later one"),
        ([table_of(words, y), table_of(x, y)], "label", "categories in the first batch"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(source, label)
    model.fit(path, target)
    with pytest.raises(ValueError, match="X has 2 features, but SharedKernelClassifier is"):
        SharedKernelClassifier.prbf(4, **QUICK).fit(x, y).predict([(x[:, :2],)])
    pq.write_table(table_of(x, y).drop_columns(["b"]), tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="no column 'b'"):
        model.predict(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="no rows with a label"):
        model.score([(pd.DataFrame(x, columns=NAMES), np.full(len(x), None))], None)


def test_a_store_holds_what_it_was_given_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    x = np.arange(360.0, dtype=np.float32).reshape(120, 3)
    codes = np.arange(120) % 4 - 1
    weight = np.linspace(0, 1, 120, dtype=np.float32)
    store = Store(3, np.float32, weighted=True)
    store.add(x[:70], codes[:70], weight[:70])
    store.add(np.asfortranarray(x[70:]), codes[70:], weight[70:])
    assert store.sizes == [50, 20, 50]
    for found, given in zip(store.in_memory(), (x, codes, weight), strict=True):
        assert_array_equal(found, given)
    store.recode(3, np.array([2.0, 0.0, 1.0]))
    assert_array_equal(store.in_memory()[1], np.array([2, 0, 1, -1])[codes])
    assert_array_equal(store.in_memory()[0], x)
    assert not list(tmp_path.iterdir())  # it has no name
    monkeypatch.setattr(stored, "SPARE_BYTES", 1 << 62)
    with pytest.raises(ValueError, match="which is nearly full"):
        store.add(x, codes, weight)
