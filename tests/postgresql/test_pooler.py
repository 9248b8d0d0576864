"""Behind pgbouncer, each transaction may have another session of the server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from postgresql_server import Server

from sessiondb.engine.address import ServerAddress
from sessiondb.errors import BusyError

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql.connecting import connect  # noqa: E402
from sessiondb.engine.postgresql.connection import BEGIN_READ  # noqa: E402
from sessiondb.engine.postgresql.opening import ensure  # noqa: E402
from sessiondb.engine.postgresql.target import PostgreSQLDatabase  # noqa: E402

pytestmark = pytest.mark.slow
CONFIGURATION = """
[databases]
* = host={server} user=sessiondb
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
auth_type = any
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
logfile = {folder}/log
pidfile = {folder}/pid
"""


@pytest.fixture(scope="module")
def pooler(server: Server) -> Iterator[Path]:
    """The folder of the socket of a pgbouncer in transaction mode."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with tempfile.TemporaryDirectory(prefix="pgb-") as name:
        folder = Path(name)
        settings = CONFIGURATION.format(server=server.folder, folder=folder)
        (folder / "ini").write_text(settings)
        if server.user is not None:
            shutil.chown(folder, server.user)
        process = subprocess.Popen(
            [program, "-q", str(folder / "ini")], user=server.user, cwd=folder
        )
        try:
            while not (folder / ".s.PGSQL.6432").exists():
                assert process.poll() is None
                time.sleep(0.02)
            yield folder
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture
def pooled(pooler: Path, database: str) -> ServerAddress:
    return ServerAddress(
        f"postgresql:///{database}?host={pooler}&port=6432&user=sessiondb&pgbouncer=true"
    )


def setting(connection: Any, name: str) -> str:
    ((value,),) = connection.execute("SELECT current_setting(?)", (name,))
    return str(value)


def test_a_database_is_made_and_verified_through_a_pooler(
    pooled: ServerAddress,
) -> None:
    target = PostgreSQLDatabase(pooled)
    assert not target.exists()
    ensure(pooled).close()
    ensure(pooled, read_only=True).close()
    target.verify()
    assert target.pending() == []


def test_transactions_of_many_connections_share_few_sessions(
    pooled: ServerAddress,
) -> None:
    ensure(pooled).close()
    connections = [connect(pooled, durability="normal") for _ in range(5)]
    insert = "INSERT INTO meta (key, value) VALUES (?, ?)"
    for turn in range(8):
        for number, connection in enumerate(connections):
            connection.begin_write(5.0)
            assert setting(connection, "synchronous_commit") == "off"
            connection.executemany(
                insert, [(f"{turn}.{number}.{n}", "x") for n in "ab"]
            )
            connection.execute("SAVEPOINT unit")
            with pytest.raises(psycopg.errors.UniqueViolation):
                assert connection.execute(insert, (f"{turn}.{number}.a", "x")).rowcount
            connection.execute("ROLLBACK TO unit")
            connection.commit()
    for connection in connections:
        connection.execute(BEGIN_READ)
        sql = "SELECT count(*) FROM meta WHERE value = :value"
        assert connection.execute(sql, {"value": "x"}).fetchall() == [(80,)]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            assert connection.execute(insert, ("y", "y")).rowcount
        connection.execute("ROLLBACK")
        assert setting(connection, "synchronous_commit") == "on"
        assert setting(connection, "lock_timeout") == "0"
        connection.close()


def test_a_lock_is_waited_for_as_long_as_the_transaction_says(
    pooled: ServerAddress,
) -> None:
    ensure(pooled).close()
    with closing(connect(pooled)) as one, closing(connect(pooled)) as other:
        update = "UPDATE meta SET value = value"
        one.begin_write(5.0)
        one.execute(update)
        one.settle()
        other.begin_write(0.05)
        with pytest.raises(psycopg.errors.LockNotAvailable) as caught:
            other.execute(update)
            other.settle()
        translated = other.engine.translate(caught.value)
        assert isinstance(translated, BusyError)
