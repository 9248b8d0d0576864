"""The statements of `repository.decode`, and the columns of those of other rooms."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import texts
from sessiondb.repository.decode import MESSAGE_COLUMNS, PART_COLUMNS, SESSION_COLUMNS
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
select_message = select(*(message.c[name] for name in MESSAGE_COLUMNS))
select_part = select(*(part.c[name] for name in PART_COLUMNS))
BLOBS = select(blob.c.hash, blob.c.size, blob.c.encoding, blob.c.data).where(
    blob.c.hash.in_(texts("names"))
)
