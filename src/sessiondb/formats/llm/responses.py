"""The messages of a conversation of the older generation: rows of ``responses``.

A row is up to four messages, in the order in which a model gets them: the system
prompt, results of tools, the prompt, and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import without_keys, without_none
from sessiondb.formats.kit.json import OddRecordError, check_id
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.llm import drafts
from sessiondb.formats.llm.database import LlmLogs, Row
from sessiondb.model import MessageDraft, PartDraft

#: Columns that name the owner of a row, or that messages have in another way.
_IMPLIED = frozenset(
    {"id", "conversation_id", "prompt", "system", "response", "reasoning"}
)
_IMPLIED_OF_PART = frozenset({"id", "response_id", "tool_id", "instance_id"})


class UnnamedCalls:
    """The calls without an id in a conversation, which some models do not give.

    Such a result belongs to the first such call of its tool: llm keeps both in the same
    order.
    """

    def __init__(self) -> None:
        self._calls: list[PartDraft] = []

    def name_call(self, call: PartDraft, name: str) -> PartDraft:
        """Return a call with an id: *name*, if it has none of its own."""
        if call.type != "tool" or call.call_id:
            return call
        named_call = replace(call, call_id=name)
        self._calls.append(named_call)
        return named_call

    def resolve_result(self, result: PartDraft) -> PartDraft:
        """Return a result with the id of its call, as far as that is known."""
        if result.call_id:
            return result
        for call in self._calls:
            if call.tool == result.data.get("name"):
                self._calls.remove(call)
                return replace(result, call_id=call.call_id)
        return result


def response_messages(
    logs: LlmLogs, number: int, unnamed_calls: UnnamedCalls
) -> Iterator[MessageDraft]:
    """Yield the messages of a response by the number of its row.

    *unnamed_calls* are those of the conversation before it. Raises `OddRecordError` for
    a row without an id, or one that is gone.
    """
    row = logs.row_at("responses", number)
    if row is None:
        raise OddRecordError("is gone")
    check_id(row["id"])

    results, shown_files = _result_parts(logs, number, unnamed_calls)
    for ending, role, parts in (
        ("system", "system", _system_parts(logs, row)),
        ("results", "tool", results),
        ("prompt", "user", _prompt_parts(logs, row, shown_files)),
    ):
        if parts:
            yield MessageDraft(
                role,
                tuple(parts),
                f"{row['id']}:{ending}",
                time_created=time_in_utc(row.get("datetime_utc")),
            )

    yield _answer_message(logs, row, number, unnamed_calls)


def _system_parts(logs: LlmLogs, row: Row) -> list[PartDraft]:
    fragments = logs.fragment_rows("system_fragments", "response_id", row["id"])
    return drafts.fragment_parts(fragments) + drafts.text_parts(row.get("system"))


def _prompt_parts(logs: LlmLogs, row: Row, shown_files: set[Any]) -> list[PartDraft]:
    """Return a prompt; files that tools returned are shown with their results."""
    fragments = logs.fragment_rows("prompt_fragments", "response_id", row["id"])
    parts = drafts.fragment_parts(fragments) + drafts.text_parts(row.get("prompt"))

    for file in logs.attachment_rows("prompt_attachments", "response_id", row["id"]):
        if file["id"] not in shown_files:
            parts.append(drafts.file_part(file))
    return parts


def _result_parts(
    logs: LlmLogs, number: int, unnamed_calls: UnnamedCalls
) -> tuple[list[PartDraft], set[Any]]:
    """Return the results that a model was given, and the ids of files in them."""
    parts: list[PartDraft] = []
    shown_files: set[Any] = set()
    for row in logs.rows_of_response("tool_results", number):
        files = list(
            logs.attachment_rows(
                "tool_results_attachments", "tool_result_id", row["id"]
            )
        )
        instance = logs.row_with("tool_instances", "id", row.get("instance_id"))
        data = without_none(without_keys(_IMPLIED_OF_PART, row))
        if instance is not None:
            data["instance"] = without_keys({"id"}, instance)

        parts.append(unnamed_calls.resolve_result(drafts.result_part(data)))
        for file in files:
            shown_files.add(file["id"])
            parts.append(drafts.file_part(file))

    return parts, shown_files


def _answer_message(
    logs: LlmLogs, row: Row, number: int, unnamed_calls: UnnamedCalls
) -> MessageDraft:
    parts: list[PartDraft] = []
    thoughts = row.get("reasoning")
    if drafts.text_parts(thoughts):
        parts.append(PartDraft("reasoning", thoughts))
    parts += drafts.text_parts(row.get("response"))
    for position, record in enumerate(logs.rows_of_response("tool_calls", number), 1):
        call = drafts.call_part(without_none(without_keys(_IMPLIED_OF_PART, record)))
        parts.append(unnamed_calls.name_call(call, f"{row['id']}:call-{position}"))

    data = without_none(without_keys(_IMPLIED, row))
    columns = drafts.answer_columns(data)
    data = with_schema(logs, data)
    tools = [
        tool["tool_id"] for tool in logs.rows_of_response("tool_responses", number)
    ]
    if tools:
        data["tools"] = tools

    return MessageDraft("assistant", tuple(parts), row["id"], **columns, data=data)


def with_schema(logs: LlmLogs, row: Row) -> Row:
    """Return a row with the schema that its answer follows."""
    schema = logs.row_with("schemas", "id", row.get("schema_id"))
    return row if schema is None else {**row, "schema": schema.get("content")}
