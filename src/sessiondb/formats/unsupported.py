"""Agents whose sessions are recognised and cannot be read yet, so that they can be named.

A store is recognised by the names that its program gives to folders and files, or by
the first records of its text files. No database is opened for it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Agent → what the path of one of its files looks like, seen from the root.
_PATHS = {
    "Claude Code": r"/\.claude(/|$)",
    "Codex": r"/\.codex(/|$)|/rollout-[^/]+\.jsonl(\.zst)?$",
    "oh-my-pi": r"/\.omp(/|$)",
    "pi": r"/\.pi(/|$)",
    "xcsh": r"/\.xcsh(/|$)",
    "Goose": r"/goose/sessions(/|$)",
    "Gemini CLI": r"/\.gemini(/|$)|/chats/session-[^/]+\.jsonl?$",
    "Qwen Code": r"/\.qwen(/|$)",
    "aider": r"/\.aider\.[^/]+$",
    "llm": r"/io\.datasette\.llm(/|$)",
}
#: Limits on the entries below a folder, and on the lines of a file.
MAX_ENTRIES, MAX_DEPTH, MAX_LINES, MAX_LINE = 2_000, 8, 16, 65_536
_NEVER = {".git", "node_modules"}


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of agents with sessions at *path* or below it; none is ``[]``."""
    found: dict[str, None] = {}
    for file in _files(Path(path)):
        where = file.absolute().as_posix()
        named = [name for name, shape in _PATHS.items() if re.search(shape, where)]
        found |= dict.fromkeys(named or _by_content(file))
    return list(found)


def _files(top: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder; links are not followed."""
    if not top.is_dir():
        yield top
        return
    pending, left = [(top, 0)], MAX_ENTRIES
    while pending and left > 0:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)[:left]
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if entry.is_symlink():
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield folder / entry.name
            elif depth < MAX_DEPTH and entry.name not in _NEVER:
                pending.append((folder / entry.name, depth + 1))


def _by_content(file: Path) -> list[str]:
    if file.suffix not in (".jsonl", ".json"):
        return []
    for record in _records(file):
        name = _agent_of(record)
        if name is not None:
            return [name]
    return []


def _agent_of(record: dict[str, Any]) -> str | None:
    """Return whose log a record is from; None if that is not certain."""
    kind, message = record.get("type"), record.get("message")
    if kind == "session_meta" and "payload" in record:
        return "Codex"
    if kind == "session" and {"id", "cwd", "timestamp"} <= record.keys():
        return "pi"
    if {"sessionId", "projectHash"} <= record.keys():
        return "Gemini CLI"
    if {"sessionId", "parentUuid"} <= record.keys() and isinstance(message, dict):
        return "Qwen Code" if "parts" in message else "Claude Code"
    return None


def _records(file: Path) -> Iterator[dict[str, Any]]:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return
        with file.open("rb") as lines:
            for _ in range(MAX_LINES):
                line = lines.readline(MAX_LINE)
                if not line:
                    return
                record = _parsed(line)
                if isinstance(record, dict):
                    yield record
    except OSError:
        return


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
