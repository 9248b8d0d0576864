"""The logs of Qwen Code: which session each has, and where it comes from.

``projects/DIRECTORY/chats/SESSION.jsonl`` is the log of a session, below ``archive``
that of an archived one. A subagent has its log in ``subagents/SESSION``, with its
description in a file beside; its records have the id of the session that started it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import as_object, as_text, fitting, text, within
from sessiondb.formats.kit.files import ancestor, is_folder, read_file
from sessiondb.formats.kit.genai import Outputs
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.model import Problem

#: Lines of a log that are looked at for its session.
HEAD_LINES = 8
_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
#: Characters that the program replaces in the names of its files.
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
#: How a record names an output: the folder of the project and the file, nothing else.
_OUTPUT = re.compile(r"[/\\]tmp[/\\]([\w-]+[/\\]\w[\w.-]*\.(?:output|txt))\b")


class Log(NamedTuple):
    """A log, the session it has, and the one that this was forked or started from.

    ``head`` is its first record, ``meta`` the description of a subagent beside its log,
    ``odd`` the problem of that file.
    """

    path: Path
    session: str
    parent: str | None
    relation: str | None
    head: dict[str, Any]
    meta: dict[str, Any]
    odd: Problem | None = None


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a log."""
    return path.suffix == ".jsonl"


def meta_of(path: Path) -> Path:
    """Return the file beside the log of a subagent."""
    return path.with_suffix(".meta.json")


def agent_log_of(log: Log, agent: str) -> Path:
    """Return where a subagent that a session started has its log."""
    return agents_of(log) / f"agent-{_OTHER.sub('_', agent)}.jsonl"


def agents_of(log: Log) -> Path:
    """Return the folder with the logs of the subagents that a session started."""
    chats = log.path.parent.parent if is_archived(log.path) else log.path.parent
    return chats.parent / "subagents" / _OTHER.sub("_", log.session)


def is_archived(path: Path) -> bool:
    """Return whether the program moved a log to its archive."""
    return path.parent.name == "archive" and path.parent.parent.name == "chats"


# -- folders -------------------------------------------------------------------


def is_folder_of_logs(folder: Path) -> bool:
    """Return whether a folder has the logs of a project, or those of its subagents.

    Gemini CLI and Claude Code have folders of these names, too; their records differ.
    """
    if folder.name not in ("chats", "subagents") or not is_folder(folder):
        return False

    # One that cannot be read is theirs if it is in their place.
    is_theirs = folder.parent.parent.name == "projects"
    return any(
        is_theirs
        if isinstance(item, Problem)
        else is_readable(look_at, item, otherwise=is_theirs)
        for item in logs_below(folder, is_log)
    )


def outputs_of(log: Log) -> Outputs:
    """Return the complete outputs of tools; those of all projects are in ``tmp``."""
    projects = ancestor(log.path, "projects")
    return Outputs(None if projects is None else projects.parent / "tmp", _OUTPUT)


# -- logs ----------------------------------------------------------------------


def look_at(path: Path) -> Log | None:
    """Return the log at *path*; None if the file is not one. Raises `SourceError`."""
    records = [*filter(is_record, first_records(path, HEAD_LINES))]
    head = next(iter(records), {})
    if not usable_id(head.get("sessionId")):
        return None

    # Records of a session name the agents that they started, too.
    agents = filter(text, (record.get("agentId") for record in records))
    agent = next(agents, None)
    if agent is not None and head.get("isSidechain") is True:
        return _agent_log(path, head, agent)

    return Log(path, head["sessionId"], *_parent(records), head, {})


def is_record(record: dict[str, Any]) -> bool:
    """Return whether Qwen Code wrote a record; those of Claude Code have no parts."""
    signs = (
        "parentUuid" in record,
        text(record.get("uuid")),
        as_text(record.get("type")) in _TYPES,
        "systemPayload" in record or "parts" in as_object(record.get("message")),
    )
    return all(signs)


def _agent_log(path: Path, head: dict[str, Any], agent: str) -> Log | None:
    """Return the log of a subagent, whose name is unique within its session alone."""
    meta, odd = _meta(meta_of(path))
    session = head["sessionId"]
    above = as_text(meta.get("parentAgentId"))
    name = f"{session}/{agent}"
    parent = f"{session}/{above}" if above else session
    if not all(map(usable_id, (name, parent))):
        return None

    return Log(path, name, parent, "subagent", head, meta, odd)


def _meta(path: Path) -> tuple[dict[str, Any], Problem | None]:
    try:
        raw = read_file(path)
        return ({} if raw is None else load_object(raw)), None
    except OddRecordError as error:
        return {}, Problem(str(path), f"the description of a subagent {error}")


def _parent(records: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Return the parent and the relation to it.

    A session that another one started names it in a record; a fork in each of those
    that it copied. A session is not its own parent.
    """
    own = records[0]["sessionId"]
    for record in records:
        for relation, (subtypes, path) in _ORIGINS.items():
            parent = fitting(within(record, *path), usable_id, own)
            if parent != own and subtypes(record.get("subtype")):
                return parent, relation

    return None, None


#: The relations to a parent: the subtype of a record that names it, and where it does.
_ORIGINS: Mapping[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "fork": (lambda _: True, ("forkedFrom", "sessionId")),
    "subagent": (
        lambda subtype: subtype == "parent_session",
        ("systemPayload", "parentSessionId"),
    ),
}
