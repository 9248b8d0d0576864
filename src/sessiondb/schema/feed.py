"""The feed of changes, where it is more than the column ``session.change``.

A row that is gone has no number any more, so each deletion is a row of its own in
``deletion``. A deletion by the library is noted when it is marked; the trigger notes
what a shell deletes, cascades included, whether foreign keys are on or off. No
transaction of the library removes a session that is not marked: `Transaction` hands
out numbers of its own, which the trigger cannot see.
"""

from __future__ import annotations

from sqlalchemy import func, select

from sessiondb.model.feed import NAME_LENGTH
from sessiondb.schema.tables import meta

_identity = meta.alias("identity")
#: The name of this database in the cursors of changes.
DATABASE = (
    select(func.substr(_identity.c.value, 1, NAME_LENGTH))
    .where(_identity.c.key == "database_uuid")
    .scalar_subquery()
)
TRIGGERS = (
    "CREATE TRIGGER session_deleted AFTER DELETE ON session WHEN old.time_deleted IS NULL "
    "BEGIN UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'change'; "
    "INSERT INTO deletion (change, session_id, revision, last_seq) "
    "SELECT CAST(value AS INTEGER), old.id, old.revision + 1, old.last_seq "
    "FROM meta WHERE key = 'change'; END",
)
