"""Values by namespace and key: what a shell may have written, and its repair.

A namespace has one spelling, by which it is found. Another spelling of the same names
is put right; a text that is not a list of names is beyond repair.
"""

from __future__ import annotations

import json

from sessiondb.engine.base import Connection
from sessiondb.errors import InvalidInputError
from sessiondb.model.values import names_in, namespace_names, namespace_text


def misspelt_namespaces(connection: Connection) -> dict[str, str | None]:
    """Return the right spelling of each namespace that has another one.

    None for a text that names none.
    """
    spellings: dict[str, str | None] = {}
    for (text,) in connection.execute("SELECT DISTINCT namespace FROM key_value"):
        try:
            names_in(text)
        except (ValueError, TypeError, RecursionError):
            spellings[text] = _right_spelling(text)
    return spellings


def _right_spelling(text: str) -> str | None:
    try:
        names = json.loads(text)
        return namespace_text(namespace_names(names)) if type(names) is list else None
    except (InvalidInputError, ValueError, TypeError, RecursionError):
        return None


_TWIN = (
    "EXISTS (SELECT 1 FROM key_value AS twin WHERE twin.namespace = {} "
    "AND twin.key = key_value.key {})"
)
_IS_LATER = "AND twin.time_updated >= key_value.time_updated"
#: The statements that give a namespace ``:text`` its ``:right`` spelling. Of two values
#: that become one the later update stays: after the first statement that is the one
#: under ``:text``.
RESPELL = (
    "DELETE FROM key_value WHERE namespace = :text "
    f"AND {_TWIN.format(':right', _IS_LATER)}",
    f"DELETE FROM key_value WHERE namespace = :right AND {_TWIN.format(':text', '')}",
    "UPDATE key_value SET namespace = :right WHERE namespace = :text",
)
