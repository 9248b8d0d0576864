"""``title``, ``label``, ``archive`` and ``unarchive``: the user's notes on sessions."""

from __future__ import annotations

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import (
    Options,
    find,
    find_all,
    find_message,
    find_place,
    open_store,
    say,
)
from sessiondb.cli.text import count
from sessiondb.dataclass import asdict


@click.command("title")
@click.argument("ref", type=shared.REF)
@click.argument("text")
@shared.as_json
@click.pass_obj
def title_command(options: Options, *, ref: str, text: str, as_json: bool) -> None:
    """Name session REF; an import never changes that name."""
    from sessiondb.model import session_json

    with open_store(options, writing=True) as store:
        session = find(store, ref)
        store.set_title(session, text, by="user")
        if as_json:
            output.write_json({"session": session_json(store.session(session))})


@click.command("label")
@click.argument("ref", type=shared.ADDRESS)
@click.argument("message", metavar="M", required=False)
@click.argument("name", required=False)
@shared.as_json
@click.pass_obj
def label_command(
    options: Options, *, ref: str, message: str | None, name: str | None, as_json: bool
) -> None:
    """Name message M (id, seq or label) of session REF; no NAME removes the name.

    REF#M NAME is the same as REF M NAME.
    """
    needs_place = click.UsageError("Missing argument 'M': REF M NAME, or REF#M NAME")
    if message is None and "#" not in ref:
        raise needs_place
    with open_store(options, writing=True) as store:
        session, place = find_place(store, ref)
        if place is not None:
            if name is not None:
                raise click.UsageError("REF#M names the message: label REF#M NAME")
            name = message
        elif message is None:
            raise needs_place
        else:
            place = find_message(store, session, message)
        store.label(session, place, name)
        if as_json:
            output.write_json({"labels": list(map(asdict, store.labels(session)))})


@click.command("archive")
@click.argument("refs", type=shared.REF, metavar="REF...", nargs=-1, required=True)
@shared.as_json
@click.pass_obj
def archive_command(options: Options, *, refs: tuple[str, ...], as_json: bool) -> None:
    """Hide sessions from lists and searches; --archived shows them there."""
    _set_archived(options, refs, as_json, archived=True)


@click.command("unarchive")
@click.argument("refs", type=shared.REF, metavar="REF...", nargs=-1, required=True)
@shared.as_json
@click.pass_obj
def unarchive_command(
    options: Options, *, refs: tuple[str, ...], as_json: bool
) -> None:
    """Show archived sessions in lists and searches again."""
    _set_archived(options, refs, as_json, archived=False)


def _set_archived(
    options: Options, refs: tuple[str, ...], as_json: bool, *, archived: bool
) -> None:
    from sessiondb.model import session_json

    with open_store(options, writing=True) as store:
        # All names are resolved before any write: a wrong one changes nothing.
        sessions = {session.id: session for session in find_all(store, refs)}
        with store.effects() as fx:
            change = fx.archive if archived else fx.unarchive
            for session in sessions.values():
                change(session)
        changed = [store.session(session) for session in sessions.values()]

    if as_json:
        output.write_json({"sessions": list(map(session_json, changed))})
    else:
        done = "archived" if archived else "unarchived"
        say(f"{done} {count(len(changed), 'session')}")
