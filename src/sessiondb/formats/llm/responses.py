"""The messages of a conversation of the older generation: rows of ``responses``.

A row is up to four messages, in the order in which a model gets them: the system
prompt, results of tools, the prompt, and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def response_messages(logs: Logs, number: int) -> Iterator[MessageDraft]:
    """Yield the messages of a response by the number of its row.

    Raises `OddRecordError` for a row without an id, or one that is gone.
    """
    row = logs.at("responses", number)
    if row is None:
        raise OddRecordError("is gone")
    check_id(row["id"])

    name, begun = row["id"], time_in_utc(row.get("datetime_utc"))
    results, shown = _results(logs, number)
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

    yield _answer(logs, row, number)


def _system(logs: Logs, row: Row) -> list[PartDraft]:
    beside = logs.fragments("system_fragments", "response_id", row["id"])
    return drafts.fragments(beside) + drafts.texts(row.get("system"))


def _prompt(logs: Logs, row: Row, shown: set[Any]) -> list[PartDraft]:
    """Return a prompt; files that tools returned are *shown* with their results."""
    beside = logs.fragments("prompt_fragments", "response_id", row["id"])
    parts = drafts.fragments(beside) + drafts.texts(row.get("prompt"))

    attached = logs.attachments("prompt_attachments", "response_id", row["id"])
    return parts + [drafts.file(item) for item in attached if item["id"] not in shown]


def _results(logs: Logs, number: int) -> tuple[list[PartDraft], set[Any]]:
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

        parts.append(drafts.result(data))
        shown.update(item["id"] for item in files)
        parts += map(drafts.file, files)

    return parts, shown


def _answer(logs: Logs, row: Row, number: int) -> MessageDraft:
    thoughts = row.get("reasoning")
    parts = [PartDraft("reasoning", thoughts)] if drafts.texts(thoughts) else []
    parts += drafts.texts(row.get("response"))
    for item in logs.belonging("tool_calls", number):
        parts.append(drafts.call(without_none(without(_OF_PART, item))))

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
