"""Reads of a damaged file that continue without what cannot be read.

By default a read raises `CorruptionError`. The command line continues instead, reports
what is missing and exits with 4. After a damaged page it reads a copy of all readable
rows, which is made at the first statement that fails. A large value whose row was
removed or changed is omitted, and a path that breaks off is shown as far as it leads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sessiondb.database.reading import is_corrupt
from sessiondb.engine.base import Connection, ReadableCopy, Target
from sessiondb.engine.default import temporary_place
from sessiondb.engine.file_engine import TemporaryPlace


class PastDamage:
    """The known damage of one database.

    *report* gets a line for each thing missing.
    """

    def __init__(
        self,
        target: Target,
        report: Callable[[str], None],
        *,
        read_only: bool,
    ) -> None:
        self._target, self._report, self._read_only = target, report, read_only
        self._lock = threading.Lock()
        self._temporary: TemporaryPlace | None = None
        self._copy: ReadableCopy | None = None
        #: Sessions of which something is missing, and the lines that were reported.
        self._incomplete: set[str] = set()
        self._reported: set[str] = set()
        self._active = True

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let reads raise `CorruptionError` again in a ``with`` block."""
        self._active = False
        try:
            yield
        finally:
            self._active = True

    def helps(self, error: Exception) -> bool:
        """Return whether the copy answers a statement that ended with *error*."""
        return self._active and is_corrupt(self._target.engine, error)

    def leaves_out(self, session_id: str, missing: str, reason: str) -> bool:
        """Return whether a read continues without what is missing; report it once."""
        self._incomplete.add(session_id)
        line = f"{missing}: {reason}"
        if self._active and line not in self._reported:
            self._reported.add(line)
            self._report(line)

        return self._active

    def is_complete(self, session_id: str) -> bool:
        """Return whether all of a session can be read.

        Raises `CorruptionError` if nothing can be read.
        """
        if session_id in self._incomplete:
            return False
        return self._copy_made().is_complete(session_id)

    def connection(self) -> Connection:
        """Return the connection to the copy.

        Raises `CorruptionError` if nothing can be read.
        """
        return self._copy_made().connection

    def _copy_made(self) -> ReadableCopy:
        with self._lock:
            if self._copy is None:
                self._temporary = self._temporary or temporary_place()
                self._copy = self._target.salvage(
                    self._temporary.path, read_only=self._read_only
                )
                self._report(_lost_rows(self._copy))

            return self._copy

    def close(self) -> None:
        """Close and remove the copy, if one was made."""
        if self._copy is not None:
            self._copy.close()
        if self._temporary is not None:
            self._temporary.remove()


def _lost_rows(copy: ReadableCopy) -> str:
    lost = ", ".join(f"{number:,} of {table}" for table, number in copy.lost.items())
    if not lost:
        return "rows that cannot be read: none, only its indexes"
    return f"rows that cannot be read, at least: {lost}"
