"""The statements of `effects.expect`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import message

IS_STORED = select(message.c.seq).where(message.c.id == p("mid")).limit(1)
