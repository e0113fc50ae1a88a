"""A fit that is broken off and goes on from its checkpoint ends with the same bits as one that is not."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import kernelpool
from kernelpool import Checkpoint, SharedKernelClassifier
from kernelpool.em import Outcome, Stop, em
from kernelpool.training import batched, checkpoint
from kernelpool.training.checkpoint import CheckpointFile

FITTED = (
    "means_",
    "covariances_",
    "mixing_",
    "history_",
    "objective_",
    "n_iter_",
    "converged_",
    "sharing_",
)


def assert_same_bits(found, expected):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


class BrokenOffError(Exception):
    pass


def breaking_after(n):
    """A callback that breaks a fit off at its n-th sweep in all."""
    seen = []

    def callback(info):
        seen.append(info)
        if len(seen) == n:
            raise BrokenOffError

    return callback


def in_numpy(x, y):
    return x, y


def in_dask(x, y):
    da = pytest.importorskip("dask.array")
    return da.from_array(x, chunks=(70, 3)), da.from_array(y, chunks=70)


def in_torch(x, y):
    torch = pytest.importorskip("torch")
    return torch.asarray(x), torch.asarray(y)


def in_strict(x, y):
    xp = pytest.importorskip("array_api_strict")
    return xp.asarray(x), xp.asarray(y)


def in_batches(x, y):
    return [(x[:100], y[:100]), (x[100:], y[100:])], None


HOMES = [in_numpy, in_dask, in_torch, in_strict, in_batches]
SETTINGS = [
    {"covariance_type": "full"},
    {"sharing": "learned"},
    {"n_init": 3, "max_iter": 8},
    {"init": "mixtures", "sharing": 0.5},
    {"overlap_penalty": 0.3, "overlap_step": "printed"},
    {"split_by_class": True},
    {"acceleration": None, "starving": "drop", "kernel_prior": "conjugate"},
    {"n_kernels": 40, "init": "random"},
]


@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
@pytest.mark.filterwarnings("ignore::kernelpool.errors.StarvedKernelWarning")
class TestResuming:
    @pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s))
    def test_wherever_it_is_broken_off(self, settings, blobs, tmp_path):
        settings = {"n_kernels": 6, "max_iter": 30, "random_state": 0, **settings}
        seen = []
        expected = SharedKernelClassifier.prbf(
            **settings, callback=lambda info: seen.append(info) and None
        ).fit(*blobs)
        for n in {1, 2, len(seen) // 2, len(seen)}:
            path = tmp_path / f"{n}.checkpoint"
            with pytest.raises(BrokenOffError):
                SharedKernelClassifier.prbf(
                    **settings, checkpoint=path, callback=breaking_after(n)
                ).fit(*blobs)
            left = []
            found = SharedKernelClassifier.prbf(
                **settings, checkpoint=path, callback=lambda i, left=left: left.append(i) and None
            )
            assert_same_bits(found.fit(*blobs), expected)
            assert len(left) <= len(seen) - n + 2

    @pytest.mark.parametrize("make", HOMES, ids=lambda make: make.__name__)
    def test_in_every_home(self, make, blobs, tmp_path, monkeypatch):
        monkeypatch.setattr(batched, "IN_MEMORY", 0)
        x, y = make(*blobs)
        settings = {"n_kernels": 6, "covariance_type": "full", "random_state": 0, "sharing": 0.5}
        expected = SharedKernelClassifier.prbf(**settings).fit(x, y)
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(BrokenOffError):
            SharedKernelClassifier.prbf(
                **settings, checkpoint=path, callback=breaking_after(5)
            ).fit(x, y)
        assert_same_bits(
            SharedKernelClassifier.prbf(**settings, checkpoint=path).fit(x, y), expected
        )

    def test_more_than_once_and_after_the_end(self, blobs, tmp_path):
        expected = SharedKernelClassifier.prbf(6, random_state=0).fit(*blobs)
        path = tmp_path / "fit.checkpoint"
        for _ in range(3):
            with pytest.raises(BrokenOffError):
                SharedKernelClassifier.prbf(
                    6, random_state=0, checkpoint=path, callback=breaking_after(4)
                ).fit(*blobs)
        for _ in range(2):
            found = SharedKernelClassifier.prbf(
                6, random_state=0, checkpoint=Checkpoint(path, every=0)
            ).fit(*blobs)
            assert_same_bits(found, expected)

    def test_a_fit_without_a_seed_goes_on_with_its_own(self, blobs, tmp_path):
        settings = {"n_kernels": 6, "init": "random", "n_init": 2}
        path, kept = tmp_path / "fit.checkpoint", tmp_path / "kept.checkpoint"
        with pytest.raises(BrokenOffError):
            SharedKernelClassifier.prbf(
                **settings, checkpoint=path, callback=breaking_after(5)
            ).fit(*blobs)
        kept.write_bytes(path.read_bytes())
        first = SharedKernelClassifier.prbf(**settings, checkpoint=path).fit(*blobs)
        assert_same_bits(
            SharedKernelClassifier.prbf(**settings, checkpoint=kept).fit(*blobs), first
        )

    def test_a_fit_that_a_callback_stopped_goes_on(self, blobs, tmp_path):
        expected = SharedKernelClassifier.prbf(6, random_state=0).fit(*blobs)
        path = tmp_path / "fit.checkpoint"
        SharedKernelClassifier.prbf(
            6, random_state=0, checkpoint=path, callback=lambda info: info.sweep == 4
        ).fit(*blobs)
        assert_same_bits(
            SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path).fit(*blobs), expected
        )

    def test_an_interrupted_one_too(self, blobs, tmp_path):
        def interrupt(info):
            if info.sweep == 4:
                raise KeyboardInterrupt

        expected = SharedKernelClassifier.prbf(6, random_state=0).fit(*blobs)
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(KeyboardInterrupt):
            SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path, callback=interrupt).fit(
                *blobs
            )
        assert_same_bits(
            SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path).fit(*blobs), expected
        )


CHILD = """
import os, sys, time
import numpy as np
from kernelpool import Checkpoint, SharedKernelClassifier
import kernelpool.training.checkpoint as module

written = 0
def half(path, parts):
    "The third writing stops in the middle of its bytes, and says so."
    global written
    written += 1
    if written < 3:
        return whole(path, parts)
    def some():
        for part in parts:
            yield part[: len(part) // 2]
            print("writing", flush=True)
            time.sleep(60)
    return whole(path, some())

whole, module.write_atomically = module.write_atomically, half
data = np.load(sys.argv[1])
SharedKernelClassifier.prbf(6, random_state=0, checkpoint=Checkpoint(sys.argv[2], every=0)).fit(data["x"], data["y"])
"""


def test_kill_9_in_the_middle_of_a_write(blobs, tmp_path):
    np.savez(tmp_path / "data.npz", x=blobs[0], y=blobs[1])
    path = tmp_path / "fit.checkpoint"
    arguments = [
        sys.executable,
        "-c",
        textwrap.dedent(CHILD),
        str(tmp_path / "data.npz"),
        str(path),
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "writing\n"
        os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    (torn,) = tmp_path.glob(".*.part")  # what was being written
    assert 0 < torn.stat().st_size < path.stat().st_size
    left = []
    found = SharedKernelClassifier.prbf(
        6, random_state=0, checkpoint=path, callback=lambda info: left.append(info) and None
    )
    expected = SharedKernelClassifier.prbf(6, random_state=0).fit(*blobs)
    assert_same_bits(found.fit(*blobs), expected)
    assert len(left) < len(expected.history_)  # it did go on


def test_it_is_written_every_so_often(blobs, tmp_path, monkeypatch):
    now, writes = [0.0], []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoint, "write_atomically", lambda path, parts: writes.append(now[0]))

    def tick(info):
        now[0] += 25.0

    SharedKernelClassifier.prbf(
        6, random_state=0, checkpoint=Checkpoint(tmp_path / "c", every=60), callback=tick
    ).fit(*blobs)
    assert writes[:3] == [75.0, 150.0, 225.0]


def test_other_settings_and_other_rows_are_refused(blobs, tmp_path):
    x, y = blobs
    path = tmp_path / "fit.checkpoint"
    SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path).fit(x, y)
    refused = [
        ({"n_kernels": 7}, x, r"of a fit with start\.n_kernels=6; this one has start\.n_kernels=7"),
        ({"covariance_type": "full"}, x, r"kernel\.covariance_type='spherical'; this one has"),
        ({"random_state": 1}, x, "another random_state than 1"),
        ({}, x + 1, "to other rows: their means differ"),
        ({}, x * [1, 1, 2], "to other rows: their means differ"),
    ]
    for settings, rows, message in refused:
        with pytest.raises(ValueError, match=message):
            SharedKernelClassifier.prbf(
                **{"n_kernels": 6, "random_state": 0, "checkpoint": path, **settings}
            ).fit(rows, y)
    with pytest.raises(ValueError, match="to other rows: their number differ"):
        SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path).fit(x[:-1], y[:-1])
    SharedKernelClassifier.prbf(6, random_state=0, checkpoint=path, n_jobs=1).fit(
        x, y
    )  # which changes nothing


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_what_is_no_checkpoint_is_refused(content, blobs, tmp_path):
    path = tmp_path / "fit.checkpoint"
    if content is None:
        np.savez(tmp_path / "fit.npz", text=np.array(json.dumps({"format": 99})))
        (tmp_path / "fit.npz").rename(path)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="no checkpoint of this version"):
        SharedKernelClassifier.prbf(6, checkpoint=path).fit(*blobs)


def test_no_class_but_records_is_made(tmp_path):
    file = CheckpointFile(tmp_path / "c")
    file._head = {"settings": {}, "rows": {}, "seed": 0}
    file.note(0, None)
    arrays = []
    text = {"record": "os.system", "fields": {"command": checkpoint.encoded("true", arrays)}}
    with pytest.raises(KeyError):
        checkpoint.decoded(checkpoint._Stored(text, {}), np.zeros(0))


def test_a_run_that_has_ended_is_not_run_again(tmp_path):
    def sweep(x):
        return x + 0.5 * (3 - x), -((x - 3) ** 2)

    file = CheckpointFile(tmp_path / "c")
    file.open({}, {}, 0, np.zeros(0))
    first = em(sweep, 0.0, Stop(200, 1e-10), journal=file.journal())
    assert first.outcome is Outcome.CONVERGED
    again = CheckpointFile(tmp_path / "c")
    again.open({}, {}, 0, np.zeros(0))
    found = em(lambda x: pytest.fail("a sweep"), 0.0, Stop(200, 1e-10), journal=again.journal())
    assert (found.params, found.history, found.outcome) == (
        first.params,
        first.history,
        first.outcome,
    )


def test_model_files_do_not_hold_the_place_of_a_checkpoint(blobs, tmp_path):
    model = SharedKernelClassifier.prbf(
        6, random_state=0, checkpoint=Checkpoint(tmp_path / "c")
    ).fit(*blobs)
    kernelpool.save(model, tmp_path / "m.safetensors")
    assert kernelpool.load(tmp_path / "m.safetensors").checkpoint is None
