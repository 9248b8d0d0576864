"""``completion``, and the answers to a shell at each Tab.

It must be quick and never get in the way: no SQLAlchemy is loaded, no database is
created, no server is connected to, and a failure offers nothing, without a message. An
offered name is put on the command line verbatim, so only names without special
characters are offered.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from sessiondb.cli.opening import Options, scope_of
from sessiondb.cli.protocol import COMPLETION
from sessiondb.cli.text import one_line, short_id
from sessiondb.patterns import late_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Sessions offered at once, and seconds that a busy database may keep the user waiting.
OFFERED, PATIENCE = 60, 0.3
_PLAIN = late_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_NEWEST = """
SELECT slug, id, coalesce(source_id, ''), coalesce(title, '') FROM session
 WHERE time_deleted IS NULL AND time_importing IS NULL
   AND relation IS DISTINCT FROM 'subagent'
 ORDER BY time_updated DESC, id LIMIT :offered
"""
#: What `short_id` shows.
_TAIL = "substr(id, CASE WHEN length(id) > 6 THEN length(id) - 5 ELSE 1 END)"
_NAMED = f"""
SELECT slug, id, coalesce(source_id, ''), coalesce(title, '') FROM session
 WHERE time_deleted IS NULL AND time_importing IS NULL
   AND (lower(slug) LIKE :begins ESCAPE '\\' OR lower(id) LIKE :begins ESCAPE '\\'
        OR lower(source_id) LIKE :begins ESCAPE '\\'
        OR lower({_TAIL}) LIKE :begins ESCAPE '\\')
 ORDER BY time_updated DESC, id LIMIT :offered
"""
_PLACES = f"""
WITH named AS (
  SELECT id FROM session
   WHERE time_deleted IS NULL AND time_importing IS NULL
     AND :name IN (lower(slug), lower(id), lower(source_id), lower({_TAIL}))
   ORDER BY time_updated DESC LIMIT 1)
SELECT label, 'label of #' || seq FROM label
 WHERE session_id IN (SELECT id FROM named)
UNION ALL
SELECT * FROM (
  SELECT CAST(seq AS TEXT), substr(text, 1, 200) FROM part
   WHERE session_id IN (SELECT id FROM named) AND type = 'text' AND synthetic = 0
     AND seq IN (SELECT seq FROM message
                  WHERE session_id IN (SELECT id FROM named) AND role = 'user')
   ORDER BY seq DESC LIMIT :offered) AS prompts
"""


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, *, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options and sessions.

    \b
    bash  add to ~/.bashrc:  eval "$(sessiondb completion bash)"
    zsh   add to ~/.zshrc, after compinit:  eval "$(sessiondb completion zsh)"
    fish  sessiondb completion fish > ~/.config/fish/completions/sessiondb.fish

    Then open a new shell. Wherever a session is named, its slug and the
    beginning of each of its ids are completed.
    """
    completion = get_completion_class(shell)
    if completion is None:  # pragma: no cover  these three belong to click
        raise click.UsageError(f"no completion for {shell}")
    script = completion(ctx.find_root().command, {}, "sessiondb", COMPLETION).source()
    click.echo(script)


def complete(group: click.Group) -> int:
    """Answer a shell's request in the environment; return the exit code."""
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        request = os.environ[COMPLETION]
        context_args = {"obj": Options()}
        return shell_complete(group, context_args, "sessiondb", COMPLETION, request)
    return 1


def sessions(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return names that begin with *incomplete*, last used first, with titles."""
    items: dict[str, CompletionItem] = {}
    with contextlib.suppress(Exception):
        for names, title in _session_names(ctx, incomplete):
            name = next((name for name in names if name.startswith(incomplete)), "")
            if _PLAIN.fullmatch(name):
                items.setdefault(name, CompletionItem(name, help=one_line(title)))
    return list(items.values())


def places(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return addresses that begin with *incomplete*: of labels, then of prompts."""
    session, _, begun = incomplete.partition("#")
    items = []
    with contextlib.suppress(Exception):
        values = {"name": _small(session), "offered": OFFERED}
        for name, text in _rows(ctx, _PLACES, values):
            if name.startswith(begun) and _PLAIN.fullmatch(name):
                items.append(CompletionItem(f"{session}#{name}", help=one_line(text)))
    return items


def _session_names(
    ctx: click.Context, incomplete: str
) -> Iterator[tuple[list[str], str]]:
    """Yield the names of sessions and their titles."""
    sql: str = _NEWEST
    values: dict[str, Any] = {"offered": OFFERED}
    if incomplete:
        sql = _NAMED
        values["begins"] = re.sub(r"([\\%_])", r"\\\1", _small(incomplete)) + "%"
    for slug, session_id, source_id, title in _rows(ctx, sql, values):
        yield [slug, short_id(session_id), session_id, source_id], title


def _small(name: str) -> str:
    """Return *name* with small letters of ASCII, as ``lower(…)`` makes them in SQL."""
    return name.encode().lower().decode()


def _rows(
    ctx: click.Context, sql: str, values: dict[str, Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query; none without a database that is a file."""
    from sessiondb.engine.default import target_at

    path = _database_path(ctx)
    if path is None or not path.is_file():
        return
    connection = target_at(path).connect(mode="ro", busy_timeout=PATIENCE)
    with contextlib.closing(connection):
        yield from connection.execute(sql, values)


def _database_path(ctx: click.Context) -> Path | None:
    from sessiondb.location.database import resolve

    # The options before the command are parsed, but `app` was not called with them.
    params = ctx.find_root().params
    local, global_ = bool(params.get("local")), bool(params.get("global_"))
    return resolve(params.get("db"), scope=scope_of(local=local, global_=global_)).path
