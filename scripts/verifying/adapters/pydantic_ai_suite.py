"""Sequences of operations on `SessionDBConversationStore` and on Pydantic AI's own store.

Pydantic AI has no suite for its stores: the one in memory defines what a store does. Each
sequence has the same operations on both, ours through two objects on one file in turns,
and each result, error and entry has to be the same. Half of the sequences call the
interface of applications, half the primitives of a backend.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.conversation_store import (
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RequestUsage, RunUsage

from sessiondb.adapters.pydantic_ai import SessionDBConversationStore

SEQUENCES, OPERATIONS = 40, 80
CONVERSATIONS = [
    "a",
    "b",
    "a/b",
    "1",
    "=sha256:",
    "",
    "ü💡",
    "x" * 300,
    "\ud800",
    "@",
    "\n",
]
SCOPES = [None, "team", "team/a", "1", "", "\udfff", "y" * 300]
WORDS = [
    "well",
    "",
    "\0",
    "\ud800 half",
    "ü💡",
    "long " * 300,
    '"quoted"\\\n',
    "\x02" + "0" * 64,
]


def _request(random: Random) -> ModelRequest:
    words = random.choice(WORDS)
    picture = BinaryContent(
        random.randbytes(random.choice([3, 2000])), media_type="image/png"
    )
    call_id = random.choice(["call-1", "call-2", "c" * 300, ""])
    parts: list[Any] = random.choices(
        [
            UserPromptPart(words),
            UserPromptPart(
                [words, TextContent("typed", metadata={"n": None}), picture]
            ),
            UserPromptPart([ImageUrl("https://example.org/a.png"), words]),
            SystemPromptPart("Be brief", dynamic_ref="rules"),
            ToolReturnPart("look", words, call_id),
            ToolReturnPart(
                "look", {"lines": [1, None, 1 << 70]}, call_id, metadata={"a": None}
            ),
            ToolReturnPart("look", [words, picture], call_id),
            ToolReturnPart(
                "look", words, call_id, outcome=random.choice(["failed", "denied"])
            ),
            RetryFeedbackPart("Again", retry=RetryInfo("model_retry", attempt=1)),
        ],
        k=random.choice([0, 1, 1, 1, 2, 3]),
    )
    return ModelRequest(parts, instructions=random.choice([None, "Be kind"]))


def _response(random: Random) -> ModelResponse:
    words = random.choice(WORDS)
    call_id = random.choice(["call-1", "call-2"])
    naive = datetime(2020, 2, 3, tzinfo=UTC).replace(tzinfo=None)
    parts: list[Any] = random.choices(
        [
            TextPart(words),
            ThinkingPart(words, signature="sealed"),
            ToolCallPart("look", {"at": [words, None]}, call_id),
            ToolCallPart("look", random.choice(["{}", "{broken", None]), call_id),
            FilePart(BinaryContent(random.randbytes(1500), media_type="image/png")),
            NativeToolCallPart("search", {"for": words}, "native-1"),
            NativeToolReturnPart("search", {"found": words}, "native-1"),
        ],
        k=random.choice([0, 1, 1, 2, 3]),
    )
    usage = RequestUsage(
        input_tokens=random.choice([0, 5, 10]),
        cache_read_tokens=random.choice([0, 0, 7]),
        output_tokens=random.choice([0, 3, 1 << 70]),
        output_reasoning_tokens=random.choice([0, 2]),
        details=random.choice([{}, {"x": 1}]),
    )
    return ModelResponse(
        parts,
        usage=usage,
        model_name=random.choice([None, "large", "m" * 300]),
        provider_name=random.choice([None, "openai"]),
        provider_response_id=random.choice([None, "resp-1", "", "r" * 300]),
        provider_details=random.choice([None, {"n": None, "deep": {"n": [None]}}]),
        finish_reason=random.choice([None, "stop", "tool_call", "content_filter"]),
        timestamp=random.choice(
            [datetime.now(UTC), naive, datetime.min.replace(tzinfo=UTC)]
        ),
    )


def new_messages(random: Random, most: int = 4) -> list[ModelMessage]:
    """Return some messages that are the same after JSON."""
    messages = [
        random.choice([_request, _response])(random)
        for _ in range(random.randint(0, most))
    ]
    dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return ModelMessagesTypeAdapter.validate_python(dumped)


class Twins:
    """The store in memory and ours, on which each operation is performed."""

    def __init__(self, path: Path, random: Random) -> None:
        self.random = random
        # Few in each sequence, so that operations come upon what others left.
        self.names = random.sample(CONVERSATIONS, 5)
        self.scopes = [None, None, *random.sample(SCOPES, 2)]
        self.memory = InMemoryConversationStore()
        self.ours = [
            SessionDBConversationStore(path, durability="normal") for _ in range(2)
        ]
        #: Conversations that an application has, in memory and of ours.
        self.open: list[tuple[Conversation, Conversation]] = []
        #: The entry of ours for each in memory, as both mint ids of their own.
        self.entries: dict[str | None, str | None] = {None: None}

    async def close(self) -> None:
        """Close ours."""
        for store in self.ours:
            await store.close()

    async def both(
        self, call: Callable[[ConversationStore, int], Awaitable[Any]]
    ) -> Any:
        """Return what *call* returns of both, in memory first, or the error of both."""
        results = []
        for number, store in enumerate((self.memory, self.random.choice(self.ours))):
            try:
                results.append(await call(store, number))
            except (UserError, LookupError) as error:
                results.append(type(error))
        same(*[it if isinstance(it, type) else None for it in results])
        return None if isinstance(results[0], type) else results

    def entry_id(self, number: int, entry_id: str | None) -> str | None:
        """Return the id in a store of an entry in memory."""
        return entry_id if number == 0 else self.entries.get(entry_id, "unknown")

    def same_entries(self, theirs: list[ConversationEntry], ours: list[Any]) -> None:
        """Compare entries, whose ids are learned where they are new."""
        same(len(theirs), len(ours))
        for one, other in zip(theirs, ours, strict=True):
            self.entries.setdefault(one.id, other.id)
            same_messages([one.message], [other.message])
            place = (self.entries[one.id], self.entries[one.parent_id])
            same(place, (other.id, other.parent_id))

    def same_records(self, theirs: list[ConversationRecord], ours: list[Any]) -> None:
        """Compare records but for their revisions and times."""
        same(len(theirs), len(ours))
        for one, other in zip(theirs, ours, strict=True):
            expected = dataclasses.replace(
                one,
                head_id=self.entries[one.head_id],
                forked_at=self.entries[one.forked_at],
                branches=[self.entries[tip] for tip in one.branches],
                revision=other.revision,
                updated_at=other.updated_at,
            )
            same(expected, other)

    def keep(self, conversations: Any) -> None:
        """Compare a conversation of both, and keep it for later operations."""
        if conversations is None or conversations[0] is None:
            same(conversations and conversations[1], None)
            return
        theirs, ours = conversations
        same_messages(theirs.messages, ours.messages)
        fields = (
            "conversation_id",
            "usage",
            "deferred_tool_requests",
            "new_message_index",
        )
        for name in fields:
            same(getattr(theirs, name), getattr(ours, name))
        self.open = [(theirs, ours), *self.open[:4]]

    def _recent(self) -> tuple[Conversation, Conversation]:
        """Return mostly the last conversation: earlier ones may be stale."""
        return self.random.choice([*self.open[:1] * 6, *self.open])

    async def perform(self) -> None:
        """Perform one of the operations of an application."""
        operations = [
            self.begin, self.load, self.load, self.extend, self.extend, self.extend, self.rewrite,
            self.serialize, self.branch, self.branch, self.fork, self.list, self.load_entries,
            self.delete, self.read, self.read,
        ]  # fmt: skip
        await self.random.choice(operations)()

    async def begin(self) -> None:
        """Save a conversation under a name that may be taken."""
        name, scope = self.random.choice(self.names), self.random.choice(self.scopes)
        messages = new_messages(self.random)
        pair = tuple(
            Conversation(conversation_id=name, messages=list(messages)) for _ in "12"
        )
        await self._save(pair, scope)

    async def _save(self, pair: Any, scope: str | None) -> None:
        saved = await self.both(lambda store, n: store.save(pair[n], scope=scope))
        if saved is not None:
            self.same_entries(*saved)
            self.keep(pair)

    async def load(self) -> None:
        """Load a conversation, or its end."""
        name, scope = (
            self.random.choice(self.names),
            self.random.choice([None, *self.scopes]),
        )
        limit = self.random.choice([None, None, 0, 1, 3, -1])
        self.keep(
            await self.both(lambda store, _: store.load(name, limit=limit, scope=scope))
        )

    async def extend(self) -> None:
        """Add messages to a conversation that may be stale, and save it."""
        if not self.open:
            return
        pair = self._recent()
        messages = new_messages(self.random)
        is_paused = self.random.random() < 0.1
        for conversation in pair:
            conversation.messages.extend(messages)
            conversation.usage = RunUsage(requests=len(conversation.messages))
            conversation.deferred_tool_requests = None
            if is_paused:
                call = ToolCallPart("ask", {"n": None}, "call-1")
                conversation.deferred_tool_requests = DeferredToolRequests(
                    approvals=[call]
                )
        await self._save(pair, self.random.choice([None, None, *self.scopes]))

    async def rewrite(self) -> None:
        """Change a message in the middle, which is saved as a branch."""
        if not self.open:
            return
        pair = self._recent()
        at = self.random.randint(0, len(pair[0].messages))
        messages = new_messages(self.random, 2)
        forgets = self.random.random() < 0.5
        for conversation in pair:
            conversation.messages[at:] = messages
            if forgets:
                conversation.new_message_index = None
        await self._save(pair, None)

    async def serialize(self) -> None:
        """Replace a conversation by what is left of it after JSON."""
        if self.open:
            pair = [
                ConversationTypeAdapter.validate_python(
                    ConversationTypeAdapter.dump_python(conversation)
                )
                for conversation in self._recent()
            ]
            self.keep(pair)

    async def branch(self) -> None:
        """Continue from an earlier message, or from a branch that was left."""
        if not self.open:
            return
        pair = self._recent()
        at, entry = self._place(len(pair[0].messages))
        self.keep(
            await self.both(
                lambda store, n: store.branch(
                    pair[n].conversation_id,
                    at=at,
                    from_entry=self.entry_id(n, entry),
                    expected_revision=pair[n].revision,
                )
            )
        )

    def _place(self, length: int) -> tuple[int | None, str | None]:
        at = self.random.randint(0, length + 1)
        entry = self.random.choice([None, *self.entries][-30:])
        return self.random.choice([(at, None), (None, entry)])

    async def fork(self) -> None:
        """Fork a conversation under a name that may be taken."""
        original, name = self.random.choices(self.names, k=2)
        if self.open and self.random.random() < 0.7:
            original = self._recent()[0].conversation_id
        at, entry = self.random.choice([(None, None), self._place(4)])
        scope = self.random.choice(self.scopes)
        self.keep(
            await self.both(
                lambda store, n: store.fork(
                    original, at=at, from_entry=self.entry_id(n, entry),
                    new_conversation_id=name, scope=scope,
                )
            )
        )  # fmt: skip

    async def list(self) -> None:
        """List conversations."""
        scope, limit = (
            self.random.choice(self.scopes),
            self.random.choice([None, 0, 2, 5]),
        )
        listed = await self.both(
            lambda store, _: store.list_conversations(scope=scope, limit=limit)
        )
        self.same_records(*listed)

    async def load_entries(self) -> None:
        """Load the entries of a conversation."""
        name = self.random.choice(self.names)
        limit = self.random.choice([None, 0, 1, 3])
        loaded = await self.both(lambda store, _: store.load_entries(name, limit=limit))
        same(loaded[0] is None, loaded[1] is None)
        if loaded[0] is not None:
            self.same_entries(*loaded)

    async def delete(self) -> None:
        """Delete a conversation, if it is of a scope."""
        name, scope = self.random.choice(self.names), self.random.choice(self.scopes)
        await self.both(lambda store, _: store.delete(name, scope=scope))

    async def read(self) -> None:
        """Read an entry, or the history before it, which may be deleted."""
        entry = self.random.choice(list(self.entries)[-60:])
        limit = self.random.choice([None, 1, 2])
        histories = await self.both(
            lambda store, n: store.read_history(self.entry_id(n, entry), limit=limit)
        )
        if histories is not None:
            self.same_entries(*histories)


class Primitives(Twins):
    """The same for the primitives of a backend, whose arguments have all ids."""

    def __init__(self, path: Path, random: Random) -> None:
        super().__init__(path, random)
        self.number = 0

    async def perform(self) -> None:
        """Perform one of the primitives."""
        operations = [self.write, self.write, self.write, self.remove, self.compare]
        await self.random.choice(operations)()

    async def _record(self) -> tuple[str, ConversationRecord | None]:
        name = self.random.choice(self.names)
        records = await self.both(lambda store, _: store.read_record(name))
        same(*records)
        return name, records[0]

    async def _is_stored(self, entry_id: str) -> bool:
        try:
            await self.memory.read_entry(entry_id)
        except LookupError:
            return False
        return True

    async def write(self) -> None:
        """Write a record that continues from any entry, of any conversation."""
        name, record = await self._record()
        parent: Any = self.random.choice(
            [record and record.head_id, *self.entries, "unknown"]
        )
        is_stored = parent is None or await self._is_stored(parent)
        if not is_stored:
            parent = self.random.choice([None, parent])
            is_stored = parent is None
        new_entries = []
        head = parent
        for message in new_messages(self.random, 3):
            self.number += 1
            entry_id = self.random.choice(["", "=sha256:", "\n", "\ud800", "z" * 300])
            entry = ConversationEntry(
                id=f"{entry_id}{self.number}", parent_id=head, message=message
            )
            new_entries.append(entry)
            head = entry.id
        revision = record.revision if record else None
        updated = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=self.random.randint(0, 3000)
        )
        tips = [record.head_id] if record and record.head_id else []
        written = ConversationRecord(
            conversation_id=name,
            head_id=head,
            scope=self.random.choice(self.scopes),
            branches=[*(record.branches if record else []), *tips],
            updated_at=self.random.choice([updated, datetime.now(UTC)]),
        )
        if not is_stored:
            # In memory an entry without its parent would be kept.
            new_entries = []
            written.head_id = parent
        expected = self.random.choice([revision, revision, revision, None, "stale"])
        done = await self.both(
            lambda store, _: store.write_record(
                written, new_entries=new_entries, expected_revision=expected
            )
        )
        if done is not None:
            self.entries |= {entry.id: entry.id for entry in new_entries}

    async def remove(self) -> None:
        """Delete a record, if it is the one that is there."""
        if self.random.random() < 0.5:
            return
        name, record = await self._record()
        revision = self.random.choice([record.revision if record else "stale", "stale"])
        await self.both(
            lambda store, _: store.delete_record(name, expected_revision=revision)
        )

    async def compare(self) -> None:
        """Compare the records of a scope, and an entry."""
        scope, limit = self.random.choice(self.scopes), self.random.choice([None, 0, 2])
        same(
            *await self.both(
                lambda store, _: store.read_records(scope=scope, limit=limit)
            )
        )
        entry = self.random.choice([*self.entries, "unknown"])
        entries = await self.both(lambda store, _: store.read_entry(entry or "unknown"))
        if entries is not None:
            self.same_entries([entries[0]], [entries[1]])


def same(theirs: Any, ours: Any) -> None:
    """Raise `AssertionError` unless two values are equal."""
    assert theirs == ours, f"in memory {theirs!r:.600}, ours {ours!r:.600}"


def same_messages(theirs: list[ModelMessage], ours: list[ModelMessage]) -> None:
    """Compare messages, and their JSON, which has what `==` leaves out."""
    same(theirs, ours)
    same(
        ModelMessagesTypeAdapter.dump_python(theirs, mode="json"),
        ModelMessagesTypeAdapter.dump_python(ours, mode="json"),
    )


async def run_sequence(
    kind: type[Twins], seed: int, path: Path, operations: int
) -> None:
    """Run one sequence; raises `AssertionError` at the first difference."""
    twins = kind(path, Random(seed))  # noqa: S311  the same operations each time
    try:
        for _ in range(operations):
            await twins.perform()
    finally:
        await twins.close()


async def main() -> None:
    """Run every sequence, and print the counts."""
    failures = []
    for kind in (Twins, Primitives):
        for seed in range(SEQUENCES):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    await run_sequence(kind, seed, Path(folder, "a.db"), OPERATIONS)
                except AssertionError as error:
                    failures.append(f"{kind.__name__} {seed}: {error}")
    print(2 * SEQUENCES - len(failures), len(failures), 0)
    print(*failures, sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
