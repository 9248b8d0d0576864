"""Outputs that are too large for a transcript, in a folder ``tool-results``.

The record names an absolute path on the machine that wrote it: only the name of the
file is of use here, and it is read from inside the store alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.kit.fields import as_string, within
from sessiondb.formats.kit.files import is_folder, is_link, read_small
from sessiondb.model import MessageDraft, PartDraft

#: The folder of such files, and how a result says where it is.
_FOLDER = "tool-results"
_TAG, _SAVED = "<persisted-output>", re.compile(r"saved to: ([^\n]+)")
#: A name that leads to no other folder, and a path that ends with an output.
_NAME = r"(?!\.+(?:[/\\]|\Z))([^/\\\0]+)"
_PATH = re.compile(rf"(?:\A|[/\\]){_NAME}[/\\]{_FOLDER}[/\\]{_NAME}\Z")


def with_files(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a message with the complete outputs that it names."""
    if draft.role != "tool":
        return draft
    return replace(draft, parts=(*draft.parts, *_outputs(draft, log)))


def _outputs(draft: MessageDraft, log: Path) -> Iterator[PartDraft]:
    found = filter(None, map(_PATH.search, _named(draft)))
    for session, name in dict.fromkeys(map(re.Match.groups, found)):
        files = (read_small(folder / name) for folder in _folders(log, session))
        content = next((content for content in files if content is not None), None)
        if content is not None:
            known = {"filename": name, "content": content, "added": name}
            yield PartDraft("file", data=known)


def _named(draft: MessageDraft) -> Iterator[str]:
    """Yield the paths of the outputs that a result names."""
    yield as_string(within(draft.data, "toolUseResult", "persistedOutputPath")).strip()
    for part in draft.parts:
        if part.type == "tool-result" and _TAG in str(part.text):
            yield from map(str.strip, _SAVED.findall(str(part.text)))


def _folders(log: Path, named: str) -> Iterator[Path]:
    """Yield where the outputs of a session may be.

    Those of a subagent are its parent's, and a fork names those of its original.
    """
    places = (log.with_suffix(""), *log.parents[:4], log.parent / named)

    for session in places:
        folder = session / _FOLDER
        if is_folder(folder) and not any(map(is_link, (session, folder))):
            yield folder
