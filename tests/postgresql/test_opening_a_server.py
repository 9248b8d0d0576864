"""Opening a database of a server: made once, recognised, refused or migrated."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from postgresql_server import Server

from sessiondb.engine.address import ServerAddress
from sessiondb.engine.chain import folder
from sessiondb.errors import (
    AccessError,
    BusyError,
    NotADatabaseError,
    NotFoundError,
    SchemaVersionError,
    SessionDBError,
    UnsupportedError,
)

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql import migrations  # noqa: E402
from sessiondb.engine.postgresql.admission import (  # noqa: E402
    LOCK,
    admit,
    check_server,
)
from sessiondb.engine.postgresql.connecting import connect  # noqa: E402
from sessiondb.engine.postgresql.ddl import names_of  # noqa: E402
from sessiondb.engine.postgresql.opening import ensure  # noqa: E402
from sessiondb.engine.postgresql.target import PostgreSQLDatabase  # noqa: E402
from sessiondb.schema.version import HEAD, VERSION  # noqa: E402

pytestmark = pytest.mark.slow
Run = Callable[[str], None]


@pytest.fixture
def run(server: Server, database: str) -> Run:
    """Run SQL in the database of this test."""

    def run_(sql: str) -> None:
        assert server.run(f"\\c {database}\n{sql}") == ""

    return run_


def tables_in(address: ServerAddress, schema: str = "public") -> set[str]:
    with closing(connect(address)) as connection:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
        return {name for (name,) in connection.execute(sql, (schema,))}


def made(address: ServerAddress) -> None:
    ensure(address).close()


def refused(address: ServerAddress, **options: Any) -> SessionDBError:
    with pytest.raises(SessionDBError) as caught:
        ensure(address, **options)
    return caught.value


# -- making --------------------------------------------------------------------


def test_a_database_without_tables_gets_ours_once(address: ServerAddress) -> None:
    with closing(ensure(address)) as connection:
        assert not connection.in_transaction
        ((uuid,),) = connection.execute(
            "SELECT value FROM meta WHERE key = 'database_uuid'"
        )
    assert tables_in(address) >= names_of("TABLE")
    with closing(ensure(address)) as connection:
        sql = "SELECT value FROM meta WHERE key = 'database_uuid'"
        assert connection.execute(sql).fetchall() == [(uuid,)]
        sql = "SELECT version_num FROM alembic_version"
        assert connection.execute(sql).fetchall() == [(HEAD,)]


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_tables_are_not_made_unless_that_is_permitted(
    address: ServerAddress, options: dict[str, bool]
) -> None:
    error = refused(address, **options)
    assert type(error) is NotFoundError
    assert "no tables of sessiondb in the schema public" in str(error)
    assert tables_in(address) == set()
    made(address)
    ensure(address, **options).close()


def test_processes_that_open_a_new_database_at_once_make_one_of_it(
    address: ServerAddress,
) -> None:
    program = (
        "import sys; from sessiondb.engine.address import ServerAddress; "
        "from sessiondb.engine.postgresql.opening import ensure; "
        "connection = ensure(ServerAddress(sys.argv[1])); "
        "print(connection.execute(\"SELECT value FROM meta WHERE key = 'database_uuid'\").fetchone()[0])"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, address.url], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]  # fmt: skip
    names = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 4
    assert len(names) == 1


def test_an_opening_waits_for_who_makes_tables_and_no_longer_than_its_patience(
    address: ServerAddress,
) -> None:
    with closing(connect(address)) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,)).fetchall()
        assert type(refused(address, busy_timeout=0.05)) is BusyError
        threading.Timer(0.3, other.close).start()
        made(address)
    assert tables_in(address) >= names_of("TABLE")


def test_a_schema_of_the_search_path_is_the_place_of_the_tables(
    server: Server, database: str, run: Run
) -> None:
    run('CREATE SCHEMA "Tea Time"; CREATE TABLE public.session (id text)')
    url = server.url(database, "&options=-csearch_path%3D%22Tea%5C%20Time%22%2Cpublic")
    address = ServerAddress(url)
    made(address)
    assert tables_in(address, "Tea Time") >= names_of("TABLE")
    assert tables_in(address) == {"session"}
    assert PostgreSQLDatabase(address).exists()


def test_a_search_path_without_a_schema_is_an_error(
    server: Server, database: str
) -> None:
    error = refused(
        ServerAddress(server.url(database, "&options=-csearch_path%3Dnone"))
    )
    assert type(error) is NotFoundError
    assert error.hint == "create one: CREATE SCHEMA sessiondb"


def test_a_role_that_may_not_create_tables_is_told_so(
    server: Server, database: str
) -> None:
    role = f"guest_of_{database}"
    server.run(f"CREATE ROLE {role} LOGIN")
    try:
        url = server.url(database).replace("user=sessiondb", f"user={role}")
        error = refused(ServerAddress(url))
        assert type(error) is AccessError
        assert "permission denied for schema public" in str(error)
    finally:
        server.run(f"DROP ROLE {role}")


# -- refusing ------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE session (id text)",
        "CREATE VIEW usage AS SELECT 1 AS one",
        "CREATE TABLE meta (key text, value text)",
        "CREATE TABLE meta (key int, value text); CREATE TABLE alembic_version (version_num text)",
        "CREATE TABLE meta (key text, value text); CREATE TABLE alembic_version (version_num text)",
    ],
)
def test_tables_of_another_program_are_left_alone(
    address: ServerAddress, run: Run, sql: str
) -> None:
    run(sql)
    before = tables_in(address)
    error = refused(address)
    assert type(error) is NotADatabaseError
    assert "tables of another program" in str(error)
    assert error.hint is not None
    assert "CREATE SCHEMA" in error.hint
    assert tables_in(address) == before


def test_other_tables_beside_ours_do_not_matter(
    address: ServerAddress, run: Run
) -> None:
    run("CREATE TABLE coffee (id text)")
    made(address)
    made(address)
    assert "coffee" in tables_in(address)


def test_a_missing_table_is_named(address: ServerAddress, run: Run) -> None:
    made(address)
    run("DROP TABLE lease")
    error = refused(address)
    assert type(error) is NotADatabaseError
    assert str(error).endswith("are missing in " + str(address) + ": lease")


def test_a_newer_schema_is_refused_unless_it_admits_this_release(
    address: ServerAddress, run: Run
) -> None:
    made(address)
    run(f"UPDATE alembic_version SET version_num = '{VERSION + 1:04}'")
    with closing(ensure(address)) as connection:
        admit(connection, "here", writing=True)
        run("UPDATE meta SET value = '99.0' WHERE key = 'min_writer'")
        with pytest.raises(SchemaVersionError, match="newer than this release's"):
            admit(connection, "here", writing=True)
    ensure(address).close()
    run("UPDATE meta SET value = '99.0' WHERE key = 'min_reader'")
    error = refused(address)
    assert type(error) is SchemaVersionError
    assert error.hint == "install a newer sessiondb"


def test_an_old_server_is_refused() -> None:
    pgconn = SimpleNamespace(server_version=140_009)
    connection: Any = SimpleNamespace(driver=SimpleNamespace(pgconn=pgconn))
    with pytest.raises(UnsupportedError, match="PostgreSQL 14; sessiondb needs 15"):
        check_server(connection)


def test_another_encoding_is_refused(server: Server, database: str) -> None:
    other = f"{database}_latin"
    server.run(
        f"CREATE DATABASE {other} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'"
    )
    try:
        error = refused(ServerAddress(server.url(other)))
        assert type(error) is UnsupportedError
        assert "LATIN1" in str(error)
    finally:
        server.run(f"DROP DATABASE {other}")


# -- migrating -----------------------------------------------------------------

LATER = '''"""{what}.

Revision: {revision:04}, after {before:04}.
"""

from alembic import op

revision = "{revision:04}"
down_revision = "{before:04}"
branch_labels = None
depends_on = None
VERSION = {revision}
ADDITIVE = {additive}
{more}

def upgrade() -> None:
    op.execute("{sql}")
'''


@pytest.fixture
def later(tmp_path: Path) -> Callable[..., list[Path]]:
    """Return a function that writes the migration of a later release."""

    def write(sql: str, *, additive: bool = True, more: str = "") -> list[Path]:
        text = LATER.format(
            what="a later one",
            revision=VERSION + 1,
            before=VERSION,
            additive=additive,
            sql=sql,
            more=more,
        )
        (tmp_path / "later.py").write_text(text)
        return [tmp_path]

    return write


def dumped(server: Server, database: str) -> str:
    """Return the schema of a database as pg_dump writes it."""
    done = subprocess.run(
        [str(server.programs / "pg_dump"), "--schema-only", "--no-owner", "-d",
         server.url(database)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return "\n".join(
        line for line in done.stdout.splitlines() if not line.startswith("\\")
    )


def test_a_fresh_schema_is_that_of_the_migrations(
    server: Server, database: str, address: ServerAddress
) -> None:
    made(address)
    chain = f"{database}_chain"
    server.run(f"CREATE DATABASE {chain}")
    try:
        migrations.upgrade(ServerAddress(server.url(chain)))
        assert dumped(server, chain) == dumped(server, database)
        made(ServerAddress(server.url(chain)))
        assert migrations.pending(ServerAddress(server.url(chain))) == []
    finally:
        server.run(f"DROP DATABASE {chain}")


def test_both_engines_have_the_same_revisions() -> None:
    chains = [
        sorted(file.name[:4] for file in (home / "versions").glob("*.py"))
        for home in (folder(), migrations.home())
    ]
    assert chains[0] == chains[1]
    assert chains[0][-1] == HEAD


def test_a_current_database_has_nothing_pending(address: ServerAddress) -> None:
    with pytest.raises(NotFoundError):
        migrations.pending(address)
    made(address)
    target = PostgreSQLDatabase(address)
    assert target.pending() == []
    assert target.migrate() is None


def test_pending_migrations_run_in_one_transaction(
    address: ServerAddress, later: Callable[..., list[Path]]
) -> None:
    made(address)
    versions = later("CREATE TABLE pinned (id text)", more="MIN_WRITER = '0.9'")
    (step,) = migrations.pending(address, versions=versions)
    assert (step.revision, step.additive) == (f"{VERSION + 1:04}", True)
    migrations.upgrade(address, versions=versions)
    assert migrations.pending(address, versions=versions) == []
    assert "pinned" in tables_in(address)
    with closing(connect(address)) as connection:
        sql = "SELECT value FROM meta WHERE key = 'min_writer'"
        assert connection.execute(sql).fetchall() == [("0.9",)]


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    server: Server,
    database: str,
    address: ServerAddress,
    later: Callable[..., list[Path]],
) -> None:
    made(address)
    before = dumped(server, database)
    versions = later("CREATE TABLE pinned (id text); SELECT 1 / 0")
    with pytest.raises(SessionDBError, match="division by zero"):
        migrations.upgrade(address, versions=versions)
    assert dumped(server, database) == before
    made(address)


def test_an_unknown_revision_is_an_error(address: ServerAddress) -> None:
    made(address)
    with pytest.raises(SessionDBError, match="7777"):
        migrations.upgrade(address, "7777")


# -- the target ----------------------------------------------------------------


def test_a_database_reports_its_place_its_size_and_its_server(
    server: Server, address: ServerAddress
) -> None:
    target = PostgreSQLDatabase(address)
    facts = target.facts()
    assert (facts["path"], facts["exists"]) == (str(address), False)
    assert not target.exists()
    with pytest.raises(NotFoundError):
        target.verify()
    made(address)
    facts = target.facts()
    assert facts["exists"]
    assert facts["bytes"] > 100_000
    assert facts["server"].startswith("PostgreSQL 1")
    assert target.exists()
    target.verify()
    nowhere = PostgreSQLDatabase(ServerAddress(server.url("nowhere")))
    assert not nowhere.exists()
    assert nowhere.facts() == {"path": str(nowhere), "exists": False}
