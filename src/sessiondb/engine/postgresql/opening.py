"""Making and migrating the tables of a database before its first use.

Of two processes that do so at once, one waits for the other at a lock of the database.
Whatever is done is one transaction: the server undoes it if it fails.
"""

from __future__ import annotations

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.postgresql import ddl
from sessiondb.engine.postgresql.admission import (
    LOCK,
    admit,
    check_server,
    look_at,
    refuse_missing,
)
from sessiondb.engine.postgresql.connecting import connect
from sessiondb.engine.postgresql.connection import PostgreSQLConnection
from sessiondb.engine.postgresql.failures import translated
from sessiondb.schema.version import HEAD, VERSION

_STAMP = "INSERT INTO alembic_version (version_num) VALUES (?)"


def ensure(
    address: ServerAddress,
    *,
    create: bool = True,
    read_only: bool = False,
    busy_timeout: float = 10.0,
) -> PostgreSQLConnection:
    """Make sure that our current, complete tables are there, and return a connection.

    They are made or migrated if that is permitted. Raises `NotFoundError` (missing and
    not to be made), `NotADatabaseError` (tables with our names are of another program,
    or some are missing), `SchemaVersionError`, `UnsupportedError` (an old server,
    another encoding), and what `connect` raises.
    """
    may_write = create and not read_only
    connection = connect(address, busy_timeout=busy_timeout)
    try:
        with translated():
            check_server(connection)
            existing = look_at(connection, str(address))
            if existing.marks is None and may_write:
                _make(connection, str(address), busy_timeout)
            elif existing.marks is None:
                refuse_missing(str(address), existing.schema)
            elif existing.marks.version < VERSION and not read_only:
                from sessiondb.engine.postgresql.migrations import upgrade_on_open

                upgrade_on_open(address, busy_timeout)
            admit(connection, str(address), writing=False)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: PostgreSQLConnection, place: str, busy_timeout: float) -> None:
    """Make all tables, unless another process did so in the meantime."""
    connection.begin(busy_timeout)
    try:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        if look_at(connection, place).marks is None:
            for statement in ddl.statements():
                connection.execute(statement)
            connection.execute(_STAMP, (HEAD,))
        connection.commit()
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
