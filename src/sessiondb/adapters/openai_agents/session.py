"""A session of the OpenAI Agents SDK in a database of sessiondb: an item is a message.

A write is one unit, and a read one statement. The id of the session in the database is
remembered, which saves looking it up, and never trusted: a unit for one that was
deleted fails, and is made again for the session that has the name now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar, cast
from urllib.parse import quote

from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.memory.session_settings import (
    coerce_session_settings,
    resolve_session_limit,
)

from sessiondb.adapters.openai_agents import statements as sql
from sessiondb.adapters.openai_agents.compaction import (
    CompactionSnapshot,
    read_end,
    replace_suffix,
)
from sessiondb.adapters.openai_agents.items import (
    Item,
    ItemDraft,
    append_items,
    drafts_of_items,
    items_of_messages,
)
from sessiondb.adapters.openai_agents.rows import (
    NotOnlyItemsError,
    PartRow,
    UnknownResultError,
    items_of_rows,
    last_path_rows,
    path_rows,
)
from sessiondb.adapters.openai_agents.usage import CountedRequests, RunWrapper
from sessiondb.adapters.opening import Where, borrow_store
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import InvalidInputError, NotFoundError, abridged
from sessiondb.ids import valid_id

T = TypeVar("T")

#: Rows that are read beside the items that are wanted: parts of one message, and the
#: calls whose results are the first of these items.
_ROWS_BESIDE = 4
#: Rows from which on items are put together in a thread: the loop would wait 2 ms.
_MANY_ROWS = 2_000
#: How often a unit is made again for a session that was deleted meanwhile.
_ATTEMPTS = 100


class SessionDBSession:
    """A `Session` of the OpenAI Agents SDK on a database of sessiondb.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. It is opened by the first use, once for
    all sessions of a path in this process, and may be used from any number of event
    loops and processes. *session_settings* has the default ``limit`` of `get_items`;
    *session_scope* is the key by which `Store.sessions` lists a new session, such as
    its user. *model* is that of answers whose items do not name one, as those of the
    Responses API do not.

    The *wrapper* of a method is that of the run, which a runner passes: it has counted
    the tokens of the answers.
    """

    session_id: str
    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        database: Where = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        session_scope: str | None = None,
        model: str | None = None,
        **options: Any,
    ) -> None:
        self.session_id = session_id
        if session_settings is None:
            session_settings = SessionSettings()
        self.session_settings = coerce_session_settings(session_settings)
        self._name = _name_of(session_id)
        self._scope, self._model = session_scope, model
        self._lent = borrow_store(self, database, **options)
        self.store = self._lent.store
        self._session: SessionHandle | None = None
        self._requests = CountedRequests()
        self._closed = False

    # -- reading ---------------------------------------------------------------------

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunWrapper | None = None
    ) -> list[TResponseInputItem]:
        """Return the items of the conversation, oldest first; [] without any.

        A *limit*, by default that of the session's settings, returns the last ones. As
        with `SQLiteSession`, 0 returns none and a negative one all.
        """
        del wrapper
        self._refuse_if_closed()
        most = resolve_session_limit(limit, self.session_settings)
        if most is None or most < 0:
            items = await self._read_all()
        elif most == 0:
            items = []
        else:
            items = await self._read_last(most)
        return cast(list[TResponseInputItem], items)

    async def _read_all(self) -> list[Item]:
        rows = await self.store.select(sql.ALL_PARTS, {"name": self._name})

        def make_items() -> list[Item]:
            return items_of_rows(path_rows(rows))

        try:
            if len(rows) < _MANY_ROWS:
                return make_items()
            return await asyncio.to_thread(make_items)
        except (NotOnlyItemsError, UnknownResultError):
            return await self._read_messages()

    async def _read_last(self, most: int) -> list[Item]:
        row_count = most + _ROWS_BESIDE
        while True:
            parameters = {"name": self._name, "most": row_count}
            rows: Sequence[PartRow] = await self.store.select(
                sql.LAST_PARTS, parameters
            )
            is_complete = False
            try:
                path, is_complete = last_path_rows(rows, row_count)
                items = items_of_rows(path, most)
            except NotOnlyItemsError:
                return (await self._read_messages())[-most:]
            except UnknownResultError:
                if is_complete:
                    return (await self._read_messages())[-most:]
            else:
                if is_complete or len(items) == most:
                    return items
            row_count *= 4

    async def _read_messages(self) -> list[Item]:
        """Return all items, by a read that knows the messages of any program."""
        session = await self._find_session()
        if session is None:
            return []
        try:
            return items_of_messages(await self.store.messages(session))
        except NotFoundError:
            return []

    async def _find_session(self) -> SessionHandle | None:
        """Return the session as it is stored now; None if there is none."""
        rows = await self.store.select(sql.PLACE, {"name": self._name})
        self._session = SessionHandle(rows[0][0]) if rows else None
        return self._session

    # -- writing ---------------------------------------------------------------------

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunWrapper | None = None
    ) -> None:
        """Append items, in one transaction.

        A caller who is cancelled waits until they are written.
        """
        self._refuse_if_closed()
        if not items:
            return
        await _finish(self._add(drafts_of_items(items), wrapper))

    async def _add(self, drafts: list[ItemDraft], wrapper: RunWrapper | None) -> None:
        requests = 0
        if wrapper is not None:
            requests = self._requests.add_tokens(wrapper, drafts, self._model)
        await self._write(lambda fx, session: append_items(fx, session, drafts))
        if wrapper is not None:
            self._requests.count(wrapper, requests)

    async def _write(self, fill: Callable[[Unit, SessionHandle], None]) -> None:
        """Commit what *fill* queues for the session, which may be new."""
        for attempt in range(_ATTEMPTS):
            session = self._session
            try:
                async with self.store.effects() as fx:
                    if session is None:
                        session = fx.open_session(
                            self._name,
                            source=sql.SOURCE,
                            directory=None,
                            scope=self._scope,
                        )
                    fill(fx, session)
            except NotFoundError:
                # It was deleted: by `clear_session` of another process, or by a shell.
                self._session = None
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                self._session = SessionHandle(session.id)
                return

    async def pop_item(
        self, *, wrapper: RunWrapper | None = None
    ) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none.

        Each item is returned to one caller, whichever process it is in.
        """
        del wrapper
        self._refuse_if_closed()
        return cast(TResponseInputItem | None, await _finish(self._pop()))

    async def _pop(self) -> Item | None:
        for _ in range(_ATTEMPTS):
            session = self._session or await self._find_session()
            if session is None:
                return None
            try:
                message = await self.store.pop(session)
            except NotFoundError:
                self._session = None
                continue
            if message is None:
                return None
            # A message that another program wrote may be no item.
            items = items_of_messages([message])
            if items:
                return items[-1]
        return None

    async def clear_session(self, *, wrapper: RunWrapper | None = None) -> None:
        """Remove the session with all its items; the next one begins a new session."""
        del wrapper
        self._refuse_if_closed()
        await _finish(self._clear())

    async def _clear(self) -> None:
        for _ in range(_ATTEMPTS):
            session = self._session or await self._find_session()
            self._session = None
            if session is None:
                return
            with suppress(NotFoundError):
                await self.store.delete(session, keep_forks=True)
                return

    # -- compaction ------------------------------------------------------------------

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None
    ) -> CompactionSnapshot | None:
        """Return the last *limit* items, and how to replace some at their end.

        `OpenAIResponsesCompactionSession` calls it, and without it replaces only a
        history that it knows completely. None if the session is not of items alone, or
        a subclass changes what is read or written.
        """
        for name in ("get_items", "add_items"):
            if getattr(type(self), name) is not getattr(SessionDBSession, name):
                return None
        self._refuse_if_closed()
        rows = await self.store.select(sql.PLACE, {"name": self._name})
        if not rows:
            return None
        session_id, _, revision = rows[0]
        session = SessionHandle(session_id)
        end = await read_end(self.store, session, revision, limit)
        if end is None:
            return None

        items = cast(list[TResponseInputItem], end.items)

        async def replace(start: int, output: list[TResponseInputItem]) -> bool:
            self._refuse_if_closed()
            drafts = drafts_of_items(output)
            return await _finish(
                replace_suffix(self.store, end, start, drafts, prune_prefix)
            )

        return CompactionSnapshot(items, end.is_complete, replace)

    # -- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """Close the session, and the store of a path with the last session of it.

        Closing twice is fine; any other use after it raises `RuntimeError`.
        """
        if self._closed:
            return
        self._closed = True
        self._lent.give_back(self)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RuntimeError(f"{type(self).__name__} is closed")
        self._lent.was_used = True


def _name_of(session_id: str) -> str:
    """Return the ``source_id`` of a session: its id, or a form of it that is stored.

    An empty id, one of more than 256 bytes or with control characters has one that
    begins with ``~``, as each id does that begins like that itself.
    """
    if not isinstance(session_id, str):
        raise InvalidInputError(f"session_id is a string, not {abridged(session_id)}")
    if not session_id.startswith("~"):
        with suppress(InvalidInputError):
            return valid_id(session_id, "session_id")
    name = "~" + quote(session_id, safe="", errors="surrogatepass")
    if len(name) > 256:
        content = session_id.encode("utf-8", "surrogatepass")
        name = "~#" + sha256(content).hexdigest()
    return name


async def _finish(writing: Awaitable[T]) -> T:
    """Return the result of a write; a caller who is cancelled waits for it as well.

    So its outcome is known: an item that a cancelled caller added is there. The
    cancellation is raised after it, and takes the place of an error of the write.
    """
    task = asyncio.ensure_future(writing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        # Retrieved, or the loop reports it as an error that was never retrieved.
        task.exception()
    raise cancelled
