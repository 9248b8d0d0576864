"""``path``, ``init``, ``trust`` and ``relink``: places of databases and of projects."""

from __future__ import annotations

import os

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, here, locate, open_store, say
from sessiondb.cli.text import count
from sessiondb.errors import NotFoundError, UnsupportedError, abridged
from sessiondb.hints import command
from sessiondb.location import database as location
from sessiondb.location import trust
from sessiondb.location.directories import expanded


@click.command("path")
@shared.as_json
@click.pass_obj
def path_command(options: Options, *, as_json: bool) -> None:
    """Print the path of the database that is used here; it need not exist yet."""
    database = locate(options)
    path = str(database)
    # A server is not asked.
    exists = None
    if database.server is None:
        exists = database.path is not None and database.path.exists()
    result = {"path": path, "kind": database.kind, "exists": exists}
    output.write_result(result, path, as_json=as_json)


@click.command("init")
@click.option(
    "--local",
    "for_project",
    is_flag=True,
    help="For this project, in .sessiondb at its root.",
)
@shared.as_json
@click.pass_obj
def init_command(options: Options, *, for_project: bool, as_json: bool) -> None:
    """Create the database unless it exists; prints its path.

    With --local it is for this project alone: git ignores it, and every
    command in this project uses it from then on.
    """
    if for_project:
        if options.db is not None or options.scope == "global":
            raise click.UsageError("init --local chooses the database itself")
        # Opened by its path: resolving it again could find one nearer to here.
        database = location.init_local()
        options = Options(db=str(database.path))

    with open_store(options, writing=True, parents=True) as store:
        path = str(store.path or store.location)
    output.write_result({"path": path}, path, as_json=as_json)


@click.command("trust")
@click.argument("directory", type=shared.PATH, metavar="[DIR]", required=False)
@click.option("--revoke", is_flag=True, help="Stop using it; the file stays.")
@click.pass_obj
def trust_command(options: Options, directory: str | None, *, revoke: bool) -> None:
    """Use the database that came with the project of DIR (default: here).

    Until then a database that was not made on this machine is neither read nor
    written: a cloned repository must not decide where transcripts go.
    """
    if options.db is not None and (server := locate(options).server):
        raise UnsupportedError(
            f"this is for a file that came with a project; {server} is on a server",
            hint="the roles of the server decide who reads and writes it",
        )
    path = location.find_local(directory)
    if path is None:
        raise NotFoundError(
            f"no project-local database at {directory or here()}",
            hint=f"{command('init', '--local')} creates one",
        )
    if not revoke:
        trust.accept(path)
        say(f"trusted: {path}")
        return

    was_trusted = trust.revoke(path)
    say(f"{'no longer trusted' if was_trusted else 'was not trusted'}: {path}")


@click.command("relink")
@click.argument("old", type=shared.PATH)
@click.argument("new", type=shared.PATH)
@shared.as_json
@click.pass_obj
def relink_command(options: Options, *, old: str, new: str, as_json: bool) -> None:
    """Move the sessions of directory OLD, and of those below it, to NEW.

    For a directory that was moved: NEW has to exist.
    """
    # A typing error would hide every session of OLD from the lists of its project.
    if not os.path.isdir(expanded(new)):
        raise NotFoundError(
            f"no directory {abridged(new)}", hint="move the directory first"
        )

    with open_store(options, writing=True, parents=True) as store:
        moved = store.relink(old, new).moved
    if as_json:
        output.write_json({"sessions": moved})
    else:
        say(f"moved {count(moved, 'session')}")
