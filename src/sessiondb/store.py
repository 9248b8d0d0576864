"""The synchronous façade.

Every write verb is one of `effects.Unit`, committed as a unit of its own; every
read is one of `queries.Queries`. `AsyncStore` has the same names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from sessiondb.core import Core
from sessiondb.effects import Unit
from sessiondb.queries import Queries
from sessiondb.repository import Read
from sessiondb.repository.transcript import pages

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sessiondb.effects.handles import SessionRef
    from sessiondb.model import Message

P = ParamSpec("P")
R = TypeVar("R")


def _read(query: Callable[Concatenate[Queries, P], Read[R]]) -> Callable[Concatenate[Store, P], R]:
    @wraps(query)
    def call(self: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._core.read(query(self._queries, *args, **kwargs))

    return call


def _write(verb: Callable[Concatenate[Unit, P], R]) -> Callable[Concatenate[Store, P], R]:
    @wraps(verb)
    def call(self: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
        unit = self._core.unit()
        result = verb(unit, *args, **kwargs)
        self._core.commit(unit)
        return result

    return call


class Store:
    """One database of sessions, usable from any thread.

    Open it with `Store.open`; close it, or use it as a context manager.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._queries = Queries(core)

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str] | None = None,
        *,
        scope: str = "auto",
        source: str = "sessiondb",
        create: bool = True,
        read_only: bool = False,
        durability: str = "full",
        busy_timeout: float = 10.0,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open a database, making it if it is new.

        *where* is a path, an SQLite URL or ``:memory:``; without it see
        ``SESSIONDB_PATH``, the project's own database, the global one, or *scope*
        ``local`` or ``global``. *source* names your program. *durability*
        ``full`` survives a power cut after every unit, ``normal`` may then lose
        the last ones. *busy_timeout* is in seconds.

        Raises `NotFoundError` (not here and not *create*), `NotADatabaseError`,
        `SchemaVersionError`, `CorruptionError`, `BusyError`, `StorageError`.
        """
        return cls(
            Core(
                where, scope=scope, source=source, create=create, read_only=read_only,
                durability=durability, busy_timeout=busy_timeout, cwd=cwd,
            )
        )  # fmt: skip

    @property
    def path(self) -> Path:
        """The database file."""
        return self._core.path

    @property
    def location(self) -> Any:
        """Where the database is and how it was found: a `location.Database`."""
        return self._core.location

    def close(self) -> None:
        """Close the store; closing twice is fine. Use after it raises `StoreClosedError`."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None:
            core.close()

    # -- writing -------------------------------------------------------------

    @contextmanager
    def effects(self, *, durability: str | None = None) -> Generator[Unit]:
        """Queue writes in a ``with`` block: left normally they commit as one, else nothing is."""
        unit = self._core.unit()
        yield unit
        self._core.commit(unit, durability)

    def commit(self, unit: Unit, *, durability: str | None = None) -> None:
        """Commit a unit again after it failed or its outcome is unknown; what is there is skipped."""
        self._core.commit(unit, durability)

    create_session = _write(Unit.create_session)
    append = _write(Unit.append)
    add_part = _write(Unit.add_part)
    start = _write(Unit.start)
    settle = _write(Unit.settle)
    finish = _write(Unit.finish)
    set_leaf = _write(Unit.set_leaf)
    truncate = _write(Unit.truncate)
    set_title = _write(Unit.set_title)
    set_directory = _write(Unit.set_directory)
    set_metadata = _write(Unit.set_metadata)
    set_permission = _write(Unit.set_permission)
    set_share = _write(Unit.set_share)
    set_revert = _write(Unit.set_revert)
    set_todos = _write(Unit.set_todos)
    set_diffs = _write(Unit.set_diffs)
    label = _write(Unit.label)
    archive = _write(Unit.archive)
    unarchive = _write(Unit.unarchive)
    add_prompt = _write(Unit.add_prompt)
    fork = _write(Unit.fork)
    delete = _write(Unit.delete)

    # -- reading -------------------------------------------------------------

    session = _read(Queries.session)
    sessions = _read(Queries.sessions)
    messages = _read(Queries.messages)
    message = _read(Queries.message)
    blob = _read(Queries.blob)
    tree = _read(Queries.tree)
    compare = _read(Queries.compare)
    plan_delete = _read(Queries.plan_delete)
    context = _read(Queries.context)
    usage = _read(Queries.usage)
    search = _read(Queries.search)
    prompts = _read(Queries.prompts)
    todos = _read(Queries.todos)
    diffs = _read(Queries.diffs)
    labels = _read(Queries.labels)
    projects = _read(Queries.projects)
    unfinished = _read(Queries.unfinished)

    def walk(self, ref: SessionRef, *, branches: bool = False, page: int = 200) -> Iterator[Message]:
        """Yield the messages of a session, reading *page* at a time: memory stays bounded.

        No transaction is open while your code runs; a message removed meanwhile
        is left out.
        """
        read = self._core.read
        session_id, path = read(self._queries.path(ref, branches=branches))
        for seqs in pages(path, page):
            yield from read(self._queries.page(session_id, seqs))

    def connection(self) -> Connection:
        """Return a read-only SQLAlchemy connection, to be closed by you."""
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        self._core.check_usable()
        engine = create_engine("sqlite://", creator=self._core.connect_reader, poolclass=NullPool)
        return engine.connect()
