"""What a call changed in files, as diffs: by the patch it kept, or by its old and new text.

Agents name these things differently; what counts is the shape, not the agent.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from sessiondb.formats.transcript.blocks import Code

PATHS = (
    "filePath",
    "file_path",
    "path",
    "filename",
    "file",
    "target_file",
    "notebook_path",
)
_OLD = ("oldString", "old_string", "old_str", "oldText", "old_text", "search")
_NEW = (
    "newString",
    "new_string",
    "new_str",
    "newText",
    "new_text",
    "replace",
    "new_source",
)
_WHOLE = ("content", "file_text", "contents")
_PATCHES = ("patch", "diff", "input", "patchText", "patch_text", "command")
_BEGIN = "*** Begin Patch"
#: Above so many lines a difference is shown as all of the old and all of the new.
_DIFF_LINES = 1500
_DEPTH = 6


def changes(given: Any, data: Any) -> tuple[list[Code], set[str]]:
    """Return what a call changed, and which of its arguments that tells; may be nothing."""
    arguments = given if isinstance(given, Mapping) else {"input": given}
    asked, used = _asked(arguments)
    kept = _kept(data)
    if kept and (used or not arguments.keys() & set(_WHOLE)):
        return kept, used
    if asked:
        return asked, used
    return _written(arguments)


def _asked(arguments: Mapping[str, Any]) -> tuple[list[Code], set[str]]:
    for key in _PATCHES:
        text = arguments.get(key)
        if isinstance(text, list) and text[:1] == ["apply_patch"]:
            text = text[-1]
        if isinstance(text, str) and (
            text.lstrip().startswith(_BEGIN) or is_diff(text)
        ):
            return [Code(text, "diff")], {key}
    path = _first(arguments, PATHS) or "file"
    steps = arguments.get("edits")
    several = isinstance(steps, list) and bool(steps)
    found = list(_replaced(path, steps if isinstance(steps, list) else [arguments]))
    used = {"edits"} if several else {*_OLD, *_NEW}
    return (found, used & arguments.keys()) if found else ([], set())


def _replaced(path: str, steps: list[Any]) -> Iterator[Code]:
    for step in steps:
        if not isinstance(step, Mapping):
            continue
        old, new = _first(step, _OLD), _first(step, _NEW)
        if old is not None and new is not None:
            yield Code(difference(_first(step, PATHS) or path, old, new), "diff")


def _written(arguments: Mapping[str, Any]) -> tuple[list[Code], set[str]]:
    path = _first(arguments, PATHS)
    key = next((key for key in _WHOLE if isinstance(arguments.get(key), str)), None)
    if path is None or key is None:
        return [], set()
    return [Code(arguments[key], ending(path))], {key}


def _kept(data: Any) -> list[Code]:
    """Return the patches nearest to the top of *data*, each once."""
    level = [data]
    for _ in range(_DEPTH):
        below: list[Any] = []
        found: dict[str, Code] = {}
        for value in level:
            if isinstance(value, Mapping):
                below += value.values()
                for key in ("diff", "patch"):
                    text = value.get(key)
                    if isinstance(text, str) and is_diff(text):
                        found[text] = Code(text, "diff")
                        break
            elif isinstance(value, list | tuple):
                below += value
        if found:
            return list(found.values())
        level = below
    return []


def is_diff(text: str) -> bool:
    """Return whether *text* looks like the patch of a file."""
    start = text[:4000].lstrip()
    if start.startswith(("diff --git ", "Index: ", "--- ")):
        return "\n+" in text or "\n-" in text
    return start.startswith(("@@ ", "+", "-")) and "\n" in text and "@@" in text


def difference(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts."""
    before, after = old.splitlines(), new.splitlines()
    name = " ".join(path.split())
    if len(before) + len(after) > _DIFF_LINES:
        body = [f"-{line}" for line in before] + [f"+{line}" for line in after]
        return "\n".join([f"--- {name}", f"+++ {name}", *body])
    return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))


def counts(code: Code) -> tuple[int, int] | None:
    """Return how many lines a diff adds and takes; None of what is no diff."""
    if code.language != "diff":
        return None
    lines = [
        line for line in code.text.split("\n") if not line.startswith(("+++", "---"))
    ]
    return (
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
    )


def ending(path: str) -> str | None:
    """Return the ending of a file's name, without the dot."""
    return PurePosixPath(path.replace("\\", "/")).suffix.lstrip(".").lower() or None


def _first(values: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((values[key] for key in keys if isinstance(values.get(key), str)), None)
