"""The queries of `check`: each counts rows that must not exist.

``_LIVE`` selects the sessions whose counters must be right: neither deleted nor half
imported.
"""

from __future__ import annotations

from sessiondb.engine.default import ENGINE
from sessiondb.schema.sums import cost_sum, count_sum

_LIVE = "time_deleted IS NULL AND time_importing IS NULL"
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")
#: Sums of floats made in another order differ in their last digits.
_CENT_FRACTION = "1e-6"

_SUMS = ", ".join(
    f"{count_sum(f'm.tokens_{name}', 'm.inherited = 0')} AS tokens_{name}"
    for name in _TOKENS
)
_SAME_TOKENS = " AND ".join(f"s.tokens_{name} IS t.tokens_{name}" for name in _TOKENS)


def _same_cost(column: str) -> str:
    return (
        f"(s.{column} IS t.{column} OR abs(s.{column} - t.{column}) <= "
        f"{_CENT_FRACTION} * (1 + abs(t.{column})))"
    )


#: Sessions whose counters are wrong.
MISCOUNTED = f"""
WITH t AS (
  SELECT m.session_id, count(*) AS message_count,
         {cost_sum("m.cost", "m.inherited = 0")} AS cost,
         {cost_sum("m.cost", "m.inherited = 1")} AS cost_inherited, {_SUMS}
    FROM message AS m GROUP BY m.session_id)
SELECT s.id FROM session AS s LEFT JOIN t ON t.session_id = s.id
 WHERE {_LIVE}
   AND NOT (s.message_count = coalesce(t.message_count, 0) AND {_same_cost("cost")}
            AND {_same_cost("cost_inherited")} AND {_SAME_TOKENS})
"""

_COUNTERS = f"SELECT count(*) FROM ({MISCOUNTED})"

_SEQUENCE = f"""
SELECT count(*) FROM session AS s
 WHERE {_LIVE}
   AND (s.last_seq < coalesce((SELECT max(seq) FROM message WHERE session_id = s.id), 0)
        OR (s.leaf_seq IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM message WHERE session_id = s.id AND seq = s.leaf_seq)))
"""

_PARENTS = """
SELECT count(*) FROM message AS m
 WHERE m.parent_seq IS NOT NULL AND (m.parent_seq = m.seq OR NOT EXISTS
       (SELECT 1 FROM message AS p
         WHERE p.session_id = m.session_id AND p.seq = m.parent_seq))
"""

_CLASS = "s.root_id, m.seq, m.id, m.time_created, m.usage_key"
_NEXT = "c.start, k.root_id, o.seq, o.id, o.time_created, o.usage_key, o.inherited"
#: The class of each message that is inherited although no copy counts.
#
# A message can be a copy of another in two ways (see `effects.ownership`), and the copy
# that counts may be a copy of a copy. Few have none beside them: only their copies are
# followed.
UNOWNED = f"""
WITH RECURSIVE
  lone AS (
    SELECT {_CLASS}, m.rid AS start
      FROM message AS m JOIN session AS s ON s.id = m.session_id
     WHERE m.inherited = 1 AND {_LIVE}
       AND NOT EXISTS (
           SELECT 1 FROM session AS k JOIN message AS o ON o.session_id = k.id
            WHERE k.root_id = s.root_id AND k.time_deleted IS NULL AND o.inherited = 0
              AND o.id = m.id AND o.seq = m.seq AND o.time_created = m.time_created)
       AND NOT EXISTS (
           SELECT 1 FROM message AS o JOIN session AS k ON k.id = o.session_id
            WHERE o.usage_key = m.usage_key AND o.inherited = 0
              AND k.time_deleted IS NULL)),
  class AS (
    SELECT start, root_id, seq, id, time_created, usage_key, 1 AS inherited FROM lone
     UNION
    SELECT {_NEXT} FROM class AS c JOIN session AS k ON k.root_id = c.root_id
      JOIN message AS o ON o.session_id = k.id AND o.seq = c.seq
       AND o.id = c.id AND o.time_created = c.time_created
     WHERE c.inherited = 1 AND k.time_deleted IS NULL
     UNION
    SELECT {_NEXT} FROM class AS c JOIN message AS o ON o.usage_key = c.usage_key
      JOIN session AS k ON k.id = o.session_id
     WHERE c.inherited = 1 AND k.time_deleted IS NULL)
SELECT root_id, seq, id, time_created, usage_key FROM lone
 WHERE start NOT IN (SELECT start FROM class WHERE inherited = 0)
"""
_NOWHERE = f"SELECT count(*) FROM ({UNOWNED})"
#: The same of each class that is counted more than once.
COUNTED_TWICE = f"""
  SELECT {_CLASS} FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE m.usage_key IS NOT NULL AND m.inherited = 0 AND {_LIVE}
   GROUP BY m.usage_key HAVING count(*) > 1
  UNION ALL
  SELECT {_CLASS} FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE {_LIVE} AND s.root_id IN (SELECT root_id FROM session WHERE relation = 'fork')
   GROUP BY s.root_id, m.seq, m.id, m.time_created
  HAVING sum(m.inherited = 0) > 1 AND sum(
         (s.relation = 'fork' AND m.seq <= s.parent_seq)
         OR m.inherited = 1 AND NOT EXISTS (
             SELECT 1 FROM message AS o JOIN session AS k ON k.id = o.session_id
              WHERE o.usage_key = m.usage_key AND o.rid <> m.rid
                AND k.time_deleted IS NULL)) > 0
"""
_TWICE = f"SELECT count(*) FROM ({COUNTED_TWICE})"
#: (rid, session, inherited of the message) of parts that differ from their message.
UNLIKE_MESSAGES = """
SELECT p.rid, p.session_id, m.inherited FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
 WHERE p.inherited <> m.inherited
"""
_PARTS_DIFFER = f"SELECT count(*) FROM ({UNLIKE_MESSAGES})"

_NOT_FOUND = f"""
SELECT count(*) FROM part WHERE indexed = 1 AND rid NOT IN {ENGINE.search.indexed}
"""
_FOUND_IN_VAIN = f"""
SELECT count(*) FROM {ENGINE.search.indexed} AS i
 WHERE i.rid NOT IN (SELECT rid FROM part WHERE indexed = 1)
"""
_INDEXED_COPIES = "SELECT count(*) FROM part WHERE inherited = 1 AND indexed = 1"

#: Worktrees that several projects have.
SHARED_WORKTREES = """
WITH roots AS (
  SELECT worktree AS directory, id FROM project
  UNION
  SELECT directory, project_id FROM project_directory WHERE kind = 'worktree')
SELECT directory FROM roots GROUP BY directory HAVING count(*) > 1
"""
_NO_DIRECTORY = """
SELECT count(*) FROM project WHERE id NOT IN (SELECT project_id FROM project_directory)
"""
_COUNT_SHARED = f"SELECT count(*) FROM ({SHARED_WORKTREES})"

_BELOW_REMOVED = """
SELECT count(*) FROM session AS s JOIN session AS p ON p.id = s.parent_id
 WHERE s.time_deleted IS NULL AND p.time_deleted IS NOT NULL
"""
_ROOTS = """
SELECT count(*) FROM session AS s JOIN session AS p ON p.id = s.parent_id
 WHERE s.time_deleted IS NULL AND p.time_deleted IS NULL AND s.root_id <> p.root_id
"""
_FLAGS = """
SELECT (SELECT count(*) FROM message WHERE inherited NOT IN (0, 1))
     + (SELECT count(*) FROM part
         WHERE inherited NOT IN (0, 1) OR indexed NOT IN (0, 1))
"""
_META = """
SELECT 4 - (SELECT count(*) FROM meta
             WHERE key IN ('database_uuid', 'min_reader', 'min_writer', 'change'))
"""
_CHANGES = """
SELECT count(*) FROM (SELECT change FROM session UNION ALL SELECT change FROM deletion)
 WHERE change > (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'change')
"""

#: By check: (the defect, the SQL that counts it, what a repair does about it).
QUESTIONS: dict[str, list[tuple[str, str, str]]] = {
    "search": [
        ("parts that search does not find", _NOT_FOUND, "rebuild the index"),
        (
            "rows of the search index without a part",
            _FOUND_IN_VAIN,
            "rebuild the index",
        ),
        ("inherited parts in the search index", _INDEXED_COPIES, "take them out"),
    ],
    "counters": [
        (
            "sessions whose messages, cost or tokens are not those of their messages",
            _COUNTERS,
            "count again",
        ),
        (
            "sessions whose last_seq or leaf_seq does not fit their messages",
            _SEQUENCE,
            "continue from the last message",
        ),
    ],
    "ownership": [
        (
            "messages that are counted twice",
            _TWICE,
            "count the oldest, as an import would",
        ),
        (
            "inherited messages that are counted nowhere",
            _NOWHERE,
            "count the oldest copy that is left",
        ),
        (
            "parts that do not agree with their message about being inherited",
            _PARTS_DIFFER,
            "follow the message",
        ),
        (
            "rows whose inherited or indexed is neither 0 nor 1",
            _FLAGS,
            "set them again",
        ),
    ],
    "projects": [
        ("worktrees that several projects have", _COUNT_SHARED, "merge them"),
        ("projects without a directory", _NO_DIRECTORY, "take their worktree"),
    ],
    "tree": [
        (
            "messages whose parent_seq is not a message of their session",
            _PARENTS,
            "put them behind the message before them",
        ),
        ("sessions below a removed one", _BELOW_REMOVED, "detach them"),
        (
            "sessions whose root is not that of their parent",
            _ROOTS,
            "take that of the parent",
        ),
    ],
    "meta": [
        ("entries of meta that are missing", _META, "write them again"),
        (
            "sessions that changed after the last change",
            _CHANGES,
            "move the last change",
        ),
    ],
}
