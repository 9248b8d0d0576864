"""The state of a session by all its records: of each field the greatest version.

A file may hold the records of several databases, one line behind the other as
git has merged them. Each record names the revision of what it says, so the order
of lines means nothing. A record without one was added by a program that knows no
revision: it counts as newer than all that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import Record
from sessiondb.formats.jsonl.scan import Found, Scan
from sessiondb.formats.kit.json import object_of, text_of
from sessiondb.model import FileDiff, Problem, versions
from sessiondb.model.versions import Version, digest, order

#: A revision grows by one for each write: a greater one is a mistake, and would never be exceeded.
MAX_REVISION = 1 << 53

_DERIVED = ["", "derived"]


class State:
    """The fields of one session of a file.

    ``values`` and ``versions`` are by name; a field that was taken away has a
    version alone. A record that cannot be one of its type is one of ``problems``.
    """

    def __init__(self, scan: Scan, found: Found, meta: Record) -> None:
        self.meta, self.problems = meta, list[Problem]()
        given = [record for _, record in found.state if record["type"] != "deleted"]
        self.seen = digest(sorted(found.messages))
        self.deleted = max(
            filter(None, (_deletion(r) for _, r in found.state)), default=None
        )
        rest = [record for record in given if record["type"] == "session_state"]
        self._scan = scan
        self.revision = max(
            filter(_is_revision, _numbers(given, "revision")), default=0
        )
        self.time_updated = _greatest(rest, "time_updated")
        self.time_detached = min(_numbers(rest, "time_detached"), default=None)
        self.last_seq = _greatest(rest, "last_seq") or 0
        self.names_leaf = any("leaf_id" in record for record in rest)

        self.values: dict[str, Any] = {}
        self.versions: dict[str, Version] = {}
        self.diffs: list[FileDiff] = []
        self.diff_messages: list[str | None] = []
        for line, record in found.state:
            try:
                for name, value, version in list(
                    _fields(record, self._version(record))
                ):
                    self._take(name, value, version)
            except (ValueError, TypeError, KeyError) as error:
                self.problems.append(scan.lines.skipped(error, line))
        self._take_about(meta)
        self._take_diffs([r for r in given if r["type"] == "file_changed"])

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value of a field."""
        return self.values.get(name, default)

    def below(self, prefix: str) -> dict[str, Any]:
        """Return the values whose names begin with *prefix*, without it."""
        found = (
            (name, value)
            for name, value in self.values.items()
            if name.startswith(prefix)
        )
        return {name.removeprefix(prefix): value for name, value in found}

    def _version(self, record: Record) -> Version:
        revision = record.get("revision", self.revision + 1)
        if not _is_revision(revision):
            raise ValueError(f"not a revision: {revision!r:.80}")
        return Version(revision, record["time"])

    def _take(self, name: str, value: Any, version: Version) -> bool:
        new = version._replace(digest=digest(value))
        known = self.versions.get(name)
        if known is not None and order(name, self.values.get(name), known) > order(
            name, value, new
        ):
            return False
        self.versions[name] = new
        self.values.pop(name, None)
        if value is not None:
            self.values[name] = value
        return True

    def _take_about(self, meta: Record) -> None:
        about = versions.about_of(meta)
        revision = meta["revision"] if _is_revision(meta.get("revision")) else 0
        if revision or any(value is not None for value in about):
            self._take(versions.ABOUT, about, Version(revision, 0))

    def _take_diffs(self, given: list[Record]) -> None:
        lists: dict[tuple[Version, str], list[Record]] = {}
        for record in given:
            if _is_revision(record.get("revision", 0)):
                key = self._version(record), str(record.get("list"))
                lists.setdefault(key, []).append(record)
        for (version, _), items in lists.items():
            # The numbers of messages are those of several databases: only their ids say something.
            ids = {name: n for n, name in enumerate(r.get("message_id") for r in items)}
            pairs = [
                (self._diff(record, ids), record.get("message_id")) for record in items
            ]
            # Merged files may hold one record twice, each with a number of its own.
            found = {repr(records.diff_value(*pair)): pair for pair in pairs}
            value = sorted(
                (records.diff_value(*pair) for pair in found.values()), key=repr
            )
            if self._take(versions.DIFFS, value, version):
                self.diffs = [diff for diff, _ in found.values()]
                self.diff_messages = [message_id for _, message_id in found.values()]
        if versions.DIFFS not in self.values:
            self.diffs, self.diff_messages = [], []

    def _diff(self, record: Record, ids: Mapping[str | None, int]) -> FileDiff:
        sides: dict[str, Any] = {
            side: self._scan.blob(record[f"{side}_blob"])
            for side in ("before", "after")
            if f"{side}_blob" in record
        }
        known = {name: record[name] for name in records.DIFF_FIELDS if name in record}
        if "patch_blob" in record:
            known["patch"] = self._scan.blob(record["patch_blob"]).decode(
                "utf-8", "surrogatepass"
            )
        message_id = record.get("message_id")
        where = 0 if message_id is None else ids[message_id] + 1
        return FileDiff(seq=where, **known, **sides)


def _deletion(record: Record) -> Version | None:
    revision, seen = record.get("revision"), record.get("seen")
    known = (
        record["type"] == "deleted" and type(revision) is int and isinstance(seen, str)
    )
    if not known or not _is_revision(revision):
        return None
    return Version(revision or 0, record["time"], str(seen))


def _fields(record: Record, version: Version) -> Iterator[tuple[str, Any, Version]]:
    """Yield (name, value or None, version) of each field that a record says."""
    kind = record["type"]
    if kind == "session_renamed":
        title = [text_of(record["title"]), record.get("title_source", "derived")]
        yield versions.TITLE, None if title == _DERIVED else title, version
    elif kind in ("archived", "unarchived"):
        yield versions.ARCHIVED, record["time"] if kind == "archived" else None, version
    elif kind in ("labeled", "unlabeled"):
        message_id = text_of(record["message_id"]) if kind == "labeled" else None
        yield versions.LABEL + text_of(record["label"]), message_id, version
    elif kind == "todos":
        items = [
            [object_of(x).get(name) for name in records.TODO_FIELDS]
            for x in record["todos"]
        ]
        yield versions.TODOS, items or None, version
    elif kind == "session_state":
        yield from _rest(record, version)


def _rest(record: Record, version: Version) -> Iterator[tuple[str, Any, Version]]:
    summary = [record.get(name) for name in versions.SUMMARY_FIELDS]
    here = {
        name: record[name] for name in versions.PLAIN if record.get(name) is not None
    }
    here |= {
        versions.METADATA + k: [v] for k, v in object_of(record.get("metadata")).items()
    }
    if record.get("leaf_id") is not None:
        here[versions.LEAF] = text_of(record["leaf_id"])
    if any(value is not None for value in summary):
        here[versions.SUMMARY] = summary
    if record.get("data"):
        here[versions.DATA] = object_of(record["data"])

    named = {}
    for name, pair in object_of(record.get("versions")).items():
        revision, time = pair
        if not _is_revision(revision) or type(time) is not int:
            raise ValueError(f"not a version: {pair!r:.80}")
        named[name] = Version(revision, time)
    for name in {**here, **named}:
        if records.is_of_state(name, here):
            yield name, here.get(name), named.get(name, version)


def _is_revision(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_REVISION


def _numbers(given: list[Record], name: str) -> list[int]:
    return [record[name] for record in given if type(record.get(name)) is int]


def _greatest(given: list[Record], name: str) -> int | None:
    return max(_numbers(given, name), default=None)
