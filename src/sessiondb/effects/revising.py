"""The verbs of a unit that depend on what is stored, or replace it.

Conditions, metadata that is computed from the stored one, and single messages that are
removed or replaced. The transaction decides them, under the lock: between a read and a
write of its own a program would have to look whether another process was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from types import EllipsisType
from typing import Any, TypeVar, Unpack

from sessiondb.arguments import checks_arguments
from sessiondb.effects import encode
from sessiondb.effects.expect import Expect, check_comes_first
from sessiondb.effects.fields import part_row, with_fields
from sessiondb.effects.fold import CallerFold
from sessiondb.effects.queue import Queue, Staged
from sessiondb.effects.removal import Pop, ReadMessage, Remove
from sessiondb.effects.replacing import Replace
from sessiondb.effects.session import SetColumns, UpdateMetadata
from sessiondb.effects.snapshot import ReadInUnit, RunReads, SnapshotResult
from sessiondb.engine.base import Engine
from sessiondb.errors import InvalidInputError
from sessiondb.model import MessageDraft, bounds
from sessiondb.model.draft import MessageFields
from sessiondb.model.handles import (
    Leaf,
    MessageHandle,
    MessageRef,
    PartHandle,
    PoppedMessage,
    SessionRef,
    message_key,
    place_key,
    session_key,
)
from sessiondb.schema.rows import Blob

R = TypeVar("R")


@checks_arguments
class RevisingVerbs(Queue):
    """The part of `Unit` that depends on what is stored."""

    def __init__(
        self,
        engine: Engine,
        read: ReadMessage | None = None,
        run_reads: RunReads | None = None,
    ) -> None:
        super().__init__(engine)
        self._read, self._run_reads = read, run_reads
        self.staged = Staged()

    def _live_id(self, session: SessionRef) -> str:
        return self.staged.live(session_key(session))

    def snapshot(
        self, reads: Callable[..., Generator[Any, Any, R]]
    ) -> SnapshotResult[R]:
        """Read what this unit finds, before it writes: nothing comes in between.

        *reads* is what `Store.snapshot` takes, and runs in the transaction, perhaps
        several times and in another thread; ``value`` of the result is there after the
        commit. It comes before the writes of the unit: `InvalidInputError` else.
        """
        run = self._run_reads
        if run is None:
            raise InvalidInputError("a unit that reads is begun by a store")
        if not all(isinstance(effect, ReadInUnit) for effect in self.effects):
            raise InvalidInputError("the reads of a unit come before its writes")
        result: SnapshotResult[R] = SnapshotResult()
        fold = CallerFold(lambda connection: run(connection, reads))
        self.add(ReadInUnit(fold, result))
        self.is_alone = True
        return result

    def expect(
        self,
        session: SessionRef,
        *,
        revision: int | None = None,
        leaf: MessageRef | EllipsisType | None = ...,
        absent: bool = False,
    ) -> None:
        """Write this unit only if a session is as it was read; else `ConflictError`.

        *revision* is that of a record that was read, *leaf* the message where the
        session has to continue (None: it has none), *absent* states that it did not
        exist before this unit. Checked in the transaction. A condition comes before
        the other verbs on its session; only `open_session` may come first, and a
        session that it makes was absent.
        """
        session_id, expected_leaf = self._live_id(session), place_key(leaf, "leaf")
        bounds.integer(revision, "revision", least=0)
        is_state = revision is not None or leaf is not ...
        if isinstance(leaf, Leaf) or is_state == absent:
            raise InvalidInputError(
                "expect needs a revision or a message as leaf (or None), or absent=True"
            )
        check_comes_first(self.effects, session_id)
        self.add(Expect(session_id, self.effects, revision, expected_leaf, absent))

    def set_metadata(self, session: SessionRef, metadata: Mapping[str, Any]) -> None:
        """Replace a session's metadata, a JSON object.

        Its key ``share`` is that of `set_share`, and can only be given as it is.
        """
        value = encode.json_column(metadata, "metadata") or "{}"
        columns = (("metadata", value),)
        self.add(SetColumns("set_metadata", self._live_id(session), columns))

    def update_metadata(
        self,
        session: SessionRef,
        fold: Callable[[dict[str, Any] | None], Mapping[str, Any] | None],
    ) -> None:
        """Replace a session's metadata by ``fold(metadata)``, in one transaction.

        *fold* gets a copy of the metadata, None if there is none, and returns what
        `set_metadata` takes, or None to clear it. An equal result writes nothing. It
        runs in the transaction, in the thread that commits, and again if the
        transaction is repeated: it should be short, depend on its argument alone, and
        not use the store: a write there is a `BusyError`. An exception of it discards
        this unit and is raised as it is.
        """
        effect = UpdateMetadata(self._live_id(session), CallerFold(fold))
        self.add(effect)

    def pop(self, session: SessionRef) -> PoppedMessage:
        """Remove the newest message of the live path, the leaf; see `remove`.

        The ``message`` of the result is what was removed, as a read returned it, once
        the unit is committed; None if the session had no message.
        """
        if self._read is None:
            raise InvalidInputError("a unit that pops messages is begun by a store")
        handle = PoppedMessage()
        self.add(Pop(self._live_id(session), handle, self._read, []))
        return handle

    def remove(self, session: SessionRef, messages: Iterable[MessageRef]) -> None:
        """Remove messages; an empty list removes none.

        Their children follow the nearest message before them that is left, and so does
        the leaf. A call whose result is removed waits again. Nothing of their content
        is left in the session; forks keep what they copied.
        """
        keys = tuple([message_key(message, "messages") for message in messages])
        self.add(Remove(self._live_id(session), keys))

    def replace(
        self,
        /,
        session: SessionRef,
        message: MessageRef,
        draft: MessageDraft,
        **fields: Unpack[MessageFields],
    ) -> MessageHandle:
        """Write the content of a message again, in place.

        Role, kind, parts and data are those of *draft*. Its id, seq, parent and times
        stay, and it stays open or finished; so does each further field that neither
        *draft* nor *fields* state. Nothing of the former content is left in the
        session; forks keep what they copied. The ``id`` of the handle is final after
        the commit if *message* is a seq.
        """
        blobs: list[Blob] = []
        content = with_fields(draft, fields)
        row = encode.encode_message(content, blobs)
        if row.time_created is not None or row.time_completed is not None:
            raise InvalidInputError("a message that is replaced keeps its times")
        parts = tuple([part_row(item, blobs) for item in content.parts])
        part_ids = [part.id for part in parts]
        if len(set(part_ids)) < len(parts):
            raise InvalidInputError("two parts of one message have the same id")

        session_id, key = self._live_id(session), message_key(message)
        own_id = content.id is not None
        if own_id and isinstance(key, str) and key != row.id:
            raise InvalidInputError(
                f"message {key} keeps its id; the draft states {row.id}"
            )
        handle = MessageHandle(session_id, str(key))
        handle.parts = tuple(
            [PartHandle(session_id, handle.id, part_id) for part_id in part_ids]
        )
        effect = Replace(session_id, key, row, parts, tuple(blobs), handle, own_id)
        self.add(effect)
        self.follow_append(handle, *handle.parts)
        return handle
