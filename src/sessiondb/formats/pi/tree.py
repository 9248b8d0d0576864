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
from itertools import pairwise
from typing import Any

from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    fitting,
    integer,
    without_keys,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import MADE, Links
from sessiondb.formats.pi.fields import is_replaced_remotely

__all__ = ["MADE", "PiTree", "is_upgraded"]

#: Keys that a record has in one version alone.
_LINKS = ("id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex")


def is_upgraded(header: dict[str, Any]) -> bool:
    """Return whether the *header* of a log was given its version later."""
    keys = [key for key in header if key in ("timestamp", "version")]
    return keys == ["timestamp", "version"]


class PiTree(Links):
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
        self._parents: dict[str, Any] = {}

    def take_name(self, record: dict[str, Any]) -> str:
        """Return the id of a record here; take its own out of one that is linked."""
        record_id = fitting(record.get("id"), usable_id)
        if self._is_first or record_id is None:
            name = self.make_id(record)
        elif (
            record_id in self.ids or record_id.startswith(MADE) or self._is_late(record)
        ):
            # The last one of a name is the one that the program finds.
            name = self.ids[record_id] = self.make_id(record)
        else:
            name = self.ids[record_id] = record_id
            if "parentId" in record:
                del record["id"]

        self._parents[name] = ...
        return name

    def _is_late(self, record: dict[str, Any]) -> bool:
        """Return whether a record was given its id later: new ones begin with it."""
        if not self._may_be_late:
            return False
        keys = list(record)
        links = [key for key in keys if key in _LINKS]
        return "id" in links and keys[-len(links) :] == links

    def make_id(self, record: dict[str, Any]) -> str:
        """Return an id made of the values that a record has in every version."""
        content = without_keys(_LINKS, record)
        message = as_object(content.get("message"))
        if message.get("role") == "hookMessage":
            content["message"] = {**message, "role": "custom"}
        return super().make_id(content)

    def parent_of_record(self, record: dict[str, Any], name: str | None = None) -> Any:
        """Return the parent of a record for `SourceMessage`; take a known one out."""
        # Never linked in the first version: a record continues the one before. The
        # first one of an upgraded log continues the settings of its header.
        if self._is_first or (len(self._parents) == 1 and self._is_late(record)):
            return ...
        if record.get("type") == "leaf":
            target = self._target_of_leaf(record, name)
            if target is not ...:
                self._parents[str(name)] = target
                return target

        parent = super().parent_of_record(dict(record), name)
        self._parents[str(name)] = parent
        # A record is written with its links again only if it has an id of its own.
        if not str(name).startswith(MADE) and parent == record.get("parentId"):
            record.pop("parentId", None)
        return parent

    def _target_of_leaf(self, record: dict[str, Any], name: str | None) -> Any:
        """Return the record that a ``leaf`` continues, whatever it was appended to.

        None is before the first record; ``...`` is a target that is missing.
        """
        target = record.get("targetId", ...)
        if target is None:
            return None
        target_id = self.ids.get(as_string(target), name)
        return ... if target_id == name else target_id

    def add_first_kept(self, record: dict[str, Any], name: str) -> None:
        """Add the id of the first record that a compaction keeps, if it keeps any.

        One at a provider names the last record that it replaces instead.
        """
        if record.get("type") != "compaction":
            return

        if is_replaced_remotely(record):
            last_replaced = as_string(record.get("providerReplayThroughEntryId"))
            first_kept = self._next_on_path(self.ids.get(last_replaced), name)
        else:
            entry_id = as_string(record.get("firstKeptEntryId"))
            by_place = self._record_at(record.get("firstKeptEntryIndex"))
            first_kept = by_place or self.ids.get(entry_id, entry_id)
        if first_kept:
            record["first_kept_id"] = first_kept

    def _record_at(self, place: Any) -> str | None:
        """Return the record that a compaction of version 1 names by its place.

        The header, at place 0, has no id.
        """
        number = fitting(place, integer, 0)
        names = list(self._parents)
        return names[number - 1] if 0 < number <= len(names) else None

    def _next_on_path(self, record_id: str | None, leaf: str) -> str | None:
        """Return the record after *record_id* on the path to *leaf*.

        None if that is the leaf itself, or if the record is not on the path.
        """
        child = leaf
        for name in self._path_to(leaf):
            if name == record_id:
                return None if child == leaf else child
            child = name
        return None

    def _path_to(self, leaf: str) -> Iterator[str]:
        """Yield a record, and those that it continues; each is an earlier one."""
        previous = {later: earlier for earlier, later in pairwise(self._parents)}
        name: str | None = leaf
        while name is not None:
            yield name
            parent = self._parents[name]
            name = previous.get(name) if parent is ... else parent
