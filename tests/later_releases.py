"""Two migrations that follow the chain of this release, and what they change.

They are rendered from the present schema: the first adds a column, an index and a view
that shows it; the second builds a table again, as only `sessiondb migrate` may. A real
migration moves them one revision on, and no test has to change.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from sessiondb.engine.chain import Chain
from sessiondb.engine.sqlite.ddl import statements
from sessiondb.schema.tables import project
from sessiondb.schema.version import HEAD, VERSION

#: The revisions that follow HEAD: the additive one, and the one a person has to run.
NEXT, LAST = f"{VERSION + 1:04}", f"{VERSION + 2:04}"
#: The releases that write them: above every real release.
NEXT_RELEASE, LAST_RELEASE = "1002.0.0", "1003.0.0"

SHOWN = "s.time_created, s.time_updated"
PINNED = f"{SHOWN}, s.pinned"

_ADDITIVE = Template('''"""sessions can be pinned.

Revision: $next, after $head. Additive: a column, an index, and a view that shows it.
"""

from alembic import op

revision, down_revision, branch_labels, depends_on = "$next", "$head", None, None
VERSION, ADDITIVE = $version, True
DERIVED = $derived


def upgrade():
    op.execute("ALTER TABLE session ADD COLUMN pinned INTEGER")
    op.execute("CREATE INDEX ix_session_pinned ON session (pinned) WHERE pinned IS NOT NULL")


def downgrade():
    op.execute("DROP INDEX ix_session_pinned")
    op.execute("ALTER TABLE session DROP COLUMN pinned")
''')

_REBUILT = Template('''"""every project has a name.

Revision: $last, after $next. Not additive: the table is built again, and releases that
know another definition of it do not accept this one.
"""

from alembic import op

revision, down_revision, branch_labels, depends_on = "$last", "$next", None, None
VERSION, ADDITIVE = $version, False
MIN_READER = MIN_WRITER = "$release"


def rebuild(definition, name):
    # The old table steps aside, so that the new one is stored as it is written here.
    op.execute("ALTER TABLE project RENAME TO project_before")
    op.execute(definition)
    op.execute(f"INSERT INTO project ($kept, name) SELECT $kept, {name} FROM project_before")
    op.execute("DROP TABLE project_before")


def upgrade():
    rebuild($named, "coalesce(name, '')")


def downgrade():
    rebuild($unnamed, "nullif(name, '')")
''')


def write(folder: Path) -> Path:
    """Write both migrations into *folder*, literally, and return it."""
    derived = tuple(
        sql.replace(SHOWN, PINNED)
        if sql.startswith("CREATE VIEW session_list")
        else sql
        for sql in Chain.of().derived(HEAD)
    )
    (table,) = (sql for sql in statements() if sql.startswith("CREATE TABLE project ("))
    named, found = re.subn(
        r"\bname TEXT\b", "name TEXT DEFAULT '' NOT NULL", table, count=1
    )
    assert found
    kept = ", ".join(column.name for column in project.columns if column.name != "name")

    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NEXT}_pinned.py").write_text(
        _ADDITIVE.substitute(
            head=HEAD, next=NEXT, version=VERSION + 1, derived=repr(derived)
        )
    )
    (folder / f"{LAST}_project_names.py").write_text(
        _REBUILT.substitute(
            next=NEXT, last=LAST, version=VERSION + 2, release=LAST_RELEASE,
            kept=kept, named=repr(named), unnamed=repr(table),
        )
    )  # fmt: skip
    return folder
