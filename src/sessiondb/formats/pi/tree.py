"""The tree of a log: the id of each record, and the record that it continues.

pi lost links in several ways, and every record is kept all the same. Records of
version 1 have no ids: theirs are made of their content, so that each import finds the
same ones. A record whose parent is missing is a root, as it is for the program; but
where a line is damaged, or a fork left the labels out, it continues the record before.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sessiondb.formats.kit.fields import as_text
from sessiondb.formats.kit.json import usable_id

#: How an id begins that a record does not have itself.
MADE = "~"


class Tree:
    """The links of one log, record by record in the order of its lines."""

    def __init__(self, *, is_fork: bool, is_first_version: bool) -> None:
        self._mended = is_fork
        self._first = is_first_version
        #: The ids that records refer to, and the ids that messages have here.
        self._ids: dict[str, str] = {}
        #: The ids by place in the file; the header is at 0.
        self._places: list[str | None] = [None]

    def damaged(self) -> None:
        """Note that a line of the log could not be read."""
        self._mended = True

    def name(self, record: dict[str, Any]) -> str:
        """Return the id of a record here; take its own out of one that is linked."""
        own = as_text(record.get("id"))
        if self._first or own is None or not usable_id(own):
            name = self._made(record)
        elif own in self._ids:
            # The last one of a name is the one that the program finds.
            name = self._ids[own] = self._made(record)
        else:
            name = self._ids[own] = own
            if "parentId" in record:
                del record["id"]

        self._places.append(name)
        return name

    def _made(self, record: dict[str, Any]) -> str:
        # Whatever the order of its keys is: a program may write the log again.
        content = json.dumps(record, sort_keys=True)
        digest = f"{MADE}{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        name, number = digest, 1
        while name in self._ids:
            number += 1
            name = f"{digest}-{number}"
        self._ids[name] = name
        return name

    def parent(self, record: dict[str, Any], name: str) -> Any:
        """Return the parent of a record for `SourceMessage`; take a known one out."""
        # Never linked, as in the first version: it continues the record before.
        if self._first or "parentId" not in record:
            return ...

        above = record["parentId"]
        if above is None:
            del record["parentId"]
            return None

        known = self._ids.get(above) if isinstance(above, str) else None
        if known is not None and known != name:
            if known == above:
                del record["parentId"]
            return known
        return ... if self._mended else None

    def kept(self, record: dict[str, Any]) -> None:
        """Find the record that a compaction of version 1 keeps by its place."""
        place = record.get("firstKeptEntryIndex")
        if type(place) is int and 0 < place < len(self._places):
            record["first_kept_id"] = self._places[place]
