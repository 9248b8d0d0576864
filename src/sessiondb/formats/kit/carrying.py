"""Which fields of a session a format carries, and the losses that follow from that.

A writer states what it carries: the fields of a session, of its messages and of their
parts. Everything else that has a value is lost, and reported: a field that was
forgotten, or that a release adds, is not carried until a writer says so. A loss that
depends on a value (a result that is cut, a text that is not encodable) is reported
by the writer, with `Losses.add_loss`.

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
            "prompt_count",
            "cost",
            "cost_inherited",
            "tokens_input",
            "tokens_output",
            "tokens_reasoning",
            "tokens_cache_read",
            "tokens_cache_write",
        ),
        Message: ("usage_key", "usage_name"),
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


def carriable_fields(record: type) -> frozenset[str]:
    """Return the fields of `Session`, `Message` or `Part` that a format may carry."""
    generated = {name for kinds in GENERATED.values() for name in kinds.get(record, ())}
    return frozenset(item.name for item in fields(record)) - generated


def sort_of(message: Message) -> str:
    """Return how a loss names a message: by its role, and its kind if it has one."""
    return f"{message.role}:{message.kind}" if message.kind else message.role


@dataclass(frozen=True)
class Carried:
    """The fields of a record that are carried."""

    #: Its fields; ``data`` is all keys of its data.
    fields: frozenset[str] = frozenset()
    #: The keys of its data.
    keys: frozenset[str] = frozenset()
    #: The fields of which some values alone are carried, with these values.
    values: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    #: The fields that are carried if they are JSON objects, as the input of a call is
    #: for most providers.
    objects: frozenset[str] = frozenset()
    #: The fields that are carried if they are JSON objects, or a JSON text.
    texts: frozenset[str] = frozenset()
    #: For a message: what is carried of its parts, by their type, or `ANY`.
    parts: Mapping[str, Carried] = field(default_factory=dict)


#: Parts of any type that is not named.
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
#: The fields of a call, besides its times and its title.
CALL = frozenset({"tool", "call_id", "input_json", "text"})
RESULT = frozenset({"call_id", "text"})
TIMES = frozenset({"time_started", "time_ended"})
#: The fields of every message: its role and its time.
SAID = frozenset({"role", "time_created", "time_completed"})
#: The fields of an event without further ones.
EVENT = SAID | {"kind"}
#: A part that is nothing but its text, and a file.
TEXT = Carried(frozenset({"text"}))
FILE = Carried(keys=frozenset({"url", "mime", "filename", "content"}))


@dataclass(frozen=True)
class CarryStatement:
    """The fields that a format carries of a session that it did not write."""

    #: The fields of the record of the session that are carried.
    session: Carried
    #: The same of messages, by their role and kind (``event:compaction``), else by
    #: their role alone: any other message is lost.
    messages: Mapping[str, Carried]
    #: The carried fields of the record of a session that the program wrote itself: its
    #: messages are written as they were.
    own_session: Carried = field(default_factory=Carried)
    #: Those of ``todos``, ``diffs`` and ``labels`` that are carried.
    lists: frozenset[str] = frozenset()


class Losses:
    """The losses of exports: iterate it for a `Loss` for each field of each session.

    It holds one entry for each of these, however many messages there are.
    """

    def __init__(self) -> None:
        #: By session, sort of the record, field and reason.
        self._entries: dict[tuple[str, str, str, str], _LossEntry] = {}

    def __iter__(self) -> Iterator[Loss]:
        for (session_id, sort, name, reason), entry in self._entries.items():
            words = reason or words_of(sort, name, entry.times, entry.keys)
            yield Loss(session_id, words, entry.message_id, sort, name, entry.times)

    def add_loss(
        self,
        session_id: str,
        sort: str,
        field: str,
        *,
        reason: str = "",
        message_id: str | None = None,
    ) -> None:
        """Count a loss of records of a *sort*, or of a *field* of them.

        A *reason* replaces the words that follow from these.
        """
        entry = self.loss_entry(session_id, sort, field, reason, message_id)
        entry.times += 1

    def loss_entry(
        self,
        session_id: str,
        sort: str,
        field: str,
        reason: str,
        message_id: str | None,
    ) -> _LossEntry:
        """Return the entry in which a loss is counted; *message_id* is the first."""
        key = session_id, sort, field, reason
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _LossEntry(message_id)
        return entry


class _LossEntry:
    """How often something is lost."""

    __slots__ = ("keys", "message_id", "times")

    def __init__(self, message_id: str | None) -> None:
        #: The first message of which it is lost; None for a session.
        self.message_id = message_id
        self.times = 0
        #: The keys of data that are lost, if it is that.
        self.keys: dict[str, None] = {}


#: The times of a message: one that begins and ends at once has a single one.
_TIMES = frozenset({"time_created", "time_completed"})
#: Keys of data that a loss names at most.
_MOST_KEYS = 6


class Examination:
    """The comparison of the records of one session with a statement.

    It is made for every part of every message: what follows from the statement alone
    is derived once for each sort of records.
    """

    def __init__(
        self, statement: CarryStatement, session_id: str, losses: Losses
    ) -> None:
        self._statement = statement
        self._session_id = session_id
        self._losses = losses
        self._sorts: dict[tuple[str, str | None], _MessageSort] = {}

    def examine_session(self, session: Session, *, is_own: bool) -> None:
        """Add the fields of *session* that are not carried."""
        statement = self._statement
        carried = statement.own_session if is_own else statement.session
        # These are derived again, from the first prompt and the last answer.
        if session.title_source == "derived":
            carried = replace(carried, fields=carried.fields | {"title"})
        if session.model_source == "derived":
            carried = replace(carried, fields=carried.fields | MODEL)
        self._missing_fields("session", carried, Session).examine_record(session, None)

    def examine_message(self, message: Message) -> None:
        """Add the fields of *message* and its parts that are not carried."""
        kind = message.role, message.kind
        sort = self._sorts.get(kind)
        if sort is None:
            sort = self._sorts[kind] = self._new_sort(message)
        if sort.missing is None:
            self._losses.add_loss(
                self._session_id, sort.name, "", message_id=message.id
            )
            return

        sort.missing.examine_record(message, message.id)
        for part in message.parts:
            missing = sort.parts.get(part.type)
            if missing is None and part.type not in sort.parts:
                missing = sort.parts[part.type] = self._missing_of_part(message, part)
            if missing is None:
                lost = f"{sort.name}/{part.type}"
                self._losses.add_loss(self._session_id, lost, "", message_id=message.id)
            else:
                missing.examine_record(part, message.id)

    def carries_message(self, message: Message, part: str | None = None) -> bool:
        """Return whether messages like *message* are carried, or *part*s of them."""
        carried = self._carried_of(message)
        if carried is None or part is None:
            return carried is not None
        return part in carried.parts or ANY in carried.parts

    def _carried_of(self, message: Message) -> Carried | None:
        messages = self._statement.messages
        return messages.get(sort_of(message)) or messages.get(message.role)

    def _new_sort(self, message: Message) -> _MessageSort:
        name = sort_of(message)
        carried = self._carried_of(message)
        if carried is None:
            return _MessageSort(name, None)
        return _MessageSort(name, self._missing_fields(name, carried, Message))

    def _missing_of_part(self, message: Message, part: Part) -> _MissingFields | None:
        message_carried = self._carried_of(message)
        if message_carried is None:
            return None
        parts = message_carried.parts
        carried = parts.get(part.type, parts.get(ANY))
        if carried is None:
            return None
        return self._missing_fields(f"{sort_of(message)}/{part.type}", carried, Part)

    def _missing_fields(
        self, sort: str, carried: Carried, record: type
    ) -> _MissingFields:
        return _MissingFields(self._session_id, self._losses, sort, carried, record)


class _MessageSort:
    """The messages of one role and kind."""

    __slots__ = ("missing", "name", "parts")

    def __init__(self, name: str, missing: _MissingFields | None) -> None:
        #: Their name as `sort_of` has it.
        self.name = name
        #: The fields that are missing of them; None if they are lost.
        self.missing = missing
        #: The same of their parts, by type.
        self.parts: dict[str, _MissingFields | None] = {}


class _MissingFields:
    """The fields that are not carried of records of one sort, with their losses."""

    def __init__(
        self,
        session_id: str,
        losses: Losses,
        sort: str,
        carried: Carried,
        record: type,
    ) -> None:
        self._session_id = session_id
        self._losses = losses
        self._sort = sort
        self._entries: dict[str, _LossEntry] = {}
        self._keys = carried.keys
        partly_carried = carried.values.keys() | carried.objects | carried.texts
        missing = carriable_fields(record) - carried.fields - partly_carried
        self._has_data = "data" in missing
        # A message that begins and ends at once has a single time.
        self._has_one_time = record is Message and len(missing & _TIMES) == 1
        self._values = tuple(carried.values.items())
        #: How the values begin that are carried.
        self._beginnings: list[tuple[str, tuple[str, ...]]] = []
        self._beginnings += [(name, ("{",)) for name in carried.objects]
        self._beginnings += [(name, ("{", '"')) for name in carried.texts]
        # In the order of the record, which is that of the report.
        ordered = [item.name for item in fields(record)]
        self._names = [n for n in ordered if n in missing and n != "data"]
        self._get = attrgetter(*self._names) if self._names else None

    def examine_record(self, record: Any, message_id: str | None) -> None:
        """Count the fields of *record* that have a value and are not carried."""
        if self._get is not None:
            self._lose_missing(self._get(record), record, message_id)
        for name, carried in self._values:
            value = getattr(record, name)
            if value and value not in carried:
                self._count_lost(name, message_id)
        for name, beginnings in self._beginnings:
            value = getattr(record, name)
            if value and not value.startswith(beginnings):
                self._count_lost(name, message_id)
        if self._has_data and record.data and not record.data.keys() <= self._keys:
            keys = self._count_lost("data", message_id).keys
            if len(keys) < _MOST_KEYS:
                keys.update(dict.fromkeys(record.data.keys() - self._keys))

    def _lose_missing(self, values: Any, record: Any, message_id: str | None) -> None:
        """Count the *values* of fields of which none is carried."""
        # A getter of one name returns no tuple.
        if len(self._names) == 1:
            values = (values,)
        is_one_time = (
            self._has_one_time and record.time_created == record.time_completed
        )
        for name, value in zip(self._names, values, strict=True):
            # A cost of 0 is known; tokens of which there are none need no record.
            is_zero = value == 0 and value is not False
            has_value = value or (is_zero and name not in TOKENS)
            if has_value and not (name in _TIMES and is_one_time):
                self._count_lost(name, message_id)

    def _count_lost(self, name: str, message_id: str | None) -> _LossEntry:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._losses.loss_entry(
                self._session_id, self._sort, name, "", message_id
            )
            self._entries[name] = entry
        entry.times += 1
        return entry
