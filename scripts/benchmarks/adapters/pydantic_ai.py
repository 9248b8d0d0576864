"""Pydantic AI's conversations beside its own stores.

Theirs is `SqliteConversationStore` of pydantic-ai-harness, if that is installed: the
only one on disk, which is no `ConversationStore`. It rewrites all messages at each save,
has one line of history, and copies a conversation by saving it under another id. Else
it is `InMemoryConversationStore`, which writes nothing to a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from benchmarks.adapters.timing import Timings
from sessiondb.adapters.pydantic_ai import SessionDBConversationStore

TURNS, CONVERSATIONS, ROUNDS = 400, 200, 15
LINE = "The parser reads each line of the log and keeps those that match the pattern. "
OPERATIONS = (
    "save a new one of 2",
    "save 1 message", "save a turn of 4", "load 400 turns", "load last 50", "list 200",
    "fork 400 turns", "branch back", "delete",
)  # fmt: skip


def turn(number: int) -> list[ModelMessage]:
    """Return a prompt, a call, its result and an answer."""
    usage = RequestUsage(input_tokens=1200, output_tokens=80)
    call = ToolCallPart("bash", {"command": f"pytest -k {number}"}, f"call-{number}")
    return [
        ModelRequest([UserPromptPart(f"Question {number}: {LINE}")]),
        ModelResponse(
            [TextPart("I run the tests."), call], usage=usage, model_name="large"
        ),
        ModelRequest([ToolReturnPart("bash", LINE * 8, f"call-{number}")]),
        ModelResponse([TextPart(LINE * 4)], usage=usage, model_name="large"),
    ]


class Conversations:
    """A `ConversationStore`."""

    def __init__(self, store: ConversationStore) -> None:
        self.store = store
        self.saved: dict[str, Conversation] = {}

    async def save(self, name: str, messages: Sequence[ModelMessage]) -> None:
        """Add messages to a conversation."""
        conversation = self.saved.setdefault(name, Conversation(conversation_id=name))
        conversation.messages.extend(messages)
        await self.store.save(conversation, scope="bench")

    async def load(self, name: str, limit: int | None = None) -> int:
        """Return how many messages a conversation has."""
        conversation = await self.store.load(name, limit=limit)
        assert conversation is not None
        return len(conversation.messages)

    async def list(self) -> int:
        """Return how many conversations there are, at most 200."""
        return len(await self.store.list_conversations(scope="bench", limit=200))

    async def fork(self, name: str, new_name: str) -> None:
        """Copy a conversation."""
        forked = await self.store.fork(name, new_conversation_id=new_name)
        self.saved[new_name] = forked

    async def branch(self, name: str, at: int) -> None:
        """Continue a conversation from an earlier message."""
        self.saved[name] = await self.store.branch(
            name, at=at, expected_revision=self.saved[name].revision
        )

    async def delete(self, name: str) -> None:
        """Remove a conversation."""
        await self.store.delete(name)

    async def reopen(self, path: Path) -> None:
        """Close a store that is on disk, and open it again."""
        if isinstance(self.store, SessionDBConversationStore):
            await self.store.close()
            self.store = SessionDBConversationStore(path)

    async def close(self) -> None:
        """Close a store that is on disk."""
        if isinstance(self.store, SessionDBConversationStore):
            await self.store.close()


class HarnessConversations:
    """`SqliteConversationStore` of pydantic-ai-harness."""

    def __init__(self, path: Path) -> None:
        from pydantic_ai_harness.step_persistence import conversations

        self.store = conversations.SqliteConversationStore(database=path)
        self.new_summary: Any = conversations.ConversationSummary
        self.saved: dict[str, tuple[Any, list[ModelMessage]]] = {}

    async def save(self, name: str, messages: Sequence[ModelMessage]) -> None:
        """Add messages to a conversation."""
        new = self.new_summary(id=name, workspace="/")
        summary, before = self.saved.get(name, (new, []))
        complete = [*before, *messages]
        saved = await self.store.save(summary=summary, messages=complete)
        self.saved[name] = saved, complete

    async def load(self, name: str, limit: int | None = None) -> int:
        """Return how many messages a conversation has; all of them are read."""
        conversation = await self.store.get(conversation_id=name)
        return len(conversation.messages[-(limit or 0) :])

    async def list(self) -> int:
        """Return how many conversations there are, at most 200."""
        return len(await self.store.listing(limit=200))

    async def fork(self, name: str, new_name: str) -> None:
        """Copy a conversation: there is no operation for it."""
        original = await self.store.get(conversation_id=name)
        await self.save(new_name, original.messages)

    async def branch(self, name: str, at: int) -> None:
        """Continue from an earlier message, without those that came after it."""
        summary, _ = self.saved[name]
        loaded = await self.store.get(conversation_id=name)
        kept = loaded.messages[:at]
        saved = await self.store.save(summary=replace(summary), messages=kept)
        self.saved[name] = saved, kept

    async def delete(self, name: str) -> None:
        """Remove a conversation."""
        await self.store.delete(source=self.saved[name][0])

    async def reopen(self, path: Path) -> None:
        """Do nothing: each operation has a connection of its own."""

    async def close(self) -> None:
        """Do nothing as well."""


def store_of(kind: str, path: Path) -> Conversations | HarnessConversations:
    """Return the store to be measured."""
    if kind == "ours":
        return Conversations(SessionDBConversationStore(path))
    if find_spec("pydantic_ai_harness") is not None:
        return HarnessConversations(path)
    return Conversations(InMemoryConversationStore())


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Perform each operation on one store."""
    path = folder / "conversations.db"
    store = store_of(kind, path)
    for number in range(CONVERSATIONS):
        with timings.of("save a new one of 2"):
            await store.save(f"small {number}", turn(number)[:2])
    await store.save("large", [it for n in range(TURNS) for it in turn(n)])
    length = 4 * TURNS
    for number in range(ROUNDS):
        with timings.of("save 1 message"):
            await store.save("large", turn(number)[:1])
        with timings.of("save a turn of 4"):
            await store.save("large", turn(number))
        length += 5
        with timings.of("load 400 turns"):
            assert await store.load("large") == length
        with timings.of("load last 50"):
            assert await store.load("large", 50) == 50
        with timings.of("list 200"):
            assert await store.list() == 200
    # Before the forks: where ours has a branch, theirs has lost what came after it.
    await store.reopen(path)
    if path.exists():
        timings.bytes(path)
    for number in range(5):
        with timings.of("fork 400 turns"):
            await store.fork("large", f"fork {number}")
        with timings.of("branch back"):
            await store.branch(f"fork {number}", length // 2)
    for number in range(ROUNDS):
        with timings.of("delete"):
            await store.delete(f"small {number}")
    await store.close()
