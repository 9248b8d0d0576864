"""The messages of a thread: a part of the tree of all messages, and its turns.

A message names the one before it, and its own name is a hash of both. So threads share
their common messages, and a history that was sent with another system prompt is
another path of the same thread. A turn names those that one call of a model added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.kit.fields import fitting, without_keys, without_none
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import drafts, fields
from sessiondb.formats.llm.database import LlmLogs, Row, TurnRow
from sessiondb.formats.llm.responses import with_schema
from sessiondb.model import MessageDraft, PartDraft

_IMPLIED = frozenset({"hash", "parent_hash", "role"})
_OF_TURN = frozenset({"thread_id", "tip_message_hash"})


class ThreadStep(NamedTuple):
    """A message of a thread, or an answer without a message."""

    name: str
    #: The name of the message before it.
    parent: str | None
    #: The number of the turn that it came with.
    turn: int | None
    #: Whether it is the answer of that turn.
    is_answer: bool = False
    #: Without a row the turn added nothing: an empty answer, or one that was there.
    has_row: bool = True


@dataclass(slots=True)
class ThreadWalk:
    """The steps of a thread."""

    #: Parents before children.
    steps: list[ThreadStep] = field(default_factory=list)
    #: The live end.
    leaf: str | None = None
    #: The messages that others name, and that are not in the file.
    missing: list[str] = field(default_factory=list)
    #: The name under which the messages after a message have it as the one before.
    _names: dict[Any, str] = field(default_factory=dict)
    #: Parent and role of each message, by its hash.
    _tree: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    #: Parents of the messages that have no step yet.
    _ahead: dict[Any, Any] = field(default_factory=dict)

    def climb_to_root(self, logs: LlmLogs, tip: Any) -> None:
        """Read the path to *tip*, as far as it is not known."""
        while usable_id(tip) and tip not in self._tree:
            link = logs.parent_and_role(tip)
            if link is None:
                self.missing.append(tip)
                return

            self._tree[tip] = link
            self._ahead[tip] = link[0]
            tip = link[0]

    def answers_elsewhere(self, turns: list[TurnRow]) -> set[str]:
        """Return the answers that none of *turns* made: those of other threads."""
        answers = {
            name for name, (_, role) in self._tree.items() if role == "assistant"
        }
        for turn in turns:
            name = turn.tip
            while name in answers and name != turn.parent:
                answers.discard(name)
                name = self._tree[name][0]

        return answers

    def add_turn(self, turn: TurnRow) -> None:
        """Add the steps of a turn: the messages it was given, and those it added."""
        self._add_path(turn.parent, turn.number)
        has_answer = self._add_path(turn.tip, turn.number, ends_turn=True)

        if not has_answer and usable_id(turn.id):
            self._add_bare_answer(turn)

    def add_end(self, tip: Any) -> None:
        """Add the messages without a turn, and the end."""
        self._add_path(tip, None)
        self.leaf = self._names.get(tip)

    def _add_path(self, tip: Any, turn: int | None, *, ends_turn: bool = False) -> bool:
        """Add the steps to *tip* that are not there yet; return whether any was.

        *tip* itself is the answer of the turn if the path *ends* it.
        """
        path: list[tuple[str, Any]] = []
        # Each message is taken once, so a cycle ends at its beginning.
        name = tip
        while name in self._ahead:
            parent = self._ahead.pop(name)
            path.append((name, parent))
            name = parent

        for name, parent in reversed(path):
            is_answer = ends_turn and name == tip
            self.steps.append(
                ThreadStep(name, self._names.get(parent), turn, is_answer)
            )
            self._names[name] = name

        return bool(path)

    def _add_bare_answer(self, turn: TurnRow) -> None:
        """Add an answer without a message: the next step continues from it."""
        parent = self._names.get(turn.tip)
        self.steps.append(
            ThreadStep(turn.id, parent, turn.number, is_answer=True, has_row=False)
        )

        # After no message, the roots of the tree would continue from it.
        if turn.tip is not None:
            self._names[turn.tip] = turn.id


def walk_thread(logs: LlmLogs, thread: str, tip: Any) -> ThreadWalk:
    """Return the steps of a thread; none of a file without threads."""
    walk = ThreadWalk()
    if not logs.has_threads:
        return walk

    turns = logs.turn_rows(thread)
    for turn in turns:
        walk.climb_to_root(logs, turn.parent)
        walk.climb_to_root(logs, turn.tip)

    walk.climb_to_root(logs, tip)

    # Only a fork has such answers: the turns of all threads are not read for others.
    elsewhere = walk.answers_elsewhere(turns)
    if elsewhere:
        # Of turns of several threads that gave the same answer, the first one counts.
        others: dict[str, TurnRow] = {}
        for turn in logs.turns_ending_at(elsewhere):
            others.setdefault(turn.tip, turn)

        turns = sorted([*others.values(), *turns], key=lambda turn: turn.number)

    for turn in turns:
        walk.add_turn(turn)

    walk.add_end(tip)
    return walk


# -- messages --------------------------------------------------------------------


def step_message(logs: LlmLogs, step: ThreadStep) -> tuple[MessageDraft, str | None]:
    """Return the message of a step, and the id of the turn that it answers.

    Raises `OddRecordError`.
    """
    turn = None if step.turn is None else logs.row_at("turns", step.turn)
    draft = MessageDraft("assistant", (), step.name)
    if step.has_row:
        draft = _message_of_row(logs, step.name)

    if turn is None:
        return draft, None

    # A prompt has no time of its own: it was sent when the turn began.
    if not step.is_answer:
        return replace(draft, time_created=time_in_utc(turn.get("datetime_utc"))), None

    name = turn["id"]
    row = without_none(without_keys(_OF_TURN, turn))
    columns = drafts.answer_columns(row)
    row = with_schema(logs, row) | _rows_about_turn(logs, name)
    draft = replace(draft, **columns, data={**draft.data, "turn": row})
    return draft, fitting(name, usable_id)


def _rows_about_turn(logs: LlmLogs, turn: Any) -> Row:
    """Return the rows of other tables on a turn."""
    fragments = logs.fragment_rows("turn_fragments", "turn_id", turn, "kind")
    rows: Row = {
        "tools": logs.tools_of_turn(turn),
        "fragments": [without_keys({"content"}, row) for row in fragments],
        "instances": list(logs.tool_instances(turn)),
    }
    return {key: value for key, value in rows.items() if value}


def _message_of_row(logs: LlmLogs, name: str) -> MessageDraft:
    row = logs.row_with("messages", "hash", name)
    if row is None:
        raise OddRecordError("is gone")
    check_id(name)

    parts: list[PartDraft] = []
    for part_row in logs.part_rows(name):
        for part in _parts_of_row(logs, part_row):
            _add_part(parts, part)

    role = row.get("role")
    data = without_none(without_keys(_IMPLIED, row))
    if role in fields.ROLES:
        return MessageDraft(role, tuple(parts), name, data=data)

    kind = fitting(role, usable_id, "message")
    return MessageDraft("event", tuple(parts), name, kind, data=data)


def _add_part(parts: list[PartDraft], part: PartDraft) -> None:
    """Add a part; a result beside its call, of a tool of the provider, merges into it.

    The call is then complete.
    """
    if part.type == "tool-result" and part.call_id is not None:
        pending_call = ("tool", "pending", part.call_id)
        for position, call in enumerate(parts):
            if (call.type, call.status, call.call_id) == pending_call:
                parts[position] = replace(
                    call,
                    text=part.text,
                    status=part.status or "completed",
                    outcome=part.outcome,
                    data={**call.data, "result": part.data},
                )
                return

    parts.append(part)


def _parts_of_row(logs: LlmLogs, row: Row) -> list[PartDraft]:
    payload = drafts.payload_of(row)
    return drafts.parts_of_row(
        row,
        payload,
        _rows_by_id(logs, "fragments", drafts.fragment_ids(payload)),
        _rows_by_id(logs, "attachments", drafts.attachment_ids(payload)),
    )


def _rows_by_id(logs: LlmLogs, table: str, ids: Iterable[Any]) -> dict[Any, Row]:
    rows = {name: logs.row_with(table, "id", name) for name in ids}
    return {name: row for name, row in rows.items() if row is not None}
