"""The logs of pi and its descendants: which program wrote one, and which session it is.

A log is named ``TIME_ID.jsonl`` and begins with a header; oh-my-pi has a title of a
fixed width before it. The header decides, never a name: directories are encoded with
loss, and logs are moved and renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import as_string, fitting, take_fields, without_keys
from sessiondb.formats.kit.files import file_stamp, is_folder
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.logs import logs_below
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.remembered import remembered
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.pi.experiments import is_newer
from sessiondb.formats.pi.fields import HEADER
from sessiondb.model import Problem, TerminalUse
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The ending of a log.
SUFFIX = ".jsonl"
#: Lines of a log that are searched for its header.
HEAD_LINES = 4
_NAME = late_pattern(r"\d{4}-\d\d-\d\dT[\d-]+Z?_(.+)\.jsonl")
_SNOWFLAKE = late_pattern(r"[0-9a-f]{16}")
#: Folders in which a program keeps its sessions, and its source here.
_PROGRAMS = {".pi": "pi", ".omp": "oh-my-pi", ".xcsh": "xcsh"}


class PiHead(NamedTuple):
    """The facts of a log in its first records."""

    path: Path
    #: The program that wrote them; pi if several may have.
    program: str
    #: The id of its session; "" if the log is of a version that is not read.
    session: str
    #: Whether a record names the session: the header, which the log may have lost.
    has_header: bool
    #: Whether it is of a version that is not read.
    is_newer: bool
    #: The session that it was forked from, or the path of its log there; "" if unknown.
    origin: str
    #: The directory of the session; "" if it is unknown.
    directory: str
    #: When it was begun, in Unix ms.
    time_created: int | None
    #: The id of the session here that it was written from for another program.
    alias: str | None


class PiLog(NamedTuple):
    """A log, as its head and its place describe it."""

    path: Path
    #: The program that wrote it.
    source: str
    #: The id of its session; its path if the log is of a version that is not read.
    session: str
    head: PiHead
    #: The session that it was forked from, or that started it; None if unknown.
    parent: str | None = None
    relation: str | None = None
    #: The terminals in which its program would continue it.
    uses: tuple[TerminalUse, ...] = ()


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a log."""
    return path.suffix == SUFFIX


def is_home(folder: Path) -> bool:
    """Return whether a program keeps its sessions in a folder: ``~/.pi/agent``."""
    sessions = folder / "sessions"
    if not is_folder(sessions):
        return False
    # Codex has a folder of that name, too; the names of its logs are others.
    logs = logs_below(sessions, _has_log_name)
    return any(isinstance(item, Path) for item in logs)


def _has_log_name(path: Path) -> bool:
    return _NAME.fullmatch(path.name) is not None


def is_stem(name: str) -> bool:
    """Return whether a log has this name without its ending: so has its folder."""
    return _NAME.fullmatch(f"{name}{SUFFIX}") is not None


def logs_of(home: Path) -> Iterator[Path | Problem]:
    """Yield the logs of a program; pi 0.30 wrote some beside the folder of them."""
    yield from logs_below(home / "sessions", is_log)
    for item in logs_below(home, _has_log_name):
        if isinstance(item, Path) and item.parent == home:
            yield item


def owners_of(home: Path) -> list[str]:
    """Return the programs of a home: by its folder, else in the order of its logs.

    At least one.
    """
    program = program_of(home)
    if program is not None:
        return [program]

    sources = [log.source for log in _readable_logs(logs_of(home))]
    return list(dict.fromkeys(sources)) or ["pi"]


def logs_in(folder: Path) -> Iterator[PiLog]:
    """Yield the logs below a folder that can be read."""
    return _readable_logs(logs_below(folder, is_log))


def _readable_logs(items: Iterable[Path | Problem]) -> Iterator[PiLog]:
    for item in items:
        log = log_at(item) if isinstance(item, Path) else None
        if log is not None:
            yield log


def log_at(path: Path) -> PiLog | None:
    """Return the log at *path*; None if it is not one, or cannot be read."""
    with suppress(SourceError):
        return look_at(path)
    return None


def look_at(path: Path) -> PiLog | None:
    """Return the log at *path*, or None. Raises `SourceError`."""
    head = head_of(path)
    if head is None:
        return None
    source = program_of(path) or head.program
    if head.is_newer:
        return PiLog(path, source, str(path), head)
    if not head.has_header:
        # Its program would overwrite it.
        return PiLog(path, source, head.session, head)
    return PiLog(path, source, head.session, head, *_parent_of_log(path, head))


@remembered("pi", PiHead)
def head_of(path: Path) -> PiHead | None:
    """Return what the first records of a log say; None for another file.

    Raises `SourceError`.
    """
    records = first_records(path, HEAD_LINES)
    header = _find_header(records)
    newer = not header and any(is_newer(record) for record in records)
    session = header.get("id")
    if session is None and not newer:
        # The log lost its header.
        session = _session_by_name(path)
        if session is None or not any(_is_entry(record) for record in records):
            return None

    parent_session = as_string(header.get("parentSession"))
    return PiHead(
        path,
        _program_by_records(records),
        session or "",
        has_header=bool(header),
        is_newer=newer,
        origin=parent_session or as_string(header.get("branchedFrom")),
        directory=take_fields(dict(header), HEADER).get("directory", ""),
        time_created=time_of_text(header.get("timestamp")),
        alias=fitting(header.get(MARK), usable_id),
    )


def read_header(path: Path) -> Record:
    """Return the header of a log, empty without one; raises `SourceError`."""
    header = _find_header(first_records(path, HEAD_LINES))
    return without_keys((MARK,), header)


def _find_header(records: list[Record]) -> Record:
    """Return the header among the first records; empty without one."""
    for record in records:
        if is_header(record):
            return record
    return {}


def is_header(record: Record) -> bool:
    """Return whether *record* is the header of a log."""
    if record.get("type") != "session" or not usable_id(record.get("id")):
        return False
    return "cwd" in record or "timestamp" in record


def _is_entry(record: Record) -> bool:
    is_linked = "parentId" in record and "id" in record
    return is_linked or record.get("type") == "message"


def program_of(path: Path) -> str | None:
    """Return the program in whose folder *path* is, or None."""
    for name in reversed(path.parts):
        if name in _PROGRAMS:
            return _PROGRAMS[name]
    return None


def _program_by_records(records: list[Record]) -> str:
    """Return the program that wrote these first records; pi if several may have."""
    programs = {_program_by_record(record) for record in records}
    # xcsh also writes the records of oh-my-pi.
    for program in ("xcsh", "oh-my-pi"):
        if program in programs:
            return program
    return "pi"


def _program_by_record(record: Record) -> str | None:
    """Return the program that alone writes such a record; None if several do."""
    match record.get("type"):
        case "context_change" | "mcp_tool_selection":
            return "xcsh"
        case "title" | "session_init" | "mode_change" | "service_tier_change":
            return "oh-my-pi"
        case "session":
            is_snowflake = _SNOWFLAKE.fullmatch(as_string(record.get("id")))
            return "oh-my-pi" if "title" in record or is_snowflake else None
        case "model_change" if "model" in record:
            return "oh-my-pi"
        case _:
            return None


def _parent_of_log(path: Path, head: PiHead) -> tuple[str | None, str]:
    """Return the parent of a session, None without one, and the relation to it.

    A subagent of oh-my-pi has its log in the folder of its parent's artifacts, and so
    has a subagent of that one.
    """
    parent_log = log_above(path)
    if file_stamp(parent_log) is not None:
        started_by = _session_at(parent_log)
        if started_by is not None:
            return started_by, "subagent"

    if not head.origin.endswith(SUFFIX):
        return fitting(head.origin, usable_id), "fork"

    # An absolute path on the machine that wrote it: only its name is of use here.
    return _session_at(path.with_name(foreign_path(head.origin).name)), "fork"


def log_above(path: Path) -> Path:
    """Return the log in the folder of whose artifacts *path* is, if there is one."""
    return path.parent.with_name(f"{path.parent.name}{SUFFIX}")


def foreign_path(path: str) -> PurePath:
    """Return a path on the machine that wrote it, which may be another one."""
    return PureWindowsPath(path) if "\\" in path else PurePosixPath(path)


def _session_at(path: Path) -> str | None:
    """Return the session whose log is at *path*: by its header, else by its name."""
    with suppress(SourceError):
        head = head_of(path)
        if head is not None and head.has_header:
            return head.session
    return _session_by_name(path)


def _session_by_name(path: Path) -> str | None:
    """Return the session that the name of a log names."""
    name = _NAME.fullmatch(path.name)
    if name is None or not usable_id(name[1]):
        return None
    return name[1]
