"""The statements of `repository.decode`, and the columns of those of other rooms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, case, or_, select, text

from sessiondb.engine.expressions import numbers, of_session, p, texts
from sessiondb.repository.decode import (
    COPY,
    MESSAGE_COLUMNS,
    MESSAGE_MORE,
    MORE,
    PART_COLUMNS,
    PART_MORE,
    PLAIN,
    SESSION_COLUMNS,
)
from sessiondb.schema.tables import blob, message, part, session

_large = blob.alias("session_blob")
select_session = select(
    *(
        _large.c[name.removeprefix("large_")].label(name)
        if name.startswith("large_")
        else session.c[name]
        for name in SESSION_COLUMNS
    )
).select_from(session.outerjoin(_large, _large.c.hash == session.c.data_blob))
_FLAGS = ("inherited", "synthetic")


def _has_more(table: Any, further: Sequence[str]) -> Any:
    """Return the condition of the rows that have values in *further* columns."""
    values = [table.c[name].is_not(None) for name in further if name not in _FLAGS]
    if "synthetic" in further:
        values.append(table.c.synthetic == text("1"))
    return or_(*values)


def _form_of(table: Any, has_more: Any) -> Any:
    """Return the expression of the form of a row."""
    return case(
        (has_more, text(str(MORE))),
        (table.c.inherited == text("1"), text(str(COPY))),
        else_=text(str(PLAIN)),
    ).label("form")


def in_range(table: Any) -> Any:
    """Return the condition of rows at the seqs of a range of a session."""
    in_session = table.c.session_id == p("sid")
    return and_(in_session, table.c.seq.between(p("low"), p("high")))


def in_list(table: Any) -> Any:
    """Return the condition of rows at the seqs of a list."""
    return and_(table.c.session_id == p("sid"), table.c.seq.in_(numbers("seqs")))


_message_has_more = _has_more(message, MESSAGE_MORE)
_part_has_more = _has_more(part, PART_MORE)
select_message = select(
    *(message.c[name] for name in MESSAGE_COLUMNS), _form_of(message, _message_has_more)
)
select_part = select(
    *(part.c[name] for name in PART_COLUMNS), _form_of(part, _part_has_more)
)
_more_of_messages = select(
    message.c.seq, *(message.c[name] for name in MESSAGE_MORE)
).where(_message_has_more)
_more_of_parts = select(
    part.c.seq, part.c.idx, *(part.c[name] for name in PART_MORE)
).where(_part_has_more)
MORE_OF_MESSAGES = _more_of_messages.where(in_range(message))
MORE_OF_SOME_MESSAGES = _more_of_messages.where(in_list(message))
MORE_OF_PARTS = _more_of_parts.where(in_range(part))
MORE_OF_SOME_PARTS = _more_of_parts.where(in_list(part))
BLOBS = of_session(
    select(blob.c.hash, blob.c.size, blob.c.encoding, blob.c.data).where(
        blob.c.hash.in_(texts("names"))
    )
)
