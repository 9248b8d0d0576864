"""The fields of the records of OpenCode 1.x that have a column; see `kit.fields`.

Read off the stores of versions 0.5.29 to 1.18.33. The same tables serve both
directions: `drafts` takes by them, `records` puts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    as_object,
    clean_name,
    clean_text,
    cost,
    integer,
    structure,
    text,
    time,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.usage import usage_table

#: Keys of a diff that has the extent of a change only.
_COUNTS = frozenset({"file", "path", "additions", "deletions", "status"})


def metadata(value: Any) -> bool:
    """An object that is not empty, and without ``share``: the key of a secret."""
    return bool(as_object(value)) and "share" not in value


def counted_diffs(value: Any) -> bool:
    """A list of diffs that has paths and counts only."""
    return type(value) is list and all(
        type(diff) is dict and _COUNTS.issuperset(diff) for diff in value
    )


MODEL: Fields = {
    "model": {"providerID": ("provider_id", clean_text), "id": ("model_id", clean_text)}
}
TIMES: Fields = {
    "created": ("time_created", time),
    "updated": ("time_updated", time),
    "archived": ("time_archived", time),
}
#: The fields of a session that both generations have.
COMMON: Fields = {
    "parentID": ("parent_source_id", usable_id),
    "agent": ("agent", clean_text),
    **MODEL,
    "revert": ("revert", structure),
    "metadata": ("metadata", metadata),
}
SESSION: Fields = {
    **COMMON,
    "title": ("title", clean_text),
    "directory": ("directory", clean_text),
    "version": ("version", clean_text),
    "share": {"url": ("share_url", clean_text)},
    "summary": {
        "additions": ("summary_additions", integer),
        "deletions": ("summary_deletions", integer),
        "files": ("summary_files", integer),
        "diffs": ("summary_diffs", counted_diffs),
    },
    "permission": ("permission", structure),
    "time": {**TIMES, "compacting": ("time_compacting", time)},
}

#: A message of any other role: only its time is known.
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
    "parentID": ("turn_id", usable_id),
    "agent": ("agent", clean_text),
    "providerID": ("provider_id", clean_text),
    "modelID": ("model_id", clean_text),
    "cost": ("cost", cost),
    "error": ("error", structure),
}
MESSAGE: Mapping[str, Fields] = {"user": USER, "assistant": ASSISTANT}

#: The columns of `Tokens`.
TOKENS: Fields = {
    "tokens": {
        **usage_table(input="input", output="output", reasoning="reasoning"),
        "cache": usage_table(cache_read="read", cache_write="write"),
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
PART: Mapping[str, Fields] = {"text": TEXT, "reasoning": TEXT, "tool": TOOL}
#: The key of the result in the state of a call, by its status.
RESULT: Mapping[str | None, str] = {"completed": "output", "error": "error"}

#: The contents of a file in a diff: texts there, bytes in a `FileDiff`.
SIDES = frozenset({"before", "after"})
#: A file in a list of ``session_diff``, as `FileDiff` has it.
DIFF: Fields = {
    "patch": ("patch", clean_text),
    "additions": ("additions", integer),
    "deletions": ("deletions", integer),
    "before": ("before", text),
    "after": ("after", text),
}
