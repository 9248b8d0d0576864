"""What every writer asks of a part or an error, whoever wrote it down."""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from typing import Any, NamedTuple

from sessiondb.model import Part


class File(NamedTuple):
    """A file of a message: its content in base64, or an address."""

    mime: str
    name: str | None
    data: str | None
    url: str | None


def file_of(part: Part) -> File:
    """Return a file, wherever its content stands."""
    data = part.data
    mime, name, url = (data.get(key) for key in ("mime", "filename", "url"))
    content = data.get("content")
    encoded = base64.b64encode(content).decode() if isinstance(content, bytes) else None
    url = url if isinstance(url, str) else None
    if encoded is None and url is not None and url.startswith("data:"):
        encoded = inline(url)
    return File(
        mime if isinstance(mime, str) else "application/octet-stream",
        name if isinstance(name, str) else None,
        encoded,
        url,
    )


def inline(url: str) -> str | None:
    """Return the content of a ``data:`` URL in base64; None of one that is malformed."""
    head, comma, body = url.partition(",")
    if not comma:
        return None
    if not head.endswith(";base64"):
        return base64.b64encode(urllib.parse.unquote_to_bytes(body)).decode()
    try:
        return base64.b64encode(base64.b64decode(body, validate=True)).decode()
    except (binascii.Error, ValueError):
        return None


def error_text(error: Any) -> str:
    """Return what an error says, whoever wrote it down."""
    if isinstance(error, dict):
        inner = error.get("data")
        for place in (error, inner if isinstance(inner, dict) else {}):
            if isinstance(place.get("message"), str):
                return str(place["message"])
        return str(error.get("name") or error.get("type") or "")
    return str(error)
