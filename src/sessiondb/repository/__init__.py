"""Every read, written once: a generator that yields statements and receives rows.

    def a_read(...) -> Read[T]:
        rows = yield STATEMENT, {"sid": session_id}
        return decode(rows)

Either façade runs it in one snapshot of the file. The promise to callers is limited to
one session: a later release may keep several sessions in different files. No
transaction is open while code of the caller runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from sessiondb.engine.sql import Statement

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Read = Generator[tuple[Statement, Mapping[str, Any]], Rows, T]
