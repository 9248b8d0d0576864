"""The names that are fields of records, and so cannot be keywords that go to ``data``.

A cost among the keywords of `assistant` would be lost there: the column stays empty,
and nothing counts it. The names are the fields of the dataclasses, and the spellings
of providers for them; a keyword with such a name is refused, with the place of the
field.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sessiondb.errors import InvalidInputError
from sessiondb.model.aliases import FIELD, TOKEN
from sessiondb.model.draft import MessageDraft, MessageFields, PartDraft
from sessiondb.model.records import Message, Part, Session

#: Keys of the data of an event that docs/FORMAT.md gives a meaning, by its kind.
OF_EVENTS: Mapping[str, frozenset[str]] = {
    "model_change": frozenset({"model_id", "provider_id", "role"}),
}


def _names_of(*records: Any) -> frozenset[str]:
    return frozenset(name for record in records for name in record.__slots__)


_OF_SESSIONS = _names_of(Session)
_OF_MESSAGES = _names_of(MessageDraft)
_OF_PARTS = _names_of(PartDraft)
_APPENDED = frozenset(MessageFields.__annotations__)
RESERVED = (
    _OF_SESSIONS
    | _OF_MESSAGES
    | _OF_PARTS
    | _APPENDED
    | _names_of(Message, Part)
    | FIELD.keys()
    | TOKEN.keys()
)


def place_of(name: str) -> str:
    """Return the call that states the field which *name* is a name of."""
    keyword = FIELD.get(name, name)
    if keyword in _APPENDED:
        return f"append(session, message, {keyword}=…)"
    if keyword in _OF_PARTS:
        return f"PartDraft(type, {keyword}=…)"
    if name in TOKEN:
        return f"append(session, message, tokens={{{TOKEN[name]!r}: …}})"
    if name in _OF_MESSAGES:
        return f"MessageDraft(role, {name}=…)"
    if name in _OF_SESSIONS:
        return "the session"
    return "sessiondb, which sets it itself"


def own_data(
    data: Mapping[str, Any], call: str, allowed: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return the keywords of *call* that go to ``data``.

    Raises `InvalidInputError` for the name of a field, unless it is *allowed*.
    """
    for name in data:
        if name in RESERVED and name not in allowed:
            raise InvalidInputError(
                f"{name} belongs to {place_of(name)}, not to {call}()",
                hint="a MessageDraft or PartDraft takes any keys, in data={…}",
            )
    return data
