"""The keywords of `create_session`, checked: also those of `open_session`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from sessiondb import ids
from sessiondb.arguments import one_of
from sessiondb.effects import encode
from sessiondb.effects.project import Place
from sessiondb.effects.session import SHARE, CreateSession
from sessiondb.errors import InvalidInputError
from sessiondb.model import bounds
from sessiondb.model.bounds import Time
from sessiondb.model.handles import MessageRef, SessionRef, message_key, session_key

_TEXTS = ("title", "call_id", "agent", "version")


class SessionFields(TypedDict, total=False):
    """The keywords of `Unit.create_session`, for `Unit.open_session`."""

    id: str | None
    title: str | None
    directory: str | None
    parent: SessionRef | None
    relation: str | None
    parent_message: MessageRef | None
    call_id: str | None
    agent: str | None
    provider: str | None
    model: str | None
    version: str | None
    metadata: Mapping[str, Any] | None
    time: Time | None


def session_id(given: str | None, time: int | None = None) -> str:
    """Return the id that the caller states, else a new one of *time* (Unix ms)."""
    if given is not None:
        return ids.valid_session_id(given)
    return ids.new_session_id() if time is None else ids.session_id_at(time)


def creation(
    fields: SessionFields, source: str, locate: Callable[[str | None], Place]
) -> CreateSession:
    """Return the effect that makes a session.

    Raises `InvalidInputError` and `CodecError`.
    """
    if unknown := fields.keys() - SessionFields.__annotations__.keys():
        raise InvalidInputError(f"a session has no field {', '.join(sorted(unknown))}")

    own_id, time = fields.get("id"), bounds.time_ms(fields.get("time"))
    directory = fields.get("directory")
    # Only the transaction knows where the parent is.
    inherits_place = directory is None and fields.get("parent") is not None
    texts = {name: encode.string(fields.get(name), name) for name in _TEXTS}
    return CreateSession(
        session_id(own_id, time),
        own_id is not None,
        None if inherits_place else locate(directory),
        source,
        provider_id=encode.string(fields.get("provider"), "provider"),
        model_id=encode.string(fields.get("model"), "model"),
        metadata=_metadata(fields.get("metadata")),
        time=time,
        **_lineage(fields),
        **texts,
    )


def _metadata(given: Mapping[str, Any] | None) -> str:
    if given is None:
        return "{}"

    text = encode.json_column(given, "metadata")
    if SHARE in given:
        raise InvalidInputError(
            f"metadata: the key {SHARE} is reserved for the secret of a share",
            hint="set_share(session, url, secret=…) sets it",
        )

    return text or "{}"


def _lineage(fields: SessionFields) -> dict[str, Any]:
    parent, message = fields.get("parent"), fields.get("parent_message")
    relation = fields.get("relation")
    if parent is None:
        if relation or fields.get("call_id") or message is not None:
            raise InvalidInputError(
                "relation, call_id and parent_message need a parent"
            )
        return {}

    lineage: dict[str, Any] = {
        "parent_id": session_key(parent, "parent"),
        "relation": one_of(relation or "subagent", ("fork", "subagent"), "relation"),
    }
    if message is not None:
        lineage["parent_message"] = message_key(message, "parent_message")

    return lineage
