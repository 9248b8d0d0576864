"""Files and errors in the shapes of all programs, for every reader and exporter."""

from __future__ import annotations

import base64
import urllib.parse
from contextlib import suppress
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    fitting,
    text,
    value_at,
    without_none,
)
from sessiondb.model import Part
from sessiondb.patterns import late_pattern

_UNKNOWN_MIME = "application/octet-stream"
#: RFC 2397. Without base64 the body is percent-encoded.
_DATA_URL = late_pattern("(?s)data:(?P<head>[^,]*),(?P<body>.*)")
_IN_BASE64 = ";base64"


class File(NamedTuple):
    """A file of a message: its content in base64, or an address."""

    mime: str
    name: str | None
    #: The content in base64; None if only the address is known.
    data: str | None
    url: str | None


def file_of(part: Part) -> File:
    """Return a file, wherever its content is stored."""
    data = part.data
    url = as_text(data.get("url"))
    encoded = content_of_url(url or "")
    content = data.get("content")
    if isinstance(content, bytes):
        encoded = base64.b64encode(content).decode()

    mime = fitting(data.get("mime"), text, _UNKNOWN_MIME)
    return File(mime, as_text(data.get("filename")), encoded, url)


def embedded_file(mime: Any, encoded: str) -> dict[str, Any]:
    """Return the data of a part ``file`` whose content a record holds in base64.

    The content becomes bytes, which are stored once however often it is repeated.
    Anything that is not base64, or written in another way, becomes a ``data:`` URL, so
    that a writer finds the same characters again.
    """
    data: dict[str, Any] = without_none({"mime": as_text(mime)})
    with suppress(ValueError):
        content = base64.b64decode(encoded, validate=True)
        if base64.b64encode(content).decode() == encoded:
            return data | {"content": content}

    return data | {"url": f"data:{data.get('mime', '')};base64,{encoded}"}


def embedded_text(part: Part) -> str | None:
    """Return the characters that `embedded_file` was given; None if there are none.

    They need not be base64, unlike those of `file_of`.
    """
    match = _DATA_URL.fullmatch(as_string(part.data.get("url")))
    if match and match["head"].endswith(_IN_BASE64):
        return match["body"]
    return file_of(part).data


def file_at(url: str) -> dict[str, Any]:
    """Return the data of a part ``file`` for an address, or for a ``data:`` URL.

    `address_of` makes the same characters of it again.
    """
    encoded = content_of_url(url)
    if encoded is None:
        return {"url": url}
    mime = url[len("data:") :].partition(",")[0].partition(";")[0]
    if url != f"data:{mime};base64,{encoded}":
        return {"url": url, "mime": mime}
    return embedded_file(mime, encoded)


def address_of(part: Part) -> str | None:
    """Return the address of a file, a ``data:`` URL of its content if it has none."""
    url = as_text(part.data.get("url"))
    encoded = embedded_text(part)
    if url is not None or encoded is None:
        return url
    return f"data:{part.data.get('mime', '')};base64,{encoded}"


def content_of_url(url: str) -> str | None:
    """Return the content of a ``data:`` URL in base64; None for anything else."""
    match = _DATA_URL.fullmatch(url)
    if match is None:
        return None

    try:
        if match["head"].endswith(_IN_BASE64):
            content = base64.b64decode(match["body"], validate=True)
        else:
            content = urllib.parse.unquote_to_bytes(match["body"])
    except ValueError:
        return None
    return base64.b64encode(content).decode()


def error_text(error: Any) -> str:
    """Return the message of an error of any program, or else its name; may be empty."""
    if not isinstance(error, dict):
        return str(error)

    # Programs that name the class of an error keep its message one level deeper.
    for message in (error.get("message"), value_at(error, "data", "message")):
        if text(message):
            return message
    return str(error.get("name") or error.get("type") or "")
