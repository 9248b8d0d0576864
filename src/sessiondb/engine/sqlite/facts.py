"""Facts of an installation and a file for support, and advice on them."""

from __future__ import annotations

import sqlite3
from importlib import metadata
from pathlib import Path
from typing import Any

from sessiondb.engine import disk
from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.write_ahead_log import WAL_RESET_FIXED
from sessiondb.hints import command, word

#: The first SQLite without the WAL-reset defect
#: (https://sqlite.org/wal.html#walresetbug).
#: A write-ahead log larger than this is not being checkpointed.
LARGE_WAL = 64_000_000
#: Unused pages of more than this are worth giving back.
LARGE_FREE = 16_000_000
_SETTINGS = (
    "journal_mode synchronous foreign_keys page_size page_count freelist_count "
    "encoding application_id user_version"
).split()
_LIBRARIES = ("sqlalchemy", "alembic", "aiosqlite")


def versions() -> dict[str, str | None]:
    """Return the versions of SQLite and of the libraries between it and us."""
    return {
        "sqlite": sqlite3.sqlite_version,
        **{name: version_of(name) for name in _LIBRARIES},
    }


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution; None without it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def place_facts(path: Path) -> dict[str, Any]:
    """Return the facts about the file at *path* that need no opening, as JSON."""
    if disk.identity(path) is None:
        return {"path": str(path), "exists": False}
    wal = path.with_name(f"{path.name}-wal")

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


def settings(connection: Any) -> dict[str, Any]:
    """Return the pragmas of a connection, under that name."""
    values = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SETTINGS
    }
    return {"pragmas": values}


def advice(report: dict[str, Any]) -> list[str]:
    """Return sentences on what to do about a report of `place_facts` and `settings`."""
    file, pragmas = report["database"], report.get("pragmas", {})
    exposed, network = file.get("exposed", ()), file.get("network_filesystem")
    unused = pragmas.get("freelist_count", 0) * pragmas.get("page_size", 0)
    copies = f"{command('backup', 'COPY.db')} keeps a copy"
    chmod = " ".join(map(word, ["chmod", "600", *exposed]))
    sentences = {
        f"SQLite {sqlite3.sqlite_version} has the WAL-reset defect (fixed in 3.51.3): "
        "rarely, two processes that write and checkpoint at once damage the file; "
        f"{copies}": sqlite3.sqlite_version_info < WAL_RESET_FIXED,
        f"other users can read {', '.join(exposed)}; `{chmod}` hides them": exposed,
        f"the database is on {network}, for one process at a time, without WAL; "
        f"{copies} on a local disk, for --db": network,
        "the write-ahead log is large: a program keeps a read transaction open; end "
        f"that program, then {command('vacuum')} shortens the log": (
            file.get("bytes_wal", 0) > LARGE_WAL
        ),
        f"{unused / 1e6:,.0f} MB are unused; {command('vacuum')} frees them": (
            unused > LARGE_FREE
        ),
    }

    return [sentence for sentence, applies in sentences.items() if applies]
