"""The record of a conversation, as it is kept in the metadata of its session."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord

from sessiondb.adapters.pydantic_ai.entries import without_nulls
from sessiondb.adapters.pydantic_ai.statements import UPDATED
from sessiondb.adapters.pydantic_ai.transcripts import microseconds


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The value in the metadata of a session under the name of the framework."""

    record: ConversationRecord
    #: The time of the last save in Unix microseconds, by which lists are ordered.
    updated_us: int


@dataclass(frozen=True, slots=True)
class ConversationMetadata:
    """The metadata of a session, of which a person may have removed the record."""

    pydantic_ai: StoredRecord | None = None


# As in the adapter of messages: bytes in the metadata of a call are base64.
_BASE64 = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_RECORDS = TypeAdapter(list[ConversationRecord], config=_BASE64)
_METADATA = TypeAdapter(list[ConversationMetadata], config=_BASE64)


class RecordFold:
    """The metadata of a session with a new record, if it has the one that was read.

    Called in the transaction, so that no other writer comes in between.
    """

    def __init__(
        self, record: ConversationRecord, expected_revision: str | None
    ) -> None:
        (dumped,) = _RECORDS.dump_python([record], mode="json")
        slim = without_nulls(record, dumped)
        # Every count is 0 by default.
        slim["usage"] = {name: n for name, n in dumped["usage"].items() if n}
        self._conversation_id = record.conversation_id
        self._expected = expected_revision
        #: Whether the conversation is a new one.
        self.makes_conversation = expected_revision is None
        self._stored = {"record": slim, UPDATED: microseconds(record.updated_at)}

    def __call__(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the new metadata; raises `ConversationConflict`."""
        check_revision(metadata, self._conversation_id, self._expected)
        return {**(metadata or {}), "pydantic_ai": self._stored}

    def of_fork(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the metadata of a new fork, which has that of the original so far."""
        return {**(metadata or {}), "pydantic_ai": self._stored}


def check_revision(
    metadata: dict[str, Any] | None, conversation_id: str, expected: str | None
) -> None:
    """Raise `ConversationConflict` if a session has another record; None is none."""
    stored = (metadata or {}).get("pydantic_ai")
    revision = None if stored is None else stored["record"]["revision"]
    if revision != expected:
        raise ConversationConflict(conversation_id)


def records_in(metadata_texts: Iterable[str]) -> list[ConversationRecord]:
    """Return the records in the metadata of sessions; those without one have none."""
    listed = f"[{','.join(metadata_texts)}]"
    try:
        stored = _METADATA.validate_json(listed)
    except ValidationError:
        # The parser of pydantic refuses a lone surrogate, that of Python takes it.
        stored = _METADATA.validate_python(json.loads(listed))
    return [it.pydantic_ai.record for it in stored if it.pydantic_ai is not None]
