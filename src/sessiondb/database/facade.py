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
from sessiondb.database.queries import Queries
from sessiondb.effects import Unit
from sessiondb.effects.delete import Reap
from sessiondb.errors import InvalidInputError
from sessiondb.loading import load
from sessiondb.model import Message
from sessiondb.model.handles import PoppedMessage, SessionRef, session_key
from sessiondb.repository import Read

if TYPE_CHECKING:
    from sessiondb.aio import AsyncStore
    from sessiondb.location import Database
    from sessiondb.store import Store

P = ParamSpec("P")
R = TypeVar("R")
#: ``write`` commits a verb, and so does ``by_ref``, whose session is any REF, as people
#: type it, and ``pop``, which returns the message.
Kind = Literal["read", "write", "by_ref", "pop"]


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


def _read_verb(query: Callable[Concatenate[Queries, P], Read[R]]) -> Verb[P, R]:
    return Verb("read", query)


def _write_verb(verb: Callable[Concatenate[Unit, P], R]) -> Verb[P, R]:
    return Verb("write", verb)


def _write_by_ref(verb: Callable[Concatenate[Unit, P], R]) -> Verb[P, R]:
    return Verb("by_ref", verb)


def _write_popping(
    verb: Callable[Concatenate[Unit, P], PoppedMessage],
) -> Verb[P, Message | None]:
    return Verb("pop", verb)


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
    #: The façade whose database this one shares: with it the database lives and ends.
    _owner: Facade | None = None

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
        of a server.
        """
        return self._core.target.path

    @property
    def location(self) -> Database:
        """Where the database is and how it was found.

        ``str`` of it names any database, that of a server by its URL, without a
        password.
        """
        return self._core.location

    @property
    def closed(self) -> bool:
        """Whether the store was closed: any further use raises `StoreClosedError`."""
        return self._core.closed

    @classmethod
    def sharing(cls, store: Facade) -> Self:
        """Return this façade of the database of *store*, without a connection more.

        So one part of a program may call it and another one await it. The `close` of
        either closes the database for both. `Store.sharing` of an `AsyncStore` that
        was not used yet opens it, and raises the errors of `Store.open`. Raises
        `InvalidInputError` for anything but a store, `StoreClosedError`.
        """
        if not isinstance(store, Facade):
            raise InvalidInputError(
                f"store: {type(store).__name__} is neither a Store nor an AsyncStore"
            )
        shared = cls.__new__(cls)
        Facade._share(shared, store)
        return shared

    def _share(self, owner: Facade) -> None:
        self._owner = owner
        self._use(owner._core)

    def _use(self, core: Core) -> None:
        """Make this the façade of *core*."""
        self._core = core
        self._queries = core.queries = Queries(core)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and self._owner is None:
            core.abandon()

    # -- writing -------------------------------------------------------------

    create_session = _write_verb(Unit.create_session)
    open_session = _write_verb(Unit.open_session)
    update_session = _write_verb(Unit.update_session)
    append = _write_verb(Unit.append)
    append_openai = _write_verb(Unit.append_openai)
    append_anthropic = _write_verb(Unit.append_anthropic)
    add_part = _write_verb(Unit.add_part)
    start = _write_verb(Unit.start)
    settle = _write_verb(Unit.settle)
    finish = _write_verb(Unit.finish)
    set_leaf = _write_verb(Unit.set_leaf)
    truncate = _write_verb(Unit.truncate)
    pop = _write_popping(Unit.pop)
    remove = _write_verb(Unit.remove)
    replace = _write_verb(Unit.replace)
    set_title = _write_verb(Unit.set_title)
    set_directory = _write_verb(Unit.set_directory)
    set_metadata = _write_verb(Unit.set_metadata)
    update_metadata = _write_verb(Unit.update_metadata)
    set_permission = _write_verb(Unit.set_permission)
    set_share = _write_verb(Unit.set_share)
    set_revert = _write_verb(Unit.set_revert)
    set_todos = _write_verb(Unit.set_todos)
    set_diffs = _write_verb(Unit.set_diffs)
    label = _write_verb(Unit.label)
    archive = _write_verb(Unit.archive)
    unarchive = _write_verb(Unit.unarchive)
    add_prompt = _write_verb(Unit.add_prompt)
    note_used = _write_verb(Unit.note_used)
    relink = _write_verb(Unit.relink)
    set_value = _write_verb(Unit.set_value)
    update_value = _write_verb(Unit.update_value)
    delete_value = _write_verb(Unit.delete_value)
    delete_values = _write_verb(Unit.delete_values)
    delete_expired = _write_verb(Unit.delete_expired)
    refresh_value = _write_verb(Unit.refresh_value)
    recover = _write_verb(recover)
    extend = _write_verb(Unit.extend)
    insert_rows = _write_verb(Unit.insert_rows)
    execute = _write_verb(Unit.execute)
    fork = _write_by_ref(Unit.fork)
    delete = _write_by_ref(Unit.delete)

    # -- reading -------------------------------------------------------------

    session = _read_verb(Queries.session)
    sessions = _read_verb(Queries.sessions)
    messages = _read_verb(Queries.messages)
    message = _read_verb(Queries.message)
    find_message = _read_verb(Queries.find_message)
    blob = _read_verb(Queries.blob)
    tree = _read_verb(Queries.tree)
    compare = _read_verb(Queries.compare)
    plan_delete = _read_verb(Queries.plan_delete)
    freed_bytes = _read_verb(Queries.freed_bytes)
    context = _read_verb(Queries.context)
    usage = _read_verb(Queries.usage)
    usage_records = _read_verb(Queries.usage_records)
    search = _read_verb(Queries.search)
    prompts = _read_verb(Queries.prompts)
    todos = _read_verb(Queries.todos)
    diffs = _read_verb(Queries.diffs)
    labels = _read_verb(Queries.labels)
    subagents = _read_verb(Queries.subagents)
    children = _read_verb(Queries.children)
    projects = _read_verb(Queries.projects)
    unfinished = _read_verb(Queries.unfinished)
    half_imported = _read_verb(Queries.half_imported)
    value = _read_verb(Queries.value)
    values = _read_verb(Queries.values)
    values_of = _read_verb(Queries.values_of)
    namespaces = _read_verb(Queries.namespaces)
    newest_change = _read_verb(Queries.newest_change)
    snapshot = _read_verb(Queries.snapshot)
    select = _read_verb(Queries.select)
