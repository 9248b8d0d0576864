"""The tables, as SQLAlchemy Core.

All are STRICT rowid tables with an explicit ``rid`` (search and salvage need
stable row numbers, and WITHOUT ROWID cost 1.4 times the file and 3 times the
read). Times are Unix ms, costs USD, unknown is NULL. JSON columns are text with
a json_valid check; ``data`` is MessagePack of what has no column. Columns that
end in ``_blob`` hold the SHA-256 of a value of 1 KB or more that lives in
``blob``. Values that a person queries are columns, and never in ``data`` as well.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    UniqueConstraint,
    literal_column,
    text,
)

from sessiondb.schema.kinds import (
    blob_ref,
    float_column,
    index_of_blobs,
    int_column,
    json_checks,
    one_of,
    partial_index,
    strict_table,
    text_column,
    usage_columns,
)
from sessiondb.schema.sums import COST_LIMIT
from sessiondb.schema.terms import BRANCHED, DISORDERED, NAMED_OTHERWISE, TOKENS

blob = strict_table(
    "blob",
    text_column("hash", required=True),
    int_column("size", required=True),
    text_column("encoding", required=True),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("hash"),
)

project = strict_table(
    "project",
    text_column("id", required=True),
    text_column("worktree", required=True),
    text_column("vcs"),
    text_column("remote"),
    text_column("root_commit"),
    text_column("name"),
    text_column("permission"),
    text_column("metadata", required=True, default="{}"),
    int_column("time_initialized"),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    UniqueConstraint("id"),
    *json_checks("permission", "metadata"),
)

project_directory = strict_table(
    "project_directory",
    text_column("directory", required=True),
    text_column(
        "project_id", ForeignKey("project.id", ondelete="CASCADE"), required=True
    ),
    text_column("kind", required=True),
    int_column("time_created", required=True),
    UniqueConstraint("directory", "project_id"),
    one_of("kind", "worktree sandbox former"),
    Index("ix_project_directory_project_id", "project_id"),
)

session = strict_table(
    "session",
    text_column("id", required=True),
    text_column("project_id", ForeignKey("project.id", ondelete="CASCADE")),
    text_column("parent_id", ForeignKey("session.id", ondelete="CASCADE")),
    text_column("relation"),
    int_column("parent_seq"),
    text_column("call_id"),
    text_column("parent_source_id"),
    text_column("root_id", required=True),
    text_column("slug", required=True),
    text_column("title", required=True, default=""),
    text_column("title_source", required=True, default="derived"),
    text_column("directory"),
    text_column("version"),
    text_column("source", required=True),
    text_column("source_id"),
    text_column("agent"),
    text_column("provider_id"),
    text_column("model_id"),
    text_column("model_source", required=True, default="derived"),
    int_column("leaf_seq"),
    int_column("last_seq", required=True, default=0),
    int_column("revision", required=True, default=0),
    int_column("change", required=True, default=0),
    int_column("message_count", required=True, default=0),
    *usage_columns(),
    float_column("cost_inherited"),
    int_column("summary_additions"),
    int_column("summary_deletions"),
    int_column("summary_files"),
    text_column("summary_diffs"),
    text_column("share_url"),
    text_column("revert"),
    text_column("permission"),
    text_column("metadata", required=True, default="{}"),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    int_column("time_compacting"),
    int_column("time_archived"),
    int_column("time_importing"),
    int_column("time_imported"),
    int_column("time_detached"),
    int_column("time_deleted"),
    Column("data", LargeBinary),
    blob_ref("data_blob"),
    text_column("namespace", required=True, default=""),
    int_column("prompt_count", required=True, default=0),
    int_column("hidden", required=True, default=4),
    text_column("scope"),
    UniqueConstraint("id"),
    UniqueConstraint("source", "source_id", "namespace"),
    UniqueConstraint("project_id", "slug"),
    one_of("relation", "fork subagent"),
    one_of("title_source", "user agent derived"),
    one_of("model_source", "caller source derived"),
    CheckConstraint("hidden BETWEEN 0 AND 15", name="hidden"),
    *json_checks("summary_diffs", "revert", "permission", "metadata"),
)
Index("ix_session_parent_id", session.c.parent_id)
Index("ix_session_root_id", session.c.root_id)
Index("ix_session_change", session.c.change)
index_of_blobs(session.c.data_blob)
partial_index("ix_session_native", session.c.id, where="time_imported IS NULL")
partial_index(
    "ix_session_parent_source",
    session.c.source,
    session.c.parent_source_id,
    where="parent_source_id IS NOT NULL",
)
Index("ix_session_used", session.c.hidden, text("time_updated DESC"), session.c.id)
Index("ix_session_created", session.c.hidden, session.c.id)
Index("ix_session_project_used", session.c.project_id, session.c.hidden,
      text("time_updated DESC"), session.c.id)  # fmt: skip
Index("ix_session_project_created", session.c.project_id, session.c.hidden,
      session.c.id)  # fmt: skip
# Of these two only the sessions of callers that have scopes pay the entries.
_HAS_SCOPE = "scope IS NOT NULL"
partial_index(
    "ix_session_scope_used",
    session.c.scope,
    session.c.hidden,
    text("time_updated DESC"),
    session.c.id,
    where=_HAS_SCOPE,
)
partial_index(
    "ix_session_scope_created",
    session.c.scope,
    session.c.hidden,
    session.c.id,
    where=_HAS_SCOPE,
)
partial_index(
    "ix_session_deleted", session.c.time_deleted, where="time_deleted IS NOT NULL"
)

_ABSOLUTE_TOKENS = ", ".join(f"abs({name})" for name in TOKENS)
message = strict_table(
    "message",
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    int_column("seq", required=True),
    text_column("id", required=True),
    int_column("parent_seq"),
    text_column("turn_id"),
    text_column("role", required=True),
    text_column("kind"),
    text_column("agent"),
    text_column("provider_id"),
    text_column("model_id"),
    text_column("response_id"),
    text_column("usage_key"),
    text_column("usage_name"),
    *usage_columns(),
    text_column("finish"),
    text_column("error"),
    int_column("inherited", required=True, default=0),
    int_column("time_created", required=True),
    int_column("time_completed"),
    Column("data", LargeBinary),
    blob_ref("data_blob"),
    UniqueConstraint("session_id", "seq"),
    # The id first: a new one is the smallest or the largest, and all go to one page.
    UniqueConstraint("id", "session_id"),
    one_of("role", "user assistant tool system event"),
    one_of("finish", "stop length tool-calls error cancelled other"),
    *json_checks("error"),
    # Where a sum beyond all numbers is an error, and would be one of every reader.
    CheckConstraint(
        f"abs(cost) < {COST_LIMIT} AND greatest({_ABSOLUTE_TOKENS}) < {1 << 53}",
        name="usage",
    ).ddl_if(dialect="postgresql"),
    partial_index("ix_message_branch", "session_id", "parent_seq", where=BRANCHED),
)
#: Of all others, the copies have the id that the key names: see `terms.USAGE_NAME`.
partial_index(
    "ix_message_usage_key",
    message.c.usage_key,
    where=f"usage_key IS NOT NULL AND ({NAMED_OTHERWISE.format('')})",
)
partial_index("ix_message_disordered", message.c.session_id, where=DISORDERED)
partial_index("ix_message_open", message.c.session_id, where="time_completed IS NULL")
index_of_blobs(message.c.data_blob)

part = strict_table(
    "part",
    text_column("session_id", required=True),
    int_column("seq", required=True),
    int_column("idx", required=True),
    text_column("id", required=True),
    text_column("type", required=True),
    text_column("tool"),
    text_column("call_id"),
    text_column("status"),
    text_column("outcome"),
    text_column("title"),
    text_column("input"),
    text_column("text"),
    blob_ref("text_blob"),
    blob_ref("input_blob"),
    Column("data", LargeBinary),
    blob_ref("data_blob"),
    int_column("inherited", required=True, default=0),
    int_column("indexed", required=True, default=0),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    int_column("time_started"),
    int_column("time_ended"),
    int_column("synthetic", required=True, default=0),
    text_column("words"),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "seq", "idx"),
    one_of("status", "pending running completed error"),
    one_of("outcome", "failed interrupted skipped denied"),
    CheckConstraint("synthetic IN (0, 1)", name="synthetic"),
    *json_checks("input"),
)
partial_index(
    "ix_part_call_id", part.c.session_id, part.c.call_id, where="call_id IS NOT NULL"
)
#: Results that are not stored with their call: few, so a query for them costs nothing.
_OWN_RESULT = "type = 'tool-result' AND (text IS NOT NULL OR text_blob IS NOT NULL)"
partial_index("ix_part_result", part.c.session_id, part.c.call_id, where=_OWN_RESULT)
partial_index(
    "ix_part_unsettled",
    part.c.session_id,
    where="status IN ('pending', 'running')",
)
#: True for a call without a result; literals, so that the index above answers it.
UNSETTLED = part.c.status.in_(
    [literal_column("'pending'"), literal_column("'running'")]
)
index_of_blobs(part.c.text_blob)
index_of_blobs(part.c.input_blob)
index_of_blobs(part.c.data_blob)

usage_model = strict_table(
    "usage_model",
    text_column("source", required=True),
    text_column("agent"),
    text_column("provider_id"),
    text_column("model_id"),
    Index("ix_usage_model_model_id", "model_id", "provider_id", "agent", "source"),
)

#: See `engine.sqlite.usage_cells`. It refers to row numbers, and not to ids: SQLite
#: sorts and groups numbers in half the time, and a total groups all rows.
usage_hour = strict_table(
    "usage_hour",
    int_column(
        "session_rid", ForeignKey("session.rid", ondelete="CASCADE"), required=True
    ),
    int_column("hour", required=True),
    int_column("model_rid", ForeignKey("usage_model.rid"), required=True),
    int_column("hidden", required=True),
    int_column("project_rid", required=True),
    int_column("messages", required=True),
    *usage_columns(),
    int_column("longest_prompt", required=True),
    Index("ix_usage_hour_session", "session_rid", "hour"),
    Index("ix_usage_hour_hour", "hour"),
)

#: Its ``rid`` is that of a session.
usage_waiting = strict_table(
    "usage_waiting",
    ForeignKeyConstraint(["rid"], ["session.rid"], ondelete="CASCADE"),
)

todo = strict_table(
    "todo",
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    int_column("position", required=True),
    text_column("id"),
    text_column("content", required=True),
    text_column("status", required=True),
    text_column("priority"),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    UniqueConstraint("session_id", "position"),
)

merge_base = strict_table(
    "merge_base",
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    text_column("fields", required=True),
    UniqueConstraint("session_id"),
    *json_checks("fields"),
)

file_diff = strict_table(
    "file_diff",
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    int_column("seq", required=True, default=0),
    text_column("path", required=True),
    blob_ref("before_blob"),
    blob_ref("after_blob"),
    text_column("patch"),
    int_column("additions"),
    int_column("deletions"),
    UniqueConstraint("session_id", "seq", "path"),
)
index_of_blobs(file_diff.c.before_blob)
index_of_blobs(file_diff.c.after_blob)

label = strict_table(
    "label",
    text_column("session_id", required=True),
    int_column("seq", required=True),
    text_column("label", required=True),
    ForeignKeyConstraint(
        ["session_id", "seq"], ["message.session_id", "message.seq"], ondelete="CASCADE"
    ),
    UniqueConstraint("session_id", "label"),
    Index("ix_label_message", "session_id", "seq"),
)

prompt = strict_table(
    "prompt",
    text_column("id", required=True),
    text_column("text", required=True),
    text_column("directory"),
    text_column("project_id", ForeignKey("project.id", ondelete="SET NULL")),
    text_column("session_id", ForeignKey("session.id", ondelete="SET NULL")),
    text_column("source", required=True),
    int_column("time_created", required=True),
    UniqueConstraint("id"),
    Index("ix_prompt_created", "time_created", "id"),
    Index("ix_prompt_project_id", "project_id", "time_created", "id"),
    Index("ix_prompt_session_id", "session_id"),
)

terminal = strict_table(
    "terminal",
    text_column("id", required=True),
    text_column("directory", required=True),
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    int_column("time_updated", required=True),
    UniqueConstraint("id", "directory"),
    Index("ix_terminal_session_id", "session_id"),
    Index("ix_terminal_directory", "directory", "time_updated"),
)

lease = strict_table(
    "lease",
    text_column(
        "session_id", ForeignKey("session.id", ondelete="CASCADE"), required=True
    ),
    text_column("holder", required=True),
    int_column("ttl", required=True, default=30_000),
    int_column("time_expires", required=True),
    UniqueConstraint("session_id"),
)

import_ledger = strict_table(
    "import_ledger",
    text_column("source", required=True),
    text_column("path", required=True),
    int_column("size"),
    int_column("mtime_ns"),
    int_column("offset"),
    text_column("digest"),
    text_column("problems"),
    int_column("time_imported", required=True),
    text_column("namespace", required=True, default=""),
    UniqueConstraint("source", "path"),
    *json_checks("problems"),
)
partial_index(
    "ix_import_ledger_namespace",
    import_ledger.c.source,
    import_ledger.c.namespace,
    where="namespace <> ''",
)

import_file = strict_table(
    "import_file",
    text_column("folder", required=True),
    text_column("name", required=True),
    text_column("stamp", required=True),
    text_column("facts", required=True),
    UniqueConstraint("folder", "name"),
    *json_checks("facts"),
)

tombstone = strict_table(
    "tombstone",
    text_column("source", required=True),
    text_column("source_id", required=True),
    int_column("time_deleted", required=True),
    int_column("revision"),
    text_column("seen"),
    text_column("namespace", required=True, default=""),
    UniqueConstraint("source", "source_id", "namespace"),
)

deletion = strict_table(
    "deletion",
    int_column("change", required=True),
    text_column("session_id", required=True),
    int_column("revision", required=True),
    int_column("last_seq", required=True),
    UniqueConstraint("change"),
)

#: The tables that programs added: see `schema.extensions`.
extension = strict_table(
    "extension",
    text_column("name", required=True),
    int_column("version", required=True),
    text_column("tables", required=True),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    UniqueConstraint("name"),
    *json_checks("tables"),
)

#: ``namespace`` is a JSON array of strings in one spelling, so all namespaces below a
#: prefix are one range of the unique index. The value comes last: SQLite walks the
#: pages of a large one to reach a column behind it.
key_value = strict_table(
    "key_value",
    text_column("namespace", required=True),
    text_column("key", required=True),
    int_column("revision", required=True),
    int_column("ttl"),
    int_column("time_created", required=True),
    int_column("time_updated", required=True),
    int_column("time_expires"),
    text_column("value"),
    Column("content", LargeBinary),
    UniqueConstraint("namespace", "key"),
    CheckConstraint("revision > 0", name="revision"),
    CheckConstraint("(value IS NULL) <> (content IS NULL)", name="either"),
    CheckConstraint("(ttl IS NULL) = (time_expires IS NULL)", name="ttl"),
    *json_checks("namespace", "value"),
)
partial_index(
    "ix_key_value_expires", key_value.c.time_expires, where="time_expires IS NOT NULL"
)

meta = strict_table(
    "meta",
    text_column("key", required=True),
    text_column("value", required=True),
    UniqueConstraint("key"),
)

#: All of them.
metadata = meta.metadata
