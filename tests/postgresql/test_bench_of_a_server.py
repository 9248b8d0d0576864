"""`scripts/bench --engine postgresql` measures what it says it does."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fixtures import FIELDS, draft
from benchmarks.main import main
from benchmarks.measure import Row, Skipped
from benchmarks.server import GROUPS, rows_of
from benchmarks.server.proxy import proxy_before
from postgresql_server import Server

from sessiondb import Store

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = [sys.executable, str(ROOT / "scripts" / "bench"), "--engine", "postgresql"]
#: Columns whose values differ from one append to the next.
UNLIKE = {
    "rid",
    "id",
    "session_id",
    "family",
    "root_id",
    "turn_id",
    "usage_key",
    "slug",
    "change",
}


@pytest.fixture
def bench(server: Server, database: str, tmp_path: Path) -> Iterator[Any]:
    """A bench of almost no size."""
    from benchmarks.server.place import ServerBench, given_server

    @dataclass(frozen=True, slots=True)
    class TinyBench(ServerBench):
        def size(self, full: int) -> int:
            return max(2, full // 500)

        def times(self, full: int) -> int:
            return min(full, 3)

    url = server.url(database)
    with given_server(tmp_path, url, quick=True) as given:
        yield TinyBench(tmp_path, True, given.url, given.direct_url, None)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_rows_without_an_error(group: str, bench: Any) -> None:
    rows = list(rows_of(group)(bench))
    assert rows
    measured = [row for row in rows if isinstance(row, Row)]
    skipped = [row.name for row in rows if isinstance(row, Skipped)]
    assert all("round trips" in name or "waiting" in name for name in skipped)
    for row in measured:
        assert row.errors == 0
        assert row.floor > 0
        assert row.ours > 0 or row.unit == "%"


def test_the_floor_of_an_append_writes_the_same_rows(bench: Any) -> None:
    from benchmarks.server import raw
    from benchmarks.server.append import appendable
    from psycopg.rows import dict_row

    schema, (mine, other) = appendable(bench, 2)
    with Store.open(schema.url, source="bench") as store:
        store.append(mine, draft(3), **FIELDS)
    with closing(raw.connect(schema.url)) as connection:
        raw.append(connection, [other], 3)
        written = []
        for session in (mine, other):
            with connection.cursor(row_factory=dict_row) as cursor:
                rows = [
                    cursor.execute(
                        f"SELECT * FROM {table} WHERE {name} = %s "
                        f"AND {seq} = (SELECT last_seq FROM session WHERE id = %s) "
                        "ORDER BY rid",
                        [session, session],
                    ).fetchall()
                    for table, name, seq in (
                        ("session", "id", "last_seq"),
                        ("message", "session_id", "seq"),
                        ("part", "session_id", "seq"),
                    )
                ]
            written.append([_comparable(row) for table in rows for row in table])
    assert len(written[0]) == len(["session", "message", "text", "call"])
    assert written[0] == written[1]


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row; of those that are unlike, whether there is one."""
    if "slug" in row:  # a session
        del row["title"]
    if row.get("input"):
        row["input"] = json.loads(row["input"])
    return {
        name: value is not None if name in UNLIKE or name.startswith("time_") else value
        for name, value in row.items()
    }


def test_a_database_with_tables_is_refused_and_a_given_one_is_empty_again(
    server: Server, database: str, tmp_path: Path
) -> None:
    from benchmarks.server.place import given_server

    url = server.url(database)
    for _ in range(2):
        with given_server(tmp_path, url, quick=True) as bench:
            bench.schema()
    Store.open(url).close()
    with (
        pytest.raises(SystemExit, match="not empty"),
        given_server(tmp_path, url, quick=True),
    ):
        pass


def test_a_proxy_counts_what_waits_for_an_answer_and_delays_both_ways(
    server: Server,
) -> None:
    from benchmarks.server import raw
    from benchmarks.server.place import proxied_url

    with (
        proxy_before(server.socket_file, 20) as proxy,
        closing(raw.connect(proxied_url(proxy))) as connection,
    ):
        connection.execute("SELECT 1")
        before = proxy.trips()
        start = time.monotonic()
        for _ in range(3):
            connection.execute("SELECT 1")
        assert time.monotonic() - start >= 3 * 2 * 0.02
        assert proxy.trips() - before == 3

        before = proxy.trips()
        with connection.pipeline():
            for _ in range(3):
                connection.execute("SELECT 1")
        assert proxy.trips() - before == 1


@pytest.mark.slow
@pytest.mark.usefixtures("server")  # it is installed
def test_the_bench_runs_a_server_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    options = ["--quick", "--only", "append", "--latency", "1", "--json", str(file)]
    done = subprocess.run(
        [*BENCH, *options], check=True, capture_output=True, encoding="utf-8"
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert list(rows.values()) == json.loads(file.read_text(encoding="utf-8"))
    trips = rows["append, round trips"]
    assert trips["floor"] == len(["BEGIN", "UPDATE", "message", "parts", "COMMIT"])
    assert trips["goal"] is None
    # Each of them takes twice the latency.
    assert rows["append, Store, normal"]["floor"] >= 2 * trips["floor"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--only", "growing"], "postgresql has no rows growing"),
        (["--url", "postgresql:///x", "--latency", "2"], "the bench's own server"),
        (["--url", "postgresql:///x?host=/nowhere"], "--url: "),
        (["--engine", "sqlite", "--latency", "2"], "for --engine postgresql"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--engine", "postgresql", *options])
    assert refused.value.code
    assert reason in f"{refused.value.code} {capsys.readouterr().err}"
