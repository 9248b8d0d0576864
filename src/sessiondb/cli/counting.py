"""The number of hits of a search in each session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.cli import output
from sessiondb.cli.text import ago, cut, iso, one_line, short_id, title_of

if TYPE_CHECKING:
    from sessiondb.model import Hit, Page, Session

#: Hits that are read at once.
_AT_ONCE = 1_000


def hits_by_session(
    read: Callable[..., Page[Hit]], limit: int
) -> list[tuple[Session, int]]:
    """Return the *limit* sessions with the most hits, and how many each has.

    *read* takes ``limit`` and ``cursor``; among equals the newest match is first.
    """
    sessions: dict[str, Session] = {}
    hits: Counter[str] = Counter()
    cursor = None
    while True:
        page = read(limit=_AT_ONCE, cursor=cursor)
        for hit in page.items:
            sessions.setdefault(hit.session.id, hit.session)
            hits[hit.session.id] += 1
        cursor = page.next_cursor
        if cursor is None:
            break

    return [(sessions[name], number) for name, number in hits.most_common(limit)]


def write_counts(
    counts: list[tuple[Session, int]], *, as_json: bool, as_jsonl: bool
) -> None:
    """Write what `hits_by_session` returns."""
    listing = output.Listing("sessions", counts, _json_of, _values_of, _lines_of)
    listing.write(as_json=as_json, as_jsonl=as_jsonl)


def _json_of(item: tuple[Session, int]) -> dict[str, Any]:
    from sessiondb.model import session_json

    return {"session": session_json(item[0]), "hits": item[1]}


def _values_of(item: tuple[Session, int]) -> list[Any]:
    session, number = item
    used = iso(session.time_updated)
    return [session.id, number, used, session.source, session.title]


def _lines_of(counts: Sequence[tuple[Session, int]]) -> Iterator[str]:
    shown = output.screen()
    widest = max(len(f"{number:,}") for _, number in counts)
    for session, number in counts:
        facts = (
            f"{short_id(session.id)}  {number:>{widest},}  "
            f"{ago(session.time_updated)} · {one_line(session.source)}  "
        )
        room = max(shown.width - len(facts), output.MIN_COLUMN)
        yield facts + shown.style(cut(title_of(session), room), bold=True)
