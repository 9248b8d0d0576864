"""A session as it was at one of its messages: the path to it, and nothing of later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sessiondb.dataclass import dataclass, replace
from sessiondb.engine.sql import Statement, as_list
from sessiondb.model import Message, Session
from sessiondb.repository import Read
from sessiondb.repository.transcript import live_path, load, pages_of
from sessiondb.schema.terms import COUNTERS

if TYPE_CHECKING:
    from sessiondb.model import Export

_CALLS_AND_RESULTS = Statement("repository.cuts.CALLS_AND_RESULTS")
_TOTALS = Statement("repository.cuts.TOTALS")


@dataclass(frozen=True, slots=True)
class Cut:
    """The path to a message of a session."""

    session_id: str
    #: The seqs of the path, oldest first, and the same in pages of bounded bytes.
    path: list[int]
    pages: list[list[int]]
    #: The calls on it, by seq and index, whose results were recorded later.
    interrupted: frozenset[tuple[int, int]]

    def load(self, seqs: Sequence[int], *, resolve: bool) -> Read[list[Message]]:
        """Return the messages at some *seqs* of the path; see `transcript.load`.

        A call whose result is not on the path is interrupted, as in a fork.
        """
        loaded = yield from load(self.session_id, seqs, resolve=resolve, live=self.path)
        return [self._without_late_results(entry) for entry in loaded]

    def _without_late_results(self, entry: Message) -> Message:
        if all((entry.seq, item.idx) not in self.interrupted for item in entry.parts):
            return entry
        parts = list(entry.parts)
        for index, item in enumerate(parts):
            if (entry.seq, item.idx) in self.interrupted:
                parts[index] = replace(
                    item, status="error", outcome="interrupted", text=None
                )
        return replace(entry, parts=tuple(parts))


def cut_at(session_id: str, seq: int) -> Read[Cut]:
    """Return the path to the message at *seq* of a session."""
    path = yield from live_path(session_id, leaf=seq)
    pages = yield from pages_of(session_id, path)
    on_path = set(path)
    rows = yield _CALLS_AND_RESULTS, {"sid": session_id}
    last_result: dict[str, int] = {}
    elsewhere: set[str] = set()
    for place, _, type_, call_id in rows:
        if type_ == "tool-result" and place in on_path:
            last_result[call_id] = place
        elif type_ == "tool-result":
            elsewhere.add(call_id)

    # An id may be used again: a result that was recorded before the call is not its.
    interrupted = frozenset(
        (place, index)
        for place, index, type_, call_id in rows
        if type_ == "tool"
        and place in on_path
        and call_id in elsewhere
        and last_result.get(call_id, 0) <= place
    )
    return Cut(session_id, path, pages, interrupted)


def export_at(export: Export, cut: Cut) -> Read[Export]:
    """Return the shell of a session as it was at the end of a cut.

    Its title, todos and settings are those of now, as in a fork. Whatever the
    program keeps beside the messages (`Session.data`, a summary, a share, a revert) is
    left out, and so is the prompt history: they are of now, too, and may quote what
    came later.
    """
    session = yield from _session_at(export.session, cut)
    on_path = set(cut.path)
    return replace(
        export,
        session=session,
        labels=tuple(label for label in export.labels if label.seq in on_path),
        diffs=tuple(diff for diff in export.diffs if diff.seq in on_path),
        prompts=(),
    )


def _session_at(session: Session, cut: Cut) -> Read[Session]:
    params = {"sid": session.id, "seqs": as_list(cut.path)}
    ((*totals, last_time),) = yield _TOTALS, params
    changed: dict[str, Any] = dict(zip(COUNTERS, totals, strict=True))
    metadata = dict(session.metadata)
    metadata.pop("share", None)
    return replace(
        session,
        **changed,
        leaf_seq=cut.path[-1],
        time_updated=last_time,
        summary_additions=None,
        summary_deletions=None,
        summary_files=None,
        summary_diffs=None,
        share_url=None,
        revert=None,
        metadata=metadata,
        data={},
    )
