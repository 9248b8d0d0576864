"""The command: the choice of rows, a table for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks import (
    append,
    cold,
    forking,
    formats,
    growing,
    importing,
    processes,
    reading,
)
from benchmarks.adapters import main as adapters
from benchmarks.compare import main as compare
from benchmarks.measure import HEAD, Bench, Row, Skipped, line
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


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure sessiondb against raw sqlite3. The table goes to stderr, "
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
        "--only", action="append", metavar="NAME", choices=GROUPS,
        help=f"only these rows, may be repeated: {', '.join(GROUPS)}",
    )  # fmt: skip
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(names: Iterable[str], quick: bool) -> Iterator[Row | Skipped]:
    """Yield the rows of the named groups; each group has a directory of its own."""
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="sessiondb-bench-") as folder:
            yield from GROUPS[name](Bench(Path(folder).resolve(), quick))
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
    _say(HEAD)
    rows = []
    for row in measure(options.only or GROUPS, options.quick):
        _say(line(row))
        if isinstance(row, Row):
            rows.append(row.json())
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    if options.json:
        outputs.write_text(options.json, text + "\n", replace=True)
    print(text)
    return 0
