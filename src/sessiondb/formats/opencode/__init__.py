"""OpenCode: JSON trees 0.5 and 1.x, SQLite 1.x and 2.x (also in one file), export JSON of both.

`records` says what every store holds, whichever way it is written; `tree`,
`sqlite`, `sqlite2` and `exported` read it. Of each generation there is a table of
`fields`, a `convert` that makes drafts, an `export` that makes the same records
again, and `forks` and `messages`; `reader` puts all together.

`to1` and `to2` write any session for a generation, with ids from `names`:
`write`, `write2` and `write_tree` are the formats.
"""

from sessiondb.formats.opencode.export import export_json, session_diff
from sessiondb.formats.opencode.locate import FORMAT

__all__ = ["FORMAT", "export_json", "session_diff"]
