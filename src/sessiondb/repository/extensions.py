"""Reads of the tables of extensions: see `schema.extensions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sessiondb.effects.extension import bound
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.errors import SchemaVersionError
from sessiondb.repository import Read, Rows, engine_in_use
from sessiondb.schema.extensions import refuse_writing

if TYPE_CHECKING:
    from sqlalchemy.sql.selectable import SelectBase

_VERSION = Statement("repository.extensions.VERSION")
_VERSIONS = Statement("repository.extensions.VERSIONS")


def select(statement: SelectBase, parameters: Mapping[str, Any]) -> Read[Rows]:
    """Return the rows of a program's own statement.

    Raises `InvalidInputError` and `SchemaVersionError`.
    """
    refuse_writing(statement)
    written, values = bound((yield from engine_in_use()), statement, parameters)
    wanted = {item.name: item.version for item in written.extensions}
    # A statement of the tables of every file needs none.
    rows: Rows = []
    if len(wanted) == 1:
        (name,) = wanted
        rows = yield _VERSION, {"name": name}
    elif wanted:
        rows = yield _VERSIONS, {"names": as_list(wanted)}
    if len(rows) < len(wanted):
        return []
    for name, version in rows:
        if version < wanted[name]:
            raise SchemaVersionError(
                f"the tables of {name} are of version {version}, before {wanted[name]}",
                hint="complete them with extend(…), or by a write to one",
            )
    return (yield ComposedStatement(written.text), values)
