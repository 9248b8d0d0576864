"""A fork, and an export, at any answer of the stores of every agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sessiondb import ALL, Message, Store
from sessiondb.cli.around import with_results
from sessiondb.formats import find

pytestmark = pytest.mark.slow

STORES = [
    "claude-code-2.1.329", "codex-0.169.0", "gemini-cli-0.61.0", "goose-1.34.0",
    "llm-0.36", "oh-my-pi-18.2.3", "openai-agents-0.24.0", "opencode-2.0.15",
    "pi-0.87.1", "qwen-code-0.24.4",
]  # fmt: skip


@pytest.mark.parametrize("name", STORES)
def test_what_ends_at_an_answer_has_the_results_of_its_calls(
    name: str, store: Store, real_store: Callable[[str], Path]
) -> None:
    for source in find(real_store(name) / "data"):
        list(store.ingest(source.read()))
    number = 0
    for session in store.sessions(project=ALL, subagents=True, limit=1000):
        messages = store.messages(session, branches=True)
        stored = calls_of(messages)
        for message in messages:
            if message.purpose != "answer" or not calls_of([message]):
                continue
            end = with_results(store, session, message)
            copies = store.messages(store.fork(session, at=end))
            kept = calls_of(copies)
            assert kept == {place: stored[place] for place in kept}
            assert calls_of([message]).keys() <= kept.keys()
            # An export at the place is what the fork has.
            exported = list(store.export(session, at=end).messages)
            assert [content(m) for m in exported] == [content(m) for m in copies]
            number += 1
    assert number >= 9


def calls_of(messages: Iterable[Message]) -> dict[tuple[int, int], tuple[object, ...]]:
    """Return how each call ended, by its place."""
    return {
        (message.seq, part.idx): (part.call_id, part.status, part.outcome, part.text)
        for message in messages
        for part in message.parts
        if part.type == "tool"
    }


def content(message: Message) -> tuple[object, ...]:
    """Return what a copy has in common with its original."""
    parts = [(p.type, p.tool, p.status, p.outcome, p.text) for p in message.parts]
    return (message.seq, message.parent_seq, message.id, message.role, parts)
