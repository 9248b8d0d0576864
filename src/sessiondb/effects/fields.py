"""Arguments of the verbs that become columns: append's keywords, and file diffs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sessiondb import codec
from sessiondb.effects import encode
from sessiondb.effects.encode import Blob
from sessiondb.errors import InvalidInputError
from sessiondb.model import FileDiff, MessageDraft

_FIELDS = {"provider": "provider_id", "model": "model_id", "time": "time_created"}
_ALLOWED = {"turn_id", "agent", "cost", "tokens", "finish", "error", "response_id", *_FIELDS}


def with_fields(draft: MessageDraft, fields: Mapping[str, Any]) -> MessageDraft:
    """Return *draft* with the keyword fields of `Unit.append`; raises `InvalidInputError`."""
    if not isinstance(draft, MessageDraft):
        raise InvalidInputError(f"a message is made by user(), assistant(), …, not {draft!r}")
    unknown = fields.keys() - _ALLOWED
    if unknown:
        raise InvalidInputError(f"append has no field {', '.join(sorted(unknown))}")
    if not fields:
        return draft
    named = {_FIELDS.get(name, name): value for name, value in fields.items()}
    return replace(draft, **named)


def diff_row(diff: FileDiff, blobs: list[Blob]) -> tuple[Any, ...]:
    """Return the file_diff columns after session_id; contents become blobs whatever their size."""
    if not isinstance(diff, FileDiff) or not diff.path:
        raise InvalidInputError(f"a diff is a FileDiff with a path, not {diff!r}")
    hashes: list[str | None] = []
    for content in (diff.before, diff.after):
        if content is None:
            hashes.append(None)
            continue
        if not isinstance(content, bytes):
            raise InvalidInputError(f"the content of a file is bytes, not {content!r}")
        name = codec.digest(content)
        blobs.append(Blob(name, len(content), codec.BINARY, content))
        hashes.append(name)
    path, patch = encode.string(diff.path, "path"), encode.string(diff.patch, "patch")
    counts = encode.whole(diff.additions, "additions"), encode.whole(diff.deletions, "deletions")
    return (encode.whole(diff.seq, "seq", least=0), path, *hashes, patch, *counts)
