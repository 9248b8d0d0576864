"""Breadcrumbs of oh-my-pi: the session last used in each terminal.

A file in ``terminal-sessions`` has the name of a terminal. Its lines are the directory,
the log of the session, and others that do not matter here: a session that has no log
yet (``fresh``) is in no import.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath

from sessiondb.formats.kit.files import (
    file_stamp,
    is_folder,
    read_small,
    sorted_entries,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, usable_id
from sessiondb.formats.pi.logs import SUFFIX, foreign_path, is_stem
from sessiondb.model import TerminalUse
from sessiondb.patterns import late_pattern

_FOLDER = "terminal-sessions"
#: An absolute directory, and a log.
_CRUMB = late_pattern(
    r"\s*(?P<directory>(?:/|\\|[A-Za-z]:)[^\n\0]{,4096})\n(?P<log>[^\n]+)"
)
#: The key of a log: the names of its folder and file, because a store may be a copy.
LogKey = tuple[str, ...]
#: The uses of each log.
Uses = dict[LogKey, tuple[TerminalUse, ...]]


def uses_near(log: Path) -> Uses:
    """Return the uses in the store that a log is in."""
    # Its folder lies beside that of the sessions, in which logs are two levels deep.
    for folder in log.parents[:4]:
        if is_folder(folder / _FOLDER):
            return uses_in(folder)
    return {}


def uses_in(home: Path) -> Uses:
    """Return the uses in a store; anything but a breadcrumb is passed over."""
    uses: Uses = {}
    with suppress(OddRecordError):
        for entry in sorted_entries(home / _FOLDER):
            breadcrumb = _read_breadcrumb(home / _FOLDER / entry.name)
            if breadcrumb is not None:
                log, use = breadcrumb
                uses[log] = (*uses.get(log, ()), use)
    return uses


def key_of(log: PurePath) -> LogKey:
    """Return the key of a log in `Uses`."""
    return log.parts[-2:]


def _read_breadcrumb(path: Path) -> tuple[LogKey, TerminalUse] | None:
    """Return the key of the log that a breadcrumb names, and its use, or None."""
    content = (read_small(path) or b"").decode("utf-8", "replace")
    crumb = _CRUMB.match(content)
    if crumb is None or not usable_id(path.name):
        return None

    _, changed_ns = file_stamp(path) or (0, 0)
    last_used = known_time(changed_ns // 1_000_000) or 0
    log = _log_of_session(foreign_path(crumb["log"]))
    return key_of(log), TerminalUse(path.name, crumb["directory"], last_used)


def _log_of_session(log: PurePath) -> PurePath:
    """Return the log of the session itself for that of one of its subagents."""
    for folder in log.parents:
        if is_stem(folder.name):
            return folder.with_name(f"{folder.name}{SUFFIX}")
    return log
