"""The statements of `effects.tree`."""

from __future__ import annotations

from sqlalchemy import delete, literal_column, select

from sessiondb.engine.expressions import numbers, p
from sessiondb.schema.purposes import is_prompt
from sessiondb.schema.tables import file_diff, message, part
from sessiondb.schema.terms import USAGE
from sessiondb.statements.effects.ownership import name_of

LINKS = (
    select(message.c.seq, message.c.parent_seq)
    .where(message.c.session_id == p("sid"))
    .order_by(message.c.seq)
)
LINKS_BEHIND = (
    select(message.c.seq, message.c.parent_seq)
    .where(message.c.session_id == p("sid"), message.c.seq > p("after"))
    .order_by(message.c.seq)
)
GOING = select(
    message.c.seq,
    message.c.id,
    message.c.time_created,
    message.c.usage_key,
    name_of(message),
    message.c.data_blob,
    message.c.inherited,
    message.c.model_id,
    literal_column(is_prompt("message")),
    *(message.c[name] for name in USAGE),
).where(message.c.session_id == p("sid"), message.c.seq.in_(numbers("seqs")))
PART_BLOBS = select(part.c.text_blob, part.c.input_blob, part.c.data_blob).where(
    part.c.session_id == p("sid"), part.c.seq.in_(numbers("seqs"))
)
DIFF_BLOBS = select(file_diff.c.before_blob, file_diff.c.after_blob).where(
    file_diff.c.session_id == p("sid"), file_diff.c.seq.in_(numbers("seqs"))
)
DROP = delete(message).where(
    message.c.session_id == p("sid"), message.c.seq.in_(numbers("seqs"))
)
DROP_DIFFS = delete(file_diff).where(
    file_diff.c.session_id == p("sid"), file_diff.c.seq.in_(numbers("seqs"))
)
