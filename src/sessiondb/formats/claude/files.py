"""Outputs that are too large for a transcript, in a folder ``tool-results``.

The record names an absolute path on the machine that wrote it: only the name of the
file is of use here, and it is read from inside the store alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from sessiondb.formats.kit.fields import as_text, within
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
    stated = as_text(within(draft.data, "toolUseResult", "persistedOutputPath"))
    texts = [part.text or "" for part in draft.parts if part.type == "tool-result"]
    saved = chain.from_iterable(_SAVED.findall(text) for text in texts if _TAG in text)

    for path in (stated or "", *saved):
        found = _PATH.search(path.strip())
        if found is not None:
            yield found[1], found[2]


def _folders(log: Path, named: str) -> Iterator[Path]:
    """Yield where the outputs of a session may be.

    Those of a sub-agent are its parent's, and a fork names those of its original.
    """
    places = (log.with_suffix(""), *log.parents[:4], log.parent / named)

    for session in places:
        folder = session / _FOLDER
        if is_folder(folder) and not is_link(folder) and not is_link(session):
            yield folder
