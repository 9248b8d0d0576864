"""The messages of one session, read on demand: the common part of both generations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.opencode.forks import Fork
from sessiondb.model import Problem, SourceMessage


class ReadableStore(Protocol):
    """A store of either generation, as far as both are alike."""

    def path_of(self, session: str) -> Path:
        """The file that holds a session."""

    def reading(self) -> AbstractContextManager[object]:
        """Keep the store open, and its content as it is if that is possible."""


_Records = TypeVar("_Records", bound=ReadableStore)


class OpenCodeMessages(Generic[_Records]):
    """An iterable over one session's messages and their problems; read again each time.

    *fork* is the origin of a fork, None for any other session.
    """

    def __init__(self, records: _Records, session: str, fork: Fork | None) -> None:
        self._records = records
        self._session = session
        self._fork = fork

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one message."""
        with self._records.reading():
            try:
                yield from self._read_messages()
            except (Error, OddRecordError) as error:
                path = self._records.path_of(self._session)
                reason = f"its other messages cannot be read: {error}"
                yield self._problem(path, reason)

    def _read_messages(self) -> Iterator[SourceMessage | Problem]:
        """Yield the messages in order; raises `OddRecordError` and errors of SQLite."""
        raise NotImplementedError

    def _problem(self, path: Path, reason: str) -> Problem:
        return Problem(str(path), f"session {self._session}: {reason}")
