"""The statements of `effects.lease`."""

from __future__ import annotations

from sqlalchemy import delete, select, text

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import lease
from sessiondb.schema.terms import LIVING_LEASE

HELD = select(lease.c.holder, lease.c.time_expires).where(
    lease.c.session_id == p("sid"), text(LIVING_LEASE)
)
DROP = delete(lease).where(
    lease.c.session_id == p("sid"), lease.c.holder == p("holder")
)
