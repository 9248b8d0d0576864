"""A server of the tests' own, and a new database of it for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from postgresql_server import Server, binaries, running

from sessiondb.engine.address import ServerAddress

_names = (f"db{number}" for number in count())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with running(programs) as started:
        yield started


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """The name of an empty database."""
    name = next(_names)
    assert server.run(f"CREATE DATABASE {name}") == ""
    yield name
    assert server.run(f"DROP DATABASE {name} WITH (FORCE)") == ""


@pytest.fixture
def url(server: Server, database: str) -> str:
    """The URL of an empty database."""
    return server.url(database)


@pytest.fixture
def address(url: str) -> ServerAddress:
    """The address of an empty database."""
    return ServerAddress(url)


@pytest.fixture
def connected(address: ServerAddress) -> Iterator[Callable[..., Any]]:
    """Return a function that connects to an empty database, always the same one."""
    from sessiondb.engine.postgresql.connecting import connect

    connections = []

    def connect_(**options: Any) -> Any:
        connections.append(connect(address, **options))
        return connections[-1]

    yield connect_
    for connection in connections:
        connection.close()
