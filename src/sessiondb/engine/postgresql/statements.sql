-- Written by scripts/freeze_statements.py; the source is src/sessiondb/statements.

-- database.worktrees.KNOWN
SELECT project.root_commit
FROM project
JOIN project_directory ON project_directory.project_id = project.id
WHERE project_directory.directory = :directory AND project_directory.kind != 'former'
ORDER BY project_directory.time_created DESC, project_directory.project_id
LIMIT 1

-- database.worktrees.WITH_REMOTE
SELECT project.root_commit, project.id, project_directory.directory
FROM project
JOIN project_directory ON project_directory.project_id = project.id
WHERE project.root_commit IS NOT NULL AND project.remote IS NOT DISTINCT FROM :remote AND
    project_directory.kind = 'worktree'

-- effects.calls.BY_ID
SELECT part.session_id, part.seq, part.idx, part.status, part.outcome, part.text,
    part.text_blob, part.input, part.input_blob, part.title, part.data, part.data_blob,
    part.inherited, part.time_started, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND part.id
    = :pid
ORDER BY part.seq DESC, part.idx DESC
LIMIT 1

-- effects.calls.UNSETTLED_BY_ID
SELECT part.session_id, part.seq, part.idx, part.status, part.outcome, part.text,
    part.text_blob, part.input, part.input_blob, part.title, part.data, part.data_blob,
    part.inherited, part.time_started, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND part.id
    = :pid AND part.status IN ('pending', 'running')
ORDER BY part.seq DESC, part.idx DESC
LIMIT 1

-- effects.calls.BY_CALL_ID
SELECT part.session_id, part.seq, part.idx, part.status, part.outcome, part.text,
    part.text_blob, part.input, part.input_blob, part.title, part.data, part.data_blob,
    part.inherited, part.time_started, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND
    part.call_id = :pid
ORDER BY part.seq DESC, part.idx DESC
LIMIT 1

-- effects.calls.START
UPDATE part
SET status=:status, input=:input, input_blob=:input_blob, indexed=:indexed,
    time_updated=:time_updated, time_started=:time_started, words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.calls.TIME_COMPLETED
SELECT message.time_completed
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.calls.SETTLE
UPDATE part
SET status=:status, outcome=:outcome, title=:title, text=:text, text_blob=:text_blob,
    data=:data, data_blob=:data_blob, indexed=:indexed, time_updated=:time_updated,
    time_started=:time_started, time_ended=:time_ended, words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.calls.BLOB
SELECT blob.size, blob.encoding, blob.data
FROM blob
WHERE blob.hash = :hash

-- effects.calls.CALL_AT
SELECT part.session_id, part.seq, part.idx, part.status, part.outcome, part.text,
    part.text_blob, part.input, part.input_blob, part.title, part.data, part.data_blob,
    part.inherited, part.time_started, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND
    coalesce(part.call_id, '') = :call AND part.seq = :at
ORDER BY part.idx DESC
LIMIT 1

-- effects.calls.ANY_CALL
SELECT part.seq
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id = :call AND
    part.type = 'tool'
LIMIT 1

-- effects.calls.NEAREST
WITH RECURSIVE path(seq) AS (SELECT :leaf::BIGINT AS seq
UNION SELECT message.parent_seq AS parent_seq
FROM path
JOIN message ON message.family = :family_of_sid AND message.seq = path.seq
WHERE message.session_id = :sid AND message.parent_seq >= :least) SELECT path.seq
FROM path
WHERE EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND
    coalesce(part.call_id, '') = :call AND part.seq = path.seq)
LIMIT 1

-- effects.calls.FILL
UPDATE part
SET status=:status, outcome=:outcome, text=:text, text_blob=:text_blob, data=:data,
    data_blob=:data_blob, indexed=:indexed, time_updated=:time_updated, time_ended=:time_ended,
    words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.calls.FILLED
SELECT part.seq
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id = :call AND
    part.type = 'tool' AND part.text IS NOT DISTINCT FROM :shown AND part.text_blob IS NOT
    DISTINCT FROM :shown_blob
LIMIT 1

-- effects.creation.NAMED
SELECT session.id, session.time_deleted
FROM session
WHERE session.source = :source AND session.source_id = :source_id AND session.namespace = ''

-- effects.creation.FREE_NAME
UPDATE session
SET source_id=NULL
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.delete.CHILDREN
SELECT session.id, session.relation
FROM session
WHERE session.family = :family_of_sid AND session.parent_id = :sid AND session.time_deleted IS
    NULL

-- effects.delete.MARK
UPDATE session
SET revision=(session.revision + 1), time_deleted=:now
WHERE session.family = ANY (CAST(:families_of_ids AS BIGINT[])) AND session.id = ANY
    (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1))

-- effects.delete.DETACH
UPDATE session
SET parent_id=NULL, parent_source_id=coalesce((SELECT session.parent_source_id
FROM session AS parent
WHERE parent.family = ANY (CAST(:families_of_ids AS BIGINT[])) AND parent.id = session.parent_id
    AND parent.source = session.source AND parent.source_id = session.parent_source_id),
    session.parent_id)
WHERE session.family = ANY (CAST(:families_of_ids AS BIGINT[])) AND session.id = ANY
    (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1))

-- effects.delete.STAMP
UPDATE session
SET change=:change
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.delete.IDS
SELECT message.id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- effects.delete.REVISION
SELECT session.revision
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.delete.FACTS
SELECT session.source, session.source_id, session.revision, session.last_seq,
    session.time_imported, session.namespace
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.delete.FORKS
SELECT session.id
FROM session
WHERE session.family = :family_of_root AND session.root_id = :root AND session.relation = 'fork'
    AND session.time_deleted IS NULL

-- effects.delete.SHARED
SELECT message.seq, message.id, message.time_created, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.inherited = 0
    AND ((EXISTS (SELECT *
FROM message AS other
WHERE (other.usage_key = message.usage_key AND (other.usage_name IS NOT NULL OR
    other.response_id IS NOT NULL) OR other.usage_key = message.usage_key AND other.id =
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id)) AND
    other.inherited = 1)) OR (EXISTS (SELECT *
FROM message AS other
WHERE other.session_id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:forks AS JSONB)) AS listed(value)) AS anon_1) AND other.id
    = message.id AND other.inherited = 1)))

-- effects.delete.INHERITED
SELECT message.seq, message.id, message.time_created, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.inherited = 1

-- effects.delete.LEAF
SELECT session.id
FROM session
WHERE session.time_deleted IS NOT NULL AND NOT (EXISTS (SELECT *
FROM session AS child
WHERE child.family = session.family AND child.parent_id = session.id))
ORDER BY session.time_deleted
LIMIT 1

-- effects.delete.PARTS
SELECT part.seq, part.idx, length(coalesce(part.text, '')) + length(coalesce(part.input, '')) +
    length(coalesce(part.data, '')) + coalesce(tb.size, 0) + coalesce(ib.size, 0) +
    coalesce(db.size, 0) AS anon_1, part.text_blob, part.input_blob, part.data_blob
FROM part
LEFT OUTER
JOIN blob AS tb ON tb.family = :family_of_sid AND tb.hash = part.text_blob
LEFT OUTER
JOIN blob AS ib ON ib.family = :family_of_sid AND ib.hash = part.input_blob
LEFT OUTER
JOIN blob AS db ON db.family = :family_of_sid AND db.hash = part.data_blob
WHERE part.family = :family_of_sid AND part.session_id = :sid
ORDER BY part.seq DESC, part.idx DESC
LIMIT :rows

-- effects.delete.MESSAGES
SELECT message.seq, length(coalesce(message.data, '')) + coalesce(db.size, 0) AS anon_1,
    message.data_blob
FROM message
LEFT OUTER
JOIN blob AS db ON db.family = :family_of_sid AND db.hash = message.data_blob
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq DESC
LIMIT :rows

-- effects.delete.DIFFS
SELECT file_diff.seq, file_diff.path, length(coalesce(file_diff.patch, '')) +
    coalesce(before.size, 0) + coalesce(after.size, 0) AS anon_1, file_diff.before_blob,
    file_diff.after_blob
FROM file_diff
LEFT OUTER
JOIN blob AS before ON before.family = :family_of_sid AND before.hash = file_diff.before_blob
LEFT OUTER
JOIN blob AS after ON after.family = :family_of_sid AND after.hash = file_diff.after_blob
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid
ORDER BY file_diff.seq DESC, file_diff.path DESC
LIMIT :rows

-- effects.delete.DATA
SELECT session.data_blob
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.delete.DROP_PARTS
DELETE
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND (part.seq, part.idx) >= (:seq,
    :idx)

-- effects.delete.DROP_MESSAGES
DELETE
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq >= :seq

-- effects.delete.DROP_DIFFS
DELETE
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND (file_diff.seq,
    file_diff.path) >= (:seq, :path)

-- effects.delete.DETACH_ALL
UPDATE session
SET parent_id=NULL
WHERE session.family = :family_of_sid AND session.parent_id = :sid

-- effects.delete.BURIED
SELECT tombstone.revision
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id = :sid AND tombstone.namespace = ''

-- effects.delete.DROP_SESSION
DELETE
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.expect.IS_STORED
SELECT message.seq
FROM message
WHERE message.id = :mid
LIMIT 1

-- effects.fork.COPY_MESSAGES
INSERT INTO message (family, session_id, seq, id, parent_seq, turn_id, role, kind, agent,
    provider_id, model_id, response_id, usage_key, usage_name, cost, tokens_input,
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, finish, error,
    inherited, time_created, time_completed, data, data_blob) SELECT :family_of_new, :new AS
    session_id, message.seq AS seq, message.id AS id, message.parent_seq AS parent_seq,
    message.turn_id AS turn_id, message.role AS role, message.kind AS kind, message.agent AS
    agent, message.provider_id AS provider_id, message.model_id AS model_id, message.response_id
    AS response_id, message.usage_key AS usage_key, message.usage_name AS usage_name,
    message.cost AS cost, message.tokens_input AS tokens_input, message.tokens_output AS
    tokens_output, message.tokens_reasoning AS tokens_reasoning, message.tokens_cache_read AS
    tokens_cache_read, message.tokens_cache_write AS tokens_cache_write, CASE WHEN
    (message.time_completed IS NULL) THEN 'cancelled' ELSE message.finish END AS finish,
    message.error AS error, 1 AS inherited, message.time_created AS time_created,
    coalesce(message.time_completed, :now) AS time_completed, message.data AS data,
    message.data_blob AS data_blob
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq <= :cut AND
    (message.seq NOT IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))

-- effects.fork.SEQ_OF_NAME
SELECT message.seq, 0 AS rank
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :name
UNION ALL SELECT label.seq, 1
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :name
ORDER BY rank
LIMIT 1

-- effects.fork.COPY_PARTS
INSERT INTO part (family, session_id, seq, idx, id, type, tool, call_id, status, outcome, title,
    input, text, text_blob, input_blob, data, data_blob, inherited, indexed, time_created,
    time_updated, time_started, time_ended, synthetic, words) SELECT :family_of_new, :new AS
    session_id, part.seq AS seq, part.idx AS idx, part.id AS id, part.type AS type, part.tool AS
    tool, part.call_id AS call_id, CASE WHEN (part.status IN ('pending', 'running') OR part.type
    = 'tool' AND part.call_id IN (SELECT result.call_id
FROM part AS result
WHERE result.family = :family_of_sid AND result.session_id = :sid AND result.call_id IS NOT NULL
    AND result.type = 'tool-result' AND result.text IS NULL AND result.text_blob IS NULL AND
    (result.seq > :cut OR result.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))) AND NOT
    (EXISTS (SELECT *
FROM part AS here
WHERE here.family = :family_of_sid AND here.session_id = part.session_id AND here.call_id =
    part.call_id AND here.type = 'tool-result' AND here.seq > part.seq AND here.seq <= :cut AND
    (here.seq NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_2))))) THEN
    'error' ELSE part.status END AS status, CASE WHEN (part.status IN ('pending', 'running') OR
    part.type = 'tool' AND part.call_id IN (SELECT result.call_id
FROM part AS result
WHERE result.family = :family_of_sid AND result.session_id = :sid AND result.call_id IS NOT NULL
    AND result.type = 'tool-result' AND result.text IS NULL AND result.text_blob IS NULL AND
    (result.seq > :cut OR result.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))) AND NOT
    (EXISTS (SELECT *
FROM part AS here
WHERE here.family = :family_of_sid AND here.session_id = part.session_id AND here.call_id =
    part.call_id AND here.type = 'tool-result' AND here.seq > part.seq AND here.seq <= :cut AND
    (here.seq NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_2))))) THEN
    'interrupted' ELSE part.outcome END AS outcome, part.title AS title, part.input AS input,
    CASE WHEN (part.type = 'tool' AND part.call_id IN (SELECT result.call_id
FROM part AS result
WHERE result.family = :family_of_sid AND result.session_id = :sid AND result.call_id IS NOT NULL
    AND result.type = 'tool-result' AND result.text IS NULL AND result.text_blob IS NULL AND
    (result.seq > :cut OR result.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))) AND NOT
    (EXISTS (SELECT *
FROM part AS here
WHERE here.family = :family_of_sid AND here.session_id = part.session_id AND here.call_id =
    part.call_id AND here.type = 'tool-result' AND here.seq > part.seq AND here.seq <= :cut AND
    (here.seq NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_2))))) THEN NULL
    ELSE part.text END AS text, CASE WHEN (part.type = 'tool' AND part.call_id IN (SELECT
    result.call_id
FROM part AS result
WHERE result.family = :family_of_sid AND result.session_id = :sid AND result.call_id IS NOT NULL
    AND result.type = 'tool-result' AND result.text IS NULL AND result.text_blob IS NULL AND
    (result.seq > :cut OR result.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))) AND NOT
    (EXISTS (SELECT *
FROM part AS here
WHERE here.family = :family_of_sid AND here.session_id = part.session_id AND here.call_id =
    part.call_id AND here.type = 'tool-result' AND here.seq > part.seq AND here.seq <= :cut AND
    (here.seq NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_2))))) THEN NULL
    ELSE part.text_blob END AS text_blob, part.input_blob AS input_blob, part.data AS data,
    part.data_blob AS data_blob, 1 AS inherited, 0 AS indexed, part.time_created AS
    time_created, part.time_updated AS time_updated, part.time_started AS time_started, CASE
    WHEN (part.status IN ('pending', 'running')) THEN :now ELSE part.time_ended END AS
    time_ended, part.synthetic AS synthetic, NULL AS words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq <= :cut AND (part.seq
    NOT IN (SELECT anon_3.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_3))

-- effects.fork.COPY_TODOS
INSERT INTO todo (family, session_id, position, id, content, status, priority, time_created,
    time_updated) SELECT :family_of_new, :new AS session_id, todo.position AS position, todo.id
    AS id, todo.content AS content, todo.status AS status, todo.priority AS priority,
    todo.time_created AS time_created, todo.time_updated AS time_updated
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid

-- effects.fork.COPY_LABELS
INSERT INTO label (family, session_id, seq, label) SELECT :family_of_new, :new AS session_id,
    label.seq AS seq, label.label AS label
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.seq <= :cut AND
    (label.seq NOT IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))

-- effects.fork.COPY_DIFFS
INSERT INTO file_diff (family, session_id, seq, path, before_blob, after_blob, patch, additions,
    deletions) SELECT :family_of_new, :new AS session_id, file_diff.seq AS seq, file_diff.path
    AS path, file_diff.before_blob AS before_blob, file_diff.after_blob AS after_blob,
    file_diff.patch AS patch, file_diff.additions AS additions, file_diff.deletions AS deletions
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND file_diff.seq <=
    :cut AND (file_diff.seq NOT IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:off AS JSONB)) AS listed(value)) AS anon_1))

-- effects.fork.COPY_SESSION
INSERT INTO session (family, id, project_id, parent_id, relation, parent_seq, root_id, slug,
    title, title_source, directory, version, source, source_id, agent, provider_id, model_id,
    model_source, leaf_seq, last_seq, permission, metadata, time_created, time_updated, data,
    data_blob, scope) SELECT :family_of_new, :new AS id, :project_id AS project_id, :sid::TEXT
    AS parent_id, 'fork' AS relation, :parent_seq AS parent_seq, session.root_id AS root_id,
    :slug AS slug, :title AS title, :title_source AS title_source, :directory AS directory, CASE
    WHEN (session.source = :source) THEN session.version END AS version, :source AS source,
    :source_id AS source_id, session.agent AS agent, session.provider_id AS provider_id,
    session.model_id AS model_id, session.model_source AS model_source, :leaf AS leaf_seq,
    session.last_seq AS last_seq, session.permission AS permission, CASE WHEN session.metadata
    IS NOT NULL THEN coalesce((SELECT CAST(json_object_agg(name, CAST(session.metadata AS JSON)
    -> name) AS TEXT)
FROM json_object_keys(CAST(session.metadata AS JSON)) AS name
WHERE name <> 'share'), '{}') END AS metadata, :now AS time_created, :now AS time_updated, NULL
    AS data, NULL AS data_blob, coalesce(:scope, session.scope) AS scope
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.fork.TITLES
SELECT session.title
FROM session
WHERE session.family = :family_of_root AND session.root_id = :root AND session.title LIKE
    '%(fork #%)' AND session.time_deleted IS NULL

-- effects.fork.FORK
SELECT session.parent_id, session.relation, session.parent_seq, session.time_deleted
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.fork.LOST_IN_PART
SELECT part.seq, part.idx
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND (part.text_blob IS NOT NULL
    AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = part.text_blob)) OR part.input_blob IS NOT
    NULL AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = part.input_blob)) OR part.data_blob IS NOT
    NULL AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = part.data_blob)))
ORDER BY part.seq, part.idx
LIMIT 1

-- effects.fork.LOST_IN_MESSAGE
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.data_blob IS NOT
    NULL AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = message.data_blob))
ORDER BY message.seq
LIMIT 1

-- effects.fork.LOST_IN_DIFF
SELECT file_diff.path
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND
    (file_diff.before_blob IS NOT NULL AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = file_diff.before_blob)) OR
    file_diff.after_blob IS NOT NULL AND NOT (EXISTS (SELECT *
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = file_diff.after_blob)))
ORDER BY file_diff.path
LIMIT 1

-- effects.lease.HELD
SELECT lease.holder, lease.time_expires
FROM lease
WHERE lease.family = :family_of_sid AND lease.session_id = :sid AND time_expires > :now AND
    time_expires - :now <= 2 * ttl

-- effects.lease.DROP
DELETE
FROM lease
WHERE lease.family = :family_of_sid AND lease.session_id = :sid AND lease.holder = :holder

-- effects.merge.PROJECT
SELECT project.vcs, project.remote, project.root_commit, project.name, project.permission,
    project.metadata, project.time_initialized, project.time_created
FROM project
WHERE project.id = :pid

-- effects.merge.SET_PROJECT
UPDATE project
SET vcs=:vcs, remote=:remote, root_commit=:root_commit, name=:name, permission=:permission,
    metadata=:metadata, time_initialized=:time_initialized, time_created=:time_created,
    time_updated=:time_updated
WHERE project.id = :pid

-- effects.merge.DROP_PROJECT
DELETE
FROM project
WHERE project.id = :pid

-- effects.merge.SESSIONS
SELECT session.id, session.slug
FROM session
WHERE session.project_id = :pid

-- effects.merge.MOVE_SESSION
UPDATE session
SET project_id=:project_id, slug=:slug
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.merge.MOVE_PROMPTS
UPDATE prompt
SET project_id=:project_id
WHERE prompt.project_id = :pid

-- effects.merge.DIRECTORIES
SELECT project_directory.directory, project_directory.kind
FROM project_directory
WHERE project_directory.project_id = :pid

-- effects.merge.ADD_DIRECTORIES
INSERT INTO project_directory (directory, project_id, kind, time_created) SELECT
    project_directory.directory, :into AS anon_1, project_directory.kind,
    project_directory.time_created
FROM project_directory
WHERE project_directory.project_id = :pid
ORDER BY project_directory.time_created, project_directory.directory ON CONFLICT DO NOTHING

-- effects.merge.REVIVE
UPDATE project_directory
SET kind='worktree'
WHERE project_directory.project_id = :into AND project_directory.kind = 'former' AND
    project_directory.directory IN (SELECT project_directory.directory
FROM project_directory
WHERE project_directory.project_id = :pid AND project_directory.kind != 'former')

-- effects.merge.AT
SELECT project.id
FROM project
LEFT OUTER
JOIN project_directory ON project_directory.project_id = project.id
WHERE project.worktree = :worktree OR project_directory.directory = :worktree AND
    project_directory.kind = 'worktree'
GROUP BY project.id, project.time_created
ORDER BY project.time_created, project.id

-- effects.message.BY_ID
SELECT message.seq, message.role, message.kind, message.turn_id, message.time_completed
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :mid

-- effects.message.SEQ_OF
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :mid

-- effects.message.SEQ_IS
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.message.TURN
SELECT message.turn_id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.message.PARTS
SELECT part.id, part.type, part.tool, part.call_id, part.status, part.input, part.input_blob,
    part.text, part.text_blob, part.outcome, part.data, part.data_blob, part.time_updated
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at
ORDER BY part.idx

-- effects.message.TITLE
UPDATE session
SET title=:title
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.message.TWIN
SELECT message.seq
FROM message
WHERE (message.usage_key = :key AND (message.usage_name IS NOT NULL OR message.response_id IS
    NOT NULL) OR message.usage_key = :key AND message.id = :name) AND (message.session_id !=
    :sid OR message.seq != :at)
LIMIT 1

-- effects.open_message.NEXT_IDX
SELECT coalesce(max(part.idx), -1) + 1 AS anon_1
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at

-- effects.open_message.UNINDEXED
SELECT part.idx
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND
    part.indexed = 0

-- effects.open_message.OPEN
SELECT message.id, message.role, message.kind, message.response_id, message.model_id,
    message.time_created, message.time_completed, message.finish, message.cost,
    message.tokens_input, message.tokens_output, message.tokens_reasoning,
    message.tokens_cache_read, message.tokens_cache_write, message.error, message.inherited
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.open_message.WAS_PROMPT
SELECT message.role = 'user' AND EXISTS (SELECT 1
FROM part AS t
WHERE t.family = :family_of_sid AND t.session_id = message.session_id AND t.seq = message.seq
    AND t.synthetic = 0 AND t.type IN ('text', 'file', 'agent')) AND coalesce(message.kind, '')
    NOT IN ('compaction', 'branch_summary')
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.open_message.FINISH
UPDATE message
SET usage_key=:usage_key, cost=:cost, tokens_input=:tokens_input, tokens_output=:tokens_output,
    tokens_reasoning=:tokens_reasoning, tokens_cache_read=:tokens_cache_read,
    tokens_cache_write=:tokens_cache_write, finish=:finish, error=:error,
    time_completed=:time_completed
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.open_message.ROW
SELECT part.seq, part.idx, message.time_completed, length(coalesce(part.text, '')) AS length_1,
    part.text, part.text_blob, part.data, part.data_blob
FROM part
JOIN message ON message.family = :family_of_sid AND message.session_id = part.session_id AND
    message.seq = part.seq
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.id = :pid AND message.id
    = :mid

-- effects.open_message.APPEND
UPDATE part
SET text=coalesce(part.text, '') || :delta, time_updated=:now
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.open_message.COMPLETE
UPDATE part
SET text=:text, text_blob=:text_blob, data=:data, data_blob=:data_blob,
    time_updated=:time_updated, time_ended=:time_ended
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.ownership.BY_KEY
SELECT session.id, session.parent_id, session.time_created, message.inherited, session.relation
    = 'fork' AND message.seq <= session.parent_seq AS anon_1, session.root_id, message.seq,
    message.id AS id_1, message.time_created AS time_created_1, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM message
JOIN session ON session.family = message.family AND session.id = message.session_id
WHERE (message.usage_key IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:keys AS JSONB)) AS listed(value)) AS anon_2) AND
    (message.usage_name IS NOT NULL OR message.response_id IS NOT NULL) OR message.usage_key IN
    (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:keys AS JSONB)) AS listed(value)) AS anon_2) AND message.id
    IN (SELECT anon_3.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_3)) AND
    session.time_deleted IS NULL

-- effects.ownership.BY_PLACE
SELECT session.id, session.parent_id, session.time_created, message.inherited, session.relation
    = 'fork' AND message.seq <= session.parent_seq AS anon_1, session.root_id, message.seq,
    message.id AS id_1, message.time_created AS time_created_1, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM session
JOIN message ON message.family = session.family AND session.id = message.session_id
WHERE session.root_id IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:roots AS JSONB)) AS listed(value)) AS anon_2) AND
    session.time_deleted IS NULL AND message.seq BETWEEN :least AND :most

-- effects.ownership.PARENT
SELECT session.parent_id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.ownership.SET_MESSAGE
UPDATE message
SET inherited=:inherited
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.ownership.SET_PARTS
UPDATE part
SET inherited=:inherited
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at

-- effects.ownership.UNINDEX
UPDATE part
SET indexed=0, words=NULL
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND
    part.indexed = 1

-- effects.ownership.PARTS
SELECT part.idx
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at

-- effects.ownership.TOTAL
SELECT count(*), count(CASE WHEN message.role = 'user' AND EXISTS (SELECT 1
FROM part AS t
WHERE t.family = :family_of_sid AND t.session_id = message.session_id AND t.seq = message.seq
    AND t.synthetic = 0 AND t.type IN ('text', 'file', 'agent')) AND coalesce(message.kind, '')
    NOT IN ('compaction', 'branch_summary') THEN 1 END), CASE WHEN abs(sum(cost) FILTER (WHERE
    inherited = 0)) < 1e300 THEN sum(cost) FILTER (WHERE inherited = 0) END, CASE WHEN
    abs(sum(cost) FILTER (WHERE inherited = 1)) < 1e300 THEN sum(cost) FILTER (WHERE inherited =
    1) END, CAST(sum(tokens_input * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_output * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_reasoning * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_cache_read * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_cache_write * 1.0) FILTER (WHERE inherited = 0) AS BIGINT)
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- effects.ownership.RECOUNT
UPDATE session
SET message_count=:message_count, cost=:cost, tokens_input=:tokens_input,
    tokens_output=:tokens_output, tokens_reasoning=:tokens_reasoning,
    tokens_cache_read=:tokens_cache_read, tokens_cache_write=:tokens_cache_write,
    cost_inherited=:cost_inherited, prompt_count=:prompt_count
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.ownership.MODEL_SOURCE
SELECT session.model_source
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.ownership.LAST_ANSWER
SELECT message.provider_id, message.model_id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.role =
    'assistant' AND message.model_id IS NOT NULL
ORDER BY message.seq DESC
LIMIT 1

-- effects.ownership.SET_MODEL
UPDATE session
SET provider_id=:provider_id, model_id=:model_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.paths.IS_DISORDERED
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND parent_seq >= seq
LIMIT 1

-- effects.paths.FIRST
WITH RECURSIVE path(seq) AS (SELECT :leaf::BIGINT AS seq
UNION SELECT message.parent_seq AS parent_seq
FROM path
JOIN message ON message.family = :family_of_sid AND message.seq = path.seq
WHERE message.session_id = :sid AND message.parent_seq >= :least) SELECT path.seq
FROM path
WHERE path.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)
LIMIT 1

-- effects.place.LAST_USE
SELECT terminal.time_updated
FROM terminal
WHERE terminal.id = :name AND terminal.directory = :directory

-- effects.place.USES
SELECT terminal.id, terminal.directory, terminal.session_id, terminal.time_updated
FROM terminal
WHERE terminal.directory = :old OR substr(terminal.directory, 1, length(:below)) = :below

-- effects.place.DROP_USES
DELETE
FROM terminal
WHERE terminal.directory = :old OR substr(terminal.directory, 1, length(:below)) = :below

-- effects.place.SESSIONS
SELECT session.id, session.directory, session.project_id
FROM session
WHERE session.directory = :old OR substr(session.directory, 1, length(:below)) = :below

-- effects.place.MOVE
UPDATE session
SET project_id=:project_id, slug=:slug, directory=:directory
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.place.ROOTED
SELECT project.id, project.worktree
FROM project
WHERE project.worktree = :old OR substr(project.worktree, 1, length(:below)) = :below
ORDER BY project.time_created, project.id

-- effects.place.WORKTREE
UPDATE project
SET worktree=:worktree, time_updated=:time_updated
WHERE project.id = :pid

-- effects.place.DIRECTORIES
SELECT project_directory.directory, project_directory.kind
FROM project_directory
WHERE project_directory.project_id = :pid AND (project_directory.directory = :old OR
    substr(project_directory.directory, 1, length(:below)) = :below) AND project_directory.kind
    != 'former'
ORDER BY project_directory.time_created, project_directory.directory

-- effects.place.FORMER
UPDATE project_directory
SET kind=:kind
WHERE project_directory.project_id = :pid AND project_directory.directory = :old

-- effects.project.BY_DIRECTORY
SELECT project_directory.project_id
FROM project_directory
WHERE project_directory.directory = :directory AND project_directory.kind != 'former'
ORDER BY project_directory.time_created DESC, project_directory.project_id
LIMIT 1

-- effects.project.SAME_REPOSITORY
SELECT project.id, project_directory.directory
FROM project
JOIN project_directory ON project_directory.project_id = project.id
WHERE project.root_commit = :root_commit AND project.remote IS NOT DISTINCT FROM :remote AND
    project_directory.kind = 'worktree'

-- effects.project.FACTS
SELECT project.vcs, project.remote, project.root_commit
FROM project
WHERE project.id = :pid

-- effects.project.SET_FACTS
UPDATE project
SET vcs=:vcs, remote=:remote, root_commit=:root_commit, time_updated=:time_updated
WHERE project.id = :pid

-- effects.project.BY_ID
SELECT project.worktree
FROM project
WHERE project.id = :pid

-- effects.project.SET_WORKTREE
UPDATE project
SET worktree=:worktree, time_updated=:time_updated
WHERE project.id = :pid

-- effects.project.FORGET_DIRECTORY
DELETE
FROM project_directory
WHERE project_directory.directory = :directory AND project_directory.project_id = :pid

-- effects.recovery.CALLS
SELECT part.seq, part.idx, part.inherited
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.status IN ('pending',
    'running')

-- effects.recovery.SETTLE
UPDATE part
SET status=:status, outcome=:outcome, indexed=:indexed, time_updated=:time_updated,
    time_ended=:time_ended, words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.recovery.MESSAGES
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.time_completed
    IS NULL

-- effects.recovery.FINISH
UPDATE message
SET finish=:finish, time_completed=:time_completed
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.recovery.UNINDEXED
SELECT part.idx
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND
    part.indexed = 0 AND part.inherited = 0

-- effects.removal.LINKS
SELECT message.seq, message.parent_seq, message.id, message.role
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)
ORDER BY message.seq

-- effects.removal.IN_TURN
WITH RECURSIVE path(seq) AS (SELECT :at::BIGINT AS seq
UNION SELECT child.seq AS seq
FROM path
JOIN message AS child ON child.family = :family_of_sid AND child.parent_seq = path.seq
WHERE child.session_id = :sid AND child.turn_id = :turn AND child.seq IN (SELECT path.seq + 1 AS
    anon_1
UNION ALL SELECT branch.seq
FROM message AS branch
WHERE branch.family = :family_of_sid AND branch.session_id = :sid AND branch.parent_seq =
    path.seq AND branch.parent_seq != branch.seq - 1)) SELECT path.seq
FROM path
WHERE path.seq != :at::BIGINT

-- effects.removal.SET_TURN
UPDATE message
SET turn_id=:turn_id
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.RELINK_NEXT
UPDATE message
SET parent_seq=:parent
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at + 1
    AND message.parent_seq = :at

-- effects.removal.RELINK_BRANCHES
UPDATE message
SET parent_seq=:parent
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.parent_seq = :at
    AND parent_seq <> seq - 1

-- effects.removal.FIRST_TEXT
SELECT part.seq, part.text, blob.size, blob.encoding, blob.data
FROM part
LEFT OUTER
JOIN blob ON blob.family = :family_of_sid AND blob.hash = part.text_blob
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = (SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.role = 'user'
    AND (EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = message.session_id AND part.seq =
    message.seq AND part.type = 'text' AND (part.text != '' OR part.text_blob IS NOT NULL)))
ORDER BY message.seq
LIMIT 1) AND part.type = 'text' AND (part.text != '' OR part.text_blob IS NOT NULL)
ORDER BY part.idx
LIMIT 1

-- effects.removal.GOING
SELECT message.seq, message.id, message.time_created, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1,
    message.data_blob, message.inherited, message.model_id, message.role = 'user' AND EXISTS
    (SELECT 1
FROM part AS t
WHERE t.family = :family_of_sid AND t.session_id = message.session_id AND t.seq = message.seq
    AND t.synthetic = 0 AND t.type IN ('text', 'file', 'agent')) AND coalesce(message.kind, '')
    NOT IN ('compaction', 'branch_summary'), message.cost, message.tokens_input,
    message.tokens_output, message.tokens_reasoning, message.tokens_cache_read,
    message.tokens_cache_write
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.PART_BLOBS
SELECT part.text_blob, part.input_blob, part.data_blob
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.DIFF_BLOBS
SELECT file_diff.before_blob, file_diff.after_blob
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND file_diff.seq IN
    (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.DROP
DELETE
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.DROP_DIFFS
DELETE
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND file_diff.seq IN
    (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- effects.removal.PROMPTS
SELECT coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1,
    message.time_created
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1) AND
    message.role = 'user' AND message.inherited = 0

-- effects.removal.DROP_PROMPTS
DELETE
FROM prompt
WHERE prompt.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1))

-- effects.replacing.STORED
SELECT message.id, message.parent_seq, message.turn_id, message.agent, message.provider_id,
    message.model_id, message.response_id, message.finish, message.error, message.cost,
    message.tokens_input, message.tokens_output, message.tokens_reasoning,
    message.tokens_cache_read, message.tokens_cache_write, message.usage_key,
    message.usage_name, message.inherited, message.time_created, message.time_completed,
    message.data_blob
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.replacing.REPLACE
UPDATE message
SET turn_id=:turn_id, role=:role, kind=:kind, agent=:agent, provider_id=:provider_id,
    model_id=:model_id, response_id=:response_id, usage_key=:usage_key, cost=:cost,
    tokens_input=:tokens_input, tokens_output=:tokens_output,
    tokens_reasoning=:tokens_reasoning, tokens_cache_read=:tokens_cache_read,
    tokens_cache_write=:tokens_cache_write, finish=:finish, error=:error, data=:data,
    data_blob=:data_blob
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.replacing.DROP_PARTS
DELETE
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at

-- effects.results.ENDED_CALLS
SELECT part.call_id, part.seq, part.idx, part.text, part.text_blob
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1) AND part.type
    = 'tool' AND (part.text IS NOT NULL OR part.text_blob IS NOT NULL)

-- effects.results.BARE_RESULTS
SELECT part.seq, part.call_id
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1) AND part.type
    = 'tool-result' AND part.text IS NULL AND part.text_blob IS NULL

-- effects.results.KEPT_CALLS
SELECT DISTINCT part.call_id
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:calls AS JSONB)) AS listed(value)) AS anon_1) AND (part.seq
    NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_2)) AND part.type
    = 'tool'

-- effects.results.RESULTS
SELECT part.seq, part.idx, part.session_id, part.seq AS seq__1, part.idx AS idx__1, part.id,
    part.type, part.tool, part.call_id, part.status, part.outcome, part.title, part.input,
    part.text, part.text_blob, part.input_blob, part.data, part.data_blob, part.inherited,
    part.indexed, part.time_created, part.time_updated, part.time_started, part.time_ended,
    part.synthetic, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:calls AS JSONB)) AS listed(value)) AS anon_1) AND (part.seq
    NOT IN (SELECT anon_2.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_2)) AND part.type
    = 'tool-result'
ORDER BY part.seq, part.idx

-- effects.results.SET_TEXT
UPDATE part
SET text=:text, text_blob=:text_blob, indexed=:indexed, time_updated=:time_updated, words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.results.REOPEN
UPDATE part
SET status=:status, outcome=:outcome, text=:text, text_blob=:text_blob, data=:data,
    data_blob=:data_blob, indexed=:indexed, time_updated=:time_updated, time_ended=:time_ended,
    words=:words
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at AND part.idx =
    :idx

-- effects.session.EXISTING
SELECT session.parent_id, session.relation, session.source, session.source_id,
    session.time_deleted
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.session.SLUG
SELECT session.id
FROM session
WHERE session.project_id IS NOT DISTINCT FROM :pid AND session.slug = :slug

-- effects.session.SCOPE
SELECT session.scope
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.session.METADATA
SELECT session.metadata
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.session.CLEAR_TODOS
DELETE
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid

-- effects.session.DIFF_BLOBS
SELECT file_diff.before_blob, file_diff.after_blob
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- effects.session.CLEAR_DIFFS
DELETE
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- effects.session.DROP_LABELS
DELETE
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.seq = :at

-- effects.session.DROP_NAME
DELETE
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :name

-- effects.session.PROMPT_IS
SELECT prompt.text
FROM prompt
WHERE prompt.id = :pid

-- effects.transaction.MARK
UPDATE part
SET indexed=1
WHERE part.family = ANY (CAST(:families_of_parts AS BIGINT[])) AND (part.session_id, part.seq,
    part.idx) IN (SELECT anon_1.session_id, anon_1.seq, anon_1.idx
FROM (SELECT value ->> 0 AS session_id, CAST(value ->> 1 AS BIGINT) AS seq, CAST(value ->> 2 AS
    BIGINT) AS idx
FROM jsonb_array_elements(CAST(:parts AS JSONB)) AS listed(value)) AS anon_1) AND part.indexed =
    0 AND part.inherited = 0 AND (part.text != '' OR part.text_blob != '' OR part.input != '' OR
    part.input_blob != '' OR part.title != '')
RETURNING part.session_id, part.seq, part.idx

-- effects.transaction.FREE
DELETE
FROM blob
WHERE blob.hash = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:hashes AS JSONB)) AS listed(value)) AS anon_1)) AND NOT
    (EXISTS (SELECT *
FROM part
WHERE part.family = blob.family AND part.text_blob = blob.hash)) AND NOT (EXISTS (SELECT *
FROM part
WHERE part.family = blob.family AND part.input_blob = blob.hash)) AND NOT (EXISTS (SELECT *
FROM part
WHERE part.family = blob.family AND part.data_blob = blob.hash)) AND NOT (EXISTS (SELECT *
FROM message
WHERE message.family = blob.family AND message.data_blob = blob.hash)) AND NOT (EXISTS (SELECT *
FROM session
WHERE session.family = blob.family AND session.data_blob = blob.hash)) AND NOT (EXISTS (SELECT *
FROM file_diff
WHERE file_diff.family = blob.family AND file_diff.before_blob = blob.hash)) AND NOT (EXISTS
    (SELECT *
FROM file_diff
WHERE file_diff.family = blob.family AND file_diff.after_blob = blob.hash))

-- effects.transaction.LOAD
SELECT session.id, session.project_id, session.parent_id, session.relation, session.root_id,
    session.source, session.title, session.title_source, session.leaf_seq, session.last_seq,
    session.revision, session.message_count, session.prompt_count, session.cost,
    session.cost_inherited, session.tokens_input, session.tokens_output,
    session.tokens_reasoning, session.tokens_cache_read, session.tokens_cache_write,
    session.time_created, session.time_updated, session.time_detached, session.time_importing,
    session.directory, session.provider_id, session.model_id, session.model_source,
    session.time_imported, lease.holder, lease.time_expires, message.turn_id
FROM session
LEFT OUTER
JOIN message ON message.family = :family_of_sid AND message.session_id = session.id AND
    message.seq = session.leaf_seq
LEFT OUTER
JOIN lease ON lease.family = :family_of_sid AND lease.session_id = session.id AND time_expires >
    :now AND time_expires - :now <= 2 * ttl
WHERE session.family = :family_of_sid AND session.time_deleted IS NULL AND session.id = :sid

-- effects.transaction.LOAD_MANY
SELECT session.id, session.project_id, session.parent_id, session.relation, session.root_id,
    session.source, session.title, session.title_source, session.leaf_seq, session.last_seq,
    session.revision, session.message_count, session.prompt_count, session.cost,
    session.cost_inherited, session.tokens_input, session.tokens_output,
    session.tokens_reasoning, session.tokens_cache_read, session.tokens_cache_write,
    session.time_created, session.time_updated, session.time_detached, session.time_importing,
    session.directory, session.provider_id, session.model_id, session.model_source,
    session.time_imported, lease.holder, lease.time_expires, message.turn_id, lease.ttl
FROM session
LEFT OUTER
JOIN message ON message.family = session.family AND message.session_id = session.id AND
    message.seq = session.leaf_seq
LEFT OUTER
JOIN lease ON lease.family = session.family AND lease.session_id = session.id
WHERE session.time_deleted IS NULL AND session.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:sids AS JSONB)) AS listed(value)) AS anon_1))

-- effects.tree.LINKS
SELECT message.seq, message.parent_seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq

-- effects.tree.LINKS_BEHIND
SELECT message.seq, message.parent_seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq > :after
ORDER BY message.seq

-- effects.values.CURRENT
SELECT key_value.revision, key_value.ttl, key_value.value, key_value.content
FROM key_value
WHERE key_value.namespace = :namespace AND key_value.key = :key AND (time_expires IS NULL OR
    time_expires > :now)

-- effects.values.REMOVED
SELECT CAST(meta.value AS BIGINT) AS value
FROM meta
WHERE meta.key = 'value_revision'

-- effects.values.PUT
INSERT INTO key_value (namespace, key, revision, ttl, time_created, time_updated, time_expires,
    value, content)
VALUES (:namespace, :key, (coalesce((SELECT CAST(meta.value AS BIGINT) AS value
FROM meta
WHERE meta.key = 'value_revision'), 0) + 1), :ttl::BIGINT, :now, :now, (:now::BIGINT +
    :ttl::BIGINT), :value, :content) ON CONFLICT (namespace, key) DO UPDATE
SET revision = (key_value.revision + 1), ttl = :ttl::BIGINT, time_created = CASE WHEN
    (key_value.time_expires <= :now) THEN :now ELSE key_value.time_created END, time_updated =
    :now, time_expires = (:now::BIGINT + :ttl::BIGINT), value = :value, content = :content
RETURNING key_value.revision

-- effects.values.DROP
DELETE
FROM key_value
WHERE key_value.namespace = :namespace AND key_value.key = :key
RETURNING key_value.revision

-- effects.values.BELOW
SELECT count(CASE WHEN (time_expires IS NULL OR time_expires > :now) THEN key_value.key END) AS
    count_1, max(key_value.revision) AS max_1
FROM key_value
WHERE key_value.namespace >= :low AND key_value.namespace <= :high

-- effects.values.DROP_BELOW
DELETE
FROM key_value
WHERE key_value.namespace >= :low AND key_value.namespace <= :high

-- effects.values.REFRESH
UPDATE key_value
SET time_expires=(:now + key_value.ttl)
WHERE key_value.namespace = :namespace AND key_value.key = :key AND key_value.time_expires >
    :now

-- effects.values.EXPIRED
SELECT key_value.namespace, key_value.key, coalesce(length(key_value.value),
    length(key_value.content)) AS coalesce_1
FROM key_value
WHERE key_value.time_expires <= :now
ORDER BY key_value.time_expires
LIMIT :rows

-- effects.values.DROP_EXPIRED
DELETE
FROM key_value
WHERE (key_value.namespace, key_value.key) IN (SELECT anon_1.first, anon_1.second
FROM (SELECT value ->> 0 AS first, value ->> 1 AS second
FROM jsonb_array_elements(CAST(:addresses AS JSONB)) AS listed(value)) AS anon_1) AND
    key_value.time_expires <= :now
RETURNING key_value.revision

-- effects.values.DROP_EXPIRED_BELOW
DELETE
FROM key_value
WHERE key_value.namespace >= :low AND key_value.namespace <= :high AND key_value.time_expires <=
    :now
RETURNING key_value.revision

-- effects.values.NEXT_EXPIRY
SELECT min(key_value.time_expires) AS min_1
FROM key_value
WHERE key_value.time_expires IS NOT NULL

-- effects.versions.ROW
SELECT session.title, session.title_source, session.metadata, session.time_archived,
    session.share_url, session.revert, session.permission, session.time_compacting,
    session.scope, session.version, session.agent, session.provider_id, session.model_id,
    session.model_source, session.summary_additions, session.summary_deletions,
    session.summary_files, session.summary_diffs, session.data, blob.size, blob.encoding,
    blob.data AS data_1
FROM session
LEFT OUTER
JOIN blob ON blob.family = :family_of_sid AND blob.hash = session.data_blob
WHERE session.family = :family_of_sid AND session.id = :sid

-- effects.versions.LABELS
SELECT label.label, message.id
FROM label
JOIN message ON message.family = :family_of_sid AND message.session_id = label.session_id AND
    message.seq = label.seq
WHERE label.family = :family_of_sid AND label.session_id = :sid

-- effects.versions.TODOS
SELECT todo.content, todo.status, todo.priority, todo.id, todo.time_created, todo.time_updated
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid
ORDER BY todo.position

-- effects.versions.DIFFS
SELECT message.id, file_diff.path, file_diff.patch, file_diff.before_blob, file_diff.after_blob,
    file_diff.additions, file_diff.deletions
FROM file_diff
LEFT OUTER
JOIN message ON message.family = :family_of_sid AND message.session_id = file_diff.session_id
    AND message.seq = file_diff.seq
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- effects.versions.ID
SELECT message.id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- effects.versions.BASE
SELECT merge_base.fields
FROM merge_base
WHERE merge_base.family = :family_of_sid AND merge_base.session_id = :sid

-- importing.beside.history.KNOWN
SELECT prompt.id, prompt.session_id
FROM prompt
WHERE prompt.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1))

-- importing.beside.history.SESSIONS
SELECT session.id, session.source, session.source_id, session.time_deleted
FROM session
WHERE session.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:own AS JSONB)) AS listed(value)) AS anon_1)) OR
    session.source = :source AND session.source_id IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_2)

-- importing.beside.history.BURIED
SELECT tombstone.source_id
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1)
UNION ALL SELECT deletion.session_id
FROM deletion
WHERE deletion.session_id IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:own AS JSONB)) AS listed(value)) AS anon_2)

-- importing.beside.history.IN_SESSION
SELECT prompt.id, prompt.text, prompt.time_created
FROM prompt
WHERE prompt.session_id = :sid

-- importing.beside.history.AT_TIME
SELECT prompt.id, prompt.text, prompt.time_created
FROM prompt
WHERE prompt.time_created BETWEEN :since AND :until AND prompt.source = :source

-- importing.beside.history.REMOVE
DELETE
FROM prompt
WHERE prompt.id = :pid

-- importing.beside.prompts.KNOWN
SELECT prompt.id, prompt.text, prompt.session_id
FROM prompt
WHERE prompt.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1))

-- importing.beside.prompts.REMOVE
DELETE
FROM prompt
WHERE prompt.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1)) AND
    prompt.session_id = :sid

-- importing.beside.prompts.OF_SESSION
SELECT prompt.id, prompt.text, prompt.time_created
FROM prompt
WHERE prompt.session_id = :sid AND prompt.source = :source

-- importing.beside.prompts.COPIES
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:places AS JSONB)) AS listed(value)) AS anon_1) AND
    message.inherited = 1

-- importing.beside.values.MERGE
INSERT INTO key_value (namespace, key, revision, ttl, time_created, time_updated, time_expires,
    value, content)
VALUES (:namespace, :key, (coalesce((SELECT CAST(meta.value AS BIGINT) AS value
FROM meta
WHERE meta.key = 'value_revision'), 0) + 1), :ttl, :time_created, :time_updated, :time_expires,
    :value, :content) ON CONFLICT (namespace, key) DO UPDATE
SET revision = (key_value.revision + 1), ttl = :ttl, time_created = :time_created, time_updated
    = :time_updated, time_expires = :time_expires, value = :value, content = :content
WHERE key_value.time_updated < :time_updated OR key_value.time_expires <= :now

-- importing.known_files.IN_FOLDER
SELECT import_file.name, import_file.stamp, import_file.facts
FROM import_file
WHERE import_file.folder = :folder

-- importing.known_files.FORGET
DELETE
FROM import_file
WHERE import_file.folder = :folder AND import_file.name = :name

-- importing.lookup.HERE
SELECT session.id, session.source = :source AND session.source_id = :source_id AND
    session.namespace = :namespace AS anon_1, session.time_detached, session.time_imported,
    session.time_deleted, session.time_importing, session.time_updated, session.message_count
FROM session
WHERE session.id = :sid OR session.source = :source AND session.source_id = :source_id AND
    session.namespace = :namespace
ORDER BY session.id != :sid

-- importing.lookup.NOTED
SELECT EXISTS (SELECT *
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id = :buried_as AND tombstone.namespace =
    :buried_in) AS anon_1, CASE WHEN (:own::TEXT IS NULL OR (EXISTS (SELECT *
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id = :buried_as AND tombstone.namespace =
    :buried_in))) THEN false ELSE EXISTS (SELECT *
FROM deletion
WHERE deletion.session_id = :own) END AS anon_2, import_ledger.digest, import_ledger."offset",
    import_ledger.problems
FROM (SELECT 1 AS one) AS anon_3
LEFT OUTER
JOIN import_ledger ON import_ledger.source = :source AND import_ledger.path = :path

-- importing.lookup.NAMESPACES
SELECT import_ledger.namespace, 1
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.path = :path
UNION ALL SELECT session.namespace, 0
FROM session
WHERE session.source = :source AND session.source_id = :source_id AND session.namespace != ''
UNION ALL SELECT tombstone.namespace, 0
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id = :source_id AND tombstone.namespace !=
    ''

-- importing.policies.derived.IS_TAKEN
SELECT session.id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.FREE_SOURCE
UPDATE session
SET source_id=NULL, time_imported=NULL, namespace=''
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.STORED
SELECT session.title, session.title_source, session.version, session.agent, session.provider_id,
    session.model_id, session.model_source, session.summary_additions,
    session.summary_deletions, session.summary_files, session.summary_diffs, session.share_url,
    session.revert, session.permission, session.metadata, session.time_created,
    session.time_compacting, session.time_archived, session.data, session.data_blob
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.MERGE
UPDATE session
SET title=:title, title_source=:title_source, version=:version, agent=:agent,
    provider_id=:provider_id, model_id=:model_id, model_source=:model_source,
    summary_additions=:summary_additions, summary_deletions=:summary_deletions,
    summary_files=:summary_files, summary_diffs=:summary_diffs, share_url=:share_url,
    revert=:revert, permission=:permission, metadata=:metadata, time_created=:time_created,
    time_compacting=:time_compacting, time_archived=:time_archived, data=:data,
    data_blob=:data_blob
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.RENAME_COPIES
UPDATE message
SET usage_key=:usage_key, usage_name=nullif(:usage_name, coalesce(nullif(message.response_id,
    ''), message.id))
WHERE message.usage_key = :old AND message.id = :mid AND message.seq = :at AND message.inherited
    = 1

-- importing.policies.derived.IMPORTED
SELECT import_ledger.time_imported
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.path = :path

-- importing.policies.derived.FACTS
SELECT session.parent_id, session.leaf_seq, session.time_updated, session.time_importing,
    session.parent_seq, session.call_id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.CLOSE
UPDATE session
SET parent_seq=:parent_seq, call_id=:call_id, leaf_seq=:leaf_seq, time_updated=:time_updated,
    time_importing=:time_importing
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.derived.LAST_TIME
SELECT max(message.time_created) AS max_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- importing.policies.fields.STORED
SELECT session.title, session.title_source, session.time_archived, session.version,
    session.agent, session.provider_id, session.model_id, session.model_source,
    session.summary_additions, session.summary_deletions, session.summary_files,
    session.summary_diffs, session.share_url, session.revert, session.permission,
    session.time_compacting, session.scope, session.metadata, session.data, session.data_blob
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.fields.MERGE
UPDATE session
SET title=:title, title_source=:title_source, version=:version, agent=:agent,
    provider_id=:provider_id, model_id=:model_id, model_source=:model_source,
    summary_additions=:summary_additions, summary_deletions=:summary_deletions,
    summary_files=:summary_files, summary_diffs=:summary_diffs, share_url=:share_url,
    revert=:revert, permission=:permission, metadata=:metadata,
    time_compacting=:time_compacting, time_archived=:time_archived, data=:data,
    data_blob=:data_blob, scope=:scope
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.fields.DROP_LABEL
DELETE
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :name

-- importing.policies.recorded.IS_HERE
SELECT session.id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid AND session.time_deleted IS NULL

-- importing.policies.recorded.BEFORE
SELECT session.revision, session.time_importing
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.recorded.FORKED
SELECT session.id
FROM session
WHERE session.family = :family_of_root AND session.root_id = :root AND session.time_deleted IS
    NULL AND session.relation = 'fork'
LIMIT 1

-- importing.policies.recorded.LINKS
SELECT message.seq, message.parent_seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- importing.policies.recorded.COUNT
SELECT count(*) AS count_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- importing.policies.recorded.RELINK
UPDATE message
SET parent_seq=:parent_seq
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.policies.recorded.LIST
UPDATE session
SET time_importing=:time_importing
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.policies.recorded.PROMPT_OF
SELECT prompt.session_id
FROM prompt
WHERE prompt.id = :pid

-- importing.policies.recorded.OWN_PROMPT
UPDATE prompt
SET session_id=:session_id
WHERE prompt.id = :pid

-- importing.policies.returned.OUTLINES
SELECT message.id, message.seq, message.time_created, message.inherited, count(part.idx) AS
    count_1
FROM message
LEFT OUTER
JOIN part ON part.family = :family_of_sid AND part.session_id = message.session_id AND part.seq
    = message.seq
WHERE message.family = :family_of_sid AND message.session_id = :sid
GROUP BY message.seq, message.id, message.time_created, message.inherited

-- importing.policies.returned.KNOWN
SELECT message.id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1)

-- importing.rows.family.FAMILY
SELECT session.parent_id, session.root_id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.CHILDREN
SELECT session.id
FROM session
WHERE session.family = :family_of_sid AND session.parent_id = :sid

-- importing.rows.family.BY_SOURCE
SELECT child.id, parent.id AS id_1, child.parent_source_id, child.relation, child.source,
    child.source_id, child.time_imported IS NOT NULL AND child.time_detached IS NULL AS anon_1,
    child.namespace
FROM session AS parent
JOIN session AS child ON child.source = parent.source AND child.parent_source_id =
    parent.source_id
WHERE parent.family = :family_of_sid AND parent.id = :sid AND child.parent_source_id IS NOT NULL
    AND child.parent_id IS NULL AND child.time_deleted IS NULL AND parent.time_deleted IS NULL

-- importing.rows.family.BY_ID
SELECT child.id, parent.id AS id_1, child.parent_source_id, child.relation, child.source,
    child.source_id, child.time_imported IS NOT NULL AND child.time_detached IS NULL AS anon_1,
    child.namespace
FROM session AS child
JOIN session AS parent ON parent.id = child.parent_source_id
WHERE parent.id = ANY (ARRAY(SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_2)) AND
    child.parent_source_id IS NOT NULL AND child.parent_id IS NULL AND child.time_deleted IS
    NULL AND parent.time_deleted IS NULL
ORDER BY child.time_created, child.id DESC

-- importing.rows.family.ORPHAN
SELECT child.id, parent.id AS id_1, child.parent_source_id, child.relation, child.source,
    child.source_id, child.time_imported IS NOT NULL AND child.time_detached IS NULL AS anon_1,
    child.namespace
FROM session AS child
JOIN session AS parent ON parent.family = :family_of_parent AND parent.id = :parent
WHERE child.family = :family_of_sid AND child.id = :sid AND child.parent_id IS NULL

-- importing.rows.family.LINK
UPDATE session
SET parent_id=:parent_id, relation=:relation, parent_source_id=:parent_source_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.ROOT
UPDATE session
SET root_id=:root_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.ROWS
SELECT message.seq, message.id, message.time_created, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid

-- importing.rows.family.FAMILY_FACTS
SELECT child.parent_id, child.relation, child.parent_source_id, parent.source_id IS NOT NULL AND
    parent.source = child.source AS anon_1
FROM session AS child
LEFT OUTER
JOIN session AS parent ON parent.family = :family_of_sid AND parent.id = child.parent_id
WHERE child.family = :family_of_sid AND child.id = :sid

-- importing.rows.family.NAME_PARENT
UPDATE session
SET parent_source_id=:parent_source_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.LEAVE
UPDATE session
SET parent_id=:parent_id, relation=:relation, parent_seq=:parent_seq,
    parent_source_id=:parent_source_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.BRANCHED
UPDATE session
SET parent_seq=(SELECT theirs.seq
FROM message AS mine
JOIN message AS theirs ON theirs.family = :family_of_sid AND theirs.id = mine.id
WHERE mine.family = :family_of_sid AND mine.session_id = session.id AND mine.seq =
    session.parent_seq AND theirs.session_id = session.parent_id)
WHERE session.family = :family_of_sid AND session.id = :sid AND session.relation = 'fork' AND
    (EXISTS (SELECT theirs.seq
FROM message AS mine
JOIN message AS theirs ON theirs.family = :family_of_sid AND theirs.id = mine.id
WHERE mine.family = :family_of_sid AND mine.session_id = session.id AND mine.seq =
    session.parent_seq AND theirs.session_id = session.parent_id))

-- importing.rows.family.LAST_OF_EQUAL_KEY
SELECT max(theirs.seq) AS max_1
FROM message AS mine
JOIN message AS theirs ON theirs.family = :family_of_above AND theirs.usage_key = mine.usage_key
    AND (theirs.usage_name IS NOT NULL OR theirs.response_id IS NOT NULL)
WHERE mine.family = :family_of_sid AND mine.session_id = :sid AND theirs.session_id = :above

-- importing.rows.family.LAST_OF_EQUAL_NAME
SELECT max(theirs.seq) AS max_1
FROM message AS mine
JOIN message AS theirs ON theirs.family = :family_of_above AND theirs.usage_key = mine.usage_key
    AND theirs.id = coalesce(mine.usage_name, nullif(mine.response_id, ''), mine.id)
WHERE mine.family = :family_of_sid AND mine.session_id = :sid AND theirs.session_id = :above

-- importing.rows.family.LAST_OF_EQUAL_PLACE
SELECT max(theirs.seq) AS max_1
FROM message AS mine
JOIN message AS theirs ON theirs.family = :family_of_above AND theirs.seq = mine.seq AND
    theirs.id = mine.id
WHERE mine.family = :family_of_sid AND mine.session_id = :sid AND theirs.session_id = :above

-- importing.rows.family.LAST_OF_SHARED_KEY
SELECT theirs.seq
FROM message AS theirs
WHERE theirs.family = :family_of_above AND theirs.session_id = :above AND theirs.usage_key IN
    (SELECT mine.usage_key
FROM message AS mine
WHERE mine.family = :family_of_sid AND mine.session_id = :sid AND mine.usage_key IS NOT NULL)
ORDER BY theirs.seq DESC
LIMIT 1

-- importing.rows.family.STARTER
SELECT min(part.seq) AS min_1
FROM part
WHERE part.family = :family_of_above AND part.session_id = :above AND part.call_id = :call_id
    AND part.type = 'tool'

-- importing.rows.family.CALL
SELECT session.call_id
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.SET_CUT
UPDATE session
SET parent_seq=:parent_seq
WHERE session.family = :family_of_sid AND session.id = :sid AND session.parent_seq IS NULL

-- importing.rows.family.CUTS
SELECT session.id, session.parent_seq, session.call_id, session.source, session.source_id
FROM session
WHERE session.family = :family_of_sid AND session.parent_id = :sid AND session.parent_seq IS NOT
    NULL AND session.time_imported IS NOT NULL AND session.time_detached IS NULL

-- importing.rows.family.MOVE_CUT
UPDATE session
SET parent_seq=:parent_seq
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.family.COPIED
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.inherited = 0
    AND message.usage_key IS NULL AND (EXISTS (SELECT *
FROM message AS other
WHERE other.family = :family_of_parent AND other.session_id = :parent AND other.id = message.id
    AND other.time_created = message.time_created AND other.seq = message.seq))

-- importing.rows.family.NOTED
SELECT import_ledger.path
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger."offset" IS NOT NULL

-- importing.rows.family.READ_AGAIN
UPDATE import_ledger
SET "offset"=NULL
WHERE import_ledger.source = :source AND import_ledger.path = :path

-- importing.rows.lists.TODOS
SELECT todo.id, todo.content, todo.status, todo.priority
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid
ORDER BY todo.position

-- importing.rows.lists.CLEAR_TODOS
DELETE
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid

-- importing.rows.lists.DIFFS
SELECT file_diff.seq, file_diff.path, file_diff.before_blob, file_diff.after_blob,
    file_diff.patch, file_diff.additions, file_diff.deletions
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- importing.rows.lists.DIFF_BLOBS
SELECT file_diff.before_blob, file_diff.after_blob
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- importing.rows.lists.CLEAR_DIFFS
DELETE
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid

-- importing.rows.messages.MATCH
SELECT message.session_id, message.seq, message.id, message.parent_seq, message.turn_id,
    message.role, message.kind, message.agent, message.provider_id, message.model_id,
    message.response_id, message.usage_key, message.usage_name, message.cost,
    message.tokens_input, message.tokens_output, message.tokens_reasoning,
    message.tokens_cache_read, message.tokens_cache_write, message.finish, message.error,
    message.inherited, message.time_created, message.time_completed, message.data,
    message.data_blob
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :mid

-- importing.rows.messages.PARTS
SELECT part.session_id, part.seq, part.idx, part.id, part.type, part.tool, part.call_id,
    part.status, part.outcome, part.title, part.input, part.text, part.text_blob,
    part.input_blob, part.data, part.data_blob, part.inherited, part.indexed, part.time_created,
    part.time_updated, part.time_started, part.time_ended, part.synthetic, part.words
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at
ORDER BY part.idx

-- importing.rows.messages.REPLACE
UPDATE message
SET parent_seq=:parent_seq, turn_id=:turn_id, role=:role, kind=:kind, agent=:agent,
    provider_id=:provider_id, model_id=:model_id, response_id=:response_id,
    usage_key=:usage_key, usage_name=:usage_name, cost=:cost, tokens_input=:tokens_input,
    tokens_output=:tokens_output, tokens_reasoning=:tokens_reasoning,
    tokens_cache_read=:tokens_cache_read, tokens_cache_write=:tokens_cache_write,
    finish=:finish, error=:error, time_created=:time_created, time_completed=:time_completed,
    data=:data, data_blob=:data_blob
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.rows.messages.RELINK
UPDATE message
SET parent_seq=:parent_seq, turn_id=:turn_id
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.rows.messages.DROP_PARTS
DELETE
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq = :at

-- importing.rows.messages.SEQ
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :mid

-- importing.rows.messages.UNLABEL
DELETE
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :name AND
    label.seq = :at

-- importing.rows.messages.LABELLED
SELECT label.seq
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :name

-- importing.rows.messages.BEGINNINGS
SELECT session.root_id, message.seq, message.id, message.time_created, message.usage_key,
    coalesce(message.usage_name, nullif(message.response_id, ''), message.id) AS coalesce_1
FROM session
JOIN message ON message.family = session.family AND session.id = message.session_id
WHERE session.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1)) AND
    session.relation = 'fork' AND message.seq <= session.parent_seq AND message.inherited = 0
    AND (EXISTS (SELECT *
FROM message AS message_1
WHERE message_1.id = message.id AND message_1.session_id != message.session_id))

-- importing.rows.messages.SHARED_KEYS
SELECT message.usage_key
FROM message
WHERE message.usage_key IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:keys AS JSONB)) AS listed(value)) AS anon_1) AND
    (message.usage_name IS NOT NULL OR message.response_id IS NOT NULL) OR message.usage_key IN
    (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:keys AS JSONB)) AS listed(value)) AS anon_1) AND message.id
    IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_2)
GROUP BY message.usage_key
HAVING count(*) > 1

-- importing.rows.messages.OF_PARENT
SELECT message.usage_key, message.seq, message.id, message.time_created
FROM message
JOIN session ON session.family = :family_of_sid AND session.id = message.session_id
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq BETWEEN
    :least AND :most AND message.usage_key IS NOT NULL AND session.time_deleted IS NULL

-- importing.rows.messages.IDS_ELSEWHERE
SELECT anon_1.value
FROM (SELECT anon_2.value AS value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_2) AS anon_1
WHERE EXISTS (SELECT *
FROM message
WHERE message.id = anon_1.value AND message.session_id != :sid)

-- importing.rows.same_store.ENTRY
SELECT import_ledger.namespace
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.path = :path

-- importing.rows.same_store.NAMESPACES
SELECT session.namespace
FROM session
WHERE session.source = :source AND session.source_id = :name AND session.namespace != ''

-- importing.rows.same_store.PATHS
SELECT import_ledger.path
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.namespace = :namespace AND
    import_ledger.namespace != ''

-- importing.rows.session.PROJECT
SELECT project.id, project.name, project.permission, project.metadata, project.time_initialized,
    project.time_created
FROM session
JOIN project ON project.id = session.project_id
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.session.SET_PROJECT
UPDATE project
SET name=:name, permission=:permission, metadata=:metadata, time_initialized=:time_initialized,
    time_created=:time_created, time_updated=:time_updated
WHERE project.id = :pid

-- importing.rows.session.PLACE
SELECT session.directory
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.session.MOVE_PROMPTS
UPDATE prompt
SET directory=:directory, project_id=:project_id
WHERE prompt.session_id = :sid

-- importing.rows.session.FORMER
SELECT 1
FROM project_directory
WHERE project_directory.kind = 'former' AND (:at = project_directory.directory OR substr(:at, 1,
    length(project_directory.directory || '/')) = (project_directory.directory || '/'))
LIMIT 1

-- importing.rows.session.BY_SOURCE
SELECT session.id
FROM session
WHERE session.source = :source AND session.source_id = :source_id AND session.namespace =
    :namespace AND session.time_deleted IS NULL

-- importing.rows.session.UNBURY
DELETE
FROM tombstone
WHERE tombstone.source = :source AND tombstone.source_id = :source_id AND tombstone.namespace =
    :namespace

-- importing.rows.stored_parts.ANSWER
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq BETWEEN
    :first AND :last AND message.response_id = :response AND message.role = 'assistant'
LIMIT 1

-- importing.rows.sums.SEQ
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :mid

-- importing.rows.sums.EVENT
SELECT message.data, message.data_blob, message.cost, message.tokens_input,
    message.tokens_output, message.tokens_reasoning, message.tokens_cache_read,
    message.tokens_cache_write
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.rows.sums.OTHERS
SELECT sum(message.cost) AS sum_1, sum(message.tokens_input) AS sum_2,
    sum(message.tokens_output) AS sum_3, sum(message.tokens_reasoning) AS sum_4,
    sum(message.tokens_cache_read) AS sum_5, sum(message.tokens_cache_write) AS sum_6
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq != :at AND
    message.seq > :after AND message.inherited <= :copies

-- importing.rows.sums.COPIES
SELECT session_1.id, session_1.source_id
FROM session AS session_2
JOIN session AS session_1 ON session_1.family = :family_of_sid AND session_2.id =
    session_1.parent_id
WHERE session_2.family = :family_of_sid AND session_2.id = :sid AND session_1.relation = 'fork'
    AND session_1.source = session_2.source AND session_1.time_created = session_2.time_created

-- importing.rows.sums.ORIGINAL
SELECT session_1.id, session_1.source_id
FROM session AS session_2
JOIN session AS session_1 ON session_1.family = :family_of_sid AND session_1.id =
    session_2.parent_id
WHERE session_2.family = :family_of_sid AND session_2.id = :sid AND session_2.relation = 'fork'
    AND session_2.time_created = session_1.time_created

-- importing.rows.sums.RELATED
SELECT session.parent_id, session.relation
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid

-- importing.rows.sums.SUBAGENTS
SELECT session.id
FROM session
WHERE session.parent_id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1) AND
    session.relation = 'subagent' AND session.time_deleted IS NULL

-- importing.rows.sums.TOTALS
SELECT message.seq, message.time_created, message.cost, message.data, message.data_blob
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.kind = 'usage'
    AND message.tokens_input IS NULL AND message.tokens_output IS NULL AND
    message.tokens_reasoning IS NULL AND message.tokens_cache_read IS NULL AND
    message.tokens_cache_write IS NULL
ORDER BY message.time_created, message.seq

-- importing.rows.sums.COSTS
SELECT message.time_created, message.cost
FROM message
WHERE message.session_id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1) AND
    message.cost IS NOT NULL AND message.time_created >= :since AND NOT (message.kind = 'usage'
    AND message.tokens_input IS NULL AND message.tokens_output IS NULL AND
    message.tokens_reasoning IS NULL AND message.tokens_cache_read IS NULL AND
    message.tokens_cache_write IS NULL)

-- importing.rows.sums.SET_COST
UPDATE message
SET cost=:cost
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.rows.sums.SET
UPDATE message
SET cost=:cost, tokens_input=:tokens_input, tokens_output=:tokens_output,
    tokens_reasoning=:tokens_reasoning, tokens_cache_read=:tokens_cache_read,
    tokens_cache_write=:tokens_cache_write
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :at

-- importing.snapshot.FAMILIES
SELECT session.id, session.parent_id
FROM session
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL
ORDER BY session.time_created, session.id

-- importing.snapshot.IDS
SELECT message.seq, message.id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq

-- importing.unchanged.ENTRIES
SELECT import_ledger.path, import_ledger.digest, import_ledger.namespace
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.path IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:paths AS JSONB)) AS listed(value)) AS anon_1) AND
    import_ledger."offset" IS NOT NULL AND import_ledger.problems IS NULL

-- importing.unchanged.FOLLOWING
SELECT session.source_id, session.namespace, session.id, session.message_count
FROM session
WHERE session.source = :source AND session.source_id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1) AND
    session.time_imported IS NOT NULL AND session.time_detached IS NULL AND session.time_deleted
    IS NULL AND session.time_importing IS NULL AND NOT (EXISTS (SELECT *
FROM tombstone
WHERE tombstone.source = session.source AND tombstone.source_id = session.source_id AND
    tombstone.namespace = session.namespace))

-- importing.unchanged.HISTORY
SELECT import_ledger.digest, import_ledger.problems IS NULL AND NOT (EXISTS (SELECT *
FROM import_ledger AS other
WHERE other.source = import_ledger.source AND other.time_imported >= import_ledger.time_imported
    AND (other.path LIKE '%' || '#' || '%'))) AS anon_1
FROM import_ledger
WHERE import_ledger.source = :source AND import_ledger.path = :path

-- repository.cuts.CALLS_AND_RESULTS
SELECT part.seq, part.idx, part.type, part.call_id
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IS NOT NULL
ORDER BY part.seq

-- repository.cuts.TOTALS
SELECT count(*), count(CASE WHEN message.role = 'user' AND EXISTS (SELECT 1
FROM part AS t
WHERE t.family = :family_of_sid AND t.session_id = message.session_id AND t.seq = message.seq
    AND t.synthetic = 0 AND t.type IN ('text', 'file', 'agent')) AND coalesce(message.kind, '')
    NOT IN ('compaction', 'branch_summary') THEN 1 END), CASE WHEN abs(sum(cost) FILTER (WHERE
    inherited = 0)) < 1e300 THEN sum(cost) FILTER (WHERE inherited = 0) END, CASE WHEN
    abs(sum(cost) FILTER (WHERE inherited = 1)) < 1e300 THEN sum(cost) FILTER (WHERE inherited =
    1) END, CAST(sum(tokens_input * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_output * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_reasoning * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_cache_read * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    CAST(sum(tokens_cache_write * 1.0) FILTER (WHERE inherited = 0) AS BIGINT),
    max(coalesce(time_completed, time_created))
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- repository.decode.MORE_OF_MESSAGES
SELECT message.seq, message.kind, message.agent, message.provider_id, message.response_id,
    message.usage_name, message.tokens_reasoning, message.tokens_cache_read,
    message.tokens_cache_write, message.inherited, message.error, message.data,
    message.data_blob
FROM message
WHERE message.family = :family_of_sid AND (message.kind IS NOT NULL OR message.agent IS NOT NULL
    OR message.provider_id IS NOT NULL OR message.response_id IS NOT NULL OR message.usage_name
    IS NOT NULL OR message.tokens_reasoning IS NOT NULL OR message.tokens_cache_read IS NOT NULL
    OR message.tokens_cache_write IS NOT NULL OR message.error IS NOT NULL OR message.data IS
    NOT NULL OR message.data_blob IS NOT NULL) AND message.session_id = :sid AND message.seq
    BETWEEN :low AND :high

-- repository.decode.MORE_OF_SOME_MESSAGES
SELECT message.seq, message.kind, message.agent, message.provider_id, message.response_id,
    message.usage_name, message.tokens_reasoning, message.tokens_cache_read,
    message.tokens_cache_write, message.inherited, message.error, message.data,
    message.data_blob
FROM message
WHERE message.family = :family_of_sid AND (message.kind IS NOT NULL OR message.agent IS NOT NULL
    OR message.provider_id IS NOT NULL OR message.response_id IS NOT NULL OR message.usage_name
    IS NOT NULL OR message.tokens_reasoning IS NOT NULL OR message.tokens_cache_read IS NOT NULL
    OR message.tokens_cache_write IS NOT NULL OR message.error IS NOT NULL OR message.data IS
    NOT NULL OR message.data_blob IS NOT NULL) AND message.session_id = :sid AND message.seq IN
    (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- repository.decode.MORE_OF_PARTS
SELECT part.seq, part.idx, part.outcome, part.title, part.inherited, part.time_started,
    part.time_ended, part.synthetic, part.data, part.input_blob, part.text_blob, part.data_blob
FROM part
WHERE part.family = :family_of_sid AND (part.outcome IS NOT NULL OR part.title IS NOT NULL OR
    part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR part.data IS NOT NULL OR
    part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR part.data_blob IS NOT NULL OR
    part.synthetic = 1) AND part.session_id = :sid AND part.seq BETWEEN :low AND :high

-- repository.decode.MORE_OF_SOME_PARTS
SELECT part.seq, part.idx, part.outcome, part.title, part.inherited, part.time_started,
    part.time_ended, part.synthetic, part.data, part.input_blob, part.text_blob, part.data_blob
FROM part
WHERE part.family = :family_of_sid AND (part.outcome IS NOT NULL OR part.title IS NOT NULL OR
    part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR part.data IS NOT NULL OR
    part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR part.data_blob IS NOT NULL OR
    part.synthetic = 1) AND part.session_id = :sid AND part.seq IN (SELECT anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- repository.decode.BLOBS
SELECT /* of sid */ blob.hash, blob.size, blob.encoding, blob.data
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1))

-- repository.extensions.VERSION
SELECT extension.name, extension.version
FROM extension
WHERE extension.name = :name

-- repository.extensions.VERSIONS
SELECT extension.name, extension.version
FROM extension
WHERE extension.name = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1))

-- repository.family.FAMILY
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = :family_of_root AND session_blob.hash =
    session.data_blob
WHERE session.family = :family_of_root AND session.root_id = :root AND session.time_deleted IS
    NULL AND session.time_importing IS NULL
ORDER BY session.time_created, session.id DESC

-- repository.family.CHILDREN_SHOWN
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = :family_of_sid AND session_blob.hash =
    session.data_blob
WHERE session.family = :family_of_sid AND session.parent_id = :sid AND session.time_deleted IS
    NULL AND session.time_importing IS NULL
ORDER BY session.time_created, session.id DESC

-- repository.family.LABELS
SELECT label.session_id, label.seq, label.label
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid
ORDER BY label.seq, label.label

-- repository.family.NODES
SELECT message.seq, message.parent_seq, message.id, message.role, message.kind, (SELECT
    substr(coalesce(part.text, CAST(blob.data AS TEXT), part.tool), 1, 80) AS substr_1
FROM part
LEFT OUTER
JOIN blob ON blob.family = :family_of_sid AND blob.hash = part.text_blob
WHERE part.family = :family_of_sid AND part.session_id = message.session_id AND part.seq =
    message.seq AND part.type IN ('text', 'tool', 'reasoning')
ORDER BY part.type != 'text', part.idx
LIMIT 1) AS anon_1
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq

-- repository.family.CHILDREN
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = :family_of_sid AND session_blob.hash =
    session.data_blob
WHERE session.family = :family_of_sid AND session.parent_id = :sid AND session.time_deleted IS
    NULL
ORDER BY session.id

-- repository.hits.SESSIONS_BY_ID
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1))

-- repository.lists.PROJECTS
SELECT project.id, project.worktree, project.vcs, project.remote, project.root_commit,
    project.name, project.metadata, project.time_created, project.time_updated,
    project.permission, project.time_initialized
FROM project
ORDER BY project.worktree, project.id

-- repository.lists.TODOS
SELECT todo.content, todo.status, todo.priority, todo.id, todo.time_created, todo.time_updated
FROM todo
WHERE todo.family = :family_of_sid AND todo.session_id = :sid
ORDER BY todo.position

-- repository.lists.DIFFS
SELECT file_diff.path, file_diff.seq, file_diff.patch, file_diff.additions, file_diff.deletions,
    file_diff.before_blob, file_diff.after_blob
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid
ORDER BY file_diff.seq, file_diff.path

-- repository.lists.BASE
SELECT merge_base.fields
FROM merge_base
WHERE merge_base.family = :family_of_sid AND merge_base.session_id = :sid

-- repository.lists.PROMPTS
SELECT id, text, directory, project_id, session_id, source, time_created
FROM prompt
WHERE session_id = :sid
ORDER BY time_created, id

-- repository.lists.HALF_IMPORTED
SELECT id
FROM session
WHERE time_importing IS NOT NULL AND time_deleted IS NULL
ORDER BY id

-- repository.lists.ABANDONED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND (session.time_imported
    IS NULL OR session.time_detached IS NOT NULL) AND ((EXISTS (SELECT *
FROM message
WHERE message.family = session.family AND message.session_id = session.id AND
    message.time_completed IS NULL)) OR (EXISTS (SELECT *
FROM part
WHERE part.family = session.family AND part.session_id = session.id AND part.status IN
    ('pending', 'running')))) AND NOT (EXISTS (SELECT *
FROM lease
WHERE lease.family = session.family AND lease.session_id = session.id AND time_expires > :now
    AND time_expires - :now <= 2 * ttl))
ORDER BY session.id

-- repository.lists.OPEN_MESSAGES
SELECT message.id
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.time_completed
    IS NULL
ORDER BY message.seq

-- repository.lists.OPEN_CALLS
SELECT part.id
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.status IN ('pending',
    'running')
ORDER BY part.seq, part.idx

-- repository.references.BY_ID
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = :family_of_ref AND session_blob.hash =
    session.data_blob
WHERE session.family = :family_of_ref AND session.id = :ref AND session.time_deleted IS NULL

-- repository.references.EXTENT
SELECT session.id, session.leaf_seq, session.last_seq, session.message_count
FROM session
WHERE session.family = :family_of_ref AND session.id = :ref AND session.time_deleted IS NULL

-- repository.references.BY_SOURCE_ID
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.source_id = :ref AND session.time_deleted IS NULL

-- repository.references.BY_SLUG
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.slug = :ref AND session.time_deleted IS NULL

-- repository.references.BY_PREFIX
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND session.id >= :ref AND
    session.id < :stop
LIMIT 10

-- repository.references.BY_TAIL
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND lower(session.id) LIKE
    :pattern ESCAPE '\'
LIMIT 10

-- repository.references.BY_SOURCE_PREFIX
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND
    lower(session.source_id) LIKE :pattern ESCAPE '\'
LIMIT 10

-- repository.references.BY_TITLE
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND session.title = :ref
LIMIT 10

-- repository.references.ABOVE_SUBAGENTS
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.time_deleted IS NULL AND session.time_importing IS NULL AND
    lower(session.source_id) LIKE :pattern ESCAPE '\' AND lower(session.source_id) NOT LIKE
    :below ESCAPE '\'
LIMIT 10

-- repository.references.REMOVED
SELECT tombstone.source_id
FROM tombstone
WHERE tombstone.source_id = :ref
LIMIT 1

-- repository.references.IN_ANY
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob,
    terminal.id AS id_1, terminal.time_updated AS time_updated_1
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
JOIN terminal ON terminal.session_id = session.id
WHERE terminal.directory = :directory AND session.time_deleted IS NULL AND
    session.time_importing IS NULL
ORDER BY terminal.time_updated DESC
LIMIT 1

-- repository.references.IN_TERMINAL
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob,
    terminal.id AS id_1, terminal.time_updated AS time_updated_1
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
JOIN terminal ON terminal.session_id = session.id
WHERE terminal.directory = :directory AND session.time_deleted IS NULL AND
    session.time_importing IS NULL AND terminal.id IN (SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:names AS JSONB)) AS listed(value)) AS anon_1)
ORDER BY terminal.time_updated DESC

-- repository.results.CALLS
SELECT part.seq, part.idx, part.id, part.type, part.tool, part.call_id, part.status, part.input,
    part.text, part.time_created, part.time_updated, CASE WHEN (part.outcome IS NOT NULL OR
    part.title IS NOT NULL OR part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR
    part.data IS NOT NULL OR part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR
    part.data_blob IS NOT NULL OR part.synthetic = 1) THEN 2 WHEN (part.inherited = 1) THEN 1
    ELSE 0 END AS form
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:calls AS JSONB)) AS listed(value)) AS anon_1) AND part.type
    = 'tool'

-- repository.results.ANY_RESULT
SELECT part.seq
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool-result' AND
    (part.text IS NOT NULL OR part.text_blob IS NOT NULL)
LIMIT 1

-- repository.results.RECORDS
SELECT part.call_id
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:calls AS JSONB)) AS listed(value)) AS anon_1) AND part.type
    = 'tool-result'

-- repository.results.RESULTS
SELECT part.seq, part.idx, part.id, part.type, part.tool, part.call_id, part.status, part.input,
    part.text, part.time_created, part.time_updated, CASE WHEN (part.outcome IS NOT NULL OR
    part.title IS NOT NULL OR part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR
    part.data IS NOT NULL OR part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR
    part.data_blob IS NOT NULL OR part.synthetic = 1) THEN 2 WHEN (part.inherited = 1) THEN 1
    ELSE 0 END AS form
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.call_id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:calls AS JSONB)) AS listed(value)) AS anon_1) AND part.type
    = 'tool-result' AND (part.text IS NOT NULL OR part.text_blob IS NOT NULL)

-- repository.results.NEAREST
WITH RECURSIVE path(seq) AS (SELECT :leaf::BIGINT AS seq
UNION SELECT message.parent_seq AS parent_seq
FROM path
JOIN message ON message.family = :family_of_sid AND message.seq = path.seq
WHERE message.session_id = :sid AND message.parent_seq >= :least) SELECT path.seq
FROM path
WHERE EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.type = 'tool' AND
    coalesce(part.call_id, '') = :call AND part.seq = path.seq)
LIMIT 1

-- repository.selection.DOWN
SELECT message.seq, message.id, message.parent_seq, message.turn_id, message.role,
    message.model_id, message.usage_key, message.cost, message.tokens_input,
    message.tokens_output, message.finish, message.time_created, message.time_completed, CASE
    WHEN (message.kind IS NOT NULL OR message.agent IS NOT NULL OR message.provider_id IS NOT
    NULL OR message.response_id IS NOT NULL OR message.usage_name IS NOT NULL OR
    message.tokens_reasoning IS NOT NULL OR message.tokens_cache_read IS NOT NULL OR
    message.tokens_cache_write IS NOT NULL OR message.error IS NOT NULL OR message.data IS NOT
    NULL OR message.data_blob IS NOT NULL) THEN 2 WHEN (message.inherited = 1) THEN 1 ELSE 0 END
    AS form
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq <= :top AND
    message.seq > :end
ORDER BY message.seq DESC
LIMIT :rows

-- repository.selection.LINKS_DOWN
SELECT message.seq, message.parent_seq, (:roles::TEXT IS NULL OR message.role IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:roles AS JSONB)) AS listed(value)) AS anon_1)) AND
    (:kinds::TEXT IS NULL OR message.kind IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:kinds AS JSONB)) AS listed(value)) AS anon_2)) AND
    (:since::BIGINT IS NULL OR message.time_created >= :since) AS passes
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq <= :top AND
    message.seq > :end
ORDER BY message.seq DESC
LIMIT :rows

-- repository.selection.PASSING
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1) AND
    (:roles::TEXT IS NULL OR message.role IN (SELECT anon_2.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:roles AS JSONB)) AS listed(value)) AS anon_2)) AND
    (:kinds::TEXT IS NULL OR message.kind IN (SELECT anon_3.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:kinds AS JSONB)) AS listed(value)) AS anon_3)) AND
    (:since::BIGINT IS NULL OR message.time_created >= :since)

-- repository.selection.SEQS_OF_IDS
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1)

-- repository.sessions.ALL
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob

-- repository.sessions.USED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob

-- repository.sessions.CREATED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob

-- repository.sessions.PROJECT_USED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob

-- repository.sessions.PROJECT_CREATED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob

-- repository.sessions.SCOPE_USED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.scope = :scope

-- repository.sessions.SCOPE_CREATED
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.scope = :scope

-- repository.sessions.BY_IDS
SELECT session.id, session.project_id, session.parent_id, session.relation, session.parent_seq,
    session.call_id, session.parent_source_id, session.root_id, session.slug, session.title,
    session.title_source, session.version, session.source, session.source_id, session.namespace,
    session.scope, session.agent, session.provider_id, session.model_id, session.model_source,
    session.leaf_seq, session.last_seq, session.revision, session.message_count,
    session.prompt_count, session.cost, session.cost_inherited, session.tokens_input,
    session.tokens_output, session.tokens_reasoning, session.tokens_cache_read,
    session.tokens_cache_write, session.summary_additions, session.summary_deletions,
    session.summary_files, session.share_url, session.time_created, session.time_updated,
    session.time_compacting, session.time_archived, session.time_imported,
    session.time_detached, session.directory, session.summary_diffs, session.revert,
    session.permission, session.metadata, session.data, session_blob.size AS large_size,
    session_blob.encoding AS large_encoding, session_blob.data AS large_data, session.data_blob
FROM session
LEFT OUTER
JOIN blob AS session_blob ON session_blob.family = session.family AND session_blob.hash =
    session.data_blob
WHERE session.id = ANY (ARRAY(SELECT anon_1.value
FROM (SELECT CAST(value AS TEXT) AS value
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS listed(value)) AS anon_1))

-- repository.sessions.PROJECT
SELECT project_directory.project_id
FROM project_directory
WHERE project_directory.directory = :directory
ORDER BY project_directory.kind = 'former', project_directory.time_created DESC,
    project_directory.project_id
LIMIT 1

-- repository.transcript.LINKS
SELECT message.seq, message.parent_seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq

-- repository.transcript.MESSAGES
SELECT message.seq, message.id, message.parent_seq, message.turn_id, message.role,
    message.model_id, message.usage_key, message.cost, message.tokens_input,
    message.tokens_output, message.finish, message.time_created, message.time_completed, CASE
    WHEN (message.kind IS NOT NULL OR message.agent IS NOT NULL OR message.provider_id IS NOT
    NULL OR message.response_id IS NOT NULL OR message.usage_name IS NOT NULL OR
    message.tokens_reasoning IS NOT NULL OR message.tokens_cache_read IS NOT NULL OR
    message.tokens_cache_write IS NOT NULL OR message.error IS NOT NULL OR message.data IS NOT
    NULL OR message.data_blob IS NOT NULL) THEN 2 WHEN (message.inherited = 1) THEN 1 ELSE 0 END
    AS form
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq BETWEEN :low
    AND :high
ORDER BY message.seq

-- repository.transcript.SOME_MESSAGES
SELECT message.seq, message.id, message.parent_seq, message.turn_id, message.role,
    message.model_id, message.usage_key, message.cost, message.tokens_input,
    message.tokens_output, message.finish, message.time_created, message.time_completed, CASE
    WHEN (message.kind IS NOT NULL OR message.agent IS NOT NULL OR message.provider_id IS NOT
    NULL OR message.response_id IS NOT NULL OR message.usage_name IS NOT NULL OR
    message.tokens_reasoning IS NOT NULL OR message.tokens_cache_read IS NOT NULL OR
    message.tokens_cache_write IS NOT NULL OR message.error IS NOT NULL OR message.data IS NOT
    NULL OR message.data_blob IS NOT NULL) THEN 2 WHEN (message.inherited = 1) THEN 1 ELSE 0 END
    AS form
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)

-- repository.transcript.PARTS
SELECT part.seq, part.idx, part.id, part.type, part.tool, part.call_id, part.status, part.input,
    part.text, part.time_created, part.time_updated, CASE WHEN (part.outcome IS NOT NULL OR
    part.title IS NOT NULL OR part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR
    part.data IS NOT NULL OR part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR
    part.data_blob IS NOT NULL OR part.synthetic = 1) THEN 2 WHEN (part.inherited = 1) THEN 1
    ELSE 0 END AS form
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq BETWEEN :low AND
    :high
ORDER BY part.seq, part.idx

-- repository.transcript.SOME_PARTS
SELECT part.seq, part.idx, part.id, part.type, part.tool, part.call_id, part.status, part.input,
    part.text, part.time_created, part.time_updated, CASE WHEN (part.outcome IS NOT NULL OR
    part.title IS NOT NULL OR part.time_started IS NOT NULL OR part.time_ended IS NOT NULL OR
    part.data IS NOT NULL OR part.input_blob IS NOT NULL OR part.text_blob IS NOT NULL OR
    part.data_blob IS NOT NULL OR part.synthetic = 1) THEN 2 WHEN (part.inherited = 1) THEN 1
    ELSE 0 END AS form
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.seq IN (SELECT
    anon_1.value
FROM (SELECT CAST(value AS BIGINT) AS value
FROM jsonb_array_elements_text(CAST(:seqs AS JSONB)) AS listed(value)) AS anon_1)
ORDER BY part.seq, part.idx

-- repository.transcript.SEQ_OF_ID
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.id = :key

-- repository.transcript.PLACE_OF_ID
SELECT message.session_id, message.seq
FROM message
JOIN session ON session.family = message.family AND session.id = message.session_id
WHERE message.id = :key AND (:source::TEXT IS NULL OR session.source = :source) AND
    session.time_deleted IS NULL AND session.time_importing IS NULL
ORDER BY message.inherited, session.time_created, session.id DESC
LIMIT 1

-- repository.transcript.SEQ_OF_LABEL
SELECT label.seq
FROM label
WHERE label.family = :family_of_sid AND label.session_id = :sid AND label.label = :key

-- repository.transcript.SEQ_IS
SELECT message.seq
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.seq = :key

-- repository.transcript.LEAF_OF
SELECT leaf_seq
FROM session
WHERE session.family = :family_of_sid AND id = :sid AND time_deleted IS NULL

-- repository.transcript.WEIGHTS
SELECT part.seq, sum(1024 + coalesce(tb.size, 0) + coalesce(ib.size, 0) + coalesce(db.size, 0))
    AS sum_1
FROM part
LEFT OUTER
JOIN blob AS tb ON tb.family = :family_of_sid AND tb.hash = part.text_blob
LEFT OUTER
JOIN blob AS ib ON ib.family = :family_of_sid AND ib.hash = part.input_blob
LEFT OUTER
JOIN blob AS db ON db.family = :family_of_sid AND db.hash = part.data_blob
WHERE part.family = :family_of_sid AND part.session_id = :sid
GROUP BY part.seq

-- repository.transcript.BLOB
SELECT blob.size, blob.encoding, blob.data
FROM blob
WHERE blob.hash = :hash

-- repository.transcript.BLOB_OF
SELECT /* of sid */ blob.size, blob.encoding, blob.data
FROM blob
WHERE blob.family = :family_of_sid AND blob.hash = :hash AND ((EXISTS (SELECT *
FROM session
WHERE session.family = :family_of_sid AND session.id = :sid AND session.data_blob = blob.hash))
    OR (EXISTS (SELECT *
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid AND message.data_blob =
    blob.hash)) OR (EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.text_blob = blob.hash))
    OR (EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.input_blob = blob.hash))
    OR (EXISTS (SELECT *
FROM part
WHERE part.family = :family_of_sid AND part.session_id = :sid AND part.data_blob = blob.hash))
    OR (EXISTS (SELECT *
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND
    file_diff.before_blob = blob.hash)) OR (EXISTS (SELECT *
FROM file_diff
WHERE file_diff.family = :family_of_sid AND file_diff.session_id = :sid AND file_diff.after_blob
    = blob.hash)))

-- repository.transcript.IDENTITIES
SELECT message.seq, message.id, message.time_created, message.usage_key, message.kind
FROM message
WHERE message.family = :family_of_sid AND message.session_id = :sid
ORDER BY message.seq

-- repository.values.ALL
SELECT key_value.namespace, key_value.key, key_value.revision, key_value.time_created,
    key_value.time_updated, key_value.time_expires, key_value.value, key_value.content
FROM key_value

-- repository.values.ONE
SELECT key_value.namespace, key_value.key, key_value.revision, key_value.time_created,
    key_value.time_updated, key_value.time_expires, key_value.value, key_value.content
FROM key_value
WHERE key_value.namespace = :namespace AND key_value.key = :key AND (time_expires IS NULL OR
    time_expires > :now)

-- repository.values.SEVERAL
SELECT key_value.namespace, key_value.key, key_value.revision, key_value.time_created,
    key_value.time_updated, key_value.time_expires, key_value.value, key_value.content
FROM (SELECT value ->> 0 AS first, value ->> 1 AS second
FROM jsonb_array_elements(CAST(:addresses AS JSONB)) AS listed(value)) AS anon_1, key_value
WHERE key_value.namespace = anon_1.first AND key_value.key = anon_1.second AND (time_expires IS
    NULL OR time_expires > :now)

-- repository.values.ROWS
SELECT key_value.namespace, key_value.key, key_value.ttl, key_value.time_created,
    key_value.time_updated, key_value.time_expires, key_value.value, key_value.content
FROM key_value
WHERE (key_value.namespace, key_value.key) > (:namespace, :key) AND (time_expires IS NULL OR
    time_expires > :now)
ORDER BY key_value.namespace, key_value.key
LIMIT :rows

-- repository.values.NAMESPACES
WITH RECURSIVE found(namespace) AS (SELECT (SELECT min(key_value.namespace) AS min_1
FROM key_value
WHERE key_value.namespace > :after AND key_value.namespace <= :high) AS namespace
UNION ALL SELECT (SELECT min(key_value.namespace) AS min_2
FROM key_value
WHERE key_value.namespace > found.namespace AND key_value.namespace <= :high) AS anon_1
FROM found
WHERE found.namespace IS NOT NULL) SELECT found.namespace
FROM found
WHERE found.namespace IS NOT NULL AND (coalesce((SELECT min(key_value.time_expires) AS min_3
FROM key_value
WHERE key_value.time_expires IS NOT NULL) > :now, true) OR (EXISTS (SELECT *
FROM key_value AS living
WHERE living.namespace = found.namespace AND (time_expires IS NULL OR time_expires > :now))))
LIMIT :rows