"""Outputs that are too large for a transcript, in a folder ``tool-results``.

The record names an absolute path on the machine that wrote it: only the name of the
file is of use here, and it is read from inside the store alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.kit.fields import as_string, value_at
from sessiondb.formats.kit.files import is_folder, is_link, read_small
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.patterns import late_pattern

#: The folder of such files, and how a result says where it is.
_FOLDER = "tool-results"
_TAG, _SAVED = "<persisted-output>", late_pattern(r"saved to: ([^\n]+)")
#: A name that leads to no other folder, and a path that ends with an output.
_NAME = r"(?!\.+(?:[/\\]|\Z))([^/\\\0]+)"
_PATH = late_pattern(rf"(?:\A|[/\\]){_NAME}[/\\]{_FOLDER}[/\\]{_NAME}\Z")


def with_files(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a message with the complete outputs that it names."""
    if draft.role != "tool":
        return draft
    return replace(draft, parts=(*draft.parts, *_output_parts(draft, log)))


def _output_parts(draft: MessageDraft, log: Path) -> Iterator[PartDraft]:
    """Yield a part for each output that a result names."""
    matches = [_PATH.search(path) for path in _output_paths(draft)]
    outputs = dict.fromkeys(match.groups() for match in matches if match)
    for session, name in outputs:
        content = _read_output(log, session, name)
        if content is not None:
            data = {"filename": name, "content": content, "added": name}
            yield PartDraft("file", data=data)


def _output_paths(draft: MessageDraft) -> Iterator[str]:
    """Yield the paths of the outputs that a result names."""
    yield as_string(
        value_at(draft.data, "toolUseResult", "persistedOutputPath")
    ).strip()
    for part in draft.parts:
        if part.type == "tool-result" and _TAG in str(part.text):
            for path in _SAVED.findall(str(part.text)):
                yield path.strip()


def _read_output(log: Path, session: str, name: str) -> bytes | None:
    """Return an output that names a *session*; None if it is not in the store.

    Those of a subagent are its parent's, and a fork names those of its original.
    """
    for home in (log.with_suffix(""), *log.parents[:4], log.parent / session):
        folder = home / _FOLDER
        if not is_folder(folder) or is_link(home) or is_link(folder):
            continue
        content = read_small(folder / name)
        if content is not None:
            return content
    return None
