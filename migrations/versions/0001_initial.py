"""the first schema.

Revision: 0001, after nothing.
"""
# ruff: noqa: E501  statements are kept as they were made, whatever their length

from alembic import op

from sessiondb.errors import ConflictError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

VERSION = 1
ADDITIVE = True
MIN_READER = "0.1.0"
MIN_WRITER = "0.1.0"

# <schema>
STORED = (
    """CREATE TABLE blob (
    rid INTEGER NOT NULL,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_blob PRIMARY KEY (rid),
    CONSTRAINT uq_blob_hash UNIQUE (hash)
) STRICT""",
    """CREATE TABLE deletion (
    rid INTEGER NOT NULL,
    change INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    CONSTRAINT pk_deletion PRIMARY KEY (rid),
    CONSTRAINT uq_deletion_change UNIQUE (change)
) STRICT""",
    """CREATE TABLE extension (
    rid INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    tables TEXT NOT NULL,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    CONSTRAINT pk_extension PRIMARY KEY (rid),
    CONSTRAINT uq_extension_name UNIQUE (name),
    CONSTRAINT ck_extension_tables CHECK (tables IS NULL OR json_valid(tables))
) STRICT""",
    """CREATE TABLE import_file (
    rid INTEGER NOT NULL,
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    stamp TEXT NOT NULL,
    facts TEXT NOT NULL,
    CONSTRAINT pk_import_file PRIMARY KEY (rid),
    CONSTRAINT uq_import_file_folder_name UNIQUE (folder, name),
    CONSTRAINT ck_import_file_facts CHECK (facts IS NULL OR json_valid(facts))
) STRICT""",
    """CREATE TABLE import_ledger (
    rid INTEGER NOT NULL,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER,
    mtime_ns INTEGER,
    "offset" INTEGER,
    digest TEXT,
    problems TEXT,
    time_imported INTEGER NOT NULL,
    namespace TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_import_ledger PRIMARY KEY (rid),
    CONSTRAINT uq_import_ledger_source_path UNIQUE (source, path),
    CONSTRAINT ck_import_ledger_problems CHECK (problems IS NULL OR json_valid(problems))
) STRICT""",
    """CREATE TABLE key_value (
    rid INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    "key" TEXT NOT NULL,
    revision INTEGER NOT NULL,
    ttl INTEGER,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    time_expires INTEGER,
    value TEXT,
    content BLOB,
    CONSTRAINT pk_key_value PRIMARY KEY (rid),
    CONSTRAINT uq_key_value_namespace_key UNIQUE (namespace, "key"),
    CONSTRAINT ck_key_value_revision CHECK (revision > 0),
    CONSTRAINT ck_key_value_either CHECK ((value IS NULL) <> (content IS NULL)),
    CONSTRAINT ck_key_value_ttl CHECK ((ttl IS NULL) = (time_expires IS NULL)),
    CONSTRAINT ck_key_value_namespace CHECK (namespace IS NULL OR json_valid(namespace)),
    CONSTRAINT ck_key_value_value CHECK (value IS NULL OR json_valid(value))
) STRICT""",
    """CREATE TABLE meta (
    rid INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY (rid),
    CONSTRAINT uq_meta_key UNIQUE ("key")
) STRICT""",
    """CREATE TABLE project (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    worktree TEXT NOT NULL,
    vcs TEXT,
    remote TEXT,
    root_commit TEXT,
    name TEXT,
    permission TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    time_initialized INTEGER,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    CONSTRAINT pk_project PRIMARY KEY (rid),
    CONSTRAINT uq_project_id UNIQUE (id),
    CONSTRAINT ck_project_permission CHECK (permission IS NULL OR json_valid(permission)),
    CONSTRAINT ck_project_metadata CHECK (metadata IS NULL OR json_valid(metadata))
) STRICT""",
    """CREATE TABLE tombstone (
    rid INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    time_deleted INTEGER NOT NULL,
    revision INTEGER,
    seen TEXT,
    namespace TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_tombstone PRIMARY KEY (rid),
    CONSTRAINT uq_tombstone_source_source_id_namespace UNIQUE (source, source_id, namespace)
) STRICT""",
    """CREATE TABLE usage_model (
    rid INTEGER NOT NULL,
    source TEXT NOT NULL,
    agent TEXT,
    provider_id TEXT,
    model_id TEXT,
    CONSTRAINT pk_usage_model PRIMARY KEY (rid)
) STRICT""",
    """CREATE TABLE project_directory (
    rid INTEGER NOT NULL,
    directory TEXT NOT NULL,
    project_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    time_created INTEGER NOT NULL,
    CONSTRAINT pk_project_directory PRIMARY KEY (rid),
    CONSTRAINT uq_project_directory_directory_project_id UNIQUE (directory, project_id),
    CONSTRAINT ck_project_directory_kind CHECK (kind = 'worktree' OR kind = 'sandbox' OR kind = 'former'),
    CONSTRAINT fk_project_directory_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE session (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    project_id TEXT,
    parent_id TEXT,
    relation TEXT,
    parent_seq INTEGER,
    call_id TEXT,
    parent_source_id TEXT,
    root_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    title TEXT DEFAULT '' NOT NULL,
    title_source TEXT DEFAULT 'derived' NOT NULL,
    directory TEXT,
    version TEXT,
    source TEXT NOT NULL,
    source_id TEXT,
    agent TEXT,
    provider_id TEXT,
    model_id TEXT,
    model_source TEXT DEFAULT 'derived' NOT NULL,
    leaf_seq INTEGER,
    last_seq INTEGER DEFAULT 0 NOT NULL,
    revision INTEGER DEFAULT 0 NOT NULL,
    change INTEGER DEFAULT 0 NOT NULL,
    message_count INTEGER DEFAULT 0 NOT NULL,
    cost REAL,
    tokens_input INTEGER,
    tokens_output INTEGER,
    tokens_reasoning INTEGER,
    tokens_cache_read INTEGER,
    tokens_cache_write INTEGER,
    cost_inherited REAL,
    summary_additions INTEGER,
    summary_deletions INTEGER,
    summary_files INTEGER,
    summary_diffs TEXT,
    share_url TEXT,
    revert TEXT,
    permission TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    time_compacting INTEGER,
    time_archived INTEGER,
    time_importing INTEGER,
    time_imported INTEGER,
    time_detached INTEGER,
    time_deleted INTEGER,
    data BLOB,
    data_blob TEXT,
    namespace TEXT DEFAULT '' NOT NULL,
    prompt_count INTEGER DEFAULT 0 NOT NULL,
    hidden INTEGER DEFAULT 4 NOT NULL,
    scope TEXT,
    CONSTRAINT pk_session PRIMARY KEY (rid),
    CONSTRAINT uq_session_id UNIQUE (id),
    CONSTRAINT uq_session_source_source_id_namespace UNIQUE (source, source_id, namespace),
    CONSTRAINT uq_session_project_id_slug UNIQUE (project_id, slug),
    CONSTRAINT ck_session_relation CHECK (relation = 'fork' OR relation = 'subagent'),
    CONSTRAINT ck_session_title_source CHECK (title_source = 'user' OR title_source = 'agent' OR title_source = 'derived'),
    CONSTRAINT ck_session_model_source CHECK (model_source = 'caller' OR model_source = 'source' OR model_source = 'derived'),
    CONSTRAINT ck_session_hidden CHECK (hidden BETWEEN 0 AND 15),
    CONSTRAINT ck_session_summary_diffs CHECK (summary_diffs IS NULL OR json_valid(summary_diffs)),
    CONSTRAINT ck_session_revert CHECK (revert IS NULL OR json_valid(revert)),
    CONSTRAINT ck_session_permission CHECK (permission IS NULL OR json_valid(permission)),
    CONSTRAINT ck_session_metadata CHECK (metadata IS NULL OR json_valid(metadata)),
    CONSTRAINT fk_session_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
    CONSTRAINT fk_session_parent_id FOREIGN KEY(parent_id) REFERENCES session (id) ON DELETE CASCADE,
    CONSTRAINT fk_session_data_blob FOREIGN KEY(data_blob) REFERENCES blob (hash)
) STRICT""",
    """CREATE TABLE file_diff (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER DEFAULT 0 NOT NULL,
    path TEXT NOT NULL,
    before_blob TEXT,
    after_blob TEXT,
    patch TEXT,
    additions INTEGER,
    deletions INTEGER,
    CONSTRAINT pk_file_diff PRIMARY KEY (rid),
    CONSTRAINT uq_file_diff_session_id_seq_path UNIQUE (session_id, seq, path),
    CONSTRAINT fk_file_diff_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE,
    CONSTRAINT fk_file_diff_before_blob FOREIGN KEY(before_blob) REFERENCES blob (hash),
    CONSTRAINT fk_file_diff_after_blob FOREIGN KEY(after_blob) REFERENCES blob (hash)
) STRICT""",
    """CREATE TABLE lease (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    holder TEXT NOT NULL,
    ttl INTEGER DEFAULT 30000 NOT NULL,
    time_expires INTEGER NOT NULL,
    CONSTRAINT pk_lease PRIMARY KEY (rid),
    CONSTRAINT uq_lease_session_id UNIQUE (session_id),
    CONSTRAINT fk_lease_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE merge_base (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    fields TEXT NOT NULL,
    CONSTRAINT pk_merge_base PRIMARY KEY (rid),
    CONSTRAINT uq_merge_base_session_id UNIQUE (session_id),
    CONSTRAINT ck_merge_base_fields CHECK (fields IS NULL OR json_valid(fields)),
    CONSTRAINT fk_merge_base_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE message (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    parent_seq INTEGER,
    turn_id TEXT,
    role TEXT NOT NULL,
    kind TEXT,
    agent TEXT,
    provider_id TEXT,
    model_id TEXT,
    response_id TEXT,
    usage_key TEXT,
    usage_name TEXT,
    cost REAL,
    tokens_input INTEGER,
    tokens_output INTEGER,
    tokens_reasoning INTEGER,
    tokens_cache_read INTEGER,
    tokens_cache_write INTEGER,
    finish TEXT,
    error TEXT,
    inherited INTEGER DEFAULT 0 NOT NULL,
    time_created INTEGER NOT NULL,
    time_completed INTEGER,
    data BLOB,
    data_blob TEXT,
    CONSTRAINT pk_message PRIMARY KEY (rid),
    CONSTRAINT uq_message_session_id_seq UNIQUE (session_id, seq),
    CONSTRAINT uq_message_id_session_id UNIQUE (id, session_id),
    CONSTRAINT ck_message_role CHECK (role = 'user' OR role = 'assistant' OR role = 'tool' OR role = 'system' OR role = 'event'),
    CONSTRAINT ck_message_finish CHECK (finish = 'stop' OR finish = 'length' OR finish = 'tool-calls' OR finish = 'error' OR finish = 'cancelled' OR finish = 'other'),
    CONSTRAINT ck_message_error CHECK (error IS NULL OR json_valid(error)),
    CONSTRAINT fk_message_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE,
    CONSTRAINT fk_message_data_blob FOREIGN KEY(data_blob) REFERENCES blob (hash)
) STRICT""",
    """CREATE TABLE prompt (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    directory TEXT,
    project_id TEXT,
    session_id TEXT,
    source TEXT NOT NULL,
    time_created INTEGER NOT NULL,
    CONSTRAINT pk_prompt PRIMARY KEY (rid),
    CONSTRAINT uq_prompt_id UNIQUE (id),
    CONSTRAINT fk_prompt_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE SET NULL,
    CONSTRAINT fk_prompt_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE SET NULL
) STRICT""",
    """CREATE TABLE terminal (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    directory TEXT NOT NULL,
    session_id TEXT NOT NULL,
    time_updated INTEGER NOT NULL,
    CONSTRAINT pk_terminal PRIMARY KEY (rid),
    CONSTRAINT uq_terminal_id_directory UNIQUE (id, directory),
    CONSTRAINT fk_terminal_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE todo (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    id TEXT,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    CONSTRAINT pk_todo PRIMARY KEY (rid),
    CONSTRAINT uq_todo_session_id_position UNIQUE (session_id, position),
    CONSTRAINT fk_todo_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE usage_hour (
    rid INTEGER NOT NULL,
    session_rid INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    model_rid INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    project_rid INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    cost REAL,
    tokens_input INTEGER,
    tokens_output INTEGER,
    tokens_reasoning INTEGER,
    tokens_cache_read INTEGER,
    tokens_cache_write INTEGER,
    longest_prompt INTEGER NOT NULL,
    CONSTRAINT pk_usage_hour PRIMARY KEY (rid),
    CONSTRAINT fk_usage_hour_session_rid FOREIGN KEY(session_rid) REFERENCES session (rid) ON DELETE CASCADE,
    CONSTRAINT fk_usage_hour_model_rid FOREIGN KEY(model_rid) REFERENCES usage_model (rid)
) STRICT""",
    """CREATE TABLE usage_waiting (
    rid INTEGER NOT NULL,
    CONSTRAINT pk_usage_waiting PRIMARY KEY (rid),
    CONSTRAINT fk_usage_waiting_rid FOREIGN KEY(rid) REFERENCES session (rid) ON DELETE CASCADE
) STRICT""",
    """CREATE TABLE label (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    label TEXT NOT NULL,
    CONSTRAINT pk_label PRIMARY KEY (rid),
    CONSTRAINT fk_label_session_id_seq FOREIGN KEY(session_id, seq) REFERENCES message (session_id, seq) ON DELETE CASCADE,
    CONSTRAINT uq_label_session_id_label UNIQUE (session_id, label)
) STRICT""",
    """CREATE TABLE part (
    rid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    tool TEXT,
    call_id TEXT,
    status TEXT,
    outcome TEXT,
    title TEXT,
    input TEXT,
    text TEXT,
    text_blob TEXT,
    input_blob TEXT,
    data BLOB,
    data_blob TEXT,
    inherited INTEGER DEFAULT 0 NOT NULL,
    "indexed" INTEGER DEFAULT 0 NOT NULL,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    time_started INTEGER,
    time_ended INTEGER,
    synthetic INTEGER DEFAULT 0 NOT NULL,
    words TEXT,
    CONSTRAINT pk_part PRIMARY KEY (rid),
    CONSTRAINT fk_part_session_id_seq FOREIGN KEY(session_id, seq) REFERENCES message (session_id, seq) ON DELETE CASCADE,
    CONSTRAINT uq_part_session_id_seq_idx UNIQUE (session_id, seq, idx),
    CONSTRAINT ck_part_status CHECK (status = 'pending' OR status = 'running' OR status = 'completed' OR status = 'error'),
    CONSTRAINT ck_part_outcome CHECK (outcome = 'failed' OR outcome = 'interrupted' OR outcome = 'skipped' OR outcome = 'denied'),
    CONSTRAINT ck_part_synthetic CHECK (synthetic IN (0, 1)),
    CONSTRAINT ck_part_input CHECK (input IS NULL OR json_valid(input)),
    CONSTRAINT fk_part_text_blob FOREIGN KEY(text_blob) REFERENCES blob (hash),
    CONSTRAINT fk_part_input_blob FOREIGN KEY(input_blob) REFERENCES blob (hash),
    CONSTRAINT fk_part_data_blob FOREIGN KEY(data_blob) REFERENCES blob (hash)
) STRICT""",
    """CREATE INDEX ix_import_ledger_namespace ON import_ledger (source, namespace) WHERE namespace <> ''""",
    """CREATE INDEX ix_key_value_expires ON key_value (time_expires) WHERE time_expires IS NOT NULL""",
    """CREATE INDEX ix_usage_model_model_id ON usage_model (model_id, provider_id, agent, source)""",
    """CREATE INDEX ix_project_directory_project_id ON project_directory (project_id)""",
    """CREATE INDEX ix_session_change ON session (change)""",
    """CREATE INDEX ix_session_created ON session (hidden, id)""",
    """CREATE INDEX ix_session_data_blob ON session (data_blob) WHERE data_blob IS NOT NULL""",
    """CREATE INDEX ix_session_deleted ON session (time_deleted) WHERE time_deleted IS NOT NULL""",
    """CREATE INDEX ix_session_native ON session (id) WHERE time_imported IS NULL""",
    """CREATE INDEX ix_session_parent_id ON session (parent_id)""",
    """CREATE INDEX ix_session_parent_source ON session (source, parent_source_id) WHERE parent_source_id IS NOT NULL""",
    """CREATE INDEX ix_session_project_created ON session (project_id, hidden, id)""",
    """CREATE INDEX ix_session_project_used ON session (project_id, hidden, time_updated DESC, id)""",
    """CREATE INDEX ix_session_root_id ON session (root_id)""",
    """CREATE INDEX ix_session_scope_created ON session (scope, hidden, id) WHERE scope IS NOT NULL""",
    """CREATE INDEX ix_session_scope_used ON session (scope, hidden, time_updated DESC, id) WHERE scope IS NOT NULL""",
    """CREATE INDEX ix_session_used ON session (hidden, time_updated DESC, id)""",
    """CREATE INDEX ix_file_diff_after_blob ON file_diff (after_blob) WHERE after_blob IS NOT NULL""",
    """CREATE INDEX ix_file_diff_before_blob ON file_diff (before_blob) WHERE before_blob IS NOT NULL""",
    """CREATE INDEX ix_message_branch ON message (session_id, parent_seq) WHERE parent_seq <> seq - 1""",
    """CREATE INDEX ix_message_data_blob ON message (data_blob) WHERE data_blob IS NOT NULL""",
    """CREATE INDEX ix_message_disordered ON message (session_id) WHERE parent_seq >= seq""",
    """CREATE INDEX ix_message_open ON message (session_id) WHERE time_completed IS NULL""",
    """CREATE INDEX ix_message_usage_key ON message (usage_key) WHERE usage_key IS NOT NULL AND (usage_name IS NOT NULL OR response_id IS NOT NULL)""",
    """CREATE INDEX ix_prompt_created ON prompt (time_created, id)""",
    """CREATE INDEX ix_prompt_project_id ON prompt (project_id, time_created, id)""",
    """CREATE INDEX ix_prompt_session_id ON prompt (session_id)""",
    """CREATE INDEX ix_terminal_directory ON terminal (directory, time_updated)""",
    """CREATE INDEX ix_terminal_session_id ON terminal (session_id)""",
    """CREATE INDEX ix_usage_hour_hour ON usage_hour (hour)""",
    """CREATE INDEX ix_usage_hour_session ON usage_hour (session_rid, hour)""",
    """CREATE INDEX ix_label_message ON label (session_id, seq)""",
    """CREATE INDEX ix_part_call_id ON part (session_id, call_id) WHERE call_id IS NOT NULL""",
    """CREATE INDEX ix_part_data_blob ON part (data_blob) WHERE data_blob IS NOT NULL""",
    """CREATE INDEX ix_part_input_blob ON part (input_blob) WHERE input_blob IS NOT NULL""",
    """CREATE INDEX ix_part_result ON part (session_id, call_id) WHERE type = 'tool-result' AND (text IS NOT NULL OR text_blob IS NOT NULL)""",
    """CREATE INDEX ix_part_text_blob ON part (text_blob) WHERE text_blob IS NOT NULL""",
    """CREATE INDEX ix_part_unsettled ON part (session_id) WHERE status IN ('pending', 'running')""",
)

DERIVED = (
    """CREATE VIEW session_list AS
SELECT s.id, s.slug, s.title, s.source, s.agent, s.model_id, s.directory,
       j.worktree AS project, s.relation, s.parent_id, s.message_count, s.cost,
       s.cost_inherited,
       coalesce(s.tokens_input, 0)
         + coalesce(s.tokens_output, 0)
         + coalesce(s.tokens_reasoning, 0)
         + coalesce(s.tokens_cache_read, 0)
         + coalesce(s.tokens_cache_write, 0) AS tokens,
       strftime('%Y-%m-%d %H:%M:%S', s.time_created / 1000, 'unixepoch') AS created, strftime('%Y-%m-%d %H:%M:%S', s.time_updated / 1000, 'unixepoch') AS updated,
       strftime('%Y-%m-%d %H:%M:%S', s.time_archived / 1000, 'unixepoch') AS archived, s.time_created, s.time_updated,
       s.prompt_count, s.hidden
  FROM session AS s LEFT JOIN project AS j ON j.id = s.project_id
 WHERE s.time_deleted IS NULL AND s.time_importing IS NULL""",
    """CREATE VIEW transcript AS
SELECT p.session_id, p.seq, p.idx, strftime('%Y-%m-%d %H:%M:%S', m.time_created / 1000, 'unixepoch') AS time, m.role, m.kind,
       m.agent, m.model_id, p.type, p.tool, p.status, p.outcome, p.title,
       coalesce(p.input, CAST(ib.data AS TEXT)) AS input,
       CASE WHEN p.type = 'tool' AND p.call_id IS NOT NULL
            THEN coalesce((SELECT coalesce(r.text, CAST(rb.data AS TEXT))
          FROM part AS r INDEXED BY ix_part_result
          LEFT JOIN blob AS rb ON rb.hash = r.text_blob
         WHERE r.session_id = p.session_id AND r.call_id = p.call_id
           AND r.type = 'tool-result'
           AND (r.text IS NOT NULL OR r.text_blob IS NOT NULL)
           AND r.seq IN (WITH RECURSIVE path (seq) AS (
               SELECT s.leaf_seq
                UNION
               SELECT a.parent_seq FROM message AS a JOIN path ON a.seq = path.seq
                WHERE a.session_id = s.id)
             SELECT seq FROM path)
         ORDER BY r.seq DESC, r.idx DESC LIMIT 1), p.text, CAST(tb.data AS TEXT))
            WHEN p.type = 'tool-result'
            THEN coalesce(p.text, CAST(tb.data AS TEXT), (SELECT coalesce(c.text, CAST(cb.data AS TEXT))
          FROM part AS c INDEXED BY ix_part_call_id
          LEFT JOIN blob AS cb ON cb.hash = c.text_blob
         WHERE c.session_id = p.session_id AND c.call_id = p.call_id
           AND c.type = 'tool' AND c.seq < p.seq
         ORDER BY c.seq DESC, c.idx DESC LIMIT 1))
            ELSE coalesce(p.text, CAST(tb.data AS TEXT)) END AS text, m.id AS message_id, p.id AS part_id, m.turn_id, m.inherited,
       m.time_created, p.synthetic, CASE WHEN m.kind IN ('compaction', 'branch_summary')
            THEN 'summary'
            WHEN m.role = 'assistant' THEN 'answer'
            WHEN m.role = 'tool' THEN 'result'
            WHEN m.role = 'system' THEN 'injected'
            WHEN m.role = 'user'
            THEN CASE WHEN EXISTS (SELECT 1 FROM part AS t WHERE t.session_id = m.session_id AND t.seq = m.seq AND t.synthetic = 0 AND t.type IN ('text', 'file', 'agent'))
                      THEN 'prompt' ELSE 'injected' END
            WHEN EXISTS (SELECT 1 FROM part AS t
                          WHERE t.session_id = m.session_id
                            AND t.seq = m.seq AND t.type = 'tool')
            THEN 'command'
            WHEN m.kind IN ('custom_message', 'context')
            THEN 'injected'
            ELSE 'bookkeeping' END AS purpose
  FROM session AS s
  JOIN message AS m ON m.session_id = s.id
  JOIN part AS p ON p.session_id = m.session_id AND p.seq = m.seq
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE s.time_deleted IS NULL AND s.time_importing IS NULL""",
    """CREATE VIEW tool_call AS
SELECT p.session_id, p.seq, p.idx, p.tool, p.status, p.outcome, p.title,
       coalesce(p.input, CAST(ib.data AS TEXT)) AS input,
       CASE WHEN p.type = 'tool' AND p.call_id IS NOT NULL
            THEN coalesce((SELECT coalesce(r.text, CAST(rb.data AS TEXT))
          FROM part AS r INDEXED BY ix_part_result
          LEFT JOIN blob AS rb ON rb.hash = r.text_blob
         WHERE r.session_id = p.session_id AND r.call_id = p.call_id
           AND r.type = 'tool-result'
           AND (r.text IS NOT NULL OR r.text_blob IS NOT NULL)
           AND r.seq IN (WITH RECURSIVE path (seq) AS (
               SELECT s.leaf_seq
                UNION
               SELECT a.parent_seq FROM message AS a JOIN path ON a.seq = path.seq
                WHERE a.session_id = s.id)
             SELECT seq FROM path)
         ORDER BY r.seq DESC, r.idx DESC LIMIT 1), p.text, CAST(tb.data AS TEXT))
            WHEN p.type = 'tool-result'
            THEN coalesce(p.text, CAST(tb.data AS TEXT), (SELECT coalesce(c.text, CAST(cb.data AS TEXT))
          FROM part AS c INDEXED BY ix_part_call_id
          LEFT JOIN blob AS cb ON cb.hash = c.text_blob
         WHERE c.session_id = p.session_id AND c.call_id = p.call_id
           AND c.type = 'tool' AND c.seq < p.seq
         ORDER BY c.seq DESC, c.idx DESC LIMIT 1))
            ELSE coalesce(p.text, CAST(tb.data AS TEXT)) END AS output, (p.time_ended - p.time_started) / 1000.0 AS seconds,
       p.call_id, p.id AS part_id, strftime('%Y-%m-%d %H:%M:%S', coalesce(p.time_started, p.time_created) / 1000, 'unixepoch') AS time, p.inherited,
       s.source, s.project_id, CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.filePath'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.file_path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.notebook_path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.absolute_path')) END AS path, s.directory
  FROM part AS p
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.type = 'tool' AND s.time_deleted IS NULL AND s.time_importing IS NULL""",
    r"""CREATE VIEW changed_file AS
WITH call AS (
SELECT p.session_id, p.seq, p.idx, p.tool, coalesce(p.input, CAST(ib.data AS TEXT)) AS input, CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.filePath'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.file_path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.notebook_path'), json_extract(coalesce(p.input, CAST(ib.data AS TEXT)), '$.absolute_path')) END AS path,
       strftime('%Y-%m-%d %H:%M:%S', coalesce(p.time_started, p.time_created) / 1000, 'unixepoch') AS time, p.inherited, p.id AS part_id, s.source, s.directory,
       s.project_id
  FROM part AS p
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.type = 'tool' AND p.status IS NOT 'error' AND s.time_deleted IS NULL AND s.time_importing IS NULL
), answer AS (
SELECT p.session_id, p.seq, p.idx, coalesce(p.text, CAST(tb.data AS TEXT)) AS text,
       strftime('%Y-%m-%d %H:%M:%S', coalesce(p.time_started, p.time_created) / 1000, 'unixepoch') AS time, p.inherited, p.id AS part_id, s.source, s.directory,
       s.project_id
  FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
 WHERE p.type = 'text' AND m.role = 'assistant' AND s.time_deleted IS NULL AND s.time_importing IS NULL
), change AS (
SELECT c.session_id, c.seq, c.idx, c.tool, c.path, c.time, c.inherited, c.part_id,
       c.source, c.directory, c.project_id
  FROM call AS c
 WHERE lower(c.tool) IN ('edit', 'write', 'replace', 'apply_patch', 'multiedit', 'notebookedit', 'patch', 'write_file', 'edit_file', 'create_file', 'write_to_file', 'replace_in_file', 'search_replace', 'str_replace', 'str_replace_editor', 'text_editor', 'str_replace_based_edit_tool', 'insert_edit_into_file') AND c.path IS NOT NULL
 UNION ALL
SELECT c.session_id, c.seq, c.idx, c.tool,
       substr(line.value, instr(line.value, ': ') + 2), c.time, c.inherited, c.part_id,
       c.source, c.directory, c.project_id
  FROM call AS c, json_each('[' || replace(json_quote(c.input), '\\n', '","') || ']') AS line
 WHERE instr(c.input, '*** Begin Patch') > 0
   AND (line.value LIKE '*** Update File: %' OR line.value LIKE '*** Add File: %'
        OR line.value LIKE '*** Delete File: %' OR line.value LIKE '*** Move to: %')
 UNION ALL
SELECT t.session_id, t.seq, t.idx, NULL,
       trim(json_extract('[' || replace(replace(json_quote(t.text), '\\', '/'), '\n', '","') || ']', '$[' || (mark.key - 2) || ']'), '*`#: '),
       t.time, t.inherited, t.part_id, t.source, t.directory, t.project_id
  FROM answer AS t, json_each('[' || replace(replace(json_quote(t.text), '\\', '/'), '\n', '","') || ']') AS mark
 WHERE instr(t.text, '<<<<< SEARCH') > 0 AND mark.key > 1
   AND mark.value LIKE '<<<<<% SEARCH'
)
SELECT session_id, seq, idx, tool,
       CASE WHEN path LIKE '/%' OR path LIKE '_:%' THEN path
            ELSE coalesce(rtrim(directory, '/') || '/', '') || path END AS file,
       time, inherited, source, project_id, path, part_id
  FROM change""",
    """CREATE VIEW context_source AS
SELECT p.session_id, p.seq, p.idx,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.kind') AS kind,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.path') AS path,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.scope') AS scope,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.hash') AS hash,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.truncated') AS truncated,
       json_extract(CASE WHEN json_valid(coalesce(p.input, CAST(ib.data AS TEXT))) THEN coalesce(p.input, CAST(ib.data AS TEXT)) END, '$.error') AS error,
       coalesce(p.text, CAST(tb.data AS TEXT)) AS text,
       strftime('%Y-%m-%d %H:%M:%S', m.time_created / 1000, 'unixepoch') AS time, s.source, p.title, m.id AS message_id,
       p.id AS part_id, p.inherited, s.project_id, s.directory, m.time_created
  FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.type = 'source' AND s.time_deleted IS NULL AND s.time_importing IS NULL""",
    """CREATE VIEW usage AS
SELECT s.id AS session_id, m.hour, u.source, u.agent, u.provider_id, u.model_id,
       m.messages, m.cost, m.tokens_input, m.tokens_output, m.tokens_reasoning, m.tokens_cache_read, m.tokens_cache_write
  FROM usage_hour AS m
  JOIN usage_model AS u ON u.rid = m.model_rid
  JOIN session AS s ON s.rid = m.session_rid
 WHERE m.session_rid NOT IN (SELECT rid FROM usage_waiting) AND s.time_deleted IS NULL AND s.time_importing IS NULL
UNION ALL
SELECT s.id, m.time_created / 3600000, s.source, coalesce(m.agent, s.agent), m.provider_id, m.model_id, 1, m.cost,
       m.tokens_input, m.tokens_output, m.tokens_reasoning, m.tokens_cache_read, m.tokens_cache_write
  FROM message AS m JOIN session AS s ON s.id = m.session_id
 WHERE m.rid > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0)
   AND m.inherited = 0 AND (m.cost IS NOT NULL OR m.tokens_input IS NOT NULL OR m.tokens_output IS NOT NULL OR m.tokens_reasoning IS NOT NULL OR m.tokens_cache_read IS NOT NULL OR m.tokens_cache_write IS NOT NULL) AND s.time_deleted IS NULL AND s.time_importing IS NULL
UNION ALL
SELECT s.id, m.time_created / 3600000, s.source, coalesce(m.agent, s.agent), m.provider_id, m.model_id, 1, m.cost,
       m.tokens_input, m.tokens_output, m.tokens_reasoning, m.tokens_cache_read, m.tokens_cache_write
  FROM usage_waiting AS w JOIN session AS s ON s.rid = w.rid
  JOIN message AS m ON m.session_id = s.id
 WHERE m.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0)
   AND m.inherited = 0 AND (m.cost IS NOT NULL OR m.tokens_input IS NOT NULL OR m.tokens_output IS NOT NULL OR m.tokens_reasoning IS NOT NULL OR m.tokens_cache_read IS NOT NULL OR m.tokens_cache_write IS NOT NULL) AND s.time_deleted IS NULL AND s.time_importing IS NULL""",
    """CREATE VIEW usage_by_day AS
SELECT strftime('%Y-%m-%d', u.hour * 3600, 'unixepoch') AS day, u.source,
       u.provider_id, u.model_id, CAST(sum(u.messages * 1.0) AS BIGINT) AS messages,
       CASE WHEN abs(sum(u.cost)) < 1e300 THEN sum(u.cost) END AS cost,
       CAST(sum(u.tokens_input * 1.0) AS BIGINT) AS tokens_input,
       CAST(sum(u.tokens_output * 1.0) AS BIGINT) AS tokens_output,
       CAST(sum(u.tokens_reasoning * 1.0) AS BIGINT) AS tokens_reasoning,
       CAST(sum(u.tokens_cache_read * 1.0) AS BIGINT) AS tokens_cache_read,
       CAST(sum(u.tokens_cache_write * 1.0) AS BIGINT) AS tokens_cache_write
  FROM usage AS u
 GROUP BY 1, 2, 3, 4""",
    """CREATE VIEW usage_by_model AS
SELECT u.provider_id, u.model_id, CAST(sum(u.messages * 1.0) AS BIGINT) AS messages,
       count(DISTINCT u.session_id) AS sessions,
       CASE WHEN abs(sum(u.cost)) < 1e300 THEN sum(u.cost) END AS cost,
       CAST(sum(u.tokens_input * 1.0) AS BIGINT) AS tokens_input,
       CAST(sum(u.tokens_output * 1.0) AS BIGINT) AS tokens_output,
       CAST(sum(u.tokens_reasoning * 1.0) AS BIGINT) AS tokens_reasoning,
       CAST(sum(u.tokens_cache_read * 1.0) AS BIGINT) AS tokens_cache_read,
       CAST(sum(u.tokens_cache_write * 1.0) AS BIGINT) AS tokens_cache_write
  FROM usage AS u
 GROUP BY 1, 2""",
    """CREATE VIEW session_tree AS
WITH RECURSIVE tree (id, depth, path) AS (
  SELECT id, 0, id FROM session
   WHERE parent_id IS NULL AND time_deleted IS NULL AND time_importing IS NULL
  UNION ALL
  SELECT s.id, tree.depth + 1, tree.path || '/' || s.id
    FROM session AS s JOIN tree ON s.parent_id = tree.id
   WHERE s.time_deleted IS NULL AND s.time_importing IS NULL
)
SELECT s.root_id, tree.depth, tree.path, s.id, s.parent_id, s.relation, s.parent_seq,
       printf('%*s', tree.depth * 2, '') || s.title AS title, s.message_count, s.cost,
       s.source
  FROM tree JOIN session AS s ON s.id = tree.id""",
    r"""CREATE VIEW part_search_content AS
SELECT p.rid AS rid,
       coalesce(p.text, CAST(tb.data AS TEXT), '') AS text,
       coalesce(replace(replace(replace(replace(replace(replace(p.input, '\\', '\ '), '\n', ' '), '\t', ' '), '\r', ' '), '\b', ' '), '\f', ' '), replace(replace(replace(replace(replace(replace(CAST(ib.data AS TEXT), '\\', '\ '), '\n', ' '), '\t', ' '), '\r', ' '), '\b', ' '), '\f', ' '), '') AS input,
       coalesce(p.title, '') AS title,
       p.words AS words
  FROM part AS p
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.indexed = 1 AND p.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0)""",
    r"""CREATE VIEW part_search_waiting AS
SELECT p.rid AS rid,
       coalesce(p.text, CAST(tb.data AS TEXT), '') AS text,
       coalesce(replace(replace(replace(replace(replace(replace(p.input, '\\', '\ '), '\n', ' '), '\t', ' '), '\r', ' '), '\b', ' '), '\f', ' '), replace(replace(replace(replace(replace(replace(CAST(ib.data AS TEXT), '\\', '\ '), '\n', ' '), '\t', ' '), '\r', ' '), '\b', ' '), '\f', ' '), '') AS input,
       coalesce(p.title, '') AS title,
       p.words AS words
  FROM part AS p
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.indexed = 1 AND p.rid > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0)""",
    """CREATE VIRTUAL TABLE part_search USING fts5(text, input, title, words, content='part_search_content', content_rowid='rid', tokenize='unicode61 remove_diacritics 2')""",
    """CREATE VIRTUAL TABLE session_search USING fts5(title, content='session', content_rowid='rid', tokenize='unicode61 remove_diacritics 2')""",
    """CREATE VIRTUAL TABLE prompt_search USING fts5(text, content='prompt', content_rowid='rid', tokenize='unicode61 remove_diacritics 2')""",
    """CREATE TRIGGER part_search_delete BEFORE DELETE ON part WHEN old.indexed = 1 OR old.rid > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0) BEGIN INSERT INTO part_search (rowid, text, input, title, words) SELECT rid, text, input, title, words FROM part_search_waiting WHERE old.rid > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0); UPDATE meta SET value = (SELECT max(rid) FROM part) WHERE key = 'indexed_to' AND old.rid > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0); INSERT INTO part_search (part_search, rowid, text, input, title, words) SELECT 'delete', rid, text, input, title, words FROM part_search_content WHERE rid = old.rid; END""",
    """CREATE TRIGGER part_search_before_update BEFORE UPDATE OF rid, text, text_blob, input, input_blob, title, indexed, words ON part WHEN old.indexed = 1 AND (SELECT 1 FROM part_search_docsize WHERE id = old.rid) BEGIN INSERT INTO part_search (part_search, rowid, text, input, title, words) SELECT 'delete', rid, text, input, title, words FROM part_search_content WHERE rid = old.rid; END""",
    """CREATE TRIGGER part_search_after_update AFTER UPDATE OF rid, text, text_blob, input, input_blob, title, indexed, words ON part WHEN old.indexed = 1 AND new.indexed = 1 BEGIN UPDATE part SET words = NULL WHERE rid = new.rid AND words IS NOT NULL AND new.words IS old.words AND (new.text IS NOT old.text OR new.text_blob IS NOT old.text_blob OR new.input IS NOT old.input OR new.input_blob IS NOT old.input_blob OR new.title IS NOT old.title); INSERT INTO part_search (rowid, text, input, title, words) SELECT rid, text, input, title, words FROM part_search_content WHERE rid = new.rid AND NOT EXISTS (SELECT 1 FROM part_search_docsize WHERE id = new.rid); END""",
    """CREATE TRIGGER session_search_insert AFTER INSERT ON session BEGIN INSERT INTO session_search (rowid, title) VALUES (new.rid, new.title); END""",
    """CREATE TRIGGER session_search_delete AFTER DELETE ON session BEGIN INSERT INTO session_search (session_search, rowid, title) VALUES ('delete', old.rid, old.title); END""",
    """CREATE TRIGGER session_search_update AFTER UPDATE OF rid, title ON session BEGIN INSERT INTO session_search (session_search, rowid, title) VALUES ('delete', old.rid, old.title); INSERT INTO session_search (rowid, title) VALUES (new.rid, new.title); END""",
    """CREATE TRIGGER prompt_search_insert AFTER INSERT ON prompt BEGIN INSERT INTO prompt_search (rowid, text) VALUES (new.rid, new.text); END""",
    """CREATE TRIGGER prompt_search_delete AFTER DELETE ON prompt BEGIN INSERT INTO prompt_search (prompt_search, rowid, text) VALUES ('delete', old.rid, old.text); END""",
    """CREATE TRIGGER prompt_search_update AFTER UPDATE OF rid, text ON prompt BEGIN INSERT INTO prompt_search (prompt_search, rowid, text) VALUES ('delete', old.rid, old.text); INSERT INTO prompt_search (rowid, text) VALUES (new.rid, new.text); END""",
    """CREATE TRIGGER session_deleted AFTER DELETE ON session WHEN old.time_deleted IS NULL BEGIN INSERT INTO deletion (change, session_id, revision, last_seq) VALUES (max(max(coalesce((SELECT max(change) FROM session), 0), coalesce((SELECT max(change) FROM deletion), 0)), old.change) + 1, old.id, old.revision + 1, old.last_seq); END""",
    """CREATE TRIGGER session_hidden_insert AFTER INSERT ON session WHEN new.hidden <> (1 * (new.time_archived IS NOT NULL) + 2 * (new.relation IS 'subagent') + 4 * (new.message_count <= 0) + 8 * (new.time_deleted IS NOT NULL OR new.time_importing IS NOT NULL)) BEGIN UPDATE session SET hidden = 1 * (new.time_archived IS NOT NULL) + 2 * (new.relation IS 'subagent') + 4 * (new.message_count <= 0) + 8 * (new.time_deleted IS NOT NULL OR new.time_importing IS NOT NULL) WHERE rid = new.rid; END""",
    """CREATE TRIGGER session_hidden_update AFTER UPDATE OF time_deleted, time_importing, time_archived, message_count, relation ON session WHEN new.hidden <> (1 * (new.time_archived IS NOT NULL) + 2 * (new.relation IS 'subagent') + 4 * (new.message_count <= 0) + 8 * (new.time_deleted IS NOT NULL OR new.time_importing IS NOT NULL)) BEGIN UPDATE session SET hidden = 1 * (new.time_archived IS NOT NULL) + 2 * (new.relation IS 'subagent') + 4 * (new.message_count <= 0) + 8 * (new.time_deleted IS NOT NULL OR new.time_importing IS NOT NULL) WHERE rid = new.rid; END""",
    """CREATE TRIGGER usage_delete AFTER DELETE ON message WHEN old.inherited = 0 AND (old.cost IS NOT NULL OR old.tokens_input IS NOT NULL OR old.tokens_output IS NOT NULL OR old.tokens_reasoning IS NOT NULL OR old.tokens_cache_read IS NOT NULL OR old.tokens_cache_write IS NOT NULL) AND old.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) OR old.rid > coalesce((SELECT max(rid) FROM message), 0) BEGIN INSERT INTO usage_waiting (rid) SELECT rid FROM session WHERE id = old.session_id AND old.inherited = 0 AND (old.cost IS NOT NULL OR old.tokens_input IS NOT NULL OR old.tokens_output IS NOT NULL OR old.tokens_reasoning IS NOT NULL OR old.tokens_cache_read IS NOT NULL OR old.tokens_cache_write IS NOT NULL) AND old.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) AND rid NOT IN (SELECT rid FROM usage_waiting); UPDATE meta SET value = coalesce((SELECT max(rid) FROM message), 0) WHERE key = 'usage_to' AND CAST(value AS INTEGER) > coalesce((SELECT max(rid) FROM message), 0); END""",
    """CREATE TRIGGER usage_add AFTER UPDATE OF rid, session_id, agent, provider_id, model_id, cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, inherited, time_created ON message WHEN NOT (old.inherited = 0 AND (old.cost IS NOT NULL OR old.tokens_input IS NOT NULL OR old.tokens_output IS NOT NULL OR old.tokens_reasoning IS NOT NULL OR old.tokens_cache_read IS NOT NULL OR old.tokens_cache_write IS NOT NULL)) AND new.inherited = 0 AND (new.cost IS NOT NULL OR new.tokens_input IS NOT NULL OR new.tokens_output IS NOT NULL OR new.tokens_reasoning IS NOT NULL OR new.tokens_cache_read IS NOT NULL OR new.tokens_cache_write IS NOT NULL) AND NOT (new.rid <> old.rid OR new.session_id <> old.session_id) AND old.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) AND NOT ((SELECT rid FROM session WHERE id = new.session_id) IN (SELECT rid FROM usage_waiting)) BEGIN INSERT INTO usage_model (source, agent, provider_id, model_id) SELECT s.source, coalesce(new.agent, s.agent), new.provider_id, new.model_id FROM session AS s WHERE s.id = new.session_id AND (SELECT u.rid FROM usage_model AS u WHERE u.source IS s.source AND u.agent IS coalesce(new.agent, s.agent) AND u.provider_id IS new.provider_id AND u.model_id IS new.model_id) IS NULL; INSERT INTO usage_hour (session_rid, hour, model_rid, hidden, project_rid, messages, cost, longest_prompt) SELECT s.rid, new.time_created / 3600000, (SELECT u.rid FROM usage_model AS u WHERE u.source IS s.source AND u.agent IS coalesce(new.agent, s.agent) AND u.provider_id IS new.provider_id AND u.model_id IS new.model_id), s.hidden, coalesce((SELECT rid FROM project WHERE id = s.project_id), 0), 0, CASE WHEN new.cost IS NOT NULL THEN 0.0 END, 0 FROM session AS s WHERE s.id = new.session_id AND NOT EXISTS (SELECT c.rid FROM session AS s CROSS JOIN usage_hour AS c WHERE s.id = new.session_id AND c.session_rid = s.rid AND c.hour = new.time_created / 3600000 AND c.model_rid = (SELECT u.rid FROM usage_model AS u WHERE u.source IS s.source AND u.agent IS coalesce(new.agent, s.agent) AND u.provider_id IS new.provider_id AND u.model_id IS new.model_id) AND (c.cost IS NULL) = (new.cost IS NULL)); UPDATE usage_hour SET messages = messages + 1, cost = cost + new.cost, tokens_input = CASE WHEN new.tokens_input IS NULL THEN tokens_input ELSE CAST(coalesce(tokens_input, 0) + 1.0 * new.tokens_input AS INTEGER) END, tokens_output = CASE WHEN new.tokens_output IS NULL THEN tokens_output ELSE CAST(coalesce(tokens_output, 0) + 1.0 * new.tokens_output AS INTEGER) END, tokens_reasoning = CASE WHEN new.tokens_reasoning IS NULL THEN tokens_reasoning ELSE CAST(coalesce(tokens_reasoning, 0) + 1.0 * new.tokens_reasoning AS INTEGER) END, tokens_cache_read = CASE WHEN new.tokens_cache_read IS NULL THEN tokens_cache_read ELSE CAST(coalesce(tokens_cache_read, 0) + 1.0 * new.tokens_cache_read AS INTEGER) END, tokens_cache_write = CASE WHEN new.tokens_cache_write IS NULL THEN tokens_cache_write ELSE CAST(coalesce(tokens_cache_write, 0) + 1.0 * new.tokens_cache_write AS INTEGER) END, longest_prompt = max(longest_prompt, CAST(coalesce(new.tokens_input, 0) + coalesce(new.tokens_cache_read, 0) + coalesce(new.tokens_cache_write, 0) AS INTEGER)) WHERE rid = (SELECT c.rid FROM session AS s CROSS JOIN usage_hour AS c WHERE s.id = new.session_id AND c.session_rid = s.rid AND c.hour = new.time_created / 3600000 AND c.model_rid = (SELECT u.rid FROM usage_model AS u WHERE u.source IS s.source AND u.agent IS coalesce(new.agent, s.agent) AND u.provider_id IS new.provider_id AND u.model_id IS new.model_id) AND (c.cost IS NULL) = (new.cost IS NULL)); END""",
    """CREATE TRIGGER usage_change AFTER UPDATE OF rid, session_id, agent, provider_id, model_id, cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, inherited, time_created ON message WHEN (new.rid IS NOT old.rid OR new.session_id IS NOT old.session_id OR new.agent IS NOT old.agent OR new.provider_id IS NOT old.provider_id OR new.model_id IS NOT old.model_id OR new.cost IS NOT old.cost OR new.tokens_input IS NOT old.tokens_input OR new.tokens_output IS NOT old.tokens_output OR new.tokens_reasoning IS NOT old.tokens_reasoning OR new.tokens_cache_read IS NOT old.tokens_cache_read OR new.tokens_cache_write IS NOT old.tokens_cache_write OR new.inherited IS NOT old.inherited OR new.time_created IS NOT old.time_created) AND (old.inherited = 0 AND (old.cost IS NOT NULL OR old.tokens_input IS NOT NULL OR old.tokens_output IS NOT NULL OR old.tokens_reasoning IS NOT NULL OR old.tokens_cache_read IS NOT NULL OR old.tokens_cache_write IS NOT NULL) OR new.rid <> old.rid OR new.session_id <> old.session_id) AND (old.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) OR new.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0)) BEGIN INSERT INTO usage_waiting (rid) SELECT rid FROM session WHERE id = old.session_id AND old.inherited = 0 AND (old.cost IS NOT NULL OR old.tokens_input IS NOT NULL OR old.tokens_output IS NOT NULL OR old.tokens_reasoning IS NOT NULL OR old.tokens_cache_read IS NOT NULL OR old.tokens_cache_write IS NOT NULL) AND old.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) AND rid NOT IN (SELECT rid FROM usage_waiting); INSERT INTO usage_waiting (rid) SELECT rid FROM session WHERE id = new.session_id AND new.inherited = 0 AND (new.cost IS NOT NULL OR new.tokens_input IS NOT NULL OR new.tokens_output IS NOT NULL OR new.tokens_reasoning IS NOT NULL OR new.tokens_cache_read IS NOT NULL OR new.tokens_cache_write IS NOT NULL) AND new.rid <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0) AND rid NOT IN (SELECT rid FROM usage_waiting); UPDATE meta SET value = coalesce((SELECT max(rid) FROM message), 0) WHERE key = 'usage_to' AND CAST(value AS INTEGER) > coalesce((SELECT max(rid) FROM message), 0); END""",
    """CREATE TRIGGER usage_session_update AFTER UPDATE OF hidden, project_id ON session WHEN new.hidden <> old.hidden OR new.project_id IS NOT old.project_id BEGIN UPDATE usage_hour SET hidden = new.hidden, project_rid = coalesce((SELECT rid FROM project WHERE id = new.project_id), 0) WHERE session_rid = new.rid; END""",
    """CREATE TRIGGER usage_session_model AFTER UPDATE OF source, agent ON session WHEN (new.source <> old.source OR new.agent IS NOT old.agent) AND EXISTS (SELECT 1 FROM usage_hour WHERE session_rid = new.rid) BEGIN INSERT INTO usage_waiting (rid) SELECT new.rid WHERE new.rid NOT IN (SELECT rid FROM usage_waiting); END""",
    """CREATE TRIGGER usage_session_delete AFTER DELETE ON session BEGIN DELETE FROM usage_hour WHERE session_rid = old.rid; DELETE FROM usage_waiting WHERE rid = old.rid; END""",
)
# </schema>

TABLES = tuple(sql.split()[2] for sql in STORED if sql.startswith("CREATE TABLE"))
CHANGED = TABLES  # by a downgrade


def upgrade() -> None:
    for statement in STORED:
        op.execute(statement)


def downgrade() -> None:
    alive = "SELECT count(*) FROM session WHERE time_deleted IS NULL"
    (count,) = op.get_bind().exec_driver_sql(alive).one()
    if count:
        raise ConflictError(
            f"below revision 0001 there are no tables: {count} sessions would be lost",
            hint="delete the sessions first, or remove the file",
        )
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE {table}")
