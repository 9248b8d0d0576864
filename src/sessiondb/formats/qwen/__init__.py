"""Qwen Code: a log of linked records for each session and each of its sub-agents.

`logs` finds the logs and their sessions, `reader` reads them, `tree` decides what each
record is linked to, `drafts` makes messages of records by the tables of `fields`, and
`files` adds the outputs that they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.formats.qwen.logs import is_folder_of_logs, is_log, look_at
from sessiondb.formats.qwen.reader import read_folder, read_log

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder_of_logs(path):
        yield ForeignStore("qwen", path, read_folder)
    elif is_log(path) and _is_readable(path):
        yield ForeignStore("qwen", path, read_log)


def _is_readable(path: Path) -> bool:
    with suppress(SourceError):
        return look_at(path) is not None
    return False


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where the program keeps its sessions, configured places first."""
    # A session that was written before a place was configured is still at home.
    configured = filter(None, map(env.get, ("QWEN_RUNTIME_DIR", "QWEN_HOME")))
    home = [Path(env["HOME"], ".qwen")] if env.get("HOME") else []
    return [*(Path(place).expanduser() for place in configured), *home]


FORMAT = Format(frozenset({".jsonl"}), _at, _default_locations)
