"""What alembic runs around the migrations; how they are run stands in `sessiondb.engine.migrate`.

Driven by sessiondb, the configuration carries an open ``connection``. Driven by the alembic
command it carries none, and gets the ``path`` of a database: that of ``-x db=PATH``, else the
one sessiondb would use here.
"""

from alembic import context

from sessiondb.engine.migrate import run_env
from sessiondb.location import resolve, state_directory

if "connection" not in context.config.attributes:
    named = context.get_x_argument(as_dictionary=True).get("db")
    context.config.attributes["path"] = resolve(named).path
    context.config.attributes["backups"] = state_directory() / "backups"

run_env(context)
