"""Which session changed a file, whatever tool of whatever agent did it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiondb import ALL, Store, assistant, text, tool
from sessiondb.errors import InvalidInputError
from sessiondb.formats import find
from sessiondb.model.tools import files_changed

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@
-old
+new
*** Add File: src/b.py
+b
*** End Patch
"""
BLOCK = """Here it is.

src/a.py
```python
<<<<<<< SEARCH
old
=======
new
>>>>>>> REPLACE
```
"""
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize(
    ("name", "arguments", "paths"),
    [
        ("Edit", {"file_path": "/p/src/a.py", "old_string": "x"}, ["/p/src/a.py"]),
        ("write", {"filePath": "src/a.py", "content": PATCH}, None),
        ("apply_patch", PATCH, ["src/a.py", "src/b.py"]),
        ("apply_patch", {"input": PATCH}, ["src/a.py", "src/b.py"]),
        ("exec_command", {"cmd": ["bash", PATCH]}, ["src/a.py", "src/b.py"]),
        ("patch", {"patch": DIFF}, ["src/a.py"]),
        ("Read", {"file_path": "src/a.py"}, []),
        ("bash", {"command": "sed -i s/x/y/ src/a.py"}, []),
        ("Edit", None, []),
        ("Edit", {"file_path": 3}, []),
    ],
)
def test_a_call_changes_the_files_that_its_arguments_name(
    name: str, arguments: Any, paths: list[str] | None
) -> None:
    found = list(files_changed(name, arguments, None))
    assert found == paths if paths is not None else "src/a.py" in found


def changed(store: Store, file: str, **how: Any) -> list[tuple[str, int | None]]:
    page = store.search(file=file, **how)
    return [(hit.session.title, hit.seq) for hit in page]


@pytest.fixture
def edited(store: Store) -> Store:
    """Three sessions that change a file, and four that mention it."""
    for title, message in {
        "claude": assistant(tool("Edit", {"file_path": "/p/src/a.py"}, output="ok")),
        "codex": assistant(tool("apply_patch", {"input": PATCH}, output="ok")),
        "aider": assistant(text(BLOCK)),
        "read": assistant(tool("read", {"path": "src/a.py"}, output="old")),
        "said": assistant(text("src/a.py has a mistake")),
        "failed": assistant(tool("edit", {"path": "src/a.py"}, error="no such text")),
        "other": assistant(
            tool("write", {"path": "lib/src/a.py.bak"}, output="src/a.py")
        ),
    }.items():
        store.append(store.create_session(title=title, directory="/p"), message)
    return store


def test_only_what_changed_a_file_is_found_and_the_newest_first(edited: Store) -> None:
    expected = [("aider", 1), ("codex", 1), ("claude", 1)]
    for file in ("src/a.py", "a.py", "./src/a.py", "/p/src/a.py"):
        assert changed(edited, file) == expected, file
    assert changed(edited, "b.py") == [("codex", 1)]
    assert changed(edited, "c/src/a.py") == changed(edited, "/q/src/a.py") == []
    assert [hit.snippet for hit in edited.search(file="src/a.py")] == [
        "edit src/a.py", "apply_patch src/a.py", "Edit /p/src/a.py",
    ]  # fmt: skip


def test_words_narrow_a_search_for_a_file(edited: Store) -> None:
    page = edited.search("new -python", file="src/a.py")
    assert [hit.session.title for hit in page] == ["codex"]


def test_pages_of_changes_leave_no_gap_and_repeat_nothing(store: Store) -> None:
    for number in range(7):
        session = store.create_session(title=str(number))
        for _ in range(2):
            store.append(
                session, assistant(tool("write", {"path": "a.py"}, output="ok"))
            )
    for all_hits, expected in ((False, 7), (True, 14)):
        found: list[tuple[str, int | None]] = []
        cursor = None
        while True:
            page = store.search(file="a.py", all_hits=all_hits, limit=3, cursor=cursor)
            found += [(hit.session.title, hit.seq) for hit in page]
            if (cursor := page.next_cursor) is None:
                break
        assert len(found) == len(set(found)) == expected


@pytest.mark.parametrize(
    "how",
    [
        {}, {"file": "/"}, {"file": ""}, {"file": "a.py", "tool": "edit"},
        {"file": "a.py", "role": "tool"}, {"file": "a.py", "order": "rank"},
        {"file": "a.py", "cursor": "x"}, {"file": "a.py", "limit": 0},
    ],
)  # fmt: skip
def test_a_search_for_no_file_is_refused(store: Store, how: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        store.search(**how)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "aider-0.86.2", "claude-code-2.1.329", "codex-0.169.0", "gemini-cli-0.61.0",
        "goose-1.34.0", "oh-my-pi-18.2.3", "openai-agents-0.24.0", "opencode-1.18.33",
        "opencode-2.0.15", "pi-0.87.1", "qwen-code-0.24.4",
    ],
)  # fmt: skip
def test_the_edits_of_every_real_agent_are_found(
    name: str, real_store: Callable[[str], Path], store: Store
) -> None:
    for source in find(real_store(name) / "data"):
        list(store.ingest(source.read()))
    found = store.search(file="src/greet.py", project=ALL, archived=True, limit=100)
    by_view = {name for name, file in files_by_session(store) if "greet.py" in file}
    assert {hit.session.id for hit in found} == by_view != set()


def files_by_session(store: Store) -> set[tuple[str, str]]:
    with store.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT session_id, file FROM changed_file WHERE inherited = 0"
        ).all()
    return {(name, file) for name, file in rows}


def test_the_view_names_the_same_changes_for_plain_sql(edited: Store) -> None:
    by_title = {item.id: item.title for item in edited.sessions(project=ALL)}
    found = {(by_title[name], file) for name, file in files_by_session(edited)}
    assert found == {
        ("claude", "/p/src/a.py"), ("codex", "/p/src/a.py"), ("codex", "/p/src/b.py"),
        ("aider", "/p/src/a.py"), ("other", "/p/lib/src/a.py.bak"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "words", ['a "quote" and \\n and C:\\new', "\\\\n \\", "\t\x01 é 🎉", "]}'--", ""]
)
def test_the_view_reads_any_text_around_a_change(store: Store, words: str) -> None:
    session = store.create_session(directory="/p")
    patch = f"{words}\n{PATCH}{words}\n"
    store.append(session, assistant(tool("apply_patch", {"input": patch}, output="ok")))
    store.append(session, assistant(text(f"{words}\n{BLOCK}{words}")))
    store.append(session, assistant(tool("edit", {"path": words or "x"}, output="ok")))
    assert {file for _, file in files_by_session(store)} == {
        "/p/src/a.py", "/p/src/b.py", f"/p/{words or 'x'}",
    }  # fmt: skip
