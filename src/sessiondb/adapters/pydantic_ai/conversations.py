"""Pydantic AI's conversations in a database of sessiondb: one is a session.

An entry is a message of the session, under the same id, after that of its parent; the
head of the conversation is the leaf, so that people read what the agent continues.
The record is in the session's metadata. Each save is one transaction, which compares
the revision before it writes. A fork is a fork of the session: it has copies of the
entries under the same ids, so that they last as long as one conversation has them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from sessiondb import codec
from sessiondb.adapters.opening import AsyncStoreUser, Where
from sessiondb.adapters.pydantic_ai import statements as sql
from sessiondb.adapters.pydantic_ai.entries import (
    blobs_in,
    exact_form,
    messages_of,
    plain_form,
)
from sessiondb.adapters.pydantic_ai.keys import key_of, optional_key_of
from sessiondb.adapters.pydantic_ai.records import (
    RecordFold,
    check_revision,
    records_in,
)
from sessiondb.adapters.pydantic_ai.transcripts import plain_draft, transcript_draft
from sessiondb.effects import SessionHandle, Unit
from sessiondb.engine.sql import as_list
from sessiondb.errors import (
    CodecError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
)
from sessiondb.model import Message
from sessiondb.model.handles import MessageHandle

_EVERYTHING = (1 << 62) - 1
#: How often a save looks for entries that other conversations have. Each time one of
#: them was deleted, so that the next one is another.
_ATTEMPTS = 100


class SessionDBConversationStore(AsyncStoreUser, ConversationStore):
    """A store of Pydantic AI's conversations on a database of sessiondb.

    *database* is a path, a URL, or an open `Store` or `AsyncStore`, which stays that
    of the caller; the other arguments are those of `Store.open`. Nothing is opened
    before the first use, so it can be made anywhere, and used from any loop of asyncio
    or trio, any thread, and any number of processes. Close it, or use it in
    ``async with``.

    Deleting a conversation removes its entries, but for those that a fork has.
    """

    def __init__(self, database: Where = None, **options: Any) -> None:
        super().__init__(database, options)

    # -- reading -----------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, None if there is none.

        Of the entries that it names, those that a person removed are left out.
        """
        parameters = {"conversation": key_of(conversation_id)}
        while rows := await self.store.select(sql.RECORD, parameters):
            ((session_id, metadata, leaf),) = rows
            records = records_in([metadata])
            if not records:
                return None
            if leaf == optional_key_of(records[0].head_id) and not records[0].branches:
                return records[0]
            try:
                return await self._without_removed(records[0], session_id, leaf)
            except NotFoundError:  # deleted since it was read
                continue
        return None

    async def _without_removed(
        self, record: ConversationRecord, session_id: str, leaf: str | None
    ) -> ConversationRecord:
        named = [name for name in (record.head_id, *record.branches) if name]
        ids = as_list([key_of(name) for name in named])
        parameters = {"session_id": session_id, "ids": ids}
        rows = await self.store.select(sql.MESSAGES_HERE, parameters)
        present = {key for (key,) in rows}
        branches = [name for name in record.branches if key_of(name) in present]
        head = record.head_id
        if head is not None and key_of(head) not in present:
            # Where the session continues now; None if nothing is left of it.
            head = leaf
            if leaf is not None:
                message = await self._message(session_id, leaf)
                head = str(message.data.get("pydantic_ai_id", leaf))
        return dataclasses.replace(record, head_id=head, branches=branches)

    async def _message(self, session_id: str, message_id: str) -> Message:
        handle = MessageHandle(session_id, message_id)
        return await self.store.message(SessionHandle(session_id), handle)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, those saved last first."""
        parameters: dict[str, Any] = {"most": _EVERYTHING if limit is None else limit}
        statement = sql.ALL_RECORDS
        if scope is not None:
            statement = sql.RECORDS_OF_SCOPE
            parameters["scope"] = key_of(scope)
        rows = await self.store.select(statement, parameters)
        return records_in([metadata for (metadata,) in rows])

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry, whichever conversation has it; raises `KeyError`."""
        (entry,) = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to *head_id*, or the last *limit* of them.

        Raises `KeyError` if no conversation has that entry.
        """
        if head_id is None or limit == 0:
            return []

        # One more: the first one states its parent.
        most = _EVERYTHING if limit is None else limit + 1
        parameters = {"id": key_of(head_id), "most": most}
        while rows := await self.store.select(sql.PATH, parameters):
            try:
                entries = await self._entries_at(rows)
            except NotFoundError:  # deleted since it was read
                continue
            return entries if len(rows) < most else entries[1:]
        raise KeyError(head_id)

    async def _entries_at(
        self, rows: Sequence[tuple[Any, ...]]
    ) -> list[ConversationEntry]:
        """Return the entries of the rows of a path.

        Raises `NotFoundError` if they were deleted since they were read.
        """
        ids: list[str] = []
        forms: list[str] = []
        for session_id, message_id, packed, size, encoding, large in rows:
            if large is None:
                data = codec.unpack(packed)
            else:
                data = codec.unpack(codec.content_of_blob(size, encoding, large))
            form = data.get("pydantic_ai")
            if not isinstance(form, str):
                message = await self._message(session_id, message_id)
                form = plain_form(message.role, message.text)
            ids.append(data.get("pydantic_ai_id", message_id))
            forms.append(form)

        blobs: dict[str, bytes] = {}
        if hashes := blobs_in(forms):
            parameters = {"hashes": as_list(sorted(hashes))}
            for name, *stored in await self.store.select(sql.BLOBS, parameters):
                blobs[name] = codec.content_of_blob(*stored)
            if len(blobs) < len(hashes):
                # A person removed a text, or everything is gone.
                session_id, message_id, *_ = rows[-1]
                await self._message(session_id, message_id)

        return [
            ConversationEntry(id=entry_id, parent_id=parent_id, message=message)
            for entry_id, parent_id, message in zip(
                ids, [None, *ids], messages_of(forms, blobs), strict=False
            )
        ]

    # -- writing -----------------------------------------------------------------

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and new entries in one transaction, or nothing.

        Raises `ConversationConflict` as the interface says.
        """
        fold = RecordFold(record, expected_revision)
        # Its entries are those of another conversation, if it is a new fork.
        is_here = record.forked_from is None or expected_revision is not None
        if is_here and await self._try_writing(record, new_entries, fold):
            return

        for _ in range(_ATTEMPTS):
            if await self._write_from_another(record, new_entries, fold):
                return
        raise ConversationConflict(record.conversation_id)

    async def _try_writing(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        fold: RecordFold,
    ) -> bool:
        """Write into the session of the conversation.

        Returns False, without a change, if it does not have an entry that is named.
        """
        scope = optional_key_of(record.scope)
        key = key_of(record.conversation_id)
        try:
            async with self.store.effects() as fx:
                session = fx.open_session(
                    key, source=sql.SOURCE, directory=None, scope=scope
                )
                fx.update_metadata(session, fold)
                if not fold.makes_conversation:
                    fx.update_session(session, scope=scope)
                _write_entries(fx, session, record, new_entries)
        except NotFoundError:
            return False
        return True

    async def _write_from_another(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        fold: RecordFold,
    ) -> bool:
        """Write a record whose entries follow those of another conversation.

        Returns False, without a change, if that was deleted meanwhile. Raises
        `ConversationConflict` if no conversation has them.
        """
        last = new_entries[0].parent_id if new_entries else record.head_id
        if last is None or record.head_id is None:
            return await self._try_writing(record, new_entries, fold)

        if not fold.makes_conversation:
            # It was there before, and has some of them.
            try:
                history = await self.read_history(last)
            except KeyError:
                raise ConversationConflict(record.conversation_id) from None
            return await self._try_writing(record, [*history, *new_entries], fold)

        names = {"id": key_of(last), "original": optional_key_of(record.forked_from)}
        rows = await self.store.select(sql.HOLDER, names)
        if not rows:
            raise ConversationConflict(record.conversation_id)
        original = SessionHandle(rows[0][0])
        try:
            async with self.store.effects() as fx:
                session = fx.fork(
                    original,
                    at=MessageHandle(original.id, key_of(last)),
                    source=sql.SOURCE,
                    source_id=key_of(record.conversation_id),
                )
                fx.update_session(session, scope=optional_key_of(record.scope))
                fx.update_metadata(session, fold.of_fork)
                if new_entries:
                    _write_entries(fx, session, record, new_entries)
        except NotFoundError:
            return False
        except ConflictError as error:
            raise ConversationConflict(record.conversation_id) from error
        return True

    async def delete_record(
        self, conversation_id: str, *, expected_revision: str
    ) -> None:
        """Delete a conversation, and its entries but for those that a fork has.

        Raises `ConversationConflict` as the interface says.
        """

        def unchanged(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
            check_revision(metadata, conversation_id, expected_revision)
            return metadata

        key = key_of(conversation_id)
        rows = await self.store.select(sql.RECORD, {"conversation": key})
        if not rows:
            raise ConversationConflict(conversation_id)
        session = SessionHandle(rows[0][0])
        try:
            async with self.store.effects() as fx:
                fx.update_metadata(session, unchanged)
                fx.delete(session, keep_forks=True)
        except NotFoundError as error:
            raise ConversationConflict(conversation_id) from error


def _write_entries(
    fx: Unit,
    session: SessionHandle,
    record: ConversationRecord,
    new_entries: Sequence[ConversationEntry],
) -> None:
    """Queue entries as messages, and the head of a record as the leaf."""
    for entry in new_entries:
        _append_entry(fx, session, entry)
    if not new_entries or new_entries[-1].id != record.head_id:
        fx.set_leaf(session, optional_key_of(record.head_id))


def _append_entry(fx: Unit, session: SessionHandle, entry: ConversationEntry) -> None:
    key = key_of(entry.id)
    after = optional_key_of(entry.parent_id)
    data: dict[str, Any] = {} if key == entry.id else {"pydantic_ai_id": entry.id}
    try:
        draft = transcript_draft(entry.message)
        data["pydantic_ai"] = exact_form(entry.message, draft)
        fx.append(session, dataclasses.replace(draft, id=key, data=data), after=after)
    except (InvalidInputError, CodecError):
        # A conversation that can be kept in memory can be kept here: what people read
        # is then its text alone.
        draft = plain_draft(entry.message)
        data["pydantic_ai"] = exact_form(entry.message, draft)
        fx.append(session, dataclasses.replace(draft, id=key, data=data), after=after)
