"""Records: what reads return.

Times are Unix milliseconds, costs USD, and unknown is None, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from sessiondb.dataclass import dataclass, field
from sessiondb.model.damage import damaged
from sessiondb.model.purposes import purpose_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one answer or of a sum; None is unknown.

    They are disjoint: ``input`` is without the cache, ``output`` without reasoning.
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None

    @property
    def known(self) -> bool:
        """True when at least one count is known."""
        return any(count is not None for count in self.columns())

    def columns(
        self,
    ) -> tuple[int | None, int | None, int | None, int | None, int | None]:
        """Return the counts in column order."""
        return (
            self.input,
            self.output,
            self.reasoning,
            self.cache_read,
            self.cache_write,
        )


#: The type of a part that is a source of the context; see `ContextSource`.
SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Part:
    """A typed piece of a message. Times in Unix ms, None while unknown.

    For a tool part ``text`` is the call's result and ``input_json`` its
    arguments as JSON text (`input` decodes them). ``synthetic`` is true if a program
    added it to what its user typed. ``data`` holds what has no column; ``{}`` when
    there is nothing.
    """

    idx: int
    id: str
    type: str
    tool: str | None
    call_id: str | None
    status: str | None
    outcome: str | None
    title: str | None
    input_json: str | None
    text: str | None
    data: Mapping[str, Any]
    inherited: bool
    time_created: int
    time_updated: int
    time_started: int | None
    time_ended: int | None
    synthetic: bool

    @property
    def input(self) -> Any:
        """The call's arguments, decoded; None when there are none.

        Raises `CorruptionError` where the file is damaged.
        """
        try:
            return None if self.input_json is None else json.loads(self.input_json)
        except (ValueError, RecursionError) as error:
            raise damaged(f"the input of part {self.id}", error) from error


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a session's tree, with its parts in order.

    ``cost`` in USD, times in Unix ms, None unknown; ``time_completed`` is None while
    the message is open. ``parts`` is empty where it has none.
    """

    session_id: str
    seq: int
    id: str
    parent_seq: int | None
    turn_id: str | None
    role: str
    kind: str | None
    agent: str | None
    provider_id: str | None
    model_id: str | None
    response_id: str | None
    usage_key: str | None
    usage_name: str | None
    cost: float | None
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    finish: str | None
    error: Any
    inherited: bool
    time_created: int
    time_completed: int | None
    data: Mapping[str, Any]
    parts: tuple[Part, ...]

    @property
    def tokens(self) -> Tokens | None:
        """The five counts, or None when none is known."""
        tokens = Tokens(
            self.tokens_input,
            self.tokens_output,
            self.tokens_reasoning,
            self.tokens_cache_read,
            self.tokens_cache_write,
        )
        return tokens if tokens.known else None

    @property
    def purpose(self) -> str:
        """Its purpose in the conversation: one of `PURPOSES`."""
        return purpose_of(self)

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; ``""`` when there are none."""
        return "\n".join(p.text for p in self.parts if p.type == "text" and p.text)

    @property
    def is_system(self) -> bool:
        """Whether it holds system texts, and is not part of the conversation."""
        return self.role == "system" or (
            self.role == "event" and self.kind == "context"
        )

    @property
    def context_texts(self) -> tuple[str, ...]:
        """The texts that an event gives a model.

        Sources may be recorded with their content beside a text that is made of them:
        theirs count if there are no others.
        """
        typed_texts = [(part.type, part.text) for part in self.parts if part.text]
        texts = tuple(text for type_, text in typed_texts if type_ != SOURCE)
        return texts or tuple(text for _, text in typed_texts)


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation.

    ``cost`` (USD) and the token sums are its own, without what a fork inherited; None
    is unknown, never 0. ``prompt_count`` counts what the user typed, on all branches;
    ``message_count`` all messages. Times in Unix ms. ``title`` is ``""`` until there is
    one, ``leaf_seq`` None until there is a message. ``model_source`` says who set the
    model: the ``caller`` or the imported ``source``; ``derived`` is that of
    the last answer. ``time_imported`` is None for a session made here, and
    ``namespace`` empty if its ``source_id`` is unique everywhere. ``scope`` is the
    caller's own key for lists, None without one.
    """

    id: str
    project_id: str | None
    parent_id: str | None
    relation: str | None
    parent_seq: int | None
    call_id: str | None
    parent_source_id: str | None
    root_id: str
    slug: str
    title: str
    title_source: str
    directory: str | None
    version: str | None
    source: str
    source_id: str | None
    namespace: str
    scope: str | None
    agent: str | None
    provider_id: str | None
    model_id: str | None
    model_source: str
    leaf_seq: int | None
    last_seq: int
    revision: int
    message_count: int
    prompt_count: int
    cost: float | None
    cost_inherited: float | None
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    summary_additions: int | None
    summary_deletions: int | None
    summary_files: int | None
    summary_diffs: Any
    share_url: str | None
    revert: Any
    permission: Any
    metadata: Mapping[str, Any]
    time_created: int
    time_updated: int
    time_compacting: int | None
    time_archived: int | None
    time_imported: int | None
    time_detached: int | None
    data: Mapping[str, Any]

    @property
    def required_directory(self) -> str:
        """The directory, for a program that requires one: without one it is ``/``."""
        return self.directory or "/"

    @property
    def tokens(self) -> Tokens:
        """The five sums."""
        return Tokens(
            self.tokens_input,
            self.tokens_output,
            self.tokens_reasoning,
            self.tokens_cache_read,
            self.tokens_cache_write,
        )


@dataclass(frozen=True, slots=True)
class Project:
    """A worktree root on disk; every session belongs to one. Times in Unix ms.

    ``metadata`` has the own record of each source that keeps one, by the source's name.
    """

    id: str
    worktree: str
    vcs: str | None
    remote: str | None
    root_commit: str | None
    name: str | None
    metadata: Mapping[str, Any]
    time_created: int
    time_updated: int
    permission: Any = None
    time_initialized: int | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; iterate it. No match is an empty page.

    ``next_cursor`` is None on the last page, else the value of ``cursor=`` that
    continues.

    ``sizes`` are the bytes of each session where they were ordered by size, else empty.
    ``searched_to`` is the time (Unix ms) of the last text that a search read which no
    index could answer, and None of everything else, or if it has read all of them; such
    a page may be empty and have a next one.
    """

    items: tuple[T, ...]
    next_cursor: str | None = None
    sizes: tuple[int, ...] = ()
    searched_to: int | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Todo:
    """One line of a session's todo list; its times (Unix ms) are not compared."""

    content: str
    status: str = "pending"
    priority: str | None = None
    id: str | None = None
    time_created: int | None = field(default=None, compare=False)
    time_updated: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a file changed: in the turn of message *seq*, or (0) in the session.

    ``before`` and ``after`` are the complete contents if known.
    """

    path: str
    seq: int = 0
    patch: str | None = None
    additions: int | None = None
    deletions: int | None = None
    before: bytes | None = None
    after: bytes | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A user's name for message *seq* of a session; one message each."""

    session_id: str
    seq: int
    label: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line of the prompt history; ``time_created`` in Unix ms."""

    id: str
    text: str
    directory: str | None
    project_id: str | None
    session_id: str | None
    source: str
    time_created: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; ``seq`` and ``message_id`` say where to read.

    ``snippet`` has the words between ``‹`` and ``›``.
    """

    session: Session
    seq: int | None
    message_id: str | None
    snippet: str


@dataclass(frozen=True, slots=True)
class MessageNode:
    """A message of a tree, without its parts.

    ``preview`` is its first 80 characters.
    """

    seq: int
    parent_seq: int | None
    id: str
    role: str
    kind: str | None
    on_path: bool
    preview: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A session with its forks and subagents.

    ``messages`` are empty but for the session asked for, if they were asked for.
    """

    session: Session
    children: tuple[Tree, ...]
    messages: tuple[MessageNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Messages that two sessions share, and those that only one has, as live paths."""

    common: tuple[Message, ...]
    only_a: tuple[Message, ...]
    only_b: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """The sessions that a delete would remove, and the forks it would detach.

    ``bytes`` is about what the file gets back: rows, index entries, the share of the
    search index, and the blobs that no session outside of the plan refers to.
    """

    sessions: tuple[Session, ...]
    detached: tuple[Session, ...]
    messages: int
    parts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model, and the provider if it is known; ``str()`` is ``provider/model``."""

    model_id: str
    provider_id: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.provider_id}/{self.model_id}" if self.provider_id else self.model_id
        )


@dataclass(frozen=True, slots=True)
class ContextSource:
    """A file or text that a program gave a model as context, as it recorded it.

    ``kind`` is the program's own word, such as ``file``, ``title`` a name or path.
    ``error`` says why a source could not be read; ``text`` is its content. None is
    unknown, a value of another type than its field included.
    """

    kind: str | None = None
    path: str | None = None
    scope: str | None = None
    hash: str | None = None
    truncated: bool | None = None
    error: Any = None
    text: str | None = None
    title: str | None = None


#: The fields of a `ContextSource` that are keys of the input of its part.
SOURCE_KEYS = ("kind", "path", "scope", "hash", "truncated", "error")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A session without a living writer, with the ids of what was left open."""

    session: Session
    messages: tuple[str, ...]
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A commit touched this session: read its messages after ``since_seq``.

    ``cursor`` is an opaque string, the place of this change in the feed of its
    database: pass it to `changes` as ``since=`` to continue after it. On a server a
    subscriber may receive a change with an earlier place, after which another
    transaction may still commit; `changes` then lists the change again. ``deleted``
    sessions cannot be read; one that is created again under its id is another change,
    from ``since_seq`` 0.
    """

    cursor: str
    session_id: str
    revision: int
    last_seq: int
    since_seq: int
    deleted: bool = field(default=False)
