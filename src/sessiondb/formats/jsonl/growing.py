"""The records that are missing from a log, so that it grows instead of being rewritten.

Two databases describe the same session in different words: each numbers messages in
the order in which it received them, counts each copy where it may, and has its own
names for projects. Such differences do not count, or two people's files would change
for ever. Records that a higher revision made out of date may stay in a file until
they are larger than those that still hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import IO, Any

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.scan import record_at
from sessiondb.formats.kit.fields import as_object, integer, without_keys
from sessiondb.formats.kit.json import decode_json
from sessiondb.patterns import late_pattern

_SEQ = late_pattern(rb'^\{"schema_version":1,"seq":\d+,')
_KIND = r'^"time":-?\d+,"type":"(?:%s)","session_id":'
_HEAD = late_pattern((_KIND % "|".join(records.HEAD_TYPES)).encode())
_BLOB = late_pattern((_KIND % "blob").encode() + rb'.*?"hash":"([0-9a-f]{64})"')
_INHERITED = b',"inherited":true'
#: Fields that a database names in its own way, or learns later.
_OWN = (
    "seq", "slug", "directory", "project", "namespace", "revision",
    *records.LINEAGE_FIELDS,
)  # fmt: skip


def missing_lines(
    file: IO[bytes], lines: Iterable[str], *, intact: bool = True
) -> list[str] | None:
    """Return the *lines* that are missing from a file; None if it must be rewritten.

    A file that is not *intact*, in which something could not be read, is only ever
    added to: a newer release may have written that part.
    """
    present = {_line_key(raw) for raw in file if raw.strip()}
    wanted: set[bytes] = set()
    missing: list[str] = []
    size = 0

    for line in lines:
        raw = line.encode()
        key = _line_key(raw)
        size += len(raw)
        wanted.add(key)
        if key not in present:
            missing.append(line)

    if not intact or present <= wanted:
        return missing

    file.seek(0)
    stale = [raw for raw in file if raw.strip() and _line_key(raw) not in wanted]
    is_outweighed = sum(len(raw) for raw in stale) > size
    if is_outweighed or not all(_is_out_of_date(raw) for raw in stale):
        return None
    return missing


def _line_key(raw: bytes) -> bytes:
    """Return a key that is the same for all lines with the same meaning."""
    line = raw.rstrip(b"\r\n")
    content = _SEQ.sub(b"", line, count=1)

    # A blob is its content, whichever record came with it.
    if blob := _BLOB.match(content):
        content = b"blob " + blob[1]
    elif _HEAD.match(content):
        content = json.dumps(
            without_keys(_OWN, _object_of_line(line)), sort_keys=True
        ).encode()
    elif _INHERITED in content and _object_of_line(line).get("inherited") is True:
        # The message's own comes before all that is nested.
        content = content.replace(_INHERITED, b"", 1)
    return hashlib.blake2b(content, digest_size=16).digest()


def _object_of_line(line: bytes) -> dict[str, Any]:
    try:
        return as_object(decode_json(line.decode()))
    except (ValueError, RecursionError):
        return {}


def _is_out_of_date(raw: bytes) -> bool:
    """Return whether nothing is lost with a line that would not be written now."""
    try:
        record = record_at(raw)
    except (ValueError, RecursionError):
        return False

    kind = record["type"]
    revised = kind in records.STATE_TYPES and integer(record.get("revision"))
    return revised or kind in records.HEAD_TYPES
