"""Other processes, real ones: a function of a test module runs in each.

They are forked from a server that has imported what they need and opened nothing, so
that starting one takes milliseconds and not a second of imports.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        "sessiondb.store",
        "sessiondb.aio",
        "pytest",
        "pytest_asyncio",
        "hypothesis",
        "msgpack",
    ]
)
PATIENCE = 30.0


class Other:
    """A process at work, and the pipe to it."""

    def __init__(self, function: Callable[..., None], *args: Any) -> None:
        self.pipe, theirs = _context.Pipe()
        self._process = _context.Process(
            target=function, args=(theirs, *args), daemon=True
        )
        self._process.start()
        theirs.close()

    def hear(self) -> Any:
        """Return the next value it sends; EOFError after its end."""
        assert self.pipe.poll(PATIENCE), "the other process says nothing"
        return self.pipe.recv()

    def say(self, value: Any = None) -> None:
        """Send it a value."""
        self.pipe.send(value)

    def kill(self) -> None:
        """Kill it with SIGKILL, at any point of its work."""
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        """Wait for its end, which must be successful."""
        self._process.join(PATIENCE)
        assert self._process.exitcode == 0


@contextmanager
def other(function: Callable[..., None], *args: Any) -> Generator[Other]:
    """Run *function* (its first argument is a pipe) in a process of its own."""
    process = Other(function, *args)
    try:
        yield process
    finally:
        process.kill()
        process.pipe.close()


def ran(function: Callable[..., None], *args: Any) -> None:
    """Run *function* in a process of its own, to its end."""
    process = Other(function, *args)
    process.end()
    process.pipe.close()


__all__ = ["Connection", "Other", "other", "ran"]
