"""every project has a name.

Revision: 0003, after 0002. Not additive: the table is built again, and releases that know
another definition of it take it for a foreign one.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

VERSION = 3
ADDITIVE = False
MIN_READER = "0.3.0"
MIN_WRITER = "0.3.0"

PROJECT = """CREATE TABLE project (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    worktree TEXT NOT NULL,
    vcs TEXT,
    remote TEXT,
    root_commit TEXT,
    name TEXT{name},
    permission TEXT,
    metadata TEXT DEFAULT '{{}}' NOT NULL,
    time_initialized INTEGER,
    time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL,
    CONSTRAINT pk_project PRIMARY KEY (rid),
    CONSTRAINT uq_project_id UNIQUE (id),
    CONSTRAINT ck_project_permission CHECK (permission IS NULL OR json_valid(permission)),
    CONSTRAINT ck_project_metadata CHECK (metadata IS NULL OR json_valid(metadata))
) STRICT"""
KEPT = (
    "rid, id, worktree, vcs, remote, root_commit, permission, metadata, time_initialized, "
    "time_created, time_updated"
)


def rebuild(definition: str, name: str) -> None:
    # The old table steps aside, so that the new one is stored as it is written here.
    op.execute("ALTER TABLE project RENAME TO project_before")
    op.execute(PROJECT.format(name=definition))
    op.execute(f"INSERT INTO project ({KEPT}, name) SELECT {KEPT}, {name} FROM project_before")
    op.execute("DROP TABLE project_before")


def upgrade() -> None:
    rebuild(" DEFAULT '' NOT NULL", "coalesce(name, '')")


def downgrade() -> None:
    rebuild("", "nullif(name, '')")
