"""The page that lists the pages of an export, the session used last first."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from sessiondb.formats.html.text import escaped
from sessiondb.formats.transcript.facts import session_title, spent_text
from sessiondb.model import Export
from sessiondb.words import count, excerpt, moment


def index_article(pages: Sequence[tuple[str, Export]]) -> str:
    """Return a list of links to *pages*, by day; each is the name of a file."""
    by_day: dict[str, list[str]] = {}
    for name, export in sorted(pages, key=_last_use, reverse=True):
        day = moment(export.session.time_updated, "%Y-%m-%d")
        by_day.setdefault(day, []).append(_page_line(name, export))

    text = f'<h1 dir="auto">{count(len(pages), "session")}</h1>\n<nav>\n'
    for day, lines in by_day.items():
        text += f'<p class="label">{day}</p>\n<ol>\n{"".join(lines)}</ol>\n'
    return f"{text}</nav>\n"


def _last_use(page: tuple[str, Export]) -> tuple[int, str]:
    name, export = page
    return export.session.time_updated, name


def _page_line(name: str, export: Export) -> str:
    session = export.session
    title = escaped(session_title(session))
    facts = [
        moment(session.time_updated, "%H:%M"),
        session.source,
        (session.directory or "").rstrip("/").rpartition("/")[2],
        count(session.prompt_count, "prompt"),
        spent_text(session, export.usage),
    ]
    words = excerpt(" · ".join([fact for fact in facts if fact]), 200)
    link = f'<a href="{escaped(quote(name))}" dir="auto">{title}</a>'
    return f'<li>{link}<p class="label">{escaped(words)}</p></li>\n'
