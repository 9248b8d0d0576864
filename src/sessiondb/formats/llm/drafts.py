"""Rows of llm to drafts: known columns become columns, the rest is ``data``.

These functions take their rows apart, so they must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    check_storable,
    clean_name,
    clean_text,
    count,
    fitting,
    integer,
    is_object,
    take_fields,
    text,
    value_at,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, known_time, load_text, usable_id
from sessiondb.formats.kit.texts import take_json, time_in_utc
from sessiondb.formats.llm import fields
from sessiondb.model import PartDraft, Tokens

Row = dict[str, Any]
Columns = dict[str, Any]
#: Fragments or attachments by their id.
RowsById = Mapping[Any, Row]


# -- answers ---------------------------------------------------------------------


def answer_columns(row: Row) -> Columns:
    """Return the columns of an answer from a row of ``responses`` or ``turns``."""
    begin = time_in_utc(row.get("datetime_utc"))
    duration = fitting(row.get("duration_ms"), count)
    end = None
    if begin is not None and duration is not None:
        end = known_time(begin + duration)

    response = _load_json(row.get("response_json"))
    return {
        **take_fields(row, fields.ANSWER),
        "tokens": _tokens_of(row),
        "time_created": begin,
        "time_completed": end,
        "response_id": fitting(response.get("id"), clean_name),
        "finish": _finish_of(response),
    }


def _finish_of(response: Row) -> str | None:
    """Return why an answer ended, by the first of the keys that has a text."""
    for key in fields.FINISH_KEYS:
        reason = as_text(response.get(key))
        if reason:
            return fields.FINISH.get(reason, "other")
    return None


def _tokens_of(row: Row) -> Tokens | None:
    """Return the tokens of an answer, disjoint; the row keeps its numbers.

    llm has two numbers, and details that each provider counts and names differently.
    """
    counts = take_fields(dict(row), fields.TOKENS)
    details = _load_json(row.get("token_details"))
    for path, (column, container) in fields.DETAILS.items():
        detail = value_at(details, *path)
        if not count(detail):
            continue

        counts[column] = detail
        if container in counts:
            counts[container] -= detail

    # A negative rest is of a provider that counts otherwise: a count that is wrong is
    # worse than none, and the row has its numbers.
    counts = {column: value for column, value in counts.items() if value >= 0}
    return Tokens(**counts) if counts else None


def _load_json(value: Any) -> Row:
    """Return the object that a text holds, an empty one for anything else."""
    with suppress(OddRecordError):
        return as_object(load_text(as_text(value) or "{}"))

    return {}


# -- parts -----------------------------------------------------------------------


def text_parts(value: Any) -> list[PartDraft]:
    """Return a text as parts: none for an empty one."""
    return [PartDraft("text", value)] if text(value) and value else []


def fragment_parts(rows: Iterable[Row]) -> list[PartDraft]:
    """Return fragments as parts: texts of files or pages that belong to a prompt."""
    return [_fragment_part(row) for row in rows]


def _fragment_part(row: Row) -> PartDraft:
    content = fitting(row.pop("content", None), text, "")
    return PartDraft("text", content, data={"fragment": row}, synthetic=True)


def file_part(row: Row) -> PartDraft:
    """Return an attachment: its content, or the path or address that was given."""
    columns = take_fields(row, fields.ATTACHMENT)
    path = row.get("path")
    if clean_name(path):
        columns["filename"] = PurePath(path).name

    return PartDraft("file", data={**columns, **without_none(row)})


def call_part(row: Row) -> PartDraft:
    """Return a call of a tool."""
    # A tool part needs a name: without one the call is kept as it is.
    if not as_text(row.get("name")):
        return PartDraft("custom", data={"type": "tool_call", **row})

    arguments = take_json(row, "arguments")
    if arguments is None:
        # The payload of a part has an object, a row of ``tool_calls`` its JSON.
        arguments = row.pop("arguments", None)

    columns = take_fields(row, fields.CALL)
    return PartDraft("tool", **columns, input=arguments, status="pending", data=row)


def result_part(row: Row) -> PartDraft:
    """Return the result of a call; llm writes the exception that a tool raised."""
    columns = take_fields(row, fields.RESULT)
    if row.get("exception") is not None:
        columns.update(status="error", outcome="failed")

    return PartDraft("tool-result", **columns, data=row)


def parts_of_row(
    row: Row, payload: Row, fragments: RowsById, attachments: RowsById
) -> list[PartDraft]:
    """Return the parts of a row, with the rows that its payload refers to."""
    files = [
        file_part(dict(attachments[name]))
        for name in attachment_ids(payload)
        if name in attachments
    ]
    tool_record = {**without_none({"name": row.get("tool_name")}), **payload}
    match row.get("type"):
        case "attachment":
            # Without its row, an attachment has the fields of the payload.
            return files or [PartDraft("file", data=payload)]
        case "tool_call":
            return [call_part(tool_record), *files]
        case "tool_result":
            return [result_part(tool_record), *files]
        case _:
            return [*_parts_of_text(row, payload, fragments), *files]


def _parts_of_text(row: Row, payload: Row, fragments: RowsById) -> list[PartDraft]:
    """Return the text of a part, or one of a type that is kept as it is."""
    kind = row.get("type")
    if not usable_id(kind) or kind in fields.OWN_PART_TYPES:
        payload["type"], kind = kind, "custom"

    if row.get("text") is None:
        return _referenced_parts(str(kind), payload, fragments)
    return [PartDraft(str(kind), **take_fields(row, fields.PART), data=payload)]


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


def _referenced_parts(kind: str, payload: Row, fragments: RowsById) -> list[PartDraft]:
    """Return the pieces of a text: literal ones, and those of fragments.

    The parts joined are the text, but for the newlines of llm between fragments and a
    prompt. A part without pieces has its payload alone.
    """
    references = as_list(payload.get("text_ref"))
    parts: list[PartDraft] = []
    for reference in references:
        piece = _piece_part(kind, as_object(reference), fragments)
        if piece is not None:
            parts.append(piece)

    # The reference is kept if a piece is missing: a fragment may have been removed.
    if references and len(parts) == len(references):
        del payload["text_ref"]
        parts = list(_without_joining_newlines(parts))
    if payload or not parts:
        parts.append(PartDraft(kind, data=payload))

    return parts


def _without_joining_newlines(pieces: list[PartDraft]) -> Iterator[PartDraft]:
    """Yield pieces without the newlines that llm joins fragments and a prompt by."""
    is_after_fragment = False
    for piece in pieces:
        is_fragment = "fragment" in piece.data
        if is_fragment or not is_after_fragment:
            yield piece
        else:
            # Between two fragments there is nothing else.
            literal = str(piece.text).removeprefix("\n")
            if literal:
                yield replace(piece, text=literal)
        is_after_fragment = is_fragment


def _piece_part(kind: str, reference: Row, fragments: RowsById) -> PartDraft | None:
    if text(reference.get("literal")):
        return PartDraft(kind, reference["literal"])

    row = fragments.get(fitting(reference.get("fragment"), integer))
    if row is None:
        return None

    # A row may be borrowed twice, and drafts take rows apart.
    part = _fragment_part(dict(row))
    return part if kind == "text" else PartDraft(kind, part.text)


# -- references ------------------------------------------------------------------


def fragment_ids(payload: Row) -> list[int]:
    """Return the ids of the fragments that a payload names.

    An integer beyond 64 bits cannot be bound to a statement, and is left out.
    """
    ids = [value_at(item, "fragment") for item in as_list(payload.get("text_ref"))]
    return [number for number in ids if integer(number)]


def attachment_ids(payload: Row) -> list[str]:
    """Return the ids of the attachments that a payload names.

    One with a lone surrogate cannot be bound to a statement, and is left out.
    """
    items = [payload.get("attachment"), *as_list(payload.get("attachments"))]
    ids = [value_at(item, "id") for item in items]
    return [name for name in ids if clean_text(name)]
