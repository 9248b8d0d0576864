"""The caps, and the offenders that are still above them.

Each offence has a name, ``rule path`` or ``rule path:function``, that survives a
change of the lines above it; a circle is named by its first module. The list of known
ones only becomes shorter: an offence that is not in it fails, and so does an entry
that is no longer an offence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from measuring.circles import circles
from measuring.source import WIDTH, Source

#: Far above what reads well: a lower cap was met by writing decisions as something else.
FILE, FUNCTION, BRANCHES = 500, 80, 20


@dataclass(frozen=True)
class Offence:
    """Something above a cap: its name in the list, and what is wrong with it."""

    name: str
    why: str


def offences(sources: Iterable[Source], package: str) -> Iterator[Offence]:
    """Yield what is above a cap in *sources*, the files of *package*."""
    sources = list(sources)
    for source in sources:
        yield from _of_file(source)

    wide: dict[str, int] = {}
    for source in sources:
        wide[source.folder] = wide.get(source.folder, 0) + source.wide
    for folder, count in wide.items():
        if count:
            yield Offence(f"wide {folder}", f"{count} lines over {WIDTH} columns")

    for group in circles(sources, package):
        yield Offence(f"circle {group[0]}", f"import each other: {', '.join(group)}")


def _of_file(source: Source) -> Iterator[Offence]:
    length = len(source.lines)
    if length > FILE:
        yield Offence(f"file {source.name}", f"{length} lines; at most {FILE}")

    for function in source.functions:
        place = f"{source.name}:{function.name}"
        if function.lines > FUNCTION:
            why = f"line {function.line}: {function.lines} lines; at most {FUNCTION}"
            yield Offence(f"long {place}", why)
        if function.branches > BRANCHES:
            why = (
                f"line {function.line}: {function.branches} branches; "
                f"at most {BRANCHES}"
            )
            yield Offence(f"heavy {place}", why)


def violations(found: Iterable[Offence], known: Iterable[str]) -> list[str]:
    """Return a line for each new offence, and for each known one that is gone."""
    found = {offence.name: offence for offence in found}
    known = set(known)
    new = [f"{name}: {o.why}" for name, o in found.items() if name not in known]
    gone = [
        f"{name}: no longer an offence; remove it from the list"
        for name in sorted(known - found.keys())
    ]
    return new + gone
