"""The reader against stores that real OpenCode versions wrote, and their own reports."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from opencode_reading import session_diff

from sessiondb.formats import find
from sessiondb.formats.opencode.v1.records import export_json
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession

RealStore = Callable[[str], Path]
STORES = (
    "opencode-1.18.33",
    "opencode-migrated-1.2.27",
    "opencode-1.1.65",
    "opencode-0.5.29",
)
TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


@pytest.fixture(params=STORES)
def folder(request: pytest.FixtureRequest, real_store: RealStore) -> Path:
    return real_store(request.param)


def read(folder: Path) -> dict[str, tuple[SourceSession, list[SourceMessage]]]:
    sources = {}
    for store in find(folder / "data"):
        for item in store.read():
            assert isinstance(item, SourceSession), item
            messages = list(item.messages)
            assert not [m for m in messages if isinstance(m, Problem)]
            sources[item.source_id] = (item, messages)
    return sources


#: What a real store holds, read once for the tests that only look at it.
sessions = cache(read)


def expected(folder: Path) -> Iterator[dict[str, Any]]:
    truth = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return (item for item in truth["sessions"] if item.get("tool_session_id"))


def parts_of(
    messages: list[SourceMessage], kind: str, role: str = "assistant"
) -> list[Any]:
    drafts = [m.draft for m in messages if m.draft.role == role]
    return [part for draft in drafts for part in draft.parts if part.type == kind]


def test_every_session_of_a_real_store_is_found_with_its_title(folder: Path) -> None:
    sources = sessions(folder)
    titles = {
        item["tool_session_id"]: item["store"]["title"] for item in expected(folder)
    }
    assert {name: session.title for name, (session, _) in sources.items()} == titles
    assert {session.directory for session, _ in sources.values()} == {
        "/home/dev/projects/acme"
    }
    assert {session.worktree for session, _ in sources.values()} == {
        "/home/dev/projects/acme"
    }


def test_cost_and_tokens_of_a_real_store_add_up(folder: Path) -> None:
    sources = sessions(folder)
    for item in expected(folder):
        _, messages = sources[item["tool_session_id"]]
        drafts = [m.draft for m in messages]
        cost = sum(d.cost for d in drafts if d.cost is not None)
        assert cost == pytest.approx(item["store"]["message_cost_sum"])
        for kind in TOKENS:
            counts = [getattr(d.tokens, kind) for d in drafts if d.tokens is not None]
            assert sum(counts) == item["store"]["message_token_sum"][kind]


def test_records_of_a_real_store_are_all_there_once(folder: Path) -> None:
    sources = sessions(folder)
    for item in expected(folder):
        counts: Counter[str] = Counter()
        for message in sources[item["tool_session_id"]][1]:
            draft = message.draft
            counts[f"message:{draft.role}"] += 1
            for part in draft.parts:
                counts[f"part:{part.type}"] += 1
                if part.type == "tool":
                    counts[f"tool:{part.tool}:{part.status}"] += 1
        wanted = item["store"]["record_counts"]
        assert counts == {key: wanted[key] for key in wanted if key in counts}
        assert {
            key for key in wanted if key.startswith(("tool:", "message:user"))
        } <= set(counts)


def test_prompts_answers_and_reasoning_of_a_real_store_are_exact(folder: Path) -> None:
    sources = sessions(folder)
    for item in expected(folder):
        _, messages = sources[item["tool_session_id"]]
        prompts = [p.text for p in parts_of(messages, "text", "user") if not p.data]
        for prompt in item["user_prompts"]:
            assert any(prompt["text"].replace('"', '\\"') in text or prompt["text"] in text
                       for text in prompts)  # fmt: skip
        for kind, part_type in (
            ("assistant_texts", "text"),
            ("reasoning", "reasoning"),
        ):
            texts = [p.text for p in parts_of(messages, part_type)]
            hashes = {hashlib.sha256(text.encode()).hexdigest() for text in texts}
            for answer in item[kind]:
                # Versions before 1.2 trim the text of a model; then the store is right.
                if answer["found_in_store"] and "1.18" in folder.name:
                    assert answer["sha256"] in hashes
        if item["final_text"] and "interrupted" not in item:
            texts = [p.text.rstrip() for p in parts_of(messages, "text")]
            assert item["final_text"].rstrip() in texts
        everything = "".join(
            str(p.text) + json.dumps(p.data, ensure_ascii=False, default=str) + str(p.input)
            for m in messages
            for p in m.draft.parts
        ) + str([m.draft.error for m in messages])  # fmt: skip
        for piece in item["unicode_must_survive"]:
            assert piece in everything


def test_calls_of_a_real_store_have_name_id_and_times(folder: Path) -> None:
    sources = sessions(folder)
    for item in expected(folder):
        _, messages = sources[item["tool_session_id"]]
        calls = {p.call_id: p for p in parts_of(messages, "tool")}
        for call in item["tool_calls"]:
            if call["id"] in item["tool_call_ids_not_in_store"]:
                continue
            part = calls[call["id"]]
            assert part.tool == call["name"]
            assert part.status in ("completed", "error")
            assert isinstance(part.input, dict)
            assert isinstance(part.text, str)
            assert part.time_started <= part.time_ended
            assert (part.outcome is not None) == (part.status == "error")


@pytest.mark.slow
def test_parents_and_forks_of_a_real_store_are_known(folder: Path) -> None:
    sources = sessions(folder)
    order = list(sources)
    for item in expected(folder):
        session, messages = sources[item["tool_session_id"]]
        parent = item.get("parent_session_id") or item.get("fork_of_session_id")
        assert session.parent_source_id == parent
        copied = [m for m in messages if m.usage_id != m.draft.id]
        if parent is None:
            assert session.relation is None
            continue
        assert order.index(parent) < order.index(session.source_id)
        ids = [m.draft.id for m in sources[parent][1]]
        assert session.parent_message in ids
        if "fork_of" in item:
            assert session.relation == "fork"
            assert [m.usage_id for m in copied] == ids[: len(copied)]
            assert len(messages) - len(copied) == 1 + item["n_provider_responses"]
        else:
            assert session.relation == "subagent"
            assert not copied
            assert session.call_id in {
                p.call_id for p in parts_of(sources[parent][1], "tool")
            }


def test_the_tree_and_the_database_made_from_it_give_the_same(
    real_store: RealStore,
) -> None:
    tree, database = (
        sessions(real_store(name))
        for name in ("opencode-1.1.65", "opencode-migrated-1.2.27")
    )
    assert tree.keys() == database.keys()
    for name, (session, messages) in tree.items():
        other, others = database[name]
        assert [_core(m.draft) for m in messages] == [_core(m.draft) for m in others]
        for field in ("title", "version", "permission", "summary_additions", "relation",
                      "parent_source_id", "parent_message", "call_id", "root_commit"):  # fmt: skip
            assert getattr(session, field) == getattr(other, field)


def _core(draft: MessageDraft) -> tuple[Any, ...]:
    parts = [
        (p.id, p.type, p.text, p.input, p.time_started, p.time_ended)
        for p in draft.parts
    ]
    return (
        draft.id,
        draft.turn_id,
        draft.cost,
        draft.tokens,
        draft.time_created,
        parts,
    )


def test_records_of_version_0_5_keep_everything(real_store: RealStore) -> None:
    folder = real_store("opencode-0.5.29")
    (store,) = find(folder)
    for session in store.read():
        assert isinstance(session, SourceSession)
        drafts = [m.draft for m in session.messages if isinstance(m, SourceMessage)]
        exported = export_json(session, drafts)
        for entry in exported["messages"]:
            file = (
                store.path
                / "message"
                / session.source_id
                / f"{entry['info']['id']}.json"
            )
            record = json.loads(file.read_text(encoding="utf-8"))
            assert {key: entry["info"][key] for key in record} == record
            for part in entry["parts"]:
                place = store.path / "part" / session.source_id / part["messageID"]
                file = place / f"{part['id']}.json"
                assert part == json.loads(file.read_text(encoding="utf-8"))


def test_session_diffs_of_a_real_tree_are_read_completely(
    real_store: RealStore,
) -> None:
    folder = real_store("opencode-1.1.65")
    (store,) = find(folder)
    for session in store.read():
        assert isinstance(session, SourceSession)
        file = store.path / "session_diff" / f"{session.source_id}.json"
        assert session_diff(session) == json.loads(file.read_text(encoding="utf-8"))


def test_cut_output_of_a_real_store_comes_along(real_store: RealStore) -> None:
    for name in ("opencode-1.18.33", "opencode-1.1.65"):
        folder = real_store(name)
        (file,) = (folder / "data").rglob("tool-output/*")
        outputs = [
            part.data["output_file"]
            for _, messages in sessions(folder).values()
            for part in parts_of(messages, "tool")
            if "output_file" in part.data
        ]
        wanted = {"name": f"tool-output/{file.name}", "content": file.read_bytes()}
        assert outputs == [wanted]


def test_reading_changes_no_byte_of_a_real_store(folder: Path) -> None:
    def content() -> dict[Path, bytes]:
        files = [p for p in (folder / "data").rglob("*") if p.is_file()]
        return {path: path.read_bytes() for path in files}

    before = content()
    read(folder)
    assert content() == before
