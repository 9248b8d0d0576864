"""Transcripts of the Claude Agent SDK in a database of sessiondb.

A transcript is a session, with a message for each entry (`entries`); those of subagents
are subagents of it. The work is done in threads, so that it is the same under asyncio
and trio, and a caller who is cancelled waits until it is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, TypeVar

import anyio.to_thread
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from sessiondb.adapters.claude_agent import statements as sql
from sessiondb.adapters.claude_agent.entries import entry_of_message
from sessiondb.adapters.claude_agent.keys import scope_of, transcript_key
from sessiondb.adapters.claude_agent.writer import (
    TranscriptWriter,
    subpath_in,
    summary_in,
)
from sessiondb.adapters.opening import is_given, open_async_store
from sessiondb.aio import AsyncStore
from sessiondb.errors import NotFoundError, StoreClosedError
from sessiondb.formats.kit.conversion import is_native
from sessiondb.store import Store

T = TypeVar("T")


class SessionDBSessionStore(SessionStore):
    """A session store of the Claude Agent SDK on a database of sessiondb.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. The first use opens the database. It may
    be used from any event loop of asyncio or trio, and by any number of processes.
    """

    def __init__(
        self,
        database: str | os.PathLike[str] | Store | AsyncStore | None = None,
        **options: Any,
    ) -> None:
        self._owns_store = not is_given(database)
        self._is_closed = False
        # It checks its arguments, and opens nothing.
        self._async_store = open_async_store(database, **options)
        self._writer_if_open: TranscriptWriter | None = None

    @property
    def store(self) -> Store:
        """The database, opened if it is not open yet, for what the SDK does not do.

        Raises `StoreClosedError`, and the errors of `Store.open`.
        """
        return self._writer.store

    @property
    def _writer(self) -> TranscriptWriter:
        if self._writer_if_open is None:
            if self._is_closed:
                raise StoreClosedError("this session store is closed")
            # Two threads may come here at once; the database is opened once.
            self._writer_if_open = TranscriptWriter(Store.sharing(self._async_store))
        return self._writer_if_open

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries to a transcript, in one transaction.

        An entry whose uuid the transcript has is left out. No entries change nothing.
        """
        if entries:
            await _in_thread(self._append, key, entries)

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        self._writer.append(transcript_key(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript as they were appended; None for none."""
        return await _in_thread(self._load, key)

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        session = self._writer.session_of(transcript_key(key))
        if session is None:
            return None
        try:
            messages = self.store.messages(session, branches=True)
        except NotFoundError:  # removed since then
            return None
        entries = [entry_of_message(it) for it in messages if not is_native(it.id)]
        return entries or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project with the times of their last appends."""
        return [
            {"session_id": summary["session_id"], "mtime": summary["mtime"]}
            for summary in await _in_thread(self._summaries, project_key)
        ]

    async def list_session_summaries(
        self, project_key: str
    ) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project."""
        return await _in_thread(self._summaries, project_key)

    def _summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        rows = self.store.select(sql.OF_PROJECT, {"scope": scope_of(project_key)})
        summaries = [summary_in(json.loads(metadata)) for (metadata,) in rows]
        return [summary for summary in summaries if summary is not None]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session, the oldest first."""
        return await _in_thread(self._subkeys, key)

    def _subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        session = self._writer.session_of(transcript_key(key).main)
        if session is None:
            return []
        rows = self.store.select(sql.SUBAGENTS, {"session_id": session.id})
        return [subpath_in(json.loads(metadata)) for (metadata,) in rows]

    async def delete(self, key: SessionKey) -> None:
        """Remove a transcript, and with that of a session those of its subagents.

        Forks of it stay. A transcript that is not there is not an error.
        """
        await _in_thread(self._delete, key)

    def _delete(self, key: SessionKey) -> None:
        session = self._writer.session_of(transcript_key(key))
        if session is None:
            return
        with suppress(NotFoundError):
            self.store.delete(session, keep_forks=True)
        self._writer.forget(transcript_key(key))

    def close(self) -> None:
        """Close the database, if this object opened it."""
        if not self._owns_store:
            return
        self._is_closed = True
        if self._writer_if_open is not None:
            self._writer_if_open.store.close()

    async def aclose(self) -> None:
        """Do what `close` does, in a thread."""
        await _in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    """Return the result of a function that is called in a thread."""
    return await anyio.to_thread.run_sync(function, *args)
