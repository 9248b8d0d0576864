"""The command line of the measuring: a table of the rooms, warnings, then every offence."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from measuring.caps import offences, warnings
from measuring.rooms import (
    Room,
    fallen_behind,
    read_table,
    rooms,
    write_table,
)
from measuring.source import Source

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "sessiondb"
COLUMNS = (
    "lines", "body", "branches", "hidden", "vague", "words", "once", "blank", "comments",
)  # fmt: skip


def main() -> int:
    """Measure the package; return 1 for an offence, or a room that has become worse."""
    parser = argparse.ArgumentParser(prog="scripts/measure", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write down what each room has reached"
    )
    is_writing = parser.parse_args().write
    sources = [Source.read(file, PACKAGE) for file in sorted(PACKAGE.rglob("*.py"))]
    uses: Counter[str] = Counter()
    for source in sources:
        uses += source.uses

    figures = {room.name: room.plainness(uses) for room in rooms(sources)}
    if is_writing:
        write_table(figures)

    print(f"{'':22}" + "".join(f"{column:>9}" for column in COLUMNS))
    for room in rooms(sources):
        print(row(room, figures[room.name]))
    everything = Room("in all", sources)
    print(row(everything, everything.plainness(uses)))

    for line in warnings(sources):
        print(f"warning: {line}")
    broken = [
        *offences(sources, PACKAGE.name), *fallen_behind(figures, read_table())
    ]  # fmt: skip
    for line in broken:
        print(line)
    return int(bool(broken))


def row(room: Room, plainness: Mapping[str, float]) -> str:
    """Return one line of the table.

    Branches are per line of a function's body, blank lines and comments per 100; for
    the others see `rooms.GOALS`.
    """
    share = 1 / max(room.body, 1)
    cells = (
        f"{room.lines}",
        f"{room.body}",
        f"{share * sum(function.branches for function in room.functions):.2f}",
        f"{plainness['hidden']:.1f}",
        f"{plainness['vague']:.1f}",
        f"{plainness['words']:.2f}",
        f"{plainness['once']:.1f}",
        f"{100 * share * sum(function.blank for function in room.functions):.1f}",
        f"{100 * share * sum(source.comments for source in room.sources):.1f}",
    )
    return f"{room.name:22}" + "".join(f"{cell:>9}" for cell in cells)
