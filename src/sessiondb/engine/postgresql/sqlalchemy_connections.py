"""Connections of SQLAlchemy's to a database that a store has open.

They are psycopg's own, with all types of the server, and can only read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.postgresql.connecting import connect_plainly
from sessiondb.engine.postgresql.parameters import parameters_of

_DIALECT = "postgresql+psycopg://"


def connection_like(connect: Callable[[], Any]) -> sqlalchemy.Connection:
    """Return a connection to the database that *connect* opens."""

    def create() -> Any:
        connection = connect_plainly(_address_of(connect))
        connection.read_only = True
        return connection

    engine = sqlalchemy.create_engine(_DIALECT, creator=create, poolclass=NullPool)
    return engine.connect()


def async_connection_like(connect: Callable[[], Any]) -> AsyncConnection:
    """Return one for asyncio; *connect* is called in a thread."""

    async def create() -> Any:
        address = await asyncio.to_thread(_address_of, connect)
        parameters = parameters_of(address).by_name()
        connection = await psycopg.AsyncConnection.connect(**parameters)
        await connection.set_read_only(True)
        return connection

    engine = create_async_engine(_DIALECT, async_creator=create, poolclass=NullPool)
    return engine.connect()


def _address_of(connect: Callable[[], Any]) -> ServerAddress:
    """Return where *connect* connects, which reports if the store is closed."""
    with closing(connect()) as connection:
        address: ServerAddress = connection.address
        return address
