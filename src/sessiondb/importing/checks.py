"""The gate: every value that a reader yields is checked before anything is queued.

All imports pass it, those of other programs, those of our own logs and sessions that
come back from another program, so a transaction never finds a value that it cannot
store. One rule for each kind of value:

* ids, labels and names of sources: non-empty, without control characters, valid
  Unicode, at most 256 bytes; anything else is refused;
* titles and other short texts: NUL and lone surrogates are replaced, as everywhere,
  because no column keeps them; another type is refused;
* numbers: integers of 64 bits, finite costs, within the bounds of their column;
* JSON and ``data``: stored exactly or refused.

A refused session is one `Problem` and none of its messages is read; a refused message
is one `Problem` and the session continues with the next. A value that a column cannot hold
and that is worth keeping stays with the raw record, in ``data``: a reader leaves its field None.
A number of a message that is out of bounds all the same is one `Problem` and costs the
message nothing else: its column is NULL, and ``data`` keeps it under ``out_of_bounds``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sessiondb import codec, ids
from sessiondb.effects import encode
from sessiondb.effects.fields import diff_row
from sessiondb.effects.ingest import Entry
from sessiondb.effects.project_facts import ProjectFacts
from sessiondb.errors import CodecError, InvalidInputError, SessionDBError, abridged
from sessiondb.importing.out_of_bounds import keep_in_data
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
from sessiondb.model.versions import Version
from sessiondb.schema.rows import Blob, MessageRow, PartRow

RELATIONS = ("fork", "subagent")
TITLE_SOURCES = ("user", "agent", "derived")
MODEL_SOURCES = ("caller", "source", "derived")
#: The largest seq and revision of a log. Counters of a session only grow, so one near
#: the end of 64 bits would make every later write fail.
MAX_COUNTER = 1 << 53
#: Characters of a directory; no system has longer paths.
MAX_DIRECTORY = 32_767
#: Characters of an exception in a problem.
MAX_REASON = 300
#: Bytes of a message besides its large values, for the size of a transaction.
_PART_BYTES = 200

_SOUND_MESSAGE, _SOUND_PART = MessageDraft("user", id="m"), PartDraft("text", id="p")
_STRINGS = ("version", "agent", "provider_id", "model_id", "share_url", "call_id")
_JSON = ("summary_diffs", "revert", "permission")
_COUNTS = ("summary_additions", "summary_deletions", "summary_files")
_TIMES = (
    "time_created",
    "time_completed",
    "time_updated",
    "time_started",
    "time_ended",
)
_OPTIONAL_IDS = ("parent_source_id", "parent_message", "leaf")


@dataclass(frozen=True, slots=True)
class CheckedSession:
    """The values of a session's row, lists and ledger entry; all of them can be stored.

    ``columns`` are those of its row that the source gives. ``todos`` are rows from ``id``
    on, ``diffs`` from ``seq`` on; None is a list that the source does not have.
    ``problems`` name what was refused and does not cost the session more than itself.
    """

    ledger: str
    columns: dict[str, Any]
    blobs: tuple[Blob, ...]
    todos: tuple[tuple[Any, ...], ...] | None
    diffs: tuple[tuple[Any, ...], ...] | None
    diff_blobs: tuple[Blob, ...]
    project: ProjectFacts | None
    problems: tuple[Problem, ...]


def check_session(item: SourceSession) -> CheckedSession:
    """Check everything of a session but its messages; raises `InvalidInputError`.

    The error names the field.
    """
    ids.valid_id(item.source_id, "source_id")
    ids.valid_id(item.source, "source")
    for name in _OPTIONAL_IDS:
        _optional_id(getattr(item, name), name)
    _one_of(item.relation, RELATIONS, "relation")
    for name in ("directory", "worktree"):
        check_directory(getattr(item, name), name)
    for name in ("vcs", "remote", "root_commit"):
        encode.string(getattr(item, name), name)
    bounds.integer(item.size, "size")
    bounds.integer(item.mtime_ns, "mtime_ns")
    if (
        not isinstance(item.digest, str)
        or not item.digest
        or codec.readable(item.digest)[1]
    ):
        raise InvalidInputError(
            f"digest must be a non-empty string, not {abridged(item.digest)}"
        )

    blobs: list[Blob] = []
    diff_blobs: list[Blob] = []
    project, problems = _project(item)
    return CheckedSession(
        ledger=f"{_path(item.path)}#{item.source_id}",
        columns=_columns(item, blobs),
        blobs=tuple(blobs),
        todos=_todos(item.todos),
        diffs=_diffs(item.diffs, diff_blobs),
        diff_blobs=tuple(diff_blobs),
        project=project,
        problems=problems,
    )


def _project(item: SourceSession) -> tuple[ProjectFacts | None, tuple[Problem, ...]]:
    """Return the project that a session names; one that is refused is a problem."""
    # A log of ours has no projects: the row of its session names the directory.
    if item.project is None or item.stored is not None:
        return None, ()
    try:
        return check_project(item.project), ()
    except InvalidInputError as error:
        why = f"the project of {item.source_id}: {error}"
        return None, (Problem(item.path, why),)


def check_stored(of: Any) -> StoredSession:
    """Check the stored state of one of our sessions, from the database it comes from.

    Raises `InvalidInputError`.
    """
    if not isinstance(of, StoredSession):
        raise InvalidInputError(f"stored must be a StoredSession, not {abridged(of)}")
    check_session_id(of.id, "id")
    for name in ("slug", "root_id", "parent_id", "leaf"):
        _optional_id(getattr(of, name), name)
    _flag(of.native, "native")
    for name in ("last_seq", "revision"):
        _counter(getattr(of, name), name, least=0)
    if of.parent_seq is not None:
        _counter(of.parent_seq, "parent_seq", least=0)
    _time(of.time_detached, "time_detached")
    _time(of.time_imported, "time_imported")
    _one_of(of.model_source, MODEL_SOURCES, "model_source")
    for pair in _items(of.labels, "labels"):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidInputError(
                f"labels are pairs of a message id and a name: {abridged(pair)}"
            )
        for name in pair:
            ids.valid_id(name, "a name in labels")
    _items(of.prompts, "prompts")
    for name in _items(of.diff_messages, "diff_messages"):
        _optional_id(name, "a name in diff_messages")
    _check_versions(of.versions)
    encode.string(of.seen, "seen")
    if of.deleted is not None:
        _check_versions({"deleted": of.deleted})
    return of


def _check_versions(found: Any) -> None:
    if not isinstance(found, Mapping):
        raise InvalidInputError(f"versions must be a mapping, not {abridged(found)}")
    for name, version in found.items():
        if not isinstance(name, str) or codec.readable(name)[1]:
            raise InvalidInputError(
                f"versions: a field has no such name: {abridged(name)}"
            )
        if not isinstance(version, Version):
            raise InvalidInputError(
                f"versions must be Version, not {abridged(version)}"
            )
        _counter(version.revision, "revision", least=0)
        _time(version.time, "time")


def check_prompt(of: Any) -> str:
    """Check a line of the prompt history and return its text; raises `InvalidInputError`."""
    if not isinstance(of, Prompt):
        raise InvalidInputError(f"a prompt must be a Prompt, not {abridged(of)}")
    ids.valid_id(of.id, "id")
    ids.valid_id(of.source, "source")
    check_directory(of.directory, "directory")
    if _time(of.time_created, "time_created") is None:
        raise InvalidInputError("time_created is missing")
    text = encode.string(of.text, "text")
    if not text:
        raise InvalidInputError("text is missing")
    return text


def check_project(of: Any) -> ProjectFacts:
    """Return what a source says of a project as it is stored; raises `InvalidInputError`."""
    if not isinstance(of, SourceProject):
        raise InvalidInputError(f"project must be a SourceProject, not {abridged(of)}")
    for directory in _items(of.sandboxes, "sandboxes"):
        if check_directory(directory, "a directory in sandboxes") is None:
            raise InvalidInputError("sandboxes: one of them is None")
    if not isinstance(of.record, Mapping):
        raise InvalidInputError(f"record must be a mapping, not {abridged(of.record)}")

    record = _named("record", encode.json_column, dict(of.record), "record")
    return ProjectFacts(
        encode.string(of.name, "name"),
        _named("permission", encode.json_column, of.permission, "permission"),
        tuple(path for path in of.sandboxes if os.path.isabs(path)),
        bounds.time_ms(of.time_created, "time_created"),
        bounds.time_ms(of.time_initialized, "time_initialized"),
        record if of.record else None,
    )


def accept_message(
    found: Any, seen: set[str]
) -> tuple[SourceMessage, Entry, int, InvalidInputError | None]:
    """Return what `check_message` does, after the message itself, and what it is without.

    The last is an error that names the numbers out of bounds, which are in ``data``
    now, or None. Raises `InvalidInputError` for a message that cannot be imported.
    """
    try:
        return found, *check_message(found, seen), None
    except InvalidInputError as error:
        bounded, names = keep_in_data(found)
        if not names:
            raise
        why = InvalidInputError(f"{error}; imported without {', '.join(names)}")
        return bounded, *check_message(bounded, seen), why


def check_message(found: Any, seen: set[str]) -> tuple[Entry, int]:
    """Return a message as rows, and its bytes; its id is added to those *seen* before.

    Raises `InvalidInputError`, which names the field.
    """
    if not isinstance(found, SourceMessage):
        raise InvalidInputError(f"must be a SourceMessage, not {abridged(found)}")
    draft = found.draft
    if not isinstance(draft, MessageDraft):
        raise InvalidInputError(f"draft must be a MessageDraft, not {abridged(draft)}")
    if draft.id is None:
        raise InvalidInputError("id is missing: the message could not be found again")
    if isinstance(draft.id, str) and draft.id in seen:
        raise InvalidInputError(
            "id: another message of the session has it; the first one counts"
        )

    blobs: list[Blob] = []
    row = _encoded(encode.encode_message, draft, _SOUND_MESSAGE, blobs)
    parts = []
    for idx, part in enumerate(_items(draft.parts, "parts")):
        if isinstance(part, PartDraft) and part.id is None:
            made = row.time_created or 0
            part = replace(part, id=ids.imported_part_id(row.id, idx, made))  # noqa: PLW2901
        parts.append(
            _encoded(encode.encode_part, part, _SOUND_PART, blobs, f"parts[{idx}]")
        )
    bounds.usd(row.cost)
    for dated in (row, *parts):
        _check_times(dated)
    if len({part.id for part in parts}) != len(parts):
        raise InvalidInputError("parts: two of them have the same id")

    _check_place(found)
    seen.add(row.id)
    weight = sum(blob.size for blob in blobs)
    weight += sum(
        len(part.text or "") + len(part.data or b"") + _PART_BYTES for part in parts
    )
    usage_id = found.usage_id or row.response_id or row.id
    entry = Entry(
        row, tuple(parts), tuple(blobs), found.parent, usage_id, tuple(found.labels)
    )
    return entry, weight


def check_stored_message(found: Any) -> StoredMessage:
    """Check what a message of a log was in its database; raises `InvalidInputError`."""
    of = getattr(found, "stored", None)
    if not isinstance(of, StoredMessage):
        raise InvalidInputError("seq is missing: a message of a log has one")
    _counter(of.seq, "seq", least=1)
    _flag(of.inherited, "inherited")
    _optional_id(of.usage_key, "usage_key")
    _optional_id(found.parent, "parent_id")
    return of


def check_session_id(value: Any, what: str) -> str:
    """Return an id under which a session can be named; raises `InvalidInputError`."""
    name = ids.valid_id(value, what)
    if name.startswith("@"):
        raise InvalidInputError(
            f"{what} begins with @, which names the last session: {name!r}"
        )
    return name


def check_directory(value: Any, what: str) -> str | None:
    """Return *value* if it is None or can be a directory; raises `InvalidInputError`."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} must be a string, not {abridged(value)}")
    if len(value) > MAX_DIRECTORY or codec.readable(value)[1]:
        raise InvalidInputError(
            f"{what} must be a path of at most {MAX_DIRECTORY} characters, valid Unicode and "
            f"without NUL, not {abridged(value)}"
        )
    return value


def records(item: SourceSession) -> Iterator[Any]:
    """Yield the messages and problems of a session.

    Where its reader fails, that is the last problem: what it read before is imported.
    """
    try:
        yield from item.messages
    except Exception as error:
        why = f"its other messages cannot be read: {reason(error)}"
        yield Problem(item.path, f"session {item.source_id}: {why}")


def reason(error: Exception) -> str:
    """Return an exception's message; one that no reader should raise is named by its type."""
    expected = isinstance(error, OSError | SessionDBError)
    text = str(error) if expected else f"its reader failed: {error!r}"
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}…"


def refused_session(item: SourceSession, error: Exception) -> Problem:
    """Return the problem that a session is."""
    return Problem(
        _path_or_abridged(item.path), f"session {_name(item.source_id)}: {error}"
    )


def refused_message(item: SourceSession, found: Any, error: Exception) -> Problem:
    """Return the problem that a message is."""
    name = _name(getattr(getattr(found, "draft", None), "id", None))
    return Problem(item.path, f"message {name} of {item.source_id}: {error}")


def _columns(item: SourceSession, blobs: list[Blob]) -> dict[str, Any]:
    title = encode.string(item.title, "title") or ""
    _one_of(item.title_source, TITLE_SOURCES, "title_source", required=True)
    if isinstance(item.messages, str | bytes | Mapping) or not hasattr(
        item.messages, "__iter__"
    ):
        raise InvalidInputError(
            f"messages must be an iterable of them, not {abridged(item.messages)}"
        )
    packed = _named("data", codec.pack_data, item.data)
    data_blob = encode.spill(packed, codec.MSGPACK, blobs)
    created = _time(item.time_created, "time_created") or 0
    updated = _time(item.time_updated, "time_updated")
    return {
        **{name: encode.string(getattr(item, name), name) for name in _STRINGS},
        **{name: bounds.integer(getattr(item, name), name) for name in _COUNTS},
        **{
            name: _named(name, encode.json_column, getattr(item, name), name)
            for name in _JSON
        },
        "title": title,
        "model_source": _model_source(item),
        "title_source": item.title_source if title or item.stored else "derived",
        "metadata": _named("metadata", encode.json_column, _metadata(item), "metadata"),
        "time_created": created,
        "time_updated": created if updated is None else updated,
        "time_compacting": _time(item.time_compacting, "time_compacting"),
        "time_archived": _time(item.time_archived, "time_archived"),
        "data": None if data_blob else packed,
        "data_blob": data_blob,
    }


def _model_source(item: SourceSession) -> str:
    stated = getattr(item.stored, "model_source", None)
    return stated or ("derived" if item.model_id is None else "source")


def _metadata(item: SourceSession) -> Any:
    return {} if item.metadata is None else item.metadata


def _todos(given: Any) -> tuple[tuple[Any, ...], ...] | None:
    if given is None:
        return None
    rows = []
    for index, todo in enumerate(_items(given, "todos")):
        where = f"todos[{index}]"
        if not isinstance(todo, Todo):
            raise InvalidInputError(f"{where} must be a Todo, not {abridged(todo)}")
        rows.append(
            (
                encode.string(todo.id, f"{where}.id"),
                encode.string(todo.content, f"{where}.content") or "",
                encode.string(todo.status, f"{where}.status") or "pending",
                encode.string(todo.priority, f"{where}.priority"),
                _time(todo.time_created, f"{where}.time_created"),
                _time(todo.time_updated, f"{where}.time_updated"),
            )
        )
    return tuple(rows)


def _diffs(given: Any, blobs: list[Blob]) -> tuple[tuple[Any, ...], ...] | None:
    if given is None:
        return None
    rows = tuple(
        _named(f"diffs[{index}]", diff_row, diff, blobs)
        for index, diff in enumerate(_items(given, "diffs"))
    )
    for row in rows:
        _counter(row[0], "diffs: seq", least=0)
    if len({row[:2] for row in rows}) != len(rows):
        raise InvalidInputError("diffs: two of one message name the same path")
    return rows


def _check_place(found: SourceMessage) -> None:
    if found.parent is not ...:
        _optional_id(found.parent, "parent")
    if found.usage_id is not None and not isinstance(found.usage_id, str):
        raise InvalidInputError(
            f"usage_id must be a string, not {abridged(found.usage_id)}"
        )
    for name in _items(found.labels, "labels"):
        ids.valid_id(name, "a name in labels")
    if found.copied_from is not None:
        for name in _items(found.copied_from, "copied_from"):
            ids.valid_id(name, "copied_from")


def _encoded(
    encode_one: Callable[..., Any],
    draft: Any,
    sound: Any,
    blobs: list[Blob],
    where: str = "",
) -> Any:
    """Encode a message or part; an error names the field that is to blame.

    Which one that is, is found out after the fact, so that sound records cost nothing: it is
    the field without which the draft would be accepted.
    """
    try:
        return encode_one(draft, blobs)
    except InvalidInputError as error:
        names = [where] if where else []
        if isinstance(draft, type(sound)):
            names += [
                field.name
                for field in fields(sound)
                if _accepts(
                    encode_one,
                    replace(draft, **{field.name: getattr(sound, field.name)}),
                )
            ][:1]
        why = ".".join(names)
        raise type(error)(f"{why}: {error}" if why else str(error)) from None


def _accepts(encode_one: Callable[..., Any], draft: Any) -> bool:
    try:
        encode_one(draft, [])
    except InvalidInputError:
        return False
    return True


def _named(what: str, check: Callable[..., Any], *args: Any) -> Any:
    try:
        return check(*args)
    except InvalidInputError as error:
        kind = CodecError if isinstance(error, CodecError) else InvalidInputError
        raise kind(f"{what}: {error}") from None


def _items(value: Any, what: str) -> tuple[Any, ...] | list[Any]:
    if isinstance(value, tuple | list):
        return value
    raise InvalidInputError(f"{what} must be a sequence, not {abridged(value)}")


def _optional_id(value: Any, what: str) -> None:
    if value is not None:
        ids.valid_id(value, what)


def _one_of(
    value: Any, allowed: tuple[str, ...], what: str, *, required: bool = False
) -> None:
    encode.one_of(value, allowed, what)
    if required and value is None:
        raise InvalidInputError(f"{what} is one of {', '.join(allowed)}, not None")


def _counter(value: Any, what: str, *, least: int) -> None:
    if type(value) is not int or not least <= value <= MAX_COUNTER:
        raise InvalidInputError(
            f"{what} must be an integer from {least} to {MAX_COUNTER}, not {abridged(value)}"
        )


def _check_times(row: MessageRow | PartRow) -> None:
    for name in _TIMES:
        if (stated := getattr(row, name, None)) is not None:
            _time(stated, name)


def _time(value: Any, what: str) -> int | None:
    # A program's time may be any small number; a large one would spoil every order.
    return bounds.integer(value, what, least=0, most=bounds.TIME_MOST)


def _flag(value: Any, what: str) -> None:
    if type(value) is not bool:
        raise InvalidInputError(f"{what} must be true or false, not {abridged(value)}")


def _path(value: Any) -> str:
    """Return the path of a file as the ledger keeps it: bytes that are not UTF-8 are escaped."""
    if not isinstance(value, str) or not value:
        raise InvalidInputError(
            f"path must be a non-empty string, not {abridged(value)}"
        )
    return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _path_or_abridged(value: Any) -> str:
    return value if isinstance(value, str) else abridged(value)


def _name(value: Any) -> str:
    fits = (
        isinstance(value, str)
        and value.isprintable()
        and len(value) <= ids.MAX_ID_BYTES
    )
    return value if fits else abridged(value)
