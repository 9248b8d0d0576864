"""The outcome of a tool call, which both generations say in the text of its error."""

from __future__ import annotations

import re
from typing import Any

from sessiondb.formats.kit.fields import within

#: The name of a call without one; a tool part must have one.
NAMELESS = "unknown"

_DENIED = re.compile(
    r"(\w*Error: )?The user (rejected permission to use|has specified a rule which prevents"
    r"|dismissed this question)"
)
_ABORTED = "Tool execution aborted"


def outcome(error: str, details: Any) -> str:
    """Return ``denied``, ``interrupted`` or ``failed`` for a call that ended with *error*.

    *details* are the metadata of its state.
    """
    if _DENIED.match(error):
        return "denied"
    if error == _ABORTED or within(details, "interrupted") is True:
        return "interrupted"
    return "failed"
