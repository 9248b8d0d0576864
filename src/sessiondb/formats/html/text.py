"""Text in a page: nothing in a transcript becomes markup."""

from __future__ import annotations

import html
import re

from sessiondb.patterns import late_pattern
from sessiondb.words import visible

_ALLOWED = late_pattern(r"(?:https?://|mailto:)[^\s\x00-\x20]+", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return *text* for an element or a quoted attribute."""
    return html.escape(visible(text))


def allowed(address: str) -> bool:
    """Return whether a link may go to *address*: the web and mail, nothing else."""
    return _ALLOWED.fullmatch(address) is not None
