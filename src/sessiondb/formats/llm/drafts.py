"""Rows of llm to drafts: known columns become columns, the rest is ``data``.

These functions take their rows apart, so they must not be used afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
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
    lasted = fitting(row.get("duration_ms"), count)
    is_timed = begun is not None and lasted is not None

    stated = _json(row.get("response_json"))
    return {
        **take(row, fields.ANSWER),
        "tokens": tokens(row),
        "time_created": begun,
        "time_completed": known_time(begun + lasted) if is_timed else None,
        "response_id": fitting(stated.get("id"), clean_name),
        "finish": _finish(stated),
    }


def _finish(response: Row) -> str | None:
    """Return why an answer ended, by the first of its names that is found."""
    stated = filter(text, map(response.get, fields.FINISHED))
    reason = next(filter(None, stated), None)
    return None if reason is None else fields.FINISH.get(reason, "other")


def tokens(row: Row) -> Tokens | None:
    """Return the tokens of an answer, disjoint; the row keeps its numbers.

    llm has two numbers, and details that each provider counts and names differently.
    """
    found = take(dict(row), fields.TOKENS)
    details = _json(row.get("token_details"))
    for path, (column, container) in fields.DETAILS.items():
        part = within(details, *path)
        if not count(part):
            continue

        found[column] = part
        if container in found:
            found[container] -= part

    # A negative rest is of a provider that counts otherwise: a count that is wrong is
    # worse than none, and the row has its numbers.
    known = {column: value for column, value in found.items() if value >= 0}
    return Tokens(**known) if known else None


def _json(value: Any) -> Row:
    """Return the object that a text holds, an empty one for anything else."""
    with suppress(OddRecordError):
        return as_object(load_text(as_text(value) or "{}"))

    return {}


# -- parts -----------------------------------------------------------------------


def texts(value: Any) -> list[PartDraft]:
    """Return a text as parts: none for an empty one."""
    return [PartDraft("text", value)] if text(value) and value else []


def fragments(rows: Iterable[Row]) -> list[PartDraft]:
    """Return fragments as parts: texts of files or pages that go with a prompt."""
    return list(map(_fragment, rows))


def _fragment(row: Row) -> PartDraft:
    content = fitting(row.pop("content", None), text, "")
    return PartDraft("text", content, data={"synthetic": True, "fragment": row})


def file(row: Row) -> PartDraft:
    """Return an attachment: its content, or the path or address that was given."""
    known = take(row, fields.ATTACHMENT)
    path = row.get("path")
    if clean_name(path):
        known["filename"] = PurePath(path).name

    return PartDraft("file", data={**known, **without_none(row)})


def call(row: Row) -> PartDraft:
    """Return a call of a tool."""
    # A tool part needs a name: without one the call is kept as it is.
    if not as_text(row.get("name")):
        return PartDraft("custom", data={"type": "tool_call", **row})

    given = take_json(row, "arguments")
    if given is None:
        # The payload of a part has an object, a row of ``tool_calls`` its JSON.
        given = row.pop("arguments", None)

    found = take(row, fields.CALL)
    return PartDraft("tool", **found, input=given, status="pending", data=row)


def result(row: Row) -> PartDraft:
    """Return the result of a call; llm writes the exception that a tool raised."""
    found = take(row, fields.RESULT)
    if row.get("exception") is not None:
        found.update(status="error", outcome="failed")

    return PartDraft("tool-result", **found, data=row)


def part_drafts(row: Row, payload: Row, pieces: Named, files: Named) -> list[PartDraft]:
    """Return the parts of a row, with the rows that its payload refers to."""
    kind = row.get("type")
    attached = [
        file(dict(files[name])) for name in refers_to(payload)[1] if name in files
    ]
    # Without its row, an attachment has the fields of the payload.
    if kind == "attachment":
        return attached or [PartDraft("file", data=payload)]

    if kind in _TOOLS:
        named = without_none({"name": row.get("tool_name")})
        return [_TOOLS[kind]({**named, **payload}), *attached]

    return [*_texts(row, payload, pieces), *attached]


_TOOLS: Mapping[Any, Callable[[Row], PartDraft]] = {
    "tool_call": call,
    "tool_result": result,
}


def _texts(row: Row, payload: Row, pieces: Named) -> list[PartDraft]:
    """Return the text of a part, or one of a type that is kept as it is."""
    kind = row.get("type")
    if not usable_id(kind) or kind in fields.HERE:
        payload["type"], kind = kind, "custom"

    if row.get("text") is None:
        return _joined(str(kind), payload, pieces)
    return [PartDraft(str(kind), **take(row, fields.PART), data=payload)]


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
    """Return the pieces of a text: literal ones, and those of fragments.

    The parts joined are the text, but for the newlines of llm between fragments and a
    prompt. A part without pieces has its payload alone.
    """
    given = as_list(payload.get("text_ref"))
    found = [_piece(kind, as_object(item), pieces) for item in given]
    known = list(filter(None, found))

    # The reference is kept if a piece is missing: a fragment may have been removed.
    if 0 < len(known) == len(given):
        del payload["text_ref"]
        known = list(_unjoined(known))
    if payload or not known:
        known.append(PartDraft(kind, data=payload))

    return known


def _unjoined(pieces: list[PartDraft]) -> Iterator[PartDraft]:
    """Yield pieces without the newlines that llm joins fragments and a prompt by."""
    yield from pieces[:1]
    for before, piece in pairwise(pieces):
        is_joined = "fragment" in before.data and "fragment" not in piece.data
        said = str(piece.text).removeprefix("\n") if is_joined else piece.text
        # Between two fragments there is nothing else.
        if said or not is_joined:
            yield replace(piece, text=said)


def _piece(kind: str, item: Row, pieces: Named) -> PartDraft | None:
    if text(item.get("literal")):
        return PartDraft(kind, item["literal"])

    row = pieces.get(fitting(item.get("fragment"), integer))
    if row is None:
        return None

    # A row may be borrowed twice, and drafts take rows apart.
    made = _fragment(dict(row))
    return made if kind == "text" else PartDraft(kind, made.text)


def refers_to(payload: Row) -> tuple[list[int], list[str]]:
    """Return the ids of the fragments and attachments that a payload names.

    Only those that a statement can look for: an integer beyond 64 bits and a lone
    surrogate cannot be bound.
    """
    listed = [payload.get("attachment"), *as_list(payload.get("attachments"))]
    pieces = [within(item, "fragment") for item in as_list(payload.get("text_ref"))]
    files = [within(item, "id") for item in listed]

    return list(filter(integer, pieces)), list(filter(clean_text, files))
