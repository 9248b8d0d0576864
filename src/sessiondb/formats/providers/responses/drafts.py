"""Items of the Responses API to drafts: known fields become columns, the rest ``data``.

These functions take their item apart, so it must not be used afterwards. An item is
one message, and a response is one, too: the answer, with the parts of all of its items.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.content import file_at
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    fitting,
    is_object,
    objects_in,
    take_fields,
    text,
    value_at,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.texts import compact_json, take_json
from sessiondb.formats.kit.usage import take_usage
from sessiondb.formats.providers.responses import fields
from sessiondb.formats.providers.rest import block_part, check_parts, with_item
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.model.aliases import FINISH

Record = dict[str, Any]
#: The columns of a message, besides its id and time.
Columns = dict[str, Any]
Parts = tuple[PartDraft, ...]
#: Keys that files have here and blocks do not.
_OF_FILES = frozenset({"url", "mime", "content"})


def message_draft(
    item: Record, message_id: str | None = None, time: int | None = None
) -> MessageDraft:
    """Return the message that an item is.

    Raises `OddRecordError` for an item without a type, or one that cannot be stored.
    """
    # Items of a model that does not speak Responses have its name.
    model = value_at(item, "provider_data", "model")
    columns = _columns_of(item, item_type(item))
    check_parts(columns["parts"])
    if columns["role"] == "assistant":
        columns["model_id"] = fitting(model, clean_name)
    return MessageDraft(id=message_id, time_created=time, **columns)


def answer_draft(response: Record) -> MessageDraft:
    """Return the answer that a response is, with its usage and how it ended.

    Raises `OddRecordError` for an item without a type, or one that cannot be stored.
    """
    parts: list[PartDraft] = []
    for item in objects_in(response.get("output")):
        parts += _columns_of(item, item_type(item))["parts"]
    check_parts(parts)

    return MessageDraft(
        "assistant",
        tuple(parts),
        response_id=fitting(response.get("id"), clean_name),
        model_id=fitting(response.get("model"), clean_name),
        tokens=take_usage({"usage": response.get("usage")}),
        **_end_of_response(response, parts),
    )


def item_type(item: Record) -> str:
    """Return the type of an item; a message may leave it out.

    Raises `OddRecordError` if there is none.
    """
    kind = item.get("type")
    if kind is None:
        for key, untyped_kind in fields.UNTYPED.items():
            if key in item:
                return untyped_kind
    if not usable_id(kind):
        raise OddRecordError("has no type")

    return str(kind)


def _columns_of(item: Record, kind: str) -> Columns:
    """Return role and parts of an item, the first of which holds the rest of it."""
    if kind == "message":
        return _message_columns(item)
    if kind == "reasoning":
        # The provider may sum it up, show it, or only return it encrypted.
        parts = _take_thoughts(item, "summary") + _take_thoughts(item, "content")
        return _columns("assistant", parts or (PartDraft("reasoning"),), item)
    if kind.endswith(fields.RESULTS):
        return _result_columns(item)
    if kind.endswith(fields.CALLS):
        return _call_columns(item, kind)

    # The model is shown it, whatever it is.
    unknown = _columns("event", (PartDraft("custom"),), item)
    return {"kind": "custom_message", **unknown}


def _columns(role: str, parts: Parts, leftover: Record) -> Columns:
    return {"role": role, "parts": with_item(parts, fields.API, leftover)}


def _end_of_response(response: Record, parts: list[PartDraft]) -> Columns:
    """Return how an answer ended; a response does not say that it waits for results."""
    status = as_string(response.get("status"))
    columns: Columns = {}
    if is_object(response.get("error")):
        columns["error"] = response["error"]
    if status == "incomplete":
        reason = as_string(value_at(response, "incomplete_details", "reason"))
        columns["finish"] = FINISH.get(reason, "other")
        if columns["finish"] == "other":
            columns["data"] = {"stop_reason": reason}
    elif status in fields.FINISH:
        is_waiting = any(part.status == "pending" for part in parts)
        columns["finish"] = "tool-calls" if is_waiting else fields.FINISH[status]
    return columns


# -- messages --------------------------------------------------------------------


def _message_columns(item: Record) -> Columns:
    role = as_string(item.get("role"))
    parts = _take_content(item, "content") or (PartDraft("custom"),)
    if role not in fields.ROLES:
        return {"kind": "custom_message", **_columns("event", parts, item)}

    return _columns(fields.ROLES[role], parts, item)


def _take_content(item: Record, key: str) -> Parts:
    """Take the content of an item: a text or a list of blocks."""
    content = item.get(key)
    if text(content):
        del item[key]
        return (PartDraft("text", content),)

    blocks = as_list(content)
    if not blocks or not all(_is_block(block) for block in blocks):
        return ()
    del item[key]
    return tuple(block_part(_part_of_block(block), fields.API) for block in blocks)


def _take_thoughts(item: Record, key: str) -> Parts:
    """Take the texts of a reasoning item, if all are of the type that *key* has."""
    blocks = objects_in(item.get(key))
    if all(block.get("type") == fields.THOUGHTS[key] for block in blocks):
        return _take_content(item, key) if blocks else ()
    return ()


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _part_of_block(block: Record) -> PartDraft:
    kind = block["type"]
    # A key of the block would be mistaken for ours when it is written again.
    if kind in fields.FILES and not _OF_FILES.isdisjoint(block):
        return PartDraft("custom", data=block)
    if kind in fields.TEXTS:
        part_type, table = fields.TEXTS[kind]
        columns = take_fields(block, table)
        # A text that is not there must not come back as an empty one.
        if columns.get("text") is not None:
            return PartDraft(part_type, **columns, data=block)
        return PartDraft("custom", data=block)
    if kind in fields.FILES:
        return _file_part(block)
    return PartDraft("custom", data=block)


def _file_part(block: Record) -> PartDraft:
    """A file by its content in a ``data:`` URL, by an address, or by an id alone."""
    file: Record = {}
    if clean_name(block.get("filename")):
        file["filename"] = block.pop("filename")

    for key in fields.ADDRESSES:
        url = as_text(block.get(key))
        if url is not None:
            # None is the place of the value that the part has.
            block[key] = None
            file |= file_at(url)
            break

    return PartDraft("file", data={**block, **file})


# -- calls -----------------------------------------------------------------------


def _call_columns(item: Record, kind: str) -> Columns:
    """A call of a tool of the program, or one that the provider has made itself."""
    is_of_program = text(item.get("call_id"))
    call = take_fields(item, fields.CALL if is_of_program else fields.SERVED)
    leftover: Record = {}
    if not call.get("tool"):
        # Tools of the provider have no name but the type of their calls.
        call["tool"] = kind.removesuffix(fields.CALLS) or kind
        leftover["unnamed"] = True
    for key in fields.ARGUMENTS:
        if item.get(key) is not None:
            call["input"], mark = _take_arguments(item, key)
            leftover |= mark
            break

    if is_of_program:
        call["status"] = "pending"
    else:
        leftover["served"] = True
        result, key = _served_result(item)
        call |= result
        if key:
            leftover["result"] = key
    part = PartDraft("tool", **call, data={fields.API: leftover})
    return _columns("assistant", (part,), item)


def _take_arguments(item: Record, key: str) -> tuple[Any, Record]:
    """Take arguments, and return them with what is needed to write them again.

    JSON that would be written differently stays in the item.
    """
    if not text(item[key]):
        return item.pop(key), {"value": key}

    arguments = take_json(item, key)
    if arguments == item.get(key):
        del item[key]
    return arguments, {} if key == fields.ARGUMENTS[0] else {"text": key}


def _served_result(item: Record) -> tuple[Columns, str]:
    """Take the result of a call that the provider has made itself, and its key."""
    if text(item.get("error")):
        ended = {"text": item.pop("error"), "status": "error", "outcome": "failed"}
        return ended, "error"

    result: Columns = {}
    if text(item.get("output")):
        result["text"] = item.pop("output")

    # A call of MCP may leave its status out.
    default = ("completed" if result else "running", None)
    state = fields.STATUS.get(as_string(item.get("status")), default)
    result["status"], result["outcome"] = state
    return result, "output" if "text" in result else ""


def _result_columns(item: Record) -> Columns:
    """A result: its texts are that of the call, the files in it follow."""
    leftover: Record = {}
    if _is_block(item.get("output")):
        item["output"] = [item["output"]]
        leftover["single"] = True
    is_text = text(item.get("output"))
    parts = list(_take_content(item, "output"))
    # That of a local shell has the id of its call as its own.
    is_named = text(item.get("call_id"))
    result = take_fields(item, fields.RESULT if is_named else fields.SERVED_RESULT)
    if not is_named:
        leftover["served"] = True
    result["text"] = _text_of_output(item.get("output"))
    if item.get("status") == "failed":
        result.update(status="error", outcome="failed")

    if parts and parts[0].type == "text":
        result["text"] = parts[0].text
        leftover |= as_object(parts[0].data.get(fields.API))
        del parts[0]
    elif not is_text and parts:
        leftover["files"] = True

    part = PartDraft("tool-result", **result, data={fields.API: leftover})
    return _columns("tool", (part, *parts), item)


def _text_of_output(output: Any) -> str:
    """Return a result that is neither a text nor blocks; empty if there is none.

    A shell returns the output of each of its commands.
    """
    if output is None:
        return ""

    streams = [
        command.get(key)
        for command in objects_in(output)
        for key in ("stdout", "stderr")
    ]
    texts = [stream for stream in streams if text(stream)]
    if not texts:
        return compact_json(output)
    return "\n".join(stream for stream in texts if stream)
