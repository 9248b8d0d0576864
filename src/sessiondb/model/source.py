"""Sources: what the reader of a foreign format yields, parents before children.

A reader knows nothing of the database. It yields a `SourceSession` for each
session it finds, whose ``messages`` may be lazy, a `SourceHistory` for prompts
that are kept beside them, and a `Problem` for each record that it could not
read; it never aborts a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from sessiondb.dataclass import dataclass, field
from sessiondb.model.draft import MessageDraft
from sessiondb.model.records import FileDiff, Prompt, Todo
from sessiondb.model.versions import Version
from sessiondb.words import count

if TYPE_CHECKING:
    from sessiondb.model.export import ExtensionRow

#: Keys of the event of a session's sum: the total that its program states, by column,
#: and the last message that the session copied, which is not in that total.
STATED_TOTAL, TOTAL_AFTER = "stated_total", "total_after"
#: The key of one of several such events of a session: the time, in Unix ms, since which
#: its total counts the messages of the session and of its subagents.
TOTAL_SINCE = "total_since"


def sum_event_id(source_id: str) -> str:
    """Return the id of the event with what a session cost besides its messages."""
    return f"{source_id}/usage"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that could not be read.

    ``line`` is None for a complete file. One that ``is_torn`` is where a file ends
    before a line is complete: a program may still be writing it. ``number`` is how
    many problems it stands for, more than one for those that are only counted.
    """

    source: str
    why: str
    line: int | None = None
    is_torn: bool = False
    number: int = 1


#: Problems of one log or session that are kept; of further ones only the number is.
MOST_PROBLEMS = 1000


class Problems(list[Problem]):
    """Problems of one log or session: the first ones, then how many there are besides.

    A damaged file may have a problem on each of its lines, and must not fill the
    memory. Counts of another log or reader are added up.
    """

    def append(self, problem: Problem) -> None:
        """Add a problem, or count it."""
        # In the place of a count of one the problem itself is as short.
        if len(self) <= MOST_PROBLEMS:
            super().append(problem)
            return

        number = self[MOST_PROBLEMS].number + problem.number
        reason = count(number, "further problem")
        self[MOST_PROBLEMS] = Problem(problem.source, reason, number=number)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems, or count them."""
        for problem in problems:
            self.append(problem)

    def __iadd__(self, more: Iterable[Problem]) -> Self:  # type: ignore[misc,override]
        self.extend(more)
        return self


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message's state in the database it comes from.

    ``seq`` is kept if it is free. ``usage_name`` is the name in the usage key; None: it
    is the ``response_id``, or the id.
    """

    seq: int
    usage_key: str | None = None
    usage_name: str | None = None
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session's state in the database it comes from: an import makes the same row.

    ``native`` sessions have no id of another program: their ``source_id`` is ``id`` and
    not stored. Without ``time_imported`` it was made by a program that writes here,
    with or without a name of its own. ``leaf`` is a message's id, None for no leaf.
    ``labels`` are (message id, label), ``prompts`` are without project and session.
    ``versions`` says of each field that may change, and of one that was taken away,
    when it came to be so (see `model.versions`); one that it does not name has
    ``revision``. ``diff_messages`` are the ids of the messages that the diffs belong
    to, in their order. ``seen`` is a digest of the ids of all messages, ``deleted`` the
    version of its last deletion, with what that had seen.
    """

    id: str
    native: bool
    slug: str | None = None
    root_id: str | None = None
    parent_id: str | None = None
    parent_seq: int | None = None
    leaf: str | None = None
    last_seq: int = 0
    revision: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    time_imported: int | None = None
    time_detached: int | None = None
    model_source: str | None = None
    prompts: tuple[Prompt, ...] = ()
    versions: Mapping[str, Version] = field(default_factory=dict)
    diff_messages: tuple[str | None, ...] = ()
    seen: str = ""
    deleted: Version | None = None

    @property
    def is_deleted(self) -> bool:
        """Return whether the log holds nothing that its deletion had not seen."""
        deletion = self.deleted
        return (
            deletion is not None
            and deletion.revision > self.revision
            and deletion.digest == self.seen
        )

    def buried_as(self, source_id: str, namespace: str) -> tuple[str, str]:
        """Return the name of its tombstone: an import's at its source, else the id."""
        is_own = self.time_imported is None
        return (self.id, "") if is_own else (source_id, namespace)


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One message of a foreign session.

    ``parent`` is the id of the message before it in the tree, ``...`` for the one
    yielded just before (the usual case) and None for a root. ``usage_id`` is what stays
    the same when the record is copied (a response id, else the original's message id),
    for counting once; None is the message's id, in the namespace of its session. A
    ``timeless`` message is the same at any time: its program gives copies new times.
    ``alias`` is the id of our message that the record itself says it was, for an import
    of one that was written for the program and has another id there. ``labels`` are
    names given to it, ``unlabelled`` those that its program took back. An ``open``
    message is not complete yet; any other is when it is created, unless it says when.
    With ``stored`` it is written as it was.
    """

    draft: MessageDraft
    parent: str | Any | None = ...
    usage_id: str | None = None
    labels: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    alias: str | None = None
    open: bool = False
    stored: StoredMessage | None = None
    timeless: bool = False


@dataclass(frozen=True, slots=True)
class SourceProject:
    """A project as a source describes it; None is unknown, times are in Unix ms.

    ``sandboxes`` are further directories of the project, as absolute paths; those
    that belong to a project already are left alone. ``record`` is the source's own
    record, kept in ``metadata`` under the name of the source.
    """

    name: str | None = None
    permission: Any = None
    sandboxes: tuple[str, ...] = ()
    time_created: int | None = None
    time_initialized: int | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TerminalUse:
    """A terminal and directory in which a session was the one used last.

    ``terminal`` is the name that the source gives the terminal, ``directory`` absolute,
    ``time`` in Unix ms.
    """

    terminal: str
    directory: str
    time: int


@dataclass(frozen=True, slots=True)
class SourceSession:
    """One session of a foreign store.

    ``source_id`` is the agent's own id, unique in ``namespace``: empty for ids that are
    unique everywhere, else the text of a `Namespace`, which distinguishes the session
    from those of other stores. ``digest`` changes whenever anything of the session
    changed (cheap to make: at most its first message is read for it). ``path`` and
    ``size``, ``mtime_ns`` describe the file it was read from, for the ledger.
    ``worktree`` is the project's root as the source names it, ``project`` what else it
    says of that project. A session ``may_move`` if its program moves sessions, and
    ``directory`` is where this one is now. ``leaf`` is the id of the message the
    session continues from; None is the last one. ``data`` keeps what has no column.
    ``parent_source_id`` with ``relation`` names the parent; ``parent_message`` the id
    of the parent's message it starts from. ``terminals`` is where it was used last;
    they may change without the digest. With ``stored`` the session comes from one of
    sessiondb's databases, and so do all of its messages.

    ``alias`` is the id here of a session that was written for the program, if that gave
    it an id of its own, or if the file is another form of the program's own session:
    its new messages belong to the session of that id.

    ``message_count`` is stated for a session that its program may have in several
    places, as in a database and an export of it. A state whose ``time_updated`` is
    before that of the last import, or the same with fewer messages, is passed over. One
    that ``is_excerpt`` is an export that has less than the program's own store: it is
    passed over too if it states the time and the number of messages that are here.

    ``extension_rows`` is what programs added to it in tables of their own, and may be
    lazy.

    A session in a file of its own may be yielded after a look at the beginning of that
    file. ``complete`` then reads the rest, and returns the session with everything that
    it says, under the same name, path and digest; it is called only for a session that
    changed, after further sessions were yielded, and maybe after its reader has ended.
    For one that cannot be read it raises `SourceError`, OSError, or ValueError with the
    end of a sentence about the session.
    """

    source: str
    source_id: str
    path: str
    digest: str
    messages: Iterable[SourceMessage | Problem] = ()
    title: str = ""
    title_source: str = "agent"
    directory: str = ""
    may_move: bool = False
    worktree: str | None = None
    vcs: str | None = None
    root_commit: str | None = None
    remote: str | None = None
    version: str | None = None
    agent: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    parent_source_id: str | None = None
    relation: str | None = None
    parent_message: str | None = None
    call_id: str | None = None
    leaf: str | None = None
    share_url: str | None = None
    revert: Any = None
    permission: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    summary_additions: int | None = None
    summary_deletions: int | None = None
    summary_files: int | None = None
    summary_diffs: Any = None
    todos: tuple[Todo, ...] | None = None
    diffs: tuple[FileDiff, ...] | None = None
    time_created: int | None = None
    time_updated: int | None = None
    time_compacting: int | None = None
    time_archived: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    scope: str | None = None
    stored: StoredSession | None = None
    project: SourceProject | None = None
    terminals: tuple[TerminalUse, ...] = ()
    namespace: str = ""
    alias: str | None = None
    message_count: int | None = None
    is_excerpt: bool = False
    complete: Callable[[], SourceSession] | None = None
    extension_rows: Iterable[ExtensionRow | Problem] = ()


@dataclass(frozen=True, slots=True)
class SourcePrompt:
    """One line of a prompt history; ``time_created`` in Unix ms.

    ``session`` is the agent's own id of the session that it was typed in, ``directory``
    the one of that time; None is unknown.
    """

    text: str
    time_created: int
    session: str | None = None
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """The prompt history that a program keeps beside its sessions.

    A reader yields it after its sessions: a prompt that a session has already is not
    imported twice. ``prompts`` are in the order of ``path``, and may be lazy; they are
    read only if ``digest`` or a session changed.
    """

    source: str
    path: str
    digest: str
    prompts: Iterable[SourcePrompt | Problem] = ()


@dataclass(frozen=True, slots=True)
class SourceValue:
    """A value of another database of sessiondb, as its row has it.

    ``value`` is JSON text, ``content`` bytes, and one of them None; ``ttl`` is in ms.
    """

    namespace: str
    key: str
    ttl: int | None
    time_created: int
    time_updated: int
    time_expires: int | None
    value: str | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class SourceValues:
    """The values of another database; they may be lazy."""

    path: str
    values: Iterable[SourceValue | Problem]


#: Anything that a reader yields.
SourceItem = SourceSession | SourceHistory | SourceValues | Problem


@dataclass(frozen=True, slots=True)
class Imported:
    """The outcome of one source session.

    ``outcome`` is ``imported``, ``updated``, ``unchanged``, ``deleted`` or
    ``diverged``.

    ``deleted`` was removed here before and stays so; ``diverged`` was continued
    here, so the source's new records were left out.
    """

    outcome: str
    id: str
    source: str
    source_id: str
    messages: int
    problems: tuple[Problem, ...] = ()
