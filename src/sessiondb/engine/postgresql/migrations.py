"""Migrations: alembic runs all that are pending, in one transaction.

They are literal DDL in ``migrations/postgresql``, a chain beside that of SQLite, with
the same declarations (`engine.chain`). The server undoes all of them if one fails, so
no backup is made.

`sessiondb migrate` calls `upgrade`, the opening of a database `upgrade_on_open`, and
the alembic command `run_env`; all end in ``_run_steps``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.chain import Chain, configuration, folder
from sessiondb.engine.postgresql.admission import (
    LOCK,
    admit,
    look_at,
    refuse_missing,
)
from sessiondb.engine.postgresql.connecting import connect, connect_plainly
from sessiondb.engine.postgresql.connection import lock_timeout
from sessiondb.engine.postgresql.failures import translate, translated
from sessiondb.engine.schema_version import migrate_hint
from sessiondb.engine.upkeep import Pending
from sessiondb.errors import InvalidInputError, SchemaVersionError, SessionDBError

if TYPE_CHECKING:
    from alembic.runtime.environment import EnvironmentContext

#: alembic keeps its context in a global.
_alembic = threading.Lock()


def home() -> Path:
    """Return the folder of the migrations of this engine."""
    return folder() / "postgresql"


def pending(
    address: ServerAddress, *, versions: Iterable[Path] = (), busy_timeout: float = 10.0
) -> list[Pending]:
    """Return the pending migrations of a database, in order; ``[]`` if it is current.

    Also for one of a newer release that this release may write. *versions* are further
    folders of migrations. Raises `NotFoundError`, `NotADatabaseError`, and
    `SchemaVersionError` for a schema that this release neither migrates nor may write.
    """
    place = str(address)
    chain = Chain.of(versions, home=home())
    with (
        closing(connect(address, busy_timeout=busy_timeout)) as connection,
        translated(),
    ):
        existing = look_at(connection, place)
        if existing.marks is None:
            refuse_missing(place, existing.schema)
        revision = existing.marks.revision
        if chain.knows(revision):
            return chain.after(revision)
        admit(connection, place, writing=True)
        return []


def upgrade(
    address: ServerAddress,
    target: str = "head",
    *,
    versions: Iterable[Path] = (),
    busy_timeout: float = 10.0,
) -> None:
    """Migrate a database up to the revision *target*; tables that are missing are made.

    *busy_timeout* is the wait for each lock, in seconds. Raises `NotADatabaseError`,
    `SchemaVersionError` (too new), `BusyError`, `InvalidInputError` (no such target)
    and the errors of the server; each leaves the database as it was.
    """
    versions = tuple(versions)
    config = configuration(versions, home=home())
    try:
        with _alembic, _changing_tables(address, busy_timeout) as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, target)
            _state_oldest_releases(connection, Chain.of(versions, home=home()))
    except CommandError as error:
        raise InvalidInputError(f"{address}: {error}") from error


def upgrade_on_open(address: ServerAddress, busy_timeout: float) -> None:
    """Run the pending migrations if all of them are additive.

    Raises `SchemaVersionError` if the user has to run them, and what `upgrade` does.
    """
    check_openable(address, busy_timeout)
    upgrade(address, busy_timeout=busy_timeout)


def check_openable(address: ServerAddress, busy_timeout: float = 10.0) -> None:
    """Raise `SchemaVersionError` if the user has to migrate the database."""
    steps = pending(address, busy_timeout=busy_timeout)
    waiting = [step for step in steps if not step.additive]
    if waiting:
        raise SchemaVersionError(
            f"{address} needs a migration: {waiting[0].description}",
            hint=f"make a backup with pg_dump; then {migrate_hint(str(address))}",
        )


def run_env(context: EnvironmentContext) -> None:
    """Run the alembic environment, for ``migrations/postgresql/env.py``.

    The configuration carries an open ``connection`` (`upgrade`), or the alembic command
    runs and gets the URL of a database by ``-x url=URL``.
    """
    open_connection = context.config.attributes.get("connection")
    if open_connection is not None:
        _run_steps(context, open_connection)
        return

    url = context.get_x_argument(as_dictionary=True).get("url")
    if url is None or context.is_offline_mode():
        raise CommandError("name a database of a server: -x url=postgresql://HOST/NAME")
    try:
        with _changing_tables(ServerAddress(url), 10.0) as connection:
            _run_steps(context, connection)
    except SessionDBError as error:
        raise CommandError(str(error)) from error


def _run_steps(context: EnvironmentContext, connection: Connection) -> None:
    context.configure(connection=connection)
    context.run_migrations()


@contextmanager
def _changing_tables(
    address: ServerAddress, busy_timeout: float
) -> Iterator[Connection]:
    """Yield a connection in a transaction that alone changes tables.

    It is committed at the end, or everything is undone.
    """
    engine = create_engine(
        "postgresql+psycopg://",
        creator=partial(connect_plainly, address),
        poolclass=NullPool,
    )
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(lock_timeout(busy_timeout))
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            yield connection
    except DBAPIError as error:
        if error.orig is None:
            raise
        raise translate(error.orig) from error


def _state_oldest_releases(connection: Connection, chain: Chain) -> None:
    revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
    for key, release in chain.oldest(revision.scalar_one()).items():
        statement = "UPDATE meta SET value = %(release)s WHERE key = %(key)s"
        connection.exec_driver_sql(statement, {"key": key, "release": release})
