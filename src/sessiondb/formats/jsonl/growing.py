"""The records that are missing from a log, so that it grows instead of being rewritten.

Two databases say the same about a session in other words: each numbers messages
as they came to it, counts each copy where it may, and names projects its own way.
Such differences are none here, or two people's files would change for ever.
Records about a session that a higher revision made out of date may stay in a
file, until they outweigh what holds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import IO, Any

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.scan import checked
from sessiondb.formats.jsonl.values import record_of

_SEQ = re.compile(rb'^\{"schema_version":1,"seq":\d+,')
_KIND = re.compile(rb'^"time":-?\d+,"type":"(\w+)","session_id":')
_HASH = re.compile(rb'"hash":"([0-9a-f]{64})"')
_INHERITED = b',"inherited":true'
#: Fields that a database names in its own way, or learns later.
_OWN = ("seq", "slug", "directory", "project", "revision", *records.LINEAGE_FIELDS)


def additions(
    file: IO[bytes], lines: Iterable[str], *, whole: bool = True
) -> list[str] | None:
    """Return the *lines* that are missing from a file; None if it must be rewritten.

    A file that is not *whole*, in which something could not be read, is only ever
    added to: what that was, nothing here can know.
    """
    there = {_key(raw) for raw in file}
    ours: set[bytes] = set()
    missing: list[str] = []
    size = 0

    for line in lines:
        raw = line.encode()
        key = _key(raw)
        size += len(raw)
        ours.add(key)
        if key not in there:
            missing.append(line)

    if not whole or there <= ours:
        return missing

    file.seek(0)
    stale = [raw for raw in file if raw.strip() and _key(raw) not in ours]
    outweighed = sum(map(len, stale)) > size
    return missing if not outweighed and all(map(_is_out_of_date, stale)) else None


def _key(raw: bytes) -> bytes:
    """Return what two lines that say the same have in common."""
    line = raw.rstrip(b"\r\n")
    said = _SEQ.sub(b"", line, count=1)
    match = _KIND.match(said)
    kind = "" if match is None else match[1].decode()
    name = _HASH.search(said) if kind == "blob" else None

    # A blob is its content, whichever record came with it.
    if name is not None:
        said = b"blob " + name[1]
    elif kind in records.HEAD_TYPES:
        record = {k: v for k, v in _object(line).items() if k not in _OWN}
        said = json.dumps(record, sort_keys=True).encode()
    elif _INHERITED in said and _object(line).get("inherited") is True:
        # The message's own comes before all that is nested.
        said = said.replace(_INHERITED, b"", 1)
    return hashlib.blake2b(said, digest_size=16).digest()


def _object(line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return found


def _is_out_of_date(raw: bytes) -> bool:
    """Return whether a line that would not be written now says nothing that is lost."""
    try:
        record = checked(record_of(raw, lambda _: b""))
    except (ValueError, RecursionError):
        return False

    kind = record["type"]
    revised = kind in records.STATE_TYPES and type(record.get("revision")) is int
    return revised or kind in records.HEAD_TYPES
