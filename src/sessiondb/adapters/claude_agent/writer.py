"""Transcripts as they are written: a batch of entries is one unit.

Which entries are new, and what each of them follows, is decided before the unit, by
what this process remembers of the transcript or reads of it. The unit fails if the
session has changed since then, and is made again.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os.path import isabs
from typing import Any, TypeAlias, cast

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionStoreEntry,
    SessionSummaryEntry,
)

from sessiondb.adapters.claude_agent import statements as sql
from sessiondb.adapters.claude_agent.entries import (
    draft_of_entry,
    entry_of_message,
    message_name,
    name_of_uuid,
    new_name,
    verbatim_draft,
)
from sessiondb.adapters.claude_agent.keys import TranscriptKey, scope_of
from sessiondb.adapters.claude_agent.links import (
    REREAD,
    EntryLinks,
    LinkedEntry,
    referred_uuids,
)
from sessiondb.clock import now_ms
from sessiondb.effects import SessionHandle, Unit
from sessiondb.engine.sql import as_list
from sessiondb.errors import (
    CodecError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    abridged,
)
from sessiondb.formats.claude import fields
from sessiondb.formats.kit.conversion import is_native
from sessiondb.formats.kit.fields import clean_name, clean_text, value_at
from sessiondb.model import Message, MessageDraft
from sessiondb.model.handles import LEAF, Leaf
from sessiondb.store import Store

#: How often a unit is made that other processes come in between of. Each time one of
#: them has written, so no transcript stands still.
ATTEMPTS = 100
#: Transcripts of which something is remembered.
_MOST_TRANSCRIPTS = 32
#: Entries with a title, the key that has it, and who gave it.
_TITLES = {
    "custom-title": ("customTitle", "user"),
    "ai-title": ("aiTitle", "agent"),
    "agent_metadata": ("description", "agent"),
}

Entry: TypeAlias = Mapping[str, Any]
Fold: TypeAlias = Callable[[dict[str, Any] | None], dict[str, Any]]


class _RememberedTranscript:
    """A transcript as this process knows it; a new one has no session yet.

    It is never trusted: a unit that relies on it fails if it is wrong.
    """

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.revision = 0
        #: The message where the session continues: an id, or a seq that was read.
        self.leaf: str | int | None = None
        #: The end of a conversation that was read before all that is remembered.
        self.end_seq: int | None = None
        self.directory: str | None = None
        self.version: str | None = None
        self.links = EntryLinks()


class TranscriptWriter:
    """Appends entries to transcripts, from any number of threads and processes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._remembered: OrderedDict[TranscriptKey, _RememberedTranscript] = (
            OrderedDict()
        )
        self._clock = threading.Lock()
        self._last_mtime = 0

    def append(self, key: TranscriptKey, entries: Sequence[SessionStoreEntry]) -> None:
        """Append the entries whose uuids are new, in one unit.

        It is made again if another process comes in between.
        """
        for attempt in range(ATTEMPTS):
            # Taken out: another thread that appends meanwhile reads its own.
            transcript = self._remembered.pop(key, None) or self._read(key)
            try:
                self._append_new(key, transcript, entries)
            except (ConflictError, NotFoundError):
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                self._remembered[key] = transcript
                while len(self._remembered) > _MOST_TRANSCRIPTS:
                    self._remembered.popitem(last=False)
                return

    def forget(self, key: TranscriptKey) -> None:
        """Forget a transcript that was removed."""
        self._remembered.pop(key, None)

    def session_of(self, key: TranscriptKey) -> SessionHandle | None:
        """Return the session of a transcript; None if there is none."""
        rows = self.store.select(sql.TRANSCRIPT, {"source_id": key.source_id})
        return SessionHandle(rows[0][0]) if rows else None

    def _read(self, key: TranscriptKey) -> _RememberedTranscript:
        """Return a transcript with its newest entries."""
        transcript = _RememberedTranscript()
        rows = self.store.select(sql.TRANSCRIPT, {"source_id": key.source_id})
        if not rows:
            return transcript
        ((session_id, revision, leaf, directory, version),) = rows
        transcript.session_id, transcript.revision = session_id, revision
        transcript.leaf = leaf
        transcript.directory, transcript.version = directory, version
        parameters = {"session_id": session_id, "most": REREAD}
        newest = [name for (name,) in self.store.select(sql.NEWEST, parameters)]
        for message in self.store.messages(SessionHandle(session_id), ids=newest):
            _add_message(transcript.links, message)
        if len(newest) == REREAD:
            transcript.links.is_complete = False
            transcript.end_seq = leaf
        return transcript

    # -- units -------------------------------------------------------------------------

    def _append_new(
        self,
        key: TranscriptKey,
        transcript: _RememberedTranscript,
        entries: Sequence[SessionStoreEntry],
    ) -> None:
        named_entries = self._new_entries(transcript, entries)
        if not named_entries:
            self._check_present(key, transcript)
            return
        new_entries = list(named_entries.values())
        original = self._original_of(key, transcript, new_entries)
        times = self._times_of_copies(key, new_entries)
        links, leaf = transcript.links, transcript.leaf
        with self.store.effects() as fx:
            session = self._begin(fx, key, transcript, new_entries, original)
            for name, entry in named_entries.items():
                linked = links.add(entry, name)
                parent = linked.place.parent
                draft = _draft_of(entry, linked, times)
                _append_message(
                    fx, session, entry, draft, LEAF if parent == leaf else parent
                )
                leaf = name
            # Entries beside the conversation do not move its end.
            conversation_end = links.end or transcript.end_seq
            if conversation_end is not None and conversation_end != leaf:
                fx.set_leaf(session, conversation_end)
                leaf = conversation_end
            _describe(fx, session, transcript, new_entries)
            if not key.subpath:
                fx.update_metadata(session, self._summary_fold(key, new_entries))
        # It was made for one revision, and left the next one.
        transcript.session_id = session.id
        transcript.revision += 1
        transcript.leaf = leaf

    def _check_present(
        self, key: TranscriptKey, transcript: _RememberedTranscript
    ) -> None:
        """Raise `ConflictError` unless a transcript is as it is remembered."""
        rows = self.store.select(sql.TRANSCRIPT, {"source_id": key.source_id})
        if not rows or rows[0][:2] != (transcript.session_id, transcript.revision):
            raise ConflictError("the transcript has changed", hint="read it again")

    def _new_entries(
        self, transcript: _RememberedTranscript, entries: Sequence[Entry]
    ) -> dict[str, Entry]:
        """Return the entries that the transcript does not have, by their messages."""
        links = transcript.links
        new_entries: dict[str, Entry] = {}
        referred: set[str] = set()
        for entry in entries:
            if not isinstance(entry, dict):
                raise InvalidInputError(f"an entry is an object, not {abridged(entry)}")
            name = message_name(entry)
            if name is None:
                new_entries[new_name()] = entry
                continue
            referred.add(name)
            referred.update(map(name_of_uuid, referred_uuids(entry)))
            new_entries.setdefault(name, entry)

        if transcript.session_id is not None and not links.is_complete:
            rows = self._present(transcript.session_id, links.unknown(referred))
            links.remember([name for name, _ in rows])
        return {name: it for name, it in new_entries.items() if name not in links}

    def _present(self, session_id: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return those of some messages that a session has, with their times."""
        if not names:
            return []
        parameters = {"session_id": session_id, "ids": as_list(names)}
        return self.store.select(sql.PRESENT, parameters)

    def _begin(
        self,
        fx: Unit,
        key: TranscriptKey,
        transcript: _RememberedTranscript,
        entries: Sequence[Entry],
        original: SessionHandle | None,
    ) -> SessionHandle:
        """Return the session of a unit, which fails unless it is as it was read."""
        if transcript.session_id is not None:
            session = SessionHandle(transcript.session_id)
            fx.expect(session, revision=transcript.revision)
            return session

        scope = scope_of(key.project)
        columns: dict[str, Any] = {"scope": scope, "directory": _directory_in(entries)}
        if key.subpath:
            # It may be written before its session is; that one has no entries then.
            columns["parent"] = fx.open_session(
                key.main.source_id, source=sql.SOURCE, scope=scope, directory=None
            )
            columns["metadata"] = {"subpath": _storable(key.subpath)}
            columns["call_id"] = _call_in(entries)
        elif original is not None:
            columns |= {"parent": original, "relation": "fork"}
        session = fx.open_session(key.source_id, source=sql.SOURCE, **columns)
        fx.expect(session, absent=True)
        transcript.directory = columns["directory"]
        return session

    # -- forks -------------------------------------------------------------------------

    def _original_of(
        self,
        key: TranscriptKey,
        transcript: _RememberedTranscript,
        entries: Sequence[Entry],
    ) -> SessionHandle | None:
        """Return the session that a new one is a fork of, as its entries state it."""
        if transcript.session_id is not None or key.subpath:
            return None
        for entry in entries:
            session_id = value_at(entry.get("forkedFrom"), "sessionId")
            if isinstance(session_id, str):
                return self.session_of(key._replace(session=session_id))
        return None

    def _times_of_copies(
        self, key: TranscriptKey, entries: Sequence[Entry]
    ) -> dict[str, int]:
        """Return the times at which copied entries were written first, in Unix ms.

        A fork by the SDK has a new time in its last entry, and would be paid for twice.
        """
        copied: dict[str, dict[str, str]] = {}
        for entry in entries:
            origin = entry.get("forkedFrom")
            session_id, uuid = (
                value_at(origin, "sessionId"),
                value_at(origin, "messageUuid"),
            )
            if isinstance(session_id, str) and isinstance(uuid, str):
                names = copied.setdefault(session_id, {})
                names[name_of_uuid(uuid)] = str(message_name(entry))

        times: dict[str, int] = {}
        for session_id, names in copied.items():
            original = self.session_of(key._replace(session=session_id, subpath=""))
            if original is not None:
                for name, time in self._present(original.id, list(names)):
                    times[names[name]] = time
        return times

    # -- summaries ---------------------------------------------------------------------

    def _summary_fold(self, key: TranscriptKey, entries: Sequence[Entry]) -> Fold:
        """Return the function that adds entries to the summary of a session."""
        sdk_key: SessionKey = {"project_key": key.project, "session_id": key.session}
        added = cast("list[SessionStoreEntry]", entries)

        def fold(metadata: dict[str, Any] | None) -> dict[str, Any]:
            before = summary_in(metadata or {})
            summary = fold_session_summary(before, sdk_key, added)
            summary["mtime"] = self._next_mtime(summary["mtime"])
            return {**(metadata or {}), "summary": _storable(summary)}

        return fold

    def _next_mtime(self, before: int) -> int:
        """Return the time of a write in Unix ms, after all others of this process."""
        with self._clock:
            self._last_mtime = max(now_ms(), before + 1, self._last_mtime + 1)
            return self._last_mtime


def summary_in(metadata: Mapping[str, Any]) -> SessionSummaryEntry | None:
    """Return the summary in the metadata of a session; None without one."""
    summary = _as_stated(metadata.get("summary"))
    return cast(SessionSummaryEntry, summary) if isinstance(summary, dict) else None


def subpath_in(metadata: Mapping[str, Any]) -> str:
    """Return the subpath in the metadata of a subagent."""
    return str(_as_stated(metadata["subpath"]))


def _storable(value: Any) -> Any:
    """Return a value as metadata can hold it: one with lone surrogates as JSON text."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return {"json": json.dumps(value)}
    return value


def _as_stated(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"json"}:
        return json.loads(value["json"])
    return value


def _draft_of(
    entry: Entry, linked: LinkedEntry, times: Mapping[str, int]
) -> MessageDraft:
    draft = draft_of_entry(entry, linked.place)
    if draft.role == "assistant":
        # Each entry of an answer states the cost of all of it.
        cost = None if linked.is_further else draft.cost
        draft = replace(draft, tokens=linked.tokens, cost=cost)
    time = times.get(linked.place.name)
    if time is not None:
        draft = replace(draft, time_created=time, time_completed=None)
    return draft


def _append_message(
    fx: Unit,
    session: SessionHandle,
    entry: Entry,
    draft: MessageDraft,
    after: str | Leaf | None,
) -> None:
    try:
        fx.append(session, draft, after=after)
    except (InvalidInputError, CodecError):
        # A column refuses a value: the entry is kept, and readable.
        fx.append(session, verbatim_draft(entry, str(draft.id)), after=after)


def _describe(
    fx: Unit,
    session: SessionHandle,
    transcript: _RememberedTranscript,
    entries: Sequence[Entry],
) -> None:
    """Set the properties of a session that new entries state; later ones win."""
    directory = _directory_in(entries)
    if transcript.directory is None and directory is not None:
        fx.set_directory(session, directory)
        transcript.directory = directory

    columns: dict[str, str] = {}
    for entry in entries:
        if entry.get("type") in fields.SAID and clean_name(entry.get("version")):
            columns["version"] = entry["version"]
        if entry.get("type") == "agent_metadata" and clean_text(entry.get("agentType")):
            columns["agent"] = entry["agentType"]
    if columns.get("version") == transcript.version:
        columns.pop("version", None)
    if columns:
        fx.update_session(
            session,
            version=columns.get("version", ...),
            agent=columns.get("agent", ...),
        )
        transcript.version = columns.get("version", transcript.version)

    for kind, (key, giver) in _TITLES.items():
        titles = [entry.get(key) for entry in entries if entry.get("type") == kind]
        usable = [title for title in titles if clean_text(title)]
        if usable:
            fx.set_title(session, usable[-1], by=giver)


def _directory_in(entries: Sequence[Entry]) -> str | None:
    """Return the first directory that entries state; None without any."""
    for entry in entries:
        directory = entry.get("cwd")
        if isinstance(directory, str) and clean_text(directory) and isabs(directory):
            return directory
    return None


def _call_in(entries: Sequence[Entry]) -> str | None:
    """Return the call that started a subagent, if its entries state it."""
    for entry in entries:
        call = entry.get("toolUseId")
        if entry.get("type") == "agent_metadata" and clean_text(call):
            return str(call)
    return None


def _add_message(links: EntryLinks, message: Message) -> None:
    """Add a message that was read, unless others wrote it."""
    if not is_native(message.id):
        links.add(entry_of_message(message), message.id)
