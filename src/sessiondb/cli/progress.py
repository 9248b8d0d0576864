"""The progress of a long command: a bar on stderr that disappears when it ends.

It is drawn on a terminal alone. Anywhere else nothing is written, nothing is
loaded, and what is counted passes through untouched.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sessiondb.cli.opening import current
from sessiondb.cli.text import count

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
#: Seconds between two updates of a bar that watches something.
EVERY = 0.1


def counted(
    items: Iterable[T],
    noun: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    kind: type = object,
) -> Generator[T]:
    """Yield *items*, showing how many there were of *total* (None: unknown).

    Only those of this *kind* are sessions, and counted.
    """
    if quiet or not sys.stderr.isatty():
        yield from items
        return

    done = 0
    with _progress_bar("{task.fields[number]}") as bar:
        task = bar.add_task(noun, total=total, number="")
        for item in items:
            done += isinstance(item, kind)
            bar.update(task, completed=done, number=_session_progress(done, total))
            yield item


def _session_progress(done: int, total: int | None) -> str:
    if total is None:
        return count(done, "session")
    return f"{done:,} of {count(total, 'session')}"


@contextmanager
def watched(
    done: Callable[[], int], noun: str, total: int, *, quiet: bool = False
) -> Iterator[None]:
    """Show how many of *total* bytes are *done* while the block runs.

    *done* is called on a thread of its own.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return

    ended = threading.Event()
    with _progress_bar("{task.percentage:>3.0f}%") as bar:
        task = bar.add_task(noun, total=max(total, 1))

        def look() -> None:
            while not ended.wait(EVERY):
                bar.update(task, completed=done())

        thread = threading.Thread(target=look, name="sessiondb-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _progress_bar(number: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # None leaves it to NO_COLOR and the terminal.
    no_color = True if current().color == "never" else None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(number),
        TimeElapsedColumn(),
        console=Console(stderr=True, no_color=no_color),
        transient=True,
        redirect_stdout=False,
    )
