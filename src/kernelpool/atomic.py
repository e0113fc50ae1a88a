"""Files that appear whole or not at all: model files, ONNX graphs, reports and tables are written
through this module.

A regular file is written beside its place and moved there when it is complete and on the disk;
symbolic links are followed, and the mode of a file that is replaced is kept. What is no regular
file (a device, a FIFO, a socket) cannot be replaced without destroying it: it is written to in
place, if something reads from it.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

READER_SECONDS = 30
"""Tenths of a second in which something has to begin to read from a FIFO."""


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is there and neither a regular file nor a folder, links followed."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[str]:
    """The name of a file to write to, which takes the place of `path` when the block ends without
    an error.

    With ``replace=False`` a FileExistsError is raised where there is a file by then.
    """
    target = os.path.realpath(os.fsdecode(path))
    if is_special(target):
        handle = _opened(target)
        try:
            yield target
        finally:
            os.close(handle)
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.part")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less the umask
    try:
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))  # before anything is in it
        yield temporary
        _sync(temporary)
        if replace:
            os.replace(temporary, target)
        else:
            _move_to_free(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    with suppress(OSError):  # not every system lets folders be synced
        _sync(folder)


def write_atomically(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write all parts to `path`, or nothing."""
    with atomic_path(path) as name, open(name, "wb") as file:
        for part in parts:
            file.write(part)


def _move_to_free(temporary: str, target: str) -> None:
    """A link fails where a file has appeared in the meantime; a move would replace it."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(target) from error
        os.replace(temporary, target)


def _opened(path: str) -> int:
    """A handle on what is no regular file: to open a FIFO from which nothing reads would block for
    ever.
    """
    for _ in range(READER_SECONDS):
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.1)
    raise OSError(errno.ENXIO, "Nothing reads from it", path)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
