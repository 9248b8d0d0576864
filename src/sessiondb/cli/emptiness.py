"""Why a command found nothing: where it looked, and which filters match no session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessiondb.cli.opening import rows_of
from sessiondb.errors import abridged
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.cli.options import FilterOptions
    from sessiondb.store import Store

#: Names that are listed; a database may have any number.
SHOWN = 12


def no_sessions(store: Store, filters: FilterOptions) -> str:
    """Return one line on why a list is empty."""
    unknown = unknown_names(store, filters)
    if unknown:
        return unknown

    everywhere = f"{command('list', '-a')} lists every project"
    elsewhere = [] if filters.everywhere else [everywhere]
    # The filters are to blame only if there is anything to filter.
    if filters.filtered and _has_sessions(store):
        line = [f"no session {filters.place} matches these filters", *elsewhere]
        return " · ".join(line)

    advice = ", ".join([*elsewhere, f"{command('import')} imports them"])
    return f"no sessions {filters.place} · {advice}"


def unknown_names(store: Store, filters: FilterOptions) -> str:
    """Return one line on the filters that no session in the database could pass.

    Empty if there are none.
    """
    return " · ".join(_unknown_values(store, filters))


def _has_sessions(store: Store) -> bool:
    from sessiondb.repository.sessions import ALL

    page = store.sessions(project=ALL, archived=True, subagents=True, limit=1)
    return bool(page.items)


def _unknown_values(store: Store, filters: FilterOptions) -> Iterator[str]:
    for column, wanted in (("source", filters.source), ("agent", filters.agent)):
        if wanted is None:
            continue
        names = _column_values(store, column)
        # An empty database has no names: then the filter is not to blame.
        if wanted not in names and names:
            more = ", …" if len(names) > SHOWN else ""
            listed = ", ".join(names[:SHOWN]) + more
            yield f"no session has the {column} {abridged(wanted)}; there are: {listed}"


def _column_values(store: Store, column: str) -> list[str]:
    sql = (
        f"SELECT DISTINCT {column} FROM session WHERE {column} IS NOT NULL "
        "AND time_deleted IS NULL AND time_importing IS NULL ORDER BY 1"
    )
    return [str(name) for (name,) in rows_of(store, sql)]
