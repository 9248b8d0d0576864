"""Content of Google's GenAI API, as Gemini CLI and Qwen Code record it.

A message has a list of parts, each an object with one key that says what it is: text,
a thought, a call, its response, or a file. Older records have a text instead of the
list, or a single part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, dropwhile, filterfalse
from pathlib import Path
from typing import Any

from sessiondb.formats.content import embedded
from sessiondb.formats.kit.blocks import synthetic
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    check_storable,
    clean_name,
    clean_text,
    is_object,
    listed,
    objects_in,
    take,
    text,
    within,
)
from sessiondb.formats.kit.files import read_small
from sessiondb.formats.kit.json import OddRecordError, check_id, usable_id
from sessiondb.formats.kit.spelled import stated
from sessiondb.formats.kit.texts import compact, time_of_text
from sessiondb.formats.kit.usage import CACHES, REASONING, disjoint
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
    "args": ("input", stated),
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
    for value in listed(content):
        if value not in (None, ""):
            yield from _parts(value)


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content that are not thoughts."""
    values = listed(content)
    said = [part.get("text") for part in objects_in(values) if not part.get("thought")]
    return list(filter(text, [*values, *said]))


def responses_of(content: Any) -> list[Record]:
    """Return the responses to calls in a content."""
    return objects_in([within(v, "functionResponse") for v in listed(content)])


def _parts(value: Any) -> Iterator[PartDraft]:
    if text(value):
        yield PartDraft("text", value)
        return
    if not is_object(value):
        yield PartDraft("custom", data={"part": value})
        return

    key = next((key for key in _KINDS if is_object(value.get(key))), None)
    if key is not None:
        yield from _KINDS[key](value.pop(key), value)
        return

    known = take(value, {"text": ("text", text)})
    if not known:
        yield PartDraft("custom", data=value)
    elif value.get("thought") is True:
        del value["thought"]
        yield PartDraft("reasoning", **known, data=value)
    else:
        yield PartDraft("text", **known, data=value)


def _call(call: Record, rest: Record) -> Iterator[PartDraft]:
    if not clean_name(call.get("name")):
        yield PartDraft("custom", data={"functionCall": call, **rest})
        return

    known = take(call, CALL)
    yield PartDraft("tool", **known, status="pending", data={**call, **rest})


def _response(response: Record, rest: Record) -> Iterator[PartDraft]:
    more = as_list(response.get("parts"))
    part = result_of(response)
    yield replace(part, type="tool-result", data={**part.data, **rest})
    for value in filter(_is_file, more):
        yield from _parts(value)


def result_of(response: Record) -> PartDraft:
    """Return a response to a call as a part, with its text and whether it failed.

    An ``output`` is a text, and an ``error`` one of a call that failed; anything else
    is its own JSON, and stays in ``data`` as well.
    """
    failed = text(within(response, "response", "error"))
    known = take(response, ERROR if failed else OUTPUT)
    if "text" not in known and response.get("response") is not None:
        known["text"] = compact(response["response"])

    if failed:
        known |= {"status": "error", "outcome": "failed"}
    return PartDraft("tool-result", **known, data=response)


def _is_file(value: Any) -> bool:
    return is_object(value) and not _FILE_KEYS.isdisjoint(value)


def files_of(content: Any) -> Iterator[PartDraft]:
    """Yield the files of a content, and nothing else."""
    for value in filter(_is_file, as_list(content)):
        yield from _parts(dict(value))


def _inline(blob: Record, rest: Record) -> Iterator[PartDraft]:
    encoded = blob.pop("data", None)
    if not text(encoded):
        yield PartDraft("custom", data={"inlineData": blob, **rest})
        return
    mime = blob.pop("mimeType", None)
    yield PartDraft("file", data={**rest, **blob, **embedded(mime, encoded)})


def _file(file: Record, rest: Record) -> Iterator[PartDraft]:
    yield PartDraft("file", data={**rest, **take(file, FILE), **file})


_KINDS: Mapping[str, Callable[[Record, Record], Iterator[PartDraft]]] = {
    "functionCall": _call,
    "functionResponse": _response,
    "inlineData": _inline,
    "fileData": _file,
}


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


def marked(
    parts: Collection[PartDraft], added: re.Pattern[str], typed: Any
) -> tuple[PartDraft, ...]:
    """Return the parts of a prompt, with a mark on texts that the program added.

    Those are texts that *added* matches, mentioned files, and if *typed* is
    the content that was typed, as far as that is recorded, all other texts.
    """
    texts = [part.text or "" for part in parts if part.type == "text"]
    marks = {*filter(added.match, texts), *dropwhile(_is_before_files, texts)}

    # A prompt that was edited on its way does not have the typed texts.
    own = set(texts_of(typed)).intersection(texts)
    marks |= set(texts).difference(own) if own else set()
    return tuple(
        synthetic(part) if part.type == "text" and part.text in marks else part
        for part in parts
    )


def _is_before_files(text: str) -> bool:
    return not text.lstrip().startswith(_FILES)


def take_tokens(
    usage: Any, counts: Fields, *, total: str | None = None
) -> Tokens | None:
    """Take disjoint counts; None, and nothing is taken, if they contradict each other.

    The input includes tokens from the cache. Thoughts are beside the output, or part
    of it, depending on the provider: the count at *total* shows which.
    """
    record = as_object(usage)
    known = take(dict(record), counts)
    both = known.get("input", 0) + known.get("output", 0)
    is_within = total is not None and record.get(total) == both

    tokens = disjoint(known, CACHES | REASONING if is_within else CACHES)
    if tokens is not None:
        take(record, counts)
    return tokens


# -- complete outputs ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outputs:
    """The complete outputs of tools, of which a record has only the ends.

    The record has the path that the file had on the machine that wrote it: *named*
    finds the place below *folder* in that. A file is read from inside the folder alone,
    and comes with the first message that names it.
    """

    folder: Path | None
    named: re.Pattern[str]
    seen: set[str] = field(default_factory=set)

    def added(self, draft: MessageDraft, *beside: Any) -> MessageDraft:
        """Return a message with the files that its results, or texts *beside*, name."""
        if self.folder is None:
            return draft

        results = [part.text for part in draft.parts if part.type.startswith("tool")]
        # The name is in the first lines of the text in place of the output.
        said = [item[:_NAMED_WITHIN] for item in filter(text, [*beside, *results])]
        found = chain.from_iterable(map(self.named.findall, said))

        places = dict.fromkeys(name.replace("\\", "/") for name in found)
        new = list(filterfalse(self.seen.__contains__, places))
        self.seen.update(new)
        files = _outputs(self.folder, new)
        return replace(draft, parts=(*draft.parts, *files))


def _outputs(folder: Path, places: list[str]) -> Iterator[PartDraft]:
    for place in places:
        content = read_small(folder / place)
        if content is not None:
            known = {"filename": place.rpartition("/")[2], "content": content}
            yield PartDraft("file", data={**known, "added": place})
