"""The source of every statement that ships: SQLAlchemy Core, by the room that runs it.

The statement ``Statement("effects.lease.HELD")`` is the expression ``HELD`` in
``statements/effects/lease.py``. `scripts/freeze_statements.py` compiles all of them
into the file of each engine, as SQLite's ``engine/sqlite/statements.sql``; names in
lower case are parts of others. Nothing imports this package when sessiondb runs.
"""
