"""Which database a command works on, and what is remembered about the session it used."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from sessiondb.cli.text import shortened, visible
from sessiondb.errors import NotFoundError, ReadOnlyError, SessionDBError
from sessiondb.hints import command, with_database

if TYPE_CHECKING:
    from sessiondb.engine.sqlite.salvage import ReadableCopy
    from sessiondb.model import Message, Session
    from sessiondb.store import Store


#: The exit code of a command that a person interrupted.
INTERRUPTED = 130
#: Characters of a command line that is shown again.
MAX_TYPED = 1_000
#: Digits of the largest seq; int() refuses 5,000 of them.
MAX_DIGITS = 18


@dataclass(slots=True)
class Options:
    """The command line: what was typed, and the options before the command."""

    db: str | None = None
    scope: str = "auto"
    color: str = "auto"
    verbose: bool = False
    damaged: bool = False
    argv: tuple[str, ...] = ()
    command: str | None = None

    @property
    def database(self) -> list[str]:
        """The options that chose the database: what a further command needs as well."""
        if self.db is not None:
            return ["--db", self.db]
        return [] if self.scope == "auto" else [f"--{self.scope}"]

    @property
    def wants_json(self) -> bool:
        """Whether errors are to be JSON; known before the command line was understood."""
        end = self.argv.index("--") if "--" in self.argv else None
        return not {"--json", "--jsonl"}.isdisjoint(self.argv[:end])

    def again(self, *more: str, without: str | None = None) -> str:
        """Return the command that was typed, with *more* options, for a hint.

        *without* is an option that is left out with its value.
        """
        kept: list[str] = []
        words = iter(self.argv)
        for word in words:
            if word == without:
                next(words, None)
            elif without is None or not word.startswith(f"{without}="):
                kept.append(word)
        if sum(map(len, kept)) > MAX_TYPED:
            return (
                command(self.command, "--help") if self.command else command("--help")
            )
        end = kept.index("--") if "--" in kept else len(kept)
        return command(*kept[:end], *more, *kept[end:])


def current() -> Options:
    """Return the options of the command that runs."""
    return click.get_current_context().find_object(Options) or Options()


def say(line: str) -> None:
    """Write one line of talk to stderr, after what went to stdout; controls in it are shown."""
    sys.stdout.flush()
    click.echo(visible(shortened(with_database(line, current().database))), err=True)


def typed_yes(what: str) -> bool:
    """Ask whether to do *what*; only a typed yes is one."""
    click.echo(f"Type yes to {what}: ", err=True, nl=False)
    return sys.stdin.readline().strip() == "yes"


def open_store(options: Options, *, writing: bool = False) -> Store:
    """Open the database of this invocation; it is made unless ``--db`` names a missing one to read.

    A database that cannot be written here is opened for reading alone. How durable
    a write is says config.toml.
    """
    from sessiondb.location import load_config
    from sessiondb.store import Store

    if not gc.isenabled():  # see `cli.run`
        gc.freeze()
        gc.enable()
    create = writing or options.db is None
    try:
        store = Store.open(
            options.db,
            scope=options.scope,
            create=create,
            durability=load_config().durability,
        )
    except ReadOnlyError:
        if writing:
            raise
        store = Store.open(
            options.db, scope=options.scope, create=False, read_only=True
        )
    if store.location.notice:
        say(store.location.notice)
    if not writing:
        store.read_past_damage(partial(_say_damage, options))
    return store


def _say_damage(options: Options, copy: ReadableCopy) -> None:
    """Say what is missing from what follows; the command exits with 4 then."""
    options.damaged = True
    lost = ", ".join(f"{number:,} of {table}" for table, number in copy.lost.items())
    say(
        f"the file is damaged; rows that cannot be read: {lost or 'none, only its indexes'}"
    )


def terminal() -> str | None:
    """Return a name for the terminal this command was typed in; None without one.

    A program that runs us through pipes has none, so it never moves a person's ``@``.
    """
    for descriptor in (0, 1, 2):
        with contextlib.suppress(
            OSError, AttributeError
        ):  # not every system has terminals
            # The session leader distinguishes two terminals that got the same name in turn.
            leader = os.getsid(0) if hasattr(os, "getsid") else 0
            return f"{os.ttyname(descriptor)}:{leader}"
    return None


def find(store: Store, ref: str) -> Session:
    """Return the session that *ref* names and remember it as the last one used here."""
    found = store.session(ref, terminal=terminal())
    remember(store, found)
    return found


def find_message(store: Store, session: Session, name: str) -> Message:
    """Return the message that a person names by id or label, else by seq if it is a number."""
    try:
        return store.message(session, name)
    except NotFoundError:
        is_seq = name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS
        if not is_seq or int(name) == 0:
            raise
        return store.message(session, int(name))


def find_default(store: Store) -> Session:
    """Return the session used last in this terminal and directory, else the newest one here."""
    try:
        return find(store, "@")
    except NotFoundError as error:
        from sessiondb.cli.emptiness import here

        hint = f"{command('list', '-a')} shows every session; {command('import')} imports them"
        raise NotFoundError(f"no session in {here()}", hint=hint) from error


def remember(store: Store, session: Session) -> None:
    """Make *session* what ``@`` means in this terminal and directory.

    A convenience: where it cannot be written, the command continues without it.
    """
    name = terminal()
    if name is not None:
        with contextlib.suppress(SessionDBError):
            store.note_used(session, name)
