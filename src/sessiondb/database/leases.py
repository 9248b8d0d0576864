"""Leases and streams for both façades, without the waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from sessiondb.database.core import Core
from sessiondb.effects.lease import DropLease, TakeLease, new_holder
from sessiondb.effects.queue import Effect
from sessiondb.effects.unit import Unit
from sessiondb.errors import StoreClosedError
from sessiondb.model import bounds
from sessiondb.streaming.lease import Renewal
from sessiondb.streaming.stream import StreamWriting
from sessiondb.writer.job import Job


class Lease:
    """A lease of this program, from `taken` until `given_back`."""

    def __init__(self, core: Core, session_id: str, ttl: float) -> None:
        self._core = core
        self.session_id = session_id
        self.holder = new_holder()
        self._ttl_ms = max(1, int(bounds.seconds(ttl, "ttl", zero=False) * 1000))
        self.take = TakeLease(session_id, self.holder, self._ttl_ms)
        self.drop = DropLease(session_id, self.holder)
        again = TakeLease(session_id, self.holder, self._ttl_ms, renew=True)
        self._renewal = Renewal(core.service, self._renewal_job, again)

    def unit(self, effect: Effect) -> Unit:
        """Return a unit of one effect that has no verb of its own."""
        unit = self._core.unit()
        unit.add(effect)
        return unit

    def taken(self) -> None:
        """Begin to renew the lease: it was taken."""
        self._renewal.begin()

    def _renewal_job(self, take: TakeLease) -> Job:
        return self._core.job(self.unit(take))

    def given_back(self) -> None:
        """Stop renewing the lease."""
        self._renewal.stop()

    def abandon(self, end: Callable[[], object] | None = None) -> None:
        """Give it back soon: the block that held it was collected; see `Core.abandon`.

        The daemon thread calls *end*, by default to drop the lease.
        """
        if self._renewal.active:
            self.given_back()
            self._core.service.put(end or self._send_drop)

    def _send_drop(self) -> None:
        with suppress(StoreClosedError):
            self._core.service.send(self._core.job(self.unit(self.drop)))

    @property
    def lost(self) -> BaseException | None:
        """The error that names the process which took the lease over, or None."""
        return self._renewal.lost


class LeaseBlock:
    """A lease for the duration of a ``with`` block of a synchronous store.

    Not a generator: the garbage collector would resume one on any line.
    """

    def __init__(self, core: Core, lease: Lease) -> None:
        self._core, self._lease = core, lease

    def __enter__(self) -> Lease:
        lease = self._lease
        self._core.commit(lease.unit(lease.take))
        try:
            lease.taken()
        except BaseException:
            lease.given_back()
            raise

        return lease

    def __exit__(self, *_: object) -> None:
        lease = self._lease
        lease.given_back()
        # If the store was closed inside the block, the lease expires by itself.
        with suppress(StoreClosedError):
            self._core.commit(lease.unit(lease.drop))

    def __del__(self) -> None:
        lease = getattr(self, "_lease", None)
        if lease is not None:
            lease.abandon()


def new_stream(core: Core, session_id: str) -> StreamWriting:
    """Return a stream whose writes go through the writer's daemon thread."""

    def send(unit: Unit, done: Callable[[Job], None]) -> None:
        core.service.send(core.job(unit), done)

    return StreamWriting(session_id, core.unit, send, core.service)
