"""A copy of the database as it is at one moment, made while others write, and verified."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
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
    # SQLite itself would make the file readable for everybody.
    if not files.prepare(to):
        raise ConflictError(f"{to} is there already", hint="a backup needs a new file")
    try:
        _copy(store.path, to)
        return _verified(to)
    except BaseException:
        to.unlink(missing_ok=True)
        raise


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
