"""A column is added by the table of CONTRIBUTING, and nothing else has to change."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from contributing import ROOT, Project

pytestmark = pytest.mark.slow

#: What a contributor writes: file → pattern, and what comes in its place.
EDITS = {
    "src/sessiondb/schema/tables.py": (
        r'(?s)(^message = .*?blob_ref\("data_blob"\),\n)', r'\1    text_column("tone"),\n',
    ),
    "src/sessiondb/schema/rows.py": (
        r"(?s)(^class MessageRow.*?data_blob: str \| None = None\n)",
        r"\1    tone: str | None = None\n",
    ),
    "src/sessiondb/model/draft.py": (
        r"(?s)(^class MessageDraft.*?    response_id: str \| None = None\n)"
        r"(.*^class MessageFields.*?    response_id: str \| None\n)",
        r"\1    tone: str | None = None\n\2    tone: str | None\n",
    ),
    "src/sessiondb/model/records.py": (
        r"(?s)(^class Message:.*?    response_id: str \| None\n)",
        r"\1    tone: str | None\n",
    ),
    "src/sessiondb/effects/encode.py": (
        r"(?s)(^    return MessageRow\(\n.*?        data_blob,\n)",
        r'\1        string(draft.tone, "tone"),\n',
    ),
    "docs/FORMAT.md": (
        r"(?s)(^### message\n.*?^\| `data_blob` \| TEXT \| \|\n)",
        r"\1| `tone` | TEXT | how it was said |\n",
    ),
    "docs/LIBRARY.md": (r"error time response_id`", "error time response_id tone`"),
    "docs/JSONL.md": (r"`response_id`, `usage_key`", r"`response_id`, `tone`, `usage_key`"),
    "tests/bad_input/test_hostile_sources.py": (
        r'"response_id": "text",', r'\g<0> "tone": "text",',
    ),
    "tests/repository/test_derived_columns.py": (
        r'"response_id usage_key cost', '"response_id tone usage_key cost',
    ),
}  # fmt: skip
#: Written by the commands of the page.
GENERATED = {
    "src/sessiondb/engine/sqlite/statements.sql",
    "src/sessiondb/engine/sqlite/tables.sql",
    "src/sessiondb/engine/postgresql/statements.sql",
    "src/sessiondb/engine/postgresql/tables.sql",
    "src/sessiondb/schema/columns.py",
    "migrations/versions/0001_initial.py",
    "migrations/postgresql/versions/0001_initial.py",
    "tests/golden/schema-1.db",
    "tests/golden/schema-1.json",
}
#: The tests that compare columns with something, anywhere.
TESTS = (
    "tests/migrations/test_golden.py", "tests/migrations/test_schema.py",
    "tests/docs/test_format.py", "tests/test_statements.py", "tests/docs/test_pages.py", "tests/test_rows.py",
    "tests/docs/test_payload_keys.py",
    "tests/formats/test_opencode_records.py", "tests/formats/test_jsonl_documented.py",
    "tests/bad_input/test_hostile_sources.py::"
    "test_each_field_that_a_reader_can_fill_is_in_the_table",
    "tests/repository/test_derived_columns.py::"
    "test_every_column_is_derived_or_states_something",
)  # fmt: skip

#: A program that states the new column, and looks for it wherever a message goes.
PROGRAM = """
import json, sys
from sessiondb import ALL, AsyncStore, Store, user
from sessiondb.formats import exporter, find
from sessiondb.model import message_json

with Store.open("a.db") as store:
    session = store.create_session(title="t", directory="/tea")
    store.append(session, user("Hello", id="m1"), tone="dry")
    fork = store.fork(session)
    (message,) = store.messages(session)
    shown = [message.tone, message_json(message)["tone"], store.messages(fork)[0].tone]
    (document,) = exporter("jsonl").write([store.export(session)], detail="full")
    with open("log.jsonl", "w") as file:
        file.writelines(document.chunks)
for source in ("log.jsonl", "a.db"):
    with Store.open(f"of {source}.db") as store:
        for found in find(source):
            list(store.ingest(found.read()))
        session, *_ = store.sessions(project=ALL)
        shown.append(store.messages(session)[0].tone)
print(json.dumps(shown))
"""


def files_of_the_page() -> set[str]:
    """Return the files of the table under the heading *A new column*."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.partition("### A new column\n")[2].partition("\n### ")[0]
    return set(re.findall(r"(?m)^\| `([\w/.]+)` \|", section))


def test_a_new_column_changes_what_the_page_names_and_every_record_shows_it(
    tmp_path: Path,
) -> None:
    assert EDITS.keys() == files_of_the_page()
    project = Project(tmp_path)
    for file, (pattern, replacement) in EDITS.items():
        project.edit(file, pattern, replacement)
    for script in ("scripts/freeze_statements.py", "scripts/freeze_schema.py"):
        frozen = project.run(script)
        assert frozen.returncode == 0, frozen.stderr
    written = project.run("scripts/golden.py", "--replace")
    assert written.returncode == 0, written.stderr
    assert project.changed() == EDITS.keys() | GENERATED

    # The slow ones among them are about other releases and other columns.
    tested = project.test("-m", "not slow", *TESTS)
    assert tested.returncode == 0, tested.stdout[-3000:]

    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], cwd=tmp_path, check=False,
        capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path / "src")},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == ["dry"] * 5
