"""``completion``, and what the shell asks for at each Tab.

It must be quick and can never be in the way: no SQLAlchemy is loaded, no
database is made, and whatever fails offers nothing, without a word. What is
offered goes on the command line as it is, so a name is offered only if it
means nothing to a shell.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from sessiondb.cli.app import COMPLETION
from sessiondb.cli.opening import Options
from sessiondb.cli.text import one_line, short_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessiondb.location import database as location

#: Sessions that are offered at once, and how long a busy database may keep the user waiting.
OFFERED, PATIENCE = 60, 0.3
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_NEWEST = """
SELECT slug, id, source_id, title FROM session
 WHERE time_deleted IS NULL AND time_importing IS NULL AND relation IS NOT 'subagent'
 ORDER BY time_updated DESC, id LIMIT ?
"""
_NAMED = """
SELECT slug, id, source_id, title FROM session
 WHERE time_deleted IS NULL AND time_importing IS NULL
   AND (slug LIKE :begins ESCAPE '\\' OR id LIKE :begins ESCAPE '\\'
        OR source_id LIKE :begins ESCAPE '\\'
        OR substr(id, -6) LIKE :begins ESCAPE '\\')
 ORDER BY time_updated DESC, id LIMIT :offered
"""


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, *, shell: str) -> None:
    """Print what makes SHELL (bash, zsh or fish) complete commands, options and sessions.

    \b
    bash  add to ~/.bashrc:  eval "$(sessiondb completion bash)"
    zsh   add to ~/.zshrc, after compinit:  eval "$(sessiondb completion zsh)"
    fish  sessiondb completion fish > ~/.config/fish/completions/sessiondb.fish

    Then open a new shell. Wherever a session is named, its slug and the
    beginning of each of its ids are completed.
    """
    found = get_completion_class(shell)
    if found is None:  # pragma: no cover  these three belong to click
        raise click.UsageError(f"nothing completes {shell}")
    script = found(ctx.find_root().command, {}, "sessiondb", COMPLETION).source()
    click.echo(script)


def complete(group: click.Group) -> int:
    """Answer a shell's request in the environment; return the exit code."""
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        asked = os.environ[COMPLETION]
        return shell_complete(group, {"obj": Options()}, "sessiondb", COMPLETION, asked)
    return 1


def sessions(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return names of sessions that begin so, those used last first, with their titles."""
    items: dict[str, CompletionItem] = {}
    with contextlib.suppress(Exception):
        for names, title in _rows(ctx, incomplete):
            name = next((name for name in names if name.startswith(incomplete)), "")
            if _PLAIN.fullmatch(name):
                items.setdefault(name, CompletionItem(name, help=one_line(title)))
    return list(items.values())


def _rows(ctx: click.Context, incomplete: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names of sessions and their titles."""
    from sessiondb.engine.sqlite.connection import connect

    path = _database(ctx)
    if path is None or not path.is_file():
        return
    with contextlib.closing(
        connect(path, mode="ro", busy_timeout=PATIENCE)
    ) as connection:
        if incomplete:
            begins = re.sub(r"([\\%_])", r"\\\1", incomplete) + "%"
            rows = connection.execute(_NAMED, {"begins": begins, "offered": OFFERED})
        else:
            rows = connection.execute(_NEWEST, (OFFERED,))
        for slug, session_id, source_id, title in rows:
            yield [slug, short_id(session_id), session_id, source_id or ""], title or ""


def _database(ctx: click.Context) -> Path | None:
    from sessiondb.location.database import resolve

    before = ctx.find_root().params
    named = (
        "local"
        if before.get("local")
        else "global"
        if before.get("global_")
        else "auto"
    )
    scope = cast("location.Scope", named)
    return resolve(before.get("db"), scope=scope).path
