"""Names of Pydantic AI as ids of sessiondb.

Its conversations, scopes and entries may have any string as a name. A string that can
be an id is one; any other is named by its hash, and stored beside it.
"""

from __future__ import annotations

import hashlib

from sessiondb.errors import InvalidInputError
from sessiondb.ids import valid_id

#: Begins the ids that are hashes. A name that begins with it is hashed as well.
_HASHED = "=sha256:"


def key_of(name: str) -> str:
    """Return the id for a name; different names have different ids."""
    if not name.startswith(_HASHED):
        try:
            return valid_id(name, "a name")
        except InvalidInputError:
            pass
    return _HASHED + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def optional_key_of(name: str | None) -> str | None:
    """Return the id for a name; None for none."""
    return None if name is None else key_of(name)
