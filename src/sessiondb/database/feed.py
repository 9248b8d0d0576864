"""Changes of every process, found by polling the feed.

A feed has no connection of its own: each look is a read like any other, and costs an
index seek if nothing changed. So a consumer may stop at any moment.
"""

from __future__ import annotations

from sessiondb.model import Change, bounds
from sessiondb.model.handles import SessionRef, session_key
from sessiondb.repository import Read
from sessiondb.repository.feed import (
    CHANGES,
    changes_since,
    checked_cursor,
    newest_change,
)


class Watch:
    """The position of one consumer in the feed."""

    def __init__(
        self, session: SessionRef | None, since: str | None, poll: float
    ) -> None:
        self._only = None if session is None else session_key(session)
        self._since = since
        #: The cursor of the last change that was seen; None before the first look.
        self._place: str | None = None
        self._seen: dict[str, int] = {}
        self._poll = bounds.seconds(poll, "poll")
        #: Seconds until the next look; 0 while the last one did not return everything.
        self.pause = 0.0

    def look(self) -> Read[list[Change]]:
        """Return what was committed since the last look, in order of commits.

        Without a cursor the first look returns nothing: the watch begins there.
        Raises `InvalidInputError` for a cursor that is not one of this database.
        """
        self.pause = self._poll
        if self._place is None:
            if self._since is None:
                self._place = yield from newest_change()
                return []
            self._place = yield from checked_cursor(self._since)

        changes = yield from changes_since(self._place, self._only, self._seen)
        if changes:
            self._place = changes[-1].cursor
        if len(changes) == CHANGES:
            self.pause = 0.0
        return changes
