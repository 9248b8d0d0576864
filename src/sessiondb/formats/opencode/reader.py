"""One store of either generation as sessions: parents and originals first.

The only error is `SourceError`, for a store that cannot be opened; a record that
cannot be read is a `Problem`, and the others are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import check_storable, clean_text, filled, fitting
from sessiondb.formats.kit.json import OddRecordError, Raw, load_object, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.opencode.answers import children
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

#: Errors of a record, or a page of a database, that cannot be read.
UNREADABLE = (Error, OddRecordError)
_COMMIT = re.compile(r"[0-9a-f]{40}")
#: The worktree of OpenCode's project "global": that of everything outside a repository.
_NOWHERE = "/"

#: A message and its call that started a child session.
Called = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Generation:
    """How the records of a generation become sessions, messages and forks.

    ``messages`` makes them of (records, session id, fork), ``forks`` of
    (records, heads).
    """

    session_fields: Callable[[dict[str, Any], str], dict[str, Any]]
    messages: Callable[[Any, str, Fork | None], Any]
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
            yield from _Reading(records, generation).sessions(without)
            yield from records.orphans()
        except UNREADABLE as error:
            yield Problem(str(records.path), f"the rest cannot be read: {error}")


class _Reading:
    """One pass over a store."""

    def __init__(self, records: Records, generation: Generation) -> None:
        self._records = records
        self._generation = generation
        self._path = str(records.path)
        self._heads: dict[str, Head] = {}
        self._forks: dict[str, Fork] = {}
        self._calls: dict[str, dict[str, Called]] = {}

    def sessions(self, without: Collection[str]) -> Iterator[SourceSession | Problem]:
        """Yield all sessions but those *without*, and the problems of the store."""
        yield from self._read_heads()
        try:
            heads = self._heads.values()
            self._forks = self._generation.forks(self._records, heads)
        except UNREADABLE as error:
            why = f"forks are not recognised, messages cannot be read: {error}"
            yield Problem(self._path, why)

        by_age = sorted(self._heads.values(), key=attrgetter("time_created", "id"))
        names = map(attrgetter("id"), by_age)

        def session(name: str, cut: bool) -> Iterable[SourceSession | Problem]:
            head = self._heads[name]
            if name in without:
                return ()
            return self._session(head._replace(parent=None) if cut else head)

        yield from in_order(names, self._above, session, lambda _: self._path)

    def _read_heads(self) -> Iterator[Problem]:
        """Read what is needed to order the sessions, and yield what cannot be read."""
        try:
            for head in self._records.heads():
                if isinstance(head, Problem):
                    yield head
                else:
                    self._heads[head.id] = head
        except UNREADABLE as error:
            yield Problem(self._path, f"its other sessions cannot be read: {error}")

    def _above(self, name: str) -> str | None:
        fork = self._forks.get(name)
        return fork.original if fork else self._heads[name].parent

    # -- one session ----------------------------------------------------------

    def _session(self, head: Head) -> Iterator[SourceSession | Problem]:
        try:
            record = self._records.session(head)
            found = self._generation.session_fields(record.info, head.id)
            found.update(record.columns)
            _put_beside(found, record)
        except UNREADABLE as error:
            yield self._unreadable(head, error)
            return

        yield from record.problems
        fork = self._forks.get(head.id)
        messages = self._generation.messages(self._records, head.id, fork)
        _put_place(found, record, messages)
        self._put_parent(found, head, fork)
        yield SourceSession(
            source=SOURCE,
            source_id=head.id,
            path=str(record.path),
            digest=_digest(record, fork),
            messages=messages,
            size=record.size,
            mtime_ns=record.mtime_ns,
            **found,
        )

    def _unreadable(self, head: Head, error: Exception) -> Problem:
        name = f"session {abridged(head.id)}"
        if isinstance(error, OddRecordError):
            return Problem(str(self._records.where(head.id)), f"{name} {error}")
        return Problem(self._path, f"{name} cannot be read: {error}")

    def _put_parent(self, found: dict[str, Any], head: Head, fork: Fork | None) -> None:
        """Add where a session comes from: a fork its original, a child its call."""
        if fork is not None:
            found.update(relation="fork", parent_source_id=fork.original)
            found["parent_message"] = fitting(fork.cut, usable_id)
        elif head.parent is not None:
            calls = self._calls_of(head.parent)
            found["parent_message"], found["call_id"] = calls.get(head.id, (None, None))
        elif "parent_source_id" in found:
            # Its parent is its own descendant: only the data keep it.
            found["data"]["parentID"] = found.pop("parent_source_id")
            del found["relation"]

    # -- calls that started sessions ------------------------------------------

    def _calls_of(self, parent: str) -> dict[str, Called]:
        """Return message and call of *parent* by the child session they started."""
        if parent not in self._calls:
            calls = self._calls[parent] = {}
            # A part that cannot be read is reported when its message is.
            with contextlib.suppress(*UNREADABLE):
                for message, raw in self._records.calls(parent):
                    if usable_id(message):
                        _note_calls(calls, message, raw)

        return self._calls[parent]


def _note_calls(calls: dict[str, Called], message: str, raw: Raw) -> None:
    """Add the sessions that a call of *message* started; the first call counts."""
    with contextlib.suppress(OddRecordError):
        part = load_object(raw)
        call = fitting(part.get("callID"), clean_text)
        for child in children(part):
            calls.setdefault(child, (message, call))


def _digest(record: SessionRecord, fork: Fork | None) -> str:
    lineage = [fork.original, fork.cut] if fork else []

    # A file that could not be read may be mended without a change of its size or time.
    problems = [problem.why for problem in record.problems]
    facts = json.dumps([record.facts, lineage, problems], sort_keys=True, default=repr)
    return hashlib.sha256(facts.encode()).hexdigest()


# -- what is not in the record of a session ---------------------------------------


def _put_place(found: dict[str, Any], record: SessionRecord, messages: Any) -> None:
    """Add where the session was held; before 0.6 only its answers say it."""
    worktree = record.worktree
    if not found.get("directory"):
        if "directory" in found:
            found["data"]["directory"] = found["directory"]
        found["directory"], root = messages.place()
        worktree = worktree or root

    worktree = fitting(worktree, clean_text, _NOWHERE)
    if worktree != _NOWHERE:
        found["worktree"] = worktree or None
        found["project"] = source_project(record.project, record.approved)

    found["vcs"] = fitting(record.vcs, clean_text)
    # The id of a project in a repository is its first commit.
    if record.vcs == "git":
        found["root_commit"] = fitting(record.root_commit, _is_commit)


def _is_commit(value: Any) -> bool:
    return _COMMIT.fullmatch(str(value)) is not None


def _put_beside(found: dict[str, Any], record: SessionRecord) -> None:
    """Add the todo list, the diffs and the share; raises `OddRecordError`."""
    rest: dict[str, Any] = {}
    if record.todo is not None:
        found["todos"], rest[TODO_REST] = v1_drafts.todos(record.todo)
    if record.diff is not None:
        found["diffs"], rest[DIFF_REST] = v1_drafts.file_diffs(record.diff)
    if record.share is not None:
        rest[SHARE_REST] = _put_share(found, record.share, record.share_folder)

    found["data"].update(filled(rest))
    check_storable(found["data"])


def _put_share(
    found: dict[str, Any], share: dict[str, Any], folder: str | None
) -> dict[str, Any]:
    """Add the secret that ends a share, and its address; return where both were."""
    found["metadata"] = {**found.get("metadata", {}), "share": share}
    rest: dict[str, Any] = {}

    if folder not in (None, SHARES[0]):
        rest["folder"] = folder
    if "share_url" not in found and clean_text(share.get("url")):
        found["share_url"], rest["alone"] = share["url"], True

    return rest
