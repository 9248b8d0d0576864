"""Outputs that are too large for a transcript, in a folder ``tool-results``.

The record names an absolute path on the machine that wrote it: only the name of the
file is of use here, and it is read from inside the store alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.kit.fields import as_text, within
from sessiondb.formats.kit.files import is_folder, is_link, read_small
from sessiondb.model import MessageDraft, PartDraft

#: The folder of such files, and how a result says where it is.
_FOLDER = "tool-results"
_SAVED = re.compile(r"saved to: ([^\n]+)")
_NAME = re.compile(r"[^/\\\0]+")


def with_files(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a message with the complete outputs that it names."""
    if draft.role != "tool":
        return draft
    added = list(_outputs(draft, log))
    return replace(draft, parts=(*draft.parts, *added)) if added else draft


def _outputs(draft: MessageDraft, log: Path) -> Iterator[PartDraft]:
    for session, name in dict.fromkeys(_named(draft)):
        for folder in _folders(log, session):
            content = read_small(folder / name)
            if content is not None:
                known = {"filename": name, "content": content, "added": name}
                yield PartDraft("file", data=known)
                break


def _named(draft: MessageDraft) -> Iterator[tuple[str, str]]:
    """Yield the outputs that a result names, each with its session."""
    paths = [as_text(within(draft.data, "toolUseResult", "persistedOutputPath"))]
    for part in draft.parts:
        if part.type == "tool-result" and "<persisted-output>" in (part.text or ""):
            paths += _SAVED.findall(part.text or "")

    for path in filter(None, paths):
        session, folder, name = ["", "", "", *re.split(r"[/\\]", path.strip())][-3:]
        if folder == _FOLDER and all(map(_is_name, (session, name))):
            yield session, name


def _is_name(name: str) -> bool:
    """Return whether a name leads to no other folder."""
    return _NAME.fullmatch(name) is not None and name.strip(".") != ""


def _folders(log: Path, named: str) -> Iterator[Path]:
    """Yield where the outputs of a session may be.

    Those of a sub-agent are its parent's, and a fork names those of its original.
    """
    places = (log.with_suffix(""), *log.parents[:4], log.parent / named)

    for session in places:
        folder = session / _FOLDER
        if is_folder(folder) and not is_link(folder) and not is_link(session):
            yield folder
