"""Every field that may hold a secret is redacted, a new column included."""

from __future__ import annotations

from dataclasses import fields

import pytest
from samples import new_store

from sessiondb import assistant, tool, user
from sessiondb.formats import jsonl
from sessiondb.formats.redact import _FIELDS, PLACE, redacted

SECRET = "ghp_" + "a1" * 18
#: Names, paths and words of a fixed set: none of them is a text that a person writes.
NAMES = {
    "id", "project_id", "parent_id", "relation", "call_id", "parent_source_id", "root_id",
    "slug", "title_source", "directory", "version", "source", "source_id", "agent",
    "provider_id", "model_id", "model_source", "worktree", "vcs", "root_commit",
    "session_id", "turn_id", "role", "kind", "response_id", "usage_key", "finish", "type",
    "tool", "status", "priority", "path", "namespace",
}  # fmt: skip
#: Fields with a function of their own.
APART = {"share_url", "metadata", "parts", "input_json", "before", "after"}
NUMBERS = ("int", "bool", "float", "Tokens")


@pytest.mark.parametrize("record", _FIELDS, ids=lambda of: of.__name__)
def test_every_field_is_redacted_or_a_name(record: type) -> None:
    texts = {of.name for of in fields(record) if not str(of.type).startswith(NUMBERS)}
    assert texts - NAMES - APART == {*_FIELDS[record]} - APART


def test_nothing_of_an_export_keeps_a_secret() -> None:
    with new_store() as store:
        top = store.create_session(title=SECRET, metadata={"note": [SECRET]}).id
        said = store.append(top, user(f"use {SECRET}"))
        call = tool("sh", {"deep": [{"cmd": SECRET}]}, output=SECRET, title=SECRET)
        store.append(top, assistant(call, note=SECRET))
        store.label(top, said.id, SECRET)
        store.set_todos(top, [SECRET])
        store.add_prompt(SECRET, session=top)
        plain = list(jsonl.lines(store.export(top, **jsonl.READ)))
        clean = list(jsonl.lines(redacted(store.export(top, **jsonl.READ))))

    assert sum(SECRET in line for line in plain) >= 7
    assert not any(SECRET in line for line in clean)
    assert sum(PLACE in line for line in clean) == sum(SECRET in line for line in plain)
