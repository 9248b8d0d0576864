"""The statements of `effects.replacing`."""

from __future__ import annotations

from sqlalchemy import delete, select

from sessiondb.effects import replacing
from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.tables import message, part
from sessiondb.statements.effects.message import of_message

_at = (message.c.session_id == p("sid"), message.c.seq == p("at"))
STORED = select(*(message.c[name] for name in replacing.STORED)).where(*_at)
REPLACE = update_of(message, " ".join(replacing.REPLACED), *_at)
DROP_PARTS = delete(part).where(*of_message)
