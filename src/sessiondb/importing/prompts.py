"""What of a foreign message is a prompt: the text that the user typed."""

from __future__ import annotations

from sessiondb import codec
from sessiondb.model import MessageDraft, PartDraft


def typed_in(draft: MessageDraft) -> str | None:
    """Return the prompt that a message is; None for anything else.

    Text that a program added to it is not part of it, and neither are files.
    """
    if draft.role != "user":
        return None
    said = "\n".join(part.text or "" for part in draft.parts if _is_typed(part))
    return codec.readable(said)[0] if said.strip() else None


def _is_typed(part: PartDraft) -> bool:
    added = part.data.get("synthetic") or part.data.get("ignored")
    return part.type == "text" and bool(part.text) and not added
