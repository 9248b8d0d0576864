"""Leases and streams for both façades: what happens, apart from who waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessiondb.effects.job import Job
from sessiondb.effects.lease import DropLease, Renewal, TakeLease, new_holder
from sessiondb.effects.stream import Stream
from sessiondb.effects.unit import Effect, Unit
from sessiondb.model import bounds
from sessiondb.opened.core import Core


class Holding:
    """A lease that this program has, from `taken` until `given_back`."""

    def __init__(self, core: Core, session_id: str, ttl: float) -> None:
        self._core = core
        self.session_id = session_id
        self.holder = new_holder()
        self._ttl_ms = max(1, int(bounds.seconds(ttl, "ttl", zero=False) * 1000))
        self.take = TakeLease(session_id, self.holder, self._ttl_ms)
        self.drop = DropLease(session_id, self.holder)
        self._renewal: Renewal | None = None

    def unit(self, effect: Effect) -> Unit:
        """Return a unit of one effect that has no verb of its own."""
        unit = self._core.unit()
        unit.effects.append(effect)
        return unit

    def taken(self) -> None:
        """Begin to renew."""
        take = TakeLease(self.session_id, self.holder, self._ttl_ms, renew=True)
        self._renewal = Renewal(self._core.service, self._job, take)

    def _job(self, take: TakeLease, notify: Callable[[Job], None]) -> Job:
        return self._core.job(self.unit(take), notify=notify)

    def given_back(self) -> None:
        """Renew no more."""
        if self._renewal is not None:
            self._renewal.stop()

    @property
    def lost(self) -> BaseException | None:
        """The error that says who took the lease over, or None."""
        return None if self._renewal is None else self._renewal.lost


def new_stream(core: Core, session_id: str) -> Stream:
    """Return a stream whose writes go through the writer's daemon thread."""

    def send(unit: Unit, done: Callable[[Job], None]) -> None:
        core.service.send(core.job(unit, notify=done))

    def call_later(seconds: float, function: Callable[[], Any]) -> None:
        core.service.call_later(seconds, function)

    return Stream(session_id, core.unit, send, call_later)
