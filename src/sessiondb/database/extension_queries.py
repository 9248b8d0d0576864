"""The read of tables of extensions, see `queries`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sessiondb.arguments import checks_arguments
from sessiondb.loading import load
from sessiondb.repository import Read, Rows

if TYPE_CHECKING:
    from sqlalchemy.sql.selectable import SelectBase


@checks_arguments
class ExtensionQueries:
    """Reads of tables of a program's own."""

    def select(
        self, statement: SelectBase, parameters: Mapping[str, Any] | None = None
    ) -> Read[Rows]:
        """Return the rows of a ``select()`` of SQLAlchemy, as tuples.

        It may join tables of extensions with those of `docs/FORMAT.md`. While nothing
        was written to a table of an extension, there are no rows. The parameter
        ``session_id`` names a session by its id or handle. Raises `InvalidInputError`,
        and `SchemaVersionError` if the tables are of an earlier version.
        """
        load("sessiondb.repository.extensions")
        from sessiondb.repository.extensions import select

        return (yield from select(statement, parameters or {}))
