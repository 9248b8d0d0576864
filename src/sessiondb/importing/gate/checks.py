"""The gate: every value that a reader yields is checked before anything is queued.

All imports pass through it: sessions of other programs, our own logs, and sessions that
come back from another program. So a transaction never encounters a value that it cannot
store. Each kind of value has one rule:

* ids, labels and names of sources: non-empty, without control characters, valid
  Unicode, at most 256 bytes; anything else is refused;
* titles and other short texts: NUL and lone surrogates are replaced, as everywhere,
  because no column keeps them; another type is refused;
* numbers: integers of 64 bits, finite costs, within the bounds of their column;
* JSON and ``data``: stored exactly or refused.

A refused session is one `Problem` and none of its messages is read; a refused message
is one `Problem` and the session continues with the next. A value that a column cannot
hold and that is worth keeping stays with the raw record, in ``data``: a reader leaves
its field None. A number of a message that is out of bounds nevertheless is one
`Problem` and costs the message nothing else: its column is NULL, and ``data`` keeps it
under ``out_of_bounds``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from sessiondb import codec, ids
from sessiondb.effects import encode
from sessiondb.effects.fields import diff_row
from sessiondb.errors import InvalidInputError, SessionDBError, abridged
from sessiondb.importing.beside.prompts import typed_in
from sessiondb.importing.gate import values
from sessiondb.importing.gate.out_of_bounds import keep_in_data
from sessiondb.importing.gate.values import Check, check_fields
from sessiondb.importing.rows.run import CheckedSession, ImportEntry, ProjectFacts
from sessiondb.model import (
    MessageDraft,
    PartDraft,
    Problem,
    Prompt,
    SourceMessage,
    SourceProject,
    SourceSession,
    StoredMessage,
    StoredSession,
    Todo,
    bounds,
)
from sessiondb.schema.rows import Blob, MessageRow, PartRow

T = TypeVar("T")

#: Characters of an exception in a problem.
MAX_REASON = 300
#: Bytes of a part besides its large values, for the size of a transaction.
_PART_BYTES = 200

_SOUND_MESSAGE, _SOUND_PART = MessageDraft("user", id="m"), PartDraft("text", id="p")
#: The fields of a session that are not columns of its row.
_SESSION: Mapping[str, Check] = {
    "source_id": ids.valid_id,
    "source": ids.valid_id,
    "parent_source_id": values.optional_id,
    "parent_message": values.optional_id,
    "leaf": values.optional_id,
    "relation": values.one_of("fork", "subagent"),
    "directory": values.optional(values.directory),
    **dict.fromkeys(("may_move", "is_excerpt"), values.flag),
    "worktree": values.optional(values.directory),
    **dict.fromkeys(("vcs", "remote", "root_commit"), encode.string),
    **dict.fromkeys(("size", "mtime_ns", "message_count"), bounds.integer),
    "digest": values.exact,
    "namespace": values.namespace,
    "alias": values.optional_id,
    "complete": values.optional(values.function),
    "terminals": values.each(values.terminal_use, "a use in"),
}
#: The columns of its row that a source gives, but ``data`` and what depends on others.
_COLUMNS: Mapping[str, Check] = {
    **dict.fromkeys(
        "version agent provider_id model_id share_url call_id".split(), encode.string
    ),
    **dict.fromkeys(
        ("summary_additions", "summary_deletions", "summary_files"), bounds.integer
    ),
    **dict.fromkeys(("summary_diffs", "revert", "permission"), values.json),
    **dict.fromkeys(("time_updated", "time_compacting", "time_archived"), values.time),
    "time_created": values.filled(values.time, 0),
    "scope": values.optional_id,
    "title": values.filled(encode.string, ""),
    "title_source": values.stated(values.one_of("user", "agent", "derived")),
    "metadata": values.filled(values.json, "{}"),
}
#: The state of a session in the database that its log comes from.
_STORED: Mapping[str, Check] = {
    "id": values.session_id,
    "native": values.flag,
    "slug": values.optional_id,
    "root_id": values.optional_id,
    "parent_id": values.optional_id,
    "parent_seq": values.optional(values.counter),
    "leaf": values.optional_id,
    "last_seq": values.last_seq,
    "revision": values.counter,
    "time_detached": values.time,
    "time_imported": values.time,
    "model_source": values.one_of("caller", "source", "derived"),
    "labels": values.each(values.pair, "a pair in"),
    "prompts": values.items,
    "diff_messages": values.each(values.optional_id, "a name in"),
    "versions": values.versions,
    "seen": encode.string,
    "deleted": values.optional(values.version),
}
_STORED_MESSAGE: Mapping[str, Check] = {
    "seq": lambda value, field: values.counter(value, field, least=1),
    "inherited": values.flag,
    "usage_key": values.optional_id,
}
_names: Check = values.each(ids.valid_id, "a name in")
#: In the order of the columns.
_TODO: Mapping[str, Check] = {
    "id": encode.string,
    "content": values.filled(encode.string, ""),
    "status": values.filled(encode.string, "pending"),
    "priority": encode.string,
    "time_created": values.time,
    "time_updated": values.time,
}
_PROMPT: Mapping[str, Check] = {
    "id": ids.valid_id,
    "source": ids.valid_id,
    "directory": values.optional(values.directory),
    "time_created": values.stated(values.time),
    "text": values.stated(encode.string),
}
_PROJECT: Mapping[str, Check] = {
    "name": encode.string,
    "permission": values.json,
    "sandboxes": values.each(values.directory, "a directory in"),
    "time_created": bounds.time_ms,
    "time_initialized": bounds.time_ms,
}


# -- sessions ----------------------------------------------------------------


def check_session(item: SourceSession) -> CheckedSession:
    """Check everything of a session but its messages; raises `InvalidInputError`.

    The error names the field. A prompt or project that is refused does not cost the
    session more than itself: it is a problem of the result.
    """
    check_fields(item, _SESSION)
    _check_iterable(item.messages, "messages")
    _check_iterable(item.extension_rows, "extension_rows")
    if item.stored is not None:
        values.instance(item.stored, StoredSession, "stored")
        check_fields(item.stored, _STORED)

    blobs: list[Blob] = []
    diff_blobs: list[Blob] = []
    problems: list[Problem] = []
    diffs = values.optional(partial(_diff_rows, diff_blobs))

    packed = values.named("data", codec.pack_data, item.data)
    in_row, data_blob = encode.spill(packed, codec.MSGPACK, blobs)

    return CheckedSession(
        item=item,
        ledger=values.ledger_path(item.path, item.source_id),
        columns=_session_columns(item) | {"data": in_row, "data_blob": data_blob},
        blobs=tuple(blobs),
        data=packed,
        todos=_todos(item.todos, "todos"),
        diffs=diffs(item.diffs, "diffs"),
        diff_blobs=tuple(diff_blobs),
        prompts=_prompts_of_log(item, problems),
        project=_project_facts(item, problems),
        problems=tuple(problems),
    )


def refused_session(item: SourceSession, cause: Exception | str) -> Problem:
    """Return the problem of a session that is refused."""
    path = item.path if isinstance(item.path, str) else abridged(item.path)
    return Problem(path, f"session {values.shown(item.source_id)}: {cause}")


def _check_iterable(items: Any, field: str) -> None:
    text = isinstance(items, str | bytes | Mapping)
    if text or not hasattr(items, "__iter__"):
        raise InvalidInputError(
            f"{field} must be an iterable of them, not {abridged(items)}"
        )


def _session_columns(item: SourceSession) -> dict[str, Any]:
    row = check_fields(item, _COLUMNS)
    if not row["title"] and item.stored is None:
        row["title_source"] = "derived"
    if row["time_updated"] is None:
        row["time_updated"] = row["time_created"]

    derived = "derived" if item.model_id is None else "source"
    model_source = item.stored.model_source if item.stored else None
    return row | {"model_source": model_source or derived}


def _todo_rows(todos: Any, field: str) -> tuple[tuple[Any, ...], ...]:
    rows = []
    for index, todo in enumerate(values.items(todos, field)):
        place = f"{field}[{index}]"
        values.instance(todo, Todo, place)
        try:
            rows.append(tuple(check_fields(todo, _TODO).values()))
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}.{error}") from None
    return tuple(rows)


_todos = values.optional(_todo_rows)


def _diff_rows(
    blobs: list[Blob], diffs: Any, field: str
) -> tuple[tuple[Any, ...], ...]:
    rows = []
    places = set()
    for index, diff in enumerate(values.items(diffs, field)):
        row = values.named(f"{field}[{index}]", diff_row, diff, blobs)
        rows.append(row)
        seq, path, *_ = row
        places.add((values.counter(seq, f"{field}: seq"), path))

    # The table has one diff for each path of a message.
    if len(places) != len(rows):
        raise InvalidInputError(f"{field}: two of one message name the same path")
    return tuple(rows)


def _prompts_of_log(item: SourceSession, problems: list[Problem]) -> tuple[Prompt, ...]:
    """Return the prompts of a log that can be stored."""
    if item.stored is None:
        return ()
    prompts = []
    for value in item.stored.prompts:
        prompt = _unless_refused(item, problems, "a prompt", check_prompt, value)
        if prompt is not None:
            prompts.append(prompt)
    return tuple(prompts)


def _unless_refused(
    item: SourceSession,
    problems: list[Problem],
    noun: str,
    check: Callable[[Any], T],
    value: Any,
) -> T | None:
    """Return what *check* makes of a value; None, and a problem, if it refuses it."""
    try:
        return check(value)
    except InvalidInputError as error:
        problems.append(Problem(item.path, f"{noun} of {item.source_id}: {error}"))
        return None


def check_prompt(prompt: Any) -> Prompt:
    """Return a prompt as it is stored; raises `InvalidInputError`."""
    values.instance(prompt, Prompt, "a prompt")
    text = check_fields(prompt, _PROMPT)["text"]
    if not text:
        raise InvalidInputError("text is missing")
    return replace(prompt, text=text)  # type: ignore[no-any-return]


def _project_facts(item: SourceSession, problems: list[Problem]) -> ProjectFacts | None:
    """Return the project that a session names, if it can be stored."""
    # A log of sessiondb's has no projects: the row of its session names the directory.
    if item.project is None or item.stored is not None:
        return None
    project = item.project
    return _unless_refused(item, problems, "the project", check_project, project)


def check_project(project: Any) -> ProjectFacts:
    """Return a project as it is stored; raises `InvalidInputError`."""
    values.instance(project, SourceProject, "project")
    if not isinstance(project.record, Mapping):
        raise InvalidInputError(
            f"record must be a mapping, not {abridged(project.record)}"
        )
    record = values.json(dict(project.record), "record")

    facts = check_fields(project, _PROJECT)
    facts["sandboxes"] = tuple(
        path for path in facts["sandboxes"] if os.path.isabs(path)
    )
    return ProjectFacts(**facts, record=record if project.record else None)


# -- messages ----------------------------------------------------------------


def entries(item: SourceSession, problems: list[Problem]) -> Iterator[ImportEntry]:
    """Yield the messages that pass the gate; add the others to *problems*."""
    seen: set[str] = set()
    remainder = f"session {item.source_id}: its other messages"
    for message in read_on(item.messages, item.path, remainder):
        if isinstance(message, Problem):
            problems.append(message)
            continue
        try:
            entry = _accept_message(item, message, seen, problems)
        except InvalidInputError as error:
            problems.append(_refused_message(item, message, error))
            continue

        # A large message must not be held by this frame while it is written.
        del message
        yield entry


def read_on(items: Iterable[Any], path: str, remainder: str) -> Iterator[Any]:
    """Yield what a reader finds at *path*; *remainder* names what follows.

    If the reader fails, that is the last problem: what came before is imported.
    """
    try:
        yield from items
    except Exception as error:
        yield Problem(path, f"{remainder} cannot be read: {reason(error)}")


def reason(error: Exception) -> str:
    """Return an exception's message, with its type if no reader should raise it."""
    expected = isinstance(error, OSError | SessionDBError)
    text = str(error) if expected else f"its reader failed: {error!r}"
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"


def _refused_message(
    item: SourceSession, message: Any, cause: Exception | str
) -> Problem:
    name = values.shown(getattr(getattr(message, "draft", None), "id", None))
    return Problem(item.path, f"message {name} of {item.source_id}: {cause}")


def _accept_message(
    item: SourceSession, message: Any, seen: set[str], problems: list[Problem]
) -> ImportEntry:
    """Return a message as rows, without the numbers that no column takes.

    Those are in its ``data`` then, and named in *problems*. Raises `InvalidInputError`
    for a message that cannot be imported.
    """
    stored = None if item.stored is None else _stored_message(message)
    try:
        entry = check_message(message, seen, stored)
    except InvalidInputError as error:
        bounded, names = keep_in_data(message)
        if not names:
            raise
        entry = check_message(bounded, seen, stored)
        cause = f"{error}; imported without {', '.join(names)}"
        problems.append(_refused_message(item, message, cause))

    # In a store whose ids are its own, a message with the id of another is not a copy.
    if item.namespace and entry.usage_id == entry.row.id and message.usage_id is None:
        entry = entry._replace(usage_id=f"{item.namespace} {entry.usage_id}")
    return entry


def check_message(
    message: Any, seen: set[str], stored: StoredMessage | None = None
) -> ImportEntry:
    """Return a message as rows; its id is added to those *seen* before.

    Raises `InvalidInputError`, which names the field.
    """
    values.instance(message, SourceMessage, "a message")
    draft = message.draft
    values.instance(draft, MessageDraft, "draft")
    if draft.id is None:
        raise InvalidInputError("id is missing: the message could not be found again")

    blobs: list[Blob] = []
    row = _encode_draft(encode.encode_message, draft, _SOUND_MESSAGE, blobs)
    if row.id in seen:
        raise InvalidInputError(
            "id: another message of the session has it; the first one counts"
        )
    # An id depends on the place, so that a part without one is found again.
    parts = _part_rows(row, draft, blobs)
    if message.parent is not ...:
        values.optional_id(message.parent, "parent")
    _check_place(message)

    if stored is not None:
        name = encode.string(stored.usage_name, "usage_name")
        row = row._replace(usage_name=name or None)
    seen.add(row.id)
    size = _PART_BYTES * len(parts) + sum(blob.size for blob in blobs)
    for part in parts:
        size += len(part.text or "") + len(part.data or b"")
    return ImportEntry(
        row,
        parts,
        tuple(blobs),
        message.parent,
        message.usage_id or row.response_id or row.id,
        tuple(message.labels),
        tuple(message.unlabelled),
        message.alias,
        message.open,
        stored,
        size,
        None if stored else typed_in(draft),
        message.timeless,
    )


def _check_place(message: SourceMessage) -> None:
    """Check the fields of a message about its place; most have none."""
    encode.string(message.usage_id, "usage_id")
    if message.labels != ():
        _names(message.labels, "labels")
    if message.unlabelled != ():
        _names(message.unlabelled, "unlabelled")
    values.optional_id(message.alias, "alias")
    values.flag(message.open, "open")
    values.flag(message.timeless, "timeless")


def _stored_message(message: Any) -> StoredMessage:
    """Check what a message of a log was in its database; raises `InvalidInputError`."""
    stored = getattr(message, "stored", None)
    if not isinstance(stored, StoredMessage):
        raise InvalidInputError("seq is missing: a message of a log has one")
    check_fields(stored, _STORED_MESSAGE)
    values.optional_id(message.parent, "parent_id")
    return stored


def _part_rows(
    row: MessageRow, draft: MessageDraft, blobs: list[Blob]
) -> tuple[PartRow, ...]:
    """Return the parts; one without an id gets the same id in every import."""
    parts = []
    for idx, part in enumerate(values.items(draft.parts, "parts")):
        encode_one = encode.encode_part
        if isinstance(part, PartDraft) and part.id is None:
            part_id = ids.imported_part_id(row.id, idx, row.time_created or 0)
            encode_one = partial(encode.encode_part, default_id=part_id)
        place = f"parts[{idx}]"
        parts.append(_encode_draft(encode_one, part, _SOUND_PART, blobs, place))

    if len({part.id for part in parts}) != len(parts):
        raise InvalidInputError("parts: two of them have the same id")
    return tuple(parts)


def _encode_draft(
    encode_one: Callable[..., Any],
    draft: Any,
    sound: Any,
    blobs: list[Blob],
    *path: str,
) -> Any:
    """Encode a message or part; an error names the field that is to blame.

    The field is searched for after the fact, so that sound records cost nothing: it is
    the one without which the draft would be accepted.
    """
    try:
        return encode_one(draft, blobs, values.time)
    except InvalidInputError as error:
        names = ".".join([*path, *_fields_to_blame(encode_one, draft, sound)[:1]])
        raise type(error)(f"{names}: {error}" if names else str(error)) from None


def _fields_to_blame(
    encode_one: Callable[..., Any], draft: Any, sound: Any
) -> list[str]:
    """Return the fields without any one of which a draft would be accepted."""
    if not isinstance(draft, type(sound)):
        return []

    names = []
    for field in fields(sound):
        mended = replace(draft, **{field.name: getattr(sound, field.name)})
        if values.accepts(encode_one, mended, [], values.time):
            names.append(field.name)
    return names
