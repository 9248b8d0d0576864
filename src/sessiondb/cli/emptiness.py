"""The message of a command that found nothing: where it looked, and which names do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.errors import abridged
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.cli.options import Where
    from sessiondb.store import Store

#: Names that are listed; a database may have any number.
SHOWN = 12


def here() -> str:
    """Return the current directory, for a message."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a directory that is gone"


def no_sessions(store: Store, where: Where) -> str:
    """Return one line on why a list is empty."""
    if unknown := list(unknown_names(store, where)):
        return " · ".join(unknown)
    place = "in any project" if where.everywhere else f"in {where.project or here()}"
    more = "" if where.everywhere else f"{command('list', '-a')} lists every project"
    if where.filtered and _any_session(store):
        return " · ".join(
            filter(None, (f"no session {place} matches these filters", more))
        )
    more = f"{more}, " if more else ""
    return f"no sessions {place} · {more}{command('import')} imports them"


def _any_session(store: Store) -> bool:
    from sessiondb.repository.sessions import ALL

    return bool(
        store.sessions(project=ALL, archived=True, subagents=True, limit=1).items
    )


def unknown_names(store: Store, where: Where) -> Iterator[str]:
    """Yield a line for each filter that no session in the database could pass."""
    for column, wanted in (("source", where.source), ("agent", where.agent)):
        if wanted is None:
            continue
        known = _names(store, column)
        if wanted not in known and known:
            more = ", …" if len(known) > SHOWN else ""
            listed = ", ".join(known[:SHOWN]) + more
            yield f"no session has the {column} {abridged(wanted)}; there are: {listed}"


def _names(store: Store, column: str) -> list[str]:
    sql = (
        f"SELECT DISTINCT {column} FROM session WHERE {column} IS NOT NULL "
        "AND time_deleted IS NULL AND time_importing IS NULL ORDER BY 1"
    )
    with store.connection() as connection:
        return [str(name) for (name,) in connection.exec_driver_sql(sql)]
