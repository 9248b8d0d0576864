"""The record of a conversation, as it is kept in the metadata of its session."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord

from sessiondb.adapters.pydantic_ai.entries import FRAMEWORK
from sessiondb.adapters.pydantic_ai.statements import UPDATED
from sessiondb.adapters.pydantic_ai.transcripts import microseconds

# As in the adapter of messages: bytes in the metadata of a call are base64.
_RECORDS = TypeAdapter(
    list[ConversationRecord],
    config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"),
)
_RECORD = "record"


class RecordFold:
    """The metadata of a session with a new record, if it has the one that was read.

    Called in the transaction, so that no other writer comes in between.
    """

    def __init__(
        self, record: ConversationRecord, expected_revision: str | None
    ) -> None:
        (dumped,) = _RECORDS.dump_python([record], mode="json")
        self._conversation_id = record.conversation_id
        self._expected = expected_revision
        #: Whether the conversation is a new one.
        self.makes_conversation = expected_revision is None
        self._stored = {_RECORD: dumped, UPDATED: microseconds(record.updated_at)}

    def __call__(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the new metadata; raises `ConversationConflict`."""
        check_revision(metadata, self._conversation_id, self._expected)
        return {**(metadata or {}), FRAMEWORK: self._stored}

    def of_fork(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the metadata of a new fork, which has that of the original so far."""
        return {**(metadata or {}), FRAMEWORK: self._stored}


def check_revision(
    metadata: dict[str, Any] | None, conversation_id: str, expected: str | None
) -> None:
    """Raise `ConversationConflict` if a session has another record; None is none."""
    stored = (metadata or {}).get(FRAMEWORK)
    revision = None if stored is None else stored[_RECORD]["revision"]
    if revision != expected:
        raise ConversationConflict(conversation_id)


def records_in(metadata_texts: Iterable[str]) -> list[ConversationRecord]:
    """Return the records in the metadata of sessions; those without one have none."""
    stored = [json.loads(text).get(FRAMEWORK) for text in metadata_texts]
    return _RECORDS.validate_python([item[_RECORD] for item in stored if item])
