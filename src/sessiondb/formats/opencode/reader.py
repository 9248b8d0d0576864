"""One store of either generation as sessions: parents and originals first.

The only error is `SourceError`, for a store that cannot be opened; a record that
cannot be read is a `Problem`, and the others are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    check_storable,
    clean_text,
    fitting,
    without_empty,
)
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.opencode.answers import child_sessions
from sessiondb.formats.opencode.forks import Fork
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.keys import DIFF_REST, SHARE_REST, TODO_REST
from sessiondb.formats.opencode.projects import source_project
from sessiondb.formats.opencode.raw import Head, Records, SessionRecord
from sessiondb.formats.opencode.sidefiles import SHARES
from sessiondb.formats.opencode.v1 import drafts as v1_drafts
from sessiondb.formats.opencode.v1 import forks as v1_forks
from sessiondb.formats.opencode.v1.messages import MessagesV1
from sessiondb.formats.opencode.v2 import drafts as v2_drafts
from sessiondb.formats.opencode.v2 import forks as v2_forks
from sessiondb.formats.opencode.v2.messages import MessagesV2
from sessiondb.model import Problem, SourceSession
from sessiondb.patterns import late_pattern

#: Errors of a record, or a page of a database, that cannot be read.
UNREADABLE = (Error, OddRecordError)
_COMMIT = late_pattern(r"[0-9a-f]{40}")
#: The worktree of OpenCode's project "global", for everything outside a repository.
_NOWHERE = "/"

#: A message and its call that started a child session.
StartingCall = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Generation:
    """How the records of a generation become sessions, messages and forks."""

    #: Returns the fields of a `SourceSession` in its record, by its id.
    session_fields: Callable[[dict[str, Any], str], dict[str, Any]]
    #: Returns the messages of a session by its id, and its origin if it is a fork.
    messages: Callable[[Any, str, Fork | None], Any]
    #: Returns the forks among the sessions of a store, by session id.
    forks: Callable[[Any, Collection[Head]], dict[str, Fork]]


V1 = Generation(v1_drafts.session_fields, MessagesV1, v1_forks.forks_in)
V2 = Generation(v2_drafts.session_fields, MessagesV2, v2_forks.forks_in)


def read(
    records: Records, generation: Generation = V1, *, without: Collection[str] = ()
) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a store and its problems, originals and parents first.

    Sessions named in *without* are left out. Raises `SourceError`.
    """
    with records.reading():
        try:
            yield from _StoreReader(records, generation).sessions(without)
            yield from records.find_orphans()
        except UNREADABLE as error:
            yield Problem(str(records.path), f"the rest cannot be read: {error}")


class _StoreReader:
    """One pass over a store."""

    def __init__(self, records: Records, generation: Generation) -> None:
        self._records = records
        self._generation = generation
        self._path = str(records.path)
        self._heads: dict[str, Head] = {}
        self._forks: dict[str, Fork] = {}
        #: By parent, the calls that started sessions, by the session they started.
        self._calls: dict[str, dict[str, StartingCall]] = {}

    def sessions(self, without: Collection[str]) -> Iterator[SourceSession | Problem]:
        """Yield all sessions but those *without*, and the problems of the store."""
        yield from self._read_heads()
        heads = self._heads.values()
        try:
            self._forks = self._generation.forks(self._records, heads)
        except UNREADABLE as error:
            reason = f"forks are not recognised, messages cannot be read: {error}"
            yield Problem(self._path, reason)

        def sessions_of(name: str, cut: bool) -> Iterable[SourceSession | Problem]:
            if name in without:
                return ()
            head = self._heads[name]
            return self._read_session(head._replace(parent=None) if cut else head)

        by_age = sorted(heads, key=lambda head: (head.time_created, head.id))
        names = [head.id for head in by_age]
        yield from in_order(names, self._origin_of, sessions_of, lambda _: self._path)

    def _read_heads(self) -> Iterator[Problem]:
        """Read what is needed to order the sessions, and yield what cannot be read."""
        try:
            for head in self._records.read_heads():
                if isinstance(head, Problem):
                    yield head
                else:
                    self._heads[head.id] = head
        except UNREADABLE as error:
            yield Problem(self._path, f"its other sessions cannot be read: {error}")

    def _origin_of(self, name: str) -> str | None:
        """Return the original of a fork, or the parent of any other session."""
        fork = self._forks.get(name)
        return fork.original if fork else self._heads[name].parent

    # -- one session ----------------------------------------------------------

    def _read_session(self, head: Head) -> Iterator[SourceSession | Problem]:
        try:
            record = self._records.read_session(head)
            columns = self._generation.session_fields(record.info, head.id)
            columns.update(record.columns)
            _add_lists_and_share(columns, record)
        except UNREADABLE as error:
            yield self._unreadable(head, error)
            return

        yield from record.problems
        fork = self._forks.get(head.id)
        messages = self._generation.messages(self._records, head.id, fork)
        _add_place(columns, record, messages)
        self._add_origin(columns, head, fork)
        yield SourceSession(
            source=SOURCE,
            source_id=head.id,
            path=str(record.path),
            digest=_digest_of(record, fork),
            messages=messages,
            size=record.size,
            mtime_ns=record.mtime_ns,
            **columns,
        )

    def _unreadable(self, head: Head, error: Exception) -> Problem:
        name = f"session {abridged(head.id)}"
        if isinstance(error, OddRecordError):
            return Problem(str(self._records.path_of(head.id)), f"{name} {error}")
        return Problem(self._path, f"{name} cannot be read: {error}")

    def _add_origin(
        self, columns: dict[str, Any], head: Head, fork: Fork | None
    ) -> None:
        """Add where a session comes from: a fork its original, a child its call."""
        if fork is not None:
            columns.update(relation="fork", parent_source_id=fork.original)
            columns["parent_message"] = fitting(fork.cut, usable_id)
        elif head.parent is not None:
            calls = self._calls_of(head.parent)
            message, call = calls.get(head.id, (None, None))
            columns.update(parent_message=message, call_id=call)
        elif "parent_source_id" in columns:
            # Its parent is its own descendant: only the data keep it.
            columns["data"]["parentID"] = columns.pop("parent_source_id")
            del columns["relation"]

    # -- calls that started sessions ------------------------------------------

    def _calls_of(self, parent: str) -> dict[str, StartingCall]:
        """Return message and call of *parent* by the child session they started.

        The first call that names a session counts.
        """
        if parent in self._calls:
            return self._calls[parent]

        calls = self._calls[parent] = {}
        # A part that cannot be read is reported when its message is.
        with contextlib.suppress(*UNREADABLE):
            for message, raw in self._records.starting_calls(parent):
                if not usable_id(message):
                    continue
                with contextlib.suppress(OddRecordError):
                    part = load_object(raw)
                    call = fitting(part.get("callID"), clean_text)
                    for child in child_sessions(part):
                        calls.setdefault(child, (message, call))
        return calls


def _digest_of(record: SessionRecord, fork: Fork | None) -> str:
    lineage = [fork.original, fork.cut] if fork else []

    # A file that could not be read may be mended without a change of its size or time.
    problems = [problem.why for problem in record.problems]
    facts = json.dumps([record.facts, lineage, problems], sort_keys=True, default=repr)
    return hashlib.sha256(facts.encode()).hexdigest()


# -- what is not in the record of a session ---------------------------------------


def _add_place(columns: dict[str, Any], record: SessionRecord, messages: Any) -> None:
    """Add where the session was held; before 0.6 only its answers record it."""
    worktree = record.worktree
    if not columns.get("directory"):
        if "directory" in columns:
            columns["data"]["directory"] = columns["directory"]
        columns["directory"], root = messages.find_place()
        worktree = worktree or root

    if clean_text(worktree) and worktree != _NOWHERE:
        columns["worktree"] = worktree or None
        columns["project"] = source_project(record.project, record.approved)

    columns["vcs"] = fitting(record.vcs, clean_text)
    # The id of a project in a repository is its first commit.
    if record.vcs == "git":
        is_commit = _COMMIT.fullmatch(str(record.root_commit)) is not None
        columns["root_commit"] = record.root_commit if is_commit else None


def _add_lists_and_share(columns: dict[str, Any], record: SessionRecord) -> None:
    """Add the todo list, the diffs and the share; raises `OddRecordError`."""
    # The fields of the lists and the share besides their columns.
    data: dict[str, Any] = {}
    if record.todo is not None:
        columns["todos"], data[TODO_REST] = v1_drafts.todo_lines(record.todo)
    if record.diff is not None:
        columns["diffs"], data[DIFF_REST] = v1_drafts.file_diffs(record.diff)
    if record.share is not None:
        data[SHARE_REST] = _add_share(columns, record.share, record.share_folder)

    columns["data"].update(without_empty(data))
    check_storable(columns["data"])


def _add_share(
    columns: dict[str, Any], share: dict[str, Any], folder: str | None
) -> dict[str, Any]:
    """Add the secret that ends a share, and its address; return the places of both."""
    columns["metadata"] = {**columns.get("metadata", {}), "share": share}
    origin: dict[str, Any] = {}
    if folder is not None and folder != SHARES[0]:
        origin["folder"] = folder
    if "share_url" not in columns and clean_text(share.get("url")):
        columns["share_url"] = share["url"]
        origin["alone"] = True
    return origin
