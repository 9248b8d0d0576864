"""The alembic commands of a developer: `alembic check` and `alembic revision`.

Both compare the tables in `sessiondb.schema` with what the chain of migrations makes of
an empty database in memory. No file is opened: every file at a revision has the same
schema, so none of them can say more. A revision is numbered after its schema and gets
literal DDL, which does the same in ten years, whatever the tables look like by then.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from alembic.operations import Operations
from alembic.operations.ops import (
    DowngradeOps,
    ExecuteSQLOp,
    MigrateOperation,
    MigrationScript,
    ModifyTableOps,
    OpContainer,
    UpgradeOps,
)
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, create_engine

from sessiondb.engine.chain import Chain, Derived
from sessiondb.engine.sqlite.ddl import statements, tidy
from sessiondb.errors import InvalidInputError
from sessiondb.patterns import late_pattern
from sessiondb.schema.tables import metadata

if TYPE_CHECKING:
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

#: Older releases keep reading and writing a file that only gained these.
_ADDITIVE = ("CREATE TABLE", "CREATE INDEX", "ALTER TABLE", "CREATE VIEW")
_DERIVED = ("CREATE VIEW", "CREATE VIRTUAL", "CREATE TRIGGER")
_STORED = late_pattern(r"CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)")
_POSSIBLE = late_pattern(r"(CREATE|DROP) |ALTER TABLE \w+ (ADD|DROP|RENAME) ")
_HINT = (
    "build the table again by hand, as tests/later_releases.py does: "
    "`alembic revision -m MESSAGE`, without --autogenerate"
)

#: Kind and name of tables and indexes → their definition.
Stored = dict[tuple[str, str], str]


def run_revision(context: EnvironmentContext) -> None:
    """Fill in the revision that alembic makes or checks.

    Raises `InvalidInputError` if a table has to be built again (that DDL is written by
    hand, as it decides what becomes of the rows), and for views that no migration
    has: alembic compares tables only.
    """
    opts = context.get_context().opts
    scripts: ScriptDirectory = opts["script"]
    options = opts["revision_context"].command_args
    head = scripts.get_current_head()
    derived, known_derived = _derived_statements(), Chain(scripts).derived(head)
    if (
        options["autogenerate"]
        and options["message"] is None
        and derived != known_derived
    ):
        raise InvalidInputError(
            f"views, search tables or triggers differ from DERIVED of migration {head}",
            hint="run `alembic revision --autogenerate -m MESSAGE`",
        )

    with _head_schema(scripts) as connection:
        existing, wanted = _stored_schema(connection), _by_name(statements())

        def write_out(
            _: MigrationContext, __: Any, directives: list[MigrationScript]
        ) -> None:
            (script,) = directives
            script.rev_id = f"{int(head or 0) + 1:04}"
            written = (
                _write_literally(script, existing, wanted)
                if options["autogenerate"]
                else []
            )
            changes = (*written, *({*derived} ^ {*known_derived}))
            opts["template_args"].update(
                derived=""
                if derived == known_derived
                else f"\nDERIVED = {_tuple_source(derived)}\n",
                additive=bool(written)
                and all(sql.startswith(_ADDITIVE) for sql in changes),
            )

        context.configure(
            connection=connection,
            target_metadata=_without_indexes(),
            include_name=lambda _, kind, __: kind != "index",
            process_revision_directives=cast("Any", write_out),
        )
        context.run_migrations()


@contextmanager
def _head_schema(scripts: ScriptDirectory) -> Iterator[Connection]:
    """Yield a database in memory that the chain has made, at its head."""
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection)
            with Operations.context(context):
                for script in reversed(list(scripts.walk_revisions())):
                    script.module.upgrade()
            context.stamp(scripts, "head")
            yield connection
    finally:
        engine.dispose()


def _without_indexes() -> MetaData:
    """Return the tables alone: alembic compares neither DESC nor partial indexes."""
    bare = MetaData()
    for table in metadata.sorted_tables:
        table.to_metadata(bare).indexes.clear()
    return bare


def _stored_schema(connection: Connection) -> Stored:
    rows = connection.exec_driver_sql(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"
    )
    return _by_name(sql for (sql,) in rows)


def _by_name(definitions: Iterable[str]) -> Stored:
    return {(m[1], m[2]): sql for sql in definitions if (m := _STORED.match(sql))}


def _derived_statements() -> Derived:
    return tuple(sql for sql in statements() if sql.startswith(_DERIVED))


def _write_literally(
    script: MigrationScript, existing: Stored, wanted: Stored
) -> list[str]:
    """Replace what alembic found by the SQL that does it.

    Return that of the upgrade.
    """
    assert script.upgrade_ops is not None
    assert script.downgrade_ops is not None
    statements_up = _literal_sql(script.upgrade_ops) + _index_changes(existing, wanted)
    back = _index_changes(wanted, existing) + _literal_sql(script.downgrade_ops)
    if not statements_up:
        _check_same(existing, wanted)
    script.upgrade_ops = UpgradeOps(cast("Any", list(map(ExecuteSQLOp, statements_up))))
    script.downgrade_ops = DowngradeOps(cast("Any", list(map(ExecuteSQLOp, back))))

    return statements_up


def _index_changes(existing: Stored, wanted: Stored) -> list[str]:
    changes: list[str] = []
    for kind, name in existing.keys() | wanted.keys():
        old, new = existing.get((kind, name), ""), wanted.get((kind, name), "")
        if kind == "INDEX" and tidy(old) != tidy(new):
            changes += filter(None, (old and f"DROP INDEX {name}", new))

    return changes


def _check_same(existing: Stored, wanted: Stored) -> None:
    """Refuse what alembic overlooks: constraints, defaults, STRICT, the order."""
    for _, name in sorted(
        key for key in wanted if tidy(existing[key]) != tidy(wanted[key])
    ):
        raise InvalidInputError(
            f"{name} differs from what the migrations make, in a way that SQLite "
            "cannot alter",
            hint=_HINT,
        )


def _flat_operations(container: OpContainer) -> Iterator[MigrateOperation]:
    for operation in container.ops:
        if isinstance(operation, ModifyTableOps):
            yield from _flat_operations(operation)
        else:
            yield operation


def _literal_sql(container: OpContainer) -> list[str]:
    """Return operations as the SQL that they execute."""
    written: list[str] = []
    for operation in _flat_operations(container):
        buffer = io.StringIO()
        context = MigrationContext.configure(
            dialect_name="sqlite", opts={"as_sql": True, "output_buffer": buffer}
        )
        try:
            Operations(context).invoke(operation)
        except NotImplementedError:
            raise _unalterable_error(operation) from None

        # alembic ends each statement with a semicolon and a blank line.
        sql_texts = [
            sql.strip() for sql in buffer.getvalue().split(";\n\n") if sql.strip()
        ]
        if not all(map(_POSSIBLE.match, sql_texts)):
            raise _unalterable_error(operation)
        written += sql_texts

    return written


def _unalterable_error(operation: MigrateOperation) -> InvalidInputError:
    return InvalidInputError(
        f"SQLite cannot alter this: {operation.to_diff_tuple()}", hint=_HINT
    )


def _tuple_source(values: Iterable[str]) -> str:
    return "(\n" + "".join(f"    {value!r},\n" for value in values) + ")"
