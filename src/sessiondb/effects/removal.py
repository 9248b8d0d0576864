"""Messages that are removed: pop, remove, and what a truncation removes.

The rest is as if they had never been written, and nothing of their content stays in
the rows: search loses them at once, and blobs that no other row names go with the
transaction. Forks keep what they copied. The cost depends on what is removed and on its
children, not on the length of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from sessiondb import codec, ids
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.message import TURN, seq_of, shortened, write_title
from sessiondb.effects.results import fill_open_calls, give_back_texts, reopen_calls
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Connection
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import NotFoundError
from sessiondb.model import Message
from sessiondb.model.handles import PoppedMessage

_LINKS = Statement("effects.removal.LINKS")
_IN_TURN = Statement("effects.removal.IN_TURN")
_SET_TURN = Statement("effects.removal.SET_TURN")
_RELINK_NEXT = Statement("effects.removal.RELINK_NEXT")
_RELINK_BRANCHES = Statement("effects.removal.RELINK_BRANCHES")
_FIRST_TEXT = Statement("effects.removal.FIRST_TEXT")
_GOING = Statement("effects.removal.GOING")
_PART_BLOBS = Statement("effects.removal.PART_BLOBS")
_DIFF_BLOBS = Statement("effects.removal.DIFF_BLOBS")
_DROP = Statement("effects.removal.DROP")
_DROP_DIFFS = Statement("effects.removal.DROP_DIFFS")
_PROMPTS = Statement("effects.removal.PROMPTS")
_DROP_PROMPTS = Statement("effects.removal.DROP_PROMPTS")

#: Reads a message, by session id and seq, in the transaction of a connection.
ReadMessage = Callable[[Connection, str, int], Message]


@dataclass(frozen=True, slots=True, eq=False)
class Remove:
    """Remove messages, whose children then follow what came before them."""

    verb = "remove"
    session_id: str
    messages: tuple[str | int, ...]

    def apply(self, tx: Transaction) -> None:
        """Apply it; a retried unit may find some of it done. Raises `NotFoundError`."""
        state = tx.peek(self.session_id)
        going: set[int] = set()
        for key in self.messages:
            try:
                going.add(seq_of(tx, state.id, key))
            except NotFoundError:
                if not tx.retried:
                    raise
        if going:
            take_out(tx, state, going)


@dataclass(frozen=True, slots=True, eq=False)
class Pop:
    """Remove the leaf, and hand it out.

    *read* reads it; *taken* has the message that an earlier attempt removed.
    """

    verb = "pop"
    session_id: str
    handle: PoppedMessage
    read: ReadMessage
    taken: list[Message]

    def apply(self, tx: Transaction) -> None:
        """Apply it; a retried unit may find it done. Raises `NotFoundError`."""
        state = tx.peek(self.session_id)
        if not (tx.retried and self._is_done(tx, state.id)):
            self.taken.clear()
            if state.leaf_seq is not None:
                self.taken.append(self._take_leaf(tx, state.id))

        message = self.taken[0] if self.taken else None
        tx.after_commit.append(lambda: setattr(self.handle, "message", message))

    def _is_done(self, tx: Transaction, session_id: str) -> bool:
        """Return whether the message of an earlier attempt is gone.

        Another one would be removed that the caller never asked for.
        """
        if not self.taken:
            return False
        try:
            seq_of(tx, session_id, self.taken[0].id)
        except NotFoundError:
            return True
        return False

    def _take_leaf(self, tx: Transaction, session_id: str) -> Message:
        # The read finds the session in its row.
        tx.flush()
        state = tx.peek(session_id)
        assert state.leaf_seq is not None, "the row of a session is as its state"
        seq = seq_of(tx, session_id, state.leaf_seq)
        message = self.read(tx.connection, session_id, seq)
        take_out(tx, state, {seq})
        return message


def take_out(tx: Transaction, state: SessionState, going: Collection[int]) -> None:
    """Remove messages from the tree: their children move up to the nearest one left."""
    forget_prompts(tx, state, going)
    give_back_texts(tx, state, going)
    call_ids = reopen_calls(tx, state, going)
    rows = tx.run(_LINKS, sid=state.id, seqs=as_list(going)).fetchall()
    links: dict[int, int | None] = {seq: parent for seq, parent, *_ in rows}
    for seq, _, message_id, role in rows:
        above = _nearest_left(links, seq)
        if role == "user":
            _join_turn_above(tx, state.id, seq, message_id, above)
        place = {"sid": state.id, "at": seq, "parent": above}
        tx.run(_RELINK_NEXT, **place)
        tx.run(_RELINK_BRANCHES, **place)

    if state.leaf_seq in links:
        state.leaf_seq = _nearest_left(links, state.leaf_seq)
    remove_messages(tx, state, going)
    fill_open_calls(tx, state, call_ids)
    tx.used(state)


def _nearest_left(links: Mapping[int, int | None], seq: int | None) -> int | None:
    """Return the nearest ancestor of a message that does not go, None for none."""
    # Of a circle in a damaged file, each message once.
    seen: set[int] = set()
    while seq is not None and seq in links and seq not in seen:
        seen.add(seq)
        seq = links[seq]
    return None if seq in links else seq


def _join_turn_above(
    tx: Transaction, session_id: str, seq: int, prompt_id: str, above: int | None
) -> None:
    """Let what followed a prompt belong to the turn before it."""
    followers = tx.column(_IN_TURN, sid=session_id, at=seq, turn=prompt_id)
    if followers:
        turn = None if above is None else tx.value(TURN, sid=session_id, at=above)
        tx.run(_SET_TURN, sid=session_id, seqs=as_list(followers), turn_id=turn)


def remove_messages(
    tx: Transaction, state: SessionState, going: Collection[int]
) -> None:
    """Remove messages and all they have.

    Their children, the leaf and calls with their results are left to the caller.
    """
    sid = state.id
    state.touched = True
    namesake = named_by(tx, state)
    params: dict[str, Any] = {"sid": sid, "seqs": as_list(going)}
    rows = tx.run(_GOING, **params).fetchall()
    release_parts(tx, sid, going)
    for hashes in tx.run(_DIFF_BLOBS, **params).fetchall():
        tx.release(*hashes)

    lost, counted, models = [], [], []
    for row in rows:
        seq, message_id, created, key, name, data_blob, inherited, *others = row
        model, was_prompt, *usage = others
        state.prompt_count -= was_prompt
        place = (state.root_id, seq, message_id, created, key, name)
        lost.append(ownership.UsageClass(*place))
        counted.append((inherited, usage))
        models.append(model)
        tx.release(data_blob)

    # Parts and labels go by cascade, diffs have no foreign key to messages.
    tx.run(_DROP_DIFFS, **params)
    tx.run(_DROP, **params)
    ownership.subtract(tx, state, counted)
    ownership.recount(tx, ownership.assign_owner(tx, lost))
    # Only the loss of an answer can change the model.
    if any(models):
        ownership.derive_model(tx, sid)
    if namesake in going:
        name_again(tx, state)
    # The turn of a message that stays may be another one.
    state.leaf_turn = (0, None)


def forget_prompts(
    tx: Transaction, state: SessionState, going: Collection[int]
) -> None:
    """Remove the lines that an import made of messages from the prompt history.

    Their ids are made of what the messages have in common with their copies.
    """
    if state.time_imported is None:
        return
    rows = tx.run(_PROMPTS, sid=state.id, seqs=as_list(going)).fetchall()
    names = [
        ids.imported_prompt_id(state.source, name, time)
        for name, created in rows
        # Copies in other programs' forks may have other times.
        for time in (created, 0)
    ]
    tx.run(_DROP_PROMPTS, ids=as_list(names))


def release_parts(tx: Transaction, session_id: str, going: Collection[int]) -> None:
    """Give up the blobs of the parts of messages."""
    params = {"sid": session_id, "seqs": as_list(going)}
    for hashes in tx.run(_PART_BLOBS, **params).fetchall():
        tx.release(*hashes)


def named_by(tx: Transaction, state: SessionState) -> int | None:
    """Return the seq of the prompt whose text is the title; None if none is."""
    if not state.title or state.title_source != "derived":
        return None
    seq, title = _first_title(tx, state.id)
    return seq if title == state.title else None


def name_again(tx: Transaction, state: SessionState) -> None:
    """Derive the title from what is the first prompt now; empty if there is none."""
    _, title = _first_title(tx, state.id)
    write_title(tx, state, title)


def _first_title(tx: Transaction, session_id: str) -> tuple[int | None, str]:
    """Return the first message of the user with a text, and the title that it gives."""
    row = tx.one(_FIRST_TEXT, sid=session_id)
    if row is None:
        return None, ""
    seq, text, *blob = row
    *_, content = blob
    if content is not None:
        text = codec.content_of_blob(*blob).decode(errors="ignore")
    # A value that is missing from the file gives none.
    return seq, shortened(text or "")
