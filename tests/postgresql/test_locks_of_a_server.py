"""What one transaction locks, another one waits for, however many keys there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sessiondb.engine.address import ServerAddress

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql.engine import POSTGRESQL  # noqa: E402
from sessiondb.engine.postgresql.opening import ensure  # noqa: E402

pytestmark = pytest.mark.slow
MANY = [f"ses_{number}" for number in range(30_000)]


@pytest.fixture
def pair(address: ServerAddress) -> Iterator[tuple[Any, Any]]:
    """Two connections, each in a transaction that waits for nothing."""
    with closing(ensure(address)) as one, closing(ensure(address)) as other:
        for connection in (one, other):
            connection.busy_timeout = 0.0
            POSTGRESQL.begin_write(connection, 0.05)
        yield one, other


def lock(connection: Any, *session_ids: str) -> bool:
    """Return whether locks are new; the transaction has them."""
    is_new = POSTGRESQL.lock_sessions(connection, session_ids)
    connection.settle()
    return is_new


def is_free(connection: Any, *session_ids: str) -> bool:
    """Lock sessions if nothing else has locked them."""
    connection.execute("SAVEPOINT unit")
    try:
        lock(connection, *session_ids)
    except psycopg.errors.LockNotAvailable:
        connection.execute("ROLLBACK TO unit")
        return False
    return True


def test_a_key_is_locked_once_and_others_are_free(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert lock(one, "ses_a", "ses_b")
    assert not lock(one, "ses_b")
    assert not is_free(other, "ses_b")
    assert is_free(other, "ses_c")
    one.commit()
    assert is_free(other, "ses_b")


def test_what_a_savepoint_undoes_is_locked_again(pair: tuple[Any, Any]) -> None:
    one, other = pair
    one.execute("SAVEPOINT unit")
    lock(one, "ses_a")
    one.execute("ROLLBACK TO unit")
    one.settle()
    assert is_free(other, "ses_a")
    other.execute("ROLLBACK")
    assert lock(one, "ses_a")


def test_very_many_keys_are_locked_against_each_of_them(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert lock(one, *MANY)
    assert not lock(one, *MANY[5:])
    assert not is_free(other, MANY[-1])
    assert not is_free(other, *MANY[:3])
    one.commit()
    assert is_free(other, MANY[-1])


def test_very_many_keys_wait_for_one_of_them(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert is_free(one, MANY[77])
    assert not is_free(other, *MANY)
    one.commit()
    assert is_free(other, *MANY)


def test_a_transaction_that_grows_keeps_what_it_has(pair: tuple[Any, Any]) -> None:
    one, other = pair
    for number in range(0, 3_000, 300):
        lock(one, *MANY[number : number + 300])
    for number in range(0, 3_000, 290):
        assert not is_free(other, MANY[number])
    sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    ((locks,),) = one.execute(sql).fetchall()
    assert locks < 1_200
