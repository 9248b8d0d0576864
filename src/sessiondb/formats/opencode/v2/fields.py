"""The fields of the records of OpenCode 2 that have a column; see `kit.fields`.

Read off the stores of versions 2.0.15 and upgrades to it. A message is one record: its
``content`` becomes parts, and of types that are not speech the rest stays, under
``type``, in the data of an event.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import (
    Fields,
    clean_name,
    clean_text,
    cost,
    structure,
    text,
    time,
)
from sessiondb.formats.opencode.v1.fields import COMMON, MODEL, TIMES

SESSION: Fields = {
    **COMMON,
    "title": ("title", clean_name),
    "location": {"directory": ("directory", clean_text)},
    "permissions": ("permission", structure),
    "time": TIMES,
}

_CREATED: Fields = {"time": {"created": ("time_created", time)}}
_SPENT: Fields = {
    **_CREATED,
    **MODEL,
    "cost": ("cost", cost),
    "error": ("error", structure),
}
#: Columns of a message by the type of its record; any other type has only its time.
MESSAGE: Mapping[str, Fields] = {
    "user": _CREATED,
    "system": _CREATED,
    "assistant": {
        **_SPENT,
        "time": {
            "created": ("time_created", time),
            "completed": ("time_completed", time),
        },
        "agent": ("agent", clean_text),
    },
    "compaction": _SPENT,
    "agent-switched": {**_CREATED, "agent": ("agent", clean_text)},
    "model-switched": {**_CREATED, **MODEL},
}
OTHER = _CREATED

#: Types of records that are speech; any other one is an event.
SPEECH = frozenset({"user", "assistant", "system"})
#: The kind of an event by the type of its record, if that is not its name.
KIND = {
    "synthetic": "custom_message",
    "skill": "custom_message",
    "agent-switched": "mode_change",
    "model-switched": "model_change",
}
#: The types of events that OpenCode is known to write.
EVENTS = frozenset({*KIND, "shell", "compaction", "idle", "location-switched"})

#: Columns of a part by the type of a piece of content.
PART: Mapping[str, Fields] = {
    "text": {"text": ("text", text)},
    "reasoning": {
        "text": ("text", text),
        "time": {"created": ("time_started", time), "completed": ("time_ended", time)},
    },
    "tool": {
        "id": ("call_id", clean_text),
        "name": ("tool", clean_name),
        "time": {
            "created": ("time_created", time),
            "ran": ("time_started", time),
            "completed": ("time_ended", time),
        },
    },
}
#: The status of a call, and its status here.
STATUS = {
    "streaming": "pending",
    "running": "running",
    "completed": "completed",
    "error": "error",
}
#: The outcome of a call by the type of its error; any other error is read as a text.
OUTCOME = {
    "permission.rejected": "denied",
    "aborted": "interrupted",
    "tool.interrupted": "interrupted",
}
#: A command of the user: a call that no model made.
SHELL: Fields = {
    "shellID": ("call_id", clean_text),
    "output": {"output": ("text", text)},
}

#: Status and outcome of such a call by its own status; any other one is completed.
SHELL_ENDS: Mapping[str, Mapping[str, str]] = {
    "running": {"status": "running"},
    "timeout": {"status": "error", "outcome": "interrupted"},
    "killed": {"status": "error", "outcome": "interrupted"},
}
#: The kind of a compaction without a summary, by its status; any other one is custom.
NO_SUMMARY = {"failed": "compaction_failed"}

#: Kinds of the parts that a prompt keeps in lists, and the keys of these lists.
LISTS = {"file": "files", "agent": "agents"}

#: How a session came to rest, by the outcome of an ``idle`` record.
ENDS = {"failed": "failed", "interrupted": "cancelled"}
