"""Where the records of OpenCode 1.x keep what has a column here; see `kit.fields`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    clean_name,
    clean_text,
    cost,
    count,
    integer,
    structure,
    text,
    time,
)

#: Keys of a diff that say how much changed, not what.
_COUNTS = frozenset({"file", "path", "additions", "deletions", "status"})


def metadata(value: Any) -> bool:
    """An object that leaves the key ``share`` to the share's secret, and is not empty."""
    return type(value) is dict and bool(value) and "share" not in value


def counted_diffs(value: Any) -> bool:
    """A list of diffs that has paths and counts only."""
    return type(value) is list and all(
        type(item) is dict and _COUNTS.issuperset(item) for item in value
    )


SESSION: Fields = {
    "title": ("title", clean_text),
    "directory": ("directory", clean_text),
    "version": ("version", clean_text),
    "agent": ("agent", clean_text),
    "model": {
        "providerID": ("provider_id", clean_text),
        "id": ("model_id", clean_text),
    },
    "share": {"url": ("share_url", clean_text)},
    "summary": {
        "additions": ("summary_additions", integer),
        "deletions": ("summary_deletions", integer),
        "files": ("summary_files", integer),
        "diffs": ("summary_diffs", counted_diffs),
    },
    "revert": ("revert", structure),
    "permission": ("permission", structure),
    "metadata": ("metadata", metadata),
    "time": {
        "created": ("time_created", time),
        "updated": ("time_updated", time),
        "compacting": ("time_compacting", time),
        "archived": ("time_archived", time),
    },
}
EVENT: Fields = {"time": {"created": ("time_created", time)}}
USER: Fields = {
    **EVENT,
    "agent": ("agent", clean_text),
    "model": {
        "providerID": ("provider_id", clean_text),
        "modelID": ("model_id", clean_text),
    },
}
ASSISTANT: Fields = {
    "time": {"created": ("time_created", time), "completed": ("time_completed", time)},
    "agent": ("agent", clean_text),
    "providerID": ("provider_id", clean_text),
    "modelID": ("model_id", clean_text),
    "cost": ("cost", cost),
    "error": ("error", structure),
}
TOKENS: Fields = {
    "tokens": {
        "input": ("input", count),
        "output": ("output", count),
        "reasoning": ("reasoning", count),
        "cache": {"read": ("cache_read", count), "write": ("cache_write", count)},
    }
}
TEXT: Fields = {
    "text": ("text", text),
    "time": {"start": ("time_started", time), "end": ("time_ended", time)},
}
TOOL: Fields = {
    "tool": ("tool", clean_name),
    "callID": ("call_id", clean_text),
    "state": {
        "title": ("title", clean_text),
        "time": {"start": ("time_started", time), "end": ("time_ended", time)},
    },
}
MESSAGE: Mapping[str, Fields] = {"user": USER, "assistant": ASSISTANT}
PART: Mapping[str, Fields] = {"text": TEXT, "reasoning": TEXT, "tool": TOOL}
#: Where the state of a call keeps its result, by its status.
RESULT: Mapping[str | None, str] = {"completed": "output", "error": "error"}
