"""The tables, as SQLAlchemy Core.

All are STRICT rowid tables with an explicit ``rid`` (search and salvage need
stable row numbers, and WITHOUT ROWID cost 1.4 times the file and 3 times the
read). Times are Unix ms, costs USD, unknown is NULL. JSON columns are text with
a json_valid check; ``data`` is MessagePack of what has no column. Columns that
end in ``_blob`` hold the SHA-256 of a value of 1 KB or more that lives in
``blob``. Values that a person queries are columns, and never in ``data`` as well.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)

from sessiondb.schema.terms import DISORDERED, NAMED_OTHERWISE, TOKENS

metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _text_column(
    name: str, *args: Any, required: bool = False, default: str | None = None
) -> Column[Any]:
    server = None if default is None else text(f"'{default}'")
    return Column(name, Text, *args, nullable=not required, server_default=server)


def _int_column(
    name: str, *args: Any, required: bool = False, default: int | None = None
) -> Column[Any]:
    server = None if default is None else text(str(default))
    return Column(name, Integer, *args, nullable=not required, server_default=server)


def _json_checks(*names: str) -> list[CheckConstraint]:
    return [
        CheckConstraint(f"{name} IS NULL OR json_valid({name})", name=name)
        for name in names
    ]


def _one_of(name: str, values: str) -> CheckConstraint:
    # For an IN with three values or more SQLite builds a temporary table each time that
    # a row is inserted: more than a third of the INSERT of a message.
    return CheckConstraint(
        " OR ".join(f"{name} = '{value}'" for value in values.split()), name=name
    )


def _blob_ref(name: str) -> Column[Any]:
    return _text_column(name, ForeignKey("blob.hash"))


def _usage_columns() -> list[Column[Any]]:
    return [Column("cost", REAL), *map(_int_column, TOKENS)]


def _strict_table(name: str, *args: Any) -> Table:
    rid = Column("rid", Integer, primary_key=True)
    return Table(name, metadata, rid, *args, sqlite_strict=True)


blob = _strict_table(
    "blob",
    _text_column("hash", required=True),
    _int_column("size", required=True),
    _text_column("encoding", required=True),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("hash"),
)

project = _strict_table(
    "project",
    _text_column("id", required=True),
    _text_column("worktree", required=True),
    _text_column("vcs"),
    _text_column("remote"),
    _text_column("root_commit"),
    _text_column("name"),
    _text_column("permission"),
    _text_column("metadata", required=True, default="{}"),
    _int_column("time_initialized"),
    _int_column("time_created", required=True),
    _int_column("time_updated", required=True),
    UniqueConstraint("id"),
    *_json_checks("permission", "metadata"),
)

project_directory = _strict_table(
    "project_directory",
    _text_column("directory", required=True),
    _text_column(
        "project_id", ForeignKey("project.id", ondelete="CASCADE"), required=True
    ),
    _text_column("kind", required=True),
    _int_column("time_created", required=True),
    UniqueConstraint("directory", "project_id"),
    _one_of("kind", "worktree sandbox former"),
    Index("ix_project_directory_project_id", "project_id"),
)

session = _strict_table(
    "session",
    _text_column("id", required=True),
    _text_column(
        "project_id", ForeignKey("project.id", ondelete="CASCADE"), required=True
    ),
    _text_column("parent_id", ForeignKey("session.id", ondelete="CASCADE")),
    _text_column("relation"),
    _int_column("parent_seq"),
    _text_column("call_id"),
    _text_column("parent_source_id"),
    _text_column("root_id", required=True),
    _text_column("slug", required=True),
    _text_column("title", required=True, default=""),
    _text_column("title_source", required=True, default="derived"),
    _text_column("directory", required=True),
    _text_column("version"),
    _text_column("source", required=True),
    _text_column("source_id"),
    _text_column("agent"),
    _text_column("provider_id"),
    _text_column("model_id"),
    _text_column("model_source", required=True, default="derived"),
    _int_column("leaf_seq"),
    _int_column("last_seq", required=True, default=0),
    _int_column("revision", required=True, default=0),
    _int_column("change", required=True, default=0),
    _int_column("message_count", required=True, default=0),
    *_usage_columns(),
    Column("cost_inherited", REAL),
    _int_column("summary_additions"),
    _int_column("summary_deletions"),
    _int_column("summary_files"),
    _text_column("summary_diffs"),
    _text_column("share_url"),
    _text_column("revert"),
    _text_column("permission"),
    _text_column("metadata", required=True, default="{}"),
    _int_column("time_created", required=True),
    _int_column("time_updated", required=True),
    _int_column("time_compacting"),
    _int_column("time_archived"),
    _int_column("time_importing"),
    _int_column("time_imported"),
    _int_column("time_detached"),
    _int_column("time_deleted"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    _text_column("namespace", required=True, default=""),
    _int_column("prompt_count", required=True, default=0),
    _int_column("hidden", required=True, default=4),
    UniqueConstraint("id"),
    UniqueConstraint("source", "source_id", "namespace"),
    UniqueConstraint("project_id", "slug"),
    _one_of("relation", "fork subagent"),
    _one_of("title_source", "user agent derived"),
    _one_of("model_source", "caller source derived"),
    CheckConstraint("hidden BETWEEN 0 AND 15", name="hidden"),
    *_json_checks("summary_diffs", "revert", "permission", "metadata"),
)
Index("ix_session_parent_id", session.c.parent_id)
Index("ix_session_root_id", session.c.root_id)
Index("ix_session_change", session.c.change)
Index(
    "ix_session_data_blob",
    session.c.data_blob,
    sqlite_where=text("data_blob IS NOT NULL"),
)
Index("ix_session_native", session.c.id, sqlite_where=text("time_imported IS NULL"))
Index("ix_session_parent_source", session.c.source, session.c.parent_source_id,
      sqlite_where=text("parent_source_id IS NOT NULL"))  # fmt: skip
Index("ix_session_used", session.c.hidden, text("time_updated DESC"), session.c.id)
Index("ix_session_created", session.c.hidden, session.c.id)
Index("ix_session_project_used", session.c.project_id, session.c.hidden,
      text("time_updated DESC"), session.c.id)  # fmt: skip
Index(
    "ix_session_project_created",
    session.c.project_id,
    session.c.hidden,
    session.c.id,
)
Index(
    "ix_session_deleted",
    session.c.time_deleted,
    sqlite_where=text("time_deleted IS NOT NULL"),
)

message = _strict_table(
    "message",
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _int_column("seq", required=True),
    _text_column("id", required=True),
    _int_column("parent_seq"),
    _text_column("turn_id"),
    _text_column("role", required=True),
    _text_column("kind"),
    _text_column("agent"),
    _text_column("provider_id"),
    _text_column("model_id"),
    _text_column("response_id"),
    _text_column("usage_key"),
    _text_column("usage_name"),
    *_usage_columns(),
    _text_column("finish"),
    _text_column("error"),
    _int_column("inherited", required=True, default=0),
    _int_column("time_created", required=True),
    _int_column("time_completed"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    UniqueConstraint("session_id", "seq"),
    # The id first: a new one is the smallest or the largest, and all go to one page.
    UniqueConstraint("id", "session_id"),
    _one_of("role", "user assistant tool system event"),
    _one_of("finish", "stop length tool-calls error cancelled other"),
    *_json_checks("error"),
)
#: Of all others, the copies have the id that the key names: see `terms.USAGE_NAME`.
Index(
    "ix_message_usage_key",
    message.c.usage_key,
    sqlite_where=text(f"usage_key IS NOT NULL AND ({NAMED_OTHERWISE.format('')})"),
)
Index("ix_message_disordered", message.c.session_id, sqlite_where=text(DISORDERED))
Index(
    "ix_message_open", message.c.session_id, sqlite_where=text("time_completed IS NULL")
)
Index(
    "ix_message_data_blob",
    message.c.data_blob,
    sqlite_where=text("data_blob IS NOT NULL"),
)

part = _strict_table(
    "part",
    _text_column("session_id", required=True),
    _int_column("seq", required=True),
    _int_column("idx", required=True),
    _text_column("id", required=True),
    _text_column("type", required=True),
    _text_column("tool"),
    _text_column("call_id"),
    _text_column("status"),
    _text_column("outcome"),
    _text_column("title"),
    _text_column("input"),
    _text_column("text"),
    _blob_ref("text_blob"),
    _blob_ref("input_blob"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    _int_column("inherited", required=True, default=0),
    _int_column("indexed", required=True, default=0),
    _int_column("time_created", required=True),
    _int_column("time_updated", required=True),
    _int_column("time_started"),
    _int_column("time_ended"),
    _int_column("synthetic", required=True, default=0),
    _text_column("words"),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "seq", "idx"),
    _one_of("status", "pending running completed error"),
    _one_of("outcome", "failed interrupted skipped denied"),
    CheckConstraint("synthetic IN (0, 1)", name="synthetic"),
    *_json_checks("input"),
)
Index("ix_part_call_id", part.c.session_id, part.c.call_id,
      sqlite_where=text("call_id IS NOT NULL"))  # fmt: skip
#: Results that are not stored with their call: few, so a query for them costs nothing.
_OWN_RESULT = "type = 'tool-result' AND (text IS NOT NULL OR text_blob IS NOT NULL)"
Index(
    "ix_part_result", part.c.session_id, part.c.call_id, sqlite_where=text(_OWN_RESULT)
)
Index(
    "ix_part_unsettled",
    part.c.session_id,
    sqlite_where=text("status IN ('pending', 'running')"),
)
#: True for a call without a result; literals, so that the index above answers it.
UNSETTLED = part.c.status.in_(
    [literal_column("'pending'"), literal_column("'running'")]
)
Index("ix_part_text_blob", part.c.text_blob, sqlite_where=text("text_blob IS NOT NULL"))
Index(
    "ix_part_input_blob", part.c.input_blob, sqlite_where=text("input_blob IS NOT NULL")
)
Index("ix_part_data_blob", part.c.data_blob, sqlite_where=text("data_blob IS NOT NULL"))

usage_model = _strict_table(
    "usage_model",
    _text_column("source", required=True),
    _text_column("agent"),
    _text_column("provider_id"),
    _text_column("model_id"),
    Index("ix_usage_model_model_id", "model_id", "provider_id", "agent", "source"),
)

#: See `schema.usage`. It refers to row numbers, and not to ids: SQLite sorts and groups
#: numbers in half the time, and a total groups all rows.
usage_hour = _strict_table(
    "usage_hour",
    _int_column(
        "session_rid", ForeignKey("session.rid", ondelete="CASCADE"), required=True
    ),
    _int_column("hour", required=True),
    _int_column("model_rid", ForeignKey("usage_model.rid"), required=True),
    _int_column("hidden", required=True),
    _int_column("project_rid", required=True),
    _int_column("messages", required=True),
    *_usage_columns(),
    _int_column("longest_prompt", required=True),
    Index("ix_usage_hour_session", "session_rid", "hour"),
    Index("ix_usage_hour_hour", "hour"),
)

#: Its ``rid`` is that of a session.
usage_waiting = _strict_table(
    "usage_waiting",
    ForeignKeyConstraint(["rid"], ["session.rid"], ondelete="CASCADE"),
)

todo = _strict_table(
    "todo",
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _int_column("position", required=True),
    _text_column("id"),
    _text_column("content", required=True),
    _text_column("status", required=True),
    _text_column("priority"),
    _int_column("time_created", required=True),
    _int_column("time_updated", required=True),
    UniqueConstraint("session_id", "position"),
)

merge_base = _strict_table(
    "merge_base",
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _text_column("fields", required=True),
    UniqueConstraint("session_id"),
    *_json_checks("fields"),
)

file_diff = _strict_table(
    "file_diff",
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _int_column("seq", required=True, default=0),
    _text_column("path", required=True),
    _blob_ref("before_blob"),
    _blob_ref("after_blob"),
    _text_column("patch"),
    _int_column("additions"),
    _int_column("deletions"),
    UniqueConstraint("session_id", "seq", "path"),
)
Index("ix_file_diff_before_blob", file_diff.c.before_blob,
      sqlite_where=text("before_blob IS NOT NULL"))  # fmt: skip
Index("ix_file_diff_after_blob", file_diff.c.after_blob,
      sqlite_where=text("after_blob IS NOT NULL"))  # fmt: skip

label = _strict_table(
    "label",
    _text_column("session_id", required=True),
    _int_column("seq", required=True),
    _text_column("label", required=True),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "label"),
    Index("ix_label_message", "session_id", "seq"),
)

prompt = _strict_table(
    "prompt",
    _text_column("id", required=True),
    _text_column("text", required=True),
    _text_column("directory"),
    _text_column("project_id", ForeignKey("project.id", ondelete="SET NULL")),
    _text_column("session_id", ForeignKey("session.id", ondelete="SET NULL")),
    _text_column("source", required=True),
    _int_column("time_created", required=True),
    UniqueConstraint("id"),
    Index("ix_prompt_created", "time_created", "id"),
    Index("ix_prompt_project_id", "project_id", "time_created", "id"),
    Index("ix_prompt_session_id", "session_id"),
)

terminal = _strict_table(
    "terminal",
    _text_column("id", required=True),
    _text_column("directory", required=True),
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _int_column("time_updated", required=True),
    UniqueConstraint("id", "directory"),
    Index("ix_terminal_session_id", "session_id"),
    Index("ix_terminal_directory", "directory", "time_updated"),
)

lease = _strict_table(
    "lease",
    _text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    _text_column("holder", required=True),
    _int_column("ttl", required=True, default=30_000),
    _int_column("time_expires", required=True),
    UniqueConstraint("session_id"),
)

import_ledger = _strict_table(
    "import_ledger",
    _text_column("source", required=True),
    _text_column("path", required=True),
    _int_column("size"),
    _int_column("mtime_ns"),
    _int_column("offset"),
    _text_column("digest"),
    _text_column("problems"),
    _int_column("time_imported", required=True),
    _text_column("namespace", required=True, default=""),
    UniqueConstraint("source", "path"),
    *_json_checks("problems"),
)
Index("ix_import_ledger_namespace", import_ledger.c.source, import_ledger.c.namespace,
      sqlite_where=text("namespace <> ''"))  # fmt: skip

import_file = _strict_table(
    "import_file",
    _text_column("folder", required=True),
    _text_column("name", required=True),
    _text_column("stamp", required=True),
    _text_column("facts", required=True),
    UniqueConstraint("folder", "name"),
    *_json_checks("facts"),
)

tombstone = _strict_table(
    "tombstone",
    _text_column("source", required=True),
    _text_column("source_id", required=True),
    _int_column("time_deleted", required=True),
    _int_column("revision"),
    _text_column("seen"),
    _text_column("namespace", required=True, default=""),
    UniqueConstraint("source", "source_id", "namespace"),
)

deletion = _strict_table(
    "deletion",
    _int_column("change", required=True),
    _text_column("session_id", required=True),
    _int_column("revision", required=True),
    _int_column("last_seq", required=True),
    UniqueConstraint("change"),
)

#: The tables that programs added: see `schema.extensions`.
extension = _strict_table(
    "extension",
    _text_column("name", required=True),
    _int_column("version", required=True),
    _text_column("tables", required=True),
    _int_column("time_created", required=True),
    _int_column("time_updated", required=True),
    UniqueConstraint("name"),
    *_json_checks("tables"),
)

meta = _strict_table(
    "meta",
    _text_column("key", required=True),
    _text_column("value", required=True),
    UniqueConstraint("key"),
)
