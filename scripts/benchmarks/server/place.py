"""Where a run on a server keeps its rows: a schema for each set of tables.

The server is one of the run's own, as it is installed: each commit waits for the disk.
Or it is one that exists already, with an empty database, which is empty again at the
end.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from private_cluster import Cluster, binaries

from benchmarks.fixtures import Fill
from benchmarks.measure import Bench
from benchmarks.server import raw
from benchmarks.server.proxy import Proxy, proxy_before
from sessiondb import Store
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.default import target_of
from sessiondb.engine.postgresql.parameters import parameters_of
from sessiondb.errors import SessionDBError

_SCHEMAS = (
    "SELECT nspname FROM pg_namespace WHERE nspname <> 'public' "
    "AND nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'"
)
_RELATIONS = (
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('public')"
)


@dataclass(frozen=True, slots=True)
class ServerBench(Bench):
    """The size of the run, the place of its files, and a database of a server.

    *url* is that of the database, through a proxy if there is to be latency, and
    *direct_url* without it. *cluster* is None for a server that others run.
    """

    url: str
    direct_url: str
    cluster: Cluster | None
    _numbers: Iterator[int] = field(default_factory=count)

    def schema(self, *fills: Fill) -> Schema:
        """Make our tables in a new schema, and fill them."""
        schema = Schema(f"bench_{next(self._numbers)}", self.url, self.direct_url)
        with closing(raw.connect(self.direct_url)) as connection:
            connection.execute(f"CREATE SCHEMA {schema.name}")
        schema.fill(*fills)
        return schema


@dataclass(frozen=True, slots=True)
class Schema:
    """A set of our tables."""

    name: str
    server_url: str
    direct_server_url: str

    @property
    def url(self) -> str:
        """The URL for what is measured."""
        return _in_schema(self.server_url, self.name)

    @property
    def direct_url(self) -> str:
        """The URL without a proxy."""
        return _in_schema(self.direct_server_url, self.name)

    def fill(self, *fills: Fill) -> None:
        """Make the tables, and add rows to them."""
        Store.open(self.direct_url).close()
        for fill in fills:
            with (
                closing(raw.connect(self.direct_url)) as connection,
                connection.transaction(),
            ):
                fill(raw.Filling(connection))
        if fills:
            self._index()

    def _index(self) -> None:
        """Let search find the rows, and the server know what there is of what."""
        with closing(target_of(ServerAddress(self.direct_url)).connect()) as connection:
            connection.engine.search.rebuild(connection)
        with closing(raw.connect(self.direct_url)) as connection:
            connection.execute("VACUUM ANALYZE")

    @contextmanager
    def counted(self, socket_file: Path) -> Iterator[tuple[Proxy, str]]:
        """Yield a proxy that counts round trips, and the URL through it."""
        # The delay keeps the beginning of an answer from arriving before the end of a
        # long request, which would then be counted as two.
        with proxy_before(socket_file, 1) as proxy:
            yield proxy, _in_schema(proxied_url(proxy), self.name)


def _in_schema(url: str, name: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"


def proxied_url(proxy: Proxy) -> str:
    """Return the URL of the run's own server through *proxy*."""
    plain = "sslmode=disable&gssencmode=disable"
    return f"postgresql://sessiondb@127.0.0.1:{proxy.port}/postgres?{plain}"


@contextmanager
def own_server(
    folder: Path, *, quick: bool, latency: float = 0.0
) -> Iterator[ServerBench]:
    """Run a server for a ``with`` block; *latency* in ms each way.

    Raises `SystemExit` where PostgreSQL is not installed.
    """
    programs = binaries()
    if programs is None:
        raise SystemExit(
            "there is no initdb: install PostgreSQL, or give the --url of a server's "
            "empty database"
        )
    with ExitStack() as stack:
        # Temporary folders are removed by an exit, not by a signal.
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        stack.callback(signal.signal, signal.SIGTERM, before)
        # Another user may run the server: not below *folder*, which only ours sees.
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="sessiondb-pg-"))
        cluster = Cluster(Path(place), programs, {})
        stack.enter_context(cluster.ended())
        cluster.initialize()
        cluster.start()
        url = cluster.url()
        if latency:
            proxy = stack.enter_context(proxy_before(cluster.socket_file, latency))
            url = proxied_url(proxy)
        yield ServerBench(folder, quick, url, cluster.url(), cluster)


@contextmanager
def given_server(folder: Path, url: str, *, quick: bool) -> Iterator[ServerBench]:
    """Use the empty database at *url* for a ``with`` block.

    Raises `SystemExit` for one that is not empty or cannot be opened.
    """
    try:
        # First: its error does not show a password.
        parameters = parameters_of(ServerAddress(url))
        connection = raw.connect(url)
    except (psycopg.Error, SessionDBError) as error:
        raise SystemExit(f"--url: {error}") from None
    with closing(connection):
        if any(connection.execute(sql).fetchone() for sql in (_SCHEMAS, _RELATIONS)):
            raise SystemExit("--url: the database is not empty")
        if "options" in parameters.by_name():
            raise SystemExit("--url: the bench gives options of its own")
        try:
            yield ServerBench(folder, quick, url, url, None)
        finally:
            _drop_schemas(connection)


def _drop_schemas(connection: psycopg.Connection[Any]) -> None:
    # There were none, so all of them are the bench's.
    for (name,) in connection.execute(_SCHEMAS).fetchall():
        connection.execute(f"DROP SCHEMA {name} CASCADE")
