"""Lists of parts, as SQL: JSON arrays of their addresses."""

from __future__ import annotations


def addresses_text(array: str) -> str:
    """Return the query for the addresses of parts in a JSON *array*."""
    # The cast: if the first column has no type, SQLite compares all of them as texts,
    # and looks up no more than the session in the index.
    return (
        "SELECT CAST(value ->> 0 AS TEXT) AS session_id, value ->> 1 AS seq, "
        f"value ->> 2 AS idx FROM json_each({array})"
    )
