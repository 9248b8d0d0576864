"""Sessions as ``goose session export`` writes them, and ``goose session import`` reads.

A session of Goose is written as it was; of another program the path that is continued.
Counts are flat, as before schema 14: newer releases read both forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.goose import fields
from sessiondb.formats.goose.database import NAME, GooseDatabase
from sessiondb.formats.goose.places import default_locations
from sessiondb.formats.goose.reader import SOURCE
from sessiondb.formats.goose.records import record_of
from sessiondb.formats.goose.usage import flat_tokens, sums_at_export
from sessiondb.formats.goose.visibility import is_shown
from sessiondb.formats.goose.writer import RESULTS, GooseWriter, as_sent
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Losing, continued_path, is_from, is_native
from sessiondb.formats.kit.conversion import json_text as text_of
from sessiondb.formats.kit.fields import (
    as_object,
    is_object,
    overlay,
    put_fields,
    value_at,
)
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.kit.turns import with_usage
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.protocol import FILE, Exporter, Handover, Outline, Written
from sessiondb.model import Document, Export, Message, Session

Record = dict[str, Any]


def _export_document(export: Export, losses: Losses) -> Iterator[Document]:
    record = Losing(export, losses).printable_record(session_document(export, losses))
    yield Document(f"{file_name(record['id'])}.json", (text_of(record),))


def session_document(export: Export, losses: Losses) -> Record:
    """Return a session as Goose exports it; *losses* grow."""
    session = export.session
    messages = list(export.messages)
    is_of_goose = is_from(session, SOURCE)
    if is_of_goose:
        record = _native_session(session)
        conversation = list(_native_records(export, messages, losses))
    else:
        path = with_usage(continued_path(export, messages, losses))
        conversation = list(_foreign_records(export, path, losses))
        ids_with_usage = {
            item["id"] for item in conversation if value_at(item, "metadata", "usage")
        }
        record = _foreign_session(export, [m for m in path if m.id in ids_with_usage])

    is_export = is_of_goose and "session" in session.data
    is_longer = any(is_native(message.id) for message in messages)
    if "message_count" not in record or is_longer or not is_export:
        record["message_count"] = _message_count(record, conversation)

    record["conversation"] = conversation
    order = {key: record.pop(key) for key in fields.EXPORT_KEYS if key in record}

    return order | record


def _message_count(record: Record, conversation: list[Record]) -> int:
    """Return the number of messages: since schema 14 of those that a user sees."""
    if "accumulated_usage" not in record:
        return len(conversation)

    return sum(is_shown(message.get("metadata")) for message in conversation)


# -- sessions of Goose ---------------------------------------------------------


def _native_session(session: Session) -> Record:
    if "session" not in session.data:
        # A log: what an import needs is added.
        record = _required_record(session, session.source_id or session.id)
        return overlay(record, dict(as_object(session.data.get("metadata"))))

    record = {"id": session.source_id}
    put_fields(record, fields.SESSION, session)
    if session.title_source == "derived":
        record["name"] = ""

    stored = as_object(session.data["session"])
    if "description" in stored:
        record.pop("name", None)
    return overlay(record, dict(stored))


def _native_records(
    export: Export, messages: list[Message], losses: Losses
) -> Iterator[Record]:
    """Yield the records of Goose as they were, and messages from here as such."""
    is_log = "session" not in export.session.data
    writer = GooseWriter(export, losses, messages)
    for message in messages:
        if is_native(message.id):
            yield from writer.records_of_message(message)
        elif not _is_sum(message):
            yield record_of(message, is_bare=is_log)
    writer.lose_rest(is_own=True)


def _is_sum(message: Message) -> bool:
    """Return whether a message states what the session's own record does."""
    return message.kind == "usage" and is_object(message.data.get("accumulated"))


# -- sessions of other programs --------------------------------------------------


def _foreign_session(export: Export, answers: list[Message]) -> Record:
    """Return the record of a session whose *answers* state their usage themselves."""
    session = export.session
    model = {"model_name": session.model_id, **fields.MODEL_CONFIG}
    columns = {
        "user_set_name": session.title_source == "user",
        "session_type": "user",
        "schedule_id": None,
        "recipe": None,
        "user_recipe_values": None,
        "provider_name": session.provider_id,
        "model_config": model if session.model_id else None,
        "goose_mode": "auto",
        "archived_at": None,
        "project_id": None,
    }
    section, extension, name = fields.OURS
    begun = sums_at_export(session, answers)
    marks = {section: {extension: {name: session.id, **begun}}}
    return (
        _required_record(session, session.id) | columns | marks | flat_tokens(session)
    )


def _required_record(session: Session, name: str) -> Record:
    """Return what an import requires."""
    return {
        "id": name,
        "working_dir": session.required_directory,
        "name": session.title or name,
        "created_at": text_of_time(session.time_created),
        "updated_at": text_of_time(session.time_updated),
        "extension_data": {},
        "accumulated_cost": None,
    }


def _foreign_records(
    export: Export, path: list[Message], losses: Losses
) -> Iterator[Record]:
    writer = GooseWriter(export, losses, path)
    sent = as_sent(path)
    if [message.seq for message in sent] != [message.seq for message in path]:
        loss = "the place of a compaction: it is before what it keeps"
        writer.lose(loss, field="order")
    for message in sent:
        yield from writer.records_of_message(message)

    writer.lose_rest()


# -- taking it there -------------------------------------------------------------


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return how Goose imports a session, and continues it by its name.

    An import gives it a new id, which is known from the next time on.
    """
    resume = ["goose", "session", "--resume"]
    record = json.loads(written.text)
    stored_name = _find_imported(record, env)
    if stored_name is not None:
        return Handover([], [*resume, "--session-id", stored_name])

    command = ["goose", "session", "import", FILE]
    return Handover(command, [*resume, f"--name={record['name']}"])


def _find_imported(record: Record, env: Mapping[str, str]) -> str | None:
    """Return the session of Goose that has everything of *record*, if there is one."""
    marks = value_at(record, *fields.OURS)
    names = [message["id"] for message in record.get("conversation", [])]
    if marks is None or not names:
        return None

    for folder in default_locations(env):
        if not is_file(folder / NAME):
            continue
        database = GooseDatabase(folder / NAME)
        # A database that cannot be read is the problem of an import.
        with suppress(SourceError), database.reading():
            stored_name = database.import_of(marks, names[-1])
            if stored_name:
                return stored_name
    return None


def names_of(_: Session, message: Outline) -> tuple[str, str]:
    """Return the ids of the records that a message becomes, for `Exporter`."""
    return message.id, message.id + RESULTS


EXPORTER = Exporter(
    one_by_one(_export_document),
    read={"branches": True},
    take_in=take_in,
    names_of=names_of,
)
