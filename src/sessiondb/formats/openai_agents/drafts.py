"""Items of the Responses API to drafts: known fields become columns, the rest ``data``.

These functions take their item apart, so it must not be used afterwards. An item is
one message, so that a turn is as many messages as the SDK has rows for it.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.content import content_of_url, embedded_file
from sessiondb.formats.kit.fields import (
    as_list,
    as_string,
    as_text,
    check_storable,
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
from sessiondb.formats.openai_agents import fields
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
#: The columns of a message, besides its id and time.
Columns = dict[str, Any]


def message_draft(item: Record, message_id: str, time: int | None) -> MessageDraft:
    """Return the message that an item is.

    Raises `OddRecordError` for an item without a type, or one that cannot be stored.
    """
    kind = _kind_of(item)
    check_storable(item)
    columns = _columns_of(item, kind)
    if columns["role"] == "assistant":
        # Items of a model that does not speak Responses have its name.
        model = value_at(item, "provider_data", "model")
        columns["model_id"] = fitting(model, clean_name)
    return MessageDraft(id=message_id, time_created=time, data=item, **columns)


def _kind_of(item: Record) -> str:
    """Return the type of an item; a message may leave it out."""
    kind = item.get("type")
    if kind is None:
        for key, untyped_kind in fields.UNTYPED.items():
            if key in item:
                return untyped_kind
    if not usable_id(kind):
        raise OddRecordError("has no type")

    return str(kind)


def _columns_of(item: Record, kind: str) -> Columns:
    if kind == "message":
        return _message_columns(item)
    if kind == "reasoning":
        # The provider may sum it up, show it, or only return it encrypted.
        del item["type"]
        parts = _take_content(item, "summary") + _take_content(item, "content")
        return {"role": "assistant", "parts": parts or (PartDraft("reasoning"),)}
    if kind.endswith(fields.RESULTS):
        return _result_columns(item)
    if kind.endswith(fields.CALLS):
        return _call_columns(item, kind)

    return {"role": "event", "kind": kind}


# -- messages --------------------------------------------------------------------


def _message_columns(item: Record) -> Columns:
    role = as_string(item.get("role"))
    parts = _take_content(item, "content")
    if role not in fields.ROLES:
        return {"role": "event", "kind": "message", "parts": parts}

    if fields.ROLES[role] == role:
        del item["role"]
    return {"role": fields.ROLES[role], "parts": parts}


def _take_content(item: Record, key: str) -> tuple[PartDraft, ...]:
    """Take the content of an item: a text or a list of blocks."""
    content = item.get(key)
    if text(content):
        del item[key]
        return (PartDraft("text", content),)

    blocks = as_list(content)
    if not blocks or not all(_is_block(block) for block in blocks):
        return ()
    del item[key]
    return tuple(_part_of_block(block) for block in blocks)


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _part_of_block(block: Record) -> PartDraft:
    kind = block["type"]
    if kind in fields.TEXTS:
        part_type, table = fields.TEXTS[kind]
        return PartDraft(part_type, **take_fields(block, table), data=block)
    if kind in ("input_image", "input_file", "computer_screenshot"):
        return _file_part(block)
    return PartDraft("custom", data=block)


def _file_part(block: Record) -> PartDraft:
    """A file by its content in a ``data:`` URL, by an address, or by an id alone."""
    file: Record = {}
    if clean_name(block.get("filename")):
        file["filename"] = block.pop("filename")

    for key in ("image_url", "file_url", "file_data"):
        url = as_text(block.get(key))
        if url is not None:
            del block[key]
            file |= _content_at(url)
            break

    return PartDraft("file", data={**file, **block})


def _content_at(url: str) -> Record:
    """Return the content that a ``data:`` URL has, or any other address."""
    encoded = content_of_url(url)
    if encoded is None:
        return {"url": url}
    mime = url[len("data:") :].partition(",")[0].partition(";")[0]
    return embedded_file(mime, encoded)


# -- calls -----------------------------------------------------------------------


def _call_columns(item: Record, kind: str) -> Columns:
    """A call of a tool of the program, or one that the provider has made itself."""
    is_of_program = "call_id" in item
    call = take_fields(item, fields.CALL if is_of_program else fields.SERVED)
    # Tools of the provider have no name but the type of their calls.
    call["tool"] = call.get("tool") or kind.removesuffix(fields.CALLS) or kind
    for key in fields.ARGUMENTS:
        if item.get(key) is not None:
            call["input"] = _take_arguments(item, key)
            break

    if is_of_program:
        call["status"] = "pending"
    else:
        call.update(_served_result(item))
    return {"role": "assistant", "parts": (PartDraft("tool", **call),)}


def _take_arguments(item: Record, key: str) -> Any:
    """Take arguments; JSON that would be written differently stays in the item."""
    if not text(item[key]):
        return item.pop(key)

    arguments = take_json(item, key)
    if arguments == item.get(key):
        del item[key]
    return arguments


def _served_result(item: Record) -> Columns:
    """Take the result of a call that the provider has made itself."""
    if text(item.get("error")):
        return {"text": item.pop("error"), "status": "error", "outcome": "failed"}

    result: Columns = {}
    if text(item.get("output")):
        result["text"] = item.pop("output")

    # A call of MCP may leave its status out.
    default = ("completed" if result else "running", None)
    state = fields.STATUS.get(as_string(item.get("status")), default)
    result["status"], result["outcome"] = state
    return result


def _result_columns(item: Record) -> Columns:
    """A result: its texts are that of the call, the files in it follow."""
    if _is_block(item.get("output")):
        item["output"] = [item["output"]]
    parts = list(_take_content(item, "output"))
    result = take_fields(item, fields.RESULT)
    result["text"] = _text_of_output(item.get("output"))
    if item.get("status") == "failed":
        result.update(status="error", outcome="failed")

    if parts and parts[0].type == "text":
        result.update(text=parts[0].text, data=parts[0].data)
        del parts[0]

    return {"role": "tool", "parts": (PartDraft("tool-result", **result), *parts)}


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
