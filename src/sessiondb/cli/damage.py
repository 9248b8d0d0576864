"""A session that cannot be read does not stop the others: it is named, and the exit code is 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiondb.cli.opening import say
from sessiondb.cli.text import one_line, short_id

if TYPE_CHECKING:
    from sessiondb.model import Session

PROBLEMS_FOUND = 4


def say_unreadable(session: Session, error: Exception) -> None:
    """Name a session that was left out, and why."""
    title = one_line(session.title) or "–"
    say(f"left out: {short_id(session.id)} {title}: {one_line(str(error))}")
