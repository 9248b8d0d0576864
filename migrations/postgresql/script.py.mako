"""${message}.

Revision: ${up_revision}, after ${down_revision or "nothing"}.
"""

from alembic import op

revision = "${up_revision}"
down_revision = ${repr(down_revision).replace("'", '"')}
branch_labels = None
depends_on = None

# sessiondb.engine.chain describes these constants and the others that a migration may have.
VERSION = ${up_revision.lstrip("0")}
ADDITIVE = False

# Literal DDL only, never reflection: a migration must do the same thing in ten years,
# whatever the tables in sessiondb.schema look like by then.


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
