"""The logs of Gemini CLI: where they are, which session each has, and its project.

``~/.gemini/tmp/PROJECT/chats`` has the logs; those of subagents are in a folder that
is named by their parent. Until 2026 a log was one JSON document, which is migrated
to a log with the same name when its session is resumed: both are there then.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.formats.gemini.journal import is_header
from sessiondb.formats.kit.fields import as_object, as_text
from sessiondb.formats.kit.files import ancestor, entries, is_folder, read_file
from sessiondb.formats.kit.genai import Outputs
from sessiondb.formats.kit.heads import beginning, first_records
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.model import Problem

CHATS, ROOT, PROJECTS = "chats", ".project_root", "projects.json"
#: How the beginning of a session names the directories of its workspace.
_DIRECTORY = re.compile(r"^\s*- (/[^\n]+|[A-Za-z]:\\[^\n]+)", re.MULTILINE)
#: Lines of a log that are looked at for its header, and bytes of a document.
HEAD_LINES, HEAD_BYTES = 4, 64 << 10
_FIELD = re.compile(r'"(sessionId|projectHash|kind)"\s*:\s*("(?:[^"\\]|\\.)*")')
_NAME = re.compile(r"session-.+\.jsonl?")
_LOG = re.compile(r".+\.jsonl|session-.+\.json")
#: How a record names an output: the folder and the file, nothing that leads out of it.
_OUTPUT = re.compile(r"[/\\]tool-outputs[/\\]((?:session-[\w-]+[/\\])?[\w-]+\.txt)")


class Log(NamedTuple):
    """A log: its session, and the parent of a subagent."""

    path: Path
    session: str
    parent: str | None
    relation: str | None
    project_hash: str


def is_log(path: Path) -> bool:
    """Return whether a file may be a log, by its name and the folder that it is in."""
    # Other documents of a project are beside its sessions; other logs are not.
    return _LOG.fullmatch(path.name) is not None


def is_document(path: Path) -> bool:
    """Return whether a log is one JSON document."""
    return path.suffix == ".json"


def is_migrated(path: Path) -> bool:
    """Return whether the log that continues a document is beside it."""
    return is_document(path) and is_readable(look_at, path.with_suffix(".jsonl"))


# -- folders -------------------------------------------------------------------


def is_chats(folder: Path) -> bool:
    """Return whether a folder has the logs of a project.

    Nothing above it is theirs alone: a home directory has a folder ``tmp``, too.
    """
    if folder.name != CHATS:
        return False
    with suppress(OddRecordError):
        return any(_NAME.fullmatch(entry.name) for entry in entries(folder))
    return False


def logs_of(chats: Path) -> Iterator[Path | Problem]:
    """Return the logs of a project; those that were migrated are left out."""
    return logs_below(chats, lambda path: is_log(path) and not is_migrated(path))


# -- logs ----------------------------------------------------------------------


def look_at(path: Path) -> Log | None:
    """Return the log at *path*; None if the file is not one. Raises `SourceError`."""
    head = _head_of_document(path) if is_document(path) else _head(path)
    if not usable_id(head.get("sessionId")):
        return None

    # A subagent has its log in a folder below, with the name of its parent.
    session, above = head["sessionId"], path.parent
    is_below = above.parent == ancestor(path, CHATS)
    is_started = is_below and above.name != session
    parent, relation = (above.name, "subagent") if is_started else (None, None)
    return Log(path, session, parent, relation, head["projectHash"])


def _head(path: Path) -> dict[str, Any]:
    records = first_records(path, HEAD_LINES)
    return next(filter(is_header, records), {})


def _head_of_document(path: Path) -> dict[str, Any]:
    """Return the properties of a document before its messages, or else all of them."""
    start = beginning(path, HEAD_BYTES).decode("utf-8", "replace")
    start, messages, _ = start.partition('"messages"')
    found: dict[str, Any] = {}
    for key, value in _FIELD.findall(start):
        with suppress(ValueError):
            found[key] = json.loads(value)

    if path.parent.name == CHATS and messages:
        # The program reads such a document, too, and keys in any order.
        found = {"projectHash": "", **_all_of(path, found)}
    return found if is_header(found) else {}


def _all_of(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a document whose *head* does not name the session."""
    with suppress(OddRecordError):
        return head if "sessionId" in head else load_object(read_file(path))
    return {}


def source_of(path: Path) -> str:
    """Return the program that wrote a log: Qwen Code had the same ones until 2025.

    Its home may have any name. Later releases have ``projects`` in it, where Gemini CLI
    has a file of the projects.
    """
    whole = path.absolute()
    if ".qwen" in whole.parts:
        return "qwen"

    chats = ancestor(whole / "any", CHATS)
    temporary = (whole if chats is None else chats).parent.parent
    is_theirs = temporary.name == "tmp" and is_folder(temporary.with_name("projects"))
    return "qwen" if is_theirs else "gemini"


def outputs_of(log: Log) -> Outputs:
    """Return the complete outputs of tools, which are beside the logs of a project."""
    chats = ancestor(log.path, CHATS)
    return Outputs(None if chats is None else chats.parent / "tool-outputs", _OUTPUT)


# -- projects ------------------------------------------------------------------


def directory_of(log: Log) -> str:
    """Return the directory of a session's project; empty if it cannot be known."""
    chats = ancestor(log.path, CHATS)
    return "" if chats is None else directory_in(chats.parent, log.project_hash)


def directory_in(project: Path, project_hash: str = "") -> str:
    """Return the directory of the project that has a folder; empty if not known."""
    with suppress(OddRecordError):
        root = read_file(project / ROOT)
        if root is not None:
            return root.decode("utf-8", "replace").strip()

    known = _projects(project.parent.parent)
    names = {project_hash, project.name}
    found = (p for p, name in known if not names.isdisjoint((name, _hash(p))))
    return next(found, "")


def unreadable_projects(chats: Path) -> Iterator[Problem]:
    """Yield a problem for each file about a project that cannot be read."""
    for path in (chats.parent / ROOT, chats.parent.parent.parent / PROJECTS):
        try:
            read_file(path)
        except OddRecordError as error:
            yield Problem(
                str(path), f"the directory of a project is unknown: it {error}"
            )


def _projects(home: Path) -> list[tuple[str, str | None]]:
    """Return the directories that the program knows, and their names."""
    with suppress(OddRecordError):
        listed = load_object(read_file(home / PROJECTS))
        found = as_object(listed.get("projects"))
        return [(path, as_text(name)) for path, name in found.items()]
    return []


def _hash(directory: str) -> str:
    return hashlib.sha256(directory.encode("utf-8", "replace")).hexdigest()


def stated_directory(said: str, project_hash: str) -> str:
    """Return the directory that the first message names, if it is the project's."""
    named = _DIRECTORY.findall(said)
    return next((p for p in map(str.strip, named) if _hash(p) == project_hash), "")
