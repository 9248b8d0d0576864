"""The command line of the measuring: a table per directory, then every offence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from measuring.caps import BRANCHES, offences, violations
from measuring.known import TO_BE_REMOVED
from measuring.source import Source

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "sessiondb"
HEAD = ("lines", "body", "branches", "heavy", "blank", "comments", "wide")


def main() -> int:
    """Measure the package; return 1 if any code is above a cap."""
    sources = [Source.read(file, PACKAGE) for file in sorted(PACKAGE.rglob("*.py"))]
    print(f"{'':22}" + "".join(f"{title:>9}" for title in HEAD))
    for folder in sorted({source.folder for source in sources}):
        print(row(folder, [s for s in sources if s.folder == folder]))
    print(row("in all", sources))

    broken = violations(offences(sources, PACKAGE.name), TO_BE_REMOVED)
    for line in broken:
        print(line)
    return int(bool(broken))


def row(name: str, sources: Iterable[Source]) -> str:
    """Return one line of the table.

    Branches are per line of a function's body, blank lines and comments per 100.
    """
    sources = list(sources)
    functions = [function for source in sources for function in source.functions]
    body = sum(function.lines for function in functions)
    share = 1 / max(body, 1)
    cells = (
        f"{sum(len(source.lines) for source in sources)}",
        f"{body}",
        f"{share * sum(function.branches for function in functions):.2f}",
        f"{sum(function.branches > BRANCHES for function in functions)}",
        f"{100 * share * sum(function.blank for function in functions):.1f}",
        f"{100 * share * sum(source.comments for source in sources):.1f}",
        f"{sum(source.wide for source in sources)}",
    )
    return f"{name:22}" + "".join(f"{cell:>9}" for cell in cells)
