"""The statements of `importing.beside.prompts`."""

from __future__ import annotations

from sqlalchemy import delete, select, text

from sessiondb.engine.expressions import numbers, p, texts
from sessiondb.schema.tables import message, prompt

KNOWN = select(prompt.c.id, prompt.c.text, prompt.c.session_id).where(
    prompt.c.id.in_(texts("names"))
)
REMOVE = delete(prompt).where(
    prompt.c.id.in_(texts("names")), prompt.c.session_id == p("sid")
)
OF_SESSION = select(prompt.c.id, prompt.c.text, prompt.c.time_created).where(
    prompt.c.session_id == p("sid"), prompt.c.source == p("source")
)
COPIES = select(message.c.seq).where(
    message.c.session_id == p("sid"),
    message.c.seq.in_(numbers("places")),
    message.c.inherited == text("1"),
)
