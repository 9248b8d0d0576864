"""Names that a writer gives: to files, and to sessions and messages in other programs.

A session that comes back from another program is found by its name there. So that name
is our id, or a UUID made of it, from which `original_id` returns our id. A record that
is only a part of one of our messages gets a name by `further_name`. The exporter
reports all names of a message (`Exporter.names_of`), or the reader the message of a
name, as `SourceMessage.alias`, by `message_of`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote
from uuid import UUID

from sessiondb.patterns import late_pattern

#: Crockford's digits, in which our ids have their 128 bits.
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_NATIVE_ID = late_pattern(rf"(?:ses|msg)_([0-7][{_DIGITS}]{{25}})")
#: The key of a record that says which of our messages it was, if it has no id.
MARK = "sessiondb"
_UUID = late_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FURTHER = late_pattern(r"(.+)-\d+", re.DOTALL)


def file_name(name: Any) -> str:
    """Return *name* as the name of a file or folder that leads nowhere else.

    Everything but letters, digits and ``_.-~`` is written as ``%XX``; different names
    stay different.
    """
    quoted = quote(str(name).encode("utf-8", "surrogatepass"), safe="")

    # "." and ".." are the only names left that mean another folder.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def uuid_of(name: str) -> str:
    """Return an id as a UUID, for a program whose ids are UUIDs.

    A UUID stays as it is. One of our ids becomes one with the same 128 bits, and any
    other one a hash of it: such a message is found again, such a session is not.
    """
    if _UUID.fullmatch(name):
        return name

    native_id = _NATIVE_ID.fullmatch(name)
    if native_id is None:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return str(UUID(bytes=digest[:16]))

    number = 0
    for digit in native_id[1]:
        number = number << 5 | _DIGITS.index(digit)
    return str(UUID(int=number))


def original_id(prefix: str, name: str) -> str:
    """Return the id, with *prefix*, that a UUID was made of; any other name itself."""
    if not _UUID.fullmatch(name):
        return name

    number = UUID(name).int
    digits = (_DIGITS[number >> 5 * place & 31] for place in reversed(range(26)))
    return prefix + "".join(digits)


def further_name(name: str, index: int) -> str:
    """Return the name of a record that was part *index* of the message *name*."""
    return f"{name}-{index}"


def message_of(name: str) -> str | None:
    """Return the name of the message that `further_name` made *name* of, or None."""
    match = _FURTHER.fullmatch(name)
    return match[1] if match else None
