-- Written by scripts/freeze_statements.py; the source is schema/tables.py.

-- blob
CREATE TABLE blob (
	rid INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	size INTEGER NOT NULL, 
	encoding TEXT NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_blob PRIMARY KEY (rid), 
	CONSTRAINT uq_blob_hash UNIQUE (hash)
)
 STRICT

-- deletion
CREATE TABLE deletion (
	rid INTEGER NOT NULL, 
	change INTEGER NOT NULL, 
	session_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	CONSTRAINT pk_deletion PRIMARY KEY (rid), 
	CONSTRAINT uq_deletion_change UNIQUE (change)
)
 STRICT

-- extension
CREATE TABLE extension (
	rid INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	tables TEXT NOT NULL, 
	time_created INTEGER NOT NULL, 
	time_updated INTEGER NOT NULL, 
	CONSTRAINT pk_extension PRIMARY KEY (rid), 
	CONSTRAINT uq_extension_name UNIQUE (name), 
	CONSTRAINT ck_extension_tables CHECK (tables IS NULL OR json_valid(tables))
)
 STRICT

-- import_file
CREATE TABLE import_file (
	rid INTEGER NOT NULL, 
	folder TEXT NOT NULL, 
	name TEXT NOT NULL, 
	stamp TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	CONSTRAINT pk_import_file PRIMARY KEY (rid), 
	CONSTRAINT uq_import_file_folder_name UNIQUE (folder, name), 
	CONSTRAINT ck_import_file_facts CHECK (facts IS NULL OR json_valid(facts))
)
 STRICT

-- import_ledger
CREATE TABLE import_ledger (
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
)
 STRICT

-- key_value
CREATE TABLE key_value (
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
)
 STRICT

-- meta
CREATE TABLE meta (
	rid INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_meta PRIMARY KEY (rid), 
	CONSTRAINT uq_meta_key UNIQUE ("key")
)
 STRICT

-- project
CREATE TABLE project (
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
)
 STRICT

-- tombstone
CREATE TABLE tombstone (
	rid INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	time_deleted INTEGER NOT NULL, 
	revision INTEGER, 
	seen TEXT, 
	namespace TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_tombstone PRIMARY KEY (rid), 
	CONSTRAINT uq_tombstone_source_source_id_namespace UNIQUE (source, source_id, namespace)
)
 STRICT

-- usage_model
CREATE TABLE usage_model (
	rid INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	agent TEXT, 
	provider_id TEXT, 
	model_id TEXT, 
	CONSTRAINT pk_usage_model PRIMARY KEY (rid)
)
 STRICT

-- project_directory
CREATE TABLE project_directory (
	rid INTEGER NOT NULL, 
	directory TEXT NOT NULL, 
	project_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	time_created INTEGER NOT NULL, 
	CONSTRAINT pk_project_directory PRIMARY KEY (rid), 
	CONSTRAINT uq_project_directory_directory_project_id UNIQUE (directory, project_id), 
	CONSTRAINT ck_project_directory_kind CHECK (kind = 'worktree' OR kind = 'sandbox' OR kind = 'former'), 
	CONSTRAINT fk_project_directory_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
)
 STRICT

-- session
CREATE TABLE session (
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
)
 STRICT

-- file_diff
CREATE TABLE file_diff (
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
)
 STRICT

-- lease
CREATE TABLE lease (
	rid INTEGER NOT NULL, 
	session_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	ttl INTEGER DEFAULT 30000 NOT NULL, 
	time_expires INTEGER NOT NULL, 
	CONSTRAINT pk_lease PRIMARY KEY (rid), 
	CONSTRAINT uq_lease_session_id UNIQUE (session_id), 
	CONSTRAINT fk_lease_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
)
 STRICT

-- merge_base
CREATE TABLE merge_base (
	rid INTEGER NOT NULL, 
	session_id TEXT NOT NULL, 
	fields TEXT NOT NULL, 
	CONSTRAINT pk_merge_base PRIMARY KEY (rid), 
	CONSTRAINT uq_merge_base_session_id UNIQUE (session_id), 
	CONSTRAINT ck_merge_base_fields CHECK (fields IS NULL OR json_valid(fields)), 
	CONSTRAINT fk_merge_base_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
)
 STRICT

-- message
CREATE TABLE message (
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
)
 STRICT

-- prompt
CREATE TABLE prompt (
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
)
 STRICT

-- terminal
CREATE TABLE terminal (
	rid INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	directory TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	time_updated INTEGER NOT NULL, 
	CONSTRAINT pk_terminal PRIMARY KEY (rid), 
	CONSTRAINT uq_terminal_id_directory UNIQUE (id, directory), 
	CONSTRAINT fk_terminal_session_id FOREIGN KEY(session_id) REFERENCES session (id) ON DELETE CASCADE
)
 STRICT

-- todo
CREATE TABLE todo (
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
)
 STRICT

-- usage_hour
CREATE TABLE usage_hour (
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
)
 STRICT

-- usage_waiting
CREATE TABLE usage_waiting (
	rid INTEGER NOT NULL, 
	CONSTRAINT pk_usage_waiting PRIMARY KEY (rid), 
	CONSTRAINT fk_usage_waiting_rid FOREIGN KEY(rid) REFERENCES session (rid) ON DELETE CASCADE
)
 STRICT

-- label
CREATE TABLE label (
	rid INTEGER NOT NULL, 
	session_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	label TEXT NOT NULL, 
	CONSTRAINT pk_label PRIMARY KEY (rid), 
	CONSTRAINT fk_label_session_id_seq FOREIGN KEY(session_id, seq) REFERENCES message (session_id, seq) ON DELETE CASCADE, 
	CONSTRAINT uq_label_session_id_label UNIQUE (session_id, label)
)
 STRICT

-- part
CREATE TABLE part (
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
)
 STRICT

-- ix_import_ledger_namespace
CREATE INDEX ix_import_ledger_namespace ON import_ledger (source, namespace) WHERE namespace <> ''

-- ix_key_value_expires
CREATE INDEX ix_key_value_expires ON key_value (time_expires) WHERE time_expires IS NOT NULL

-- ix_usage_model_model_id
CREATE INDEX ix_usage_model_model_id ON usage_model (model_id, provider_id, agent, source)

-- ix_project_directory_project_id
CREATE INDEX ix_project_directory_project_id ON project_directory (project_id)

-- ix_session_change
CREATE INDEX ix_session_change ON session (change)

-- ix_session_created
CREATE INDEX ix_session_created ON session (hidden, id)

-- ix_session_data_blob
CREATE INDEX ix_session_data_blob ON session (data_blob) WHERE data_blob IS NOT NULL

-- ix_session_deleted
CREATE INDEX ix_session_deleted ON session (time_deleted) WHERE time_deleted IS NOT NULL

-- ix_session_native
CREATE INDEX ix_session_native ON session (id) WHERE time_imported IS NULL

-- ix_session_parent_id
CREATE INDEX ix_session_parent_id ON session (parent_id)

-- ix_session_parent_source
CREATE INDEX ix_session_parent_source ON session (source, parent_source_id) WHERE parent_source_id IS NOT NULL

-- ix_session_project_created
CREATE INDEX ix_session_project_created ON session (project_id, hidden, id)

-- ix_session_project_used
CREATE INDEX ix_session_project_used ON session (project_id, hidden, time_updated DESC, id)

-- ix_session_root_id
CREATE INDEX ix_session_root_id ON session (root_id)

-- ix_session_scope_created
CREATE INDEX ix_session_scope_created ON session (scope, hidden, id) WHERE scope IS NOT NULL

-- ix_session_scope_used
CREATE INDEX ix_session_scope_used ON session (scope, hidden, time_updated DESC, id) WHERE scope IS NOT NULL

-- ix_session_used
CREATE INDEX ix_session_used ON session (hidden, time_updated DESC, id)

-- ix_file_diff_after_blob
CREATE INDEX ix_file_diff_after_blob ON file_diff (after_blob) WHERE after_blob IS NOT NULL

-- ix_file_diff_before_blob
CREATE INDEX ix_file_diff_before_blob ON file_diff (before_blob) WHERE before_blob IS NOT NULL

-- ix_message_branch
CREATE INDEX ix_message_branch ON message (session_id, parent_seq) WHERE parent_seq <> seq - 1

-- ix_message_data_blob
CREATE INDEX ix_message_data_blob ON message (data_blob) WHERE data_blob IS NOT NULL

-- ix_message_disordered
CREATE INDEX ix_message_disordered ON message (session_id) WHERE parent_seq >= seq

-- ix_message_open
CREATE INDEX ix_message_open ON message (session_id) WHERE time_completed IS NULL

-- ix_message_usage_key
CREATE INDEX ix_message_usage_key ON message (usage_key) WHERE usage_key IS NOT NULL AND (usage_name IS NOT NULL OR response_id IS NOT NULL)

-- ix_prompt_created
CREATE INDEX ix_prompt_created ON prompt (time_created, id)

-- ix_prompt_project_id
CREATE INDEX ix_prompt_project_id ON prompt (project_id, time_created, id)

-- ix_prompt_session_id
CREATE INDEX ix_prompt_session_id ON prompt (session_id)

-- ix_terminal_directory
CREATE INDEX ix_terminal_directory ON terminal (directory, time_updated)

-- ix_terminal_session_id
CREATE INDEX ix_terminal_session_id ON terminal (session_id)

-- ix_usage_hour_hour
CREATE INDEX ix_usage_hour_hour ON usage_hour (hour)

-- ix_usage_hour_session
CREATE INDEX ix_usage_hour_session ON usage_hour (session_rid, hour)

-- ix_label_message
CREATE INDEX ix_label_message ON label (session_id, seq)

-- ix_part_call_id
CREATE INDEX ix_part_call_id ON part (session_id, call_id) WHERE call_id IS NOT NULL

-- ix_part_data_blob
CREATE INDEX ix_part_data_blob ON part (data_blob) WHERE data_blob IS NOT NULL

-- ix_part_input_blob
CREATE INDEX ix_part_input_blob ON part (input_blob) WHERE input_blob IS NOT NULL

-- ix_part_result
CREATE INDEX ix_part_result ON part (session_id, call_id) WHERE type = 'tool-result' AND (text IS NOT NULL OR text_blob IS NOT NULL)

-- ix_part_text_blob
CREATE INDEX ix_part_text_blob ON part (text_blob) WHERE text_blob IS NOT NULL

-- ix_part_unsettled
CREATE INDEX ix_part_unsettled ON part (session_id) WHERE status IN ('pending', 'running')