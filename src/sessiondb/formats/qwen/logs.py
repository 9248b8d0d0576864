"""The logs of Qwen Code: the session of each, and its origin.

``projects/DIRECTORY/chats/SESSION.jsonl`` is the log of a session, below ``archive``
that of an archived one. A subagent has its log in ``subagents/SESSION``, with its
description in a file beside; its records have the id of the session that started it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import as_object, as_text, take_fields, text, value_at
from sessiondb.formats.kit.files import ancestor_named, is_folder, read_file
from sessiondb.formats.kit.genai import Outputs
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.formats.kit.remembered import remembered
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.qwen.fields import HEAD
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

#: Lines of a log that are looked at for its session.
HEAD_LINES = 8
_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
#: Characters that the program replaces in the names of its files.
_OTHER = late_pattern(r"[^a-zA-Z0-9_-]")
#: An output as a record names it: the folder of the project and the file, nothing else.
_OUTPUT = late_pattern(r"[/\\]tmp[/\\]([\w-]+[/\\]\w[\w.-]*\.(?:output|txt))\b")


class QwenHead(NamedTuple):
    """The facts of a log in its first records."""

    path: Path
    #: The session that its records name: of a subagent the one that started it.
    session: str
    #: The name of the subagent, which is unique within that session; None for none.
    subagent: str | None
    #: The session that this one was forked from, or that started it.
    parent: str | None
    #: ``fork`` or ``subagent``.
    relation: str | None
    #: When it was begun, in Unix ms.
    time_created: int | None
    #: As the first record states them.
    directory: str
    version: str | None
    agent: str | None


class QwenLog(NamedTuple):
    """A log, as its head and the files beside it describe it."""

    path: Path
    #: The id of its session.
    session: str
    #: The session that this one was forked from, or that started it.
    parent: str | None
    #: ``fork`` or ``subagent``.
    relation: str | None
    head: QwenHead
    #: The description of a subagent, from the file beside its log.
    meta: dict[str, Any]
    #: The problem of that file.
    meta_problem: Problem | None = None


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a log."""
    return path.suffix == ".jsonl"


def meta_of(path: Path) -> Path:
    """Return the file beside the log of a subagent."""
    return path.with_suffix(".meta.json")


def agent_log_of(log: QwenLog, agent: str) -> Path:
    """Return the path of the log of a subagent that a session started."""
    return agents_of(log) / f"agent-{_OTHER.sub('_', agent)}.jsonl"


def agents_of(log: QwenLog) -> Path:
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

    # One that cannot be read is of Qwen Code if it is in the place for it.
    is_in_place = folder.parent.parent.name == "projects"
    for item in logs_below(folder, is_log):
        if isinstance(item, Problem):
            if is_in_place:
                return True
        elif is_readable(look_at, item, otherwise=is_in_place):
            return True
    return False


def outputs_of(log: QwenLog) -> Outputs:
    """Return the complete outputs of tools; those of all projects are in ``tmp``."""
    projects = ancestor_named(log.path, "projects")
    return Outputs(None if projects is None else projects.parent / "tmp", _OUTPUT)


# -- logs ----------------------------------------------------------------------


def look_at(path: Path) -> QwenLog | None:
    """Return the log at *path*; None if the file is not one. Raises `SourceError`."""
    head = head_of(path)
    if head is None:
        return None
    if head.subagent is not None:
        return _agent_log(head, head.subagent)
    return QwenLog(path, head.session, head.parent, head.relation, head, {})


@remembered("qwen", QwenHead)
def head_of(path: Path) -> QwenHead | None:
    """Return what the first records of a log say; None for another file.

    Raises `SourceError`.
    """
    records = [
        record for record in first_records(path, HEAD_LINES) if is_record(record)
    ]
    if not records or not usable_id(records[0].get("sessionId")):
        return None

    first = records[0]
    columns = take_fields(dict(first), HEAD)
    parent, relation = _origin_of(records)
    return QwenHead(
        path,
        first["sessionId"],
        _subagent_of(records),
        parent,
        relation,
        time_of_text(first.get("timestamp")),
        columns.get("directory", ""),
        columns.get("version"),
        columns.get("agent"),
    )


def _subagent_of(records: list[dict[str, Any]]) -> str | None:
    """Return the name of the subagent whose records these are; None for none.

    Records of a session name the agents that they started, too.
    """
    if records[0].get("isSidechain") is True:
        for record in records:
            if text(record.get("agentId")):
                return str(record["agentId"])
    return None


def is_record(record: dict[str, Any]) -> bool:
    """Return whether Qwen Code wrote a record; those of Claude Code have no parts."""
    return (
        "parentUuid" in record
        and text(record.get("uuid"))
        and as_text(record.get("type")) in _TYPES
        and ("systemPayload" in record or "parts" in as_object(record.get("message")))
    )


def _agent_log(head: QwenHead, agent: str) -> QwenLog | None:
    """Return the log of a subagent, whose name is unique within its session alone."""
    meta, problem = _read_meta(meta_of(head.path))
    parent_agent = as_text(meta.get("parentAgentId"))
    name = f"{head.session}/{agent}"
    parent = f"{head.session}/{parent_agent}" if parent_agent else head.session
    if not usable_id(name) or not usable_id(parent):
        return None

    return QwenLog(head.path, name, parent, "subagent", head, meta, problem)


def _read_meta(path: Path) -> tuple[dict[str, Any], Problem | None]:
    try:
        raw = read_file(path)
        return ({} if raw is None else load_object(raw)), None
    except OddRecordError as error:
        return {}, Problem(str(path), f"the description of a subagent {error}")


def _origin_of(records: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Return the parent of a session and the relation to it.

    A session that another one started names it in a record; a fork in each of those
    that it copied. A session is not its own parent.
    """
    session = records[0]["sessionId"]
    for record in records:
        original = value_at(record, "forkedFrom", "sessionId")
        if usable_id(original) and original != session:
            return original, "fork"
        if record.get("subtype") == "parent_session":
            starter = value_at(record, "systemPayload", "parentSessionId")
            if usable_id(starter) and starter != session:
                return starter, "subagent"

    return None, None
