"""Reads a complete store for a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessiondb.formats import find
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession

Found = tuple[dict[str, SourceSession], list[Problem]]


def read(path: Path) -> Found:
    sessions, problems = {}, []
    for store in find(path):
        for item in store.read():
            if isinstance(item, Problem):
                problems.append(item)
            else:
                sessions[item.source_id] = item
    return sessions, problems


def drafts(source: SourceSession) -> list[MessageDraft]:
    return [item.draft for item in source.messages if isinstance(item, SourceMessage)]


def problems_in(source: SourceSession) -> list[str]:
    return [item.why for item in source.messages if isinstance(item, Problem)]


def one(path: Path) -> SourceSession:
    sessions, problems = read(path)
    assert not problems
    (source,) = sessions.values()
    return source


def session_diff(source: SourceSession) -> list[Any]:
    """Return the list of ``session_diff`` that the diffs of a session were read from."""
    assert source.diffs is not None
    diffs = {diff.path: diff for diff in source.diffs}
    items = []
    for rest in source.data.get("session_diff", []):
        if isinstance(rest, list):
            items += rest
            continue
        diff = diffs.pop(rest["file"])
        item = dict(rest)
        for name in ("patch", "additions", "deletions"):
            if getattr(diff, name) is not None:
                item[name] = getattr(diff, name)
        for name in ("before", "after"):
            if getattr(diff, name) is not None:
                item[name] = getattr(diff, name).decode("utf-8", "surrogatepass")
        items.append(item)

    assert not diffs
    return items
