"""The JSON files and outputs that lie beside OpenCode's records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import as_string
from sessiondb.formats.kit.files import (
    MAX_FILE,
    file_stamp,
    is_link,
    read_file,
    read_small,
)
from sessiondb.formats.kit.json import OddRecordError, load_value, usable_id
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

#: Folders of a tree with the secrets of shares; 1.0 began to use the first one.
SHARES = ("session_share", "share")
_JSON_NAMES: dict[type, str] = {list: "array", dict: "object"}
#: A path that leads through a folder of complete outputs; the last such folder counts.
_OUTPUT = late_pattern(
    r"(?:.*[/\\])?(?P<tail>(?:tool-output|shell)(?:[/\\].*)?)", re.DOTALL
)


def read_json(path: Path, kind: type, problems: list[Problem]) -> Any:
    """Return the content of a side file, of type *kind*; None if it does not exist.

    A file that cannot be read, or holds anything else, is added to *problems* and None.
    """
    try:
        return _read_json(path, kind)
    except OddRecordError as error:
        problems.append(Problem(str(path), f"{path.name} {error}"))
        return None


def read_share(
    root: Path, folders: tuple[str, ...], session: str, problems: list[Problem]
) -> tuple[Any, str | None]:
    """Return the share of a session and the folder of it, of those that may have one.

    The first folder with a file counts; (None, None) without one.
    """
    # The name alone: an id in a database may be a path.
    name = Path(f"{session}.json").name
    for folder in folders:
        share = read_json(root / folder / name, dict, problems)
        if share is not None:
            return share, folder
    return None, None


def _read_json(path: Path, kind: type) -> Any:
    size, _ = file_stamp(path) or (0, 0)
    if size > MAX_FILE:
        raise OddRecordError(f"is larger than {MAX_FILE} bytes")

    raw = read_file(path)
    value = None if raw is None else load_value(raw)
    if value is not None and type(value) is not kind:
        raise OddRecordError(f"is not a JSON {_JSON_NAMES[kind]}")

    return value


def complete_output(home: Path, recorded: Any) -> dict[str, Any] | None:
    """Return the file with a complete output, as {"name", "content"}.

    It is found by the tail of the *recorded* path, inside the store's own outputs and
    without following a symlink; None if it does not exist or is larger than `MAX_FILE`.
    """
    match = _OUTPUT.fullmatch(as_string(recorded))
    if match is None:
        return None

    # The path is from a record: it must not lead out of the store.
    steps = re.split(r"[/\\]", match["tail"])
    path = home
    for step in steps:
        path /= step
        if step in (".", "..") or not usable_id(step) or is_link(path):
            return None

    content = read_small(path)
    return None if content is None else {"name": "/".join(steps), "content": content}
