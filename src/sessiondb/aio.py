"""The asynchronous façade: the names of `Store`, awaited.

Reads run on threads that own a connection each, in one round trip; writes share the
writer role and are served by its daemon thread. No event loop waits for the database,
a store may be used from any loop, and cancelling a caller never cancels a transaction.
"""

from __future__ import annotations

import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
)
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Self, Unpack

from sessiondb.arguments import checked, session_argument
from sessiondb.database.connections import Readers, async_connection
from sessiondb.database.core import Core
from sessiondb.database.executor import SerialExecutor
from sessiondb.database.exports import (
    refuse_branches,
    with_messages,
    with_messages_at,
)
from sessiondb.database.facade import Facade, Kind, reaping
from sessiondb.database.feed import Watch
from sessiondb.database.leases import Lease, new_stream
from sessiondb.database.open_units import named_by
from sessiondb.database.opening import Opening, open_soon
from sessiondb.database.streams import AsyncStream
from sessiondb.effects import Unit
from sessiondb.errors import (
    BusyError,
    NotFoundError,
    StoreClosedError,
)
from sessiondb.loading import load
from sessiondb.model import Change, Export, Imported, Problem, SourceItem
from sessiondb.model.draft import MessageFields
from sessiondb.model.handles import session_key
from sessiondb.repository import Read
from sessiondb.writer.asyncio_loop import running_loop
from sessiondb.writer.callbacks import Callback, LoopNotifier
from sessiondb.writer.job import Job

if TYPE_CHECKING:
    import asyncio

    import trio
    from sqlalchemy.ext.asyncio import AsyncConnection

    from sessiondb.database.message_queries import MessageKey, Selected
    from sessiondb.model import Message
    from sessiondb.model.handles import SessionRef


def _read_method(query: Callable[..., Read[Any]]) -> Callable[..., Any]:
    @wraps(query)
    async def run(self: AsyncStore, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return await self._readers.read(query(self._queries, *args, **kwargs))
        except NotFoundError as error:
            self._core.open_units.explain(error, (*args, *kwargs.values()))
            raise

    return run


def _write_method(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    async def run(self: AsyncStore, /, *args: Any, **kwargs: Any) -> Any:
        unit = self._core.unit()
        result = verb(unit, *args, **kwargs)
        await self.commit(unit)
        return result

    return run


def _write_by_ref(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    async def run(self: AsyncStore, /, *args: Any, **kwargs: Any) -> Any:
        ref, complete = session_argument(verb, args, kwargs)
        session = await self.session(ref)
        unit = self._core.unit()
        result = complete(unit, session.id)
        await self.commit(unit)
        return result

    return run


def _write_popping(verb: Callable[..., Any]) -> Callable[..., Any]:
    write = _write_method(verb)

    @wraps(verb)
    async def run(self: AsyncStore, /, *args: Any, **kwargs: Any) -> Any:
        return (await write(self, *args, **kwargs)).message

    return run


_METHODS: dict[Kind, Callable[[Any], Any]] = {
    "read": _read_method,
    "write": _write_method,
    "by_ref": _write_by_ref,
    "pop": _write_popping,
}


class AsyncStore(Facade, methods=_METHODS):
    """One database of sessions, usable from any event loop of asyncio or trio.

    ``AsyncStore(...)`` can be made anywhere, also where no loop runs: the database is
    opened by the first read or write, which raises the errors of an opening; the next
    one tries again. ``await AsyncStore.open(...)`` opens it at once. Close it, or use
    it in ``async with``. The arguments are those of `Store.open`.
    """

    @checked
    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        scope: str = "auto",
        source: str = "sessiondb",
        create: bool = True,
        parents: bool = False,
        read_only: bool = False,
        durability: str = "full",
        busy_timeout: float = 10.0,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        self._use(Core(
            where, scope=scope, source=source, create=create, parents=parents,
            read_only=read_only, durability=durability,
            busy_timeout=busy_timeout, cwd=cwd,
        ))  # fmt: skip

    def _use(self, core: Core) -> None:
        super()._use(core)
        self._readers = Readers.of(core)

    @classmethod
    @checked
    def open(
        cls,
        where: str | os.PathLike[str] | None = None,
        *,
        scope: str = "auto",
        source: str = "sessiondb",
        create: bool = True,
        parents: bool = False,
        read_only: bool = False,
        durability: str = "full",
        busy_timeout: float = 10.0,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Opening[Self]:
        """Open a database, creating it if it is new: see `Store.open`.

        Await the result, or use it in ``async with``. A caller who is cancelled
        during it leaves nothing open.
        """

        def make() -> tuple[Self, Core]:
            store = cls(
                where, scope=scope, source=source, create=create, parents=parents,
                read_only=read_only, durability=durability,
                busy_timeout=busy_timeout, cwd=cwd,
            )  # fmt: skip
            return store, store._core

        return Opening(cls, make)

    async def close(self) -> None:
        """Close the store.

        Closing twice is fine. Use after it raises `StoreClosedError`. A caller who is
        cancelled does not wait for it; the store is closed all the same.
        """
        try:
            executor = SerialExecutor("sessiondb-close")
        except BusyError:
            # Without a thread: block the loop rather than leave the store open.
            self._core.close()
            return
        closed = executor.call(self._core.close)
        executor.end()
        await closed

    async def __aenter__(self) -> Self:
        await open_soon(self._core)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- writing -------------------------------------------------------------

    @asynccontextmanager
    @checked
    async def effects(self, *, durability: str | None = None) -> AsyncGenerator[Unit]:
        """Queue writes in a block, which commits them as one if it is left normally."""
        unit = self._core.open_units.add(self._core.unit())
        yield unit
        await self.commit(unit, durability=durability)

    @checked
    async def commit(self, unit: Unit, *, durability: str | None = None) -> None:
        """Commit a unit, the first time or again; stored effects are skipped."""
        await open_soon(self._core)
        self._core.writer.refuse_in_commit()
        loop = running_loop()
        future = loop.new_future()

        def notify(job: Job) -> None:
            loop.put(future, job.error)

        job = self._core.job(unit, durability, notify=notify, wake=loop.wake)
        if not unit.effects:
            return
        worktrees = self._core.worktrees
        if worktrees.may_start_git(unit):
            await loop.run_in_thread(partial(worktrees.complete, unit))
        else:
            worktrees.complete(unit)
        self._core.service.queue(job)
        # Once all tasks of this turn of the loop have queued: one commit for all.
        loop.call_soon(self._core.service.begin)
        try:
            await future
        except NotFoundError as error:
            self._core.open_units.explain(error, named_by(unit))
            raise
        self._core.committed(unit)
        if worktrees.is_due(unit):
            # In the background: the unit is committed, whatever git takes.
            loop.run_in_background(self._core.refresh_project)

    # -- reading -------------------------------------------------------------

    @checked
    async def walk(
        self,
        ref: SessionRef,
        *,
        page: int = 200,
        resolve: bool = True,
        **selected: Unpack[Selected],
    ) -> AsyncIterator[Message]:
        """Yield the messages of a session, *page* at a time: see `Store.walk`."""
        queries = self._queries
        pages = await self._readers.read(queries.pages(ref, page=page, **selected))
        for seqs in pages.seqs:
            read = queries.page(pages, seqs, resolve=resolve)
            for message in await self._readers.read(read):
                yield message

    @checked
    async def export(
        self,
        ref: SessionRef,
        *,
        at: MessageKey | None = None,
        branches: bool = False,
        resolve: bool = True,
    ) -> Export:
        """Return a session for an exporter: see `Store.export`.

        Exporters are not asynchronous, so run them in a thread, which then reads the
        messages while it iterates over them.
        """
        if at is not None:
            refuse_branches(branches)
            shell_and_cut = await self._readers.read(self._queries.shell_at(ref, at))
            return with_messages_at(self._core, shell_and_cut, resolve=resolve)
        export = await self._readers.read(self._queries.session_shell(ref))
        return with_messages(self._core, export, branches=branches, resolve=resolve)

    @checked
    def connection(self) -> AsyncConnection:
        """Return a read-only SQLAlchemy connection, to be awaited.

        It runs over aiosqlite. Needs greenlet (``pip install 'sessiondb[asyncio]'``):
        raises `MissingExtraError` without it.
        """
        return async_connection(self._core)

    # -- writing over time ---------------------------------------------------

    @asynccontextmanager
    @checked
    async def lease(
        self, session: SessionRef, ttl: float = 30.0
    ) -> AsyncGenerator[Lease]:
        """Let no other process write messages of a session: see `Store.lease`."""
        await open_soon(self._core)
        lease = Lease(self._core, session_key(session), ttl)
        drop = self._core.job(lease.unit(lease.drop))
        try:
            await self.commit(lease.unit(lease.take))
        except running_loop().Cancelled:
            self._core.service.send(drop)
            raise
        try:
            lease.taken()
            yield lease
        finally:
            lease.given_back()
            with running_loop().ending(), suppress(StoreClosedError):
                await self.commit(lease.unit(lease.drop))

    @asynccontextmanager
    @checked
    async def stream(
        self,
        session: SessionRef,
        *,
        ttl: float = 30.0,
        **fields: Unpack[MessageFields],
    ) -> AsyncGenerator[AsyncStream]:
        """Write an answer while it arrives: see `Store.stream`."""
        await open_soon(self._core)
        lease = Lease(self._core, session_key(session), ttl)
        out = AsyncStream(new_stream(self._core, lease.session_id))
        opening = out.inner.opening(lease.take, **fields)
        try:
            await self.commit(opening)
        except running_loop().Cancelled as error:
            # The message may be open by now: its end is queued too, without a caller.
            out.inner.close(error, lease.drop, lambda _: None)
            raise
        failure: BaseException | None = None
        try:
            lease.taken()
            yield out
            await out.flush()
        except BaseException as error:
            failure = error
            raise
        finally:
            lease.given_back()
            with running_loop().ending():
                await out.end(failure, lease)

    async def reap(self) -> int:
        """Remove the rows of deleted sessions now.

        Return the number of transactions it took.
        """
        steps = -1  # the last one finds nothing left
        for unit in reaping(self._core):
            await self.commit(unit, durability="normal")
            steps += 1
        return steps

    # -- import --------------------------------------------------------------

    @checked
    async def ingest(
        self,
        items: Iterable[SourceItem],
        *,
        undelete: bool = False,
        as_fork: bool = False,
        dry_run: bool = False,
        project_root: str | None = None,
    ) -> AsyncIterator[Imported | Problem]:
        """Write the sessions that a reader yields, in a thread: see `Store.ingest`."""
        await open_soon(self._core)
        # Not at the top: a command that only reads starts faster without it.
        load("sessiondb.importing.importer")
        from sessiondb.importing.importer import new_importer

        importer = new_importer(self._core, undelete, as_fork, dry_run, project_root)
        results = importer.run(items)
        # One thread from the first record to the last: a reader has connections of its
        # own.
        executor = SerialExecutor(
            "sessiondb-import", last=partial(_close_all, results, items)
        )
        try:
            while (
                result := await executor.call(lambda: next(results, None))
            ) is not None:
                yield result
        finally:
            executor.end()

    # -- changes -------------------------------------------------------------

    @checked
    def on_commit(self, callback: Callback) -> Callable[[], None]:
        """Call *callback* with the changes of each commit here, on this loop.

        The result of a coroutine function is awaited. Returns a function that
        unsubscribes.
        Commits come in order, each once; the changes of one are in the order of
        `changes`.
        """
        self._core.open()
        return self._core.subscribe(callback, LoopNotifier(running_loop()).deliver)

    @checked
    async def changes(
        self,
        session: SessionRef | None = None,
        since: str | None = None,
        *,
        poll: float = 0.1,
        stop: asyncio.Event | trio.Event | threading.Event | None = None,
    ) -> AsyncGenerator[Change]:
        """Yield the changes that any process commits: see `Store.changes`.

        It ends once *stop* is set: at once for an event of the loop, after the next
        poll for one of threading.
        """
        watch = Watch(session, since, poll)
        while stop is None or not stop.is_set():
            for change in await self._readers.read(watch.look()):
                yield change
            event = None if isinstance(stop, threading.Event) else stop
            await running_loop().wait_for(event, watch.pause)


def _close_all(*iterables: Iterable[object]) -> None:
    for one in iterables:
        if isinstance(one, Generator):
            one.close()
