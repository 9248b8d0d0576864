"""A process that reads or appends loads what it needs and no more."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessiondb import Store, assistant, user

pytestmark = pytest.mark.slow

#: Each takes a tenth of the start of Python at least; SQLAlchemy takes 25 of them.
HEAVY = {
    "aiosqlite", "alembic", "asyncio", "dataclasses", "importlib.metadata", "inspect",
    "psycopg",
    "sessiondb.aio", "sessiondb.formats.registry",
    "sessiondb.formats", "sessiondb.importing", "sessiondb.maintenance",
    "sessiondb.schema.tables", "sessiondb.statements", "socket", "sqlalchemy", "ulid",
    "urllib.request", "uuid",
}  # fmt: skip
#: What a process loads on purpose.
ITS_OWN = {
    # The name of a new database.
    "new file": {"uuid"},
    # All: click needs them; show and search: a transcript is a format.
    "list": {"inspect", "uuid"}, "stats": {"dataclasses", "inspect", "uuid"},
    "show": {"inspect", "sessiondb.formats", "uuid"},
    "search": {"inspect", "sessiondb.formats", "uuid"},
}  # fmt: skip
OPEN = "from sessiondb import Store, user\nwith Store.open('s.db') as store: "
PROGRAMS = {
    "import": "from sessiondb import Store",
    "open": f"{OPEN}pass",
    "append": f"{OPEN}store.append('ses_a', user('Hello'))",
    "messages": f"{OPEN}assert store.messages('ses_a')",
    "fork": f"{OPEN}store.fork('ses_a')",
    "new file": f"{OPEN.replace('s.db', 'new.db')}pass",
}
COMMANDS = {
    "list": ["list", "-a"],
    "show": ["show", "ses_a"],
    "search": ["search", "-a", "hello"],
    "stats": ["stats", "-a"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a database."""
    folder = tmp_path_factory.mktemp("start")
    with Store.open(folder / "s.db") as store:
        session = store.create_session(id="ses_a", directory="/tea")
        store.append(session, user("Hello"))
        store.append(session, assistant("Hello to you"), model="m", tokens={"input": 1})
    return folder


def loaded(place: Path, *arguments: str) -> set[str]:
    """Return the modules that Python loads when it runs with *arguments*."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], cwd=place, check=True,
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    return set(re.findall(r"(?m)^import time:.*\| +([\w.]+)$", process.stderr))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_loads_nothing_heavy(place: Path, name: str) -> None:
    modules = loaded(place, "-c", PROGRAMS[name])
    assert "sessiondb.database.facade" in modules
    assert modules & HEAVY == ITS_OWN.get(name, set())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_nothing_heavy(place: Path, name: str) -> None:
    modules = loaded(place, "-m", "sessiondb", "--db", "s.db", *COMMANDS[name])
    assert "sessiondb.database.facade" in modules
    assert modules & HEAVY == ITS_OWN[name]


def test_an_import_loads_the_readers_of_the_stores_that_it_finds(place: Path) -> None:
    folder = place / "logs"
    folder.mkdir(exist_ok=True)
    (folder / "chat.jsonl").write_text('{"role": "user", "content": "Hello"}\n')
    history = "# aider chat started at 2026-02-02 02:01:00\n\n#### Hello\n\nHello!\n"
    (folder / ".aider.chat.history.md").write_text(history)
    modules = loaded(place, "-m", "sessiondb", "--db", "s.db", "import", "logs")
    assert "sessiondb.formats.codex.logs" in modules
    drafts = {name for name in modules if name.endswith(".drafts")}
    assert drafts == {"sessiondb.formats.aider.drafts"}


def test_an_import_with_nothing_new_loads_nothing_that_writes(place: Path) -> None:
    folder = place / "again"
    folder.mkdir(exist_ok=True)
    history = "# aider chat started at 2026-02-02 02:01:00\n\n#### Hello\n\nHello!\n"
    (folder / ".aider.chat.history.md").write_text(history)
    command = ["-m", "sessiondb", "--db", "s.db", "import", "again"]
    written = {name for name in loaded(place, *command) if ".importing.rows" in name}
    assert written
    again = {name for name in loaded(place, *command) if ".importing.rows" in name}
    assert not again
