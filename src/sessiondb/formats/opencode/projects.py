"""OpenCode's record of a project, whichever way a store writes it.

A project here belongs to every agent that works in it, so OpenCode's own record
stays beside the columns, under the name of the source.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    Shape,
    as_list,
    as_object,
    clean_name,
    clean_text,
    fitting,
    nested_record,
    structure,
    take_fields,
    without_keys,
)
from sessiondb.formats.kit.json import OddRecordError, load_value
from sessiondb.model import SourceProject, bounds

#: Fields that the row of a project, or its place, already has.
_PLACE = frozenset({"id", "worktree", "vcs"})
#: Times that change whenever OpenCode is opened.
_LAST_USED = frozenset({"updated", "active"})
#: The record that a row of the table ``project`` represents.
_RECORD: Shape = {
    "id": "id",
    "worktree": "worktree",
    "vcs": "vcs",
    "name": "name",
    "icon": {
        "url": "icon_url",
        "override": "icon_url_override",
        "color": "icon_color",
    },
    "sandboxes": "sandboxes",
    "commands": "commands",
    "time": {
        "created": "time_created",
        "updated": "time_updated",
        "initialized": "time_initialized",
        "active": "time_active",
    },
}
#: Columns with JSON.
_JSON = ("sandboxes", "commands")


def _is_time(value: Any) -> bool:
    return type(value) is int and bounds.TIME_LEAST <= value <= bounds.TIME_MOST


#: Fields of a project that `SourceProject` has, too.
_COLUMNS: Fields = {
    "name": ("name", clean_name),
    "time": {
        "created": ("time_created", _is_time),
        "initialized": ("time_initialized", _is_time),
    },
}


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return those facts of a project that its sessions are read again for.

    The time of its last use is not one: it changes whenever OpenCode is opened.
    """
    times = as_object(record.get("time"))
    return {**record, "time": without_keys(_LAST_USED, times)}


def source_project(record: Mapping[str, Any], permission: Any) -> SourceProject | None:
    """Return a project as its sessions describe it; None if nothing is known of it.

    A value of another type than its column is kept in the record alone.
    """
    facts = without_keys(_PLACE, record)
    if not facts and permission is None:
        return None

    # The record itself is kept complete.
    copy = {**facts, "time": dict(as_object(facts.get("time")))}
    sandboxes = [path for path in as_list(facts.get("sandboxes")) if clean_text(path)]
    return SourceProject(
        **take_fields(copy, _COLUMNS),
        permission=fitting(permission, structure),
        sandboxes=tuple(sandboxes),
        record=facts,
    )


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that a *row* of the table ``project`` represents."""
    record = nested_record(row, _RECORD)
    record.setdefault("time", {})
    for name in _JSON:
        # A text that is not JSON stays as it is.
        with contextlib.suppress(OddRecordError):
            text = str(record.get(name, ""))
            record[name] = load_value(text.encode("utf-8", "surrogateescape"))

    return record
