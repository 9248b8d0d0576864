"""The structure of a database: tables and views. No queries.

`tables` are SQLAlchemy's and the source; `columns`, written from them, `rows`, `terms`
and `views` are what a process needs that loads no SQLAlchemy.

The additions of an engine (its search index, triggers) are in its own folder; SQLite's
`statements` is the complete schema of this release, in the order in which a fresh
file is made. The migrations must arrive at the same objects; a test compares
the two, object by object.
"""
