"""A clock that moves only when a test sets it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """The time of day, in Unix ms."""

    now: int = 1_780_000_000_000

    def time_ns(self) -> int:
        """The replacement of ``time.time_ns`` while this clock is in place."""
        return self.now * 1_000_000
