"""Which database a command works on, and what is remembered about the session it used."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sessiondb.cli.text import visible
from sessiondb.errors import NotFoundError, ReadOnlyError, SessionDBError

if TYPE_CHECKING:
    from sessiondb.model import Session
    from sessiondb.store import Store


@dataclass(slots=True)
class Options:
    """What stands before the command."""

    db: str | None = None
    scope: str = "auto"
    color: str = "auto"
    verbose: bool = False


def say(line: str) -> None:
    """Write one line of talk to stderr, after what went to stdout; controls in it are shown."""
    sys.stdout.flush()
    click.echo(visible(line), err=True)


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
            options.db, scope=options.scope, create=create, durability=load_config().durability
        )
    except ReadOnlyError:
        if writing:
            raise
        store = Store.open(options.db, scope=options.scope, create=False, read_only=True)
    if store.location.notice:
        say(store.location.notice)
    return store


def terminal() -> str | None:
    """Return a name for the terminal this command was typed in; None without one.

    A program that runs us through pipes has none, so it never moves a person's ``@``.
    """
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError, AttributeError):  # not every system has terminals
            # The session leader tells apart two terminals that got the same name in turn.
            leader = os.getsid(0) if hasattr(os, "getsid") else 0
            return f"{os.ttyname(descriptor)}:{leader}"
    return None


def find(store: Store, ref: str) -> Session:
    """Return the session that *ref* names and remember it as the last one used here."""
    found = store.session(ref, terminal=terminal())
    remember(store, found)
    return found


def find_default(store: Store) -> Session:
    """Return the session used last in this terminal and directory, else the newest one here."""
    try:
        return find(store, "@")
    except NotFoundError as error:
        from pathlib import Path

        hint = "`sessiondb list -a` shows every session, `sessiondb import` brings them in"
        raise NotFoundError(f"no session in {Path.cwd()}", hint=hint) from error


def remember(store: Store, session: Session) -> None:
    """Make *session* what ``@`` means in this terminal and directory.

    A convenience: where it cannot be written, the command goes on without it.
    """
    name = terminal()
    if name is not None:
        with contextlib.suppress(SessionDBError):
            store.note_used(session, name)
