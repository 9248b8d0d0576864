"""``copy``: everything of one database in another one, of whatever engines."""

from __future__ import annotations

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, say
from sessiondb.cli.progress import watched
from sessiondb.cli.text import count
from sessiondb.dataclass import asdict


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@shared.as_json
@click.pass_obj
def copy_command(options: Options, *, source: str, target: str, as_json: bool) -> None:
    """Copy everything in the database FROM into the empty database TO; compare them.

    Each is a path or a URL: postgresql://HOST/DATABASE is one of a server. FROM may be
    in use. A copy that was interrupted is completed by the same command.
    """
    from sessiondb.location.database import resolve
    from sessiondb.maintenance.copying import copy
    from sessiondb.store import Store

    if options.db is not None or options.scope != "auto":
        raise click.UsageError("copy names both databases itself")
    # Before FROM is looked for: the name may be none.
    resolve(target)
    percent = 0

    def report(done: int, every: int) -> None:
        nonlocal percent
        percent = 100 * done // every

    with (
        Store.open(source, create=False, read_only=True) as reading,
        Store.open(target) as writing,
        watched(lambda: percent, "copy", 100, quiet=as_json),
    ):
        copied = copy(reading, writing, progress=report)
        place = str(writing.location)

    if as_json:
        output.write_json(asdict(copied) | {"to": place})
        return
    output.write(f"{place}\n")
    equal = f", {copied.equal:,} were there" if copied.equal else ""
    say(f"{count(copied.sessions, 'session')} copied{equal}; all rows are equal")
    for table in copied.left_out:
        say(f"{table} was left out: the program that made it is not installed here")
