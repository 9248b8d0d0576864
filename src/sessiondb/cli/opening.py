"""The database that a command works on, and the sessions that it names."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli.text import shortened, visible
from sessiondb.dataclass import dataclass
from sessiondb.engine.address import without_passwords
from sessiondb.errors import NotFoundError, ReadOnlyError, SessionDBError, abridged
from sessiondb.hints import command, with_database, word

if TYPE_CHECKING:
    from sessiondb.engine.base import Target
    from sessiondb.location.database import Database, Scope
    from sessiondb.model import Message, Session
    from sessiondb.repository import Read
    from sessiondb.store import Store


#: Characters of a command line that is repeated in a hint.
MAX_TYPED = 1_000
#: New objects after which the collector looks for cycles. Records have none, and with
#: the default of 700 it takes about 4 % of the time of `show` of a long session.
_COLLECTED = 10_000
#: A seq: int() refuses 5,000 digits, and SQLite has no room for 20.
_SEQ = "(?=0*[1-9])[0-9]{1,18}"


@dataclass(slots=True)
class Options:
    """The command line: what was typed, and the options before the command.

    ``argv`` is for messages: without the passwords of databases of servers.
    """

    db: str | None = None
    scope: Scope = "auto"
    color: str = "auto"
    verbose: bool = False
    damaged: bool = False
    argv: tuple[str, ...] = ()
    command: str | None = None

    @property
    def database(self) -> list[str]:
        """The options that chose the database; a further command needs them too."""
        if self.db is not None:
            return ["--db", without_passwords(self.db)]
        return [] if self.scope == "auto" else [f"--{self.scope}"]

    @property
    def wants_json(self) -> bool:
        """Whether errors are reported as JSON; known before the options are parsed."""
        return not {"--json", "--jsonl"}.isdisjoint(
            self.argv[: _end_of_options(self.argv)]
        )

    @property
    def is_long(self) -> bool:
        """Whether the command line is too long to be repeated in a hint."""
        return sum(map(len, self.argv)) > MAX_TYPED

    def again(self, *more: str, without: str | None = None) -> str:
        """Return the command that was typed, with *more* options, for a hint.

        *without* is an option that is left out with its value.
        """
        # A hint has to fit on a screen; it names the help page instead.
        if self.is_long:
            return command(*filter(None, [self.command]), "--help")

        arguments = split(self.argv, without)
        while without in arguments:
            index = arguments.index(without)
            del arguments[index : index + 2]

        end = _end_of_options(arguments)
        return command(*arguments[:end], *more, *arguments[end:])


def split(argv: Sequence[str], option: str | None) -> list[str]:
    """Return *argv* with each ``--option=value`` as two words."""
    words: list[str] = []
    for argument in argv:
        is_joined = argument.partition("=")[0] == option
        words += argument.split("=", 1) if is_joined else [argument]
    return words


def _end_of_options(argv: Sequence[str]) -> int:
    """Return where the options end: after two dashes every word is an argument."""
    return [*argv, "--"].index("--")


def scope_of(*, local: bool, global_: bool) -> Scope:
    """Return the scope that ``--local`` and ``--global`` choose."""
    if local:
        return "local"
    return "global" if global_ else "auto"


def current() -> Options:
    """Return the options of the command that runs."""
    return click.get_current_context().find_object(Options) or Options()


def here() -> str:
    """Return the current directory, for a message."""
    try:
        return os.getcwd()  # noqa: PTH109  `--help` loads no pathlib
    except FileNotFoundError:
        return "a directory that is gone"


def say(line: str) -> None:
    """Write one line to stderr, after all of stdout; controls in it are escaped."""
    sys.stdout.flush()
    click.echo(visible(shortened(with_database(line, current().database))), err=True)


def locate(options: Options) -> Database:
    """Return where the database of this invocation is, without opening it.

    A database that is not used because it is not trusted is reported.
    """
    from sessiondb.location.database import resolve

    database = resolve(options.db, scope=options.scope)
    if database.notice:
        say(database.notice)
    return database


def existing(options: Options) -> Target:
    """Return the database without opening it; raises `NotFoundError`."""
    database = locate(options)
    target = database.target()
    if target is None or not target.exists():
        raise NotFoundError(
            f"no database at {database}", hint=f"{command('init')} creates it"
        )
    return target


def open_store(
    options: Options, *, writing: bool = False, parents: bool = False
) -> Store:
    """Open the database of this invocation.

    It is created if it does not exist, except for reading where ``--db`` names it; the
    missing folders of a named one are made with *parents*. A database that cannot be
    written here is opened read-only. config.toml sets how durable a write is.
    """
    from sessiondb.location import load_config
    from sessiondb.store import Store

    if not gc.isenabled():  # see `cli.run`
        gc.freeze()
        gc.set_threshold(_COLLECTED)
        gc.enable()

    try:
        store = Store.open(
            options.db,
            scope=options.scope,
            create=writing or options.db is None,
            parents=parents,
            durability=load_config().durability,
        )
    except ReadOnlyError:
        # A database that cannot be written can still be read as it is.
        if writing:
            raise
        store = Store.open(
            options.db, scope=options.scope, create=False, read_only=True
        )

    if store.location.notice:
        say(store.location.notice)
    # A server has no pages that could be read past.
    if not writing and store.path is not None:
        store.read_past_damage(partial(_report_damage, options))
    return store


def rows_of(store: Store, sql: str, **parameters: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query of the command line's own, with ``:name`` in it."""
    from sessiondb.engine.sql import ComposedStatement

    def read(_: object) -> Read[list[tuple[Any, ...]]]:
        return (yield ComposedStatement(sql), parameters)

    return store.snapshot(read)


def _report_damage(options: Options, missing: str) -> None:
    """Report what is missing from the output; the command exits with 4 then."""
    options.damaged = True
    say(f"the file is damaged; {missing}")


def terminal() -> str | None:
    """Return a name for the terminal this command was typed in; None without one.

    A program that runs us through pipes has none, so it never moves a person's ``@``.
    """
    for descriptor in (0, 1, 2):
        # AttributeError: not every system has terminals.
        with contextlib.suppress(OSError, AttributeError):
            # Two terminals may get the same name in turn, but not one session leader.
            leader = os.getsid(0) if hasattr(os, "getsid") else 0
            return f"{os.ttyname(descriptor)}:{leader}"
    return None


#: The variables by which oh-my-pi names a terminal that is not its stdin.
_THEIR_NAMES = {
    "tmux": "TMUX_PANE",
    "kitty": "KITTY_WINDOW_ID",
    "wezterm": "WEZTERM_PANE",
    "cmux": "CMUX_SURFACE_ID",
    "apple": "TERM_SESSION_ID",
    "wt": "WT_SESSION",
}


def terminal_names() -> dict[str, int] | None:
    """Return all names of this terminal, each with the Unix ms since which it is one.

    They are ours and those of oh-my-pi, by its ``ttyid.ts``. The latter are reused for
    other terminals, so they count from the time at which this one was opened.
    """
    terminal_id = terminal()
    if terminal_id is None:
        return None

    device = terminal_id.rpartition(":")[0]
    opened = 0
    with contextlib.suppress(OSError):
        # Reading and writing change only the other times of the device.
        opened = os.stat(device).st_ctime_ns // 1_000_000
    return {terminal_id: 0} | dict.fromkeys(_their_names(device), opened)


def _their_names(device: str) -> Iterator[str]:
    yield device.removeprefix("/dev/").replace("/", "-")

    pane = os.environ.get("ZELLIJ_PANE_ID")
    if pane:
        session = re.sub(r"[\\/]", "-", os.environ.get("ZELLIJ_SESSION_NAME", ""))
        yield "-".join(filter(None, ("zellij", session, pane)))
    for program, variable in _THEIR_NAMES.items():
        if value := os.environ.get(variable):
            yield f"{program}-{value}"


def find(store: Store, ref: str | None) -> Session:
    """Return the session that *ref* names and remember it as the last one used here.

    None is the one used last in this terminal and directory, else the newest.
    """
    if ref is None:
        return _find_last(store)
    (session,) = find_all(store, [ref])
    remember(store, session)
    return session


def find_all(store: Store, refs: Iterable[str]) -> list[Session]:
    """Return the sessions that *refs* name; raises `NotFoundError` for any of them."""
    names = terminal_names()
    sessions = []
    for ref in refs:
        try:
            sessions.append(store.session(ref, terminal=names))
        except NotFoundError:
            _refuse_address(store, ref)
            raise
    return sessions


def _refuse_address(store: Store, ref: str) -> None:
    """Raise `NotFoundError` if *ref* is an address, where a session is needed."""
    name, _, message = ref.rpartition("#")
    if not (name and message):
        return
    try:
        store.session(name)
    except NotFoundError:
        return
    raise NotFoundError(
        f"{abridged(ref)} is the place of a message, and not a session",
        hint=f"name the session alone: {word(name)}",
    )


def find_message(store: Store, session: Session, name: str) -> Message:
    """Return the message with *name* as its id or label, else as its seq."""
    try:
        return store.message(session, name)
    except NotFoundError:
        # An id or label of digits comes first: it is the name that was given.
        if not re.fullmatch(_SEQ, name):
            raise
        return store.message(session, int(name))


def find_place(store: Store, ref: str | None) -> tuple[Session, Message | None]:
    """Return the session that *ref* names, and its message for an address.

    The session is remembered as the last one used here; None is that one.
    """
    if ref is None:
        return find(store, None), None
    session, message = place_named(store, ref)
    remember(store, session)
    return session, message


def place_named(store: Store, ref: str) -> tuple[Session, Message | None]:
    """Return the session that *ref* names, and its message for an address.

    An address is ``REF#M``: M is a seq, an id or a label. A session whose name has a
    ``#`` in it is that session.
    """
    names = terminal_names()
    name, _, message = ref.rpartition("#")
    try:
        return store.session(ref, terminal=names), None
    except NotFoundError:
        if not (name and message):
            raise
    session = store.session(name, terminal=names)
    return session, find_message(store, session, message)


def _find_last(store: Store) -> Session:
    try:
        return find(store, "@")
    except NotFoundError as error:
        everywhere = f"{command('list', '-a')} shows every session"
        raise NotFoundError(
            f"no session in {here()}",
            hint=f"{everywhere}; {command('import')} imports them",
        ) from error


def remember(store: Store, session: Session) -> None:
    """Make *session* what ``@`` means in this terminal and directory.

    A convenience: where it cannot be written, the command continues without it.
    """
    name = terminal()
    if name is not None:
        with contextlib.suppress(SessionDBError):
            store.note_used(session, name)
