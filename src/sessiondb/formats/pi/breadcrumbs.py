"""Breadcrumbs of oh-my-pi: the session last used in each terminal.

A file in ``terminal-sessions`` has the name of a terminal. Its lines are the directory,
the log of the session, and others that do not matter here: a session that has no log
yet (``fresh``) is in no import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from sessiondb.formats.kit.files import entries, is_folder, read_small, stamp
from sessiondb.formats.kit.json import OddRecordError, known_time, usable_id
from sessiondb.formats.pi.logs import SUFFIX, is_stem, path_there
from sessiondb.model import TerminalUse

_FOLDER = "terminal-sessions"
#: An absolute directory, and a log.
_CRUMB = re.compile(
    r"\s*(?P<directory>(?:/|\\|[A-Za-z]:)[^\n\0]{,4096})\n(?P<log>[^\n]+)"
)
#: The uses of each log, by the names of its folder and file: a store may be a copy.
Uses = dict[tuple[str, ...], tuple[TerminalUse, ...]]


def uses_near(log: Path) -> Uses:
    """Return the uses in the store that a log is in."""
    # Its folder lies beside that of the sessions, in which logs are two levels deep.
    homes = (folder for folder in log.parents[:4] if is_folder(folder / _FOLDER))
    return next(map(uses_in, homes), {})


def uses_in(home: Path) -> Uses:
    """Return the uses in a store; anything but a breadcrumb is passed over."""
    found: Uses = {}
    with suppress(OddRecordError):
        for entry in entries(home / _FOLDER):
            for log, use in _uses(home / _FOLDER / entry.name):
                found[log] = (*found.get(log, ()), use)
    return found


def key_of(log: PurePath) -> tuple[str, ...]:
    """Return the key of a log in `Uses`."""
    return log.parts[-2:]


def _uses(crumb: Path) -> Iterator[tuple[tuple[str, ...], TerminalUse]]:
    said = (read_small(crumb) or b"").decode("utf-8", "replace")
    found = _CRUMB.match(said)
    if found is not None and usable_id(crumb.name):
        _, changed = stamp(crumb) or (0, 0)
        when = known_time(changed // 1_000_000) or 0
        use = TerminalUse(crumb.name, found["directory"], when)
        yield key_of(_root_of(path_there(found["log"]))), use


def _root_of(log: PurePath) -> PurePath:
    """Return the log of the session itself for that of one of its subagents."""
    folders = (path for path in log.parents if is_stem(path.name))
    return next((path.with_name(f"{path.name}{SUFFIX}") for path in folders), log)
