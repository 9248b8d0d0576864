"""OpenCode's record of a project, whichever way a store writes it.

A project here belongs to every agent that works in it, so OpenCode's own record
stays beside the columns, under the name of the source: written again it is the
record that was read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import clean_text
from sessiondb.formats.kit.json import OddRecordError, load
from sessiondb.model import Project, SourceProject, bounds

#: Fields that the row of a project, or its place, already has.
_PLACE = frozenset({"id", "worktree", "vcs"})
_TIMES = ("created", "updated", "initialized", "active")
_ICON = {"url": "icon_url", "override": "icon_url_override", "color": "icon_color"}
_JSON = ("sandboxes", "commands")


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a project's *record* its sessions are read again for.

    Not when it was used last: that changes whenever OpenCode is opened.
    """
    times = record.get("time")
    kept = dict(times) if type(times) is dict else {}
    for name in ("updated", "active"):
        kept.pop(name, None)
    return {**record, "time": kept}


def source_project(record: Mapping[str, Any], permission: Any) -> SourceProject | None:
    """Return a project as its sessions describe it; None if nothing is known of it.

    A value of another type than its column is kept in the record alone.
    """
    rest = {key: value for key, value in record.items() if key not in _PLACE}
    if not rest and permission is None:
        return None
    times, name, boxes = rest.get("time"), rest.get("name"), rest.get("sandboxes")
    when = {key: value for key, value in _mapping(times).items() if _is_time(value)}
    return SourceProject(
        name=name if clean_text(name) and name else None,
        permission=permission if type(permission) in (list, dict) else None,
        sandboxes=tuple(box for box in boxes if clean_text(box))
        if type(boxes) is list
        else (),
        time_created=when.get("created"),
        time_initialized=when.get("initialized"),
        record=rest,
    )


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that a *row* of the table ``project`` represents."""
    record = {
        name: row[name] for name in (*_PLACE, "name") if row.get(name) is not None
    }
    icon = {key: row[name] for key, name in _ICON.items() if row.get(name) is not None}
    if icon:
        record["icon"] = icon
    for name in _JSON:
        if row.get(name) is not None:
            record[name] = row[name]
            with contextlib.suppress(OddRecordError):
                record[name] = load(str(row[name]).encode("utf-8", "surrogateescape"))
    times = {name: row.get(f"time_{name}") for name in _TIMES}
    record["time"] = {name: time for name, time in times.items() if time is not None}
    return record


def project_record(project: Project, source: str, name: str) -> dict[str, Any]:
    """Return a project as the file ``project/<name>.json`` of OpenCode 1.x."""
    record: dict[str, Any] = {"id": name, "worktree": project.worktree}
    if project.vcs:
        record["vcs"] = project.vcs
    own = project.metadata.get(source)
    if isinstance(own, Mapping):
        return {**record, **{key: own[key] for key in own if key not in _PLACE}}
    record["time"] = {"created": project.time_created}
    if project.time_initialized is not None:
        record["time"]["initialized"] = project.time_initialized
    return record


def _is_time(value: Any) -> bool:
    return type(value) is int and bounds.TIME_LEAST <= value <= bounds.TIME_MOST


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
