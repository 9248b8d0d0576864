"""The messages of a thread: a part of the tree of all messages, and what turns say.

A message names the one before it, and its own name is a hash of both. So threads share
what they have in common, and a history that was sent with another system prompt is
another path of the same thread. A turn says which of them one call of a model added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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

    ``ends`` says that it is the answer of that turn. Without ``has_row`` a turn added
    nothing: an empty answer, or one that was given before.
    """

    name: str
    above: str | None
    turn: int | None
    ends: bool = False
    has_row: bool = True


@dataclass(slots=True)
class Walk:
    """The steps of a thread, parents before children; ``leaf`` is where it goes on."""

    steps: list[Step] = field(default_factory=list)
    leaf: str | None = None
    missing: list[str] = field(default_factory=list)
    #: The name under which the messages after a message have it as the one before.
    names: dict[str, str] = field(default_factory=dict)
    #: Parent and role of each message, by its hash.
    _tree: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def climb(self, logs: Logs, tip: Any) -> None:
        """Read the path to *tip*, as far as it is not known."""
        while usable_id(tip) and tip not in self._tree:
            found = logs.above(tip)
            if found is None:
                self.missing.append(tip)
                return
            self._tree[tip] = found
            tip = found[0]

    def path(self, tip: Any) -> list[str]:
        """Return the messages to *tip* that have no step yet, the oldest first."""
        found: dict[str, None] = {}
        while tip in self._tree and tip not in self.names and tip not in found:
            found[tip] = None
            tip = self._tree[tip][0]

        return list(found)[::-1]

    def unanswered(self, turns: list[Turn]) -> set[str]:
        """Return the answers that none of *turns* made: those of other threads."""
        found = {name for name, (_, role) in self._tree.items() if role == "assistant"}
        for turn in turns:
            name = turn.tip
            while name in self._tree and name != turn.parent and name in found:
                found.discard(name)
                name = self._tree[name][0]

        return found

    def add(self, turn: Turn) -> None:
        """Add the steps of a turn: what it was given, and what it added."""
        for name in self.path(turn.parent):
            self._step(name, turn.number)

        added = self.path(turn.tip)
        for name in added:
            self._step(name, turn.number, ends=name == turn.tip)

        if not added and usable_id(turn.id):
            self._bare(turn)

    def end(self, tip: Any) -> None:
        """Add what no turn says, and the end."""
        for name in self.path(tip):
            self._step(name, None)

        self.leaf = self.names.get(tip) if isinstance(tip, str) else None

    def _step(self, name: str, turn: int | None, *, ends: bool = False) -> None:
        above = self._tree[name][0]
        self.names[name] = name
        before = self.names.get(above) if isinstance(above, str) else None
        self.steps.append(Step(name, before, turn, ends))

    def _bare(self, turn: Turn) -> None:
        """Add an answer without a message: what comes next continues from it."""
        tip = turn.tip if isinstance(turn.tip, str) else None
        above = self.names.get(tip) if tip is not None else None
        self.steps.append(Step(turn.id, above, turn.number, ends=True, has_row=False))
        if tip is not None:
            self.names[tip] = turn.id


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
    draft = _message(logs, step.name) if step.has_row else _empty(step.name)
    if turn is None:
        return draft, None
    if not step.ends:
        return replace(draft, time_created=time_in_utc(turn.get("datetime_utc"))), None

    name = turn["id"]
    row = without_none(without(_OF_TURN, turn))
    known = drafts.answer(row)
    data = {**draft.data, "turn": with_schema(logs, row) | _beside(logs, name)}
    return replace(draft, **known, data=data), name if usable_id(name) else None


def _empty(name: str) -> MessageDraft:
    return MessageDraft("assistant", (), name)


def _beside(logs: Logs, turn: Any) -> Row:
    """Return what other tables say of a turn."""
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
    for part in logs.parts(name):
        for draft in _parts(logs, part):
            _add(parts, draft)

    role = row.get("role")
    data = without_none(without(_IMPLIED, row))
    if role in fields.ROLES:
        return MessageDraft(role, tuple(parts), name, data=data)
    kind = fitting(role, usable_id, "message")
    return MessageDraft("event", tuple(parts), name, kind, data=data)


def _add(parts: list[PartDraft], draft: PartDraft) -> None:
    """Add a part; a result beside its call, of a tool of the provider, goes into it."""
    calls = (
        place
        for place, part in enumerate(parts)
        if part.type == "tool" and part.status == "pending"
        if part.call_id == draft.call_id is not None
    )
    place = next(calls, None) if draft.type == "tool-result" else None
    if place is None:
        parts.append(draft)
        return

    parts[place] = replace(
        parts[place],
        text=draft.text,
        status=draft.status or "completed",
        outcome=draft.outcome,
        data={**parts[place].data, "result": draft.data},
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
