"""The page that lists the pages of an export, the session used last first."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from sessiondb.formats.html.text import escaped
from sessiondb.formats.transcript.facts import session_title
from sessiondb.model import Session
from sessiondb.words import count, excerpt, moment, price


def index_article(pages: Sequence[tuple[str, Session]]) -> str:
    """Return a list of links to *pages*, by day; each is the name of a file."""
    by_day: dict[str, list[str]] = {}
    for name, session in sorted(pages, key=_last_use, reverse=True):
        day = moment(session.time_updated, "%Y-%m-%d")
        by_day.setdefault(day, []).append(_page_line(name, session))

    text = f'<h1 dir="auto">{count(len(pages), "session")}</h1>\n<nav>\n'
    for day, lines in by_day.items():
        text += f'<p class="label">{day}</p>\n<ol>\n{"".join(lines)}</ol>\n'
    return f"{text}</nav>\n"


def _last_use(page: tuple[str, Session]) -> tuple[int, str]:
    name, session = page
    return session.time_updated, name


def _page_line(name: str, session: Session) -> str:
    title = escaped(session_title(session))
    facts = [
        moment(session.time_updated, "%H:%M"),
        session.source,
        session.directory.rstrip("/").rpartition("/")[2],
        count(session.message_count, "message"),
        price(session.cost),
    ]
    words = excerpt(" · ".join([fact for fact in facts if fact]), 200)
    link = f'<a href="{escaped(quote(name))}" dir="auto">{title}</a>'
    return f'<li>{link}<p class="label">{escaped(words)}</p></li>\n'
