"""The messages of a thread: a part of the tree of all messages, and its turns.

A message names the one before it, and its own name is a hash of both. So threads share
what they have in common, and a history that was sent with another system prompt is
another path of the same thread. A turn says which of them one call of a model added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import fitting, without, without_none
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import drafts, fields
from sessiondb.formats.llm.database import Logs, Row, Turn
from sessiondb.formats.llm.responses import with_schema
from sessiondb.model import MessageDraft, PartDraft

_IMPLIED = frozenset({"hash", "parent_hash", "role"})
_OF_TURN = frozenset({"thread_id", "tip_message_hash"})


class Step(NamedTuple):
    """A message: its name, that of the one before, the turn that it came with.

    ``ends`` marks the answer of that turn. Without ``has_row`` a turn added nothing: an
    empty answer, or one that was given before.
    """

    name: str
    above: str | None
    turn: int | None
    ends: bool = False
    has_row: bool = True


@dataclass(slots=True)
class Walk:
    """The steps of a thread, parents before children; ``leaf`` is its live end."""

    steps: list[Step] = field(default_factory=list)
    leaf: str | None = None
    missing: list[str] = field(default_factory=list)
    #: The name under which the messages after a message have it as the one before.
    names: dict[Any, str] = field(default_factory=dict)
    #: Parent and role of each message, by its hash.
    _tree: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    #: Parents of the messages that have no step yet.
    _ahead: dict[Any, Any] = field(default_factory=dict)

    def climb(self, logs: Logs, tip: Any) -> None:
        """Read the path to *tip*, as far as it is not known."""
        while usable_id(tip) and tip not in self._tree:
            found = logs.above(tip)
            if found is None:
                self.missing.append(tip)
                return

            self._tree[tip] = found
            self._ahead[tip] = found[0]
            tip = found[0]

    def unanswered(self, turns: list[Turn]) -> set[str]:
        """Return the answers that none of *turns* made: those of other threads."""
        found = {name for name, (_, role) in self._tree.items() if role == "assistant"}
        for turn in turns:
            name = turn.tip
            while name in found and name != turn.parent:
                found.discard(name)
                name = self._tree[name][0]

        return found

    def add(self, turn: Turn) -> None:
        """Add the steps of a turn: the messages it was given, and those it added."""
        self._lead(turn.parent, turn.number)
        is_answered = self._lead(turn.tip, turn.number, is_answer=True)

        if not is_answered and usable_id(turn.id):
            self._bare(turn)

    def end(self, tip: Any) -> None:
        """Add the messages without a turn, and the end."""
        self._lead(tip, None)
        self.leaf = self.names.get(tip)

    def _lead(self, tip: Any, turn: int | None, *, is_answer: bool = False) -> bool:
        """Add the steps to *tip* that are not there yet; return whether any was.

        *tip* itself ends the turn if it is the answer.
        """
        path: list[tuple[str, Any]] = []
        # Each message is taken once, so a cycle ends where it began.
        name = tip
        while name in self._ahead:
            above = self._ahead.pop(name)
            path.append((name, above))
            name = above

        for name, above in reversed(path):
            ends = is_answer and name == tip
            self.steps.append(Step(name, self.names.get(above), turn, ends))
            self.names[name] = name

        return bool(path)

    def _bare(self, turn: Turn) -> None:
        """Add an answer without a message: the next step continues from it."""
        above = self.names.get(turn.tip)
        self.steps.append(Step(turn.id, above, turn.number, ends=True, has_row=False))

        # After no message, the roots of the tree would continue from it.
        if turn.tip is not None:
            self.names[turn.tip] = turn.id


def walk(logs: Logs, thread: str, tip: Any) -> Walk:
    """Return the steps of a thread."""
    found = Walk()
    if not logs.has_threads:
        return found

    turns = logs.turns(thread)
    for turn in turns:
        found.climb(logs, turn.parent)
        found.climb(logs, turn.tip)

    found.climb(logs, tip)

    # Only a fork has such answers: the turns of all threads are not read for others.
    elsewhere = found.unanswered(turns)
    if elsewhere:
        # Of turns of several threads that gave the same answer, the first one counts.
        others: dict[str, Turn] = {}
        for turn in logs.turns_at(elsewhere):
            others.setdefault(turn.tip, turn)

        turns = sorted([*others.values(), *turns], key=itemgetter(0))

    for turn in turns:
        found.add(turn)

    found.end(tip)
    return found


# -- messages --------------------------------------------------------------------


def step_message(logs: Logs, step: Step) -> tuple[MessageDraft, str | None]:
    """Return the message of a step, and the id of the turn that it answers.

    Raises `OddRecordError`.
    """
    turn = None if step.turn is None else logs.at("turns", step.turn)
    draft = MessageDraft("assistant", (), step.name)
    if step.has_row:
        draft = _message(logs, step.name)

    if turn is None:
        return draft, None

    # A prompt has no time of its own: it was sent when the turn began.
    if not step.ends:
        return replace(draft, time_created=time_in_utc(turn.get("datetime_utc"))), None

    name = turn["id"]
    row = without_none(without(_OF_TURN, turn))
    known = drafts.answer(row)
    data = {**draft.data, "turn": with_schema(logs, row) | _beside(logs, name)}
    return replace(draft, **known, data=data), fitting(name, usable_id)


def _beside(logs: Logs, turn: Any) -> Row:
    """Return the rows of other tables on a turn."""
    pieces = logs.fragments("turn_fragments", "turn_id", turn, "kind")
    found: Row = {
        "tools": logs.tools(turn),
        "fragments": [without({"content"}, row) for row in pieces],
        "instances": list(logs.instances(turn)),
    }
    return {key: value for key, value in found.items() if value}


def _message(logs: Logs, name: str) -> MessageDraft:
    row = logs.named("messages", "hash", name)
    if row is None:
        raise OddRecordError("is gone")
    check_id(name)

    parts: list[PartDraft] = []
    for draft in chain.from_iterable(_parts(logs, part) for part in logs.parts(name)):
        _add(parts, draft)

    role = row.get("role")
    data = without_none(without(_IMPLIED, row))
    if role in fields.ROLES:
        return MessageDraft(role, tuple(parts), name, data=data)

    kind = fitting(role, usable_id, "message")
    return MessageDraft("event", tuple(parts), name, kind, data=data)


def _add(parts: list[PartDraft], draft: PartDraft) -> None:
    """Add a part; a result beside its call, of a tool of the provider, goes into it."""
    is_named = draft.type == "tool-result" and draft.call_id is not None
    wanted = ("tool", "pending", draft.call_id)
    calls = [(part.type, part.status, part.call_id) for part in parts]
    if not is_named or wanted not in calls:
        parts.append(draft)
        return

    place = calls.index(wanted)
    asked = parts[place]
    parts[place] = replace(
        asked,
        text=draft.text,
        status=draft.status or "completed",
        outcome=draft.outcome,
        data={**asked.data, "result": draft.data},
    )


def _parts(logs: Logs, row: Row) -> Iterator[PartDraft]:
    payload = drafts.payload_of(row)
    pieces, files = drafts.refers_to(payload)
    yield from drafts.part_drafts(
        row,
        payload,
        _found(logs, "fragments", pieces),
        _found(logs, "attachments", files),
    )


def _found(logs: Logs, table: str, names: list[Any]) -> dict[Any, Row]:
    rows = {name: logs.named(table, "id", name) for name in names}
    return {name: row for name, row in rows.items() if row is not None}
