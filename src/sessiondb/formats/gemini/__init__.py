"""Gemini CLI: a log of messages that are written again whenever something is added.

`logs` finds the logs, their sessions and projects, `journal` applies the records of a
log in order, `places` reads them again, and `drafts` makes messages of them by the
tables of `fields`. `history` has the prompts that are kept beside the sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sessiondb.formats.gemini.history import is_history, read_history
from sessiondb.formats.gemini.logs import is_chats, is_migrated, look_at, source_of
from sessiondb.formats.kit.files import locations_function
from sessiondb.formats.kit.logs import is_readable
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT", "SUFFIXES", "store_of"]

_READER = "sessiondb.formats.gemini.reader"
_read_chats = late_reader(_READER, "read_chats")
_read_log = late_reader(_READER, "read_log")

SUFFIXES = frozenset({".jsonl", ".json"})


def store_of(source: str, path: Path) -> ForeignStore | None:
    """Return the store at *path* if *source* wrote it, ``gemini`` or ``qwen``.

    Qwen Code began as a copy of Gemini CLI: its releases of 2025 have the same stores.
    """
    if source_of(path) != source:
        return None
    if is_chats(path):
        return ForeignStore(source, path, _read_chats)
    if path.suffix in SUFFIXES and _is_readable_log(path):
        return ForeignStore(source, path, _read_log)
    if is_history(path):
        return ForeignStore(source, path, read_history)
    return None


def _is_readable_log(path: Path) -> bool:
    # Of a log that was migrated, the one that continues it is read.
    return is_readable(look_at, path) and not is_migrated(path)


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the folders of the program, in a home that may be configured."""
    home = env.get("GEMINI_CLI_HOME") or env.get("HOME", "")
    return _locations_in_home({"HOME": home})


#: In a sandbox of macOS it is the second one.
_locations_in_home = locations_function((), (".gemini", ".cache/.gemini"))

FORMAT = Format(SUFFIXES, partial(store_of, "gemini"), _default_locations)
