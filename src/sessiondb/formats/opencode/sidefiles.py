"""The JSON files and outputs that lie beside OpenCode's records."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from sessiondb.formats.opencode.records import OddRecordError, load, usable_id
from sessiondb.model import Problem

#: A file larger than this stays where it is, in bytes.
MAX_FILE = 64 << 20
#: Folders of a tree with the secrets of shares; 1.0 began to use the first one.
SHARES = ("session_share", "share")
#: Folders of a data directory that hold such outputs.
_OUTPUTS = ("tool-output", "shell")
# No symlink, and no waiting for whoever writes to a fifo. Windows knows only the last of them.
_NO_TRICKS: int = sum(getattr(os, f, 0) for f in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def stamp(path: Path) -> tuple[int, int] | None:
    """Return size and modification time (ns) of a file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def read_file(path: Path) -> bytes | None:
    """Return the content of a regular file that is no symlink; None where there is none.

    Raises `OddRecordError` when it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OddRecordError("is not a regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OddRecordError(f"cannot be read ({error.strerror})") from None


def read_json(path: Path, kind: type, problems: list[Problem]) -> Any:
    """Return what a side file holds, None where there is none or it is odd; that is a problem."""
    size, _ = stamp(path) or (0, 0)
    if size > MAX_FILE:
        problems.append(Problem(str(path), f"{path.name} is larger than {MAX_FILE} bytes"))
        return None
    try:
        raw = read_file(path)
        value = None if raw is None else load(raw)
    except OddRecordError as error:
        problems.append(Problem(str(path), f"{path.name} {error}"))
        return None
    if value is None or type(value) is kind:
        return value
    problems.append(Problem(str(path), f"{path.name} holds no {kind.__name__}"))
    return None


def cut_output(home: Path, named: Any) -> dict[str, Any] | None:
    """Return the file that a cut tool output *named*, as {"name", "content"}.

    It is looked for by the tail of its path, inside the store's own outputs and
    through no symlink; None where it is not there or larger than `MAX_FILE`.
    """
    if type(named) is not str:
        return None
    steps = re.split(r"[/\\]", named)
    starts = [index for index, step in enumerate(steps) if step in _OUTPUTS]
    tail = steps[starts[-1] :] if starts else [""]
    if any(step in (".", "..") or not usable_id(step) for step in tail):
        return None
    path = home
    for step in tail:
        path /= step
        if path.is_symlink():
            return None
    content = _regular(path)
    return None if content is None else {"name": "/".join(tail), "content": content}


def _regular(path: Path) -> bytes | None:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _NO_TRICKS), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE:
                return None
            return file.read(MAX_FILE)
    except OSError:
        return None
