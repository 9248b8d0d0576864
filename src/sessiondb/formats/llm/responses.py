"""The messages of a conversation of the older generation: rows of ``responses``.

A row is up to four messages, in the order in which a model gets them: the system
prompt, results of tools, the prompt, and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import without, without_none
from sessiondb.formats.kit.json import OddRecordError, check_id
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import drafts
from sessiondb.formats.llm.database import Logs, Row
from sessiondb.model import MessageDraft, PartDraft

#: Columns that name where a row belongs, or that messages have in another way.
_IMPLIED = frozenset(
    {"id", "conversation_id", "prompt", "system", "response", "reasoning"}
)
_OF_PART = frozenset({"id", "response_id", "tool_id", "instance_id"})


class Unnamed:
    """The calls without an id in a conversation, which some models do not give.

    Such a result belongs to the first such call of its tool: llm keeps both in the same
    order.
    """

    def __init__(self) -> None:
        self._calls: list[PartDraft] = []

    def named(self, call: PartDraft, name: str) -> PartDraft:
        """Return a call with an id: *name*, if it has none of its own."""
        if call.type != "tool" or call.call_id:
            return call
        self._calls.append(replace(call, call_id=name))
        return self._calls[-1]

    def answered(self, result: PartDraft) -> PartDraft:
        """Return a result with the id of its call, as far as that is known."""
        tool = None if result.call_id else result.data.get("name")
        call = next((call for call in self._calls if call.tool == tool), None)
        if call is None:
            return result
        self._calls.remove(call)
        return replace(result, call_id=call.call_id)


def response_messages(
    logs: Logs, number: int, unnamed: Unnamed
) -> Iterator[MessageDraft]:
    """Yield the messages of a response by the number of its row.

    *unnamed* are the calls of the conversation before it. Raises `OddRecordError` for a
    row without an id, or one that is gone.
    """
    row = logs.at("responses", number)
    if row is None:
        raise OddRecordError("is gone")
    check_id(row["id"])

    name, begun = row["id"], time_in_utc(row.get("datetime_utc"))
    results, shown = _results(logs, number, unnamed)
    before = {
        "system": ("system", _system(logs, row)),
        "results": ("tool", results),
        "prompt": ("user", _prompt(logs, row, shown)),
    }
    for ending, (role, parts) in before.items():
        if parts:
            yield MessageDraft(
                role, tuple(parts), f"{name}:{ending}", time_created=begun
            )

    yield _answer(logs, row, number, unnamed)


def _system(logs: Logs, row: Row) -> list[PartDraft]:
    beside = logs.fragments("system_fragments", "response_id", row["id"])
    return drafts.fragments(beside) + drafts.texts(row.get("system"))


def _prompt(logs: Logs, row: Row, shown: set[Any]) -> list[PartDraft]:
    """Return a prompt; files that tools returned are *shown* with their results."""
    beside = logs.fragments("prompt_fragments", "response_id", row["id"])
    parts = drafts.fragments(beside) + drafts.texts(row.get("prompt"))

    attached = logs.attachments("prompt_attachments", "response_id", row["id"])
    return parts + [drafts.file(item) for item in attached if item["id"] not in shown]


def _results(
    logs: Logs, number: int, unnamed: Unnamed
) -> tuple[list[PartDraft], set[Any]]:
    """Return the results that a model was given, and the ids of files in them."""
    parts: list[PartDraft] = []
    shown: set[Any] = set()
    for row in logs.belonging("tool_results", number):
        files = list(
            logs.attachments("tool_results_attachments", "tool_result_id", row["id"])
        )
        instance = logs.named("tool_instances", "id", row.get("instance_id"))
        data = without_none(without(_OF_PART, row))
        if instance is not None:
            data["instance"] = without({"id"}, instance)

        parts.append(unnamed.answered(drafts.result(data)))
        shown.update(item["id"] for item in files)
        parts += map(drafts.file, files)

    return parts, shown


def _answer(logs: Logs, row: Row, number: int, unnamed: Unnamed) -> MessageDraft:
    thoughts = row.get("reasoning")
    parts = [PartDraft("reasoning", thoughts)] if drafts.texts(thoughts) else []
    parts += drafts.texts(row.get("response"))
    for place, item in enumerate(logs.belonging("tool_calls", number), 1):
        call = drafts.call(without_none(without(_OF_PART, item)))
        parts.append(unnamed.named(call, f"{row['id']}:call-{place}"))

    name, rest = row["id"], without_none(without(_IMPLIED, row))
    known = drafts.answer(rest)
    rest = with_schema(logs, rest)
    offered = list(logs.belonging("tool_responses", number))
    if offered:
        rest["tools"] = [item["tool_id"] for item in offered]

    return MessageDraft("assistant", tuple(parts), name, **known, data=rest)


def with_schema(logs: Logs, row: Row) -> Row:
    """Return a row with the schema that its answer follows."""
    schema = logs.named("schemas", "id", row.get("schema_id"))
    return row if schema is None else {**row, "schema": schema.get("content")}
