"""What may be in no file, and what is worth a second look.

An offence fails. A warning does not: a function of many lines or branches may be the
plainest form of its idea, and a cap on them was met by hiding decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from measuring.circles import circles
from measuring.source import WIDTH, Source

FILE = 500
#: A function above these is named.
FUNCTION, BRANCHES = 80, 20


def offences(sources: Iterable[Source], package: str) -> Iterator[str]:
    """Yield what is above a cap in *sources*, the files of *package*."""
    sources = list(sources)
    for source in sources:
        if len(source.lines) > FILE:
            yield f"{source.name}: {len(source.lines)} lines; at most {FILE}"
        if source.wide:
            yield f"{source.name}: {source.wide} lines over {WIDTH} columns"

    for group in circles(sources, package):
        yield f"{group[0]}: these import each other: {', '.join(group)}"


def warnings(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the functions of many lines or branches."""
    for source in sources:
        for function in source.functions:
            place = f"{source.name}:{function.line} {function.name}"
            if function.lines > FUNCTION:
                yield f"{place} has {function.lines} lines"
            if function.branches > BRANCHES:
                yield f"{place} has {function.branches} branches"
