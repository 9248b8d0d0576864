"""What `check` asks the rows: each question counts what must not be.

``live`` are the sessions that count: not deleted, not half imported.
"""

from __future__ import annotations

_LIVE = "time_deleted IS NULL AND time_importing IS NULL"
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")
#: Sums of floats made in another order differ in their last digits.
_CENT_FRACTION = "1e-6"

_SUMS = ", ".join(
    f"sum(m.tokens_{name}) FILTER (WHERE m.inherited = 0) AS tokens_{name}" for name in _TOKENS
)
_SAME_TOKENS = " AND ".join(f"s.tokens_{name} IS t.tokens_{name}" for name in _TOKENS)


def _same_cost(column: str) -> str:
    return (
        f"(s.{column} IS t.{column} OR abs(s.{column} - t.{column}) <= "
        f"{_CENT_FRACTION} * (1 + abs(t.{column})))"
    )


_COUNTERS = f"""
WITH t AS (
  SELECT m.session_id, count(*) AS message_count,
         sum(m.cost) FILTER (WHERE m.inherited = 0) AS cost,
         sum(m.cost) FILTER (WHERE m.inherited = 1) AS cost_inherited, {_SUMS}
    FROM message AS m GROUP BY m.session_id)
SELECT count(*) FROM session AS s LEFT JOIN t ON t.session_id = s.id
 WHERE {_LIVE}
   AND NOT (s.message_count = coalesce(t.message_count, 0) AND {_same_cost("cost")}
            AND {_same_cost("cost_inherited")} AND {_SAME_TOKENS})
"""

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
       (SELECT 1 FROM message AS p WHERE p.session_id = m.session_id AND p.seq = m.parent_seq))
"""

# Both ways in which a message can be a copy of another: see `effects.ownership`.
_KIN = """
SELECT 1 FROM session AS k JOIN message AS o ON o.session_id = k.id
 WHERE k.root_id = s.root_id AND k.time_deleted IS NULL
   AND o.id = m.id AND o.seq = m.seq AND o.time_created = m.time_created"""
_NOWHERE = f"""
SELECT count(*) FROM message AS m JOIN session AS s ON s.id = m.session_id
 WHERE m.inherited = 1 AND {_LIVE}
   AND NOT EXISTS ({_KIN} AND o.inherited = 0)
   AND NOT EXISTS (
       SELECT 1 FROM message AS o JOIN session AS k ON k.id = o.session_id
        WHERE o.usage_key = m.usage_key AND o.inherited = 0 AND k.time_deleted IS NULL)
"""
_TWICE = f"""
SELECT count(*) FROM (
  SELECT m.usage_key FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE m.usage_key IS NOT NULL AND m.inherited = 0 AND {_LIVE}
   GROUP BY m.usage_key HAVING count(*) > 1
  UNION ALL
  SELECT m.id FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE {_LIVE} AND s.root_id IN (SELECT root_id FROM session WHERE relation = 'fork')
   GROUP BY s.root_id, m.seq, m.id, m.time_created
  HAVING sum(m.inherited = 0) > 1 AND sum(m.inherited) > 0)
"""
_PARTS_DIFFER = """
SELECT count(*) FROM part AS p
  JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq
 WHERE p.inherited <> m.inherited
"""

_NOT_FOUND = """
SELECT count(*) FROM part WHERE indexed = 1 AND rid NOT IN (SELECT id FROM part_search_docsize)
"""
_FOUND_IN_VAIN = """
SELECT count(*) FROM part_search_docsize WHERE id NOT IN (SELECT rid FROM part WHERE indexed = 1)
"""
_INDEXED_COPIES = "SELECT count(*) FROM part WHERE inherited = 1 AND indexed = 1"

_SHARED_WORKTREES = """
WITH roots AS (
  SELECT worktree AS directory, id FROM project
  UNION
  SELECT directory, project_id FROM project_directory WHERE kind = 'worktree')
SELECT count(*) FROM (SELECT 1 FROM roots GROUP BY directory HAVING count(*) > 1)
"""

#: check → [(what is wrong, SQL that counts it)]
QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "search": [
        ("parts that search does not find", _NOT_FOUND),
        ("rows of the search index without a part", _FOUND_IN_VAIN),
        ("inherited parts in the search index", _INDEXED_COPIES),
    ],
    "counters": [
        ("sessions whose messages, cost or tokens are not those of their messages", _COUNTERS),
        ("sessions whose last_seq or leaf_seq does not fit their messages", _SEQUENCE),
    ],
    "ownership": [
        ("messages that are counted twice", _TWICE),
        ("inherited messages that are counted nowhere", _NOWHERE),
        ("parts that do not agree with their message about being inherited", _PARTS_DIFFER),
    ],
    "projects": [
        ("worktrees that several projects have; `relink DIR DIR` merges them", _SHARED_WORKTREES)
    ],
    "tree": [("messages whose parent_seq is no message of their session", _PARENTS)],
}
