"""Writes to the tables of extensions: see `schema.extensions`.

The tables are made by the first of them, in its transaction. A statement writes for
the sessions that its column or parameter ``session_id`` names: as an append does, it
counts as a use of them, and needs their lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.arguments import one_of
from sessiondb.dataclass import dataclass, field
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Engine
from sessiondb.engine.sql import insert_new_text, insert_text, upsert_text
from sessiondb.errors import ConflictError, InvalidInputError, abridged
from sessiondb.model import bounds
from sessiondb.model.handles import session_key
from sessiondb.words import count

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.sql.dml import UpdateBase

    from sessiondb.schema.extensions import CompiledStatement, Extension

#: Ways to treat a row whose key is taken.
CONFLICTS = ("error", "replace", "keep")


@dataclass(slots=True, eq=False)
class Extend:
    """Make the tables of an extension, or complete those of an earlier version."""

    verb = "extend"
    extension: Extension

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        complete_tables(tx, self.extension)


@dataclass(slots=True, eq=False)
class InsertRows:
    """Insert rows; ``rowcount`` is how many were inserted or replaced."""

    verb = "insert_rows"
    extension: Extension
    text: str
    #: Inserts what an earlier attempt of the unit did not; the same without a key.
    text_of_retry: str
    rows: list[list[Any]]
    #: The place of ``session_id`` in a row.
    session_at: int | None
    rowcount: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`, `ConflictError` and `LeaseHeldError`."""
        complete_tables(tx, self.extension)
        if not self.rows:
            return
        rows, at = self.rows, self.session_at
        if at is not None:
            use_sessions(tx, [row[at] for row in rows])
            rows = [
                [*row[:at], _name_here(tx, row[at]), *row[at + 1 :]] for row in rows
            ]
        text = self.text_of_retry if tx.retried else self.text
        self.rowcount = tx.connection.executemany(text, rows).rowcount


@dataclass(slots=True, eq=False)
class Execute:
    """Run a statement of an extension; ``rowcount`` is how many rows it changed."""

    verb = "execute"
    extension: Extension
    text: str
    parameters: dict[str, Any]
    expect_rows: int | None
    rowcount: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`, `ConflictError` and `LeaseHeldError`."""
        complete_tables(tx, self.extension)
        parameters = self.parameters
        if "session_id" in parameters:
            use_sessions(tx, [parameters["session_id"]])
            session_id = _name_here(tx, parameters["session_id"])
            parameters = {**parameters, "session_id": session_id}
        self.rowcount = tx.connection.execute(self.text, parameters).rowcount
        if self.expect_rows not in (None, self.rowcount):
            raise ConflictError(
                f"the statement changed {count(self.rowcount, 'row')}, "
                f"expected {self.expect_rows:,}"
            )


def complete_tables(tx: Transaction, extension: Extension) -> None:
    """Make the tables of an extension, unless they are there."""
    carryover = tx.carryover
    if extension in carryover.extensions:
        return
    # Those that this transaction makes go with it, or with their unit.
    if tx.engine.extensions.put(tx.connection, extension, tx.now):
        carryover.extension_tables = None
    else:
        carryover.extensions.add(extension)


def remove_extension_rows(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Remove the rows that programs added to sessions."""
    tables = tx.carryover.extension_tables
    if tables is None:
        listed = tx.engine.extensions.listed(tx.connection)
        tables = [table for table in listed if table.is_of_sessions]
        tx.carryover.extension_tables = tables
    tx.engine.extensions.remove_rows(tx.connection, tables, session_ids)


def use_sessions(tx: Transaction, session_ids: Iterable[str | None]) -> None:
    """Record the use of sessions; raises `NotFoundError` and `LeaseHeldError`."""
    for session_id in dict.fromkeys(session_ids):
        name = _name_here(tx, session_id)
        if name is not None:
            tx.used(tx.session(name))


def _name_here(tx: Transaction, session_id: str | None) -> str | None:
    """Return the id of a session: `open_session` may have found another one."""
    return None if session_id is None else tx.opened.get(session_id, session_id)


# SQLAlchemy is loaded inside of these: most processes have no extension.


def extending(extension: Extension) -> Extend:
    """Return the effect of `Unit.extend`; raises `InvalidInputError`."""
    from sessiondb.schema.extensions import Extension

    if not isinstance(extension, Extension):
        raise InvalidInputError(
            f"an extension is an Extension(…), not {abridged(extension)}"
        )
    return Extend(extension)


def insertion(
    table: Table, rows: Iterable[Mapping[str, Any]], on_conflict: str
) -> InsertRows:
    """Return the effect of `Unit.insert_rows`; raises `InvalidInputError`."""
    from sessiondb.schema import extensions

    extension = extensions.extension_of(table)
    one_of(on_conflict, CONFLICTS, "on_conflict")
    key = extensions.key_of(table, required=on_conflict != "error")

    columns: tuple[str, ...] = ()
    values: list[list[Any]] = []
    for row in rows:
        columns = columns or extensions.row_columns(table, row)
        values.append(extensions.row_values(table, row, columns))

    session_at = columns.index("session_id") if "session_id" in columns else None
    if session_at is not None:
        for row_of_values in values:
            row_of_values[session_at] = _session_id(row_of_values[session_at])

    text = insert_text(table.name, columns)
    text_of_retry = insert_new_text(table.name, columns, key) if key else text
    if on_conflict == "keep":
        text = text_of_retry
    elif on_conflict == "replace":
        text = text_of_retry = upsert_text(table.name, columns, key)
    return InsertRows(extension, text, text_of_retry, values, session_at)


def execution(
    engine: Engine,
    statement: UpdateBase,
    parameters: Mapping[str, Any],
    expect_rows: int | None,
) -> Execute:
    """Return the effect of `Unit.execute`; raises `InvalidInputError`."""
    from sessiondb.schema.extensions import written_extension

    extension = written_extension(statement)
    written, values = bound(engine, statement, parameters)
    expected = bounds.integer(expect_rows, "expect_rows", least=0)
    return Execute(extension, written.text, values, expected)


def bound(
    engine: Engine, statement: Any, parameters: Mapping[str, Any]
) -> tuple[CompiledStatement, dict[str, Any]]:
    """Return a program's statement as text, and the values that it takes.

    Raises `InvalidInputError`, also for a statement that cannot be written.
    """
    from sessiondb.schema.extensions import compiled, parameter_values

    written = compiled(statement, engine.dialect.compile_with_constants)
    values = parameter_values(written.parameters, parameters)
    if "session_id" in values:
        values["session_id"] = _session_id(values["session_id"])
    return written, written.constants | values


def _session_id(session: Any) -> str | None:
    return None if session is None else session_key(session, "session_id")
