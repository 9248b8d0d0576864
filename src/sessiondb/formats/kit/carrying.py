"""Which fields of a session a format carries, and the losses that follow from that.

A writer states what it carries: the fields of a session, of its messages and of their
parts. Everything else that has a value is lost, and reported: a field that nobody
thought of, or that a release adds, is not carried until a writer says so. A loss that
depends on a value (a result that is cut, a text that is not encodable) is reported
where it happens, by `Losses.add`.

A loss names its record as `Loss.of` does: ``session``, a message by its role, and its
kind if it has one (``assistant``, ``event:compaction``), a part by its message and its
type (``assistant/tool``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from sessiondb.formats.kit.loss_words import words_of
from sessiondb.model import Loss, Message, Part, Session

#: The fields that no format has to carry, with the reason.
GENERATED: Mapping[str, Mapping[type, tuple[str, ...]]] = {
    "names, which each program gives itself": {
        Session: (
            "id",
            "slug",
            "root_id",
            "project_id",
            "parent_id",
            "parent_source_id",
        ),
        Message: ("session_id", "id", "turn_id"),
        Part: ("id",),
    },
    "places in this database": {
        Session: ("leaf_seq", "last_seq", "parent_seq"),
        Message: ("seq", "parent_seq"),
        Part: ("idx",),
    },
    "counts and sums of its messages": {
        Session: (
            "revision",
            "message_count",
            "cost",
            "cost_inherited",
            "tokens_input",
            "tokens_output",
            "tokens_reasoning",
            "tokens_cache_read",
            "tokens_cache_write",
        ),
        Message: ("usage_key",),
    },
    "where this copy comes from, and when it was changed": {
        Session: (
            "source",
            "source_id",
            "namespace",
            "title_source",
            "model_source",
            "time_updated",
            "time_imported",
            "time_detached",
            "time_compacting",
        ),
        Message: ("inherited",),
        Part: ("inherited", "time_created", "time_updated"),
    },
    "what a record is, by which the statement is found": {
        Message: ("parts",),
        Part: ("type",),
    },
}


def carriable(record: type) -> frozenset[str]:
    """Return the fields of `Session`, `Message` or `Part` that a format may carry."""
    generated = {name for kinds in GENERATED.values() for name in kinds.get(record, ())}
    return frozenset(item.name for item in fields(record)) - generated


def sort_of(message: Message) -> str:
    """Return how a loss names a message: by its role, and its kind if it has one."""
    return f"{message.role}:{message.kind}" if message.kind else message.role


@dataclass(frozen=True)
class Carried:
    """What is carried of a record: its *fields*, and the *keys* of its data.

    The field ``data`` stands for all keys. *values* are fields of which some values
    alone are carried, *objects* those that are carried if they are JSON objects, as the
    input of a call is for most providers, or also (*texts*) a JSON text. *parts* is
    what is carried of a message's parts, by their type; `ANY` stands for the types
    that are not there.
    """

    fields: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    objects: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    parts: Mapping[str, Carried] = field(default_factory=dict)


#: Parts of any type.
ANY = "*"
#: Cost and tokens of a message.
USAGE = frozenset(
    {
        "cost",
        "tokens_input",
        "tokens_output",
        "tokens_reasoning",
        "tokens_cache_read",
        "tokens_cache_write",
    }
)
TOKENS = USAGE - {"cost"}
MODEL = frozenset({"provider_id", "model_id"})
#: What is known of a call, besides its times and its title.
CALL = frozenset({"tool", "call_id", "input_json", "text"})
RESULT = frozenset({"call_id", "text"})
TIMES = frozenset({"time_started", "time_ended"})
#: What every message is, and when.
SAID = frozenset({"role", "time_created", "time_completed"})
#: What an event without further fields is.
EVENT = SAID | {"kind"}
#: A part that is nothing but its text, and a file.
TEXT = Carried(frozenset({"text"}))
FILE = Carried(keys=frozenset({"url", "mime", "filename", "content"}))


@dataclass(frozen=True)
class Statement:
    """What a format carries of a session that it did not write.

    *messages* by their role and kind (``event:compaction``), else by their role alone:
    one that is not there is lost. *own* is what is carried of the record of a session
    that the program wrote itself, whose messages are written as they were. *lists* are
    those of ``todos``, ``diffs`` and ``labels`` that it has.
    """

    session: Carried
    messages: Mapping[str, Carried]
    own: Carried = field(default_factory=Carried)
    lists: frozenset[str] = frozenset()


class Losses:
    """What exports lose: iterate it for a `Loss` for each field of each session.

    It holds one entry for each of these, however many messages there are.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str, str, str], _Entry] = {}

    def __iter__(self) -> Iterator[Loss]:
        for (session_id, of, name, why), entry in self._entries.items():
            said = why or words_of(of, name, entry.times, entry.keys)
            yield Loss(session_id, said, entry.message_id, of, name, entry.times)

    def add(
        self,
        session_id: str,
        of: str,
        field: str,
        *,
        why: str = "",
        message_id: str | None = None,
    ) -> _Entry:
        """Count a loss; *why* replaces the words that follow from *of* and *field*."""
        key = session_id, of, field, why
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(message_id)
        entry.times += 1
        return entry


class _Entry:
    """How often something is lost, of which message first, and which keys of data."""

    __slots__ = ("keys", "message_id", "times")

    def __init__(self, message_id: str | None) -> None:
        self.message_id = message_id
        self.times = 0
        self.keys: dict[str, None] = {}


#: The times of a message: one that begins and ends at once has a single one.
_TIMES = frozenset({"time_created", "time_completed"})
#: Keys of data that a loss names at most.
_NAMED = 6


class Examination:
    """The comparison of the records of one session with a statement."""

    def __init__(self, statement: Statement, session_id: str, losses: Losses) -> None:
        self._statement = statement
        self._session_id = session_id
        self._losses = losses
        self._sorts: dict[tuple[str, str | None], _Sort] = {}

    def examine_session(self, session: Session, *, is_own: bool) -> None:
        """Add the fields of *session* that are not carried."""
        statement = self._statement
        carried = statement.own if is_own else statement.session
        # These are derived again, from the first prompt and the last answer.
        if session.title_source == "derived":
            carried = replace(carried, fields=carried.fields | {"title"})
        if session.model_source == "derived":
            carried = replace(carried, fields=carried.fields | MODEL)
        self._examine(_Missing("session", carried, Session), session, None)

    def examine(self, message: Message) -> None:
        """Add the fields of *message* and its parts that are not carried."""
        kind = message.role, message.kind
        sort = self._sorts.get(kind)
        if sort is None:
            sort = self._sorts[kind] = _Sort(sort_of(message), self._carried(message))
        if sort.missing is None:
            self._losses.add(self._session_id, sort.name, "", message_id=message.id)
            return

        self._examine(sort.missing, message, message.id)
        for part in message.parts:
            missing = sort.part(part.type)
            if missing is None:
                of = f"{sort.name}/{part.type}"
                self._losses.add(self._session_id, of, "", message_id=message.id)
            else:
                self._examine(missing, part, message.id)

    def carries(self, message: Message, part: str | None = None) -> bool:
        """Return whether messages like *message* are carried, or *part*s of them."""
        carried = self._carried(message)
        if carried is None or part is None:
            return carried is not None
        return part in carried.parts or ANY in carried.parts

    def _carried(self, message: Message) -> Carried | None:
        messages = self._statement.messages
        return messages.get(sort_of(message)) or messages.get(message.role)

    def _examine(self, missing: _Missing, record: Any, message_id: str | None) -> None:
        for name in missing.of(record):
            entry = self._losses.add(
                self._session_id, missing.name, name, message_id=message_id
            )
            if name == "data" and len(entry.keys) < _NAMED:
                entry.keys.update(dict.fromkeys(record.data.keys() - missing.keys))


class _Sort:
    """The messages of one role and kind, and their parts by type."""

    def __init__(self, name: str, carried: Carried | None) -> None:
        self.name = name
        self.missing = _Missing(name, carried, Message) if carried else None
        self._parts = carried.parts if carried else {}
        self._missing_of_parts: dict[str, _Missing | None] = {}

    def part(self, kind: str) -> _Missing | None:
        """Return what is missing of a part of that type; None: the part itself."""
        if kind not in self._missing_of_parts:
            carried = self._parts.get(kind, self._parts.get(ANY))
            missing = (
                None
                if carried is None
                else _Missing(f"{self.name}/{kind}", carried, Part)
            )
            self._missing_of_parts[kind] = missing
        return self._missing_of_parts[kind]


class _Missing:
    """The fields that are not carried of records of one sort."""

    def __init__(self, name: str, carried: Carried, record: type) -> None:
        self.name = name
        self.keys = carried.keys
        some = carried.values.keys() | carried.objects | carried.texts
        left = carriable(record) - carried.fields - some
        self._has_data = "data" in left
        self._values = carried.values
        #: How the values begin that are carried.
        self._beginnings = {
            **dict.fromkeys(carried.objects, ("{",)),
            **dict.fromkeys(carried.texts, ("{", '"')),
        }
        self._times = left & _TIMES if record is Message else frozenset()
        # In the order of the record, which is that of the report.
        named = [item.name for item in fields(record) if item.name in left - {"data"}]
        self._names = tuple(named)
        # With two names or more, a getter returns a tuple.
        self._get = attrgetter("__class__", *named) if named else None

    def of(self, record: Any) -> list[str]:
        """Return the fields of *record* that have a value and are not carried."""
        lost: list[str] = []
        if self._get is not None:
            _, *values = self._get(record)
            for name, value in zip(self._names, values, strict=True):
                # A count or a cost of 0 is known, and a value.
                if value or value == 0:
                    lost.append(name)

        for name, carried in self._values.items():
            value = getattr(record, name)
            if value and value not in carried:
                lost.append(name)
        for name, beginnings in self._beginnings.items():
            value = getattr(record, name)
            if value and not value.startswith(beginnings):
                lost.append(name)
        if len(self._times) == 1 and record.time_created == record.time_completed:
            # The other one says the same.
            lost = [name for name in lost if name not in self._times]
        if self._has_data and record.data and not record.data.keys() <= self.keys:
            lost.append("data")
        return lost
