"""The interface of the sizes of sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sessiondb.engine.sql import Read


class SessionSizes(Protocol):
    """The bytes that sessions take in the database. Each method is a read."""

    def each(self) -> Read[dict[str, int]]:
        """Return by id the bytes that removing each session alone would free."""

    def freed(self, session_ids: Iterable[str]) -> Read[tuple[int, int]]:
        """Return the bytes that removing these together frees, and their parts."""
