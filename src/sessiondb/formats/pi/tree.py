"""The tree of a log: the id of each record, and the record that it continues.

pi lost links in several ways, and every record is kept all the same. Records of
version 1 have no ids: theirs are made of their content, so that each import finds the
same ones. A record whose parent is missing is a root, as it is for the program; but
where a line is damaged, or a fork left the labels out, it continues the record before.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.fields import as_string, fitting, integer
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import MADE, Links

__all__ = ["MADE", "Tree"]


class Tree(Links):
    """The links of one log, record by record in the order of its lines."""

    def __init__(self, *, is_fork: bool, is_first_version: bool) -> None:
        super().__init__("parentId", is_damaged=is_fork)
        self._first = is_first_version
        #: The ids by place in the file; the header is at 0.
        self._places: dict[Any, str] = {}

    def name(self, record: dict[str, Any]) -> str:
        """Return the id of a record here; take its own out of one that is linked."""
        own = fitting(record.get("id"), usable_id)
        if self._first or own is None:
            name = self.made(record)
        elif own in self.ids or own.startswith(MADE):
            # The last one of a name is the one that the program finds.
            name = self.ids[own] = self.made(record)
        else:
            name = self.ids[own] = own
            if "parentId" in record:
                del record["id"]

        self._places[len(self._places) + 1] = name
        return name

    def parent(self, record: dict[str, Any], name: str | None = None) -> Any:
        """Return the parent of a record for `SourceMessage`; take a known one out."""
        # Never linked in the first version: a record continues the one before.
        if self._first:
            return ...
        moved = self._moved(record, name) if record.get("type") == "leaf" else ...
        if moved is not ...:
            return moved

        known = super().parent(dict(record), name)
        # A record is written with its links again only if it has an id of its own.
        if not str(name).startswith(MADE) and known == record.get("parentId"):
            record.pop("parentId", None)
        return known

    def _moved(self, record: dict[str, Any], name: str | None) -> Any:
        """Return what a ``leaf`` continues, whatever it was appended to.

        None is before the first record; ``...`` is a target that is not there.
        """
        target = record.get("targetId", ...)
        if target is None:
            return None
        known = self.ids.get(as_string(target), name)
        return ... if known == name else known

    def kept(self, record: dict[str, Any]) -> None:
        """Find the record that a compaction keeps, if it has another id here.

        In version 1 a compaction names it by its place.
        """
        place = self._places.get(fitting(record.get("firstKeptEntryIndex"), integer))
        own = as_string(record.get("firstKeptEntryId"))
        kept = place or self.ids.get(own, own)
        if place or kept != own:
            record["first_kept_id"] = kept
