"""Migrations: alembic runs all of them in one transaction, on a separate connection.

Foreign keys are off before the transaction begins (dropping a table would
otherwise delete its children by cascade) and verified before it is committed;
`MigrationGuard` verifies everything else. One lock between processes covers the
complete operation. Any failure, even of the power, leaves the file as it was.

`sessiondb migrate` calls `upgrade`, the opening of a file `upgrade_on_open`, and the
alembic command `run_env`; all end in ``_run_steps``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from sessiondb.engine import disk
from sessiondb.engine.chain import Chain, configuration
from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.admission import EMPTY, admit
from sessiondb.engine.sqlite.connection import SQLiteConnection, connect
from sessiondb.engine.sqlite.failures import translate, translated
from sessiondb.engine.sqlite.fingerprint import check_derived, check_schema
from sessiondb.engine.sqlite.migration_guard import (
    MigrationGuard,
    check_revision,
    recognise,
)
from sessiondb.engine.sqlite.revising import run_revision
from sessiondb.engine.sqlite.version import check_newer, to_migrate
from sessiondb.engine.upkeep import Pending
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    SchemaVersionError,
    SessionDBError,
)
from sessiondb.schema.version import VERSION

if TYPE_CHECKING:
    from alembic.runtime.environment import EnvironmentContext

_PRAGMAS = (
    "PRAGMA foreign_keys=OFF",
    # Foreign keys and views keep the old name of a table that is renamed.
    "PRAGMA legacy_alter_table=ON",
    # Only writers checkpoint.
    "PRAGMA wal_autocheckpoint=0",
)
#: alembic keeps its context in a global.
_alembic = threading.Lock()


def current(path: Path, *, busy_timeout: float = 10.0) -> str | None:
    """Return the revision of the file at *path*; None for an empty one.

    Raises `NotFoundError`, `NotADatabaseError`.
    """
    with _reading_connection(path, busy_timeout) as connection:
        return recognise(connection, path)[0]


def pending(
    path: Path, *, versions: Iterable[Path] = (), busy_timeout: float = 10.0
) -> list[Pending]:
    """Return the pending migrations of a file, in order; ``[]`` if it is current.

    Also for a file of a newer release that this release may write. *versions* are
    further folders of migrations. Raises `NotFoundError`, `NotADatabaseError`,
    `SchemaVersionError` for a schema that no migration of this release begins with or
    leads to, and `UntrustedDatabaseError`.
    """
    chain = Chain.of(versions)
    with _reading_connection(path, busy_timeout) as connection:
        revision, version = recognise(connection, path)
        if revision is None and version == EMPTY:
            return chain.after(None)
        if not chain.knows(revision):
            check_newer(connection, path, version, writing=True)
            admit(connection, path, version)
            return []

        check_revision(chain, path, revision, version)
        waiting = chain.after(revision)
        check_derived(connection, path, chain.derived(revision))
        # Only the schema of this release is known in every detail.
        if version == VERSION:
            check_schema(connection, path, version)
        return waiting


def upgrade(
    path: Path,
    target: str = "head",
    *,
    versions: Iterable[Path] = (),
    busy_timeout: float = 10.0,
    backups: Path | None = None,
) -> Path | None:
    """Migrate the file at *path* up to the revision *target*; a missing file is made.

    A file that is not empty is copied into the folder *backups* (default: its own)
    before a migration that is not additive. Return that copy, None if none was
    needed. *busy_timeout* is in seconds. Raises
    `NotADatabaseError`, `SchemaVersionError` (too new), `BusyError`,
    `ConflictError` (rows would have been lost), `InvalidInputError` (no such
    target) and the errors of the storage; each leaves the file as it was.
    """
    versions = tuple(versions)
    files.prepare(path)

    with files.creation_lock(path, busy_timeout):
        if not pending(path, versions=versions, busy_timeout=busy_timeout):
            return None
        return _drive_alembic(
            command.upgrade, path, target,
            versions=versions, busy_timeout=busy_timeout, backups=backups,
        )  # fmt: skip


def downgrade(
    path: Path,
    target: str,
    *,
    versions: Iterable[Path] = (),
    busy_timeout: float = 10.0,
    backups: Path | None = None,
) -> Path | None:
    """Migrate the file at *path* down to *target*.

    That is a revision, ``base``, or ``-1`` for one step.
    Raises what `upgrade` does, `NotFoundError`, and `ConflictError` if
    sessions would be lost.
    """
    if disk.identity(path) is None:
        raise NotFoundError(f"no database at {path}")
    with files.creation_lock(path, busy_timeout):
        return _drive_alembic(
            command.downgrade, path, target,
            versions=versions, busy_timeout=busy_timeout, backups=backups,
        )  # fmt: skip


def upgrade_on_open(path: Path, busy_timeout: float) -> None:
    """Run the pending migrations if all of them are additive.

    The caller holds `files.creation_lock`.
    Raises `SchemaVersionError` if the user has to run them, and what `upgrade` does.
    """
    check_openable(path, busy_timeout)
    _drive_alembic(command.upgrade, path, "head", busy_timeout=busy_timeout)


def check_openable(path: Path, busy_timeout: float) -> None:
    """Raise `SchemaVersionError` if the user has to migrate the file.

    Raises what `pending` does.
    """
    waiting = [p for p in pending(path, busy_timeout=busy_timeout) if not p.additive]
    if waiting and current(path, busy_timeout=busy_timeout) is not None:
        raise SchemaVersionError(
            f"{path} needs a migration: {waiting[0].description}", hint=to_migrate(path)
        )


def run_env(context: EnvironmentContext) -> None:
    """Run the alembic environment, for ``migrations/env.py``.

    The attributes of the configuration hold a ``connection`` and a ``path``
    (`upgrade` and the others), or the alembic command runs and they hold a function
    ``path``, called only by commands that need a file, and a folder ``backups``.
    That command gets its own kind of error, which it prints as one line.
    """
    attributes = context.config.attributes
    if "connection" in attributes:
        _run_steps(context, attributes["connection"])
        return

    try:
        context.configure(dialect_name="sqlite")
        if "revision_context" in context.get_context().opts:
            run_revision(context)
            return
        with _connection_of_command(context) as connection:
            _run_steps(context, connection)
        if backup := attributes.get("backup"):
            context.config.print_stdout("backup: %s", backup)
    except SessionDBError as error:
        lines = filter(None, (str(error), error.hint))
        raise CommandError("\n  ".join(lines)) from error


@contextmanager
def _connection_of_command(context: EnvironmentContext) -> Iterator[Connection]:
    if context.is_offline_mode():
        raise InvalidInputError(
            "migrations are not a script: each step counts rows, checks foreign keys "
            "and rebuilds search in the file",
            hint="to see the effect of one, run it on a copy: `scripts/migrate COPY`",
        )

    attributes = context.config.attributes
    path = attributes["path"] = attributes["path"]()
    if path is None:
        raise InvalidInputError(":memory: holds nothing to migrate", hint="name a file")
    if context.get_context().opts.get("dont_mutate") and disk.identity(path) is None:
        raise NotFoundError(f"no database at {path}")
    files.prepare(path)

    with (
        files.creation_lock(path, timeout=10.0),
        _writing_connection(path, 10.0) as connection,
    ):
        yield connection


def _drive_alembic(
    run: Callable[[Config, str], None],
    path: Path,
    target: str,
    *,
    versions: Iterable[Path] = (),
    busy_timeout: float,
    backups: Path | None = None,
) -> Path | None:
    config = configuration(versions)
    try:
        with _alembic, _writing_connection(path, busy_timeout) as connection:
            config.attributes.update(connection=connection, path=path, backups=backups)
            run(config, target)
    except CommandError as error:
        raise InvalidInputError(f"{path}: {error}") from error

    backup: Path | None = config.attributes.get("backup")
    return backup


def _run_steps(context: EnvironmentContext, connection: Connection) -> None:
    """Run the steps that alembic plans, with a `MigrationGuard` around them."""
    context.configure(connection=connection)
    opts = context.get_context().opts
    attributes = context.config.attributes
    raw: Any = connection.connection.driver_connection
    guard = MigrationGuard(
        raw, Chain(opts["script"]), attributes["path"], attributes.get("backups")
    )
    planned, steps = opts["fn"], []

    def plan(revision: Any, migration: MigrationContext) -> list[RevisionStep]:
        steps.extend(planned(revision, migration))
        if not all(isinstance(step, RevisionStep) for step in steps):
            raise InvalidInputError(
                "the revision of a file is written by its migrations only"
            )
        if steps:
            guard.begin(steps)

        return steps

    context.configure(connection=connection, fn=plan)

    try:
        context.run_migrations()
        if steps:
            guard.end()
    except BaseException:
        guard.forget_backup()
        raise

    attributes["backup"] = guard.backup


@contextmanager
def _reading_connection(path: Path, busy_timeout: float) -> Iterator[SQLiteConnection]:
    if disk.identity(path) is None:
        raise NotFoundError(f"no database at {path}")
    with (
        closing(connect(path, mode="reader", busy_timeout=busy_timeout)) as connection,
        translated(),
    ):
        yield connection


@contextmanager
def _writing_connection(path: Path, busy_timeout: float) -> Iterator[Connection]:
    """Yield a connection that holds the write lock.

    Commit at the end, or undo everything.
    """
    with closing(connect(path, busy_timeout=busy_timeout)) as raw, translated():
        try:
            recognise(raw, path)
            if not disk.network_filesystem(path):
                raw.execute("PRAGMA journal_mode=WAL")
            for pragma in _PRAGMAS:
                raw.execute(pragma)
            engine = create_engine("sqlite://", creator=lambda: raw, poolclass=NullPool)
            with engine.connect() as connection, connection.begin():
                raw.execute("BEGIN IMMEDIATE")
                yield connection
        except DBAPIError as error:
            raise translate(error.orig) from error  # type: ignore[arg-type]
