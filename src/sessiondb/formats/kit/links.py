"""The links of a log: the id of each record, and the record that it continues.

A program that writes a tree names the parent in each record. A parent that is missing
makes a root of its record, as it does for the program; but if a line of the log could
not be read, the parent may have been on it, and the record continues the one before.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from sessiondb.formats.kit.json import sorted_json

#: How an id begins that a record does not have itself.
MADE = "~"


class Links:
    """The links of one log, record by record in the order of its lines.

    *key* is the key of a record that names its parent.
    """

    def __init__(self, key: str, *, is_damaged: bool = False) -> None:
        #: The ids that records refer to, and the ids that messages have here.
        self.ids: dict[str, str] = {}
        #: How often an id was made again of the same content.
        self._repeats: Counter[str] = Counter()
        self._key = key
        self._is_damaged = is_damaged

    def note_damage(self) -> None:
        """Record that a line of the log could not be read."""
        self._is_damaged = True

    def make_id(self, record: dict[str, Any]) -> str:
        """Return an id made of a record's content: each import finds the same one."""
        # Whatever the order of its keys is: a program may write the log again.
        content = sorted_json(record)
        digest = f"{MADE}{hashlib.sha256(content.encode()).hexdigest()[:16]}"

        name = digest
        # Not from 2 on each time: a log may repeat one record a million times.
        while name in self.ids:
            self._repeats[digest] += 1
            name = f"{digest}-{self._repeats[digest] + 1}"
        self.ids[name] = name
        return name

    def parent_of_record(self, record: dict[str, Any], name: str | None = None) -> Any:
        """Return the parent of a record for `SourceMessage`; take a known one out.

        *name* is the id of the record itself, which is never its own parent.
        """
        if self._key not in record:
            return ...

        parent_name = record[self._key]
        parent = self.ids.get(parent_name) if isinstance(parent_name, str) else None
        if parent_name is not None and parent in (None, name):
            return ... if self._is_damaged else None

        # A key whose value differs from the column stays in ``data``.
        if parent == parent_name:
            del record[self._key]
        return parent
