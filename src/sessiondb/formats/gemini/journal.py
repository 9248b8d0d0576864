"""The records of a log, applied in order, as Gemini CLI does when it resumes a session.

A message is written again in full whenever something is added to it, and keeps the
place it had. ``$set.messages`` replaces all messages, ``$rewindTo`` drops one and what
follows. So each message is known by the places of its versions, and what was dropped
stays a branch beside the live path (``loadConversationRecord``).
"""

from __future__ import annotations

import json
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, filterfalse, repeat, starmap
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    as_list,
    as_text,
    filled,
    fitting,
    is_object,
    listed,
    objects_in,
    text,
    within,
    without,
    without_none,
)
from sessiondb.formats.kit.genai import texts_of
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.lines import Line

Record = dict[str, Any]
_PLACE = frozenset({"id", "type", "timestamp", "content", "toolCalls"})
_CONTEXT = "<session_context>"


class Version(NamedTuple):
    """One version of a message: a record, or the item at *place* of its messages."""

    line: Line
    place: int | None


@dataclass(slots=True, eq=False)
class Entry:
    """A message: its versions, and the message that it followed."""

    name: str
    above: Entry | None
    first: str | None = None
    rewound: bool = False
    #: The last version, and the last one that has each fact.
    _last: Version | None = None
    _last_of: dict[int, Version] = field(default_factory=dict)

    def add(self, version: Version, record: Record) -> None:
        """Add a version."""
        self.first = self.first or as_text(record.get("timestamp"))
        self._last = version
        self._last_of |= dict.fromkeys(facts_of(record), version)

    @property
    def versions(self) -> list[Version]:
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
    objects = objects_in(listed(content))
    # An empty value has no meaning: a later version may leave it out.
    facts = chain(
        zip(repeat("text"), texts_of(content)),
        zip(repeat("part"), (part for part in objects if "text" not in part)),
        zip(repeat("call"), (call.get("id") for call in objects_in(calls))),
        zip(repeat("result"), _results(calls)),
        filled(without(_PLACE, record)).items(),
    )
    return frozenset(starmap(_fact, facts))


def _fact(kind: str, value: Any) -> int:
    return hash((kind, json.dumps(value, sort_keys=True)))


class Journal:
    """The state of a session after the records of its log; `apply` adds one more."""

    def __init__(self) -> None:
        self.metadata: Record = {}
        #: When the session began: each time it is resumed, the log has a header more.
        self.begun: str | None = None
        #: The text with which the program begins a session; it names the directory.
        self.context = ""
        self._live: dict[str, Entry] = {}
        self._dropped: dict[str, Entry] = {}
        #: The next numbers for further messages of a name.
        self._numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))

    def apply(self, line: Line, record: Record) -> None:
        """Apply a record; raises `OddRecordError` for one of an unknown kind."""
        kinds = (apply for is_one, apply in _RECORDS if is_one(record))
        next(kinds, Journal.note)(self, line, record)

    def message(self, line: Line, record: Record) -> None:
        """Add a version of a message."""
        self._put(record["id"], Version(line, None), record)

    def update(self, line: Line, record: Record) -> None:
        """Take the changed properties of the session, or all of its messages."""
        update = record["$set"]
        if type(update.get("messages")) is list:
            self._replace(line, update["messages"])
        self.metadata |= without(("messages",), update)

    def describe(self, line: Line, record: Record) -> None:
        """Take a header; one of a document comes with the messages."""
        for index, item in _messages(record):
            self._put(item["id"], Version(line, index), item)
        self.begun = self.begun or as_text(record.get("startTime"))
        self.metadata |= without(("messages",), record)

    def rewind(self, _: Line, record: Record) -> None:
        """Drop a message and those after it; all of them if it is not live."""
        names = list(self._live)
        start = dict(zip(names, count())).get(record["$rewindTo"], 0)

        for name in names[start:]:
            entry = self._live.pop(name)
            entry.rewound = True
            self._dropped[name] = entry

    def _put(self, name: str, version: Version, record: Record) -> None:
        entry = self._live.get(name)
        if entry is None:
            above = next(reversed(self._live.values()), None)
            entry = self._live[name] = self._entry(name, above, is_restored=False)
        self._add(entry, version, record)

    def _add(self, entry: Entry, version: Version, record: Record) -> None:
        entry.add(version, record)
        if not self.context:
            said = texts_of(record.get("content"))
            self.context = next((s for s in said if s.startswith(_CONTEXT)), "")

    def _replace(self, line: Line, messages: list[Any]) -> None:
        """Replace all messages; one that is among the new ones is the same message."""
        self._dropped |= self._live
        self._live = {}
        above = None
        for index, item in _messages({"messages": messages}):
            name = item["id"]
            if name not in self._live:
                self._live[name] = self._entry(name, above, is_restored=True)
            above = self._live[name]
            self._add(above, Version(line, index), item)

    def _entry(self, name: str, above: Entry | None, *, is_restored: bool) -> Entry:
        """Return the entry of a message that is live from now on."""
        entry = self._dropped.pop(name, None)
        if entry is not None and entry.rewound and not is_restored:
            # Another message with the id of one that was dropped, which stays.
            entry.name = self._free(name)
            self._dropped[entry.name] = entry
            entry = None

        if entry is None:
            return Entry(name, above)
        entry.above, entry.rewound = above, False
        return entry

    def _free(self, name: str) -> str:
        """Return another name for a message, which is unused."""
        taken = ChainMap(self._dropped, self._live)
        numbered = (f"{name}~{number}" for number in self._numbers[name])
        return next(filterfalse(taken.__contains__, numbered))

    def note(self, line: Line, record: Record) -> None:
        """Add a record of an unknown kind: an event of its type."""
        kind = kind_of(record)
        if kind is None:
            raise OddRecordError("is not a record of a session")
        self._put(self._free(f"~{kind}"), Version(line, None), record)

    @property
    def leaf(self) -> str | None:
        """The last message of the live path; None without any."""
        return next(reversed(self._live), None)

    def entries(self) -> Iterator[tuple[Entry, str | None]]:
        """Yield each message and the id of that before it, which comes first.

        What was dropped follows the message that it was dropped after.
        """
        dropped: dict[Entry | None, list[Entry]] = {}
        for entry in self._dropped.values():
            dropped.setdefault(entry.above, []).append(entry)

        yield from _branches(dropped, None)
        above = None
        for entry in self._live.values():
            yield entry, above
            above = entry.name
            yield from _branches(dropped, entry)


def _branches(
    dropped: dict[Entry | None, list[Entry]], start: Entry | None
) -> Iterator[tuple[Entry, str | None]]:
    pending = dropped.get(start, [])[::-1]
    while pending:
        entry = pending.pop()
        yield entry, None if entry.above is None else entry.above.name
        pending += dropped.get(entry, [])[::-1]


def _messages(record: Record) -> Iterator[tuple[int, Record]]:
    for index, item in enumerate(as_list(record.get("messages"))):
        if text(within(item, "id")):
            yield index, item


def is_header(record: Record) -> bool:
    """Return whether a record describes the session."""
    return text(record.get("sessionId")) and text(record.get("projectHash"))


#: The records of a log and how each is applied; the first that fits counts.
_RECORDS: Sequence[
    tuple[Callable[[Record], bool], Callable[[Journal, Line, Record], None]]
] = (
    (lambda record: text(record.get("$rewindTo")), Journal.rewind),
    (lambda record: text(record.get("id")), Journal.message),
    (lambda record: is_object(record.get("$set")), Journal.update),
    (is_header, Journal.describe),
)


def kind_of(record: Record) -> str | None:
    """Return the type of a record that is not a message: that, or its operator."""
    named = (key for key in record if key.startswith("$"))
    kind: str | None = fitting(record.get("type") or next(named, None), usable_id)
    return kind


# -- messages again --------------------------------------------------------------


def merged(entry: Entry, record_of: Callable[[Version], Record]) -> Record:
    """Return a message: its last version, and the keys that only earlier ones have.

    A resumed session writes its messages again with their content alone: tokens, model
    and calls are in the version before. A text or result that was replaced (masked
    output of tools) is kept under ``earlier``.
    """
    found: Record = {}
    earlier: list[Record] = []
    for version in entry.versions:
        record = record_of(version)
        earlier.append(_replaced(found, record))
        found |= record

    # The time of a message is that of its first version.
    stated = {"timestamp": entry.first, "earlier": [*filter(None, earlier)] or None}
    return {**found, **without_none(stated)}


def _replaced(before: Record, after: Record) -> Record:
    """Return what *after* has another value for than *before*."""
    both = filled({key: before[key] for key in before if key in after})
    others = without(_PLACE, both).items()
    changed = {key: value for key, value in others if value != after[key]}

    # A text that only grew by another one is not lost.
    said = set(texts_of(after.get("content")))
    if not said.issuperset(texts_of(both.get("content"))):
        changed["content"] = both["content"]

    results = _results(after.get("toolCalls"))
    lost = [item for item in _results(both.get("toolCalls")) if item not in results]
    return {**changed, **filled({"results": lost})}


def _results(calls: Any) -> list[Any]:
    """Return the results of calls, without those that are empty."""
    found = map(filled, objects_in(calls))
    return [call["result"] for call in found if "result" in call]
