"""The verbs of a unit for the tables of extensions, see `unit` and `extension`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sessiondb.arguments import checks_arguments
from sessiondb.effects.extension import (
    Execute,
    Extend,
    InsertRows,
    execution,
    extending,
    insertion,
)
from sessiondb.effects.queue import Queue

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.sql.dml import UpdateBase

    from sessiondb.schema.extensions import Extension


@checks_arguments
class ExtensionVerbs(Queue):
    """The verbs that write tables of a program's own."""

    def extend(self, extension: Extension) -> Extend:
        """Make the tables of an extension now, or complete those of its last version.

        The first write to one of them does it as well.
        """
        effect = extending(extension)
        self.add(effect)
        return effect

    def insert_rows(
        self,
        table: Table,
        rows: Iterable[Mapping[str, Any]],
        *,
        on_conflict: str = "error",
    ) -> InsertRows:
        """Insert rows into a table of an extension; ``.rowcount`` after the commit.

        They are mappings with the same columns each; ``session_id`` may be a handle. A
        row whose key is taken is a `ConflictError`; with *on_conflict* ``replace`` it
        takes the place of the other one, with ``keep`` it is left out. For these, and
        to be safe to retry, the table has a single UniqueConstraint.
        """
        effect = insertion(table, rows, on_conflict)
        self.add(effect)
        return effect

    def execute(
        self,
        statement: UpdateBase,
        parameters: Mapping[str, Any] | None = None,
        *,
        expect_rows: int | None = None,
    ) -> Execute:
        """Run a statement on a table of an extension; ``.rowcount`` after the commit.

        It is an ``update()``, a ``delete()`` or an ``insert().from_select()`` of
        SQLAlchemy. The parameter ``session_id`` names a session, also by its handle,
        which the statement then counts as used. With *expect_rows* it is a condition:
        if it changes another number of rows, the unit is a `ConflictError`.
        """
        effect = execution(self.engine, statement, parameters or {}, expect_rows)
        self.add(effect)
        return effect
