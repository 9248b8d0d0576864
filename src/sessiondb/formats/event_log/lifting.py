"""The ``data`` of messages and parts in a plain log: an object in their record.

It is taken out of its record when that is read (`lift_data`), and put back when the
record is written (`put_data`), so that a meaning that a key of ``data`` has here is
the same one afterwards. Values that JSON cannot express are written as in our own log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from sessiondb.formats.jsonl.values import exact_value, plain_value
from sessiondb.formats.kit.fields import as_list, as_object, text, without_keys

Record = dict[str, Any]
#: The key of that object, and of the one of a file, whose ``data`` is its content.
DATA, DETAILS = "data", "details"
#: Names the keys of a message's data that were in that object.
LIFTED = "lifted"
#: The keys of a part, and of an answer, whose values say how they were recorded.
PART_MARKS = frozenset({"field", "as_block", "key", "keys", "record", "source"})
FILE_MARKS = PART_MARKS | {"url", "mime", "filename", "content"}
ANSWER_MARKS = frozenset({"started", "finished", "order"})


def lift_data(record: Record, marks: Collection[str], key: str = DATA) -> Record:
    """Take the keys of ``data`` here that a record, or a block, has in an object.

    Those that are among *marks* stay: they have another meaning here.
    """
    own_object = _exact_object(record.get(key))
    lifted = {name: own_object.pop(name) for name in own_object.keys() - marks}
    if lifted:
        del record[key]
        if own_object:
            record[key] = own_object
    return lifted


def put_data(
    record: Record, data: Mapping[str, Any], marks: Collection[str], key: str = DATA
) -> None:
    """Write the keys of *data* that `lift_data` took out of a record."""
    lifted = without_keys(marks, data)
    if lifted:
        record[key] = plain_data({**as_object(record.get(key)), **lifted})


def lift_message_data(record: Record) -> None:
    """Put the keys of ``data`` that a record has in an object beside its own keys."""
    if LIFTED in record or not as_object(record.get(DATA)):
        return

    own_object = _exact_object(record.pop(DATA))
    others = {LIFTED, *record}
    # Its key of this name takes the place of the object, if nothing else stays there.
    if others & own_object.keys():
        others.add(DATA)
    lifted = {name: own_object.pop(name) for name in own_object.keys() - others}
    if own_object:
        record[DATA] = own_object
    if lifted:
        record |= {**lifted, LIFTED: sorted(lifted)}


def put_message_data(record: Record) -> None:
    """Move the keys that `lift_message_data` took back into their object."""
    names = as_list(record.get(LIFTED))
    # A record of a program may have a key of that name.
    if not names or not all(text(name) and name in record for name in names):
        return

    del record[LIFTED]
    lifted = {name: record.pop(name) for name in names}
    record[DATA] = plain_data({**as_object(record.get(DATA)), **lifted})


def plain_data(data: Mapping[str, Any]) -> Record:
    """Return *data* as JSON can express it."""
    written: Record = plain_value(data, _stay)
    return written


def _exact_object(value: Any) -> Record:
    """Return what `plain_data` was given; `{}` for anything but an object."""
    own_object = as_object(value)
    try:
        data = exact_value(own_object, _no_blob)
        if plain_value(data, _stay) == own_object:
            return as_object(data)
    except (ValueError, RecursionError):
        pass
    return deepcopy(own_object)


def _stay(_: bytes) -> None:
    return None


def _no_blob(name: str) -> bytes:
    raise ValueError(f"there is no {name} in this log")
