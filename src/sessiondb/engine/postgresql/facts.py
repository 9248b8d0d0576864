"""Facts about a database for support, and advice on them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql.admission import (
    SCHEMA,
    admit,
    check_server,
    look_at,
    refuse_missing,
)
from sessiondb.engine.postgresql.connecting import connect
from sessiondb.engine.postgresql.failures import translated
from sessiondb.errors import NotFoundError
from sessiondb.schema.version import VERSION

#: Settings of the server and of the role that say how it keeps what is written.
_SETTINGS = (
    "server_version fsync synchronous_commit full_page_writes transaction_read_only "
    "lock_timeout statement_timeout idle_in_transaction_session_timeout "
    "max_connections search_path"
).split()
_OLDEST_TRANSACTION = (
    "SELECT coalesce(CAST(max(extract(epoch FROM now() - xact_start)) AS bigint), 0) "
    "FROM pg_stat_activity WHERE datname = current_database()"
)
_SIZE = (
    "SELECT current_setting('server_version'), "
    "(SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class "
    "WHERE relkind IN ('r', 'p') "
    f"AND relnamespace = {SCHEMA})"
)
#: Seconds after which a transaction is in the way of others.
_LONG_SECONDS = 3_600


def exists(address: ServerAddress) -> bool:
    """Return whether the first schema has tables with our names.

    Raises what `connect` raises, except for a database that does not exist.
    """
    try:
        with closing(connect(address)) as connection, translated():
            return bool(look_at(connection, str(address)).relations)
    except NotFoundError:
        return False


def database_facts(address: ServerAddress) -> dict[str, Any]:
    """Return the place of the database, its size and its server, as JSON values."""
    facts: dict[str, Any] = {"path": str(address)}
    try:
        with closing(connect(address)) as connection, translated():
            facts["exists"] = bool(look_at(connection, str(address)).relations)
            version, size = connection.execute(_SIZE).fetchone()
    except NotFoundError:
        return {**facts, "exists": False}
    facts["server"] = f"PostgreSQL {version}"
    return {**facts, "bytes": size} if facts["exists"] else facts


def verify(address: ServerAddress) -> None:
    """Raise what `opening.ensure` would raise; nothing is written.

    An older database passes if an opening may migrate it.
    """
    place = str(address)
    with closing(connect(address)) as connection, translated():
        check_server(connection)
        existing = look_at(connection, place)
        if existing.marks is None:
            refuse_missing(place, existing.schema)
        if existing.marks.version >= VERSION:
            admit(connection, place, writing=False)
            return

    from sessiondb.engine.postgresql.migrations import check_openable

    check_openable(address)


def settings(connection: Connection) -> dict[str, Any]:
    """Return the settings that a session of the role has, under that name."""
    listed = ", ".join(f"current_setting('{name}')" for name in _SETTINGS)
    row = connection.execute(f"SELECT {listed}").fetchone()
    (seconds,) = connection.execute(_OLDEST_TRANSACTION).fetchone()
    values = dict(zip(_SETTINGS, row, strict=True))
    return {"settings": {**values, "oldest_transaction_seconds": seconds}}


def advice(report: dict[str, Any]) -> list[str]:
    """Return sentences on what to do about a report with `settings`."""
    values = report.get("settings", {})
    seconds = values.get("oldest_transaction_seconds", 0)
    sentences = {
        "the server runs without fsync: a power cut can damage the database": (
            values.get("fsync") == "off"
        ),
        "synchronous_commit is off for this role: an acknowledged write can be lost "
        "when the server ends": values.get("synchronous_commit") == "off",
        f"a transaction has been open for {seconds / 3600:.0f} hours: it delays "
        "notifications of changes, and keeps the server from reusing space": (
            seconds > _LONG_SECONDS
        ),
    }
    return [sentence for sentence, applies in sentences.items() if applies]
