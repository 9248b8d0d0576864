"""The feed of changes, where it is more than the column ``session.change``.

A row that is gone has no number any more, so each deletion is a row of its own in
``deletion``. A deletion by the library is recorded when it is marked; one by a shell
is recorded by a trigger of the engine.
"""

from __future__ import annotations

from sessiondb.model.feed import NAME_LENGTH

#: The number of the newest change, 0 for none.
NEWEST_CHANGE = (
    "max(coalesce((SELECT max(change) FROM session), 0), "
    "coalesce((SELECT max(change) FROM deletion), 0))"
)
#: The name of this database in the cursors of changes.
DATABASE = (
    f"(SELECT substr(value, 1, {NAME_LENGTH}) FROM meta WHERE key = 'database_uuid')"
)
