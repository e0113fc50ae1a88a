"""Clusters of Dask: data frames, and workers that are lost."""

import os
import signal

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from zoo import CLASSIFIERS, META, fitted, table

from kernelpool import SharedKernelClassifier
from kernelpool.rows import DaskRows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")


@pytest.fixture(autouse=True)
def leave_no_scheduler_behind():
    """A client that is closed twice leaves Dask set to a cluster that is not there."""
    yield
    dask.config.set(scheduler=None)


def assert_close(found, expected):
    for name in ("means_", "covariances_", "mixing_", "objective_"):
        one, other = getattr(found, name), getattr(expected, name)
        assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)


def two_workers(processes=True):
    quiet = {"dashboard_address": ":0", "worker_dashboard_address": None}
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, silence_logs=50, **quiet
    )


def on_dask(x, y):
    return da.from_array(x, chunks=(70, 3)), da.from_array(y, chunks=70)


SETTINGS = {"n_kernels": 6, "covariance_type": "full", "random_state": 0, "max_iter": 8, "tol": 0}


def fit(*rows, **settings):
    return SharedKernelClassifier.prbf(**SETTINGS, **settings).fit(*rows)


class TestFrames:
    """Data frames need no cluster."""

    @pytest.fixture
    def frame(self, blobs):
        dd = pytest.importorskip("dask.dataframe")
        pd = pytest.importorskip("pandas")
        x, y = blobs
        weight = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
        table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(
            label=y, weight=weight, count=np.arange(len(y))
        )
        return dd.from_pandas(table, npartitions=4, sort=False), weight

    def test_the_target_may_be_a_series_and_weights_a_column(self, frame, blobs):
        (frame, weight), (x, y) = frame, blobs
        found = fit(frame[["a", "b", "c"]], frame.label)
        assert_close(found, fit(x, y))
        with pytest.raises(ValueError, match="X has no column 'c'"):
            found.predict(frame[["a", "b"]])
        weighted = fit(frame[["a", "b", "c", "label", "weight"]], "label", "weight")
        assert_close(weighted, fit(x, y, weight))

    def test_columns_of_files_have_the_same_chunks(self, blobs, tmp_path):
        """Dask joins small files of which a single column is read."""
        dd = pytest.importorskip("dask.dataframe")
        pd = pytest.importorskip("pandas")
        x, y = blobs
        table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(label=y)
        for i, part in enumerate(np.array_split(np.arange(len(y)), 4)):
            table.iloc[part].to_parquet(tmp_path / f"{i}.parquet")
        assert_close(fit(dd.read_parquet(tmp_path), "label"), fit(x, y))

    def test_filtered_frames_have_empty_parts_of_unknown_length(self, frame, blobs):
        (frame, _), (x, y) = frame, blobs
        kept = frame[frame["count"] >= 80]
        assert_close(fit(kept[["a", "b", "c", "label"]], "label"), fit(x[80:], y[80:]))


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.slow)],
    ids="processes={}".format,
)
def cluster(request):
    with two_workers(request.param) as cluster:
        yield cluster


def test_two_workers_agree_with_memory(cluster, blobs):
    x, y = blobs
    expected = fit(x, y)
    with distributed.Client(cluster):
        there, labels = on_dask(x, y)
        found = fit(there, labels)
        assert_close(found, expected)
        answer = found.predict_proba(there)
        assert isinstance(answer, da.Array)
        assert_allclose(answer.compute(), expected.predict_proba(x), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_rows_are_computed_once_and_stay_with_the_workers(cluster, blobs, tmp_path):
    x, y = blobs

    def noted(chunk):
        with open(tmp_path / "made", "a") as file:
            file.write("x")
        return chunk

    with distributed.Client(cluster):
        there, labels = on_dask(x, y)
        there = there.map_blocks(noted, dtype=x.dtype, meta=np.empty((0, 0)))
        fit(there, labels)
    assert (tmp_path / "made").read_text() == "x" * 5  # 5 chunks, and some twenty sweeps


def test_a_fault_of_a_task_comes_out_as_it_is(cluster):
    with distributed.Client(cluster):
        rows = DaskRows(da.ones((100, 2), chunks=(10, 2))).persisted()
        with pytest.raises(ZeroDivisionError):
            rows.total(fault)


def fault(block):
    return 1 // 0


@pytest.mark.slow
def test_a_worker_killed_in_mid_fit_changes_nothing(blobs):
    x, y = blobs
    with dask.config.set(scheduler="threads"):
        expected = fit(*on_dask(x, y))
    killed = []
    with two_workers() as cluster, distributed.Client(cluster) as client:

        def kill(info):
            if info.sweep == 3:
                pid = min(client.run(os.getpid).values())
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        found = fit(*on_dask(x, y), callback=kill)
    assert len(killed) == 1
    assert_array_equal(found.means_, expected.means_)
    assert_array_equal(found.history_, expected.history_)


def test_members_and_folds_are_fitted_on_the_workers(cluster):
    """By joblib's backend: the same networks as one after the other, each trained on some worker."""
    x, y = table()
    names = {"pool": 4, "conformal": 5, "reject": 5}  # two members in two folds each; five folds
    models = {name: {**CLASSIFIERS, **META}[name] for name in names}
    with distributed.Client(cluster) as client:
        n_before = sum(client.run(n_executed).values())
        for name, n_fits in names.items():
            with joblib.parallel_config("dask"):
                found = clone(models[name]).fit(x, y)
            assert_array_equal(found.predict_proba(x), fitted(name).predict_proba(x))
            n_tasks = sum(client.run(n_executed).values())
            assert n_tasks >= n_before + n_fits  # those of Dask itself besides
            n_before = n_tasks
        assert min(client.run(n_executed).values()) > 0


def n_executed(dask_worker):
    return dask_worker.state.executed_count


def test_every_class_learns_from_rows_on_a_cluster(cluster):
    """Drawn where they live: the model is that of the same rows in memory."""
    x, y = table(missing=0)
    frame = x.assign(label=y)
    dd = pytest.importorskip("dask.dataframe")
    with distributed.Client(cluster):
        there = dd.from_pandas(frame, npartitions=4, sort=False)
        found = clone(CLASSIFIERS["parzen"]).fit(there, "label")
        expected = fitted("parzen", 0).predict_proba(x)
        assert_array_equal(found.predict_proba(x), expected)
        assert_allclose(found.predict_proba(there).compute(), expected, rtol=1e-9)
