"""The logs of pi and its descendants: which program wrote one, and which session it is.

A log is named ``TIME_ID.jsonl`` and begins with a header; oh-my-pi has a title of a
fixed width before it. The header decides, never a name: directories are encoded with
loss, and logs are moved and renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import as_string, fitting, without
from sessiondb.formats.kit.files import is_folder, stamp
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.logs import logs_below
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.pi.experiments import is_newer
from sessiondb.model import Problem, TerminalUse

#: The ending of a log.
SUFFIX = ".jsonl"
#: Lines of a log that are looked at for its header.
HEAD_LINES = 4
_NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z?_(.+)\.jsonl")
_SNOWFLAKE = re.compile(r"[0-9a-f]{16}")
#: Types of records that one program alone writes, and keys of others: xcsh has those of
#: oh-my-pi, too.
_OWN_TYPES = {
    **dict.fromkeys(
        ("title", "session_init", "mode_change", "service_tier_change"), "oh-my-pi"
    ),
    **dict.fromkeys(("context_change", "mcp_tool_selection"), "xcsh"),
}
_OWN_KEYS = {"session": "title", "model_change": "model"}
#: Folders in which a program keeps its sessions, and its source here.
_PROGRAMS = {".pi": "pi", ".omp": "oh-my-pi", ".xcsh": "xcsh"}


class Log(NamedTuple):
    """A log: its session and that session's parent, None for none or an unknown one.

    ``header`` is empty if the log has lost it: its name is that of the session then.
    ``uses`` are the terminals in which its program would continue it. One that is
    ``is_newer`` cannot be read, and its session is its path. ``alias`` is the id of the
    session here that a log was written from for another program than its own.
    """

    path: Path
    source: str
    session: str
    parent: str | None
    relation: str | None
    header: dict[str, Any]
    uses: tuple[TerminalUse, ...] = ()
    is_newer: bool = False
    alias: str | None = None


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a log."""
    return path.suffix == SUFFIX


def is_home(folder: Path) -> bool:
    """Return whether a program keeps its sessions in a folder: ``~/.pi/agent``."""
    sessions = folder / "sessions"
    if not is_folder(sessions):
        return False
    # Codex has a folder of that name, too; the names of its logs are others.
    return any(_paths(logs_below(sessions, _is_named)))


def _is_named(path: Path) -> bool:
    return _NAME.fullmatch(path.name) is not None


def is_stem(name: str) -> bool:
    """Return whether a log has this name without its ending: so has its folder."""
    return _NAME.fullmatch(f"{name}{SUFFIX}") is not None


def _paths(found: Iterable[Path | Problem]) -> Iterator[Path]:
    return (item for item in found if isinstance(item, Path))


def logs_of(home: Path) -> Iterator[Path | Problem]:
    """Yield the logs of a program; pi 0.30 wrote some beside the folder of them."""
    yield from logs_below(home / "sessions", is_log)
    beside = _paths(logs_below(home, _is_named))
    yield from (path for path in beside if path.parent == home)


def owners_of(home: Path) -> list[str]:
    """Return the programs of a home: by its folder, else in the order of its logs.

    At least one.
    """
    named = program_of(home, "")
    if named:
        return [named]

    sources = [log.source for log in _readable(logs_of(home))]
    return list(dict.fromkeys(sources)) or ["pi"]


def logs_in(folder: Path) -> Iterator[Log]:
    """Yield the logs below a folder that can be read."""
    return _readable(logs_below(folder, is_log))


def _readable(found: Iterable[Path | Problem]) -> Iterator[Log]:
    return filter(None, map(log_at, _paths(found)))


def log_at(path: Path) -> Log | None:
    """Return the log at *path*; None if it is not one, or cannot be read."""
    with suppress(SourceError):
        return look_at(path)
    return None


def look_at(path: Path) -> Log | None:
    """Return the log at *path*, or None. Raises `SourceError`."""
    records = first_records(path, HEAD_LINES)
    header = _header(records)
    if not header:
        return _newer(path, records) or _without_header(path, records)

    source = _program(path, records)
    own, above = without((MARK,), header), _parent(path, header)
    alias = fitting(header.get(MARK), usable_id)
    return Log(path, source, header["id"], *above, own, alias=alias)


def _header(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the header among the first records; empty without one."""
    return next(filter(is_header, records), {})


def is_header(record: dict[str, Any]) -> bool:
    """Return whether *record* is the header of a log."""
    is_known = not record.keys().isdisjoint(("cwd", "timestamp"))
    return record.get("type") == "session" and is_known and usable_id(record.get("id"))


def _newer(path: Path, records: list[dict[str, Any]]) -> Log | None:
    """Return a log of a version that is not read."""
    if not any(map(is_newer, records)):
        return None
    source = _program(path, records)
    return Log(path, source, str(path), None, None, {}, is_newer=True)


def _without_header(path: Path, records: list[dict[str, Any]]) -> Log | None:
    """Return a log that lost its header, which its program would overwrite."""
    named = _named(path)
    if named is None or not any(map(_is_entry, records)):
        return None
    return Log(path, _program(path, records), named, None, None, {})


def _named(path: Path) -> str | None:
    """Return the session that the name of a log names."""
    found = _NAME.fullmatch(path.name)
    named: str | None = fitting(found and found[1], usable_id)
    return named


def _is_entry(record: dict[str, Any]) -> bool:
    is_linked = "parentId" in record and "id" in record
    return is_linked or record.get("type") == "message"


def program_of(path: Path, default: str = "pi") -> str:
    """Return the program in whose folder *path* is."""
    named = filter(None, map(_PROGRAMS.get, reversed(path.parts)))
    return next(named, default)


def _program(path: Path, records: list[dict[str, Any]]) -> str:
    """Return which program wrote a log: by its folder, else by its first records."""
    named = program_of(path, "")
    if named:
        return named

    signs = set(map(_sign, records))
    return next(filter(signs.__contains__, ("xcsh", "oh-my-pi")), "pi")


def _sign(record: dict[str, Any]) -> str | None:
    """Return the program that alone writes such a record; None if several do."""
    kind = as_string(record.get("type"))
    is_snowflake = _SNOWFLAKE.fullmatch(as_string(record.get("id"))) is not None
    if _OWN_KEYS.get(kind) in record or (kind == "session" and is_snowflake):
        return "oh-my-pi"
    return _OWN_TYPES.get(kind)


def _parent(path: Path, header: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the parent and the relation to it; (None, …) without a parent.

    A subagent of oh-my-pi has its log in the folder of its parent's artifacts, and so
    has a subagent of that one.
    """
    above = log_above(path)
    started_by = _session_at(above) if stamp(above) is not None else None
    if started_by is not None:
        return started_by, "subagent"

    origins = map(as_string, map(header.get, ("parentSession", "branchedFrom")))
    named = next(filter(None, origins), "")
    if not named.endswith(".jsonl"):
        return fitting(named, usable_id), "fork"

    # An absolute path on the machine that wrote it: only its name is of use here.
    return _session_at(path.with_name(path_there(named).name)), "fork"


def log_above(path: Path) -> Path:
    """Return the log in the folder of whose artifacts *path* is, if there is one."""
    return path.parent.with_name(f"{path.parent.name}{SUFFIX}")


def path_there(named: str) -> PurePath:
    """Return a path on the machine that wrote it, which may be another one."""
    return PureWindowsPath(named) if "\\" in named else PurePosixPath(named)


def _session_at(path: Path) -> str | None:
    """Return the session whose log is at *path*: by its header, else by its name."""
    header: dict[str, Any] = {}
    with suppress(SourceError):
        header = _header(first_records(path, HEAD_LINES))
    return header.get("id") or _named(path)
