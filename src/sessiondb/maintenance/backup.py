"""A copy of the database as it is at one moment, made while others write, and verified."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sessiondb.engine import files
from sessiondb.engine.connection import connect
from sessiondb.engine.failures import translate
from sessiondb.errors import ConflictError, CorruptionError
from sessiondb.maintenance.check import HasPath

_COUNT = "SELECT count(*) FROM session WHERE time_deleted IS NULL"


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified copy: where it is, its bytes, and how many sessions it holds."""

    path: Path
    bytes: int
    sessions: int


def backup(store: HasPath, to: Path) -> Backup:
    """Write a compact copy of a store's database to the new file *to*, readable by nobody else.

    Raises `ConflictError` when there is something already, `CorruptionError`
    when the copy is not whole, `StorageError`; no half copy is left behind.
    """
    to = to.expanduser().absolute()
    if os.path.lexists(to):
        raise _taken(to)
    half = half_copy(to)
    # SQLite itself would make the file readable for everybody.
    files.prepare(half)
    try:
        _copy(store.path, half)
        made = _verified(half)
        _name(half, to)
    finally:
        with contextlib.suppress(OSError):
            half.unlink()
    return replace(made, path=to)


def half_copy(to: Path) -> Path:
    """Return where the copy is while it is not whole: hidden, beside *to*, of this process."""
    return to.with_name(f".{to.name}.{os.getpid()}.part")


def _name(half: Path, to: Path) -> None:
    """Give the whole copy its name, unless somebody took that meanwhile."""
    with files.translated(to):
        try:
            os.link(half, to)
        except FileExistsError:
            raise _taken(to) from None
        except OSError:  # a file system without links
            half.rename(to)


def _taken(to: Path) -> ConflictError:
    return ConflictError(f"{to} is there already", hint="a backup needs a new file")


def _copy(path: Path, to: Path) -> None:
    with closing(connect(path)) as connection:
        try:
            connection.execute("VACUUM INTO ?", (str(to),))
        except sqlite3.Error as error:
            raise translate(error) from error


def _verified(path: Path) -> Backup:
    with closing(connect(path)) as connection:
        try:
            answers = [line for (line,) in connection.execute("PRAGMA integrity_check")]
            if answers != ["ok"]:
                raise CorruptionError(
                    f"the copy is damaged: {answers[0]}", hint="`sessiondb check`"
                )
            # VACUUM INTO leaves the copy to the cache of the system: a commit syncs all of it.
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute(f"PRAGMA user_version={version}")
            (sessions,) = connection.execute(_COUNT).fetchone()
        except sqlite3.Error as error:
            raise translate(error) from error
    return Backup(path, path.stat().st_size, sessions)
