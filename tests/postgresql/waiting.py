"""Transactions that wait where a test wants it, and the tests that wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

#: Whatever changes a row of the table waits in its COMMIT while a test has the lock.
_WAIT_IN_COMMIT = """
CREATE OR REPLACE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(1, 1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER wait_in_commit AFTER INSERT OR UPDATE OR DELETE ON {table}
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_in_commit();
"""
_WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
#: Seconds after which a state that was expected fails its test.
PATIENCE = 20.0


class Gate:
    """A connection behind which transactions wait in their COMMIT."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def wait_for(self, number: int) -> None:
        """Return once *number* transactions wait for a lock, here or of each other."""
        end = time.monotonic() + PATIENCE
        while (found := self._connection.execute(_WAITING).fetchall()) != [(number,)]:
            assert time.monotonic() < end, found
            time.sleep(0.01)

    def open(self) -> None:
        """Let all of them commit."""
        self._connection.execute("SELECT pg_advisory_unlock_all()")


@contextmanager
def commits_held(url: str, table: str = "session") -> Iterator[Gate]:
    """Let whoever writes to a table wait in its COMMIT, until the end of a block."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_WAIT_IN_COMMIT.format(table=table))
        connection.execute("SELECT pg_advisory_lock(1, 1)")
        gate = Gate(connection)
        yield gate
        gate.open()
        connection.execute(f"DROP TRIGGER wait_in_commit ON {table}")
