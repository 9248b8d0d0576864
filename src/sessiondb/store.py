"""The synchronous façade.

Every write verb is one of `effects.Unit`, committed as a unit of its own; every
read is one of `queries.Queries`. `AsyncStore` has the same names. Modules that most
programs never need are imported on first use: the command line waits for this one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, Unpack

from sessiondb.arguments import checked, file_of, session_argument
from sessiondb.database.core import Core, check_level
from sessiondb.database.exports import (
    refuse_branches,
    walked,
    with_messages,
    with_messages_at,
)
from sessiondb.database.facade import Facade, Kind, reaping
from sessiondb.database.open_units import UnitBlock
from sessiondb.effects import Unit
from sessiondb.errors import NotFoundError
from sessiondb.loading import load
from sessiondb.model.draft import MessageFields
from sessiondb.model.handles import session_key
from sessiondb.repository import Read
from sessiondb.writer.callbacks import Callback

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sessiondb.database.damage import PastDamage
    from sessiondb.database.leases import LeaseBlock
    from sessiondb.database.message_queries import MessageKey, Selected
    from sessiondb.database.streams import StreamBlock
    from sessiondb.model import (
        Change,
        Export,
        Imported,
        Message,
        Problem,
        SourceItem,
    )
    from sessiondb.model.handles import SessionRef


def _read_method(query: Callable[..., Read[Any]]) -> Callable[..., Any]:
    @wraps(query)
    def call(self: Store, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._core.read(query(self._queries, *args, **kwargs))
        except NotFoundError as error:
            self._core.open_units.explain(error, (*args, *kwargs.values()))
            raise

    return call


def _write_method(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def call(self: Store, /, *args: Any, **kwargs: Any) -> Any:
        unit = self._core.unit()
        result = verb(unit, *args, **kwargs)
        self._core.commit(unit)
        return result

    return call


def _write_by_ref(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def call(self: Store, /, *args: Any, **kwargs: Any) -> Any:
        ref, complete = session_argument(verb, args, kwargs)
        unit = self._core.unit()
        result = complete(unit, self.session(ref).id)
        self._core.commit(unit)
        return result

    return call


def _write_popping(verb: Callable[..., Any]) -> Callable[..., Any]:
    write = _write_method(verb)

    @wraps(verb)
    def call(self: Store, /, *args: Any, **kwargs: Any) -> Any:
        return write(self, *args, **kwargs).message

    return call


_METHODS: dict[Kind, Callable[[Any], Any]] = {
    "read": _read_method,
    "write": _write_method,
    "by_ref": _write_by_ref,
    "pop": _write_popping,
}


class Store(Facade, methods=_METHODS):
    """One database of sessions, usable from any thread.

    ``Store(...)`` is the same as `Store.open`; close it, or use it as a context
    manager.
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
        # Assigned first: `__del__` then finds it, and an interrupt leaves nothing open.
        self._use(Core(
            where, scope=scope, source=source, create=create, parents=parents,
            read_only=read_only, durability=durability,
            busy_timeout=busy_timeout, cwd=cwd,
        ))  # fmt: skip

    def _use(self, core: Core) -> None:
        super()._use(core)
        core.open()

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
    ) -> Self:
        """Open a database, creating it if it is new.

        *where* is a path, a URL of SQLite or PostgreSQL, or ``:memory:``; without it
        see ``SESSIONDB_PATH``, the project's own database, the global one, or *scope*
        ``local`` or ``global``. *parents* makes the missing folders of *where*;
        without it that is an error. *source* names your program. *durability*
        ``full`` survives a power cut after every unit, ``normal`` may then lose
        the last ones. *busy_timeout* is in seconds.

        Raises `NotFoundError` (not here and not *create*, or no folder for it),
        `NotADatabaseError`, `SchemaVersionError`, `CorruptionError`, `BusyError`,
        `StorageError`, `UnavailableError`, and `MissingExtraError` without the driver
        of a server.
        """
        return cls(
            where, scope=scope, source=source, create=create, parents=parents,
            read_only=read_only, durability=durability,
            busy_timeout=busy_timeout, cwd=cwd,
        )  # fmt: skip

    def close(self) -> None:
        """Close the store.

        Closing twice is fine. Use after it raises `StoreClosedError`.
        """
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing -------------------------------------------------------------

    def effects(self, *, durability: str | None = None) -> UnitBlock:
        """Queue writes in a block, which commits them as one if it is left normally."""
        if durability is not None:
            check_level(durability)
        return UnitBlock(self._core, durability)

    @checked
    def commit(self, unit: Unit, *, durability: str | None = None) -> None:
        """Commit a unit again that failed or whose outcome is unknown.

        Effects that are already stored are skipped.
        """
        self._core.commit(unit, durability)

    # -- reading -------------------------------------------------------------

    @checked
    def read_past_damage(self, report: Callable[[str], None]) -> PastDamage:
        """Let reads of a damaged file skip whatever cannot be read.

        *report* is called with a line of text for each loss; a further call changes
        nothing. Without this such reads raise `CorruptionError`. Nothing is written to
        the damaged file. Raises `UnsupportedError` for a database of a server.
        """
        file_of(self, "restore a backup of the database")
        load("sessiondb.database.damage")
        from sessiondb.database.damage import PastDamage

        core = self._core
        if core.readers.past is None:
            core.readers.past = PastDamage(
                core.target, report, read_only=core.read_only
            )
        return core.readers.past

    @checked
    def walk(
        self,
        ref: SessionRef,
        *,
        page: int = 200,
        resolve: bool = True,
        **selected: Unpack[Selected],
    ) -> Iterator[Message]:
        """Yield the messages of a session, at most *page* at a time, in bounded memory.

        *selected* and *resolve* are those of `messages`. No transaction is open while
        your code runs; a message removed by then is left out.
        """
        return walked(
            self._core, self._queries, ref, page=page, resolve=resolve, **selected
        )

    @checked
    def export(
        self,
        ref: SessionRef,
        *,
        at: MessageKey | None = None,
        branches: bool = False,
        resolve: bool = True,
    ) -> Export:
        """Return a session with everything that belongs to it, for an exporter.

        Its messages are read while they are iterated: the live path, or with
        *branches* every message in order of seq. Without *resolve* a result is only
        where it is stored: in its call, and not in a record of its own.

        With *at* it is the session as it was at that message, which has no branches:
        the path to it, its sums and labels; a call whose result was recorded later is
        interrupted. Title, todos and settings are those of now.
        """
        if at is not None:
            refuse_branches(branches)
            shell_and_cut = self._core.read(self._queries.shell_at(ref, at))
            return with_messages_at(self._core, shell_and_cut, resolve=resolve)
        export = self._core.read(self._queries.session_shell(ref))
        return with_messages(self._core, export, branches=branches, resolve=resolve)

    # -- writing over time ---------------------------------------------------

    @checked
    def lease(self, session: SessionRef, ttl: float = 30.0) -> LeaseBlock:
        """Let no other process write messages of a session within this block.

        In other processes the verbs that write messages raise `LeaseHeldError`; titles,
        labels, settings, imports and deletion remain open to all. Within this process
        it excludes other leases and streams. Raises `LeaseHeldError` while there is a
        valid one. *ttl* is in seconds, up to a day: if this process dies, others may
        take the lease over after that time.
        """
        load("sessiondb.database.leases")
        from sessiondb.database.leases import Lease, LeaseBlock

        return LeaseBlock(self._core, Lease(self._core, session_key(session), ttl))

    @checked
    def stream(
        self,
        session: SessionRef,
        *,
        ttl: float = 30.0,
        **fields: Unpack[MessageFields],
    ) -> StreamBlock:
        """Write an answer while it arrives: see `Stream`.

        Opens an assistant message at once, under a lease. Leaving the ``with`` block
        finishes it, and calls without a result may be settled later; an exception
        keeps the text so far, marks open calls as interrupted, and is raised again.
        *fields* are those of `append`.
        """
        load("sessiondb.database.leases")
        from sessiondb.database.leases import Lease

        load("sessiondb.database.streams")
        from sessiondb.database.streams import StreamBlock

        lease = Lease(self._core, session_key(session), ttl)
        return StreamBlock(self._core, lease, fields)

    def reap(self) -> int:
        """Remove the rows of deleted sessions now.

        Return the number of transactions it took.
        """
        steps = -1  # the last one finds nothing left
        for unit in reaping(self._core):
            self._core.commit(unit, "normal")
            steps += 1
        return steps

    # -- import --------------------------------------------------------------

    @checked
    def ingest(
        self,
        items: Iterable[SourceItem],
        *,
        undelete: bool = False,
        as_fork: bool = False,
        dry_run: bool = False,
        project_root: str | None = None,
    ) -> Iterator[Imported | Problem]:
        """Write the sessions and prompts that a reader of `sessiondb.formats` yields.

        Yields the outcome for each session. A second import changes nothing. *undelete*
        imports sessions that were deleted here; *as_fork* imports those continued on
        both sides as forks; *dry_run* writes nothing. *project_root* restricts the
        import to sessions of that project, as in any project-local database.
        """
        # Not at the top: a command that only reads starts faster without it.
        load("sessiondb.importing.importer")
        from sessiondb.importing.importer import new_importer

        importer = new_importer(self._core, undelete, as_fork, dry_run, project_root)
        return importer.run(items)

    # -- changes -------------------------------------------------------------

    @checked
    def on_commit(self, callback: Callback) -> Callable[[], None]:
        """Call *callback* with the changes of each commit here, on a thread of its own.

        Commits come in order, each once; the changes of one are in the order of
        `changes`. Returns a function that unsubscribes, which may be called repeatedly
        and after `close`. Raises `BusyError` if the system refuses the thread.
        """
        return self._core.subscribe(callback)

    @checked
    def changes(
        self,
        session: SessionRef | None = None,
        since: str | None = None,
        *,
        poll: float = 0.1,
        stop: threading.Event | None = None,
    ) -> Generator[Change]:
        """Yield the changes of all processes, from the first step or after *since*.

        *since* is the ``cursor`` of a `Change` of this database, or `BEGINNING`. Each
        change states where to read: messages after ``since_seq``. Several changes of a
        session between two polls are one; a deletion is yielded exactly once to a
        consumer that continues from its last ``cursor``, for each session of a family.
        Polls every *poll* seconds (up to a day) until *stop* is set. Raises
        `InvalidInputError`, also for a cursor of another database, and at the next poll
        `StoreClosedError` and `DatabaseReplacedError`.
        """
        load("sessiondb.database.feed")
        from sessiondb.database.feed import Watch

        ended = threading.Event() if stop is None else stop
        watch = Watch(session, since, poll)
        while not ended.is_set():
            yield from self._core.read(watch.look())
            ended.wait(watch.pause)

    @checked
    def connection(self) -> Connection:
        """Return a read-only SQLAlchemy connection, to be closed by the caller."""
        self._core.check_usable()
        return self._core.engine.sqlalchemy(self._core.connect_reader)
