"""The tree of a log: the id of each record, and the record that it continues.

pi lost links in several ways, and every record is kept all the same. Records of
version 1 have no ids: theirs are made of their content, so that each import finds the
same ones. A program that continues such a log upgrades it with random ids: these are in
``data``, and the id here stays the same. A record whose parent is missing is a root, as
it is for the program; but where a line is damaged, or a fork left the labels out, it
continues the record before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    fitting,
    integer,
    without,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import MADE, Links
from sessiondb.formats.pi.fields import is_replaced_remotely

__all__ = ["MADE", "Tree", "is_upgraded"]

#: Keys that a record has in one version alone.
_LINKS = ("id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex")


def is_upgraded(header: dict[str, Any]) -> bool:
    """Return whether the *header* of a log was given its version later."""
    keys = [key for key in header if key in ("timestamp", "version")]
    return keys == ["timestamp", "version"]


def _has_late_links(record: dict[str, Any]) -> bool:
    """Return whether a record was given its id later: new ones begin with theirs."""
    keys = list(record)
    links = [key for key in keys if key in _LINKS]
    return "id" in links and keys[-len(links) :] == links


class Tree(Links):
    """The links of one log, record by record in the order of its lines.

    A log that is or *was_first_version*, and a fork of one, may have records whose ids
    are not those that they had first.
    """

    def __init__(
        self, *, is_fork: bool, is_first_version: bool, was_first_version: bool = False
    ) -> None:
        super().__init__("parentId", is_damaged=is_fork)
        self._is_first = is_first_version
        self._may_be_late = was_first_version or is_fork
        #: The parent of each record, in the order of the file; `...` is the one before.
        self._above: dict[str, Any] = {}

    def name(self, record: dict[str, Any]) -> str:
        """Return the id of a record here; take its own out of one that is linked."""
        own = fitting(record.get("id"), usable_id)
        if self._is_first or own is None:
            name = self.made(record)
        elif own in self.ids or own.startswith(MADE) or self._is_late(record):
            # The last one of a name is the one that the program finds.
            name = self.ids[own] = self.made(record)
        else:
            name = self.ids[own] = own
            if "parentId" in record:
                del record["id"]

        self._above[name] = ...
        return name

    def _is_late(self, record: dict[str, Any]) -> bool:
        return self._may_be_late and _has_late_links(record)

    def made(self, record: dict[str, Any]) -> str:
        """Return an id made of what a record has in every version."""
        content = without(_LINKS, record)
        said = as_object(content.get("message"))
        if said.get("role") == "hookMessage":
            content["message"] = {**said, "role": "custom"}
        return super().made(content)

    def parent(self, record: dict[str, Any], name: str | None = None) -> Any:
        """Return the parent of a record for `SourceMessage`; take a known one out."""
        # Never linked in the first version: a record continues the one before. The
        # first one of an upgraded log continues the settings of its header.
        if self._is_first or (len(self._above) == 1 and self._is_late(record)):
            return ...
        moved = self._moved(record, name) if record.get("type") == "leaf" else ...
        if moved is not ...:
            self._above[str(name)] = moved
            return moved

        known = super().parent(dict(record), name)
        self._above[str(name)] = known
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

    def kept(self, record: dict[str, Any], name: str) -> None:
        """Add the id of the first record that a compaction keeps, if it keeps any.

        One at a provider names the last record that it replaces instead.
        """
        if record.get("type") != "compaction":
            return

        own = as_string(record.get("firstKeptEntryId"))
        if is_replaced_remotely(record):
            through = as_string(record.get("providerReplayThroughEntryId"))
            kept = self._after(self.ids.get(through), name)
        else:
            kept = self._at(record.get("firstKeptEntryIndex")) or self.ids.get(own, own)
        if kept:
            record["first_kept_id"] = kept

    def _at(self, place: Any) -> str | None:
        """Return the record that a compaction of version 1 names by its place.

        The header, at place 0, has no id.
        """
        number = fitting(place, integer, 0)
        return next(islice(self._above, number - 1, None), None) if number > 0 else None

    def _after(self, through: str | None, name: str) -> str | None:
        """Return the record after *through* on the path to *name*, or None."""
        if through is None:
            return None

        path = pairwise(self._path(name))
        first = next((below for below, at in path if at == through), name)
        return None if first == name else first

    def _path(self, name: str) -> Iterator[str]:
        """Yield a record, and those that it continues; each is an earlier one."""
        before = {later: of for of, later in pairwise(self._above)}
        at: str | None = name
        while at is not None:
            yield at
            above = self._above[at]
            at = before.get(at) if above is ... else above
