"""Reads of a damaged file that continue on a copy of what can be read, where that is wanted.

A program gets `CorruptionError`. The command line takes the copy instead, says
what is missing and exits with 4. It is made at the first statement that fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sessiondb.engine.base import Connection, ReadableCopy, TemporaryPlace
from sessiondb.engine.default import ENGINE


class PastDamage:
    """The copy of one opened database, made when it is first needed; *report* is called with it."""

    def __init__(
        self, path: Path, report: Callable[[ReadableCopy], None], *, read_only: bool
    ) -> None:
        self._path, self._report, self._read_only = path, report, read_only
        self._lock = threading.Lock()
        self._temporary: TemporaryPlace | None = None
        self._copy: ReadableCopy | None = None
        self.active = True

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let reads raise `CorruptionError` again in a ``with`` block."""
        self.active = False
        try:
            yield
        finally:
            self.active = True

    def copy(self) -> ReadableCopy:
        """Return the copy; raises `CorruptionError` where nothing can be read."""
        with self._lock:
            if self._copy is None:
                self._temporary = self._temporary or ENGINE.temporary()
                self._copy = ENGINE.salvage(
                    self._path, self._temporary.path, read_only=self._read_only
                )
                self._report(self._copy)
            return self._copy

    def connection(self) -> Connection:
        """Return the connection to the copy."""
        return self.copy().connection

    def close(self) -> None:
        """Close and remove the copy, if one was made."""
        if self._copy is not None:
            self._copy.close()
        if self._temporary is not None:
            self._temporary.remove()
