"""Connections for maintenance, beside those of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sessiondb.engine.base import Connection, Mode
from sessiondb.engine.default import target_at


@contextmanager
def connected(
    path: Path, *, mode: Mode = "reader", busy_timeout: float = 10.0
) -> Iterator[Connection]:
    """Yield a connection to the database at *path*, closed at the end of the block.

    *busy_timeout* is in seconds. The engine's errors are raised as ours.
    """
    target = target_at(path)
    with closing(target.connect(mode=mode, busy_timeout=busy_timeout)) as connection:
        try:
            yield connection
        except target.engine.Error as error:
            raise target.translate(error) from error
