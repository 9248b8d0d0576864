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

from sessiondb.errors import SourceError
from sessiondb.formats.gemini.journal import is_header
from sessiondb.formats.kit.fields import as_object, as_text
from sessiondb.formats.kit.files import (
    ancestor_named,
    is_folder,
    read_file,
    sorted_entries,
)
from sessiondb.formats.kit.genai import Outputs
from sessiondb.formats.kit.heads import beginning_of, first_records
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.formats.kit.remembered import remembered
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

CHATS, ROOT, PROJECTS = "chats", ".project_root", "projects.json"
#: The directories of the workspace at the beginning of a session.
_DIRECTORY = late_pattern(r"^\s*- (/[^\n]+|[A-Za-z]:\\[^\n]+)", re.MULTILINE)
#: Lines of a log that are looked at for its header, and bytes of a document.
HEAD_LINES, HEAD_BYTES = 4, 64 << 10
_FIELD = late_pattern(r'"(sessionId|projectHash|kind)"\s*:\s*("(?:[^"\\]|\\.)*")')
_NAME = late_pattern(r"session-.+\.jsonl?")
_LOG = late_pattern(r".+\.jsonl|session-.+\.json")
#: An output as a record names it: the folder and the file, nothing outside of it.
_OUTPUT = late_pattern(r"[/\\]tool-outputs[/\\]((?:session-[\w-]+[/\\])?[\w-]+\.txt)")


class GeminiLog(NamedTuple):
    """A log, with the properties in its head."""

    path: Path
    #: The id of its session.
    session: str
    #: The session that started a subagent.
    parent: str | None
    #: ``subagent``, or None.
    relation: str | None
    #: A hash of the directory of its project; empty in some documents.
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

    Other programs use the names of the folders above it, as ``tmp`` in a home, too.
    """
    if folder.name != CHATS:
        return False
    with suppress(OddRecordError):
        return any(_NAME.fullmatch(entry.name) for entry in sorted_entries(folder))
    return False


def logs_of_project(chats: Path) -> Iterator[Path | Problem]:
    """Return the logs of a project; those that were migrated are left out."""
    return logs_below(chats, lambda path: is_log(path) and not is_migrated(path))


# -- logs ----------------------------------------------------------------------


@remembered("gemini", GeminiLog)
def look_at(path: Path) -> GeminiLog | None:
    """Return the log at *path*; None if the file is not one. Raises `SourceError`."""
    head = _head_of_document(path) if is_document(path) else _head_of_log(path)
    if not usable_id(head.get("sessionId")):
        return None

    session: str = head["sessionId"]
    log = GeminiLog(path, session, None, None, head["projectHash"])
    # A subagent has its log in a folder below, with the name of its parent.
    folder = path.parent
    if folder.parent == ancestor_named(path, CHATS) and folder.name != session:
        return log._replace(parent=folder.name, relation="subagent")
    return log


def _head_of_log(path: Path) -> dict[str, Any]:
    for record in first_records(path, HEAD_LINES):
        if is_header(record):
            return record
    return {}


def _head_of_document(path: Path) -> dict[str, Any]:
    """Return the properties of a document before its messages, or else all of them."""
    start = beginning_of(path, HEAD_BYTES).decode("utf-8", "replace")
    start, messages, _ = start.partition('"messages"')
    head: dict[str, Any] = {}
    for key, value in _FIELD.findall(start):
        with suppress(ValueError):
            head[key] = json.loads(value)

    if path.parent.name == CHATS and messages:
        # The program reads such a document, too, and keys in any order.
        if "sessionId" not in head:
            head = _load_document(path)
        head = {"projectHash": "", **head}
    return head if is_header(head) else {}


def _load_document(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one if it has none.

    Raises `SourceError`.
    """
    try:
        content = read_file(path)
    except OddRecordError as error:
        raise SourceError(f"{path} {error}") from error
    with suppress(OddRecordError):
        return load_object(content)
    return {}


def _load_file(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one if it cannot be read."""
    with suppress(SourceError):
        return _load_document(path)
    return {}


def source_of(path: Path) -> str:
    """Return the program that wrote a log: Qwen Code had the same ones until 2025.

    Its home may have any name. Later releases have ``projects`` in it, where Gemini CLI
    has a file of the projects.
    """
    absolute = path.absolute()
    if ".qwen" in absolute.parts:
        return "qwen"

    chats = ancestor_named(absolute / "any", CHATS)
    temporary = (absolute if chats is None else chats).parent.parent
    if temporary.name == "tmp" and is_folder(temporary.with_name("projects")):
        return "qwen"
    return "gemini"


def outputs_of(log: GeminiLog) -> Outputs:
    """Return the complete outputs of tools, which are beside the logs of a project."""
    chats = ancestor_named(log.path, CHATS)
    return Outputs(None if chats is None else chats.parent / "tool-outputs", _OUTPUT)


# -- projects ------------------------------------------------------------------


def directory_of(log: GeminiLog) -> str:
    """Return the directory of a session's project; empty if it cannot be known."""
    chats = ancestor_named(log.path, CHATS)
    return "" if chats is None else directory_in(chats.parent, log.project_hash)


def directory_in(project: Path, project_hash: str = "") -> str:
    """Return the directory of the project that has a folder; empty if not known."""
    with suppress(OddRecordError):
        root = read_file(project / ROOT)
        if root is not None:
            return root.decode("utf-8", "replace").strip()

    home = project.parent.parent
    projects = as_object(_load_file(home / PROJECTS).get("projects"))
    for directory, name in projects.items():
        is_named = as_text(name) in (project_hash, project.name)
        if is_named or _hash_of(directory) in (project_hash, project.name):
            return directory
    return ""


def unreadable_projects(chats: Path) -> Iterator[Problem]:
    """Yield a problem for each file about a project that cannot be read."""
    for path in (chats.parent / ROOT, chats.parent.parent.parent / PROJECTS):
        try:
            read_file(path)
        except OddRecordError as error:
            yield Problem(
                str(path), f"the directory of a project is unknown: it {error}"
            )


def _hash_of(directory: str) -> str:
    return hashlib.sha256(directory.encode("utf-8", "replace")).hexdigest()


def directory_in_text(first_message: str, project_hash: str) -> str:
    """Return the directory that the first message names, if it is the project's."""
    for line in _DIRECTORY.findall(first_message):
        directory: str = line.strip()
        if _hash_of(directory) == project_hash:
            return directory
    return ""
