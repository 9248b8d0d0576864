"""The tree of a log: the id of each record, and the record that it continues.

As the program walks it (``transcript-records.ts``): from the last record of the
conversation up to a root, or to a parent that is missing. Records with the same uuid
are pieces of one message, one after the other.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    value_at,
)
from sessiondb.formats.kit.genai import texts_of
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.links import Links
from sessiondb.formats.qwen.fields import ASIDE, REQUEST

Record = dict[str, Any]


def request_of(record: Record) -> Record:
    """Return the event of a request to a model; empty if a record is not one."""
    event = as_object(value_at(record, "systemPayload", "uiEvent"))
    return event if event.get("event.name") == REQUEST else {}


def is_aside(record: Record) -> bool:
    """Return whether a record is beside the conversation, and never its end."""
    return record.get("type") == "system" and as_text(record.get("subtype")) in ASIDE


class QwenTree(Links):
    """The links of one log, record by record in the order of its lines."""

    def __init__(self) -> None:
        super().__init__("parentUuid")
        #: Hashes of contents, and the message of each.
        self._messages: dict[int | None, str] = {}
        #: The last request: the uuid of its record, and the provider's id of it.
        self._request_uuid: Any = ...
        self._response_id: str | None = None
        #: The uuids of the requests whose answers, with their usage, are recorded.
        self.answered: set[str] = set()
        self.leaf: str | None = None

    def place_record(self, record: Record) -> tuple[str, Any]:
        """Return the id of a record here, and its parent for `SourceMessage`."""
        uuid = as_string(record.get("uuid"))
        if uuid in self.ids:
            # Another piece of a message has the uuid of the first one.
            parent, name = self.ids[uuid], self.make_id(record)
        else:
            parent = self.parent_of_record(record)
            name = record.pop("uuid") if usable_id(uuid) else self.make_id(record)
        if uuid:
            self.ids[uuid] = name

        if not is_aside(record):
            self.leaf = name
        return name, parent

    # -- references of a record ----------------------------------------------

    def response_id_of(self, record: Record) -> str | None:
        """Return the provider's id of an answer or request: the latter comes first."""
        uuid = as_text(record.get("uuid"))
        response_id = request_of(record).get("response_id")
        if uuid is not None and usable_id(response_id):
            self._request_uuid, self._response_id = uuid, str(response_id)
            return self._response_id

        # An answer comes after the record of its request, which is its parent.
        is_answer = record.get("type") == "assistant"
        if not is_answer or record.get("parentUuid") != self._request_uuid:
            return None
        if "usageMetadata" in record:
            self.answered.add(self._request_uuid)
        return self._response_id

    def add_content(self, record: Record, name: str) -> None:
        """Remember the content of a message, for a compression that keeps it."""
        content_hash = _hash_of(record.get("message"))
        if content_hash is not None:
            self._messages[content_hash] = name

    def find_first_kept(self, record: Record) -> None:
        """Add the first message that a compression keeps, and how many it sums up."""
        history = as_list(value_at(record, "systemPayload", "compressedHistory"))
        for position, content in enumerate(history):
            name = self._messages.get(_hash_of(content))
            if name is not None:
                record["first_kept_id"], record["summarised"] = name, position
                return


def _hash_of(content: Any) -> int | None:
    """Return a hash of the texts of a content; None without any."""
    texts = texts_of(value_at(content, "parts"))
    role = as_text(value_at(content, "role"))
    return hash((role, *texts)) if texts else None
