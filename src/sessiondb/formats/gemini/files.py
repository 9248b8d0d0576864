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
from sessiondb.formats.kit.files import ancestor
from sessiondb.formats.kit.genai import outputs_in
from sessiondb.model import MessageDraft

#: The folder and the file below it; nothing that leads out of it.
_NAMED = re.compile(r"[/\\]tool-outputs[/\\]((?:session-[\w-]+[/\\])?[\w-]+\.txt)")


def with_outputs(draft: MessageDraft, log: Path, seen: set[str]) -> MessageDraft:
    """Return a message with the files that it names and that are not in *seen* yet."""
    chats = ancestor(log, CHATS)
    if chats is None:
        return draft

    named = [name for name in dict.fromkeys(_named(draft)) if name not in seen]
    seen.update(named)
    files = outputs_in(chats.parent / "tool-outputs", named)
    return replace(draft, parts=(*draft.parts, *files))


def _named(draft: MessageDraft) -> Iterator[str]:
    """Yield the names of the files that the results in a message name."""
    for part in draft.parts:
        if part.type.startswith("tool"):
            # The name is in the first line of what replaces the output.
            found = _NAMED.findall((part.text or "")[:2000])
            yield from (name.replace("\\", "/") for name in found)
