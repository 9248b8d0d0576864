"""Qwen Code: a log of linked records for each session and each of its subagents.

`logs` finds the logs and their sessions, `reader` reads them, `tree` links each record
to the one before it, and `drafts` makes messages of records by the tables of `fields`.
The stores of releases of 2025 are those of Gemini CLI, and read by `formats.gemini`.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.formats.gemini import SUFFIXES, store_of
from sessiondb.formats.kit.files import locations_function
from sessiondb.formats.kit.logs import is_readable
from sessiondb.formats.protocol import ForeignStore, Format, late_reader
from sessiondb.formats.qwen.logs import is_folder_of_logs, is_log, look_at

__all__ = ["FORMAT"]

_READER = "sessiondb.formats.qwen.reader"
_read_folder = late_reader(_READER, "read_folder")
_read_log = late_reader(_READER, "read_log")


def _qwen_store_at(path: Path) -> ForeignStore | None:
    if is_folder_of_logs(path):
        return ForeignStore("qwen", path, _read_folder)
    if is_log(path) and is_readable(look_at, path):
        return ForeignStore("qwen", path, _read_log)
    return store_of("qwen", path)


FORMAT = Format(
    SUFFIXES,
    _qwen_store_at,
    # A session that was written before a place was configured is still at home.
    locations_function(("QWEN_RUNTIME_DIR", "QWEN_HOME"), (".qwen",)),
)
