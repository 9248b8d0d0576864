"""The command: the choice of rows, a table for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks import (
    append,
    cold,
    forking,
    formats,
    growing,
    importing,
    processes,
    reading,
    server,
)
from benchmarks.adapters import main as adapters
from benchmarks.compare import main as compare
from benchmarks.measure import HEAD, Bench, Row, Skipped, line, markdown
from sessiondb.engine import outputs

GROUPS: dict[str, Callable[[Bench], Iterator[Row | Skipped] | Iterator[Row]]] = {
    "append": append.append_rows,
    "appenders": append.appender_rows,
    "processes": processes.rows,
    "load": reading.load_rows,
    "list": reading.list_rows,
    "usage": reading.usage_rows,
    "last": reading.last_rows,
    "growing": growing.rows,
    "fork": forking.rows,
    "search": reading.search_rows,
    "rank": reading.rank_rows,
    "import": importing.rows,
    "formats": formats.rows,
    "cold": cold.rows,
}


#: Makes the bench of a group: what its rows are measured with.
Opened = Callable[[Path], AbstractContextManager[Any]]


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure sessiondb against raw sqlite3, or on a server against raw "
        "psycopg. The table goes to stderr, "
        'stdout is [{"name","floor","ours","ratio","goal","ok","unit"}]. Files are made in a '
        "temporary directory (TMPDIR; one on a real disk, or durability costs nothing). "
        "`scripts/bench peers` compares with the stores that people use, and "
        "`scripts/bench adapters` with those of agent frameworks.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="10⁵ and 10⁶ divided by ten: a minute"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the JSON there as well"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table there for a page"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME",
        help=f"only these rows, may be repeated: {', '.join(GROUPS)}; "
        f"of a server: {', '.join(server.GROUPS)}",
    )  # fmt: skip
    parser.add_argument(
        "--engine", choices=("sqlite", "postgresql"), default="sqlite",
        help="postgresql runs a server of its own, of which initdb has to be installed",
    )  # fmt: skip
    parser.add_argument("--url", help="an empty database of a server that runs already")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="MS",
        help="let each message to the own server, and each answer, take so long",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    if options.engine == "sqlite" and (options.url or options.latency):
        parser.error("--url and --latency are for --engine postgresql")
    if options.url and options.latency:
        parser.error("--latency is for the bench's own server")
    groups = GROUPS if options.engine == "sqlite" else server.GROUPS
    for name in options.only or ():
        if name not in groups:
            parser.error(f"{options.engine} has no rows {name}: {', '.join(groups)}")
    return options


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(
    groups: Mapping[str, Callable[[Any], Iterator[Row | Skipped] | Iterator[Row]]],
    opened: Opened,
) -> Iterator[Row | Skipped]:
    """Yield the rows of the groups; each has a directory, and a server, of its own."""
    for name, rows in groups.items():
        started = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="sessiondb-bench-") as folder,
            opened(Path(folder).resolve()) as bench,
        ):
            yield from rows(bench)
        _say(f"# {name}: {time.monotonic() - started:.1f} s")


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 whether or not goals are met: a loaded machine is not a failure."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["adapters"]:
        return adapters.main(arguments[1:])
    if arguments[:1] == ["peers"]:
        return compare.main(arguments[1:])
    options = _parse(arguments)
    # The user's own database and configuration must not be found.
    os.environ.pop("SESSIONDB_PATH", None)
    if options.engine == "sqlite":
        groups = {name: GROUPS[name] for name in options.only or GROUPS}
        found = measure(
            groups, lambda folder: nullcontext(Bench(folder, options.quick))
        )
    else:
        names = options.only or server.GROUPS
        groups = {name: server.rows_of(name) for name in names}
        opened = server.opened(options.url, options.latency, quick=options.quick)
        found = measure(groups, opened)
    _say(HEAD)
    rows = []
    for row in found:
        _say(line(row))
        if isinstance(row, Row):
            rows.append(row)
    text = json.dumps([row.json() for row in rows], indent=1, ensure_ascii=False)
    if options.json:
        outputs.write_text(options.json, text + "\n", replace=True)
    if options.markdown:
        outputs.write_text(options.markdown, markdown(rows), replace=True)
    print(text)
    return 0
