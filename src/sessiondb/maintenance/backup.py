"""A verified copy of the database as of one moment, made while others write."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sessiondb.arguments import OpenedStore, checked, file_of
from sessiondb.dataclass import dataclass
from sessiondb.engine import outputs
from sessiondb.engine.default import ENGINE, target_at
from sessiondb.errors import ConflictError, CorruptionError, InvalidInputError, abridged
from sessiondb.hints import command
from sessiondb.maintenance.connecting import connected

#: The advice for a database of a server.
ON_A_SERVER = "pg_dump writes a backup of a database of PostgreSQL"
_COUNT = "SELECT count(*) FROM session WHERE time_deleted IS NULL"


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified copy: its path, its size in bytes, and its number of sessions."""

    path: Path
    bytes: int
    sessions: int


@checked
def backup(
    store: OpenedStore, to: str | os.PathLike[str], *, part: Path | None = None
) -> Backup:
    """Write a compact copy of a store's database to the new file *to*.

    Only its owner can read it. A missing folder is made, with mode 0700. *part* is its
    name until it is complete, for a caller that shows progress. Raises `ConflictError`
    if *to* exists, `InvalidInputError` if it is not a path, or a place that is never
    written, `CorruptionError` if the copy is damaged, `UnsupportedError` for a database
    of a server, `StorageError`; no incomplete copy is left behind.
    """
    path, to = file_of(store, ON_A_SERVER), _backup_path(to)
    outputs.check_name(to)

    # For a job that names a folder by the date, as private as the copy.
    ENGINE.upkeep.make_place(to)

    if outputs.check_place(to):
        raise ConflictError(f"{to} already exists", hint="a backup needs a new file")
    with ENGINE.upkeep.copied(path, to, part=part) as copy:
        summary = _verify_backup(copy)
    return replace(summary, path=to)


def _backup_path(target: str | os.PathLike[str]) -> Path:
    try:
        name = os.fspath(target)
        path = Path(name).expanduser().absolute()
    except (TypeError, RuntimeError) as error:
        raise InvalidInputError(f"to must be a path, not {abridged(target)}") from error

    if not name or "\0" in name:
        raise InvalidInputError(
            f"to must be a path, without NUL, not {abridged(target)}"
        )
    return path


def _verify_backup(path: Path) -> Backup:
    with connected(target_at(path), mode="rw") as connection:
        if damage := connection.engine.upkeep.damage(connection):
            raise CorruptionError(
                f"the copy is damaged: {damage[0]}",
                hint=f"{command('check')} lists the damage",
            )
        (sessions,) = connection.execute(_COUNT).fetchone()

    return Backup(path, path.stat().st_size, sessions)
