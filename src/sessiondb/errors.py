"""Every error sessiondb raises, as one tree.

    SessionDBError                      hint, retryable, exit_code
    ├── NotFoundError                   LookupError     3
    ├── AmbiguousIdError                LookupError     3
    ├── InvalidInputError               ValueError      2
    │   └── CodecError                                  2
    ├── ConflictError                                   1
    ├── BusyError                       TimeoutError    5   retryable
    │   └── LeaseHeldError                              5   retryable
    ├── UnavailableError                ConnectionError 5   retryable
    ├── AccessError                     PermissionError 1
    ├── StoreClosedError                                1
    ├── StorageError                    OSError         1
    │   ├── StorageFullError                            1   retryable
    │   └── ReadOnlyError                               1
    ├── SchemaVersionError                              6
    ├── NotADatabaseError               ValueError      1
    │   └── UntrustedDatabaseError                      1
    ├── CorruptionError                                 4
    ├── DatabaseReplacedError                           1
    ├── SourceError                     ValueError      4
    └── UnsupportedError                NotImplementedError 2
        └── MissingExtraError           ImportError     1

A message says what failed and on which object; ``hint`` says what to do next. An error
raised by a unit also carries ``effect`` (the verb) and ``position`` (0-based).

Whatever a caller passed in, a message stays short: values are written by `abridged`,
and a message of more than `MAX_MESSAGE` characters loses its middle.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

#: Characters of a message.
MAX_MESSAGE = 2_000


class _Abridged(reprlib.Repr):
    """`repr` with a bound on length and depth, which never raises."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80
        self.maxlevel = 3

    def repr1(self, x: Any, level: int) -> str:
        # Subclasses as well: their own __repr__ would be run on all of the value.
        if isinstance(x, str):
            return self.repr_str(str.__str__(x), level)
        if isinstance(x, bytes | bytearray | memoryview):
            beginning: Any = bytes(x[: self.maxstring + 1])
            return self.repr_str(beginning, level)
        if isinstance(x, int) and x.bit_length() > 256:
            # Python refuses to write integers of more than 4,300 digits.
            return f"an integer of {x.bit_length():,} bits"

        return super().repr1(x, level)


_abridged = _Abridged()


def abridged(value: object) -> str:
    """Return *value* for a message: its `repr`, some hundred characters at most."""
    try:
        return _abridged.repr(value)
    # A hostile object must not hide the error that shows it.
    except Exception:  # noqa: BLE001
        return f"<{type(value).__name__}>"


def shortened(text: str) -> str:
    """Return *text* without its middle, if it is longer than `MAX_MESSAGE`."""
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[: MAX_MESSAGE - 300]} … {text[-200:]}"


class SessionDBError(Exception):
    """The base of all errors: an operation of sessiondb failed."""

    exit_code: int = 1
    retryable: bool = False

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(shortened(message or (type(self).__doc__ or "").strip()))
        self.hint = hint
        self.effect: str | None = None
        self.position: int | None = None

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.effect is None:
            return text
        return f"{self.effect} (effect {self.position}): {text}"


class NotFoundError(SessionDBError, LookupError):
    """No object of that name exists here."""

    exit_code = 3


class AmbiguousIdError(SessionDBError, LookupError):
    """More than one session has that name.

    ``candidates`` lists full ids, ``sessions`` their records if they are known.
    """

    exit_code = 3

    def __init__(
        self,
        message: str | None = None,
        *,
        candidates: Sequence[str] = (),
        sessions: Sequence[Any] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.candidates = tuple(candidates)
        self.sessions = tuple(sessions)


class InvalidInputError(SessionDBError, ValueError):
    """A value was refused before anything was written."""

    exit_code = 2


class CodecError(InvalidInputError):
    """A value cannot be encoded without loss, or stored bytes cannot be decoded."""


class ConflictError(SessionDBError):
    """The database changed first: the expected state is not the stored one."""


class BusyError(SessionDBError, TimeoutError):
    """Another process kept the write lock for longer than ``busy_timeout``."""

    exit_code = 5
    retryable = True


class LeaseHeldError(BusyError):
    """A living writer holds the lease of this session."""


class UnavailableError(SessionDBError, ConnectionError):
    """The database is out of reach: its server or file system does not respond."""

    exit_code = 5
    retryable = True


class AccessError(SessionDBError, PermissionError):
    """The server refuses the role, its password, or what it wants to do."""


class StoreClosedError(SessionDBError):
    """The store is closed, or was opened before a fork(2) of this process."""


class StorageError(SessionDBError, OSError):
    """The file system refused a read or a write."""


class StorageFullError(StorageError):
    """The disk is full; nothing of this unit was written."""

    retryable = True


class ReadOnlyError(StorageError):
    """The database cannot be written here."""


class SchemaVersionError(SessionDBError):
    """The file needs another release of sessiondb; nothing was written."""

    exit_code = 6


class NotADatabaseError(SessionDBError, ValueError):
    """The file is not a sessiondb database; it was left as it is."""


class UntrustedDatabaseError(NotADatabaseError):
    """The file carries triggers or changed objects that sessiondb did not make."""


class CorruptionError(SessionDBError):
    """SQLite reports that the file is damaged; it was left as it is."""

    exit_code = 4


class DatabaseReplacedError(SessionDBError):
    """The file at this path was replaced since it was opened."""


class SourceError(SessionDBError, ValueError):
    """A foreign store or file cannot be read."""

    exit_code = 4


class UnsupportedError(SessionDBError, NotImplementedError):
    """This release, engine or format cannot do it; another one may."""

    exit_code = 2


class MissingExtraError(UnsupportedError, ImportError):
    """An optional dependency is not installed."""

    exit_code = 1


#: Errors of damaged or half-deleted rows when one session is read. A file that is
#: locked, full or replaced raises others, which concern every session.
UNREADABLE = (
    CorruptionError,
    CodecError,
    NotFoundError,
    ValueError,
    TypeError,
    LookupError,
)
