"""The facts that a support request needs: versions, settings, sizes, and what to do.

It works on a file that the store refuses, too: what cannot be read is said
under ``error``, the rest is there. The database is opened by SQLite alone.
"""

from __future__ import annotations

import platform
import sqlite3
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from sessiondb import __version__
from sessiondb.arguments import checked
from sessiondb.engine import disk
from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.connection import connect
from sessiondb.errors import SessionDBError
from sessiondb.hints import command
from sessiondb.location.database import Database
from sessiondb.maintenance.sizes import biggest_sessions, bytes_by_table

#: The first SQLite without the WAL-reset defect (https://sqlite.org/wal.html#walresetbug).
WAL_RESET_FIXED = (3, 51, 3)
#: A write-ahead log larger than this is not being checkpointed.
LARGE_WAL = 64_000_000
#: Unused pages of more than this are worth giving back.
LARGE_FREE = 16_000_000

_PRAGMAS = (
    "journal_mode synchronous foreign_keys page_size page_count freelist_count encoding "
    "application_id user_version"
).split()
_COUNTS = {
    "sessions": "session WHERE time_deleted IS NULL",
    "deleted_sessions": "session WHERE time_deleted IS NOT NULL",
    "messages": "message",
    "parts": "part",
    "blobs": "blob",
    "projects": "project",
}
_LAST_IMPORT = (
    "SELECT source, max(time_imported), count(*), count(problems) FROM import_ledger "
    "GROUP BY source ORDER BY 2 DESC LIMIT 1"
)


@checked
def diagnose(database: Database) -> dict[str, Any]:
    """Return what is known of this installation and of *database*, as JSON values.

    ``advice`` is a list of sentences, empty when there is nothing to do.
    """
    report: dict[str, Any] = {
        "versions": _versions(),
        "database": {"kind": database.kind},
    }
    path = database.path
    if path is None or disk.identity(path) is None:
        report["database"] |= {"path": str(path or ":memory:"), "exists": False}
    else:
        report["database"] |= _file(path)
        try:
            report |= _inside(path)
        except (SessionDBError, sqlite3.Error) as error:
            report["error"] = str(error)
    report["advice"] = _advice(report)
    return report


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "sessiondb": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(),
    }
    for name in ("sqlalchemy", "alembic", "aiosqlite", "msgpack"):
        found[name] = None
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _file(path: Path) -> dict[str, Any]:
    wal = path.with_name(path.name + "-wal")
    return {
        "path": str(path),
        "exists": True,
        "bytes": path.stat().st_size,
        "bytes_wal": wal.stat().st_size if wal.exists() else 0,
        "bytes_free_on_disk": disk.free_bytes(path),
        "mode": f"{path.stat().st_mode & 0o777:04o}",
        "exposed": [str(file) for file in files.exposed(path)],
        "network_filesystem": disk.network_filesystem(path),
    }


def _inside(path: Path) -> dict[str, Any]:
    with closing(connect(path, mode="reader")) as connection:
        connection.execute("BEGIN")
        pragmas = {p: connection.execute(f"PRAGMA {p}").fetchone()[0] for p in _PRAGMAS}
        report: dict[str, Any] = {"pragmas": pragmas}
        report["rows"] = {
            name: connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            for name, rows in _COUNTS.items()
        }
        row = connection.execute(_LAST_IMPORT).fetchone()
        names = ("source", "time_imported", "files", "with_problems")
        report["last_import"] = dict(zip(names, row, strict=True)) if row else None
        report["bytes_by_table"] = bytes_by_table(connection)
        report["biggest_sessions"] = biggest_sessions(connection)
    report["pending_migrations"] = _pending(path)
    return report


def _pending(path: Path) -> list[str]:
    from sessiondb.engine.sqlite.migrations import pending

    return [f"{step.revision} {step.description}" for step in pending(path)]


def _advice(report: dict[str, Any]) -> list[str]:
    advice, file = [], report["database"]
    if sqlite3.sqlite_version_info < WAL_RESET_FIXED:
        advice.append(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset defect (fixed in 3.51.3): rarely, "
            "two processes that write and checkpoint at once damage the file; keep backups"
        )
    if "error" in report:
        advice.append(
            f"parts of the database could not be read; {command('check')} lists them"
        )
    if file.get("exposed"):
        advice.append(f"others can read {', '.join(file['exposed'])}; chmod 600 them")
    if file.get("network_filesystem"):
        advice.append(
            f"the database is on {file['network_filesystem']}: one process at a time, no WAL"
        )
    if file.get("bytes_wal", 0) > LARGE_WAL:
        advice.append(
            "the write-ahead log is large: some program keeps a read transaction open"
        )
    if report.get("pending_migrations"):
        advice.append(
            f"the schema is older than this release; {command('migrate')} updates it"
        )
    if report.get("rows", {}).get("deleted_sessions"):
        advice.append(
            f"removed sessions still take space; {command('vacuum')} frees it"
        )
    pragmas = report.get("pragmas", {})
    unused = pragmas.get("freelist_count", 0) * pragmas.get("page_size", 0)
    if unused > LARGE_FREE:
        advice.append(
            f"{unused / 1e6:,.0f} MB are unused; {command('vacuum')} frees them"
        )
    return advice
