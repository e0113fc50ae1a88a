"""Rows that are read in batches give the model of the same rows in memory."""

import numpy as np
import pytest

from kernelpool import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.rows import BatchRows, RowBatch, Spool
from kernelpool.tables import batches
from kernelpool.training import batched
from kernelpool.training.prepare import training_data

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

NAMES = ["a", "b", "c"]


class Again:
    """Batches that can be iterated over again; counts how often."""

    def __init__(self, items):
        self.items, self.n_passes = items, 0

    def __iter__(self):
        self.n_passes += 1
        return iter(self.items)


@pytest.fixture(autouse=True)
def larger_than_memory(monkeypatch):
    monkeypatch.setattr(batched, "IN_MEMORY", 0)
    monkeypatch.setattr(batches, "BATCH_ROWS", 64)


def table_of(x, y):
    return pa.table({**{name: x[:, i] for i, name in enumerate(NAMES)}, "label": y})


def parquet_file(x, y, folder):
    pq.write_table(table_of(x, y), folder / "rows.parquet", row_group_size=70)
    return folder / "rows.parquet", "label"


def parquet_folder(x, y, folder):
    for i, at in enumerate(np.array_split(np.arange(len(x)), 3)):
        pq.write_table(table_of(x[at], y[at]), folder / f"part-{i}.parquet")
    return str(folder), "label"


def partitioned(x, y, folder):
    ds.write_dataset(
        table_of(x, y), folder, format="parquet", partitioning=["label"], partitioning_flavor="hive"
    )
    return str(folder), "label"


def csv_file(x, y, folder):
    lines = [
        ",".join([*NAMES, "label"]),
        *(",".join([*map(repr, row.tolist()), str(k)]) for row, k in zip(x, y, strict=True)),
    ]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "rows.csv"), "label"


def arrow_file(x, y, folder):
    with pa.ipc.new_file(folder / "rows.arrow", table_of(x, y).schema) as file:
        file.write_table(table_of(x, y), max_chunksize=50)
    return str(folder / "rows.arrow"), "label"


def dataset(x, y, folder):
    return ds.dataset(parquet_folder(x, y, folder)[0]), "label"


def partitioned_dataset(x, y, folder):
    return ds.dataset(partitioned(x, y, folder)[0], partitioning="hive"), "label"


def matrix(x, y, folder):
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return str(folder / "x.npy"), folder / "y.npy"


def array_batches(x, y, folder):
    return Again([(x[:100], y[:100]), (x[100:100], y[100:100]), (x[100:], y[100:])]), None


def list_of_tuples(x, y, folder):
    return [(x[:150], y[:150]), (x[150:], y[150:])], None


def frames(x, y, folder):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(x, columns=NAMES).assign(label=y)
    return Again([frame.iloc[:120], frame.iloc[120:]]), "label"


def one_frame(x, y, folder):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(x, columns=NAMES).assign(label=y), "label"


SOURCES = [
    parquet_file,
    parquet_folder,
    partitioned,
    csv_file,
    arrow_file,
    dataset,
    partitioned_dataset,
    matrix,
    array_batches,
    list_of_tuples,
    frames,
    one_frame,
]


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_model_of_the_rows_in_memory(make, blobs, tmp_path):
    x, y = blobs
    reference = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0).fit(x, y)
    source, target = make(x, y, tmp_path)
    data = training_data(SharedKernelClassifier.prbf(), source, target, None, None, 1.0, None)
    assert isinstance(data.rows, BatchRows)
    found = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0).fit(
        source, target
    )
    for name in ("means_", "covariances_", "mixing_", "objective_", "class_prior_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(reference, name), rtol=1e-8, atol=1e-9
        )
    assert found.classes_.tolist() == [0, 1, 2]
    if make in (
        partitioned,
        partitioned_dataset,
        one_frame,
    ):  # rows in another order; a table in memory is an array
        return
    for method in (
        "predict_proba",
        "log_density",
        "score_samples",
        "predict",
        "predict_log_proba",
        "kernel_posterior",
    ):
        answer = getattr(found, method)(source)
        np.testing.assert_allclose(answer, getattr(reference, method)(x), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("sharing", [0, 0.5, "learned"])
def test_all_families_and_sharing(blobs, family, sharing):
    x, y = blobs
    settings = {
        "covariance_type": family,
        "sharing": sharing,
        "random_state": 0,
        "unlabeled": 2,
        "unlabeled_weight": 0.5,
    }
    reference = SharedKernelClassifier.prbf(6, **settings).fit(x, y)
    found = SharedKernelClassifier.prbf(6, **settings).fit(array_batches(x, y, None)[0], None)
    np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.mixing_, reference.mixing_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        SharingAverageClassifier(6, sharing=(0, 1), random_state=0),
        CompetitiveNeuronsClassifier(6, random_state=0, max_iter=20),
        SharedKernelClassifier.prbf(6, overlap_penalty=0.5, random_state=0),
        SharedKernelClassifier.prbf(6, split_by_class=True, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
def test_other_estimators_take_sources_too(model, blobs):
    x, y = blobs
    expected = model.fit(x, y).predict_proba(x)
    np.testing.assert_allclose(
        model.fit(array_batches(x, y, None)[0], None).predict_proba(x),
        expected,
        rtol=1e-6,
        atol=1e-7,
    )


def test_labels_frame_and_start_come_from_one_pass(blobs):
    x, y = blobs
    source = array_batches(x, y, None)[0]
    data = training_data(SharedKernelClassifier.prbf(), source, None, None, None, 1.0, None)
    assert source.n_passes == 2  # a look at the first batch, and the pass
    np.testing.assert_allclose(data.mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(data.variance, x.var(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(data.class_weight, np.bincount(y))
    for k, sample in enumerate(data.samples):
        np.testing.assert_allclose(sample.x, np.unique(x[y == k], axis=0), rtol=1e-12)
    with pytest.warns(Warning, match="max_iter=3"):
        SharedKernelClassifier.prbf(6, max_iter=3, tol=0, acceleration=None, random_state=0).fit(
            source, None
        )
    assert (
        source.n_passes == 2 + 2 + 4
    )  # three sweeps, and the one that tells the objective of the start


def test_means_and_variances_far_from_zero_survive_one_pass():
    rng = np.random.default_rng(0)
    x, y = (
        rng.normal(size=(300, 2)) * 1e-3 + np.linspace(1e6, 1e6 + 1, 300)[:, None],
        np.arange(300) % 2,
    )
    data = training_data(
        SharedKernelClassifier.prbf(),
        Again([(x[:100], y[:100]), (x[100:], y[100:])]),
        None,
        None,
        None,
        1.0,
        None,
    )
    np.testing.assert_allclose(data.variance, (x - x.mean(axis=0)).var(axis=0), rtol=1e-9)


def test_weights_words_and_missing_labels(blobs, tmp_path):
    x, y = blobs
    weight = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
    words = np.array(["no", "yes", None], object)[y]
    table = table_of(x, words).append_column("weight", pa.array(weight))
    pq.write_table(table, tmp_path / "rows.parquet")
    reference = SharedKernelClassifier.prbf(4, random_state=0).fit(x, words, sample_weight=weight)
    found = SharedKernelClassifier.prbf(4, random_state=0).fit(
        tmp_path / "rows.parquet", "label", sample_weight="weight"
    )
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-8)
    mixed = (
        table_of(x[:, ::-1], words)
        .rename_columns([*NAMES[::-1], "label"])
        .append_column("id", pa.array(range(len(x))))
    )
    pq.write_table(
        mixed, tmp_path / "other.parquet"
    )  # other order, and a column that the model does not know
    np.testing.assert_allclose(
        found.predict_proba(tmp_path / "other.parquet"), reference.predict_proba(x), rtol=1e-7
    )


def test_what_fits_into_memory_is_kept_and_gives_the_same_bits(blobs, tmp_path, monkeypatch):
    monkeypatch.setattr(batched, "IN_MEMORY", 1 << 20)
    x, y = blobs
    path, target = parquet_file(x, y, tmp_path)
    reference = SharedKernelClassifier.prbf(6, random_state=0).fit(x, y)
    found = SharedKernelClassifier.prbf(6, random_state=0).fit(path, target)
    np.testing.assert_array_equal(found.means_, reference.means_)
    ParzenClassifier().fit(path, target)


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_missing_cells_are_integrated_out(in_memory, blobs, tmp_path, family, monkeypatch):
    monkeypatch.setattr(batched, "IN_MEMORY", in_memory)
    x, y = blobs[0].copy(), blobs[1]
    x[np.random.default_rng(0).uniform(size=x.shape) < 0.2] = np.nan
    x[np.isnan(x).all(axis=1)] = 0
    path, target = parquet_file(x, y, tmp_path)
    settings = {"covariance_type": family, "random_state": 0, "max_iter": 20, "tol": 1e-3}
    reference = SharedKernelClassifier(6, **settings).fit(x, y)
    found = SharedKernelClassifier(6, **settings).fit(path, target)
    np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.covariances_, reference.covariances_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        found.predict_proba(path), reference.predict_proba(x), rtol=1e-6, atol=1e-8
    )


def test_refusals(blobs, tmp_path):
    x, y = blobs
    path, target = parquet_file(x, y, tmp_path)
    model = SharedKernelClassifier.prbf(4, random_state=0)
    with pytest.raises(ValueError, match=r"iterator \(generator\), which can be read only once"):
        model.fit(((x, y) for _ in range(2)), None)
    with pytest.raises(
        ValueError, match=r"there is no column 'lable' for the target; did you mean 'label'\?"
    ):
        model.fit(path, "lable")
    with pytest.raises(ValueError, match="y must be the name of a column"):
        model.fit(path, y)
    with pytest.raises(ValueError, match="bring their labels and weights along"):
        model.fit(array_batches(x, y, None)[0], y)
    with pytest.raises(ValueError, match="no such file"):
        model.fit(tmp_path / "none.parquet", "label")
    with pytest.raises(ValueError, match="needs its training rows in memory"):
        ParzenClassifier().fit(path, target)
    with pytest.raises(ValueError, match="needs its training rows in memory"):
        PooledClassifier().fit(path, target)
    holes = table_of(x, y).set_column(1, "b", pa.array([None, *x[1:, 1]]))
    pq.write_table(holes, tmp_path / "holes.parquet")
    with pytest.raises(
        ValueError,
        match=r"1 missing cell in 1 of 300 rows: 'b' \(1, first in .*holes.parquet, row 1\)",
    ):
        CompetitiveNeuronsClassifier(4).fit(tmp_path / "holes.parquet", "label")
    words = table_of(x, y).set_column(0, "a", pa.array(["1"] * 290 + ["ten"] * 10))
    pq.write_table(words, tmp_path / "words.parquet")
    with pytest.raises(
        ValueError, match=r"Not a number: .*words.parquet, row 291, column 'a': 'ten'"
    ):
        model.fit(tmp_path / "words.parquet", "label")
    with pytest.raises(ValueError, match="A batch of X has 2 features; the first one has 3"):
        model.fit([(x, y), (x[:, :2], y)], None)
    with pytest.raises(ValueError, match="NaN or infinity in 1 cells"):
        model.fit(
            [(x, y), (np.where(np.arange(3) == np.arange(len(x))[:, None], np.inf, x)[:1], y[:1])],
            None,
        )
    model.fit(path, target)
    with pytest.raises(
        ValueError, match="X has 2 features, but SharedKernelClassifier is expecting 3"
    ):
        model.predict([(x[:, :2],)])
    pq.write_table(table_of(x, y).drop_columns(["b"]), tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="no column 'b'"):
        model.predict(tmp_path / "less.parquet")


class Fading:
    """Gives fewer rows every time."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __iter__(self):
        self.x, self.y = self.x[:-1], self.y[:-1]
        return iter([(self.x, self.y)])


def test_a_source_that_changes_is_refused(blobs):
    with pytest.raises(ValueError, match="X gave 298 rows at first and 297 when it was read again"):
        SharedKernelClassifier.prbf(4, random_state=0).fit(Fading(*blobs), None)


def test_what_is_decoded_is_spooled_and_read_back_as_it_was(blobs, tmp_path, monkeypatch):
    x, y = blobs
    weight = np.linspace(0.5, 1, len(x), dtype=np.float32)
    spool = Spool(str(tmp_path))
    given = [
        RowBatch(x[:100], y[:100], weight[:100]),
        RowBatch(np.asfortranarray(x[100:]), y[100:]),
        RowBatch(x[:0], y[:0]),
    ]
    for batch in given:
        assert spool.has_room(batch)
        spool.add(batch)
    for _ in range(2):
        for found, batch in zip(spool, given, strict=True):
            for a, b in zip(found, batch, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_array_equal(a, b)
                    assert a.dtype == b.dtype
    assert not list(tmp_path.iterdir())  # it has no name
    spool.close()


@pytest.mark.parametrize("spare", [0, 1 << 62])
def test_files_are_decoded_once_where_there_is_room_on_the_disk(
    spare, blobs, tmp_path, monkeypatch
):
    monkeypatch.setattr(Spool, "SPARE", spare)
    x, y = blobs
    path, target = csv_file(x, y, tmp_path)
    data = training_data(SharedKernelClassifier(), path, target, None, None, 1.0, None)
    assert isinstance(data.rows.source, batched.CodedBatches if spare else batched.SpooledBatches)
    reference = SharedKernelClassifier(6, random_state=0).fit(x, y)
    found = SharedKernelClassifier(6, random_state=0).fit(path, target)
    np.testing.assert_allclose(found.means_, reference.means_, rtol=1e-8)


@pytest.mark.parametrize(
    "make", [parquet_file, csv_file, matrix, list_of_tuples, frames], ids=lambda make: make.__name__
)
def test_score_of_a_source(make, blobs, tmp_path):
    x, y = blobs
    model = SharedKernelClassifier.prbf(3, random_state=0).fit(x[::7], y[::7])
    expected = np.mean(model.predict(x) == y)
    assert 0 < expected < 1
    source, target = make(x, y, tmp_path)
    names = pa.table({name: x[::7, i] for i, name in enumerate(NAMES)})
    named = (
        model
        if make in (matrix, list_of_tuples)
        else SharedKernelClassifier.prbf(3, random_state=0).fit(names, y[::7])
    )
    assert named.score(source, target) == pytest.approx(expected, abs=1e-12)


def test_score_leaves_out_rows_without_a_label_and_counts_by_weight(blobs):
    x, y = blobs
    model, weight = (
        SharedKernelClassifier.prbf(3, random_state=0).fit(x[::7], y[::7]),
        np.linspace(0, 1, len(x)),
    )
    right = model.predict(x) == y
    source = [(x, y, weight)]
    assert model.score(source, None) == pytest.approx(np.average(right, weights=weight))
    labels = np.where(np.arange(len(y)) % 2 == 0, y.astype(object), None)
    assert model.score([(x, labels)], None) == pytest.approx(np.mean(right[::2]))
    assert model.score([(x, np.full(len(x), 17))], None) == 0
    with pytest.raises(ValueError, match="score needs labels"):
        model.score([(x,)], None)
    with pytest.raises(ValueError, match="no rows with a label"):
        model.score([(x, np.full(len(x), None))], None)
