"""Changes of every process, found by polling."""

from __future__ import annotations

from sessiondb.effects.handles import SessionRef, session_key
from sessiondb.model import Change, bounds
from sessiondb.opened.core import Core
from sessiondb.repository.lists import CHANGES, changes_since, last_change


class Watch:
    """Finds what other connections committed, by polling ``PRAGMA data_version``."""

    def __init__(self, core: Core, session: SessionRef | None, since: int | None) -> None:
        self._core = core
        self._only = None if session is None else session_key(session)
        bounds.integer(since, "since")
        core.check_usable()
        self._connection = core.connect_reader()
        self._version = -1
        self._seen: dict[str, int] = {}
        if since is None:
            # In this order: what is committed in between is found, not missed.
            self._version = self._data_version()
            since = core.read(last_change())
        self._since = since

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def poll(self) -> list[Change]:
        """Return what was committed since the last call, in order of commits."""
        self._core.check_usable()
        version = self._data_version()
        if version == self._version:
            return []
        self._version = version
        found = self._core.read(changes_since(self._since, self._seen))
        if found:
            self._since = found[-1].change
        if len(found) == CHANGES:
            self._version = -1
        return [change for change in found if self._only in (None, change.session_id)]

    def close(self) -> None:
        """Close the watching connection."""
        self._connection.close()
