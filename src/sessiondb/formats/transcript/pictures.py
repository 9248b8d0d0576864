"""Images of harmless kinds, each of bounded size, and bounded together."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from sessiondb.formats.content import File, content_of_url
from sessiondb.formats.kit.json import containers_in
from sessiondb.formats.transcript.blocks import Picture
from sessiondb.formats.transcript.shapes import DEPTH, first_text, is_object, text_of

#: The kinds that run nothing, and how their content begins.
KINDS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_BEGINNINGS = {magic: kind for kind, magic in KINDS.items()}
#: Bytes of one image, and of all in one file.
EACH, ALL = 5_000_000, 30_000_000
_NAMES = ("filename", "name")
_MIMES = ("mime", "mimeType", "media_type")
_ADDRESSES = ("url", "uri")
#: An object without any of these is not an image.
MARKS = frozenset({*_MIMES, *_ADDRESSES})


class Album:
    """The images of one file; ``losses`` collects which are left out, and why.

    One that *takes* none leaves all of them out.
    """

    def __init__(self, *, takes: bool) -> None:
        self._left = ALL if takes else -1
        self.losses: list[str] = []

    def add_picture(
        self, name: str, mime: str, data: str | None, address: str = ""
    ) -> Picture:
        """Return an image, without its content if it has to be left out."""
        raw = _decode_image(data)
        kind = _kind_of_image(raw)

        # The content decides what it is: a declared type proves nothing.
        if kind is not None and len(raw) <= min(EACH, self._left):
            self._left -= len(raw)
            encoded = base64.b64encode(raw).decode()
            return Picture(name, kind, encoded, len(raw), address)

        picture = Picture(name, mime, None, len(raw), address)
        self.losses.append(f"the image {name} ({picture.facts})")
        return picture

    def pictures_inside(self, data: Any) -> Iterator[Picture]:
        """Yield the images in the result of a call, wherever its agent keeps them."""
        level = [data]
        for _ in range(DEPTH):
            others = []
            for value in level:
                image = _image_of(value)
                if image is None:
                    others.append(value)
                else:
                    yield self.add_picture(
                        image.name or "image", image.mime, image.data
                    )
            level = containers_in(others)


def _kind_of_image(raw: bytes) -> str | None:
    for beginning, kind in _BEGINNINGS.items():
        if raw.startswith(beginning):
            return kind
    return None


def _image_of(value: Any) -> File | None:
    """Return the image that *value*, a record of a result, is; else None."""
    if not is_object(value):
        return None
    name = first_text(value, _NAMES)
    mime, address = text_of(value, _MIMES), text_of(value, _ADDRESSES)

    if address.startswith("data:image/"):
        declared = address.removeprefix("data:").partition(";")[0]
        return File(mime or declared, name, content_of_url(address), None)

    content = value.get("content", value.get("data"))
    if isinstance(content, bytes):
        content = base64.b64encode(content).decode()
    if mime.startswith("image/") and isinstance(content, str):
        return File(mime, name, content, None)
    return None


def _decode_image(data: str | None) -> bytes:
    try:
        return base64.b64decode(data or "", validate=True)
    except ValueError:
        return b""
