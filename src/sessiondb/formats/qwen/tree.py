"""The tree of a log: the id of each record, and the record that it continues.

As the program walks it (``transcript-records.ts``): from the last record of the
conversation up to a root, or to a parent that is missing. Records with the same uuid
are pieces of one message, one after the other.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.fields import as_list, as_object, as_string, as_text, within
from sessiondb.formats.kit.genai import texts_of
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import Links
from sessiondb.formats.qwen.fields import ASIDE, REQUEST

Record = dict[str, Any]


def request_of(record: Record) -> Record:
    """Return the event of a request to a model; empty if a record is not one."""
    event = as_object(within(record, "systemPayload", "uiEvent"))
    return event if event.get("event.name") == REQUEST else {}


def is_aside(record: Record) -> bool:
    """Return whether a record is beside the conversation, and never its end."""
    return record.get("type") == "system" and as_text(record.get("subtype")) in ASIDE


class Tree(Links):
    """The links of one log, record by record in the order of its lines."""

    def __init__(self) -> None:
        super().__init__("parentUuid")
        #: Hashes of contents, and the message of each.
        self._said: dict[int | None, str] = {}
        #: The last request: the uuid of its record, and the provider's id of it.
        self._request: tuple[Any, str | None] = ..., None
        #: The uuids of the requests whose answers, with what they used, are recorded.
        self.answered: set[str] = set()
        self.leaf: str | None = None

    def place(self, record: Record) -> tuple[str, Any]:
        """Return the id of a record here, and its parent for `SourceMessage`."""
        own = as_string(record.get("uuid"))
        if own in self.ids:
            # Another piece of a message has the uuid of the first one.
            parent, name = self.ids[own], self.made(record)
        else:
            parent = self.parent(record)
            name = record.pop("uuid") if usable_id(own) else self.made(record)
        if own:
            self.ids[own] = name

        if not is_aside(record):
            self.leaf = name
        return name, parent

    # -- references of a record ----------------------------------------------

    def response(self, record: Record) -> str | None:
        """Return the provider's id of an answer or request: the latter comes first."""
        uuid, found = as_text(record.get("uuid")), request_of(record).get("response_id")
        if uuid is not None and usable_id(found):
            self._request = uuid, str(found)
            return str(found)

        # An answer comes after the record of its request, which is its parent.
        before, response = self._request
        if (record.get("type"), record.get("parentUuid")) != ("assistant", before):
            return None
        if "usageMetadata" in record:
            self.answered.add(before)
        return response

    def said(self, record: Record, name: str) -> None:
        """Note the content of a message, for a compression that keeps it."""
        said = _said(record.get("message"))
        if said is not None:
            self._said[said] = name

    def kept(self, record: Record) -> None:
        """Find the first message that a compression keeps, and how many it sums up."""
        history = as_list(within(record, "systemPayload", "compressedHistory"))
        for index, content in enumerate(history):
            name = self._said.get(_said(content))
            if name is not None:
                record["first_kept_id"], record["summarised"] = name, index
                return


def _said(content: Any) -> int | None:
    """Return a hash of the texts of a content; None without any."""
    texts = texts_of(within(content, "parts"))
    role = as_text(within(content, "role"))
    return hash((role, *texts)) if texts else None
