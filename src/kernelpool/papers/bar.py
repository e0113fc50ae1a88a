"""How far a run has come: a bar where `rich` is installed, lines otherwise, or whatever the caller makes of it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Tell = Callable[[str], None]


class Progress:
    """Says nothing."""

    @contextmanager
    def begin(self, total: int, done: int) -> Iterator[Tell]:
        """A function to be called with the name of each unit that finishes."""
        yield lambda _: None


class Called(Progress):
    """Passes units done, units in all and the last one's name to a function."""

    def __init__(self, function: Callable[[int, int, str], None]) -> None:
        self.function = function

    @contextmanager
    def begin(self, total: int, done: int) -> Iterator[Tell]:
        count = done

        def tell(name: str) -> None:
            nonlocal count
            count += 1
            self.function(count, total, name)

        yield tell


class Bar(Progress):
    """A bar with the time that is left, by `rich`."""

    @contextmanager
    def begin(self, total: int, done: int) -> Iterator[Tell]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichBar

        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        )
        with RichBar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total, completed=done)
            yield lambda name: bar.update(task, advance=1, description=name)


def _lines() -> Callable[[int, int, str], None]:
    begin = time.perf_counter()

    def line(done: int, total: int, name: str) -> None:
        print(f"{done:4d} of {total}  {time.perf_counter() - begin:6.0f} s  {name}", file=sys.stderr, flush=True)

    return line


def progress_of(wish: bool | Callable[[int, int, str], None]) -> Progress:
    """What the caller of a run asked for."""
    if callable(wish):
        return Called(wish)
    if not wish:
        return Progress()
    return Bar() if sys.stderr.isatty() and find_spec("rich") is not None else Called(_lines())
