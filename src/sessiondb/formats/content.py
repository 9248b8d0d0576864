"""Files and errors of any session, as every exporter needs them."""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import as_object, as_text
from sessiondb.model import Part


class File(NamedTuple):
    """A file of a message: its content in base64, or an address."""

    mime: str
    name: str | None
    data: str | None
    url: str | None


def file_of(part: Part) -> File:
    """Return a file, wherever its content is stored."""
    data = part.data
    url = as_text(data.get("url"))
    content = data.get("content")
    encoded = None
    if isinstance(content, bytes):
        encoded = base64.b64encode(content).decode()
    elif url is not None and url.startswith("data:"):
        encoded = inline(url)

    mime = as_text(data.get("mime"))
    return File(
        "application/octet-stream" if mime is None else mime,
        as_text(data.get("filename")),
        encoded,
        url,
    )


def inline(url: str) -> str | None:
    """Return the content of a ``data:`` URL in base64; None if it is malformed."""
    head, comma, body = url.partition(",")
    if not comma:
        return None

    # Without base64 the body is percent-encoded: RFC 2397.
    if not head.endswith(";base64"):
        return base64.b64encode(urllib.parse.unquote_to_bytes(body)).decode()
    try:
        return base64.b64encode(base64.b64decode(body, validate=True)).decode()
    except (binascii.Error, ValueError):
        return None


def error_text(error: Any) -> str:
    """Return what an error says, whichever program recorded it; empty if nothing."""
    if not isinstance(error, dict):
        return str(error)

    # Programs that name the class of an error keep its message one level deeper.
    for place in (error, as_object(error.get("data"))):
        if isinstance(place.get("message"), str):
            return str(place["message"])
    return str(error.get("name") or error.get("type") or "")
