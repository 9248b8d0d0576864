"""Content of Google's GenAI API, as Gemini CLI and Qwen Code record it.

A message has a list of parts, each an object with one key that says what it is: text,
a thought, a call, its response, or a file. Older records have a text instead of the
list, or a single part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.formats.content import embedded
from sessiondb.formats.kit.fields import (
    Fields,
    as_list,
    as_object,
    clean_name,
    clean_text,
    is_object,
    objects_in,
    take,
    text,
    within,
)
from sessiondb.formats.kit.files import read_small
from sessiondb.formats.kit.texts import compact
from sessiondb.model import PartDraft, Tokens

Record = dict[str, Any]

CALL: Fields = {"id": ("call_id", clean_text), "name": ("tool", clean_name)}
#: The two keys that programs answer a call under; extensions use others.
OUTPUT: Fields = {
    "id": ("call_id", clean_text),
    "response": {"output": ("text", text)},
}
ERROR: Fields = {"id": ("call_id", clean_text), "response": {"error": ("text", text)}}
FILE: Fields = {"fileUri": ("url", clean_text), "mimeType": ("mime", clean_text)}


def parts_of(content: Any) -> Iterator[PartDraft]:
    """Yield the parts of a content; their objects are taken apart."""
    for value in values_of(content):
        if value not in (None, ""):
            yield from _parts(value)


def values_of(content: Any) -> list[Any]:
    """Return the parts of a content as they are; one that is not a list is a part."""
    return content if type(content) is list else [content]


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content that are not thoughts."""
    values = values_of(content)
    spoken = [part for part in objects_in(values) if not part.get("thought")]
    return [*filter(text, values), *filter(text, (part.get("text") for part in spoken))]


def responses_of(content: Any) -> list[Record]:
    """Return the responses to calls in a content."""
    return objects_in([within(v, "functionResponse") for v in values_of(content)])


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

    given = {"input": call.pop("args")} if "args" in call else {}
    data = {**call, **rest}
    known = take(data, CALL)
    yield PartDraft("tool", **known, **given, status="pending", data=data)


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
    return is_object(value) and ("inlineData" in value or "fileData" in value)


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


# -- what belongs to messages --------------------------------------------------


def take_tokens(
    usage: Any, counts: Fields, *, total: str | None = None
) -> Tokens | None:
    """Take disjoint counts; None, and nothing is taken, if they contradict each other.

    The input includes what came from the cache. Thoughts are beside the output, or part
    of it, depending on the provider: the count at *total* shows which.
    """
    stated = as_object(usage)
    known = take(dict(stated), counts)
    both = known.get("input", 0) + known.get("output", 0)
    is_within = total is not None and stated.get(total) == both

    inside = {
        "input": known.get("cache_read", 0),
        "output": known.get("reasoning", 0) if is_within else 0,
    }
    own = {name: known[name] - n for name, n in inside.items() if name in known}
    if not known or min(own.values(), default=0) < 0:
        return None

    take(stated, counts)
    return Tokens(**{**known, **own})


def outputs_in(folder: Path, names: Iterable[str]) -> Iterator[PartDraft]:
    """Yield the complete outputs with these *names* in *folder*; missing ones not.

    A record that names such a file has only the ends of the output.
    """
    for name in names:
        content = read_small(folder / name)
        if content is not None:
            known = {"filename": name.rpartition("/")[2], "content": content}
            yield PartDraft("file", data={**known, "added": name})
