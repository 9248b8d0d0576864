"""The verbs and reads that both façades have, stated once.

A verb is a method of `effects.Unit`, committed as a unit of its own; a read is one of
`queries.Queries`. A façade is given a function for each kind, which decides who waits.
These functions become plain methods of its class, so that a call costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from sessiondb.database.core import Core
from sessiondb.database.loading import load
from sessiondb.database.queries import Queries
from sessiondb.effects import Unit
from sessiondb.effects.delete import Reap
from sessiondb.model.handles import SessionRef, session_key
from sessiondb.repository import Read

if TYPE_CHECKING:
    from sessiondb.aio import AsyncStore
    from sessiondb.location import Database
    from sessiondb.store import Store

P = ParamSpec("P")
R = TypeVar("R")
#: ``write`` commits a verb, and so does ``by_ref``, whose session is any REF, as people
#: type it.
Kind = Literal["read", "write", "by_ref"]


class Verb(Generic[P, R]):
    """A method of both façades, by the function that it calls."""

    def __init__(self, kind: Kind, function: Callable[..., Any]) -> None:
        self.kind: Kind = kind
        self.function = function

    if TYPE_CHECKING:

        @overload
        def __get__(self, store: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, store: Store, owner: Any) -> Callable[P, R]: ...
        @overload
        def __get__(
            self, store: AsyncStore, owner: Any
        ) -> Callable[P, Coroutine[Any, Any, R]]: ...
        def __get__(self, store: Any, owner: Any) -> Any: ...


def _read(query: Callable[Concatenate[Queries, P], Read[R]]) -> Verb[P, R]:
    return Verb("read", query)


def _write(verb: Callable[Concatenate[Unit, P], R]) -> Verb[P, R]:
    return Verb("write", verb)


def _write_by_ref(verb: Callable[Concatenate[Unit, P], R]) -> Verb[P, R]:
    return Verb("by_ref", verb)


def recover(unit: Unit, session: SessionRef) -> None:
    """Settle the calls and messages that a dead writer left open.

    Raises `LeaseHeldError` if a living writer holds the lease.
    """
    # Not at the top: a command that only reads starts faster without it.
    load("sessiondb.effects.recovery")
    from sessiondb.effects.recovery import Recover

    unit.add(Recover(session_key(session)))


def reaping(core: Core) -> Iterator[Unit]:
    """Yield units that remove the rows of deleted sessions, each to be committed."""
    more = True
    while more:
        unit, step = core.unit(), Reap()
        unit.add(step)
        yield unit
        more = step.more


class Facade:
    """The common part of `Store` and `AsyncStore`."""

    _core: Core

    def __init_subclass__(
        cls, methods: dict[Kind, Callable[[Any], Any]] | None = None
    ) -> None:
        """Give a façade its methods; *methods* has the maker of each kind."""
        if methods is None:  # a subclass of a façade
            return

        for name, verb in vars(Facade).items():
            if isinstance(verb, Verb):
                setattr(cls, name, methods[verb.kind](verb.function))

    @property
    def path(self) -> Path | None:
        """The database file.

        That of ``:memory:`` is a temporary one, removed by `close`. None for a database
        that is not a file, which no engine of this release has; a program that needs
        the file should check for it.
        """
        return self._core.path

    @property
    def location(self) -> Database:
        """Where the database is and how it was found."""
        return self._core.location

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None:
            core.abandon()

    # -- writing -------------------------------------------------------------

    create_session = _write(Unit.create_session)
    open_session = _write(Unit.open_session)
    update_session = _write(Unit.update_session)
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
    note_used = _write(Unit.note_used)
    relink = _write(Unit.relink)
    recover = _write(recover)
    fork = _write_by_ref(Unit.fork)
    delete = _write_by_ref(Unit.delete)

    # -- reading -------------------------------------------------------------

    session = _read(Queries.session)
    sessions = _read(Queries.sessions)
    messages = _read(Queries.messages)
    message = _read(Queries.message)
    blob = _read(Queries.blob)
    tree = _read(Queries.tree)
    compare = _read(Queries.compare)
    plan_delete = _read(Queries.plan_delete)
    freed_bytes = _read(Queries.freed_bytes)
    context = _read(Queries.context)
    usage = _read(Queries.usage)
    search = _read(Queries.search)
    prompts = _read(Queries.prompts)
    todos = _read(Queries.todos)
    diffs = _read(Queries.diffs)
    labels = _read(Queries.labels)
    projects = _read(Queries.projects)
    unfinished = _read(Queries.unfinished)
    half_imported = _read(Queries.half_imported)
    newest_change = _read(Queries.newest_change)
