"""Values to stored bytes and back: the only place that knows the encoding.

``data`` is MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md),
``input``, ``error`` and the other JSON columns are JSON text. Rules, one each:

* lone surrogates in ``data`` are kept (as three-byte UTF-8), in JSON text they
  are ``\\u`` escapes, and so is NUL;
* integers beyond 64 bits, map keys that are not strings, NaN in JSON, nesting
  deeper than `MAX_DEPTH` and objects that are not plain data are refused;
* decoding builds plain data only: no extension types, no hooks, no fallback.

The content of a blob is compressed by zlib, unless it is a text: the search index, the
views and a shell read those. Its name and its size are those of the content itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgpack

from sessiondb.errors import CodecError, abridged
from sessiondb.patterns import late_pattern

#: Deepest nesting of lists and maps that is stored.
MAX_DEPTH = 400
#: A value of this many bytes or more lives in the blob table.
BLOB_BYTES = 1024
#: Key of the bytes of a file in ``data``.
CONTENT = "content"
UTF8, MSGPACK, BINARY = "utf-8", "msgpack", "binary"
#: How the encoding of a blob ends whose content is compressed.
COMPRESSED = "+zlib"
#: The level of zlib. Of raw records (11 KB each) 4 leaves 8 % fewer bytes in 1.3 times
#: the time, 6 leaves 10 % fewer in 1.8 times the time.
_LEVEL = 1
#: The largest share of the content that is worth decompressing at every read.
_WORTH = 0.9
#: Bytes at the beginning of a content by which to decide whether it is worth it.
_SAMPLE_BYTES = 1 << 16
#: Bytes that are decompressed at a time: zlib makes at most 1,032 times as many.
_STEP_BYTES = 1 << 14
#: The longest value of SQLite, in bytes.
_MOST_BYTES = 10**9

_unpack = msgpack.unpackb
_readable_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
)
_ascii_json = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def pack(value: Any) -> bytes:
    """Encode plain data as MessagePack; raises `CodecError`."""
    try:
        packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CodecError(f"cannot be stored as data: {error}") from error
    return packed


def pack_data(data: Mapping[str, Any]) -> bytes | None:
    """Encode a ``data`` mapping; an empty one is None. Raises `CodecError`."""
    if type(data) is not dict and not isinstance(data, Mapping | None):
        raise CodecError(f"data must be a mapping, not {abridged(data)}")
    if not data:
        return None

    plain = data if type(data) is dict else dict(data)
    _check_keys(plain)
    return pack(plain)


_PAIR = late_pattern("[\ud800-\udbff][\udc00-\udfff]")
_HALF = late_pattern("[\ud800-\udfff]")
_SCALARS = frozenset({str, int, float, bool, type(None), bytes})
#: As tuples: a union would be made again at each check. One of the extensions is a
#: tuple, too.
_LISTS, _EXTENSIONS = (list, tuple), (msgpack.ExtType, msgpack.Timestamp)


def _check_keys(value: Any, name: str = "data", level: int = 0) -> None:
    if level > MAX_DEPTH:
        raise CodecError(f"{name} is nested deeper than {MAX_DEPTH}")
    # Most values are scalars: no call for those.
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise CodecError(f"keys of {name} must be strings, not {abridged(key)}")
            if type(item) not in _SCALARS:
                _check_keys(item, name, level + 1)
    elif isinstance(value, _EXTENSIONS):
        raise CodecError(f"{name} cannot hold {abridged(value)}")
    elif isinstance(value, _LISTS):
        for item in value:
            if type(item) not in _SCALARS:
                _check_keys(item, name, level + 1)


def split_content(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes | None]:
    """Return *data* without the content of a file, and that content or None.

    The content is the first value under the key ``content``, at the top or in a map
    below, if it is bytes and `BLOB_BYTES` or longer. None takes its place, so that
    `join_content` finds it again. Stored by itself it is one blob for all names.
    """
    place = _content_at(data) if data else None
    if place is None:
        return data, None

    key, holder = place
    content = holder[CONTENT]
    if type(content) is not bytes or len(content) < BLOB_BYTES:
        return data, None

    others = {**holder, CONTENT: None}
    return (others if key is None else {**data, key: others}), content


def join_content(data: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """Return *data* with *content* where `split_content` took it from.

    Raises `CodecError`.
    """
    place = _content_at(data)
    if place is None:
        raise CodecError("stored data has no place for its content")
    key, holder = place
    filled = {**holder, CONTENT: content}
    return filled if key is None else {**data, key: filled}


def _content_at(data: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]] | None:
    if CONTENT in data:
        return None, data
    for key, value in data.items():
        if isinstance(value, Mapping) and CONTENT in value:
            return key, value
    return None


def unpack_part(packed: bytes | None, blob: bytes | None) -> dict[str, Any]:
    """Decode the ``data`` of a part from its own bytes and those of its blob.

    Both together are data and its content; a blob alone is all of the data.
    Raises `CodecError`.
    """
    if blob is None:
        return unpack(packed)
    if packed is None:
        return unpack(blob)

    return join_content(unpack(packed), blob)


def unpack(packed: bytes | None) -> dict[str, Any]:
    """Decode a ``data`` value; None is ``{}``. Raises `CodecError`."""
    if packed is None:
        return {}
    try:
        value = _unpack(packed, unicode_errors="surrogatepass", ext_hook=_no_extension)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise CodecError(f"stored data cannot be decoded: {error}") from error

    if type(value) is not dict:
        raise CodecError("stored data is not a map")
    return value


def compress_content(content: bytes, encoding: str) -> tuple[str, bytes]:
    """Return the encoding and the bytes with which a content is stored in a blob."""
    if encoding == UTF8 or len(content) < BLOB_BYTES:
        return encoding, content

    # A picture is known by its beginning: trying all of it would take 30 ms a MB.
    sample = content[:_SAMPLE_BYTES]
    data = zlib.compress(sample, _LEVEL)
    if len(data) > _WORTH * len(sample):
        return encoding, content

    if len(content) > len(sample):
        data = zlib.compress(content, _LEVEL)
        if len(data) > _WORTH * len(content):
            return encoding, content

    return encoding + COMPRESSED, data


def content_of_blob(size: int, encoding: str, data: bytes) -> bytes:
    """Return the content of a blob, of which a row states *size* and *encoding*.

    Damaged bytes, and those that would be longer than *size*, give the part before:
    its hash is not the name of the blob, by which every reader knows it.
    """
    if not encoding.endswith(COMPRESSED):
        return data

    pieces: list[bytes] = []
    for piece in _decompressed(data):
        size -= len(piece)
        if size < 0:
            break
        pieces.append(piece)
    return b"".join(pieces)


def measure_blob(encoding: str, data: bytes) -> tuple[str, int]:
    """Return the name and the size of a blob by its bytes; memory stays flat."""
    if not encoding.endswith(COMPRESSED):
        return digest(data), len(data)

    hashed, size = hashlib.sha256(), 0
    for piece in _decompressed(data):
        hashed.update(piece)
        size += len(piece)
    return hashed.hexdigest(), size


def _decompressed(data: bytes) -> Iterator[bytes]:
    """Yield what *data* is compressed from, up to where it is damaged."""
    stream = zlib.decompressobj()
    for start in range(0, len(data), _STEP_BYTES):
        try:
            yield stream.decompress(data[start : start + _STEP_BYTES])
        except zlib.error:
            return
        if stream.eof:
            return


def json_of_data(packed: bytes) -> str:
    """Return a stored ``data`` value as JSON text for people.

    *packed* may be from a row of ``blob``, too. Bytes are ``{"base64": …}``; NaN and
    infinities, which JSON does not have, are null. Raises `CodecError`.
    """
    # A map of MessagePack never begins with the byte that zlib begins with.
    if packed[:1] == b"x":
        packed = content_of_blob(_MOST_BYTES, COMPRESSED, packed)
    value = _json_value(unpack(packed))
    text = _readable_json.encode(value)
    return text if is_unicode(text) else _ascii_json.encode(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _no_extension(code: int, _: bytes) -> Any:
    raise ValueError(f"extension type {code} is not used by sessiondb")


def depth(value: Any) -> int:
    """Return how deep lists and maps nest; a scalar is 0. Does not recurse."""
    deepest, stack = 0, [(value, 1)]
    while stack and deepest <= MAX_DEPTH:
        item, level = stack.pop()
        if isinstance(item, Mapping):
            item = list(item.values())
        if isinstance(item, list | tuple):
            deepest = max(deepest, level)
            stack += [(item_below, level + 1) for item_below in item]

    return deepest


def json_text(value: Any, name: str = "value") -> str:
    """Write a JSON value as compact JSON text that any UTF-8 store accepts.

    Raises `CodecError`, which calls the value *name*.
    """
    try:
        text = _readable_json.encode(value)
        if not (text.isascii() or is_unicode(text)):
            text = _escape_surrogates(value, text, name)
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"{name} is not a JSON value: {error}") from error

    # A level has two brackets. To count them is faster than to walk the value.
    is_long = len(text) > 2 * MAX_DEPTH
    brackets = text.count("{") + text.count("[") if is_long else 0
    if brackets > MAX_DEPTH and depth(value) > MAX_DEPTH:
        raise CodecError(f"{name} is nested deeper than {MAX_DEPTH}")
    if type(value) not in _SCALARS:
        # json writes the key 1 as "1", which is read back as another value.
        _check_keys(value, name)

    return text


def _escape_surrogates(value: Any, text: str, name: str) -> str:
    """Return JSON with lone surrogates as escapes.

    Raises `CodecError` for two in a row.
    """
    if _PAIR.search(text):
        raise CodecError(
            f"{name}: JSON would join two lone surrogates into one character"
        )
    return _ascii_json.encode(value)


def is_unicode(text: str) -> bool:
    """Return whether *text* has no lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(text: str) -> tuple[str, bool]:
    """Return *text* as people and SQLite can read it, and whether that differs.

    NUL becomes U+2400 (C functions stop at NUL), a lone surrogate U+FFFD.
    """
    shown = text.replace("\0", "\u2400") if "\0" in text else text
    if not (shown.isascii() or is_unicode(shown)):
        shown = _HALF.sub("\ufffd", shown)
    return shown, shown is not text


_SUBSTITUTES = ("\u2400".encode(), "\ufffd".encode())


def has_substitutes(text: bytes) -> bool:
    """Return whether *text*, as UTF-8, may be what `readable` made of another one."""
    return not text.isascii() and any(mark in text for mark in _SUBSTITUTES)


def digest(value: bytes) -> str:
    """Return the SHA-256 of *value* in hex: the name of a blob."""
    return hashlib.sha256(value).hexdigest()


def usage_key(
    source: str,
    name: str,
    model: str | None,
    time: int | None,
    tokens: Iterable[float | None],
) -> str:
    """Return the key under which the cost of one answer is counted once.

    *name* is the response or message id, *time* that of the creation; the key is 32 hex
    digits.
    """
    facts = (source, name, model, time, *tokens)
    # Every answer gets here, and to make JSON takes three times as long.
    text = "\0".join(["" if fact is None else str(fact) for fact in facts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


#: The key of a part's ``data`` that holds the exact form of its ``text``.
EXACT = "text_exact"
_MARK = "~"


def guard(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a caller's data without our own key: such a key gets one more ``~``."""
    if not data or not any(type(key) is str and key.endswith(EXACT) for key in data):
        return data
    return {
        _MARK + key if _is_exact(key) else key: value for key, value in data.items()
    }


def unguard(data: dict[str, Any]) -> dict[str, Any]:
    """Return stored data without our own key as the caller gave it; undoes `guard`."""
    return {key[1:] if _is_exact(key) else key: value for key, value in data.items()}


def _is_exact(key: object) -> bool:
    return type(key) is str and key.lstrip(_MARK) == EXACT
