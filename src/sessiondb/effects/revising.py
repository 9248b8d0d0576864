"""The verbs of a unit that depend on what is stored, or replace it.

Conditions, and metadata that is computed from the stored one. The transaction decides
them, under the lock: between a read and a write of its own a program would have to look
again whether another process was faster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

from sessiondb.arguments import checks_arguments
from sessiondb.effects import encode
from sessiondb.effects.expect import Expect, check_comes_first
from sessiondb.effects.queue import Queue, Staged
from sessiondb.effects.session import SetColumns, UpdateMetadata
from sessiondb.errors import InvalidInputError
from sessiondb.model import bounds
from sessiondb.model.handles import (
    Leaf,
    MessageRef,
    SessionRef,
    place_key,
    session_key,
)


@checks_arguments
class RevisingVerbs(Queue):
    """The part of `Unit` that depends on what is stored."""

    staged: Staged

    def _live_id(self, session: SessionRef) -> str:
        return self.staged.live(session_key(session))

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
        effect = UpdateMetadata(self._live_id(session), fold, threading.get_ident())
        self.add(effect)
