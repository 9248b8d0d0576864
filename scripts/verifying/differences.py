"""Differences in a session that came back, and those the tool makes on every import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_HERE = "an import belongs to the project it is made in"
_ZERO = "it writes 0 for a missing value"
_FORGOTTEN = "its import forgets this"
#: Places that the tool itself changes, and why; any other difference is a failure.
KNOWN = {
    "1.x": {
        "info.projectID": _HERE,
        "info.directory": _HERE,
        "info.path": _HERE,
        "info.cost": _ZERO,
        "info.tokens": _ZERO,
        "messages[].info.summary.diffs[]": "1.18 keeps patches there, 1.1 kept complete files",
    },
    "2.x": {
        "info.projectID": _HERE,
        "info.location": _HERE,
        "info.subpath": _HERE,
        "info.time.updated": "it is the time of the import",
        "info.fork": _FORGOTTEN,
        "info.revert": _FORGOTTEN,
    },
}
_MISSING = object()


def differences(generation: str, mine: Any, theirs: Any) -> tuple[set[str], set[str]]:
    """Return the places where two documents differ: those that are known, and the others."""
    known, other = set(), set()
    for place, value in _places(mine, theirs):
        name = next(
            (k for k in KNOWN[generation] if place == k or place.startswith(f"{k}.")),
            "",
        )
        stated = KNOWN[generation].get(name) == _ZERO and value is not _MISSING
        if name and not stated:
            known.add(name)
        else:
            other.add(place)
    return known, other


def _places(mine: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the places where values differ, without positions in lists, and the values."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in sorted(mine.keys() | theirs.keys()):
            below = f"{path}.{key}" if path else key
            yield from _places(
                mine.get(key, _MISSING), theirs.get(key, _MISSING), below
            )
    elif (
        isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs)
    ):
        for one, other in zip(mine, theirs, strict=True):
            yield from _places(one, other, f"{path}[]")
    elif mine != theirs:
        yield path, mine
