"""The command `scripts/bench peers`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.compare import report, starts
from benchmarks.compare.catalog import STORES
from benchmarks.compare.environments import (
    NotInstalledError,
    cache_folder,
    python_of,
)
from benchmarks.compare.phases import Measured, Round
from benchmarks.measure import HEAD, line
from sessiondb.engine import outputs

TURNS, ROUNDS, QUICK_ROUNDS = 2000, 3, 1
MEMORY = Path("/dev/shm")  # noqa: S108 - the files are in a private folder below


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench peers",
        description="Compare sessiondb with the stores that people use, each with its own "
        "defaults: appending, loading, forking, four processes, bytes, pages, and the start "
        "of a process. Other stores come from PyPI at the first run, into a cache folder. "
        "Files are made in TMPDIR, which should be on a real disk, and in /dev/shm.",
    )
    parser.add_argument(
        "--quick", action="store_true",
        help="one round of a raw table, JSON lines, SQLiteSession and sessiondb: a minute",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", metavar="NAME",
        choices=[store.module for store in STORES],
        help="only these stores, may be repeated: "
        + ", ".join(store.module for store in STORES),
    )  # fmt: skip
    parser.add_argument(
        "--turns", type=_positive, default=TURNS, metavar="N",
        help=f"turns of a session, default {TURNS:,}; those of four processes are as many together",
    )  # fmt: skip
    parser.add_argument("--rounds", type=_positive, metavar="N")
    parser.add_argument("--no-starts", action="store_true", help="no new processes")
    parser.add_argument(
        "--cache", type=Path, default=cache_folder(), metavar="FOLDER",
        help="where the environments are kept, default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all figures there as JSON"
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main(arguments: list[str]) -> int:
    """Run, and print the tables; 0 whether or not goals are met."""
    options = _parse(arguments)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    stores = _stores(options)
    with (
        tempfile.TemporaryDirectory(prefix="sessiondb-bench-") as disk,
        tempfile.TemporaryDirectory(
            prefix="sessiondb-bench-", dir=MEMORY if MEMORY.is_dir() else None
        ) as memory,
    ):
        began = []
        if not options.no_starts:
            began = starts.measure(Path(disk).resolve(), 3 if options.quick else 20)
        for number in range(rounds):
            started = time.monotonic()
            here = Round(stores, *_folders(number, disk, memory))
            here.measure()
            took = time.monotonic() - started
            print(f"# round {number + 1}: {took:.1f} s", file=sys.stderr, flush=True)
    print(report.tables(stores, began))
    print(f"\n{HEAD}".rstrip())
    for row in report.goals(stores, began):
        print(line(row))
    if options.json:
        result = report.as_json(stores, began, rounds, MEMORY.is_dir())
        text = json.dumps(result, indent=1, ensure_ascii=False)
        outputs.write_text(options.json, text + "\n", replace=True)
    return 0


def _folders(number: int, disk: str, memory: str) -> list[Path]:
    folders = [Path(place).resolve() / str(number) for place in (disk, memory)]
    for folder in folders:
        folder.mkdir()
    return folders


def _stores(options: argparse.Namespace) -> list[Measured]:
    """Return the chosen stores; one that cannot be installed says why."""
    stores = []
    for store in STORES:
        if options.only:
            chosen = store.module in options.only
        else:
            chosen = store.quick or not options.quick
        if not chosen:
            continue
        turns = min(options.turns, store.turns or options.turns)
        one = Measured(store, None, turns)
        try:
            one.python = python_of(store, options.cache)
        except NotInstalledError as error:
            one.why = f"cannot be installed: {error}"
        stores.append(one)
    return stores
