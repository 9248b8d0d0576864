"""``title``, ``label``, ``archive`` and ``unarchive``: what a person notes on sessions."""

from __future__ import annotations

from dataclasses import asdict

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, find, find_message, open_store, say, terminal
from sessiondb.cli.text import count


@click.command("title")
@click.argument("ref", type=shared.REF)
@click.argument("text")
@shared.as_json
@click.pass_obj
def title_command(options: Options, *, ref: str, text: str, as_json: bool) -> None:
    """Name session REF; an import never changes it again."""
    from sessiondb.model import session_json

    with open_store(options, writing=True) as store:
        session = find(store, ref)
        store.set_title(session, text, by="user")
        if as_json:
            output.write_json({"session": session_json(store.session(session))})


@click.command("label")
@click.argument("ref", type=shared.REF)
@click.argument("message", metavar="M")
@click.argument("name", required=False)
@shared.as_json
@click.pass_obj
def label_command(
    options: Options, *, ref: str, message: str, name: str | None, as_json: bool
) -> None:
    """Call message M (id, seq or label) of session REF by NAME; without NAME, by no name."""
    with open_store(options, writing=True) as store:
        session = find(store, ref)
        store.label(session, find_message(store, session, message), name)
        if as_json:
            output.write_json({"labels": list(map(asdict, store.labels(session)))})


@click.command("archive")
@click.argument("refs", type=shared.REF, metavar="REF...", nargs=-1, required=True)
@shared.as_json
@click.pass_obj
def archive_command(options: Options, *, refs: tuple[str, ...], as_json: bool) -> None:
    """Leave sessions out of lists and searches; `--archived` shows them there."""
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
        # All names are resolved before anything is written: one that is wrong changes nothing.
        name = terminal()
        named = [store.session(ref, terminal=name) for ref in refs]
        sessions = list({session.id: session for session in named}.values())
        with store.effects() as fx:
            for session in sessions:
                (fx.archive if archived else fx.unarchive)(session)
        after = [store.session(session) for session in sessions]
    if as_json:
        output.write_json({"sessions": list(map(session_json, after))})
    else:
        say(
            f"{'archived' if archived else 'unarchived'} {count(len(after), 'session')}"
        )
