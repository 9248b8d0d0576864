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
from benchmarks.measure import Bench, Row, Skipped
from sessiondb.engine import outputs

GROUPS: dict[str, Callable[[Bench], Iterator[Row | Skipped] | Iterator[Row]]] = {
    "append": append.append_rows,
    "appenders": append.appender_rows,
    "processes": processes.rows,
    "load": reading.load_rows,
    "list": reading.list_rows,
    "last": reading.last_rows,
    "growing": growing.rows,
    "fork": forking.rows,
    "search": reading.search_rows,
    "rank": reading.rank_rows,
    "import": importing.rows,
    "formats": formats.rows,
    "cold": cold.rows,
}


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure sessiondb against raw sqlite3. The table goes to stderr, "
        'stdout is [{"name","floor","ours","ratio","goal","ok","unit"}]. Files are made in a '
        "temporary directory (TMPDIR; one on a real disk, or durability costs nothing).",
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


def line(row: Row | Skipped) -> str:
    """Return one line of the table."""
    if isinstance(row, Skipped):
        return f"{row.name:<58} skipped: {row.why}"
    goal = f"{'≥' if row.at_least else '≤'} {row.goal:g}"
    if row.allowance:
        goal += f" + {row.allowance:.3f} {row.unit}"
    verdict = f"{row.errors} ERRORS" if row.errors else "ok" if row.ok else "MISSED"
    figures = " ".join(
        f"{f'{value:,.{_digits(row)}f}':>12}" for value in (row.floor, row.ours)
    )
    return (
        f"{row.name:<58} {figures} {row.unit:<5} {row.ratio:6.2f} {goal:<18} {verdict}"
    )


def _digits(row: Row) -> int:
    return {"ms": 3, "MB": 1}.get(row.unit, 0)


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 whether or not goals are met: a loaded machine is not a failure."""
    options = _parse(arguments)
    # The user's own database and configuration must not be found.
    os.environ.pop("SESSIONDB_PATH", None)
    _say(f"{'':<58} {'floor':>12} {'ours':>12} {'':<5} {'ratio':>6} {'goal':<18}")
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
