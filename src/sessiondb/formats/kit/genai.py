"""Content of Google's GenAI API, as Gemini CLI and Qwen Code record it.

A message has a list of parts, each an object with one key that says what it is: text,
a thought, a call, its response, or a file. Older records have a text instead of the
list, or a single part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.content import embedded_file
from sessiondb.formats.kit.blocks import mark_synthetic
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    is_object,
    list_or_item,
    objects_in,
    take_fields,
    text,
    value_at,
)
from sessiondb.formats.kit.files import read_small
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.spelled import not_null
from sessiondb.formats.kit.texts import compact_json, time_of_text
from sessiondb.formats.kit.usage import CACHES, REASONING, disjoint_tokens
from sessiondb.model import MessageDraft, PartDraft, Tokens

Record = dict[str, Any]
#: Returns the columns of a record of a type, by the fields of `MessageDraft`.
Make = Callable[[Record, str], dict[str, Any]]
#: The heading of files that a prompt mentions (``REFERENCE_CONTENT_START``).
_FILES = "--- Content from referenced files ---"
#: The keys of parts that are files.
_FILE_KEYS = frozenset({"inlineData", "fileData"})
#: Characters of a result in which the file is named that has all of it.
_NAMED_WITHIN = 2000

CALL: Fields = {
    "id": ("call_id", clean_text),
    "name": ("tool", clean_name),
    "args": ("input", not_null),
}
#: The two keys that programs answer a call under; extensions use others.
OUTPUT: Fields = {
    "id": ("call_id", clean_text),
    "response": {"output": ("text", text)},
}
ERROR: Fields = {"id": ("call_id", clean_text), "response": {"error": ("text", text)}}
FILE: Fields = {"fileUri": ("url", clean_text), "mimeType": ("mime", clean_text)}


def parts_of(content: Any) -> Iterator[PartDraft]:
    """Yield the parts of a content; their objects are taken apart."""
    for value in list_or_item(content):
        if value not in (None, ""):
            yield from _parts_of_value(value)


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content that are not thoughts."""
    values = list_or_item(content)
    parts = [part for part in objects_in(values) if not part.get("thought")]
    candidates = [*values, *(part.get("text") for part in parts)]
    return [value for value in candidates if text(value)]


def responses_of(content: Any) -> list[Record]:
    """Return the responses to calls in a content."""
    return objects_in(
        [value_at(part, "functionResponse") for part in list_or_item(content)]
    )


def _parts_of_value(value: Any) -> Iterator[PartDraft]:
    if text(value):
        yield PartDraft("text", value)
        return
    if not is_object(value):
        yield PartDraft("custom", data={"part": value})
        return

    if is_object(value.get("functionCall")):
        yield _call_part(value.pop("functionCall"), value)
    elif is_object(value.get("functionResponse")):
        response = value.pop("functionResponse")
        files = as_list(response.get("parts"))
        result = result_of(response)
        yield replace(result, data={**result.data, **value})
        for file in files:
            if _is_file(file):
                yield from _parts_of_value(file)
    elif is_object(value.get("inlineData")):
        yield _inline_part(value.pop("inlineData"), value)
    elif is_object(value.get("fileData")):
        file = value.pop("fileData")
        yield PartDraft("file", data={**value, **take_fields(file, FILE), **file})
    else:
        yield _text_part(value)


def _text_part(value: Record) -> PartDraft:
    columns = take_fields(value, {"text": ("text", text)})
    if not columns:
        return PartDraft("custom", data=value)
    if value.get("thought") is True:
        del value["thought"]
        return PartDraft("reasoning", **columns, data=value)
    return PartDraft("text", **columns, data=value)


def _call_part(call: Record, outer: Record) -> PartDraft:
    """Return a call; *outer* is what is left of the object that it was in."""
    if not clean_name(call.get("name")):
        return PartDraft("custom", data={"functionCall": call, **outer})

    columns = take_fields(call, CALL)
    return PartDraft("tool", **columns, status="pending", data={**call, **outer})


def _inline_part(blob: Record, outer: Record) -> PartDraft:
    """Return a file with its content; *outer* is the rest of the object around it."""
    encoded = blob.pop("data", None)
    if not text(encoded):
        return PartDraft("custom", data={"inlineData": blob, **outer})
    mime = blob.pop("mimeType", None)
    return PartDraft("file", data={**outer, **blob, **embedded_file(mime, encoded)})


def result_of(response: Record) -> PartDraft:
    """Return a response to a call as a part, with its text and whether it failed.

    An ``output`` is a text, and an ``error`` one of a call that failed; anything else
    is its own JSON, and stays in ``data`` as well.
    """
    failed = text(value_at(response, "response", "error"))
    columns = take_fields(response, ERROR if failed else OUTPUT)
    if "text" not in columns and response.get("response") is not None:
        columns["text"] = compact_json(response["response"])

    if failed:
        columns |= {"status": "error", "outcome": "failed"}
    return PartDraft("tool-result", **columns, data=response)


def _is_file(value: Any) -> bool:
    return is_object(value) and not _FILE_KEYS.isdisjoint(value)


def files_of(content: Any) -> Iterator[PartDraft]:
    """Yield the files of a content, and nothing else."""
    for value in as_list(content):
        if _is_file(value):
            yield from _parts_of_value(dict(value))


# -- messages ------------------------------------------------------------------


def draft_of(record: Record, message_id: str, columns_of: Make) -> MessageDraft:
    """Return the message of a record, with the columns of its type.

    Raises `OddRecordError` for one without a type or id, or that cannot be stored.
    """
    check_id(message_id)
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    check_storable(record)

    kind = record.pop("type")
    columns = columns_of(record, kind)
    columns["time_created"] = time_of_text(record.get("timestamp"))
    return MessageDraft(id=message_id, data=record, **columns)


def mark_added_texts(
    parts: Collection[PartDraft], added: re.Pattern[str], typed: Any
) -> tuple[PartDraft, ...]:
    """Return the parts of a prompt, with a mark on texts that the program added.

    Those are texts that *added* matches, mentioned files, and if *typed* is
    the content that was typed, as far as that is recorded, all other texts.
    """
    texts = [part.text or "" for part in parts if part.type == "text"]
    added_texts = set()
    is_after_heading = False
    for prompt_text in texts:
        if prompt_text.lstrip().startswith(_FILES):
            is_after_heading = True
        if is_after_heading or added.match(prompt_text):
            added_texts.add(prompt_text)

    # A prompt that was edited on its way does not have the typed texts.
    typed_texts = set(texts_of(typed)).intersection(texts)
    if typed_texts:
        added_texts |= set(texts) - typed_texts
    return tuple(
        mark_synthetic(part)
        if part.type == "text" and part.text in added_texts
        else part
        for part in parts
    )


def take_tokens(
    usage: Any, counts: Fields, *, total: str | None = None
) -> Tokens | None:
    """Take disjoint counts; None, and nothing is taken, if they contradict each other.

    The input includes tokens from the cache. Thoughts are beside the output, or part
    of it, depending on the provider: the count at *total* shows which.
    """
    record = as_object(usage)
    columns = take_fields(dict(record), counts)
    input_and_output = columns.get("input", 0) + columns.get("output", 0)
    is_within = total is not None and record.get(total) == input_and_output

    tokens = disjoint_tokens(columns, CACHES | REASONING if is_within else CACHES)
    if tokens is not None:
        take_fields(record, counts)
    return tokens


# -- complete outputs ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outputs:
    """The complete outputs of tools, of which a record has only the ends.

    A file is read from inside the folder alone, and comes with the first message that
    names it.
    """

    #: The folder of the files; None if it is not known.
    folder: Path | None
    #: Finds the place of a file below the folder in the path that it had on the machine
    #: that wrote the record.
    place_pattern: re.Pattern[str]
    #: The places of the files that a message before has named.
    seen: set[str] = field(default_factory=set)

    def add_outputs(self, draft: MessageDraft, *further_texts: Any) -> MessageDraft:
        """Return a message with the files that its results or *further_texts* name."""
        if self.folder is None:
            return draft

        results = [part.text for part in draft.parts if part.type.startswith("tool")]
        files = []
        for item in (*further_texts, *results):
            if not text(item):
                continue
            # The name is in the first lines of the text in place of the output.
            for name in self.place_pattern.findall(item[:_NAMED_WITHIN]):
                place = name.replace("\\", "/")
                if place in self.seen:
                    continue
                self.seen.add(place)
                content = read_small(self.folder / place)
                if content is not None:
                    files.append(_output_file(place, content))
        return replace(draft, parts=(*draft.parts, *files))


def _output_file(place: str, content: bytes) -> PartDraft:
    name = place.rpartition("/")[2]
    return PartDraft(
        "file", data={"filename": name, "content": content, "added": place}
    )
