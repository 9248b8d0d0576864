"""The state of a session by all its records: of each field the greatest version.

A file may hold the records of several databases, one line behind the other as
git has merged them. Each record names the revision of its content, so the order
of lines means nothing. A record without one was added by a program without revisions:
it counts as newer than all that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, TypeGuard

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import Record, pick_fields
from sessiondb.formats.jsonl.scan import LoggedSession, Scan
from sessiondb.formats.kit.fields import fitting
from sessiondb.formats.kit.json import object_of, text_of
from sessiondb.formats.kit.lines import Line
from sessiondb.model import FileDiff, Problems, versions
from sessiondb.model.versions import Version, digest, order

#: A revision grows by one for each write: a greater one is a mistake.
MAX_REVISION = 1 << 53

_DERIVED = ["", "derived"]
#: Errors of a record whose values are not those of its type.
_UNUSABLE = (ValueError, TypeError, KeyError)


class LoggedState:
    """The fields of one session of a file.

    ``values`` and ``versions`` are by name; a field that was taken away has a
    version alone. A record that cannot be one of its type is one of ``problems``.
    """

    def __init__(self, scan: Scan, logged: LoggedSession, meta: Record) -> None:
        self.meta, self.problems = meta, Problems()
        self._scan = scan
        self.seen = digest(sorted(logged.messages))
        state_records = [record for _, record in logged.state]
        deletions = [_deletion_version(record) for record in state_records]
        self.deleted = max(
            (version for version in deletions if version is not None), default=None
        )
        self._summarise_records(state_records)

        self.values: dict[str, Any] = {}
        self.versions: dict[str, Version] = {}
        self.diffs: list[FileDiff] = []
        self.diff_messages: list[str | None] = []

        for line, record in logged.state:
            try:
                self._take_record(record)
            except _UNUSABLE as error:
                self.problems.append(scan.lines.skipped_line(error, line))

        # Lists come last: each is several records, which are taken together.
        self._take_about(meta)
        self._take_diffs(logged.state)

    def _summarise_records(self, records: list[Record]) -> None:
        """Set the fields that are the greatest, or the least, of all records."""
        living = [record for record in records if record["type"] != "deleted"]
        states = [record for record in living if record["type"] == "session_state"]

        revisions = _numbers_of(living, "revision")
        self.revision = max((n for n in revisions if _is_revision(n)), default=0)
        self.time_updated = max(_numbers_of(states, "time_updated"), default=None)
        self.time_detached = min(_numbers_of(states, "time_detached"), default=None)
        self.last_seq = max(_numbers_of(states, "last_seq"), default=0)
        self.names_leaf = any("leaf_id" in record for record in states)

    def value_of(self, name: str, default: Any = None) -> Any:
        """Return the value of a field."""
        return self.values.get(name, default)

    def values_below(self, prefix: str) -> dict[str, Any]:
        """Return the values whose names begin with *prefix*, without it."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.values.items()
            if name.startswith(prefix)
        }

    def _version_of(self, record: Record) -> Version:
        revision = record.get("revision", self.revision + 1)
        if not _is_revision(revision):
            raise ValueError(f"not a revision: {revision!r:.80}")
        return Version(revision, record["time"])

    def _take_record(self, record: Record) -> None:
        """Take every field of a record, or none if one of them cannot be."""
        version = self._version_of(record)
        # A list first: a later field may be refused.
        for name, value, own_version in list(fields_of(record, version)):
            self._take_field(name, value, own_version)

    def _take_field(self, name: str, value: Any, version: Version) -> bool:
        """Take a field unless a greater version is known; return whether it did."""
        new = version._replace(digest=digest(value))
        old = self.versions.get(name)
        if old is not None:
            old_order = order(name, self.values.get(name), old)
            if old_order > order(name, value, new):
                return False

        self.versions[name] = new
        self.values.pop(name, None)
        if value is not None:
            self.values[name] = value
        return True

    def _take_about(self, meta: Record) -> None:
        about = versions.about_of(meta)
        revision = fitting(meta.get("revision"), _is_revision, 0)
        if revision or about.count(None) < len(about):
            self._take_field(versions.ABOUT, about, Version(revision, 0))

    def _take_diffs(self, state: list[tuple[Line, Record]]) -> None:
        """Take the lists of changed files; one that cannot be is a problem."""
        lists: dict[tuple[Version, str], list[tuple[Line, Record]]] = {}
        for line, record in state:
            of_list = record["type"] == "file_changed"
            if of_list and _is_revision(record.get("revision", 0)):
                key = self._version_of(record), str(record.get("list"))
                lists.setdefault(key, []).append((line, record))

        for (version, _), items in lists.items():
            try:
                self._take_list(version, [record for _, record in items])
            except _UNUSABLE as error:
                first, _ = items[0]
                self.problems.append(self._scan.lines.skipped_line(error, first))

        # The list may have been emptied by a later version.
        if versions.DIFFS not in self.values:
            self.diffs, self.diff_messages = [], []

    def _take_list(self, version: Version, items: list[Record]) -> None:
        """Take one list of changed files."""
        # Seqs are those of several databases: only ids mean something.
        names = [record.get("message_id") for record in items]
        places = dict(zip(names, count(1))) | {None: 0}

        # Merged files may hold one record twice, each with a seq of its own.
        unique: dict[str, tuple[list[Any], FileDiff, str | None]] = {}
        for record, name in zip(items, names, strict=True):
            diff = self._diff_of(record, places)
            value = records.diff_value(diff, name)
            unique[repr(value)] = value, diff, name

        value = [unique[key][0] for key in sorted(unique)]
        if self._take_field(versions.DIFFS, value, version):
            self.diffs = [diff for _, diff, _ in unique.values()]
            self.diff_messages = [name for _, _, name in unique.values()]

    def _diff_of(self, record: Record, places: Mapping[str | None, int]) -> FileDiff:
        """Return a changed file, its blobs put in."""
        columns = pick_fields(record, records.DIFF_FIELDS)
        if "before_blob" in record:
            columns["before"] = self._scan.blob_bytes(record["before_blob"])
        if "after_blob" in record:
            columns["after"] = self._scan.blob_bytes(record["after_blob"])
        if "patch_blob" in record:
            columns["patch"] = self._scan.blob_text(record["patch_blob"])
        return FileDiff(seq=places[record.get("message_id")], **columns)


# -- the fields of a record: (name, value or None, version) of each ----------------

Field = tuple[str, Any, Version]


def fields_of(record: Record, version: Version) -> Iterator[Field]:
    """Yield the fields that a record of the state sets; none for other types."""
    match record["type"]:
        case "session_renamed":
            title = [text_of(record["title"]), record.get("title_source", "derived")]
            yield versions.TITLE, None if title == _DERIVED else title, version
        case "archived":
            yield versions.ARCHIVED, record["time"], version
        case "unarchived":
            yield versions.ARCHIVED, None, version
        case "labeled":
            message_id = text_of(record["message_id"])
            yield versions.LABEL + text_of(record["label"]), message_id, version
        case "unlabeled":
            yield versions.LABEL + text_of(record["label"]), None, version
        case "todos":
            items = []
            for item in record["todos"]:
                todo = object_of(item)
                items.append([todo.get(name) for name in records.TODO_FIELDS])
            yield versions.TODOS, items or None, version
        case "session_state":
            values = _values_of_state(record)
            own_versions = dict(_own_versions(record))
            for name in {**values, **own_versions}:
                if records.is_of_state(name, values):
                    yield name, values.get(name), own_versions.get(name, version)


def _values_of_state(record: Record) -> dict[str, Any]:
    """Return the fields of a ``session_state`` that have a value.

    A leaf, a summary or data without one was removed.
    """
    leaf = record.get("leaf_id")
    return versions.values_of(
        metadata=object_of(record.get("metadata")),
        summary=tuple([record.get(name) for name in versions.SUMMARY_FIELDS]),
        data=object_of(record.get("data") or None),
        leaf=None if leaf is None else text_of(leaf),
        **{name: record.get(name) for name in versions.PLAIN},
        # These have records of their own.
        title=("", "derived"),
        labels={},
        todos=[],
        diffs=[],
        about=[],
    )


def _own_versions(record: Record) -> Iterator[tuple[str, Version]]:
    """Yield the versions of fields that are not those of the record itself."""
    for name, pair in object_of(record.get("versions")).items():
        revision, time = pair
        if not _is_revision(revision) or type(time) is not int:
            raise ValueError(f"not a version: {pair!r:.80}")
        yield name, Version(revision, time)


def _deletion_version(record: Record) -> Version | None:
    """Return the version of a deletion; None for any other record."""
    revision, seen = record.get("revision"), record.get("seen")
    if record["type"] != "deleted" or not isinstance(seen, str):
        return None
    return Version(revision, record["time"], seen) if _is_revision(revision) else None


def _is_revision(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_REVISION


def _numbers_of(records: list[Record], name: str) -> list[int]:
    return [record[name] for record in records if type(record.get(name)) is int]
