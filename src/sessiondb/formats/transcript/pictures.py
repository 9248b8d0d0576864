"""Images: the kinds that can do nothing, each of bounded size and all together too."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from sessiondb.formats.content import File, inline
from sessiondb.formats.transcript.blocks import Picture

KINDS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
#: Bytes of one image, and of all in one file.
EACH, ALL = 5_000_000, 30_000_000
_DEPTH = 8


class Album:
    """The images of one file; ``losses`` says which stay out, and why."""

    def __init__(self, *, takes: bool) -> None:
        self._takes, self._left = takes, ALL
        self.losses: list[str] = []

    def picture(self, name: str, mime: str, data: str | None) -> Picture:
        """Return an image, without its content where it must stay out."""
        raw = _decoded(data)
        kind = next((k for k, magic in KINDS.items() if raw.startswith(magic)), None)
        fits = kind is not None and len(raw) <= min(EACH, self._left)
        if not (fits and self._takes):
            left = Picture(name, mime, None, len(raw))
            self.losses.append(f"the image {name} ({left.facts})")
            return left
        self._left -= len(raw)
        return Picture(name, kind or mime, base64.b64encode(raw).decode(), len(raw))

    def inside(self, data: Any) -> Iterator[Picture]:
        """Yield the images that a call brought, wherever its agent keeps them."""
        level = [data]
        for _ in range(_DEPTH):
            below: list[Any] = []
            for value in level:
                if isinstance(value, list | tuple):
                    below += value
                elif isinstance(value, Mapping):
                    found = _image(value)
                    if found is None:
                        below += value.values()
                    else:
                        name = found.name or "image"
                        yield self.picture(name, found.mime, found.data)
            level = below


def _image(value: Mapping[str, Any]) -> File | None:
    """Return the image that a record of a result holds, None if it holds none itself."""
    name = _word(value, "filename", "name")
    mime = _word(value, "mime", "mimeType", "media_type") or ""
    address = _word(value, "url", "uri") or ""
    if address.startswith("data:image/"):
        return File(mime or address[5:].partition(";")[0], name, inline(address), None)
    content = value.get("content", value.get("data"))
    if not mime.startswith("image/") or not isinstance(content, str | bytes):
        return None
    data = base64.b64encode(content).decode() if isinstance(content, bytes) else content
    return File(mime, name, data, None)


def _word(value: Mapping[str, Any], *keys: str) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _decoded(data: str | None) -> bytes:
    try:
        return base64.b64decode(data or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
