"""The statements of `effects.open_message`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, func, literal_column, select, text

from sessiondb.effects.open_message import GrowingMessage
from sessiondb.engine.expressions import p, update_of
from sessiondb.schema.purposes import is_prompt as is_prompt_sql
from sessiondb.schema.tables import message, part
from sessiondb.schema.terms import USAGE
from sessiondb.statements.effects.message import in_session, of_message, one_part

NEXT_IDX = select(func.coalesce(func.max(part.c.idx), text("-1")) + text("1")).where(
    *of_message
)
UNINDEXED = select(part.c.idx).where(*of_message, part.c.indexed == text("0"))
OPEN = select(*(message.c[name] for name in GrowingMessage._fields)).where(
    in_session, message.c.seq == p("at")
)
WAS_PROMPT: Select[Any] = select(literal_column(is_prompt_sql("message"))).where(
    in_session, message.c.seq == p("at")
)
FINISH = update_of(
    message,
    " ".join(("finish error usage_key time_completed", *USAGE)),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
ROW = (
    select(
        part.c.seq,
        part.c.idx,
        message.c.time_completed,
        func.length(func.coalesce(part.c.text, text("''"))),
        part.c.text,
        part.c.text_blob,
        part.c.data,
        part.c.data_blob,
    )
    .join(
        message,
        and_(message.c.session_id == part.c.session_id, message.c.seq == part.c.seq),
    )
    .where(
        part.c.session_id == p("sid"),
        part.c.id == p("pid"),
        message.c.id == p("mid"),
    )
)
APPEND = (
    part.update()
    .where(*one_part)
    .values(text=text("coalesce(part.text, '') || :delta"), time_updated=text(":now"))
)
COMPLETE = update_of(
    part,
    "text text_blob data data_blob time_updated time_ended",
    *one_part,
)
