"""The JSON that the command line prints and other programs rely on.

Fields may be added, none changes its meaning. Text is exact.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from sessiondb.model.records import Hit, Message, Part, Session, Tokens

_SESSION_FIELDS = (
    "id slug title directory project_id parent_id parent_seq relation root_id source "
    "source_id scope version agent provider_id model_id message_count prompt_count "
    "cost cost_inherited"
).split()
_SESSION_TIMES = ("time_created", "time_updated", "time_archived")
_values_of_session = attrgetter(*_SESSION_FIELDS)
_times_of_session = attrgetter(*_SESSION_TIMES)
_values_of_tokens = attrgetter(*Tokens.__slots__)
#: Fields that M leaves out: its session is known, the others are bookkeeping.
_HIDDEN = ("session_id", "response_id", "usage_key", "usage_name")


def _message_fields() -> tuple[str, ...]:
    """Return the fields of M in the order of `Message`.

    The token counts are one object.
    """
    names = (name for name in Message.__slots__ if name not in _HIDDEN)
    # A dict keeps the place of the first count.
    return tuple(
        dict.fromkeys("tokens" if n.startswith("tokens_") else n for n in names)
    )


_MESSAGE_FIELDS = _message_fields()
_values_of_message = attrgetter(*_MESSAGE_FIELDS)
_PART_FIELDS = "idx id type synthetic tool call_id status outcome title text".split()
_values_of_part = attrgetter(*_PART_FIELDS)


def _tokens_object(tokens: Tokens | None) -> dict[str, int | None] | None:
    if tokens is None:
        return None
    return dict(zip(Tokens.__slots__, _values_of_tokens(tokens), strict=True))


def session_json(session: Session) -> dict[str, Any]:
    """Return a session as the contract's object S."""
    out: dict[str, Any] = dict(
        zip(_SESSION_FIELDS, _values_of_session(session), strict=True)
    )
    out["tokens"] = _tokens_object(session.tokens)
    out.update(zip(_SESSION_TIMES, _times_of_session(session), strict=True))
    return out


def part_json(part: Part) -> dict[str, Any]:
    """Return a part as the contract's object P.

    A call's arguments are ``data.input``.
    """
    out: dict[str, Any] = dict(zip(_PART_FIELDS, _values_of_part(part), strict=True))
    data = dict(part.data)
    if part.input_json is not None:
        data["input"] = part.input
    out["data"] = data
    out["time_started"], out["time_ended"] = part.time_started, part.time_ended
    return out


def message_json(message: Message) -> dict[str, Any]:
    """Return a message as the contract's object M, parts included."""
    out: dict[str, Any] = dict(
        zip(_MESSAGE_FIELDS, _values_of_message(message), strict=True)
    )
    out["purpose"] = message.purpose
    out["tokens"] = _tokens_object(message.tokens)
    out["data"] = dict(message.data)
    out["parts"] = list(map(part_json, message.parts))
    return out


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return a search hit as the contract's object."""
    return {
        "session": session_json(hit.session),
        "seq": hit.seq,
        "message_id": hit.message_id,
        "snippet": hit.snippet,
    }
