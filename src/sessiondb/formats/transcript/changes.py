"""The changes a call made to files, as diffs: from a patch, or from old and new text.

Agents name these things differently; shape counts, not the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from sessiondb.formats.transcript.blocks import Code
from sessiondb.formats.transcript.shapes import (
    CallRecords,
    first_text,
    is_object,
    texts_at,
)
from sessiondb.patterns import late_pattern

PATHS = (
    "filePath",
    "file_path",
    "path",
    "filename",
    "file",
    "target_file",
    "notebook_path",
)
_OLD = ("oldString", "old_string", "old_str", "oldText", "old_text", "search", "before")
_NEW = (
    "newString",
    "new_string",
    "new_str",
    "newText",
    "new_text",
    "replace",
    "new_source",
    "after",
)
_REPLACED, _EDITS = frozenset({*_OLD, *_NEW}), frozenset({"edits"})
_CONTENTS = ("content", "file_text", "contents")
_PATCHES = ("patch", "diff", "input", "patchText", "patch_text", "command")
#: The keys under which programs keep a change, and the levels that are searched.
_KEPT, _DEPTH = ("diff", "patch"), 6
#: How a patch begins, and what it then contains.
_SHAPES = (
    (("diff --git ", "Index: ", "--- ", "*** Begin Patch"), late_pattern(r"\n[+-]")),
    (("@@ ", "+", "-"), late_pattern(r"^@@", re.MULTILINE)),
)
#: The lines of a patch that name a file as it is afterwards.
_FILE = late_pattern(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)([^\t\n]+)", re.MULTILINE
)
#: The lines of a patch before its changes; the last one names the file.
_HEADING = late_pattern(
    r"(?:(?:diff |index |Index: |=+$|--- |\*\*\* Begin Patch).*\n)*"
    r"(?:\+\+\+ |\*\*\* (?:Add|Update|Delete) File: )(?P<name>[^\t\n]+).*\n",
    re.MULTILINE,
)
#: Above so many lines a difference is shown as all of the old and all of the new.
_DIFF_LINES = 1500
#: Characters at the start of a text that may precede a patch.
_LOOK_AHEAD = 4000

#: The arguments that describe a change, and its diffs, composed when they are read.
_Requested: TypeAlias = tuple[AbstractSet[str], Iterable[Code]]
_NOT_REQUESTED: _Requested = (frozenset(), ())


class Changes(NamedTuple):
    """Changes made by a call; ``used`` names the arguments that ``codes`` show."""

    codes: tuple[Code, ...] = ()
    used: AbstractSet[str] = frozenset()

    def count_lines(self) -> str:
        """Return how many lines the diffs add and remove, ``+3 −1``, or nothing."""
        diffs = [code.text for code in self.codes if code.language == "diff"]
        if not diffs:
            return ""

        # A line break before the first line too, so that each line is found by one.
        text = "\n".join(["", *diffs])
        return f"+{_count_lines_with(text, '+')} −{_count_lines_with(text, '-')}"

    def name_files(self) -> str:
        """Return the names of the changed files, ``a.py, b.py``, or nothing."""
        names = [
            match[1].strip()
            for code in self.codes
            if code.language == "diff"
            for match in _FILE.finditer(code.text)
        ]
        return ", ".join(dict.fromkeys(names))


NO_CHANGES = Changes()


def _count_lines_with(text: str, sign: str) -> int:
    """Return how many lines begin with *sign*, without the names of files."""
    return text.count(f"\n{sign}") - text.count(f"\n{sign * 3}")


def changes_of_call(arguments: Mapping[str, Any], records: CallRecords) -> Changes:
    """Return the changes of a call with *arguments*, whose program kept *records*.

    They may be empty.
    """
    kept = _kept_patches(records)
    for names, find in _SEARCHES:
        # Few calls change anything: the names of their arguments show which.
        if names.isdisjoint(arguments):
            continue
        used, codes = find(arguments)
        if used:
            # A patch that was kept has line numbers, which the arguments have not. But
            # a file that was written completely has the colours of its language.
            shown = () if find is _written_content else kept
            return Changes(shown or tuple(codes), used)

    return Changes(kept)


def _patch_argument(arguments: Mapping[str, Any]) -> _Requested:
    # The first one alone: what follows would repeat it.
    for key in _PATCHES:
        text = _unpack_patch(arguments.get(key))
        if isinstance(text, str) and is_diff(text):
            return {key}, [Code(text, "diff")]
    return _NOT_REQUESTED


def _unpack_patch(value: Any) -> Any:
    """Return the patch in a command line ``["apply_patch", patch]``, else *value*."""
    is_command = isinstance(value, list) and value[:1] == ["apply_patch"]
    return value[-1] if is_command else value


def _replacement_diffs(arguments: Mapping[str, Any]) -> _Requested:
    edits = arguments.get("edits")
    steps, names = [arguments], _REPLACED
    if isinstance(edits, list):
        steps, names = edits, _EDITS

    path = first_text(arguments, PATHS) or "file"
    pairs = list(_replaced_texts(path, [step for step in steps if is_object(step)]))
    if not pairs:
        return _NOT_REQUESTED
    codes = [Code(unified_diff(*pair), "diff") for pair in pairs]
    return names & arguments.keys(), codes


def _replaced_texts(
    path: str, steps: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """Yield the name of the file, the old and the new text of each of *steps*."""
    for step in steps:
        old, new = first_text(step, _OLD), first_text(step, _NEW)
        if old is not None and new is not None:
            yield first_text(step, PATHS) or path, old, new


def _written_content(arguments: Mapping[str, Any]) -> _Requested:
    """Return the content of a file that was written completely, as code."""
    text = first_text(arguments, _CONTENTS)
    if text is None:
        return _NOT_REQUESTED
    path = first_text(arguments, PATHS)
    if path is None:
        return _NOT_REQUESTED
    return arguments.keys() & frozenset(_CONTENTS), [Code(text, file_ending(path))]


#: The searches for changes, each with the arguments of which it needs one.
_SEARCHES: tuple[tuple[AbstractSet[str], Callable[..., _Requested]], ...] = (
    (frozenset(_PATCHES), _patch_argument),
    (_REPLACED | _EDITS, _replacement_diffs),
    (frozenset(_CONTENTS), _written_content),
)


def _kept_patches(records: CallRecords) -> tuple[Code, ...]:
    """Return the patches nearest to the top of *records*, each once."""
    for level in records.levels_having(_KEPT, _DEPTH):
        patches: dict[str, None] = {}
        for record in level:
            for text in texts_at(record, _KEPT):
                if is_diff(text):
                    patches[text] = None
                    break
        if patches:
            return tuple([Code(text, "diff") for text in patches])
    return ()


def is_diff(text: str) -> bool:
    """Return whether *text* looks like the patch of a file."""
    start = text[:_LOOK_AHEAD].lstrip()

    for beginnings, content in _SHAPES:
        if start.startswith(beginnings):
            return content.search(text) is not None
    return False


def without_heading(diff: str, name: str) -> str:
    """Return *diff* without the lines before its changes, if they only repeat *name*.

    A patch of several files stays as it is.
    """
    heading = _HEADING.match(diff)
    if heading is None or not name or not heading["name"].endswith(name):
        return diff
    return diff[heading.end() :].removesuffix("\n*** End Patch")


def unified_diff(path: str, old: str, new: str) -> str:
    """Return a unified diff of two texts."""
    old_lines, new_lines = old.splitlines(), new.splitlines()
    name = " ".join(path.split())

    # `difflib` takes quadratic time.
    if len(old_lines) + len(new_lines) > _DIFF_LINES:
        removed = [f"-{line}" for line in old_lines]
        added = [f"+{line}" for line in new_lines]
        return "\n".join([f"--- {name}", f"+++ {name}", *removed, *added])
    # Most changes are recorded as a diff.
    import difflib

    lines = difflib.unified_diff(old_lines, new_lines, name, name, lineterm="")
    return "\n".join(lines)


def file_ending(path: str) -> str | None:
    """Return the ending of a file's name, without the dot; None if it has none."""
    return PurePosixPath(path.replace("\\", "/")).suffix.lstrip(".").lower() or None
