"""The JSON files and outputs that lie beside OpenCode's records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.files import MAX_FILE, is_link, read_file, read_small, stamp
from sessiondb.formats.kit.json import OddRecordError, load, usable_id
from sessiondb.model import Problem

#: Folders of a tree with the secrets of shares; 1.0 began to use the first one.
SHARES = ("session_share", "share")
#: Folders of a data directory that hold such outputs.
_OUTPUTS = ("tool-output", "shell")


def read_json(path: Path, kind: type, problems: list[Problem]) -> Any:
    """Return what a side file holds, None where there is none or it is odd; that is a problem."""
    size, _ = stamp(path) or (0, 0)
    if size > MAX_FILE:
        problems.append(
            Problem(str(path), f"{path.name} is larger than {MAX_FILE} bytes")
        )
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
        if is_link(path):
            return None
    content = read_small(path)
    return None if content is None else {"name": "/".join(tail), "content": content}
