"""Gemini CLI: a log of messages that are written again whenever something is added.

`logs` finds the logs, their sessions and projects, `journal` applies the records of a
log in order, `places` reads them again, `drafts` makes messages of them by the tables
of `fields`, and `files` adds the outputs that they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.gemini.logs import is_chats, is_migrated, look_at
from sessiondb.formats.gemini.reader import read_chats, read_log
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]

_SUFFIXES = frozenset({".jsonl", ".json"})


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_chats(path):
        yield ForeignStore("gemini", path, read_chats)
    elif path.suffix in _SUFFIXES and _is_readable(path):
        yield ForeignStore("gemini", path, read_log)


def _is_readable(path: Path) -> bool:
    with suppress(SourceError):
        # Of a log that was migrated, the one that continues it is read.
        return look_at(path) is not None and not is_migrated(path)
    return False


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where the program keeps its sessions; in a sandbox of macOS elsewhere."""
    homes = [env[name] for name in ("GEMINI_CLI_HOME", "HOME") if env.get(name)]
    return [Path(homes[0], *below) for below in _FOLDERS] if homes else []


_FOLDERS = ((".gemini",), (".cache", ".gemini"))

FORMAT = Format(_SUFFIXES, _at, _default_locations)
