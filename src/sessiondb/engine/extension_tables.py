"""The interface of the tables that programs added to a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sessiondb.engine.base import Connection

if TYPE_CHECKING:
    from sessiondb.schema.extensions import Extension


class ExtensionTable(NamedTuple):
    """A table that a program added, as a file has it: see `schema.extensions`."""

    extension: str
    name: str
    #: All but its row number, in their order.
    columns: tuple[str, ...]

    @property
    def is_of_sessions(self) -> bool:
        """Whether its rows belong to sessions."""
        return "session_id" in self.columns


class ExtensionTables(Protocol):
    """The tables of extensions in a database."""

    #: The text of the statement whose rows `tables_of` takes.
    declarations: str

    def tables_of(self, rows: Iterable[tuple[Any, ...]]) -> list[ExtensionTable]:
        """Return the tables of all extensions, ``[]`` in most databases."""

    def put(self, connection: Connection, extension: Extension, now: int) -> bool:
        """Make the tables of *extension*, or complete those of an earlier version.

        Returns whether something was missing. Raises `InvalidInputError` for a column
        that cannot be added.
        """

    def listed(self, connection: Connection) -> list[ExtensionTable]:
        """Return what `tables_of` does."""

    def missing(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (extension, table) of each table that was declared and is not there.

        A shell dropped it, or its name is none that a table of an extension has.
        """

    def remove_rows(
        self,
        connection: Connection,
        tables: Iterable[ExtensionTable],
        session_ids: Sequence[str],
    ) -> None:
        """Remove the rows of sessions from tables."""
