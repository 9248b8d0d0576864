"""OpenCode: JSON trees 0.5 and 1.x, SQLite 1.x and 2.x, and the export JSON of both.

`raw` is the interface of a store, whichever way it is written; `v1.tree`, `v1.sqlite`,
`v2.sqlite` and `export_file` implement it. Each generation has a table of `fields`,
`drafts` that it reads from records, `records` that it makes of them again, `messages`
and `forks`; `stores` finds the stores, `reader` reads one, and `copies` leaves out
sessions of which another store has a newer copy.

The `writer` of a generation makes its records of any session, with the ids of `names`;
`exporter` and `v2.exporter` are the formats.
"""

from sessiondb.formats.opencode.stores import FORMAT

__all__ = ["FORMAT"]
