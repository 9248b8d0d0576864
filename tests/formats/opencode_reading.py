"""Reads a complete store for a test."""

from __future__ import annotations

from pathlib import Path

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
