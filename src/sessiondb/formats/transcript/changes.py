"""The changes a call made to files, as diffs: from a patch, or from old and new text.

Agents name these things differently; shape counts, not the agent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sessiondb.formats.transcript.blocks import Code
from sessiondb.formats.transcript.shapes import first_text, is_object, levels, texts

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
#: How a patch begins, and what it then contains.
_SHAPES = (
    (("diff --git ", "Index: ", "--- ", "*** Begin Patch"), re.compile(r"\n[+-]")),
    (("@@ ", "+", "-"), re.compile(r"^@@", re.MULTILINE)),
)
_ADDED = re.compile(r"^\+(?!\+\+)", re.MULTILINE)
_REMOVED = re.compile(r"^-(?!--)", re.MULTILINE)
#: Above so many lines a difference is shown as all of the old and all of the new.
_DIFF_LINES = 1500
_DEPTH = 6
#: Characters at the start of a text that may precede a patch.
_LOOK_AHEAD = 4000


@dataclass(frozen=True, slots=True)
class Changes:
    """What a call changed; ``used`` names the arguments that ``codes`` already show."""

    codes: tuple[Code, ...] = ()
    used: AbstractSet[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.codes)

    def counted(self) -> str:
        """Return how many lines the diffs add and remove, ``+3 −1``, or nothing."""
        diffs = [code.text for code in self.codes if code.language == "diff"]
        if not diffs:
            return ""

        text = "\n".join(diffs)
        return f"+{len(_ADDED.findall(text))} −{len(_REMOVED.findall(text))}"


def changes(arguments: Mapping[str, Any], data: Any) -> Changes:
    """Return the changes of a call with *arguments* that kept *data*; may be empty."""
    requested = _patch(arguments) or _replacements(arguments)
    written = Changes() if requested else _written(arguments)
    kept = _kept(data)

    # A patch that was kept has line numbers, which the arguments have not. But a file
    # that was written completely is shown as itself, with the colours of its language.
    if kept and not written:
        return Changes(kept, requested.used)
    return requested or written


def _patch(arguments: Mapping[str, Any]) -> Changes:
    # The first one alone: what follows would repeat it.
    for key in _PATCHES:
        text = _unpacked(arguments.get(key))
        if isinstance(text, str) and is_diff(text):
            return Changes(
                codes=(Code(text, "diff"),),
                used={key},
            )
    return Changes()


def _unpacked(value: Any) -> Any:
    """Return the patch in a command line ``["apply_patch", patch]``, else *value*."""
    is_command = isinstance(value, list) and value[:1] == ["apply_patch"]
    return value[-1] if is_command else value


def _replacements(arguments: Mapping[str, Any]) -> Changes:
    edits = arguments.get("edits")
    steps, names = [arguments], {*_OLD, *_NEW}
    if isinstance(edits, list):
        steps, names = edits, {"edits"}

    path = first_text(arguments, PATHS) or "file"
    codes = tuple(_replaced(path, filter(is_object, steps)))
    if not codes:
        return Changes()
    return Changes(
        codes=codes,
        used=names & arguments.keys(),
    )


def _replaced(path: str, steps: Iterable[Mapping[str, Any]]) -> Iterator[Code]:
    for step in steps:
        name = first_text(step, PATHS) or path
        old, new = first_text(step, _OLD), first_text(step, _NEW)

        if old is not None and new is not None:
            yield Code(difference(name, old, new), "diff")


def _written(arguments: Mapping[str, Any]) -> Changes:
    """Return the content of a file that was written completely, as code."""
    path, text = first_text(arguments, PATHS), first_text(arguments, _CONTENTS)
    if path is None or text is None:
        return Changes()
    return Changes(
        codes=(Code(text, ending(path)),),
        used=arguments.keys() & frozenset(_CONTENTS),
    )


def _kept(data: Any) -> tuple[Code, ...]:
    """Return the patches nearest to the top of *data*, each once."""
    for level in levels(data, _DEPTH):
        found = dict.fromkeys(filter(None, map(_patch_in, level)))
        if found:
            return tuple(Code(text, "diff") for text in found)
    return ()


def _patch_in(record: Mapping[str, Any]) -> str | None:
    return next(filter(is_diff, texts(record, ("diff", "patch"))), None)


def is_diff(text: str) -> bool:
    """Return whether *text* looks like the patch of a file."""
    start = text[:_LOOK_AHEAD].lstrip()

    for beginnings, content in _SHAPES:
        if start.startswith(beginnings):
            return content.search(text) is not None
    return False


def difference(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts."""
    before, after = old.splitlines(), new.splitlines()
    name = " ".join(path.split())

    # `difflib` takes quadratic time.
    if len(before) + len(after) > _DIFF_LINES:
        removed, added = map("-{}".format, before), map("+{}".format, after)
        return "\n".join([f"--- {name}", f"+++ {name}", *removed, *added])
    return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))


def ending(path: str) -> str | None:
    """Return the ending of a file's name, without the dot; None if it has none."""
    return PurePosixPath(path.replace("\\", "/")).suffix.lstrip(".").lower() or None
