"""The records of a session, and the fields of each.

A record holds what a row of the database holds, under the names of its columns;
what is NULL or empty is left out. ``time`` of the envelope is the row's time of
creation, or when something ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from hashlib import sha256
from operator import attrgetter
from typing import Any

from sessiondb.formats.kit.fields import without_empty, without_keys, without_none
from sessiondb.model import (
    Export,
    FileDiff,
    Message,
    MessageDraft,
    Part,
    Session,
    versions,
)
from sessiondb.model.records import Tokens

SCHEMA_VERSION = 1
#: A text, an input or bytes of this many bytes are a blob: a record, once per file.
BLOB_BYTES = 4096

#: Role and kind of a message → type of its record; any other event is ``event``.
ROLE_TYPES = {
    "user": "user",
    "assistant": "assistant_started",
    "tool": "tool_message",
    "system": "system",
    "event": "event",
}
EVENT_TYPES = ("context", "cancelled", "failed")
MESSAGE_TYPES = {kind: role for role, kind in ROLE_TYPES.items()} | dict.fromkeys(
    EVENT_TYPES, "event"
)
#: Records that add to a message: parts and their beginnings, and what ends something.
PART_TYPES = ("text_finished", "reasoning_finished", "tool_started", "part")
ENDING_TYPES = ("tool_finished", "assistant_finished", "relinked")
#: Records of what may change about a session; each carries its ``revision``.
STATE_TYPES = (
    "session_renamed", "archived", "unarchived", "labeled", "unlabeled", "todos",
    "file_changed", "session_state", "deleted",
)  # fmt: skip
HEAD_TYPES = ("session_meta", "forked", "spawned")
PROMPT, EXTENSION_ROW = "prompt", "extension_row"

#: Known only when a message ends.
END_FIELDS = ("cost", "finish", "error")
#: What `MessageDraft` lacks: a caller does not set it.
KEY_FIELDS = ("usage_key", "usage_name")
#: Fields of a message that are in its record under other names, or in other records.
_ELSEWHERE = ("role", "id", "tokens", "data", "parts", "time_created", "time_completed")


def _message_fields() -> tuple[str, ...]:
    """Return what the record of a message has: all that a caller can set, in order."""
    names = {field.name for field in fields(MessageDraft)} | {*KEY_FIELDS}
    names -= {*END_FIELDS, *_ELSEWHERE}
    return tuple([field.name for field in fields(Message) if field.name in names])


MESSAGE_FIELDS = _message_fields()
#: Those that a caller can set.
STATED_FIELDS = tuple([name for name in MESSAGE_FIELDS if name not in KEY_FIELDS])
PART_FIELDS = ("tool", "call_id", "time_started")
RESULT_FIELDS = ("status", "outcome", "title", "time_ended")
_RESULT = (*RESULT_FIELDS, "text")
META_FIELDS = ("source", "source_id", "slug", "version", "agent", "time_imported")
#: Of a model that was stated; one that is derived is found in the messages.
MODEL_FIELDS = ("provider_id", "model_id", "model_source")
LINEAGE_FIELDS = (
    "relation", "parent_id", "parent_seq", "parent_source_id", "root_id", "call_id",
)  # fmt: skip
STATE_FIELDS = (
    "last_seq", "share_url", "revert", "permission", "scope", "summary_additions",
    "summary_deletions", "summary_files", "summary_diffs", "time_updated",
    "time_compacting", "time_detached",
)  # fmt: skip
PROJECT_FIELDS = ("worktree", "vcs", "remote", "root_commit")
TODO_FIELDS = ("content", "status", "priority", "id", "time_created", "time_updated")
_todo = attrgetter(*TODO_FIELDS)
PROMPT_FIELDS = ("source", "directory", "text")
DIFF_FIELDS = ("path", "patch", "additions", "deletions")
UNKNOWN = versions.UNKNOWN

_NEVER = versions.Version(0, 0)
_OF_STATE = frozenset({*versions.PLAIN, versions.LEAF, versions.SUMMARY, versions.DATA})

Record = dict[str, Any]


def _known_fields(holder: Any, names: Iterable[str]) -> Record:
    return {
        name: value for name in names if (value := getattr(holder, name)) is not None
    }


def pick_fields(record: Record, names: Iterable[str]) -> Record:
    """Return those fields of a record that *names* name."""
    return {name: record[name] for name in names if name in record}


def record_envelope(kind: str, session_id: str, seq: int, time: int) -> Record:
    """Return the beginning of a record."""
    return {
        "schema_version": SCHEMA_VERSION, "seq": seq, "time": time, "type": kind,
        "session_id": session_id,
    }  # fmt: skip


def head_records(export: Export) -> Iterator[Record]:
    """Yield the records that come first: the session, its lineage, its prompts."""
    yield _meta_record(export)
    session = export.session
    lineage = _known_fields(session, LINEAGE_FIELDS)
    if lineage.get("root_id") == session.id:
        del lineage["root_id"]
    if lineage:
        kind = "spawned" if session.relation == "subagent" else "forked"
        yield record_envelope(kind, session.id, 0, session.time_created) | lineage

    for prompt in export.prompts:
        record = record_envelope(PROMPT, session.id, 0, prompt.time_created)
        yield record | {"prompt_id": prompt.id} | _known_fields(prompt, PROMPT_FIELDS)


def extension_records(export: Export) -> Iterator[Record]:
    """Yield the rows that programs added to the session."""
    session = export.session
    for row in export.extension_rows:
        record = record_envelope(EXTENSION_ROW, session.id, 0, session.time_created)
        names = {"extension": row.extension, "table": row.table}
        yield record | names | {"row": row.columns}


def _meta_record(export: Export) -> Record:
    session, project = export.session, export.project
    record = record_envelope("session_meta", session.id, 0, session.time_created)
    record |= _known_fields(session, META_FIELDS) | {"directory": session.directory}
    if session.namespace:
        record["namespace"] = session.namespace
    if session.model_source != "derived":
        record |= _known_fields(session, MODEL_FIELDS)
    revision = _revision_of_about(export)
    if revision:
        record["revision"] = revision

    if project is not None:
        record["project"] = _known_fields(project, PROJECT_FIELDS)
    return record


def _revision_of_about(export: Export) -> int:
    """Return the revision of what may change in ``session_meta``; 0 if it never did."""
    session = export.session
    facts = {name: getattr(session, name) for name in versions.ABOUT_FIELDS}
    about = versions.about_of(facts)
    values = {versions.ABOUT: about} if about.count(None) < len(about) else {}
    base = pick_fields(dict(export.base), [versions.ABOUT])
    known_versions = versions.versions_of(values, base, session.revision, 0)
    return known_versions.get(versions.ABOUT, _NEVER).revision


def message_records(message: Message, parent_id: str | None) -> Iterator[Record]:
    """Yield a message: one record, an assistant's one for each step."""
    record = _beginning_of(message, parent_id)
    end = _known_fields(message, END_FIELDS)
    if message.tokens is not None:
        end["tokens"] = _known_fields(message.tokens, Tokens.__slots__)
    if message.role == "assistant":
        yield from _answer_records(message, record, end)
        return

    record |= end
    if message.time_completed is not None:
        record["time_completed"] = message.time_completed
    if message.parts:
        record["parts"] = [_part_record(part) for part in message.parts]
    yield record


def _beginning_of(message: Message, parent_id: str | None) -> Record:
    kind = ROLE_TYPES[message.role]
    fields = _known_fields(message, MESSAGE_FIELDS)
    if kind == "event" and message.kind in EVENT_TYPES:
        kind = fields.pop("kind")
    record = record_envelope(
        kind, message.session_id, message.seq, message.time_created
    )
    record |= {"message_id": message.id, "parent_id": parent_id, **fields}
    if message.inherited:
        record["inherited"] = True
    if message.data:
        record["data"] = message.data
    return record


def _answer_records(message: Message, record: Record, end: Record) -> Iterator[Record]:
    """Yield an answer, and the record of its end if it ended."""
    completed = message.time_completed
    yield record | (end if completed is None else {})
    for part in message.parts:
        yield from _part_steps(message, part)
    if completed is not None:
        ended = record_envelope(
            "assistant_finished", message.session_id, message.seq, completed
        )
        yield ended | {"message_id": message.id, **end}


def _part_record(part: Part) -> Record:
    names = {"part_id": part.id, "part_type": part.type, "time": part.time_created}
    return names | _call_fields(part) | _result_fields(part)


#: Statuses of calls that may still change.
_OPEN = (None, "pending", "running")


def _part_steps(message: Message, part: Part) -> Iterator[Record]:
    """Yield the beginning of a part and, of a call that ended, the result."""
    place = message.session_id, message.seq
    names = {"message_id": message.id, "part_id": part.id}
    kind = _kind_of(message, part)
    begun = record_envelope(kind, *place, part.time_created) | names | {"idx": part.idx}
    if kind == "part":
        begun["part_type"] = part.type
    begun |= _call_fields(part)
    if part.type != "tool" or part.status in _OPEN:
        yield begun | _result_fields(part)
        return

    yield begun
    when = part.time_updated if part.time_ended is None else part.time_ended
    ended = record_envelope("tool_finished", *place, when) | names
    yield ended | _known_fields(part, ("call_id",)) | _result_fields(part)


#: Type of a part → type of its record, in an open message and in a completed one.
_IN_OPEN = {"tool": "tool_started"}
_IN_COMPLETED = {
    "tool": "tool_started",
    "text": "text_finished",
    "reasoning": "reasoning_finished",
}


def _kind_of(message: Message, part: Part) -> str:
    kinds = _IN_OPEN if message.time_completed is None else _IN_COMPLETED
    return kinds.get(part.type, "part")


def _call_fields(part: Part) -> Record:
    record = _known_fields(part, PART_FIELDS)
    if part.synthetic:
        record["synthetic"] = True
    arguments = part.input_json
    if arguments is None:
        return record
    if len(arguments.encode()) >= BLOB_BYTES:
        return record | {"input_blob": arguments}
    return record | {"input": part.input}


def _result_fields(part: Part) -> Record:
    record = _known_fields(part, _RESULT)
    if part.data:
        record["data"] = part.data
    if part.time_updated != part.time_created:
        record["time_updated"] = part.time_updated
    return record


def state_values(export: Export, ids: Mapping[int, str]) -> dict[str, Any]:
    """Return the fields of a session that may change; *ids* of messages are by seq."""
    session = export.session

    def facts(names: Iterable[str]) -> dict[str, Any]:
        return {name: getattr(session, name) for name in names}

    diffs = (diff_value(diff, ids.get(diff.seq)) for diff in export.diffs)
    leaf_seq = session.leaf_seq
    return versions.values_of(
        title=(session.title, session.title_source),
        metadata=_exported_metadata(session),
        labels={x.label: ids[x.seq] for x in export.labels if x.seq in ids},
        todos=[list(_todo(todo)) for todo in export.todos],
        diffs=sorted(diffs, key=repr),
        about=versions.about_of(facts(versions.ABOUT_FIELDS)),
        summary=tuple(facts(versions.SUMMARY_FIELDS).values()),
        data=_exported_data(session),
        archived=session.time_archived,
        leaf=None if leaf_seq is None else ids.get(leaf_seq),
        **facts(versions.PLAIN),
    )


def diff_value(diff: FileDiff, message_id: str | None) -> list[Any]:
    """Return what identifies a file that was changed."""
    patch = None if diff.patch is None else diff.patch.encode("utf-8", "surrogatepass")
    sides = map(_hash_of, (patch, diff.before, diff.after))
    return [message_id, diff.path, *sides, diff.additions, diff.deletions]


def _hash_of(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


def state_records(export: Export, ids: Mapping[int, str]) -> Iterator[Record]:
    """Yield what may change about a session; *ids* of messages are by seq."""
    session = export.session
    values_here = state_values(export, ids)
    known_versions = versions.versions_of(
        values_here, export.base, session.revision, session.time_updated
    )

    def record(kind: str, version: versions.Version) -> Record:
        out = record_envelope(kind, session.id, session.last_seq, version.time)
        return out | {"revision": version.revision}

    def field(name: str, kind: str, **values: Any) -> Iterator[Record]:
        """Yield the record of a field that has a version, and of no other."""
        if name in known_versions:
            yield record(kind, known_versions[name]) | values

    title = {"title": session.title, "title_source": session.title_source}
    yield from field(versions.TITLE, "session_renamed", **title)
    archived = "unarchived" if session.time_archived is None else "archived"
    yield from field(versions.ARCHIVED, archived)

    yield from _label_records(values_here, known_versions, record)

    todos = [_known_fields(todo, TODO_FIELDS) for todo in export.todos]
    yield from field(versions.TODOS, "todos", todos=todos)
    for diff in export.diffs:
        digests = {"list": known_versions[versions.DIFFS].digest}
        yield from field(
            versions.DIFFS, "file_changed", **digests, **_diff_fields(diff, ids)
        )

    own_version = versions.Version(session.revision, session.time_updated)
    yield record("session_state", own_version) | _rest_of_state(
        session, values_here, known_versions
    )


def deletion_record(session_id: str, version: versions.Version) -> Record:
    """Return the record of a deletion; the digest identifies what it had seen."""
    record = record_envelope("deleted", session_id, 0, version.time)
    return record | {"revision": version.revision, "seen": version.digest}


def _label_records(
    values: Mapping[str, Any],
    known_versions: Mapping[str, versions.Version],
    record: Callable[[str, versions.Version], Record],
) -> Iterator[Record]:
    for name in sorted(
        name for name in known_versions if name.startswith(versions.LABEL)
    ):
        label = {
            "label": name.removeprefix(versions.LABEL),
            "message_id": values.get(name),
        }
        kind = "labeled" if name in values else "unlabeled"
        yield record(kind, known_versions[name]) | without_none(label)


def _diff_fields(diff: FileDiff, ids: Mapping[int, str]) -> Record:
    several = {
        "message_id": ids.get(diff.seq),
        "before_blob": diff.before,
        "after_blob": diff.after,
    }
    return _known_fields(diff, DIFF_FIELDS) | without_none(several)


def _rest_of_state(
    session: Session,
    values: Mapping[str, Any],
    known_versions: Mapping[str, versions.Version],
) -> Record:
    record = _known_fields(session, STATE_FIELDS)
    record["leaf_id"] = values.get(versions.LEAF)

    # Without an entry, a field that is here has the version of the record itself.
    implied = dict.fromkeys(values, (session.revision, session.time_updated))
    others = {}
    for name in sorted(known_versions):
        revision, time, *_ = known_versions[name]
        if is_of_state(name, values) and (revision, time) != implied.get(name):
            others[name] = [revision, time]

    several = {
        "metadata": _exported_metadata(session),
        "data": _exported_data(session),
        "versions": others,
    }
    return record | without_empty(several)


def is_of_state(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a field has no record of its own, and is in ``session_state``."""
    if name == versions.DIFFS:
        return name not in values
    return name in _OF_STATE or name.startswith(versions.METADATA)


def _exported_metadata(session: Session) -> Record:
    # Its secret is enough to end a share: it is never exported.
    return without_keys(("share",), session.metadata)


def _exported_data(session: Session) -> Record:
    return without_keys((UNKNOWN,), session.data)
