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

metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: The rows of a default list. The partial indexes and the queries share this text,
#: because SQLite uses a partial index only where the query repeats its terms.
LISTED = (
    "time_deleted IS NULL AND time_importing IS NULL AND time_archived IS NULL "
    "AND message_count > 0 AND relation IS NOT 'subagent'"
)
#: Which leases have a living holder at ``:now``. A holder renews its lease every third
#: of ttl, so it never expires later than in ttl, unless the clock was set back; twice
#: that tolerates a small step.
LIVING_LEASE = "time_expires > :now AND time_expires - :now <= 2 * ttl"

#: True for a message that an import put behind its child.
DISORDERED = "parent_seq >= seq"

#: The columns of token counts, of a message and of the sums of a session.
TOKENS = (
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
)
#: The columns of a message that its session sums up.
USAGE = ("cost", *TOKENS)


def _rid() -> Column[Any]:
    return Column("rid", Integer, primary_key=True)


def _text(
    name: str, *args: Any, required: bool = False, default: str | None = None
) -> Column[Any]:
    server = None if default is None else text(f"'{default}'")
    return Column(name, Text, *args, nullable=not required, server_default=server)


def _int(
    name: str, *args: Any, required: bool = False, default: int | None = None
) -> Column[Any]:
    server = None if default is None else text(str(default))
    return Column(name, Integer, *args, nullable=not required, server_default=server)


def _json(*names: str) -> list[CheckConstraint]:
    return [
        CheckConstraint(f"{name} IS NULL OR json_valid({name})", name=name)
        for name in names
    ]


def _one_of(name: str, values: str) -> CheckConstraint:
    return CheckConstraint(
        f"{name} IN ({', '.join(repr(v) for v in values.split())})", name=name
    )


def _blob_ref(name: str) -> Column[Any]:
    return _text(name, ForeignKey("blob.hash"))


def _usage() -> list[Column[Any]]:
    return [Column("cost", REAL), *map(_int, TOKENS)]


def _table(name: str, *args: Any) -> Table:
    return Table(name, metadata, _rid(), *args, sqlite_strict=True)


blob = _table(
    "blob",
    _text("hash", required=True),
    _int("size", required=True),
    _text("encoding", required=True),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("hash"),
)

project = _table(
    "project",
    _text("id", required=True),
    _text("worktree", required=True),
    _text("vcs"),
    _text("remote"),
    _text("root_commit"),
    _text("name"),
    _text("permission"),
    _text("metadata", required=True, default="{}"),
    _int("time_initialized"),
    _int("time_created", required=True),
    _int("time_updated", required=True),
    UniqueConstraint("id"),
    *_json("permission", "metadata"),
)

project_directory = _table(
    "project_directory",
    _text("directory", required=True),
    _text("project_id", ForeignKey("project.id", ondelete="CASCADE"), required=True),
    _text("kind", required=True),
    _int("time_created", required=True),
    UniqueConstraint("directory", "project_id"),
    _one_of("kind", "worktree sandbox former"),
    Index("ix_project_directory_project_id", "project_id"),
)

session = _table(
    "session",
    _text("id", required=True),
    _text("project_id", ForeignKey("project.id", ondelete="CASCADE"), required=True),
    _text("parent_id", ForeignKey("session.id", ondelete="CASCADE")),
    _text("relation"),
    _int("parent_seq"),
    _text("call_id"),
    _text("parent_source_id"),
    _text("root_id", required=True),
    _text("slug", required=True),
    _text("title", required=True, default=""),
    _text("title_source", required=True, default="derived"),
    _text("directory", required=True),
    _text("version"),
    _text("source", required=True),
    _text("source_id"),
    _text("agent"),
    _text("provider_id"),
    _text("model_id"),
    _text("model_source", required=True, default="derived"),
    _int("leaf_seq"),
    _int("last_seq", required=True, default=0),
    _int("revision", required=True, default=0),
    _int("change", required=True, default=0),
    _int("message_count", required=True, default=0),
    *_usage(),
    Column("cost_inherited", REAL),
    _int("summary_additions"),
    _int("summary_deletions"),
    _int("summary_files"),
    _text("summary_diffs"),
    _text("share_url"),
    _text("revert"),
    _text("permission"),
    _text("metadata", required=True, default="{}"),
    _int("time_created", required=True),
    _int("time_updated", required=True),
    _int("time_compacting"),
    _int("time_archived"),
    _int("time_importing"),
    _int("time_imported"),
    _int("time_detached"),
    _int("time_deleted"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    _text("namespace", required=True, default=""),
    UniqueConstraint("id"),
    UniqueConstraint("source", "source_id", "namespace"),
    UniqueConstraint("project_id", "slug"),
    _one_of("relation", "fork subagent"),
    _one_of("title_source", "user agent derived"),
    _one_of("model_source", "caller source derived"),
    *_json("summary_diffs", "revert", "permission", "metadata"),
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
Index("ix_session_used", text("time_updated DESC"), session.c.id)
Index(
    "ix_session_project_used",
    session.c.project_id,
    text("time_updated DESC"),
    session.c.id,
)
Index("ix_session_project_created", session.c.project_id, session.c.id)
Index(
    "ix_session_listed_used",
    text("time_updated DESC"),
    session.c.id,
    sqlite_where=text(LISTED),
)
Index("ix_session_listed_created", session.c.id, sqlite_where=text(LISTED))
Index("ix_session_listed_project_used", session.c.project_id, text("time_updated DESC"),
      session.c.id, sqlite_where=text(LISTED))  # fmt: skip
Index("ix_session_listed_project_created", session.c.project_id, session.c.id,
      sqlite_where=text(LISTED))  # fmt: skip
Index(
    "ix_session_deleted",
    session.c.time_deleted,
    sqlite_where=text("time_deleted IS NOT NULL"),
)

message = _table(
    "message",
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _int("seq", required=True),
    _text("id", required=True),
    _int("parent_seq"),
    _text("turn_id"),
    _text("role", required=True),
    _text("kind"),
    _text("agent"),
    _text("provider_id"),
    _text("model_id"),
    _text("response_id"),
    _text("usage_key"),
    *_usage(),
    _text("finish"),
    _text("error"),
    _int("inherited", required=True, default=0),
    _int("time_created", required=True),
    _int("time_completed"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    UniqueConstraint("session_id", "seq"),
    UniqueConstraint("session_id", "id"),
    _one_of("role", "user assistant tool system event"),
    _one_of("finish", "stop length tool-calls error cancelled other"),
    *_json("error"),
    Index("ix_message_turn", "session_id", "turn_id"),
)
Index(
    "ix_message_usage_key",
    message.c.usage_key,
    sqlite_where=text("usage_key IS NOT NULL"),
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

part = _table(
    "part",
    _text("session_id", required=True),
    _int("seq", required=True),
    _int("idx", required=True),
    _text("id", required=True),
    _text("type", required=True),
    _text("tool"),
    _text("call_id"),
    _text("status"),
    _text("outcome"),
    _text("title"),
    _text("input"),
    _text("text"),
    _blob_ref("text_blob"),
    _blob_ref("input_blob"),
    Column("data", LargeBinary),
    _blob_ref("data_blob"),
    _int("inherited", required=True, default=0),
    _int("indexed", required=True, default=0),
    _int("time_created", required=True),
    _int("time_updated", required=True),
    _int("time_started"),
    _int("time_ended"),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "seq", "idx"),
    _one_of("status", "pending running completed error"),
    _one_of("outcome", "failed interrupted skipped denied"),
    *_json("input"),
)
Index("ix_part_call_id", part.c.session_id, part.c.call_id,
      sqlite_where=text("call_id IS NOT NULL"))  # fmt: skip
#: Results that are not stored with their call: few, so a query for them costs nothing.
_OWN_RESULT = "type = 'tool-result' AND (text IS NOT NULL OR text_blob IS NOT NULL)"
Index(
    "ix_part_result", part.c.session_id, part.c.call_id, sqlite_where=text(_OWN_RESULT)
)
Index("ix_part_tool", part.c.session_id, part.c.id, sqlite_where=text("type = 'tool'"))
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

todo = _table(
    "todo",
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _int("position", required=True),
    _text("id"),
    _text("content", required=True),
    _text("status", required=True),
    _text("priority"),
    _int("time_created", required=True),
    _int("time_updated", required=True),
    UniqueConstraint("session_id", "position"),
)

merge_base = _table(
    "merge_base",
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _text("fields", required=True),
    UniqueConstraint("session_id"),
    *_json("fields"),
)

file_diff = _table(
    "file_diff",
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _int("seq", required=True, default=0),
    _text("path", required=True),
    _blob_ref("before_blob"),
    _blob_ref("after_blob"),
    _text("patch"),
    _int("additions"),
    _int("deletions"),
    UniqueConstraint("session_id", "seq", "path"),
)
Index("ix_file_diff_before_blob", file_diff.c.before_blob,
      sqlite_where=text("before_blob IS NOT NULL"))  # fmt: skip
Index("ix_file_diff_after_blob", file_diff.c.after_blob,
      sqlite_where=text("after_blob IS NOT NULL"))  # fmt: skip

label = _table(
    "label",
    _text("session_id", required=True),
    _int("seq", required=True),
    _text("label", required=True),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "label"),
    Index("ix_label_message", "session_id", "seq"),
)

prompt = _table(
    "prompt",
    _text("id", required=True),
    _text("text", required=True),
    _text("directory"),
    _text("project_id", ForeignKey("project.id", ondelete="SET NULL")),
    _text("session_id", ForeignKey("session.id", ondelete="SET NULL")),
    _text("source", required=True),
    _int("time_created", required=True),
    UniqueConstraint("id"),
    Index("ix_prompt_created", "time_created", "id"),
    Index("ix_prompt_project_id", "project_id", "time_created", "id"),
    Index("ix_prompt_session_id", "session_id"),
)

terminal = _table(
    "terminal",
    _text("id", required=True),
    _text("directory", required=True),
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _int("time_updated", required=True),
    UniqueConstraint("id", "directory"),
    Index("ix_terminal_session_id", "session_id"),
    Index("ix_terminal_directory", "directory", "time_updated"),
)

lease = _table(
    "lease",
    _text("session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True),
    _text("holder", required=True),
    _int("ttl", required=True, default=30_000),
    _int("time_expires", required=True),
    UniqueConstraint("session_id"),
)

import_ledger = _table(
    "import_ledger",
    _text("source", required=True),
    _text("path", required=True),
    _int("size"),
    _int("mtime_ns"),
    _int("offset"),
    _text("digest"),
    _text("problems"),
    _int("time_imported", required=True),
    _text("namespace", required=True, default=""),
    UniqueConstraint("source", "path"),
    *_json("problems"),
)
Index("ix_import_ledger_namespace", import_ledger.c.source, import_ledger.c.namespace,
      sqlite_where=text("namespace <> ''"))  # fmt: skip

tombstone = _table(
    "tombstone",
    _text("source", required=True),
    _text("source_id", required=True),
    _int("time_deleted", required=True),
    _int("revision"),
    _text("seen"),
    _text("namespace", required=True, default=""),
    UniqueConstraint("source", "source_id", "namespace"),
)

deletion = _table(
    "deletion",
    _int("change", required=True),
    _text("session_id", required=True),
    _int("revision", required=True),
    _int("last_seq", required=True),
    UniqueConstraint("change"),
)

meta = _table(
    "meta",
    _text("key", required=True),
    _text("value", required=True),
    UniqueConstraint("key"),
)
