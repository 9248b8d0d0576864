"""The changes a call made to files, as diffs: from the patch it kept, or old and new text.

Agents name these things differently; shape counts, not the agent.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sessiondb.formats.transcript.blocks import Code
from sessiondb.formats.transcript.shapes import below, first_text

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
_CONTENTS = ("content", "file_text", "contents")
_PATCHES = ("patch", "diff", "input", "patchText", "patch_text", "command")
_BEGIN = "*** Begin Patch"
_STARTS = ("diff --git ", "Index: ", "--- ")
_HUNKS = ("@@ ", "+", "-")
#: Characters at the beginning of a text that may precede a patch.
_LOOK_AHEAD = 4000
#: Above so many lines a difference is shown as all of the old and all of the new.
_DIFF_LINES = 1500
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Changes:
    """What a call changed; ``used`` names the arguments that ``codes`` shows already."""

    codes: tuple[Code, ...] = ()
    used: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.codes)


def changes(arguments: Mapping[str, Any], data: Any) -> Changes:
    """Return the changes of a call with *arguments* that kept *data*; may be empty."""
    requested = _patch(arguments) or _replacements(arguments)
    kept = _kept(data)

    # A patch that was kept has line numbers, which the arguments have not. But a file
    # that was written completely is shown as itself, with the colours of its language.
    if kept and (requested or arguments.keys().isdisjoint(_CONTENTS)):
        return Changes(kept, requested.used)
    return requested or _written(arguments)


def _patch(arguments: Mapping[str, Any]) -> Changes:
    for key in _PATCHES:
        text = arguments.get(key)
        if isinstance(text, list) and text[:1] == ["apply_patch"]:
            text = text[-1]
        if isinstance(text, str) and _is_patch(text):
            return Changes((Code(text, "diff"),), frozenset({key}))
    return Changes()


def _is_patch(text: str) -> bool:
    return text.lstrip().startswith(_BEGIN) or is_diff(text)


def _replacements(arguments: Mapping[str, Any]) -> Changes:
    path = first_text(arguments, PATHS) or "file"
    edits = arguments.get("edits")
    steps, names = [arguments], frozenset({*_OLD, *_NEW})
    if isinstance(edits, list):
        steps, names = edits, frozenset({"edits"})

    codes = tuple(_replaced(path, steps))
    return Changes(codes, names & arguments.keys()) if codes else Changes()


def _replaced(path: str, steps: list[Any]) -> Iterator[Code]:
    for step in steps:
        if not isinstance(step, Mapping):
            continue
        old, new = first_text(step, _OLD), first_text(step, _NEW)
        if old is not None and new is not None:
            name = first_text(step, PATHS) or path
            yield Code(difference(name, old, new), "diff")


def _written(arguments: Mapping[str, Any]) -> Changes:
    """Return the content of a file that was written completely, as code."""
    path = first_text(arguments, PATHS)
    for key in _CONTENTS:
        text = arguments.get(key)
        if path is not None and isinstance(text, str):
            return Changes((Code(text, ending(path)),), frozenset({key}))
    return Changes()


def _kept(data: Any) -> tuple[Code, ...]:
    """Return the patches nearest to the top of *data*, each once."""
    level = [data]
    for _ in range(_DEPTH):
        patches = [_patch_in(value) for value in level if isinstance(value, Mapping)]
        found = dict.fromkeys(filter(None, patches))
        if found:
            return tuple(Code(text, "diff") for text in found)
        level = below(level)
    return ()


def _patch_in(record: Mapping[str, Any]) -> str | None:
    for key in ("diff", "patch"):
        text = record.get(key)
        if isinstance(text, str) and is_diff(text):
            return text
    return None


def is_diff(text: str) -> bool:
    """Return whether *text* looks like the patch of a file."""
    start = text[:_LOOK_AHEAD].lstrip()
    if start.startswith(_STARTS):
        return "\n+" in text or "\n-" in text
    return start.startswith(_HUNKS) and "\n" in text and "@@" in text


def difference(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts."""
    before, after = old.splitlines(), new.splitlines()
    name = " ".join(path.split())

    # `difflib` takes quadratic time.
    if len(before) + len(after) > _DIFF_LINES:
        removed = (f"-{line}" for line in before)
        added = (f"+{line}" for line in after)
        return "\n".join([f"--- {name}", f"+++ {name}", *removed, *added])
    return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))


def counts(code: Code) -> tuple[int, int]:
    """Return how many lines a diff adds and removes; 0 and 0 of other code."""
    if code.language != "diff":
        return 0, 0

    added = removed = 0
    for line in code.text.split("\n"):
        if not line.startswith(("+++", "---")):
            added += line.startswith("+")
            removed += line.startswith("-")
    return added, removed


def ending(path: str) -> str | None:
    """Return the ending of a file's name, without the dot; None if it has none."""
    return PurePosixPath(path.replace("\\", "/")).suffix.lstrip(".").lower() or None
