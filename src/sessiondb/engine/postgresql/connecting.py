"""Opening a connection, and the reason why one is refused."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import TupleRow

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.base import Mode
from sessiondb.engine.postgresql.connection import PostgreSQLConnection
from sessiondb.engine.postgresql.failures import message_of, translate
from sessiondb.engine.postgresql.parameters import (
    ConnectionParameters,
    parameters_of,
)
from sessiondb.engine.postgresql.values import ADAPTERS
from sessiondb.errors import (
    AccessError,
    BusyError,
    NotFoundError,
    SessionDBError,
    UnavailableError,
)

#: A database that every server has.
_OF_EVERY_SERVER = "postgres"
_DATABASE = (
    b"SELECT has_database_privilege(oid, 'CONNECT') FROM pg_database WHERE datname = %s"
)


def connect(
    address: ServerAddress,
    *,
    mode: Mode = "rw",
    busy_timeout: float = 10.0,
    durability: str = "full",
) -> PostgreSQLConnection:
    """Open a database of a server.

    *busy_timeout* is in seconds, for a lock. Raises our errors: `NotFoundError` if
    there is no such database, `AccessError` and `BusyError` if the server refuses the
    connection for good or for now, `UnavailableError` if it cannot be reached,
    `InvalidInputError` for a URL that libpq does not read.
    """
    return PostgreSQLConnection(
        address,
        connect_driver(address, mode=mode),
        busy_timeout=busy_timeout,
        durability=durability,
        prepares=not parameters_of(address).has_pooler,
    )


def connect_driver(
    address: ServerAddress, *, mode: Mode = "rw"
) -> psycopg.Connection[TupleRow]:
    """Open a database as a connection of psycopg's in autocommit, with our values.

    Raises what `connect` does.
    """
    parameters = parameters_of(address)
    return _connect_driver(
        address,
        parameters,
        autocommit=True,
        context=ADAPTERS,
        **parameters.of_session(may_write=mode == "rw"),
    )


def connect_plainly(address: ServerAddress) -> psycopg.Connection[TupleRow]:
    """Open a database as psycopg does, for SQLAlchemy; raises what `connect` does."""
    return _connect_driver(address, parameters_of(address))


def _connect_driver(
    address: ServerAddress, parameters: ConnectionParameters, **options: Any
) -> psycopg.Connection[TupleRow]:
    try:
        return _attempt(address, parameters, options)
    except BusyError:
        # A server that had not started yet, and has by now, looks like a busy one.
        return _attempt(address, parameters, options)


def _attempt(
    address: ServerAddress, parameters: ConnectionParameters, options: dict[str, Any]
) -> psycopg.Connection[TupleRow]:
    try:
        return psycopg.connect(**parameters.by_name(**options))
    except psycopg.OperationalError as error:
        raise _refusal(address, parameters, error) from error
    except psycopg.Error as error:
        raise translate(error) from error


def _refusal(
    address: ServerAddress,
    parameters: ConnectionParameters,
    error: psycopg.OperationalError,
) -> SessionDBError:
    """Return our error for a connection that could not be opened.

    libpq has no SQLSTATE for it. So this asks another database of the server whether it
    has this one. (`PQping` would tell more, but psycopg keeps the interpreter's lock
    meanwhile.)
    """
    text = f"{address} cannot be opened: {message_of(error)}"
    attempt = error.pgconn
    away = UnavailableError(
        text,
        hint="check that the server runs, can be reached, has a connection left and "
        "admits this role",
    )
    if attempt is None:
        return away

    name = attempt.db.decode()
    try:
        with psycopg.connect(**parameters.by_name(dbname=_OF_EVERY_SERVER)) as other:
            row = other.execute(_DATABASE, [name]).fetchone()
    except psycopg.Error:
        if attempt.needs_password or attempt.used_password:
            return AccessError(text, hint="check the role and its password")
        return away

    if row is None:
        return NotFoundError(
            f"the server has no database {name}: {address}",
            hint=f"create it: `createdb {name}`",
        )
    if not row[0]:
        return AccessError(text, hint="ask the owner of the database for access")
    return BusyError(text, hint="try again, or allow more connections")
