"""The records of a log, applied in order, as Gemini CLI does when it resumes a session.

A message is written again in full whenever something is added to it, and keeps the
place it had. ``$set.messages`` replaces all messages, ``$rewindTo`` drops one and those
after it. So each message is known by the places of its versions, and dropped messages
stay a branch beside the live path (``loadConversationRecord``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.kit.fields import (
    as_list,
    as_text,
    fitting,
    is_object,
    list_or_item,
    objects_in,
    text,
    value_at,
    without_empty,
    without_keys,
)
from sessiondb.formats.kit.genai import texts_of
from sessiondb.formats.kit.json import OddRecordError, sorted_json, usable_id
from sessiondb.formats.kit.lines import Line

Record = dict[str, Any]
_IMPLIED = frozenset({"id", "type", "timestamp", "content", "toolCalls"})
_CONTEXT = "<session_context>"


class MessageVersion(NamedTuple):
    """One version of a message: a record, or an item of the messages in a record."""

    line: Line
    #: The position of that item; None for a record.
    position: int | None


@dataclass(slots=True, eq=False)
class JournalEntry:
    """A message: its versions, and the message that it followed."""

    name: str
    parent: JournalEntry | None
    #: The time of its first version, as it is written.
    first_time: str | None = None
    is_rewound: bool = False
    #: The last version, and the last one that has each fact.
    _last: MessageVersion | None = None
    _last_of: dict[int, MessageVersion] = field(default_factory=dict)

    def add_version(self, version: MessageVersion, record: Record) -> None:
        """Add a version."""
        self.first_time = self.first_time or as_text(record.get("timestamp"))
        self._last = version
        self._last_of |= dict.fromkeys(facts_of(record), version)

    @property
    def kept_versions(self) -> list[MessageVersion]:
        """The versions, oldest first, without those whose facts are all in later ones.

        The last version is always one of them.
        """
        if self._last is None:
            return []
        older = {item for item in self._last_of.values() if item is not self._last}
        return [*sorted(older), self._last]


def facts_of(record: Record) -> frozenset[int]:
    """Return the facts in a version of a message, as hashes.

    They are its texts, the results of its calls, and the values of its other keys.
    """
    content, calls = record.get("content"), record.get("toolCalls")
    parts = [part for part in objects_in(list_or_item(content)) if "text" not in part]
    facts: list[tuple[str, Any]] = [("text", item) for item in texts_of(content)]
    facts += [("part", part) for part in parts]
    facts += [("call", call.get("id")) for call in objects_in(calls)]
    facts += [("result", result) for result in _results_of(calls)]
    # An empty value has no meaning: a later version may leave it out.
    facts += without_empty(without_keys(_IMPLIED, record)).items()
    return frozenset(hash((kind, sorted_json(value))) for kind, value in facts)


class GeminiJournal:
    """The state of a session after the records of its log; `apply` adds one more."""

    def __init__(self) -> None:
        self.metadata: Record = {}
        #: The time at which the session began: each time it is resumed, the log gets
        #: another header.
        self.start_time: str | None = None
        #: The text with which the program begins a session; it names the directory.
        self.context = ""
        self._live: dict[str, JournalEntry] = {}
        self._dropped: dict[str, JournalEntry] = {}
        #: The next numbers for further messages of a name.
        self._numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))

    def apply_record(self, line: Line, record: Record) -> None:
        """Apply a record; raises `OddRecordError` for one of an unknown kind."""
        if text(record.get("$rewindTo")):
            self._rewind_to(record["$rewindTo"])
        elif text(record.get("id")):
            self._put_version(record["id"], MessageVersion(line, None), record)
        elif is_object(record.get("$set")):
            update = record["$set"]
            if type(update.get("messages")) is list:
                self._replace_messages(line, update)
            self.metadata |= without_keys(("messages",), update)
        elif is_header(record):
            self._take_header(line, record)
        else:
            self._add_event(line, record)

    def _take_header(self, line: Line, header: Record) -> None:
        """Take a header; that of a document has the messages, too."""
        for position, item in _messages_in(header):
            self._put_version(item["id"], MessageVersion(line, position), item)
        self.start_time = self.start_time or as_text(header.get("startTime"))
        self.metadata |= without_keys(("messages",), header)

    def _rewind_to(self, first: str) -> None:
        """Drop a message and those after it; all of them if it is not live."""
        names = list(self._live)
        start = names.index(first) if first in self._live else 0

        for name in names[start:]:
            entry = self._live.pop(name)
            entry.is_rewound = True
            self._dropped[name] = entry

    def _add_event(self, line: Line, record: Record) -> None:
        """Add a record of an unknown kind: an event of its type."""
        kind = kind_of(record)
        if kind is None:
            raise OddRecordError("is not a record of a session")
        name = self._unused_name(f"~{kind}")
        self._put_version(name, MessageVersion(line, None), record)

    # -- messages ----------------------------------------------------------------

    def _put_version(self, name: str, version: MessageVersion, record: Record) -> None:
        """Add a version of a message, which may be a new one."""
        entry = self._live.get(name)
        if entry is None:
            entry = self._revive_entry(name, self._last_live, is_restored=False)
            self._live[name] = entry
        self._add_version(entry, version, record)

    def _add_version(
        self, entry: JournalEntry, version: MessageVersion, record: Record
    ) -> None:
        entry.add_version(version, record)
        if self.context:
            return
        for item in texts_of(record.get("content")):
            if item.startswith(_CONTEXT):
                self.context = item
                return

    def _replace_messages(self, line: Line, update: Record) -> None:
        """Replace all messages; one that is among the new ones is the same message."""
        self._dropped |= self._live
        self._live = {}
        parent = None
        for position, item in _messages_in(update):
            name = item["id"]
            if name not in self._live:
                self._live[name] = self._revive_entry(name, parent, is_restored=True)
            parent = self._live[name]
            self._add_version(parent, MessageVersion(line, position), item)

    def _revive_entry(
        self, name: str, parent: JournalEntry | None, *, is_restored: bool
    ) -> JournalEntry:
        """Return the entry of a message that is live from now on."""
        entry = self._dropped.pop(name, None)
        if entry is None:
            return JournalEntry(name, parent)
        if entry.is_rewound and not is_restored:
            # Another message with the id of one that was dropped, which stays.
            entry.name = self._unused_name(name)
            self._dropped[entry.name] = entry
            return JournalEntry(name, parent)

        entry.parent, entry.is_rewound = parent, False
        return entry

    def _unused_name(self, name: str) -> str:
        """Return another name for a message."""
        while True:
            numbered = f"{name}~{next(self._numbers[name])}"
            if numbered not in self._dropped and numbered not in self._live:
                return numbered

    @property
    def _last_live(self) -> JournalEntry | None:
        return next(reversed(self._live.values()), None)

    @property
    def leaf_name(self) -> str | None:
        """The last message of the live path; None without any."""
        last = self._last_live
        return None if last is None else last.name

    def ordered_entries(self) -> Iterator[tuple[JournalEntry, str | None]]:
        """Yield each message and the id of its parent, which precedes it.

        A dropped message follows the message that it was dropped after.
        """
        dropped: dict[JournalEntry | None, list[JournalEntry]] = {}
        for entry in self._dropped.values():
            dropped.setdefault(entry.parent, []).append(entry)

        yield from _dropped_branches(dropped, None)
        parent = None
        for entry in self._live.values():
            yield entry, parent
            parent = entry.name
            yield from _dropped_branches(dropped, entry)


def _dropped_branches(
    dropped: dict[JournalEntry | None, list[JournalEntry]], start: JournalEntry | None
) -> Iterator[tuple[JournalEntry, str | None]]:
    """Yield the messages that were dropped after one, and those after them."""
    pending = dropped.get(start, [])[::-1]
    while pending:
        entry = pending.pop()
        yield entry, None if entry.parent is None else entry.parent.name
        pending += dropped.get(entry, [])[::-1]


def _messages_in(record: Record) -> Iterator[tuple[int, Record]]:
    """Yield the messages that a record has, and their positions."""
    for position, item in enumerate(as_list(record.get("messages"))):
        if text(value_at(item, "id")):
            yield position, item


def is_header(record: Record) -> bool:
    """Return whether a record describes the session."""
    return text(record.get("sessionId")) and text(record.get("projectHash"))


def kind_of(record: Record) -> str | None:
    """Return the type of a record that is not a message: that, or its operator."""
    kind = record.get("type")
    if not kind:
        operators = [key for key in record if key.startswith("$")]
        kind = operators[0] if operators else None
    usable_kind: str | None = fitting(kind, usable_id)
    return usable_kind


# -- messages again --------------------------------------------------------------


def merge_versions(
    entry: JournalEntry, record_of: Callable[[MessageVersion], Record]
) -> Record:
    """Return a message: its last version, and the keys that only earlier ones have.

    A resumed session writes its messages again with their content alone: tokens, model
    and calls are in the version before. A text or result that was replaced (masked
    output of tools) is kept under ``earlier``.
    """
    message: Record = {}
    earlier: list[Record] = []
    for version in entry.kept_versions:
        record = record_of(version)
        replaced = _replaced_values(message, record)
        if replaced:
            earlier.append(replaced)
        message |= record

    # The time of a message is that of its first version.
    if entry.first_time is not None:
        message["timestamp"] = entry.first_time
    if earlier:
        message["earlier"] = earlier
    return message


def _replaced_values(older: Record, newer: Record) -> Record:
    """Return the values of *older* that *newer* has others for."""
    common = without_empty({key: value for key, value in older.items() if key in newer})
    replaced: Record = {}
    for key, value in without_keys(_IMPLIED, common).items():
        if value != newer[key]:
            replaced[key] = value

    # A text that only grew by another one is not lost.
    texts = set(texts_of(newer.get("content")))
    if not texts.issuperset(texts_of(common.get("content"))):
        replaced["content"] = common["content"]

    results = _results_of(newer.get("toolCalls"))
    lost_results = [
        result
        for result in _results_of(common.get("toolCalls"))
        if result not in results
    ]
    if lost_results:
        replaced["results"] = lost_results
    return replaced


def _results_of(calls: Any) -> list[Any]:
    """Return the results of calls, without those that are empty."""
    return [
        call["result"]
        for call in map(without_empty, objects_in(calls))
        if "result" in call
    ]
