"""Secrets taken out of a session before it is written in any format.

Known shapes of keys, tokens and passwords are replaced by ``[redacted]`` in every
text, input, title, patch and value of ``data``. It knows shapes, not meanings: a
secret that looks like a word stays, and so does what is inside bytes (files,
images). Read what you hand out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sessiondb.formats.kit.fields import without
from sessiondb.model import (
    Export,
    FileDiff,
    Label,
    Message,
    Part,
    Project,
    Prompt,
    Session,
    Todo,
)

R = TypeVar("R", Session, Project, Message, Part, FileDiff, Label, Todo, Prompt)

PLACE = "[redacted]"
_NAMED = (
    r"(?i:[\w-]{0,40}(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase"
    r"|private[_-]?key|credentials?|authorization)[\w-]{0,40})"
)
_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        # One that is cut off is taken out up to the end of the text.
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)"
        r"(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[\w-]{30,}",
        r"\bxox[abeprs]-[\w-]{10,}",
        r"\b(?:npm_|pypi-|hf_)[\w-]{16,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
        r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
        r"(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{12,}",
    )
]
_VALUE = r"""("[^"\n]{4,}"|'[^'\n]{4,}'|[^\s"',;]{6,})"""
_ASSIGNED = re.compile(rf"({_NAMED}[\"']?\s*[:=]\s*)" + _VALUE)
_NAME = re.compile(_NAMED)
#: Fields of each record that are texts, or hold them.
_FIELDS: dict[type, tuple[str, ...]] = {
    Session: ("title", "summary_diffs", "revert", "permission", "data"),
    Project: ("name", "remote", "metadata", "permission"),
    Message: ("error", "data"),
    Part: ("title", "text", "outcome", "data"),
    FileDiff: ("patch",),
    Label: ("label",),
    Todo: ("content",),
    Prompt: ("text",),
}


def redacted(export: Export) -> Export:
    """Return *export* without what looks like a secret."""
    return replace(
        export,
        session=_session(export.session),
        messages=map(_message, export.messages),
        parent=export.parent and _session(export.parent),
        project=export.project and _cleaned(export.project),
        labels=tuple(map(_cleaned, export.labels)),
        todos=tuple(map(_cleaned, export.todos)),
        diffs=tuple(map(_diff, export.diffs)),
        prompts=tuple(map(_cleaned, export.prompts)),
    )


def clean(text: str) -> str:
    """Return *text* without what looks like a secret."""
    for pattern in _PATTERNS:
        text = pattern.sub(PLACE, text)
    return _ASSIGNED.sub(_assigned, text)


def _assigned(match: re.Match[str]) -> str:
    value = match[2]
    # A count of tokens is not a secret.
    if value.isdecimal():
        return match[0]

    quote = value[0] if value[0] in "\"'" else ""
    return f"{match[1]}{quote}{PLACE}{quote}"


def clean_value(value: Any) -> Any:
    """Return plain data without what looks like a secret."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return list(map(clean_value, value))
    if isinstance(value, Mapping):
        return {key: _field(key, item) for key, item in value.items()}
    return value


def _field(name: str, value: Any) -> Any:
    if isinstance(value, str) and len(value) >= 4 and _NAME.search(name):
        return PLACE
    return clean_value(value)


def _cleaned(record: R, **others: Any) -> R:
    """Return a record with its `_FIELDS` cleaned, and *others* in their places."""
    names = _FIELDS[type(record)]
    cleaned = {name: clean_value(getattr(record, name)) for name in names}
    return replace(record, **cleaned | others)


def _session(session: Session) -> Session:
    # With its address a share can be read, with its secret ended.
    public = without(("share",), session.metadata)
    return _cleaned(session, share_url=None, metadata=clean_value(public))


def _message(message: Message) -> Message:
    return _cleaned(message, parts=tuple(map(_part, message.parts)))


def _part(part: Part) -> Part:
    given = part.input_json
    if given is not None:
        given = json.dumps(clean_value(json.loads(given)), separators=(",", ":"))
    return _cleaned(part, input_json=given)


def _diff(diff: FileDiff) -> FileDiff:
    return _cleaned(diff, before=_side(diff.before), after=_side(diff.after))


def _side(content: bytes | None) -> bytes | None:
    try:
        return content and clean(content.decode()).encode()
    except UnicodeDecodeError:
        return content
