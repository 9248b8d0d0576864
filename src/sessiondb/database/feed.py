"""Changes of every process, found by reading the feed again and again.

A feed has no connection of its own: each look is one read like any other, an
index seek when nothing happened. So a consumer may stop at any moment.
"""

from __future__ import annotations

from sessiondb.model import Change, bounds
from sessiondb.model.feed import Position, position_of
from sessiondb.model.handles import SessionRef, session_key
from sessiondb.repository import Read
from sessiondb.repository.feed import CHANGES, changes_since, newest_change


class Watch:
    """The place of one consumer in the feed."""

    def __init__(
        self, session: SessionRef | None, since: str | None, poll: float
    ) -> None:
        self._only = None if session is None else session_key(session)
        self._since = since
        self._place: Position | None = None
        self._seen: dict[str, int] = {}
        self._poll = bounds.seconds(poll, "poll")
        #: Seconds until the next look: none while there is more than one look takes in.
        self.pause = 0.0

    def look(self) -> Read[list[Change]]:
        """Return what was committed since the last look, in order of commits.

        The first look of a watch without a cursor returns nothing: it begins there.
        Raises `InvalidInputError` for a cursor that is not one of this database.
        """
        self.pause = self._poll
        if self._place is None:
            newest = yield from newest_change()
            if self._since is None:
                self._place = newest
                return []
            self._place = position_of(self._since, newest)

        found, self._place = yield from changes_since(self._place, self._seen)
        if len(found) == CHANGES:
            self.pause = 0.0
        return [change for change in found if self._only in (None, change.session_id)]
