"""The facts that a support request needs: versions, settings, sizes, and what to do.

It works on a file that the store refuses, too: why something could not be read is
under ``error``, the rest is there.
"""

from __future__ import annotations

import platform
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from sessiondb import __version__
from sessiondb.arguments import checked
from sessiondb.engine.default import ENGINE
from sessiondb.errors import SessionDBError
from sessiondb.hints import command
from sessiondb.location.database import Database
from sessiondb.maintenance.sizes import biggest_sessions

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
    if path is None:
        report["database"] |= {"path": ":memory:", "exists": False}
    else:
        report["database"] |= ENGINE.upkeep.place_facts(path)
    if path is not None and report["database"]["exists"]:
        try:
            report |= _inside(path)
        except (SessionDBError, ENGINE.Error) as error:
            report["error"] = str(error)

    # The engine's first: a defect of it may explain all others.
    report["advice"] = [*ENGINE.upkeep.advice(report), *_advice(report)]
    return report


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "sessiondb": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        **ENGINE.upkeep.versions(),
        "msgpack": None,
    }
    with suppress(metadata.PackageNotFoundError):
        found["msgpack"] = metadata.version("msgpack")
    return found


def _inside(path: Path) -> dict[str, Any]:
    with closing(ENGINE.connect(path, mode="reader")) as connection:
        connection.execute(ENGINE.begin_read)
        report = ENGINE.upkeep.settings(connection)
        report["rows"] = {
            name: connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            for name, rows in _COUNTS.items()
        }
        row = connection.execute(_LAST_IMPORT).fetchone()
        names = ("source", "time_imported", "files", "with_problems")
        report["last_import"] = dict(zip(names, row, strict=True)) if row else None
        report["bytes_by_table"] = ENGINE.upkeep.bytes_by_table(connection)
        report["biggest_sessions"] = biggest_sessions(connection)

    report["pending_migrations"] = [
        f"{step.revision} {step.description}" for step in ENGINE.upkeep.pending(path)
    ]
    return report


def _advice(report: dict[str, Any]) -> list[str]:
    advice = []
    if "error" in report:
        advice.append(
            f"parts of the database could not be read; {command('check')} lists them"
        )
    if report.get("pending_migrations"):
        advice.append(
            f"the schema is older than this release; {command('migrate')} updates it"
        )
    if report.get("rows", {}).get("deleted_sessions"):
        advice.append(
            f"removed sessions still take space; {command('vacuum')} frees it"
        )

    return advice
