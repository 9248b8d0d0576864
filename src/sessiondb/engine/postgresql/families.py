"""Families: a session that was made from no other one, and all that were made from it.

Writers of different families run side by side; those of one family take turns. Its row
in ``family`` is their lock, and counts the changes of its sessions. A family has the
number of its first session, which no later event changes, so that a server of many
nodes can have all of its rows on one of them.
"""

from __future__ import annotations

import hashlib

#: What a database needs besides the tables of the schema.
TABLES = (
    "CREATE TABLE family ("
    "family BIGINT NOT NULL, "
    "change BIGINT NOT NULL, "
    "CONSTRAINT pk_family PRIMARY KEY (family))",
    # None until the effect that makes a session states it.
    "ALTER TABLE session ADD COLUMN family BIGINT",
)
_BITS = 63


def family_of(root_id: str) -> int:
    """Return the number of the family whose first session is *root_id*.

    It has 63 bits. Two families may have the same one: they only take turns, too.
    """
    digest = hashlib.sha256(root_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)
