"""Changes of every process, found by reading the feed again and again.

A feed has no connection of its own: each look is one read like any other, an
index seek when nothing happened. So whoever follows it may stop at any moment.
"""

from __future__ import annotations

from sessiondb.model import Change, bounds
from sessiondb.model.handles import SessionRef, session_key
from sessiondb.repository import Read
from sessiondb.repository.feed import CHANGES, changes_since, last_change


class Watch:
    """The place of one consumer in the feed."""

    def __init__(
        self, session: SessionRef | None, since: int | None, poll: float
    ) -> None:
        self._only = None if session is None else session_key(session)
        bounds.integer(since, "since")
        self._since = since
        self._seen: dict[str, int] = {}
        self._poll = bounds.seconds(poll, "poll")
        #: Seconds until the next look: none while there is more than one look takes in.
        self.pause = 0.0

    def look(self) -> Read[list[Change]]:
        """Return what was committed since the last look, in order of commits.

        The first look of a watch without a beginning returns nothing: it begins there.
        """
        self.pause = self._poll
        if self._since is None:
            self._since = yield from last_change()
            return []
        found = yield from changes_since(self._since, self._seen)
        if found:
            self._since = found[-1].change
        if len(found) == CHANGES:
            self.pause = 0.0
        return [change for change in found if self._only in (None, change.session_id)]
