"""Sessions that are made: `create_session`, and `open_session`, which finds them again.

The transaction alone can know whether a session of (source, source_id) exists, but the
unit may also write to it. So the unit addresses it by the id that it would get, and
where another session has the name already the transaction redirects that id
(`Transaction.opened`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, TypedDict

from sessiondb import ids
from sessiondb.arguments import one_of
from sessiondb.dataclass import dataclass
from sessiondb.effects import encode
from sessiondb.effects.project import Locate
from sessiondb.effects.session import SHARE, CreateSession
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Name
from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError
from sessiondb.model import bounds
from sessiondb.model.bounds import Time
from sessiondb.model.handles import (
    MessageHandle,
    MessageRef,
    OpenedSession,
    PartHandle,
    SessionRef,
    message_key,
    session_key,
)

_TEXTS = ("title", "call_id", "agent", "version")


class SessionFields(TypedDict, total=False):
    """The keywords of `Unit.create_session`, for `Unit.open_session`."""

    id: str | None
    title: str | None
    directory: str | EllipsisType | None
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
    scope: str | None


def session_id(stated_id: str | None, time: int | None = None) -> str:
    """Return the id that the caller states, else a new one of *time* (Unix ms)."""
    if stated_id is not None:
        return ids.valid_session_id(stated_id)
    return ids.new_session_id() if time is None else ids.session_id_at(time)


def creation(fields: SessionFields, source: str, locate: Locate) -> CreateSession:
    """Return the effect that makes a session.

    Raises `InvalidInputError` and `CodecError`.
    """
    if unknown := fields.keys() - SessionFields.__annotations__.keys():
        raise InvalidInputError(f"a session has no field {', '.join(sorted(unknown))}")

    own_id, time = fields.get("id"), bounds.time_ms(fields.get("time"))
    directory = fields.get("directory", ...)
    place = None
    # Only the transaction knows where the parent is.
    inherits_place = directory is ... and fields.get("parent") is not None
    if directory is not None and not inherits_place:
        place = locate(None if isinstance(directory, EllipsisType) else directory)
    texts = {name: encode.string(fields.get(name), name) for name in _TEXTS}
    return CreateSession(
        session_id(own_id, time),
        own_id is not None,
        place,
        source,
        provider_id=encode.string(fields.get("provider"), "provider"),
        model_id=encode.string(fields.get("model"), "model"),
        metadata=_metadata_json(fields.get("metadata")),
        time=time,
        inherits_place=inherits_place,
        scope=ids.optional_id(fields.get("scope"), "scope"),
        **_lineage_columns(fields),
        **texts,
    )


def _metadata_json(metadata: Mapping[str, Any] | None) -> str:
    if metadata is None:
        return "{}"

    text = encode.json_column(metadata, "metadata")
    if SHARE in metadata:
        raise InvalidInputError(
            f"metadata: the key {SHARE} is reserved for the secret of a share",
            hint="set_share(session, url, secret=…) sets it",
        )

    return text or "{}"


def _lineage_columns(fields: SessionFields) -> dict[str, Any]:
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


_NAMED = Statement("effects.creation.NAMED")
_FREE_NAME = Statement("effects.creation.FREE_NAME")


def _name_of_session(source: str, source_id: str | None) -> Name:
    """Return the name under which a session of a program is locked."""
    return "session", source, source_id, ""


def living_session(tx: Transaction, source: str, source_id: str | None) -> str | None:
    """Return the session that a program knows under a name, None if there is none.

    A deleted one whose rows are still being removed gives the name up.
    """
    tx.lock_name(*_name_of_session(source, source_id))
    row = tx.one(_NAMED, source=source, source_id=source_id)
    # Until it is locked it may be deleted, and removed.
    while row is not None and tx.lock(row[0]):
        row = tx.one(_NAMED, source=source, source_id=source_id)
    if row is None:
        return None

    session_id, time_deleted = row
    if time_deleted is None:
        return str(session_id)

    tx.run(_FREE_NAME, sid=session_id)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class OpenSession:
    """Find the session that a program knows under a name of its own, or make it.

    *followers* are the handles that the unit gave out for what it writes into it.
    """

    verb = "open_session"
    create: CreateSession
    handle: OpenedSession
    followers: list[MessageHandle | PartHandle]

    @property
    def names(self) -> tuple[Name, ...]:
        """That of the session at its program."""
        return (_name_of_session(self.create.source, self.create.source_id),)

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `ConflictError` and `NotFoundError`."""
        new = self.create
        session_id = living_session(tx, new.source, new.source_id)
        if session_id is None:
            tx.redirected(new).apply(tx)
        elif session_id != new.id:
            tx.opened[new.id] = session_id

        # A retried unit finds the session that it made itself.
        is_own = session_id in (None, new.id)
        created = session_id is None or (tx.retried and is_own)
        if created:
            tx.made.add(new.id)
        tx.after_commit.append(
            lambda: self._update_handles(session_id or new.id, created)
        )

    def _update_handles(self, session_id: str, created: bool) -> None:
        self.handle.id, self.handle.created = session_id, created
        for handle in self.followers:
            handle.session_id = session_id
