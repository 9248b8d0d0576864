"""Where the records of pi, oh-my-pi and xcsh keep what has a column; see `kit.fields`.

Read off pi 0.87 (``session-manager.ts``), oh-my-pi 18.2 (``session-entries.ts``) and
xcsh. The same tables serve both directions: `drafts` takes by them, `records` puts.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import (
    Fields,
    as_text,
    clean_name,
    clean_text,
    cost,
    is_object,
    text,
    value_at,
)
from sessiondb.model.aliases import finishes

#: Versions of the header; a file without one is of version 1.
NEWEST = 3

#: The title is that of oh-my-pi; pi has a record ``session_info`` instead.
HEADER: Fields = {
    "cwd": ("directory", clean_text),
    "title": ("title", clean_text),
}

#: The ids of the events of a header's settings, in version 1 alone.
MODEL, LEVEL = SETTINGS = ("~model", "~level")

#: The cost of a record. Its tokens are taken by `usage`.
PAID: Fields = {"usage": {"cost": {"total": ("cost", cost)}}}
#: The columns of an answer.
ANSWER: Fields = {
    "provider": ("provider_id", clean_text),
    "model": ("model_id", clean_text),
    "responseId": ("response_id", clean_name),
    **PAID,
}
#: pi names provider and model, oh-my-pi both in one text under ``model``.
MODEL_CHANGE: Fields = {
    "provider": ("provider_id", clean_text),
    "modelId": ("model_id", clean_text),
}
#: The model of a cost beside the answers.
USAGE: Fields = {
    "provider": ("provider_id", clean_text),
    "model": ("model_id", clean_text),
}

CALL: Fields = {
    "id": ("call_id", clean_text),
    "name": ("tool", clean_name),
    "arguments": ("input", lambda _: True),
}
RESULT: Fields = {"toolCallId": ("call_id", clean_text)}
#: A command that the user ran: its tool, and the argument of that.
EXECUTIONS: Mapping[str, tuple[str, Fields]] = {
    "bashExecution": ("bash", {"command": ("command", text)}),
    "pythonExecution": ("python", {"code": ("code", text)}),
}
#: A file that a prompt mentions: its name is in the data of a part.
FILE: Fields = {"path": ("filename", clean_name), "content": ("text", text)}
OUTPUT: Fields = {"output": ("text", text)}

#: Keys of ``data`` that parts here have; a block with one of them is kept apart.
OWN = frozenset({"plain", "absent", "added", "section", "block"})
OWN_OF_IMAGE = OWN | {"mime", "content", "url"}
#: ``stopReason`` of an answer to ``finish`` here.
FINISH: Mapping[str, str] = finishes("stop", "length", "toolUse", "error", "aborted")
FAILED = ("error", "cancelled")
#: Keys of ``data`` that `Store.context` reads and that no record has.
MARKS = ("unsent", "chosen")
#: Messages of extensions that oh-my-pi sends to no model, by their ``customType``.
HIDDEN = ("prewalk-plan", "vibe-mode-context")
#: Records that are known here under another name; the others keep theirs.
KINDS: Mapping[str, str] = {
    "session_info": "title_change",
    "ttsr_injection": "rules",
    "reset_boundary": "reset",
    "model_usage": "usage",
}
#: Keys of a record that `Store.context` reads under another name in ``data``.
RENAMED: Mapping[str, tuple[str, str]] = {
    "thinking_level_change": ("thinkingLevel", "level"),
    "ttsr_injection": ("injectedRules", "rules"),
    "context_edit": ("targetId", "target_id"),
}


def is_replaced_remotely(record: Mapping[str, object]) -> bool:
    """Return whether the provider holds what a compaction would have kept.

    Only the summary is sent then, with what the provider gave for the rest.
    """
    compaction = value_at(record, "preserveData", "openaiRemoteCompaction")
    items = value_at(compaction, "replacementHistory")
    if not as_text(value_at(compaction, "provider")) or type(items) is not list:
        return False
    return all(is_object(item) for item in items)
