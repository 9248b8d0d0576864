"""The queries of `check`: each counts rows that must not exist."""

from __future__ import annotations

from sessiondb.maintenance.derived import LIVE
from sessiondb.schema.terms import USAGE_NAME, has_key

_SEQUENCE = f"""
SELECT count(*) FROM session AS s
 WHERE {LIVE}
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

_NAME = USAGE_NAME.format("m.")
_CLASS = f"s.root_id, m.seq, m.id, m.time_created, m.usage_key, {_NAME} AS usage_name"
_HAS_KEY = has_key("o", "m.usage_key", _NAME)
_HAS_KEY_OF_CLASS = has_key("o", "c.usage_key", "c.usage_name")
_HAS_PLACE_OF_CLASS = (
    "o.id = c.id AND o.seq = c.seq AND o.time_created = c.time_created"
)
#: The class of each message that is inherited although no copy counts.
#
# A message can be a copy of another in two ways (see `effects.ownership`), and the copy
# that counts may be a copy of a copy. Few have none beside them: only their copies are
# followed.
UNOWNED = f"""
WITH RECURSIVE
  lone AS (
    SELECT {_CLASS}, m.inherited, m.session_id AS of_session, m.seq AS at_seq
      FROM message AS m JOIN session AS s ON s.id = m.session_id
     WHERE m.inherited = 1 AND {LIVE}
       AND NOT EXISTS (
           SELECT 1 FROM session AS k JOIN message AS o ON o.session_id = k.id
            WHERE k.root_id = s.root_id AND k.time_deleted IS NULL AND o.inherited = 0
              AND o.id = m.id AND o.seq = m.seq AND o.time_created = m.time_created)
       AND NOT EXISTS (
           SELECT 1 FROM message AS o JOIN session AS k ON k.id = o.session_id
            WHERE {_HAS_KEY} AND o.inherited = 0
              AND k.time_deleted IS NULL)),
  class AS (
    SELECT * FROM lone
     UNION
    SELECT k.root_id, o.seq, o.id, o.time_created, o.usage_key,
           {USAGE_NAME.format("o.")}, o.inherited, c.of_session, c.at_seq
      FROM class AS c
      JOIN message AS o ON {_HAS_PLACE_OF_CLASS} OR {_HAS_KEY_OF_CLASS}
      JOIN session AS k ON k.id = o.session_id
     WHERE c.inherited = 1 AND k.time_deleted IS NULL
       AND (k.root_id = c.root_id AND {_HAS_PLACE_OF_CLASS} OR {_HAS_KEY_OF_CLASS}))
SELECT root_id, seq, id, time_created, usage_key, usage_name FROM lone
 WHERE (of_session, at_seq) NOT IN
       (SELECT of_session, at_seq FROM class WHERE inherited = 0)
"""
_NOWHERE = f"SELECT count(*) FROM ({UNOWNED}) AS unowned"
#: Usage keys whose messages have several names: by the name, copies are found.
AMBIGUOUS_KEYS = f"""
SELECT m.usage_key FROM message AS m WHERE m.usage_key IS NOT NULL
 GROUP BY m.usage_key HAVING min({_NAME}) <> max({_NAME})
"""
#: The class of messages that are counted more than once. Those of one key may have
#: several places, so they have none here.
COUNTED_TWICE = f"""
  SELECT '', 0, '', 0, m.usage_key, min({_NAME})
    FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE m.usage_key IS NOT NULL AND m.inherited = 0 AND {LIVE}
   GROUP BY m.usage_key HAVING count(*) > 1
  UNION ALL
  SELECT s.root_id, m.seq, m.id, m.time_created, min(m.usage_key), min({_NAME})
    FROM message AS m JOIN session AS s ON s.id = m.session_id
   WHERE {LIVE} AND s.root_id IN (SELECT root_id FROM session WHERE relation = 'fork')
   GROUP BY s.root_id, m.seq, m.id, m.time_created
  HAVING count(*) FILTER (WHERE m.inherited = 0) > 1 AND count(*) FILTER (WHERE
         s.relation = 'fork' AND m.seq <= s.parent_seq
         OR m.inherited = 1 AND NOT EXISTS (
             SELECT 1 FROM message AS o JOIN session AS k ON k.id = o.session_id
              WHERE {_HAS_KEY} AND (o.session_id, o.seq) <> (m.session_id, m.seq)
                AND k.time_deleted IS NULL)) > 0
"""
_TWICE = f"SELECT count(*) FROM ({COUNTED_TWICE}) AS twice"

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
_COUNT_SHARED = f"SELECT count(*) FROM ({SHARED_WORKTREES}) AS shared"

_BELOW_REMOVED = """
SELECT count(*) FROM session AS s JOIN session AS p ON p.id = s.parent_id
 WHERE s.time_deleted IS NULL AND p.time_deleted IS NOT NULL
"""
#: Values that no rule of `derived` follows from.
_FLAGS = "SELECT count(*) FROM message WHERE inherited NOT IN (0, 1)"
_META = """
SELECT 3 - (SELECT count(*) FROM meta
             WHERE key IN ('database_uuid', 'min_reader', 'min_writer'))
"""

#: Sessions that a feed of changes would miss.
UNNUMBERED = """
SELECT s.id FROM session AS s
 WHERE s.change <= 0
    OR EXISTS (SELECT 1 FROM session AS o WHERE o.change = s.change AND o.id > s.id)
    OR (s.time_deleted IS NULL
        AND EXISTS (SELECT 1 FROM deletion AS d WHERE d.change = s.change))
"""

#: By check: (the defect, the SQL that counts it, what a repair does about it).
QUESTIONS: dict[str, list[tuple[str, str, str]]] = {
    "counters": [
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
            "usage keys with several names",
            f"SELECT count(*) FROM ({AMBIGUOUS_KEYS}) AS ambiguous",
            "take one for all messages of the key",
        ),
        ("messages whose inherited is neither 0 nor 1", _FLAGS, "set it again"),
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
    ],
    "meta": [
        ("entries of meta that are missing", _META, "write them again"),
        (
            "sessions without a number of their own in the order of changes",
            f"SELECT count(*) FROM ({UNNUMBERED}) AS unnumbered",
            "give them the next number",
        ),
    ],
}
