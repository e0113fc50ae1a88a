"""Writing: all at once or not at all, and nothing but a regular file is ever replaced."""

import os
import stat
import threading

import pytest
from zoo import example

import kernelpool
from kernelpool import atomic
from kernelpool.atomic import atomic_path, is_special, write_atomically

WRITERS = {
    "save": lambda path: kernelpool.save(example("shared tied")[0], path),
    "to_onnx": lambda path: kernelpool.to_onnx(example("shared tied")[0], path),
    "bytes": lambda path: write_atomically(path, [b"some ", b"bytes"]),
}


@pytest.mark.parametrize("write", WRITERS)
def test_a_fifo_is_written_to_and_stays_one(write, tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    WRITERS[write](path)
    reader.join(timeout=30)
    monkeypatch.setattr(atomic, "READER_SECONDS", 1)
    with pytest.raises(OSError, match="Nothing reads from it"):
        WRITERS[write](path)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    WRITERS[write](tmp_path / "file")
    assert read == [(tmp_path / "file").read_bytes()]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_links_are_followed_and_modes_kept(write, mode, tmp_path):
    target = tmp_path / "target"
    link = tmp_path / "link"
    target.write_bytes(b"before")
    target.chmod(mode)
    link.symlink_to(target)
    WRITERS[write](link)
    assert link.is_symlink()
    assert target.read_bytes() != b"before"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_a_secret_is_never_readable_by_others_on_its_way(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"")
    path.chmod(0o600)
    with atomic_path(path) as name:
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_kept_where_asked(links, tmp_path, monkeypatch):
    path = tmp_path / "file"

    def no_links(*_):
        raise OSError("no links here")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(FileExistsError), atomic_path(path, replace=False):
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    path.unlink()
    with atomic_path(path, replace=False) as name, open(name, "wb") as file:
        file.write(b"mine")
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["file"]


def test_folders_and_files_are_not_special(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert not is_special(tmp_path)
    assert not is_special(tmp_path / "file")
    assert not is_special(tmp_path / "nothing")
    assert is_special(os.devnull)
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path, [b"x"])


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_file_is_written_whole_or_not_at_all(write, step, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fails(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fails)
        with pytest.raises(OSError, match="the disk is full"):
            WRITERS[write](path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]
