"""Views for people with psql: those of SQLite's files, by the same names.

All hide sessions that are deleted or still being imported. JSON is read only where the
server can: it refuses NUL and the halves of surrogate pairs, which are escapes there.
"""

from __future__ import annotations

from sessiondb.engine.postgresql.families import in_family
from sessiondb.model.records import SOURCE_KEYS
from sessiondb.model.tools import TOOL_KINDS
from sessiondb.schema.purposes import purpose_of
from sessiondb.schema.sums import cost_sum, count_sum
from sessiondb.schema.terms import TOKENS
from sessiondb.schema.usage import has_usage


def _in_families(view: str) -> str:
    head, _, query = view.partition(" AS\n")
    return f"{head} AS\n{in_family(query)}"


_ALIVE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_HOUR_MS = 3_600_000


def _text_of(blob: str) -> str:
    return f"convert_from({blob}.data, 'UTF8')"


def _time_of(column: str) -> str:
    time = f"to_timestamp({column} / 1000) AT TIME ZONE 'UTC'"
    return f"to_char({time}, 'YYYY-MM-DD HH24:MI:SS')"


_PATH = """(WITH RECURSIVE path (seq) AS (
               SELECT s.leaf_seq
                UNION
               SELECT a.parent_seq FROM message AS a JOIN path ON a.seq = path.seq
                WHERE a.session_id = s.id)
             SELECT seq FROM path)"""
_RESULT = f"""(SELECT coalesce(r.text, {_text_of("rb")})
          FROM part AS r
          LEFT JOIN blob AS rb ON rb.hash = r.text_blob
         WHERE r.session_id = p.session_id AND r.call_id = p.call_id
           AND r.type = 'tool-result'
           AND (r.text IS NOT NULL OR r.text_blob IS NOT NULL)
           AND r.seq IN {_PATH}
         ORDER BY r.seq DESC, r.idx DESC LIMIT 1)"""
_CALL = f"""(SELECT coalesce(c.text, {_text_of("cb")})
          FROM part AS c
          LEFT JOIN blob AS cb ON cb.hash = c.text_blob
         WHERE c.session_id = p.session_id AND c.call_id = p.call_id
           AND c.type = 'tool' AND c.seq < p.seq
         ORDER BY c.seq DESC, c.idx DESC LIMIT 1)"""
_OWN_TEXT = f"p.text, {_text_of('tb')}"
_TEXT = f"""CASE WHEN p.type = 'tool' AND p.call_id IS NOT NULL
            THEN coalesce({_RESULT}, {_OWN_TEXT})
            WHEN p.type = 'tool-result' THEN coalesce({_OWN_TEXT}, {_CALL})
            ELSE coalesce({_OWN_TEXT}) END"""
_TOKENS = "\n         + ".join(f"coalesce(s.{name}, 0)" for name in TOKENS)

SESSION_LIST = f"""
CREATE VIEW session_list AS
SELECT s.id, s.slug, s.title, s.source, s.agent, s.model_id, s.directory,
       j.worktree AS project, s.relation, s.parent_id, s.message_count, s.cost,
       s.cost_inherited,
       {_TOKENS} AS tokens,
       {_time_of("s.time_created")} AS created, {_time_of("s.time_updated")} AS updated,
       {_time_of("s.time_archived")} AS archived, s.time_created, s.time_updated,
       s.prompt_count, s.hidden
  FROM session AS s LEFT JOIN project AS j ON j.id = s.project_id
 WHERE {_ALIVE}
""".strip()

_INPUT = f"coalesce(p.input, {_text_of('ib')})"

TRANSCRIPT = f"""
CREATE VIEW transcript AS
SELECT p.session_id, p.seq, p.idx, {_time_of("m.time_created")} AS time, m.role, m.kind,
       m.agent, m.model_id, p.type, p.tool, p.status, p.outcome, p.title,
       {_INPUT} AS input,
       {_TEXT} AS text, m.id AS message_id, p.id AS part_id, m.turn_id, m.inherited,
       m.time_created, p.synthetic, {purpose_of("m")} AS purpose
  FROM session AS s
  JOIN message AS m ON m.session_id = s.id
  JOIN part AS p ON p.session_id = m.session_id AND p.seq = m.seq
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE {_ALIVE}
""".strip()

#: The arguments of a call as JSON, NULL if the server cannot read them.
_JSON = (
    f"CASE WHEN {_INPUT} !~ '\\\\u(0000|[dD][89a-fA-F])' "
    f"THEN CAST({_INPUT} AS JSON) END"
)
#: Where agents name the file of a call: OpenCode 1.x and before, Claude Code and
#: Gemini, OpenCode 2 and pi, notebooks, Gemini's reader.
_PATH_KEYS = ("filePath", "file_path", "path", "notebook_path", "absolute_path")
_FILE = f"""(SELECT coalesce({", ".join(f"a.j ->> '{key}'" for key in _PATH_KEYS)})
          FROM (SELECT {_JSON} AS j) AS a)"""
_CALLED = _time_of("coalesce(p.time_started, p.time_created)")

TOOL_CALL = f"""
CREATE VIEW tool_call AS
SELECT p.session_id, p.seq, p.idx, p.tool, p.status, p.outcome, p.title,
       {_INPUT} AS input,
       {_TEXT} AS output,
       (p.time_ended - p.time_started) / CAST(1000 AS DOUBLE PRECISION) AS seconds,
       p.call_id, p.id AS part_id, {_CALLED} AS time, p.inherited,
       s.source, s.project_id, {_FILE} AS path, s.directory
  FROM part AS p
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.type = 'tool' AND {_ALIVE}
""".strip()

_EDITS = ", ".join(f"'{name}'" for name in TOOL_KINDS["edit"])

CHANGED_FILE = f"""
CREATE VIEW changed_file AS
WITH call AS (
SELECT p.session_id, p.seq, p.idx, p.tool, {_INPUT} AS input, {_FILE} AS path,
       {_CALLED} AS time, p.inherited, p.id AS part_id, s.source, s.directory,
       s.project_id
  FROM part AS p
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.type = 'tool' AND p.status IS DISTINCT FROM 'error' AND {_ALIVE}
), answer AS (
SELECT p.session_id, p.seq, p.idx,
       string_to_array(coalesce({_OWN_TEXT}), E'\\n') AS lines,
       {_CALLED} AS time, p.inherited, p.id AS part_id, s.source, s.directory,
       s.project_id
  FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
 WHERE p.type = 'text' AND m.role = 'assistant' AND {_ALIVE}
   AND strpos(coalesce({_OWN_TEXT}), '<<<<< SEARCH') > 0
), change AS (
SELECT c.session_id, c.seq, c.idx, c.tool, c.path, c.time, c.inherited, c.part_id,
       c.source, c.directory, c.project_id
  FROM call AS c
 WHERE lower(c.tool) IN ({_EDITS}) AND c.path IS NOT NULL
 UNION ALL
SELECT c.session_id, c.seq, c.idx, c.tool, substr(line, strpos(line, ': ') + 2), c.time,
       c.inherited, c.part_id, c.source, c.directory, c.project_id
  FROM call AS c, string_to_table(c.input, '\\n') AS line
 WHERE strpos(c.input, '*** Begin Patch') > 0
   AND (line LIKE '*** Update File: %' OR line LIKE '*** Add File: %'
        OR line LIKE '*** Delete File: %' OR line LIKE '*** Move to: %')
 UNION ALL
SELECT t.session_id, t.seq, t.idx, NULL, btrim(t.lines[mark - 2], '*`#: '), t.time,
       t.inherited, t.part_id, t.source, t.directory, t.project_id
  FROM answer AS t, generate_subscripts(t.lines, 1) AS mark
 WHERE mark > 2 AND t.lines[mark] LIKE '<<<<<% SEARCH'
)
SELECT session_id, seq, idx, tool,
       CASE WHEN path LIKE '/%' OR path LIKE '_:%' THEN path
            ELSE coalesce(rtrim(directory, '/') || '/', '') || path END AS file,
       time, inherited, source, project_id, path, part_id
  FROM change
""".strip()

_SAID = ",\n       ".join(f"a.j ->> '{key}' AS {key}" for key in SOURCE_KEYS)

CONTEXT_SOURCE = f"""
CREATE VIEW context_source AS
SELECT p.session_id, p.seq, p.idx,
       {_SAID},
       coalesce({_OWN_TEXT}) AS text,
       {_time_of("m.time_created")} AS time, s.source, p.title, m.id AS message_id,
       p.id AS part_id, p.inherited, s.project_id, s.directory, m.time_created
  FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
  JOIN session AS s ON s.id = p.session_id
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
  CROSS JOIN LATERAL (SELECT {_JSON} AS j) AS a
 WHERE p.type = 'source' AND {_ALIVE}
""".strip()

USAGE = f"""
CREATE VIEW usage AS
SELECT s.id AS session_id, m.time_created / {_HOUR_MS} AS hour, s.source,
       coalesce(m.agent, s.agent) AS agent, m.provider_id, m.model_id, 1 AS messages,
       m.cost, {", ".join(f"m.{name}" for name in TOKENS)}
  FROM message AS m JOIN session AS s ON s.id = m.session_id
 WHERE {has_usage("m")} AND {_ALIVE}
""".strip()

_SUMS = ",\n       ".join(f"{count_sum(f'u.{name}')} AS {name}" for name in TOKENS)
_MESSAGES = f"{count_sum('u.messages')} AS messages"
_COST = f"{cost_sum('u.cost')} AS cost"

USAGE_BY_DAY = f"""
CREATE VIEW usage_by_day AS
SELECT to_char(to_timestamp(u.hour * 3600) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
       u.source, u.provider_id, u.model_id, {_MESSAGES},
       {_COST},
       {_SUMS}
  FROM usage AS u
 GROUP BY 1, 2, 3, 4
""".strip()

USAGE_BY_MODEL = f"""
CREATE VIEW usage_by_model AS
SELECT u.provider_id, u.model_id, {_MESSAGES},
       count(DISTINCT u.session_id) AS sessions,
       {_COST},
       {_SUMS}
  FROM usage AS u
 GROUP BY 1, 2
""".strip()

SESSION_TREE = """
CREATE VIEW session_tree AS
WITH RECURSIVE tree (id, depth, path) AS (
  SELECT id, 0, id FROM session
   WHERE parent_id IS NULL AND time_deleted IS NULL AND time_importing IS NULL
  UNION ALL
  SELECT s.id, tree.depth + 1, tree.path || '/' || s.id
    FROM session AS s JOIN tree ON s.parent_id = tree.id
   WHERE s.time_deleted IS NULL AND s.time_importing IS NULL
)
SELECT s.root_id, tree.depth, tree.path, s.id, s.parent_id, s.relation, s.parent_seq,
       repeat('  ', tree.depth) || s.title AS title, s.message_count, s.cost, s.source
  FROM tree JOIN session AS s ON s.id = tree.id
""".strip()

VIEWS = tuple(
    _in_families(view)
    for view in (
        SESSION_LIST,
        TRANSCRIPT,
        TOOL_CALL,
        CHANGED_FILE,
        CONTEXT_SOURCE,
        USAGE,
        USAGE_BY_DAY,
        USAGE_BY_MODEL,
        SESSION_TREE,
    )
)
#: Their names, in the same order.
VIEW_NAMES = tuple(view.split()[2] for view in VIEWS)
