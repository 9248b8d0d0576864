"""The logs that Goose wrote before its database (1.10): a file for each session.

The first line describes the session, each further line is a message; in a file without
the first line that is a message, too. The name of the file is the session's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.goose.fields import time_of
from sessiondb.formats.goose.layouts import Contents, Fetch, SessionHead
from sessiondb.formats.goose.visibility import MessageEntry, visibility_of
from sessiondb.formats.kit.fields import value_at
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import check_id, load_object, usable_id
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import log_digest
from sessiondb.formats.kit.remembered import known_fact

Record = dict[str, Any]
#: Numbers of which the first line has at least one, and no message any.
_COUNTS = frozenset({"message_count", "total_tokens"})


def is_log(path: Path) -> bool:
    """Return whether a file is a log of Goose, by its first line."""

    def begins_like_log(path: Path) -> bool:
        records = first_records(path)
        return any(_is_metadata(record) or _is_message(record) for record in records)

    with contextlib.suppress(SourceError):
        return bool(known_fact(path, "goose", begins_like_log))
    return False


def _is_metadata(record: Record) -> bool:
    is_counted = not _COUNTS.isdisjoint(record)
    return "role" not in record and "description" in record and is_counted


def _is_message(record: Record) -> bool:
    is_dated = type(record.get("created")) is int and "type" not in record
    is_said = record.get("role") in ("user", "assistant")
    return is_said and is_dated and isinstance(record.get("content"), list)


def log_at(path: Path) -> GooseLog:
    """Return the log at *path*; raises `OddRecordError`."""
    check_id(path.stem)
    records = first_records(path, 2)
    metadata = records[0] if records and _is_metadata(records[0]) else {}
    messages = [record for record in records if "role" in record]
    first = messages[0] if messages else None
    digest = log_digest(path)
    return GooseLog(
        SessionHead(path, path.stem, digest, metadata, is_log=True, first=first)
    )


class GooseLog:
    """One log; see `layouts.Layout`."""

    def __init__(self, head: SessionHead) -> None:
        self.head = head

    def index_messages(self) -> Contents:
        """Index all lines; content is not kept."""
        contents = Contents()
        names: set[str] = set()
        number = 0
        with opened(self.head.path) as lines:
            for line, _, record in lines.records(load_object):
                if line.number == 1 and _is_metadata(record):
                    continue

                # Damaged lines between messages do not change their names.
                if "role" in record:
                    number += 1
                    name = f"msg_{self.head.source_id}_{number}"
                else:
                    name = f"msg_{self.head.source_id}_line_{line.number}"
                contents.entries.append(entry_of(record, name, line, names))

            contents.problems += lines.problems

        return contents

    @contextlib.contextmanager
    def open_records(self) -> Iterator[Fetch]:
        """Read lines by their places."""
        with opened(self.head.path) as lines:
            yield lambda entry: load_object(lines.read_line(entry.key))

    def place_of(self, entry: MessageEntry) -> int | None:
        """Return the number of a message's line."""
        number: int = entry.key.number
        return number


def entry_of(record: Record, name: str, key: Any, names: set[str]) -> MessageEntry:
    """Return the entry of a message, under *name* if its own id is not one.

    *names* are those given to messages before it.
    """
    record_id = record.get("id")
    if usable_id(record_id) and record_id not in names:
        name = str(record_id)

    names.add(name)

    metadata = record.get("metadata")
    time = time_of(record.get("created")) or 0
    used = value_at(metadata, "usage")

    return MessageEntry(
        name, key, record.get("role"), time // 1000, *visibility_of(metadata), used
    )
