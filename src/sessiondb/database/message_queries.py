"""The reads of messages, see `queries`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import NamedTuple, TypedDict

from sessiondb.arguments import checks_arguments
from sessiondb.database.scoped_queries import ScopedQueries
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.ids import valid_id
from sessiondb.model import Message, bounds
from sessiondb.model.aliases import ROLE, canonical
from sessiondb.model.bounds import TypedTime
from sessiondb.model.handles import MessageHandle, SessionRef, message_key
from sessiondb.repository import Read, selection, transcript
from sessiondb.repository.references import Extent
from sessiondb.repository.selection import Narrowing, Range
from sessiondb.repository.sessions import check_text

MessageKey = MessageHandle | Message | str | int


class Selected(TypedDict, total=False):
    """The keywords of `Store.walk`: those of `messages` for a part of a session."""

    at: MessageKey | None
    after: MessageKey | None
    before: MessageKey | None
    branches: bool
    roles: str | Iterable[str] | None
    kinds: str | Iterable[str] | None
    since: TypedTime | None
    newest: bool


class Pages(NamedTuple):
    """The messages of a session that are read page by page."""

    session_id: str
    #: The end of their path; ``...`` is the leaf at the time of each page.
    leaf: int | EllipsisType | None
    seqs: list[list[int]]


def _narrowing_to(
    roles: str | Iterable[str] | None,
    kinds: str | Iterable[str] | None,
    since: TypedTime | None,
) -> Narrowing | None:
    """Return what a caller narrows a read to; None if that is nothing."""
    if roles is kinds is since is None:
        return None
    role_names = _texts_of(roles, "roles")
    if role_names is not None:
        role_names = [str(canonical(role, ROLE, "roles")) for role in role_names]
    return Narrowing(
        role_names, _texts_of(kinds, "kinds"), bounds.typed_time(since, "since")
    )


def _texts_of(values: str | Iterable[str] | None, name: str) -> list[str] | None:
    """Return one text or several as a list; raises `InvalidInputError`."""
    if values is None:
        return None
    texts = [values] if isinstance(values, str) else list(values)
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} are strings, not {abridged(text)}")
        check_text(text, name)
    return texts


def _exact_id(message: MessageHandle | Message | str) -> str:
    """Return the id of a message; raises `InvalidInputError` for a seq."""
    key = message_key(message, "ids")
    if isinstance(key, int):
        raise InvalidInputError(f"ids are ids of messages, not {key}")
    return key


@checks_arguments
class MessageQueries(ScopedQueries):
    """Messages of one session, in lists and by name, and the values that they share."""

    def messages(
        self,
        ref: SessionRef,
        *,
        last: int | None = None,
        after: MessageKey | None = None,
        before: MessageKey | None = None,
        limit: int | None = None,
        branches: bool = False,
        at: MessageKey | None = None,
        ids: Iterable[MessageHandle | Message | str] | None = None,
        roles: str | Iterable[str] | None = None,
        kinds: str | Iterable[str] | None = None,
        since: TypedTime | None = None,
        newest: bool = False,
        resolve: bool = True,
    ) -> Read[list[Message]]:
        """Return the live path of a session, oldest first, with all parts.

        With *at* it is the path to that message, *branches* returns every message in
        order of seq, *ids* these messages alone, wherever in the tree; those that are
        not there are left out. Of them *after* and *before*, both exclusive, *roles*,
        *kinds* and *since* (the time of creation) leave some, of which *last* takes
        from the end, *limit* from the beginning. *newest* returns the newest first,
        and *limit* counts from there. Without *resolve* the result of a call is only
        where it was recorded: in the call, or in a record of its own. No message is
        ``[]``. Raises `NotFoundError`, and `InvalidInputError` for *at* with
        *branches*, and for *ids* with one of them, *after* or *before*.
        """
        session = yield from self._extent_of(ref)
        part = yield from self._range_of(
            session, at, after, before, branches=branches, ids=ids
        )
        narrowing = _narrowing_to(roles, kinds, since)
        return (
            yield from selection.messages(
                session.id, part, narrowing, last=last, limit=limit, newest=newest,
                resolve=resolve,
            )
        )  # fmt: skip

    def _range_of(
        self,
        session: Extent,
        *places: MessageKey | None,
        branches: bool,
        ids: Iterable[MessageHandle | Message | str] | None = None,
    ) -> Read[Range]:
        """Return the part of a session that a caller names.

        *places* are ``at``, ``after`` and ``before``.
        """
        end, first, last = places
        part = Range(session.leaf_seq, None, None, branches, session.message_count)
        if ids is not None:
            if branches or places != (None, None, None):
                raise InvalidInputError(
                    "ids are read wherever they are: no at, after, before or branches"
                )
            part.ids = [_exact_id(item) for item in ids]
        if end is not None:
            if branches:
                raise InvalidInputError("at is one path: no branches")
            part.leaf = yield from self._seq_of_message(session.id, end, "at")
        if first is not None:
            part.after = yield from self._seq_of_message(session.id, first, "after")
        if last is not None:
            part.before = yield from self._seq_of_message(session.id, last, "before")
        return part

    def message(self, ref: SessionRef, message: MessageKey) -> Read[Message]:
        """Return one message: by handle, record or id, else by label.

        A number is a seq. Raises `NotFoundError`.
        """
        session = yield from self._extent_of(ref)
        seq = yield from self._seq_of_message(session.id, message)
        return (yield from transcript.one_message(session.id, seq))

    def find_message(
        self, id: str, *, source: str | None = None
    ) -> Read[Message | None]:
        """Return the message with exactly this id, of any session; None without one.

        Forks copy ids: of several messages it is the one that counts, not a copy, and
        of unrelated ones that of the oldest session. With *source* it is one of a
        session of that program.
        """
        if source is not None:
            check_text(source, "source")
        place = yield from transcript.place_of(valid_id(id, "id"), source)
        if place is None:
            return None
        return (yield from transcript.one_message(*place))

    def _seq_of_message(
        self, session_id: str, message: MessageKey, noun: str = "message"
    ) -> Read[int]:
        key = message_key(message, noun)
        if isinstance(message, str):
            return (yield from transcript.seq_named(session_id, message))
        return (yield from transcript.seq_of(session_id, key))

    def _end_of_range(
        self, session_id: str, message: MessageKey | None, noun: str
    ) -> Read[int | None]:
        """Return the seq of the message where a range ends; None is an open end."""
        if message is None:
            return None
        return (yield from self._seq_of_message(session_id, message, noun))

    def pages(
        self,
        ref: SessionRef,
        *,
        page: int = transcript.PAGE,
        at: MessageKey | None = None,
        after: MessageKey | None = None,
        before: MessageKey | None = None,
        branches: bool = False,
        roles: str | Iterable[str] | None = None,
        kinds: str | Iterable[str] | None = None,
        since: TypedTime | None = None,
        newest: bool = False,
    ) -> Read[Pages]:
        """Return the seqs of the messages that `messages` returns, in pages.

        A page has at most *page* messages and a bounded number of bytes.
        """
        session = yield from self._extent_of(ref)
        part = yield from self._range_of(session, at, after, before, branches=branches)
        seqs = yield from selection.pages(
            session.id,
            part,
            _narrowing_to(roles, kinds, since),
            newest=newest,
            size=page,
        )
        return Pages(session.id, ... if at is None else part.leaf, seqs)

    def page(
        self, pages: Pages, seqs: Sequence[int], *, resolve: bool = True
    ) -> Read[list[Message]]:
        """Return the messages of one of *pages*."""
        session_id, leaf, _ = pages
        return (
            yield from transcript.load(session_id, seqs, resolve=resolve, leaf=leaf)
        )

    def blob(self, hash: str, *, session: SessionRef | None = None) -> Read[bytes]:
        """Return a blob by its SHA-256; raises `NotFoundError`.

        With *session* only a blob that this session refers to. Pass it if you know it:
        a later database may keep the blobs of its sessions in several places.
        """
        holder = None if session is None else (yield from self._extent_of(session)).id
        return (yield from transcript.blob_bytes(hash, holder))
