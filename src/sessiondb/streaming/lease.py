"""The renewal of a lease, by the writer's own thread."""

from __future__ import annotations

from collections.abc import Callable

from sessiondb.effects.lease import TakeLease
from sessiondb.errors import LeaseHeldError
from sessiondb.writer.job import Job
from sessiondb.writer.service import Service


class Renewal:
    """Renews a lease at a third of its time until it is stopped or lost."""

    def __init__(
        self, service: Service, make_job: Callable[[TakeLease], Job], take: TakeLease
    ) -> None:
        self._service = service
        self._make_job = make_job
        self._take = take
        self.active = False
        self.lost: BaseException | None = None

    def begin(self) -> None:
        """Renew from now on."""
        self.active = True
        self._schedule_renewal()

    def _schedule_renewal(self) -> None:
        self._service.call_later(self._take.ttl_ms / 3000, self._renew_lease)

    def _renew_lease(self) -> None:
        if self.active:
            self._service.send(self._make_job(self._take), self._renewal_ended)

    def _renewal_ended(self, job: Job) -> None:
        if isinstance(job.error, LeaseHeldError):
            self.lost = job.error
        elif self.active:
            self._schedule_renewal()

    def stop(self) -> None:
        """Stop renewing it."""
        self.active = False
