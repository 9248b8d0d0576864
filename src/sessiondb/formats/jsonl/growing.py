"""The records that are missing from a log, so that it can grow instead of being rewritten.

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
#: Fields that a database names in its own way, or learns later: of the lineage all but its kind.
_OWN = ("seq", "slug", "directory", "project", "revision", *records.LINEAGE_FIELDS)


def additions(
    file: IO[bytes], lines: Iterable[str], *, whole: bool = True
) -> list[str] | None:
    """Return the *lines* that are missing from a file; None if it must be rewritten.

    A file that is not *whole*, in which something could not be read, is only ever
    added to: it is not ours to say what that was.
    """
    there = {_key(raw) for raw in file}
    ours: set[bytes] = set()
    lacking: list[str] = []
    size = 0
    for line in lines:
        raw = line.encode()
        key = _key(raw)
        size += len(raw)
        ours.add(key)
        if key not in there:
            lacking.append(line)
    file.seek(0)
    stale = (
        [raw for raw in file if raw.strip() and _key(raw) not in ours]
        if there - ours
        else []
    )
    if whole and (sum(map(len, stale)) > size or not all(map(_is_out_of_date, stale))):
        return None
    return lacking


def _key(raw: bytes) -> bytes:
    """Return what two lines that say the same have in common."""
    line = raw.rstrip(b"\r\n")
    said = _SEQ.sub(b"", line, count=1)
    kind = _KIND.match(said)
    if kind is not None and kind[1] == b"blob" and (name := _HASH.search(said)):
        said = b"blob " + name[1]
    elif kind is not None and kind[1].decode() in records.HEAD_TYPES:
        record = {k: v for k, v in _object(line).items() if k not in _OWN}
        said = json.dumps(record, sort_keys=True).encode()
    elif _INHERITED in said and _object(line).get("inherited") is True:
        said = said.replace(_INHERITED, b"", 1)  # ours stands before all that is nested
    return hashlib.blake2b(said, digest_size=16).digest()


def _object(line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return found


def _is_out_of_date(raw: bytes) -> bool:
    """Return whether a line that we would not write holds nothing that is not said anew."""
    try:
        record = checked(record_of(raw, lambda _: b""))
    except (ValueError, RecursionError):
        return False
    about = (
        record["type"] in records.STATE_TYPES and type(record.get("revision")) is int
    )
    return about or record["type"] in records.HEAD_TYPES
