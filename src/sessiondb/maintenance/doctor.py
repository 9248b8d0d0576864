"""The facts that a support request needs: versions, settings, sizes, and advice.

It also works for a database that the store refuses: the report then has the ``error``
of an opening, and all facts that could be read.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib import metadata
from typing import Any

from sessiondb import __version__
from sessiondb.arguments import checked
from sessiondb.engine.base import Connection, Engine, Target
from sessiondb.engine.default import ENGINE
from sessiondb.errors import SessionDBError, UnavailableError
from sessiondb.hints import command
from sessiondb.location.database import Database
from sessiondb.maintenance.connecting import connected
from sessiondb.maintenance.sizes import biggest_sessions
from sessiondb.words import count

_COUNTS = {
    "sessions": "session WHERE time_deleted IS NULL",
    "deleted_sessions": "session WHERE time_deleted IS NOT NULL",
    "messages": "message",
    "parts": "part",
    "blobs": "blob",
    "projects": "project",
    "values": "key_value",
}
_LAST_IMPORT = (
    "SELECT source, max(time_imported), count(*), count(problems) FROM import_ledger "
    "GROUP BY source ORDER BY 2 DESC LIMIT 1"
)


@checked
def diagnose(database: Database) -> dict[str, Any]:
    """Return the facts about this installation and *database*, as JSON values.

    ``advice`` is a list of sentences, empty when there is nothing to do. ``error`` is
    why the database cannot be opened or read, with the keys ``type``, ``message``,
    ``hint`` and ``exit_code``; it is missing if it can. Raises `MissingExtraError`
    without the driver of a server.
    """
    target = database.target()
    engine: Engine = ENGINE if target is None else target.engine
    report: dict[str, Any] = {
        "versions": _package_versions() | engine.upkeep.versions(),
        # Of a server that does not answer it is not known.
        "database": {
            "kind": database.kind,
            "path": str(database),
            "exists": False if target is None else None,
        },
    }
    if target is not None:
        try:
            report["database"] |= target.facts()
            if report["database"]["exists"]:
                report |= _report_of(target)
                target.verify()
        except SessionDBError as error:
            report["error"] = _error_facts(_reason(target, error))

    # The engine's first: a defect there may explain everything else.
    report["advice"] = [*engine.upkeep.advice(report), *_advice_for(report)]
    return report


def _reason(target: Target, error: SessionDBError) -> SessionDBError:
    """Return the error of an opening; *error* if only the content cannot be read."""
    # A server that does not answer is not waited for again.
    if isinstance(error, UnavailableError):
        return error
    try:
        target.verify()
    except SessionDBError as refusal:
        return refusal
    return error


def _error_facts(error: SessionDBError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": str(error),
        "hint": error.hint,
        "exit_code": error.exit_code,
    }


def _package_versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {
        "sessiondb": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        **ENGINE.upkeep.versions(),
        "msgpack": None,
    }
    with suppress(metadata.PackageNotFoundError):
        versions["msgpack"] = metadata.version("msgpack")
    return versions


def _report_of(target: Target) -> dict[str, Any]:
    with connected(target) as connection:
        engine = connection.engine
        connection.execute(engine.begin_read)
        report = engine.upkeep.settings(connection)
        report["rows"] = {
            name: connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            for name, rows in _COUNTS.items()
        }
        row = connection.execute(_LAST_IMPORT).fetchone()
        names = ("source", "time_imported", "files", "with_problems")
        report["last_import"] = dict(zip(names, row, strict=True)) if row else None
        report["extensions"] = _extensions(connection)
        report["bytes_by_table"] = engine.upkeep.bytes_by_table(connection)
        report["biggest_sessions"] = biggest_sessions(connection)

    report["pending_migrations"] = [
        f"{step.revision} {step.description}" for step in target.pending()
    ]
    return report


def _extensions(connection: Connection) -> list[str]:
    """Return a line for each table that a program added: its rows, and who added it."""
    versions = dict(connection.execute("SELECT name, version FROM extension"))
    lines = []
    for table in connection.engine.extensions.listed(connection):
        sql = f"SELECT count(*) FROM {table.name}"
        rows = connection.execute(sql).fetchone()[0]
        program = f"{table.extension} {versions[table.extension]}"
        lines.append(f"{table.name}: {count(rows, 'row')}, of {program}")
    return lines


def _advice_for(report: dict[str, Any]) -> list[str]:
    sentences = {
        f"parts of the database could not be read; {command('check')} lists them": (
            report.get("error", {}).get("type") == "CorruptionError"
        ),
        f"the schema is older than this release; {command('migrate')} updates it": (
            report.get("pending_migrations")
        ),
        f"removed sessions still take space; {command('vacuum')} frees it": (
            report.get("rows", {}).get("deleted_sessions")
        ),
    }
    return [sentence for sentence, applies in sentences.items() if applies]
