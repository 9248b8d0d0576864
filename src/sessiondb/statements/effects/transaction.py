"""The statements of `effects.transaction`."""

from __future__ import annotations

from sqlalchemy import and_, exists, or_, select, text, tuple_, update
from sqlalchemy.sql import ClauseElement

from sessiondb.effects.session_state import STATE
from sessiondb.engine.expressions import p, parts, texts
from sessiondb.schema.rows import SEARCHED
from sessiondb.schema.tables import blob, file_diff, lease, message, part, session
from sessiondb.schema.terms import LIVING_LEASE

_address = (part.c.session_id, part.c.seq, part.c.idx)
MARK = (
    update(part)
    .where(
        tuple_(*_address).in_(parts("parts")),
        part.c.indexed == text("0"),
        part.c.inherited == text("0"),
        or_(*(part.c[name] != text("''") for name in SEARCHED)),
    )
    .values(indexed=text("1"))
    .returning(*_address)
)


def _free_statement() -> ClauseElement:
    holders = [
        part.c.text_blob,
        part.c.input_blob,
        part.c.data_blob,
        message.c.data_blob,
    ]
    holders += [session.c.data_blob, file_diff.c.before_blob, file_diff.c.after_blob]
    unused = [~exists().where(column == blob.c.hash) for column in holders]
    return blob.delete().where(and_(blob.c.hash.in_(texts("hashes")), *unused))


FREE = _free_statement()
_state = (
    select(
        *(session.c[name] for name in STATE),
        lease.c.holder,
        lease.c.time_expires,
        message.c.turn_id,
    )
    .outerjoin(
        message,
        and_(
            message.c.session_id == session.c.id,
            message.c.seq == session.c.leaf_seq,
        ),
    )
    .where(session.c.time_deleted.is_(None))
)
_lease_of_session = lease.c.session_id == session.c.id
LOAD = _state.outerjoin(lease, and_(_lease_of_session, text(LIVING_LEASE))).where(
    session.c.id == p("sid")
)
#: Also with leases that have expired: the time is not known yet when it is sent.
LOAD_MANY = (
    _state.add_columns(lease.c.ttl)
    .outerjoin(lease, _lease_of_session)
    .where(session.c.id.in_(texts("sids")))
)
