"""OpenCode of generation 1: SQLite 1.2 and later, JSON trees 1.x and 0.5, export JSON.

`records` says what both kinds of store hold, `sqlite` and `tree` read it,
`convert` makes drafts of it and `export` makes it again; `forks` finds the
forks that OpenCode does not mark, `reader` puts all together.
"""

from sessiondb.formats.opencode.export import export_json, session_diff
from sessiondb.formats.opencode.locate import SUFFIXES, at, default_locations

__all__ = ["SUFFIXES", "at", "default_locations", "export_json", "session_diff"]
