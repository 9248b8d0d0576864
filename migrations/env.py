"""The environment of the migrations, run by `sessiondb.engine.sqlite.migrations`.

Driven by sessiondb, the configuration carries an open ``connection``. Driven by the
alembic command it carries none, and gets the ``path`` of a database: that of
``-x db=PATH`` or ``-x url=URL``, else the one that sessiondb uses here
(``SESSIONDB_PATH`` and so on).
"""

import sys

from alembic import context
from alembic.util import CommandError

from sessiondb.engine.sqlite.migrations import run_env
from sessiondb.errors import SessionDBError
from sessiondb.location import resolve, state_directory


def path():
    named = context.get_x_argument(as_dictionary=True)
    for key in sorted(named.keys() - {"db", "url"}):
        raise CommandError(
            f"-x {key} is unknown; there are -x db=PATH and -x url=sqlite:///PATH"
        )
    if len(named) > 1:
        raise CommandError("-x db and -x url exclude each other")

    try:
        found = resolve(next(iter(named.values()), None))
    except SessionDBError as error:
        raise CommandError(str(error)) from error
    if found.server is not None:
        raise CommandError(
            f"{found} is a database of a server; sessiondb migrate upgrades it"
        )
    if not named:
        sys.stderr.write(f"database: {found.path}\n")
    return found.path


if "connection" not in context.config.attributes:
    context.config.attributes["path"] = path
    context.config.attributes["backups"] = state_directory() / "backups"

run_env(context)
