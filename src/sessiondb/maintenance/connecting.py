"""Connections for maintenance, beside those of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sessiondb.engine.base import Connection, Mode, Target


@contextmanager
def connected(
    target: Target, *, mode: Mode = "reader", busy_timeout: float = 10.0
) -> Iterator[Connection]:
    """Yield a connection to a database, closed at the end of the block.

    *busy_timeout* is in seconds. The engine's errors are raised as ours.
    """
    with closing(target.connect(mode=mode, busy_timeout=busy_timeout)) as connection:
        try:
            yield connection
        except target.engine.Error as error:
            raise target.translate(error) from error
