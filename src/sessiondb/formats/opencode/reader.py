"""One store of either generation as sessions: parents and originals first.

Nothing here raises but `SourceError` for a store that cannot be opened; a record
that cannot be read is a `Problem`, and the rest is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import check_storable, clean_text
from sessiondb.formats.kit.json import OddRecordError, Raw, load_object, usable_id
from sessiondb.formats.opencode.keys import DIFF_REST, SHARE_REST, TODO_REST
from sessiondb.formats.opencode.projects import source_project
from sessiondb.formats.opencode.raw import Head, Records, SessionRecord
from sessiondb.formats.opencode.sidefiles import SHARES
from sessiondb.formats.opencode.v1 import drafts as v1_drafts
from sessiondb.formats.opencode.v1.forks import Fork, recognise
from sessiondb.formats.opencode.v1.messages import MessagesV1
from sessiondb.formats.opencode.v2 import drafts as v2_drafts
from sessiondb.formats.opencode.v2 import forks as v2_forks
from sessiondb.formats.opencode.v2.messages import MessagesV2
from sessiondb.model import Problem, SourceSession

SOURCE = "opencode"
#: Errors of a record, or a page of a database, that cannot be read.
UNREADABLE = (sqlite3.Error, OddRecordError)
_COMMIT = re.compile(r"[0-9a-f]{40}")
#: The worktree of OpenCode's project "global": that of everything outside a repository.
_NOWHERE = "/"


@dataclass(frozen=True, slots=True)
class Generation:
    """How the records of a generation become sessions, messages and forks.

    ``messages`` makes them of (records, session id, fork), ``forks`` of
    (records, heads).
    """

    session_fields: Callable[[dict[str, Any], str], dict[str, Any]]
    messages: Callable[[Any, str, Fork | None], Any]
    forks: Callable[[Any, Collection[Head]], dict[str, Fork]]


V1 = Generation(v1_drafts.session_fields, MessagesV1, recognise)
V2 = Generation(v2_drafts.session_fields, MessagesV2, v2_forks.forks)


def read(
    records: Records, generation: Generation = V1, *, without: Collection[str] = ()
) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a store and what is wrong with it, originals and parents first.

    Sessions named in *without* are left out. Raises `SourceError`.
    """
    with records.reading():
        try:
            yield from _Reading(records, generation).sessions(without)
            yield from records.orphans()
        except UNREADABLE as error:
            yield Problem(str(records.path), f"the rest cannot be read: {error}")


class _Reading:
    def __init__(self, records: Records, generation: Generation) -> None:
        self._records = records
        self._generation = generation
        self._path = str(records.path)
        self._calls: dict[str, dict[str, tuple[str, str | None]]] = {}
        self._forks: dict[str, Fork] = {}

    def sessions(self, without: Collection[str]) -> Iterator[SourceSession | Problem]:
        heads: dict[str, Head] = {}
        try:
            for head in self._records.heads():
                if isinstance(head, Problem):
                    yield head
                else:
                    heads[head.id] = head
        except UNREADABLE as error:
            yield Problem(self._path, f"its other sessions cannot be read: {error}")
        try:
            self._forks = self._generation.forks(self._records, heads.values())
        except UNREADABLE as error:
            yield Problem(
                self._path,
                f"forks are not recognised, messages cannot be read: {error}",
            )
        for head in self._in_order(heads):
            if isinstance(head, Problem):
                yield head
            elif head.id not in without:
                yield from self._session(head)

    def _in_order(self, heads: dict[str, Head]) -> Iterator[Head | Problem]:
        done: set[str] = set()
        for head in sorted(
            heads.values(), key=lambda head: (head.time_created, head.id)
        ):
            chain, names = [head], {head.id}
            while (above := self._above(chain[-1])) in heads and above not in done:
                if above in names:
                    why = f"session {abridged(chain[-1].id)} is its own ancestor"
                    yield Problem(self._path, why)
                    chain[-1] = chain[-1]._replace(parent=None)
                    break
                names.add(above)
                chain.append(heads[above])
            for link in reversed(chain):
                if link.id not in done:
                    done.add(link.id)
                    yield link

    def _above(self, head: Head) -> str | None:
        fork = self._forks.get(head.id)
        return fork.original if fork else head.parent

    def _session(self, head: Head) -> Iterator[SourceSession | Problem]:
        try:
            record = self._records.session(head)
            found = self._generation.session_fields(record.info, head.id)
            found.update(record.columns)
            _put_beside(found, record)
        except OddRecordError as error:
            yield Problem(
                str(self._records.where(head.id)),
                f"session {abridged(head.id)} {error}",
            )
            return
        except sqlite3.Error as error:
            yield Problem(
                self._path, f"session {abridged(head.id)} cannot be read: {error}"
            )
            return
        yield from record.problems
        fork = self._forks.get(head.id)
        messages = self._generation.messages(self._records, head.id, fork)
        _put_place(found, record, messages)
        if fork is not None:
            found.update(relation="fork", parent_source_id=fork.original)
            found["parent_message"] = fork.cut if usable_id(fork.cut) else None
        elif head.parent is not None:
            called = self._called(head.parent).get(head.id, (None, None))
            found["parent_message"], found["call_id"] = called
        elif "parent_source_id" in found:  # one of its own descendants
            found["data"]["parentID"] = found.pop("parent_source_id")
            del found["relation"]
        yield SourceSession(
            source=SOURCE,
            source_id=head.id,
            path=str(record.path),
            digest=_digest(record, [fork.original, fork.cut] if fork else []),
            messages=messages,
            size=record.size,
            mtime_ns=record.mtime_ns,
            **found,
        )

    def _called(self, parent: str) -> dict[str, tuple[str, str | None]]:
        """Return message and call of *parent* by the child session that they started."""
        if parent not in self._calls:
            calls: dict[str, tuple[str, str | None]] = {}
            self._calls[parent] = calls
            # A part that cannot be read is reported when its message is.
            with contextlib.suppress(*UNREADABLE):
                for message, raw in self._records.calls(parent):
                    if usable_id(message):
                        self._note_calls(message, raw, calls)
        return self._calls[parent]

    def _note_calls(self, message: str, raw: Raw, calls: dict[str, Any]) -> None:
        with contextlib.suppress(OddRecordError):
            part = load_object(raw)
            call = part.get("callID")
            for child in _children(part):
                calls.setdefault(child, (message, call if clean_text(call) else None))


def _children(part: dict[str, Any]) -> Iterator[str]:
    """Yield the sessions that a call started: it names them, or (0.5) shows their parts."""
    state = part.get("state")
    details = state.get("metadata") if type(state) is dict else None
    if type(details) is not dict:
        return
    named = [details.get("sessionId"), details.get("sessionID")]
    if type(details.get("summary")) is list:
        named += [
            part.get("sessionID") for part in details["summary"] if type(part) is dict
        ]
    yield from (name for name in named if type(name) is str)


def _digest(record: SessionRecord, lineage: list[str | None]) -> str:
    # A file that could not be read may be mended without a change of its size or time.
    problems = [problem.why for problem in record.problems]
    facts = json.dumps([record.facts, lineage, problems], sort_keys=True, default=repr)
    return hashlib.sha256(facts.encode()).hexdigest()


def _put_place(found: dict[str, Any], record: SessionRecord, messages: Any) -> None:
    """Say where the session was held; versions before 0.6 say it in their answers only."""
    worktree = record.worktree
    if not found.get("directory"):
        if "directory" in found:
            found["data"]["directory"] = found["directory"]
        found["directory"], root = messages.place()
        worktree = worktree or root
    if clean_text(worktree) and worktree != _NOWHERE:
        found["worktree"] = worktree or None
        found["project"] = source_project(record.project, record.approved)
    if clean_text(record.vcs):
        found["vcs"] = record.vcs
    if record.vcs == "git" and _COMMIT.fullmatch(str(record.root_commit)):
        found["root_commit"] = record.root_commit


def _put_share(
    found: dict[str, Any], record: SessionRecord, share: dict[str, Any]
) -> None:
    """Keep the secret that ends a share, its address, and where both were."""
    found["metadata"] = {**found.get("metadata", {}), "share": share}
    kept: dict[str, Any] = {}
    if record.share_folder not in (None, SHARES[0]):
        kept["folder"] = record.share_folder
    if "share_url" not in found and clean_text(share.get("url")):
        found["share_url"], kept["alone"] = share["url"], True
    if kept:
        found["data"][SHARE_REST] = kept


def _put_beside(found: dict[str, Any], record: SessionRecord) -> None:
    if record.todo is not None:
        found["todos"], rest = v1_drafts.todos(record.todo)
        if rest is not None:
            found["data"][TODO_REST] = rest
    if record.diff is not None:
        found["diffs"], rest = v1_drafts.file_diffs(record.diff)
        if rest:
            found["data"][DIFF_REST] = rest
    if record.share is not None:
        _put_share(found, record, record.share)
    check_storable(found["data"])
