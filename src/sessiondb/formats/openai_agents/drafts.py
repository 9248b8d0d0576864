"""Items of the Responses API to drafts: known fields become columns, the rest ``data``.

These functions take their item apart, so it must not be used afterwards. An item is
one message, so that a turn is as many messages as the SDK has rows for it.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.content import embedded, inline
from sessiondb.formats.kit.fields import (
    as_list,
    as_string,
    as_text,
    check_storable,
    clean_name,
    fitting,
    is_object,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.texts import compact, take_json
from sessiondb.formats.openai_agents import fields
from sessiondb.model import MessageDraft, PartDraft

Record = dict[str, Any]
#: The columns of a message, besides its id and time.
Columns = dict[str, Any]


def message_draft(item: Record, message_id: str, time: int | None) -> MessageDraft:
    """Return the message that an item is.

    Raises `OddRecordError` for an item without a type, or one that cannot be stored.
    """
    kind = _kind(item)
    check_storable(item)
    found = _message(item) if kind == "message" else _other(item, kind)
    if found["role"] == "assistant":
        # Items of a model that does not speak Responses say where they are from.
        model = within(item, "provider_data", "model")
        found["model_id"] = fitting(model, clean_name)
    return MessageDraft(id=message_id, time_created=time, data=item, **found)


def _kind(item: Record) -> str:
    """Return the type of an item; a message may leave it out."""
    kind = item.get("type")
    if kind is None:
        kind = next(
            (fields.UNTYPED[key] for key in fields.UNTYPED if key in item), None
        )
    if not usable_id(kind):
        raise OddRecordError("has no type")

    return str(kind)


def _other(item: Record, kind: str) -> Columns:
    if kind == "reasoning":
        return _reasoning(item)
    if kind.endswith(fields.RESULTS):
        return _result(item)
    if kind.endswith(fields.CALLS):
        return _call(item, kind)

    return {"role": "event", "kind": kind}


# -- messages --------------------------------------------------------------------


def _message(item: Record) -> Columns:
    role = as_string(item.get("role"))
    parts = _content(item, "content")
    if role not in fields.ROLES:
        return {"role": "event", "kind": "message", "parts": parts}

    if fields.ROLES[role] == role:
        del item["role"]
    return {"role": fields.ROLES[role], "parts": parts}


def _reasoning(item: Record) -> Columns:
    """Reasoning, which the provider may sum up, show, or only return encrypted."""
    del item["type"]
    parts = _content(item, "summary") + _content(item, "content")
    return {"role": "assistant", "parts": parts or (PartDraft("reasoning"),)}


def _content(item: Record, key: str) -> tuple[PartDraft, ...]:
    """Take the content of an item: a text or a list of blocks."""
    content = item.get(key)
    if text(content):
        del item[key]
        return (PartDraft("text", content),)

    blocks = as_list(content)
    if not blocks or not all(map(_is_block, blocks)):
        return ()
    del item[key]
    return tuple(map(_part, blocks))


def _is_block(value: Any) -> bool:
    return is_object(value) and usable_id(value.get("type"))


def _part(block: Record) -> PartDraft:
    kind = block["type"]
    if kind in fields.TEXTS:
        here, table = fields.TEXTS[kind]
        return PartDraft(here, **take(block, table), data=block)
    if kind in ("input_image", "input_file", "computer_screenshot"):
        return _file(block)
    return PartDraft("custom", data=block)


def _file(block: Record) -> PartDraft:
    """A file by its content in a ``data:`` URL, by an address, or by an id alone."""
    known: Record = {}

    if clean_name(block.get("filename")):
        known["filename"] = block.pop("filename")
    for key in ("image_url", "file_url", "file_data"):
        url = as_text(block.get(key))
        if url is not None:
            known |= _addressed(block.pop(key))
            break

    return PartDraft("file", data={**known, **block})


def _addressed(url: str) -> Record:
    encoded = inline(url)
    if encoded is None:
        return {"url": url}
    mime = url[len("data:") :].partition(",")[0].partition(";")[0]
    return embedded(mime, encoded)


# -- calls -----------------------------------------------------------------------


def _call(item: Record, kind: str) -> Columns:
    """A call of a tool of the program, or one that the provider has made itself."""
    has_result = "call_id" in item
    found = take(item, fields.CALL if has_result else fields.SERVED)
    # Tools of the provider have no name but the type of their calls.
    found["tool"] = found.get("tool") or kind.removesuffix(fields.CALLS) or kind
    found.update(_arguments(item))

    if has_result:
        found["status"] = "pending"
    else:
        found.update(_served(item))
    return {"role": "assistant", "parts": (PartDraft("tool", **found),)}


def _arguments(item: Record) -> Columns:
    key = next((key for key in fields.ARGUMENTS if item.get(key) is not None), None)
    if key is None:
        return {}
    if text(item[key]):
        return {"input": _decoded(item, key)}
    return {"input": item.pop(key)}


def _decoded(item: Record, key: str) -> Any:
    found = take_json(item, key)
    if found == item.get(key):
        del item[key]

    return found


def _served(item: Record) -> Columns:
    if text(item.get("error")):
        return {"text": item.pop("error"), "status": "error", "outcome": "failed"}

    found: Columns = {}
    if text(item.get("output")):
        found["text"] = item.pop("output")

    # A call of MCP may leave its status out.
    otherwise = ("completed" if found else "running", None)
    state = fields.STATUS.get(as_string(item.get("status")), otherwise)
    found["status"], found["outcome"] = state
    return found


def _result(item: Record) -> Columns:
    """A result: its texts are that of the call, the files in it follow."""
    if _is_block(item.get("output")):
        item["output"] = [item["output"]]
    parts = list(_content(item, "output"))
    found = take(item, fields.RESULT)
    found["text"] = _structured(item.get("output"))
    if item.get("status") == "failed":
        found.update(status="error", outcome="failed")

    if parts and parts[0].type == "text":
        found.update(text=parts[0].text, data=parts[0].data)
        del parts[0]

    return {"role": "tool", "parts": (PartDraft("tool-result", **found), *parts)}


def _structured(output: Any) -> str:
    """Return a result that is neither a text nor blocks; empty if there is none.

    A shell returns what each of its commands has written.
    """
    if output is None:
        return ""

    commands = filter(is_object, as_list(output))
    streams = (item.get(key) for item in commands for key in ("stdout", "stderr"))
    written = [*filter(text, streams)]
    return "\n".join(filter(None, written)) if written else compact(output)
