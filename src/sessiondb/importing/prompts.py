"""The prompt in a foreign message: the text that the user typed."""

from __future__ import annotations

from sessiondb import codec
from sessiondb.model import MessageDraft, PartDraft

#: Characters of a prompt; a longer one is a file that was pasted, and typed by no one.
#: The history, and each log of the session, would hold it a second time.
LONGEST = 32 << 10


def typed_in(draft: MessageDraft) -> str | None:
    """Return the prompt that a message is; None for anything else, or a longer text.

    Text that a program added to it is not part of it, and neither are files.
    """
    if draft.role != "user":
        return None
    typed = filter(_is_typed, draft.parts)
    return as_prompt("\n".join(part.text or "" for part in typed))


def as_prompt(said: str) -> str | None:
    """Return a text as the history has it; None for an empty or a longer one."""
    is_prompt = len(said) <= LONGEST and said.strip()
    return codec.readable(said)[0] if is_prompt else None


def _is_typed(part: PartDraft) -> bool:
    added = part.data.get("synthetic") or part.data.get("ignored")
    return part.type == "text" and bool(part.text) and not added
