"""sessions can be pinned.

Revision: 0002, after 0001. Additive: a column, an index, and a view that shows it.
"""

import runpy

from alembic import op

from sessiondb.engine.chain import folder

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

VERSION = 2
ADDITIVE = True


# A released migration spells them out; this one goes with any first one.
_FIRST = runpy.run_path(str(folder() / "versions" / "0001_initial.py"))["DERIVED"]
DERIVED = tuple(
    sql.replace("s.time_created, s.time_updated", "s.time_created, s.time_updated, s.pinned")
    if sql.startswith("CREATE VIEW session_list")
    else sql
    for sql in _FIRST
)


def upgrade() -> None:
    op.execute("ALTER TABLE session ADD COLUMN pinned INTEGER")
    op.execute("CREATE INDEX ix_session_pinned ON session (pinned) WHERE pinned IS NOT NULL")


def downgrade() -> None:
    op.execute("DROP INDEX ix_session_pinned")
    op.execute("ALTER TABLE session DROP COLUMN pinned")
