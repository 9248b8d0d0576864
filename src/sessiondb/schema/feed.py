"""The feed of changes, where it is more than the column ``session.change``.

A row that is gone has no number any more, so each deletion is a row of its own in
``deletion``. A deletion by the library is recorded when it is marked; one by a shell
is recorded by a trigger of the engine.
"""

from __future__ import annotations

from sessiondb.model.feed import NAME_LENGTH

#: The name of this database in the cursors of changes.
DATABASE = (
    f"(SELECT substr(value, 1, {NAME_LENGTH}) FROM meta WHERE key = 'database_uuid')"
)
