"""Checkpoints: where a fit stands, in a file from which another process goes on to the very same result.

A file holds the settings, what is known of the rows, and for each run of EM either its result or where it stood between two
sweeps: parameters, history, and the state of the accelerator. Everything else follows from the seed and is done again. It is
written beside its place and moved there when it is on the disk, so that there is a whole one at any time.

The format is that of ``numpy.savez``: arrays, and one text in JSON that says how they make up the records. Nothing in it is
run when it is read; records are those of `kernelpool.sums.RECORDS` and of `kernelpool.em`, and no others.
"""

import io
import json
import os
import time
import zipfile
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np

from ..arrays import Array, is_array, match_array, to_numpy
from ..atomic import write_atomically
from ..em import EMState, Fit, Outcome
from ..errors import KernelpoolError
from ..sums import RECORDS
from ..text import shown

FORMAT = 1
EVERY = 60.0
P = TypeVar("P")


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit writes how far it has come, and how often.

    Parameters
    ----------
    path : str or path
        File. If it is there, the fit goes on from it.
    every : float, default=60.0
        Seconds between writings; 0 writes after each sweep. What was done since the last one is lost when the process is
        killed; when it ends with an error or is interrupted, the last sweep is written first.

    Examples
    --------
    >>> import os, tempfile
    >>> from kernelpool import Checkpoint, SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(500, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "clouds.checkpoint")
    >>> model = SharedKernelClassifier.prbf(8, checkpoint=Checkpoint(path, every=0), random_state=0).fit(X, y)
    >>> os.path.exists(path)
    True
    """

    path: str | os.PathLike[str]
    every: float = EVERY


class CheckpointFile:
    """The checkpoint of one fit: the runs of EM ask it one after the other, in the same order every time."""

    def __init__(self, checkpoint: Checkpoint | str | os.PathLike[str]) -> None:
        self.checkpoint = (
            checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        )
        self.path = os.fspath(self.checkpoint.path)
        self._head: dict[str, Any] = {}
        self._runs: list[Any] = []
        """Of each run of EM its result, or where it stands; as they come from the file, or as they were noted here."""
        self._n_begun = 0
        self._written = time.monotonic()
        self._dirty = False
        self._read()

    @property
    def seed(self) -> int | None:
        """Of the fit that wrote the file; None where there is no file."""
        return self._head.get("seed")

    def open(
        self, settings: dict[str, str], rows: dict[str, list[float]], seed: int, home: Array
    ) -> None:
        """The fit is about to begin; refused if the file was written by a fit of other settings or rows."""
        head = {"settings": settings, "rows": rows, "seed": seed}
        if self._head:
            self._check(head)
        self._head = head
        self._runs = [decoded(run, home) for run in self._runs]

    def journal(self) -> "RunJournal[Any]":
        """For the next run of EM."""
        self._n_begun += 1
        return RunJournal(self, self._n_begun - 1)

    def run(self, index: int) -> Any:
        """What is known of a run; None where it has not begun."""
        return self._runs[index] if index < len(self._runs) else None

    def note(self, index: int, run: Any) -> None:
        """Where a run stands, or its result."""
        self._runs[index:] = [run]  # later ones, if any, began from here
        self._dirty = True
        if time.monotonic() - self._written >= self.checkpoint.every:
            self.write()

    def write(self) -> None:
        """Write what was noted, if anything was since."""
        if not self._dirty:
            return
        arrays: list[np.ndarray] = []
        text = json.dumps(
            {"format": FORMAT, **self._head, "runs": [encoded(run, arrays) for run in self._runs]}
        )
        out = io.BytesIO()
        np.savez(out, text=np.array(text), **{f"a{i}": array for i, array in enumerate(arrays)})  # type: ignore[arg-type]
        write_atomically(self.path, [out.getbuffer()])
        self._written, self._dirty = time.monotonic(), False

    def _read(self) -> None:
        if not os.path.exists(self.path):
            return
        try:
            with np.load(self.path, allow_pickle=False) as file:
                told = json.loads(str(file["text"]))
                if told.pop("format") != FORMAT:
                    raise KeyError("format")
                arrays = {name: file[name] for name in file.files if name != "text"}
                self._runs = [_Stored(run, arrays) for run in told.pop("runs")]
                self._head = {name: told[name] for name in ("settings", "rows", "seed")}
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            EOFError,
            zipfile.BadZipFile,
        ) as error:
            raise KernelpoolError(
                f"{shown(self.path, 200)} is no checkpoint of this version of kernelpool ({type(error).__name__}). "
                f"Name another file, or delete it to begin anew."
            ) from None

    def _check(self, head: dict[str, Any]) -> None:
        before, now = self._head, head
        for name in sorted({*before["settings"], *now["settings"]}):
            then, here = (side["settings"].get(name) for side in (before, now))
            if then != here:
                raise KernelpoolError(
                    f"{shown(self.path, 200)} is the checkpoint of a fit with {name}={then}; this one has {name}={here}. "
                    f"Name another file, or delete it to begin anew."
                )
        for name, values in now["rows"].items():
            then, here = (
                np.asarray(side, float) for side in (before["rows"].get(name, []), values)
            )
            if then.shape != here.shape or not np.allclose(then, here, rtol=1e-9, atol=1e-12):
                raise KernelpoolError(
                    f"{shown(self.path, 200)} is the checkpoint of a fit to other rows: their {name.replace('_', ' ')} differ. "
                    f"Name another file, or delete it to begin anew."
                )


class RunJournal(Generic[P]):
    """The part of a checkpoint that belongs to one run of EM; see `kernelpool.em.Journal`."""

    def __init__(self, file: CheckpointFile, index: int) -> None:
        self.file, self.index = file, index

    def resume(self) -> EMState[P] | Fit[P] | None:
        found: EMState[P] | Fit[P] | None = self.file.run(self.index)
        return found

    def note(self, state: EMState[P]) -> None:
        self.file.note(self.index, state)

    def flush(self) -> None:
        self.file.write()

    def finish(self, fit: Fit[P]) -> None:
        self.file.note(self.index, fit)
        self.file.write()


# -- settings -------------------------------------------------------------------------------------------------------------


def described(config: Any, skip: tuple[str, ...] = (), prefix: str = "") -> dict[str, str]:
    """Settings as words, record within record; of what is long, a fingerprint."""
    found: dict[str, str] = {}
    for part in fields(config):
        value = getattr(config, part.name)
        if part.name in skip:
            continue
        if is_dataclass(value):
            found |= described(value, skip, f"{prefix}{part.name}.")
        else:
            found[f"{prefix}{part.name}"] = _word(value)
    return found


def _word(value: Any) -> str:
    if is_array(value) or isinstance(value, list | tuple):
        array = to_numpy(value) if is_array(value) else np.asarray(value)
        told = repr(array.tolist()) if array.size <= 8 else ""
        return (
            told
            or f"{array.shape} {blake2b(repr(array.tolist()).encode(), digest_size=8).hexdigest()}"
        )
    if isinstance(value, dict):
        return blake2b(repr(value).encode(), digest_size=8).hexdigest()
    return repr(value.item() if isinstance(value, np.generic) else value)


# -- records as text and arrays -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stored:
    """A run as it lies in the file."""

    text: Any
    arrays: dict[str, np.ndarray]


OWN: dict[str, type] = {"Fit": Fit, "EMState": EMState}


def encoded(value: Any, arrays: list[np.ndarray]) -> Any:
    """As JSON; arrays are put into `arrays` and stand there by their number."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Outcome):
        return {"outcome": value.name}
    if isinstance(value, _Stored):
        return encoded(decoded(value, np.zeros(0)), arrays)
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encoded(part, arrays) for part in value]}
    if is_dataclass(value):
        cls = type(value)
        name = (
            cls.__name__ if OWN.get(cls.__name__) is cls else f"{cls.__module__}.{cls.__qualname__}"
        )
        return {
            "record": name,
            "fields": {f.name: encoded(getattr(value, f.name), arrays) for f in fields(value)},
        }
    arrays.append(np.asarray(to_numpy(value)))
    return {"array": len(arrays) - 1}


def decoded(stored: Any, home: Array) -> Any:
    """The value that was encoded, its arrays beside `home`."""
    return stored if not isinstance(stored, _Stored) else _decoded(stored.text, stored.arrays, home)


def _decoded(text: Any, arrays: dict[str, np.ndarray], home: Array) -> Any:
    if not isinstance(text, dict):
        return text
    kind = next(iter(text))
    if kind == "array":
        return match_array(arrays[f"a{text['array']}"], like=home)
    if kind == "outcome":
        return Outcome[text["outcome"]]
    if kind in ("list", "tuple"):
        parts = [_decoded(part, arrays, home) for part in text[kind]]
        return parts if kind == "list" else tuple(parts)
    known = OWN.get(text["record"]) or RECORDS[text["record"]]
    return known(**{name: _decoded(part, arrays, home) for name, part in text["fields"].items()})
