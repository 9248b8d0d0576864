"""Agents whose sessions are recognised and cannot be read yet, to name them.

A store is recognised by the names that its program gives to folders and files, or by
the first records of its text files. No database is opened for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import is_object
from sessiondb.formats.kit.files import is_file

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
#: Agent → type and keys of a record that it alone writes; None is any type.
_RECORDS: dict[str, tuple[str | None, set[str]]] = {
    "Codex": ("session_meta", {"payload"}),
    "pi": ("session", {"id", "cwd", "timestamp"}),
    "Gemini CLI": (None, {"sessionId", "projectHash"}),
}
#: Claude Code and Qwen Code write the same records; their messages differ.
_LIKE_CLAUDE = {"sessionId", "parentUuid"}
#: Limits on the entries below a folder, and on the lines of a file.
MAX_ENTRIES, MAX_DEPTH, MAX_LINES, MAX_LINE = 2_000, 8, 16, 65_536
_NEVER = {".git", "node_modules"}


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of agents with sessions at or below *path*; none is ``[]``."""
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
        entries = _entries(folder)[:left]
        left -= len(entries)

        for entry in entries:
            path = folder / entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield path
            elif depth < MAX_DEPTH and entry.name not in _NEVER:
                pending.append((path, depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder but links; nothing of one that cannot be read."""
    try:
        with os.scandir(folder) as listing:
            found = [entry for entry in listing if not entry.is_symlink()]
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)


def _by_content(file: Path) -> list[str]:
    if file.suffix not in (".jsonl", ".json"):
        return []

    named = filter(None, map(_agent_of, _records(file)))
    return list(islice(named, 1))


def _agent_of(record: dict[str, Any]) -> str | None:
    """Return whose log a record is from; None if that is not certain."""
    for agent, (kind, keys) in _RECORDS.items():
        if kind in (None, record.get("type")) and keys <= record.keys():
            return agent

    message = record.get("message")
    if is_object(message) and record.keys() >= _LIKE_CLAUDE:
        return "Qwen Code" if "parts" in message else "Claude Code"
    return None


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of the first lines of a file; none if it cannot be read."""
    if not is_file(file):
        return

    try:
        with file.open("rb") as opened:
            lines = [opened.readline(MAX_LINE) for _ in range(MAX_LINES)]
    except OSError:
        return
    yield from filter(is_object, map(_parsed, lines))


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
