"""Files that records refer to: blobs of images, and the complete output of tools.

A reference ``blob:sha256:HASH`` has two meanings: as an ``image_url`` it is a ``data:``
URL, anywhere else the image itself (``session-persistence.ts``). Files are read from
inside the store alone; one that is missing stays a reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import as_list, as_object, as_string, value_at
from sessiondb.formats.kit.files import is_folder, read_small, sorted_entries
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.pi.drafts import BLOB
from sessiondb.model import MessageDraft, PartDraft
from sessiondb.patterns import late_pattern

_REFERENCE = late_pattern(rf"{BLOB}([0-9a-f]{{64}})")
_NUMBER = late_pattern(r"\d{1,9}")


def with_files(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a message with the content of the files that it refers to."""
    parts = [_with_image(part, log) for part in draft.parts]
    parts += _further_images(draft.data, log)
    parts += _tool_outputs(draft.data, log)
    return replace(draft, parts=tuple(parts))


def _with_image(part: PartDraft, log: Path) -> PartDraft:
    if part.type != "file":
        return part
    content = _read_blob(as_string(part.data.get("data")), log)
    if content is None:
        return part
    return replace(part, data={**part.data, "content": content})


def _further_images(data: Mapping[str, Any], log: Path) -> Iterator[PartDraft]:
    """Yield the images in the rest of a record, which stays as it is.

    They are in what a provider was sent, in details of a tool, and in a compaction.
    """
    for key, reference, mime in dict.fromkeys(_image_references(data)):
        content = _read_blob(reference, log)
        if content is None:
            continue

        image: dict[str, Any] = {"mime": mime, "content": content}
        if key == "image_url":
            image = {"url": content.decode("utf-8", "replace")}
        yield PartDraft("file", data={**image, "added": reference})


def _image_references(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the keys, references and media types of images, at any depth."""
    fields = as_object(value)
    for key in ("image_url", "data", "result"):
        reference = as_string(fields.get(key))
        if reference.startswith(BLOB):
            yield key, reference, as_string(fields.get("mimeType")) or "image/png"

    for item in (*as_list(value), *fields.values()):
        yield from _image_references(item)


def _tool_outputs(data: Mapping[str, Any], log: Path) -> Iterator[PartDraft]:
    """Yield the complete output of a tool, which oh-my-pi keeps beside the log."""
    path = ("message", "details", "meta", "truncation", "artifactId")
    number = as_string(value_at(data, *path))
    if _NUMBER.fullmatch(number) is None:
        return

    artifacts = log.with_suffix("")
    with suppress(OddRecordError):
        for entry in sorted_entries(artifacts):
            if not entry.name.startswith(f"{number}."):
                continue
            content = read_small(artifacts / entry.name)
            if content is not None:
                output = {"filename": entry.name, "added": number, "content": content}
                yield PartDraft("file", data=output)


def _read_blob(reference: str, log: Path) -> bytes | None:
    """Return the content that a reference names; None if it is missing."""
    blob = _REFERENCE.fullmatch(reference)
    if blob is None:
        return None

    # The folder lies beside that of the sessions, in which logs are two levels deep.
    for folder in log.parents[:4]:
        blobs = folder / "blobs"
        if is_folder(blobs):
            return read_small(blobs / blob[1])
    return None
