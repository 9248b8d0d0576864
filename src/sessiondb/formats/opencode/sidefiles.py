"""The JSON files and outputs that lie beside OpenCode's records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import as_string
from sessiondb.formats.kit.files import MAX_FILE, is_link, read_file, read_small, stamp
from sessiondb.formats.kit.json import OddRecordError, load, usable_id
from sessiondb.model import Problem

#: Folders of a tree with the secrets of shares; 1.0 began to use the first one.
SHARES = ("session_share", "share")
_JSON_NAMES: dict[type, str] = {list: "array", dict: "object"}
#: A path that leads through a folder of complete outputs; the last such folder counts.
_OUTPUT = re.compile(
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
    # The name alone: an id in a database may be a path to somewhere else.
    name = Path(f"{session}.json").name
    for folder in folders:
        found = read_json(root / folder / name, dict, problems)
        if found is not None:
            return found, folder
    return None, None


def _read_json(path: Path, kind: type) -> Any:
    size, _ = stamp(path) or (0, 0)
    if size > MAX_FILE:
        raise OddRecordError(f"is larger than {MAX_FILE} bytes")

    raw = read_file(path)
    value = None if raw is None else load(raw)
    if type(value) not in (kind, type(None)):
        raise OddRecordError(f"is not a JSON {_JSON_NAMES[kind]}")

    return value


def cut_output(home: Path, named: Any) -> dict[str, Any] | None:
    """Return the file that a cut tool output *named*, as {"name", "content"}.

    It is found by the tail of its path, inside the store's own outputs and without
    following a symlink; None if it does not exist or is larger than `MAX_FILE`.
    """
    found = _OUTPUT.fullmatch(as_string(named))
    if found is None:
        return None

    tail = re.split(r"[/\\]", found["tail"])
    path = home.joinpath(*tail)
    inside = path.parents[: len(tail) - 1]
    # The path is from a record: it must not lead out of the store.
    if not all(map(_is_plain, tail)) or any(map(is_link, (path, *inside))):
        return None

    content = read_small(path)
    return None if content is None else {"name": "/".join(tail), "content": content}


def _is_plain(step: str) -> bool:
    return step not in (".", "..") and usable_id(step)
