"""Rows of llm to drafts: known columns become columns, the rest is ``data``.

These functions take their rows apart, so they must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    count,
    is_object,
    take,
    text,
    within,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, load_text, usable_id
from sessiondb.formats.kit.texts import take_json, time_in_utc
from sessiondb.formats.llm import fields
from sessiondb.model import PartDraft, Tokens

Row = dict[str, Any]
Columns = dict[str, Any]
#: Fragments or attachments by their id.
Named = Mapping[Any, Row]


# -- answers ---------------------------------------------------------------------


def answer(row: Row) -> Columns:
    """Return the columns of an answer from a row of ``responses`` or ``turns``."""
    begun = time_in_utc(row.get("datetime_utc"))
    found = {"time_created": begun, **take(row, fields.ANSWER), "tokens": tokens(row)}
    lasted = row.get("duration_ms")
    if begun is not None and count(lasted):
        found["time_completed"] = known_time(begun + lasted)

    said = _json(row.get("response_json"))
    if clean_name(said.get("id")):
        found["response_id"] = said["id"]
    reasons = (as_text(said.get(key)) for key in fields.FINISHED)
    reason = next(filter(None, reasons), None)
    if reason is not None:
        found["finish"] = fields.FINISH.get(reason, "other")

    return found


def tokens(row: Row) -> Tokens | None:
    """Return the tokens of an answer, disjoint; the row keeps its numbers.

    llm has two numbers, and details that each provider counts and names differently.
    """
    found = take(dict(row), fields.TOKENS)
    details = _json(row.get("token_details"))
    for path, (column, whole) in fields.DETAILS.items():
        part = within(details, *path)
        if not count(part):
            continue

        found[column] = part
        if whole in found:
            found[whole] -= part

    # A provider that counts otherwise; what is known of it is in the row.
    known = {column: value for column, value in found.items() if value >= 0}
    return Tokens(**known) if known else None


def _json(value: Any) -> Row:
    """Return the object that a text holds, an empty one for anything else."""
    if not isinstance(value, str):
        return {}

    try:
        return as_object(load_text(value))
    except OddRecordError:
        return {}


# -- parts -----------------------------------------------------------------------


def texts(value: Any) -> list[PartDraft]:
    """Return a text as parts: none for an empty one."""
    return [PartDraft("text", value)] if text(value) and value else []


def fragments(rows: Iterable[Row]) -> list[PartDraft]:
    """Return fragments as parts: texts of files or pages that go with a prompt."""
    return [_fragment(row.pop("content", None), row) for row in rows]


def _fragment(content: Any, row: Row) -> PartDraft:
    known = content if text(content) else ""
    return PartDraft("text", known, data={"synthetic": True, "fragment": row})


def file(row: Row) -> PartDraft:
    """Return an attachment: its content, or the path or address that was given."""
    known = take(row, fields.ATTACHMENT)
    if isinstance(row.get("content"), bytes):
        known["content"] = row.pop("content")
    path = row.get("path")
    if clean_name(path):
        known["filename"] = PurePath(path).name

    return PartDraft("file", data={**known, **without_none(row)})


def call(row: Row) -> PartDraft:
    """Return a call of a tool."""
    if not text(row.get("name")) or not row["name"]:
        return PartDraft("custom", data={"type": "tool_call", **row})

    if text(row.get("arguments")):
        given = take_json(row, "arguments")
    else:
        given = row.pop("arguments", None)
    found = take(row, fields.CALL)
    return PartDraft("tool", **found, input=given, status="pending", data=row)


def result(row: Row) -> PartDraft:
    """Return the result of a call; llm writes the exception that a tool raised."""
    found = take(row, fields.RESULT)
    if row.get("exception") is not None:
        found.update(status="error", outcome="failed")

    return PartDraft("tool-result", **found, data=row)


_TOOLS = {"tool_call": call, "tool_result": result}


def part_drafts(row: Row, payload: Row, pieces: Named, files: Named) -> list[PartDraft]:
    """Return what a row of ``parts`` is, with what its payload refers to.

    A text that borrows from fragments is several parts, which make it when joined.
    """
    kind = as_text(row.get("type")) or ""
    attached = _files(payload, files)
    if kind in _TOOLS:
        named = without_none({"name": row.get("tool_name")})
        return [_TOOLS[kind]({**named, **payload}), *attached]
    if kind == "attachment":
        return attached or [PartDraft("file", data=payload)]

    if not usable_id(kind) or kind in fields.HERE:
        payload["type"] = row.get("type")
        kind = "custom"

    if "text_ref" in payload and row.get("text") is None:
        return _joined(kind, payload, pieces)
    return [PartDraft(kind, **take(row, fields.PART), data=payload)]


def payload_of(row: Row) -> Row:
    """Return the payload of a part; raises `OddRecordError` for one that is odd."""
    value = row.get("payload")
    if value is None:
        return {}

    payload = load_text(value) if isinstance(value, str) else value
    if not is_object(payload):
        raise OddRecordError("has a payload that is not an object")
    check_storable(payload)
    return payload


def _joined(kind: str, payload: Row, pieces: Named) -> list[PartDraft]:
    """Return the pieces of a text: literal ones, and those of fragments."""
    given = as_list(payload.get("text_ref"))
    found = [_piece(kind, as_object(item), pieces) for item in given]
    known = [part for part in found if part is not None]
    # What all pieces make is the text; a fragment may have been removed.
    if known and len(known) == len(given):
        del payload["text_ref"]
    if not known or payload:
        known.append(PartDraft(kind, data=payload))

    return known


def _piece(kind: str, item: Row, pieces: Named) -> PartDraft | None:
    name = item.get("fragment")
    if text(item.get("literal")):
        return PartDraft(kind, item["literal"])
    if type(name) is not int or name not in pieces:
        return None

    row = dict(pieces[name])
    made = _fragment(row.pop("content", None), row)
    return made if kind == "text" else PartDraft(kind, made.text)


def _files(payload: Row, files: Named) -> list[PartDraft]:
    """Return the attachments that a payload names by their ids."""
    return [file(dict(files[name])) for name in refers_to(payload)[1] if name in files]


def refers_to(payload: Row) -> tuple[list[int], list[str]]:
    """Return the ids of the fragments and attachments that a payload names."""
    borrowed = filter(is_object, as_list(payload.get("text_ref")))
    listed = [payload.get("attachment"), *as_list(payload.get("attachments"))]
    pieces = [item.get("fragment") for item in borrowed]
    files = [as_object(item).get("id") for item in listed]
    return [n for n in pieces if type(n) is int], list(filter(text, files))
