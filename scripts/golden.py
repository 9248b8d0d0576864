"""Make tests/golden/schema-N.db and schema-N.json; called by scripts/golden."""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from sessiondb import (
    ALL,
    FileDiff,
    MessageDraft,
    SessionHandle,
    Store,
    Todo,
    assistant,
    context_source,
    event,
    file,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.model import SourceMessage, SourceSession, message_json, session_json
from sessiondb.schema.version import VERSION

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"
HOME = "/home/ada"
LONG = "The quick brown fox jumps over the lazy dog. " * 100


def talk(store: Store) -> SessionHandle:
    """Write a session with every role, a call of every state, and values that are hard to store."""
    session = store.create_session(
        title="Mend the parser", directory=f"{HOME}/parser", agent="build",
        provider="anthropic", model="claude-sonnet-4-5", metadata={"ticket": 17},
    )  # fmt: skip
    store.append(session, system("Answer briefly."))
    notes = context_source(
        "file", "AGENTS.md", scope="project", truncated=True, text="Use tabs."
    )
    store.append(session, event("context", text("Use tabs."), notes))
    files = [
        file(content=LONG.encode() * 2, filename=name) for name in ("a.py", "copy.py")
    ]
    question = store.append(
        session,
        user("Fix the off-by-one", file("file:///a.py", mime="text/x-python"), *files),
    )
    store.append(
        session,
        assistant(
            reasoning("Look at the loop first."),
            text("Reading it."),
            tool("read", {"path": "a.py"}, call_id="call_1", output=LONG),
            tool("bash", {"command": "make"}, call_id="call_2", error="no rule", outcome="failed"),
            tool("edit", {"path": "a.py", "text": LONG}, call_id="call_3"),
        ),
        cost=0.0125, tokens={"input": 1200, "output": 88, "cache_read": 900}, finish="tool-calls",
    )  # fmt: skip
    store.append(session, system("A note.", id="note"))
    store.append(
        session,
        assistant("NUL \0, half a pair \ud83d, emoji 🦊, and ünïcödé."),
        finish="stop",
    )
    store.append(session, user("And on another branch?"), after=question)
    change = {"provider": "openai", "model": "gpt-5"}
    store.append(session, MessageDraft("event", kind="model_change", data=change))
    store.append(session, assistant("Writing …"), open=True)
    store.label(session, question, "start")
    store.set_todos(
        session, [Todo("read", status="completed"), Todo("write", priority="high")]
    )
    store.set_diffs(
        session, [FileDiff("a.py", before=LONG.encode(), after=b"", deletions=1)]
    )
    store.set_share(session, "https://example.org/s/1")
    store.set_revert(session, {"message_id": "note", "snapshot": "abc"})
    store.set_permission(session, [{"tool": "bash", "action": "ask"}])
    return session


def import_family(store: Store) -> None:
    """Import a session and its fork."""
    asked = [
        SourceMessage(user("Why?", id="m1")),
        SourceMessage(assistant("Because.", id="m2")),
    ]
    common = {"directory": f"{HOME}/lexer", "worktree": f"{HOME}/lexer", "digest": "1"}
    origin = SourceSession(
        "elsewhere", "s1", f"{HOME}/s1.json", messages=asked, **common
    )
    again = [
        SourceMessage(user("Why?", id="c1")),
        SourceMessage(user("Really?", id="c2")),
    ]
    copy = SourceSession(
        "elsewhere", "s2", f"{HOME}/s2.json", messages=again,
        parent_source_id="s1", relation="fork", **common,
    )  # fmt: skip
    list(store.ingest([origin, copy]))


def fill(store: Store) -> None:
    """Write a bit of everything."""
    store.set_value(("users", 'ada "a"'), "settings", {"theme": "dark", "sizes": [12]})
    store.set_value("files", "empty", b"")
    session = talk(store)
    fork = store.fork(session)
    store.append(fork, user("Try it without the loop"))
    child = store.create_session(
        parent=session, call_id="call_1", directory=f"{HOME}/parser"
    )
    store.append(child, user("Find every loop"))
    store.append(child, assistant(tool("grep", {"pattern": "for"}, call_id="g")))
    store.append(child, MessageDraft("tool", (tool_result("g", "a.py:3"),)))
    old = store.create_session(title="Long ago", directory=f"{HOME}/parser")
    store.append(old, user("hello"))
    store.archive(old)
    gone = store.create_session(title="Gone", directory=f"{HOME}/parser")
    store.append(gone, user("Forget this"))
    store.delete(gone)
    store.add_prompt("Fix the off-by-one", session=session)
    store.add_prompt("ls -la", directory=f"{HOME}/parser")
    store.note_used(session, "tty1", f"{HOME}/parser")
    import_family(store)


def value(stored: Any) -> Any:
    """Return a stored value as JSON: a BLOB is an object with its hexadecimal digits."""
    return {"hex": stored.hex()} if isinstance(stored, bytes) else stored


def rows(path: Path) -> dict[str, Any]:
    """Return every row of every table, in the order of the tables' own numbers."""
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        tables = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        for (table,) in connection.execute(
            f"{tables} AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ):
            cursor = connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
            columns = [column[0] for column in cursor.description]
            found[table] = {
                "columns": columns,
                "rows": [list(map(value, row)) for row in cursor],
            }
    return found


def sessions(store: Store) -> list[dict[str, Any]]:
    """Return every session with every message, as the command line shows them."""
    found = []
    for session in store.sessions(
        project=ALL, archived=True, subagents=True, limit=100
    ):
        messages = store.messages(session.id, branches=True)
        found.append(
            {**session_json(session), "messages": list(map(message_json, messages))}
        )
    return json.loads(json.dumps(found, default=value))  # type: ignore[no-any-return]


def target() -> Path:
    """Return the file to write; it exists only if the caller means to replace it."""
    parser = argparse.ArgumentParser(prog="scripts/golden", description=__doc__)
    parser.add_argument(
        "--replace", action="store_true", help="write the file of this schema again"
    )
    replace = parser.parse_args().replace
    path = FOLDER / f"schema-{VERSION}.db"
    if path.exists() and not replace:
        parser.error(
            f"{path.name} exists. A new schema has a new VERSION in schema/version.py; while no "
            f"release has written schema {VERSION}, pass --replace"
        )
    return path


def main() -> None:
    """Write both files."""
    path = target()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "sessions.db")
        with Store.open(made, source="golden") as store:
            fill(store)
            shown = sessions(store)
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("VACUUM INTO ?", (str(path),))
    stored = json.dumps({"sessions": shown, "tables": rows(path)}, indent=1)
    path.with_suffix(".json").write_text(stored + "\n")
    print(f"{path}: {path.stat().st_size} bytes, {len(shown)} sessions")


if __name__ == "__main__":
    main()
