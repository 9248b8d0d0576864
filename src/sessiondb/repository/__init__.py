"""Every read, written once: a generator that yields statements and receives rows.

    def a_read(...) -> Read[T]:
        rows = yield STATEMENT, {"sid": session_id}
        return decode(rows)

Either façade runs it in one snapshot of the file. The promise to callers is limited to
one session: a later release may keep several sessions in different files. No
transaction is open while code of the caller runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sessiondb.engine.sql import ComposedStatement, Read, Rows

if TYPE_CHECKING:
    from sessiondb.engine.base import Engine

__all__ = ["ENGINE_IN_USE", "TIME", "Read", "Rows", "engine_in_use", "time_now"]

#: Not run: a read yields it in place of a statement, and the driver answers with the
#: engine of the connection.
ENGINE_IN_USE = ComposedStatement("SELECT 1")
#: Likewise: the answer is the time of the database, Unix ms.
TIME = ComposedStatement("SELECT 2")


def engine_in_use() -> Read[Engine]:
    """Return the engine of the database that is read."""
    return cast("Engine", (yield ENGINE_IN_USE, {}))


def time_now() -> Read[int]:
    """Return the time of the database, Unix ms: that by which values expire."""
    return cast("int", (yield TIME, {}))
