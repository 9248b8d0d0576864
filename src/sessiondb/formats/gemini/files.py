"""Complete outputs of tools, which a record names and holds only the ends of.

They are in ``tool-outputs`` of the project; the record has the path that they had on
the machine that wrote it. A file is read from inside the store alone, and comes with
the first message that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sessiondb.formats.gemini.logs import CHATS
from sessiondb.formats.kit.files import read_small
from sessiondb.model import MessageDraft, PartDraft

#: The folder and the file below it; nothing that leads out of it.
_NAMED = re.compile(r"[/\\]tool-outputs[/\\]((?:session-[\w-]+[/\\])?[\w-]+\.txt)")


def with_outputs(draft: MessageDraft, log: Path, seen: set[str]) -> MessageDraft:
    """Return a message with the files that it names and that are not in *seen* yet."""
    parts = [*draft.parts, *_outputs(draft, log, seen)]
    return replace(draft, parts=tuple(parts))


def _outputs(draft: MessageDraft, log: Path, seen: set[str]) -> Iterator[PartDraft]:
    chats = next((p for p in log.parents if p.name == CHATS), None)
    if chats is None:
        return

    for part in draft.parts:
        # The name is in the first line of what replaces the output.
        told = part.text[:2000] if part.text and part.type.startswith("tool") else ""
        for name in _NAMED.findall(told):
            where = name.replace("\\", "/")
            path = chats.parent / "tool-outputs" / where
            content = None if where in seen else read_small(path)
            if content is not None:
                seen.add(where)
                known = {"filename": where.rpartition("/")[2], "content": content}
                yield PartDraft("file", data={**known, "added": where})
