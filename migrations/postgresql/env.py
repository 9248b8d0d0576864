"""The environment of the migrations, run by `sessiondb.engine.postgresql.migrations`.

Driven by sessiondb, the configuration carries an open ``connection``. The alembic
command (`alembic -n postgresql …`) gets the URL of a database by ``-x url=URL``.
"""

from alembic import context

from sessiondb.engine.postgresql.migrations import run_env

run_env(context)
