"""Errors of the server as ours, by SQLSTATE and never by the text of a message.

An error without a SQLSTATE is one of the driver's own. A refused connection has none
either: `connecting` finds out why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from sessiondb.errors import (
    AccessError,
    BusyError,
    ConflictError,
    CorruptionError,
    InvalidInputError,
    NotADatabaseError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    StorageError,
    StorageFullError,
    StoreClosedError,
    UnavailableError,
)

_HINTS: dict[type[SessionDBError], str] = {
    BusyError: "another session keeps it locked; try again, or raise busy_timeout",
    StorageFullError: "free some disk space on the server and try again",
    ReadOnlyError: "connect to the primary server, as a role that may write",
    CorruptionError: "the server's administrator has to restore a backup",
    UnavailableError: "check that the server runs and can be reached, and try again",
    AccessError: "ask the administrator of the server for the right of the role",
}
#: A SQLSTATE, or the two characters of its class → our error and its text; without a
#: text, that of the class.
_BY_STATE: dict[str, tuple[type[SessionDBError], str | None]] = {
    "08": (UnavailableError, "the connection to the server is gone"),
    "22": (InvalidInputError, "the database refused a value"),
    "23": (InvalidInputError, "the database refused a value"),
    "23503": (NotFoundError, "it refers to something that does not exist"),
    "23505": (ConflictError, "it already exists"),
    "25006": (ReadOnlyError, None),
    "25P03": (UnavailableError, "the server ended an idle transaction"),
    "28": (AccessError, None),
    "3D000": (NotADatabaseError, "the database does not exist"),
    "3F000": (NotADatabaseError, "the schema does not exist"),
    "40001": (BusyError, "another session changed the same rows"),
    "40P01": (BusyError, "two sessions waited for each other"),
    "42501": (AccessError, None),
    "42P01": (NotADatabaseError, "a table of sessiondb does not exist"),
    "53": (BusyError, "the server is out of resources"),
    "53100": (StorageFullError, "the disk of the server is full"),
    "54": (InvalidInputError, "too large for the database"),
    "55P03": (BusyError, "another session kept a lock for longer than busy_timeout"),
    "57014": (BusyError, "the server cancelled the statement"),
    "57P01": (UnavailableError, "the server ended the connection"),
    "57P02": (UnavailableError, "the server ended the connection"),
    "57P03": (UnavailableError, "the server does not accept connections now"),
    "57P05": (UnavailableError, "the server ended an idle connection"),
    "58": (StorageError, "the server could not read or write a file"),
    "XX001": (CorruptionError, "the database is damaged"),
    "XX002": (CorruptionError, "an index of the database is damaged"),
}
#: States of a transaction that the server gave up for one of another session.
_GIVEN_UP = ("40001", "40P01")
#: Those of a key that another session took, and of a row that it removed, since this
#: one looked: run again, the unit sees it.
_TAKEN, _REMOVED = "23505", "23503"
#: How the names of their tables begin; `schema.extensions` loads SQLAlchemy.
_OF_PROGRAMS = "ext_"


class ConnectionClosedError(psycopg.InterfaceError):
    """A connection is used that this process has closed."""


def is_gone(error: Exception) -> bool:
    """Return whether an error says that its connection was lost."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # The driver itself raises this class for nothing but the connection.
        return isinstance(error, psycopg.OperationalError)
    return _entry_of(error.sqlstate)[0] is UnavailableError


def must_repeat(error: Exception) -> bool:
    """Return whether a transaction that ended with *error* is to be run again."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return False
    if error.sqlstate == _TAKEN:
        # In the table of a program it is the answer.
        return not (error.diag.table_name or "").startswith(_OF_PROGRAMS)
    if error.sqlstate == _REMOVED:
        return (error.diag.constraint_name or "").endswith("_blob")
    return error.sqlstate in _GIVEN_UP


def translate(error: Exception) -> SessionDBError:
    """Return our error for one of the driver; raise it ``from`` the original."""
    if isinstance(error, ConnectionClosedError):
        return StoreClosedError("the store is closed")
    state = getattr(error, "sqlstate", None)
    if state is None:
        return _of_the_driver(error)

    kind, text = _entry_of(state)
    text = text or (kind.__doc__ or "").rstrip(".")
    return kind(f"{text}: {message_of(error)}", hint=_HINTS.get(kind))


def _of_the_driver(error: Exception) -> SessionDBError:
    if is_gone(error):
        text = f"the connection to the server is gone: {message_of(error)}"
        return UnavailableError(text, hint=_HINTS[UnavailableError])
    if isinstance(error, psycopg.DataError):
        return InvalidInputError(
            f"not a value that can be stored here: {message_of(error)}"
        )
    return SessionDBError(f"psycopg refused: {message_of(error)}")


def _entry_of(state: str) -> tuple[type[SessionDBError], str | None]:
    by_class = _BY_STATE.get(state[:2], (SessionDBError, "PostgreSQL refused"))
    return _BY_STATE.get(state, by_class)


def message_of(error: Exception) -> str:
    """Return the message of an error in one line, without that of the statement."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return " ".join(str(error).split())


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the driver as ours; see `translate`."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
