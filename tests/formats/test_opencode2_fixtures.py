"""The reader of OpenCode 2 against stores that it wrote itself, and their own reports."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessiondb import ALL, Store
from sessiondb.formats import find
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession

RealStore = Callable[[str], Path]
STORES = ("opencode-2.0.15", "opencode-upgraded-2.0.15")
TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


@pytest.fixture(params=STORES, scope="module")
def folder(request: pytest.FixtureRequest, real_store: RealStore) -> Path:
    return real_store(request.param)


Found = dict[str, tuple[SourceSession, list[SourceMessage]]]


@pytest.fixture(scope="module")
def sources(folder: Path) -> Found:
    sessions: Found = {}
    for store in find(folder / "data"):
        for item in store.read():
            assert isinstance(item, SourceSession), item
            messages = list(item.messages)
            assert not [m for m in messages if isinstance(m, Problem)]
            sessions[item.source_id] = (item, messages)
    return sessions


def expected(folder: Path) -> Iterator[dict[str, Any]]:
    truth = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return (item for item in truth["sessions"] if item["store"])


def drafts_of(sources: Found, item: dict[str, Any]) -> list[MessageDraft]:
    return [m.draft for m in sources[item["tool_session_id"]][1]]


def parts_of(
    drafts: list[MessageDraft], kind: str, role: str = "assistant"
) -> list[Any]:
    return [p for d in drafts if d.role == role for p in d.parts if p.type == kind]


def test_every_session_is_found_with_its_title_and_place(
    folder: Path, sources: Found
) -> None:
    truth = {item["tool_session_id"]: item["store"] for item in expected(folder)}
    assert {name: source.title for name, (source, _) in sources.items()} == {
        name: store["title"] for name, store in truth.items()
    }
    for name, (source, _) in sources.items():
        assert source.worktree == "/home/dev/projects/acme"
        assert source.directory == truth[name].get("directory", source.worktree)
        assert source.version == truth[name]["version"]


def test_cost_and_tokens_add_up_to_what_the_session_says(
    folder: Path, sources: Found
) -> None:
    for item in expected(folder):
        drafts = drafts_of(sources, item)
        if item["store"].get("only_in_v1_tables"):
            continue
        own = [d for d in drafts if d.kind != "usage"]
        cost = sum(d.cost for d in own if d.cost is not None)
        assert cost == pytest.approx(item["store"]["message_cost_sum"])
        for kind in TOKENS:
            counts = [getattr(d.tokens, kind) or 0 for d in own if d.tokens is not None]
            assert sum(counts) == item["store"]["message_token_sum"].get(kind, 0)


def test_an_import_costs_what_opencode_says_it_cost(
    folder: Path, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        done = [r for s in find(folder / "data") for r in store.ingest(s.read())]
        ids = {r.source_id: r.id for r in done}  # type: ignore[union-attr]
        for item in expected(folder):
            session = store.session(ids[item["tool_session_id"]])
            cost = session.cost or 0.0
            if session.relation == "fork" and session.version == "1.18.33":
                cost += session.cost_inherited or 0.0  # 1.x counts copies again
            stated = item["store"]["session_cost"]
            # An export that is imported under new ids is stated twice, and counted once.
            assert cost == pytest.approx(0 if "import_of" in item else stated)
        again = [r for s in find(folder / "data") for r in store.ingest(s.read())]
        assert {r.outcome for r in again} == {"unchanged"}  # type: ignore[union-attr]


def test_records_are_all_there_once(folder: Path, sources: Found) -> None:
    for item in expected(folder):
        if item["store"].get("only_in_v1_tables"):
            continue
        counts: Counter[str] = Counter()
        source, messages = sources[item["tool_session_id"]]
        counts["inbox rows"] = len(source.data.get("inbox", ()))
        for draft in (m.draft for m in messages if m.draft.kind != "usage"):
            kind = draft.data.get("type") if draft.role == "event" else draft.role
            counts[f"message:{kind}"] += 1
            if draft.role == "assistant" and draft.time_completed is None:
                counts["message:assistant not completed"] += 1
            if kind == "idle":
                counts[f"idle:{draft.data['outcome']}"] += 1
            for part in draft.parts if draft.role == "assistant" else ():
                counts[f"part:{part.type}"] += 1
                if part.type == "tool":
                    counts[f"tool:{part.tool}:{part.status}"] += 1
        wanted = {
            key: number
            for key, number in item["store"]["record_counts"].items()
            if not key.startswith(("compaction:", "message with error", "v1:"))
        }
        assert +counts == wanted


def test_prompts_answers_and_reasoning_are_exact(folder: Path, sources: Found) -> None:
    for item in expected(folder):
        drafts = drafts_of(sources, item)
        prompts = [p.text for p in parts_of(drafts, "text", "user")]
        for prompt in item["user_prompts"]:
            quoted = prompt["text"].replace('"', '\\"')
            assert any(prompt["text"] in said or quoted in said for said in prompts)
        for kind, part_type in (
            ("assistant_texts", "text"),
            ("reasoning", "reasoning"),
        ):
            texts = [p.text for p in parts_of(drafts, part_type)]
            hashes = {hashlib.sha256(text.encode()).hexdigest() for text in texts}
            assert {a["sha256"] for a in item[kind] if a["found_in_store"]} <= hashes
        title = sources[item["tool_session_id"]][0].title
        everything = title + json.dumps(
            [
                [d.error, d.data, [(p.text, p.data, p.input) for p in d.parts]]
                for d in drafts
            ],
            ensure_ascii=False,
            default=repr,
        )
        for piece in item["unicode_must_survive"]:
            assert piece in everything
        for error in item["errors"]:
            assert error["message"] in everything


def test_calls_have_name_id_result_and_times(folder: Path, sources: Found) -> None:
    for item in expected(folder):
        calls = {p.call_id: p for p in parts_of(drafts_of(sources, item), "tool")}
        for call in item["tool_calls"]:
            part = calls[call["id"]]
            assert part.tool == call["name"]
            assert part.status in ("completed", "error")
            assert isinstance(part.input, dict)
            assert isinstance(part.text, str)
            assert part.time_started <= part.time_ended
            assert (part.outcome is not None) == (part.status == "error")


def test_parents_and_forks_are_known(folder: Path, sources: Found) -> None:
    order = list(sources)
    for item in expected(folder):
        source, messages = sources[item["tool_session_id"]]
        parent = item.get("parent_session_id") or item.get("fork_of_session_id")
        if "import_of" in item:
            labels = {known["label"]: known for known in expected(folder)}
            parent = labels[item["import_of"]]["tool_session_id"]
        assert source.parent_source_id == parent
        if parent is None:
            assert source.relation is None
            continue
        ids = [m.draft.id for m in sources[parent][1]]
        assert order.index(parent) < order.index(source.source_id)
        assert source.parent_message in ids
        # The event of a session's sum has no usage id.
        of_records = [m for m in messages if m.usage_id is not None]
        copied = [m.usage_id for m in of_records if m.usage_id != m.draft.id]
        if "fork_of" in item or "import_of" in item:
            assert source.relation == "fork"
            assert copied
            assert set(copied) <= set(ids)
            assert copied[-1] == source.parent_message
        else:
            assert (source.relation, copied) == ("subagent", [])
            assert source.call_id in {p.call_id for p in parts_of(
                [m.draft for m in sources[parent][1]], "tool")}  # fmt: skip


def test_a_fork_shares_with_its_original_what_it_took_over(
    folder: Path, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        for place in find(folder / "data"):
            list(store.ingest(place.read()))
        hidden: Any = {"archived": True, "subagents": True, "limit": 100}
        forks = [
            s for s in store.sessions(project=ALL, **hidden) if s.relation == "fork"
        ]
        assert forks
        for fork in forks:
            assert fork.parent_id is not None
            comparison = store.compare(fork.parent_id, fork)
            taken = [m for m in store.messages(fork) if m.inherited]
            assert len(comparison.common) >= len(taken) > 0
            assert [m.text for m in comparison.common] == [
                m.text for m in store.messages(fork)[: len(comparison.common)]
            ]
            assert not [m for m in comparison.only_b if m.inherited]


def test_complete_outputs_are_imported(folder: Path, sources: Found) -> None:
    files = (
        p for p in (folder / "data").rglob("*") if p.is_file() and p.suffix != ".db"
    )
    (large,) = [p for p in files if p.stat().st_size > 10**5]
    kept = [
        part.data["output_file"]["content"]
        for _, messages in sources.values()
        for m in messages
        for part in m.draft.parts
        if "output_file" in part.data
    ]
    assert set(kept) == {large.read_bytes()}


def test_reading_a_database_and_its_log_changes_no_byte_of_them(
    real_store: RealStore,
) -> None:
    folder = real_store("opencode-2.0.15") / "data-wal"
    files = [path for path in folder.iterdir() if not path.name.endswith("-shm")]
    before = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
    (store,) = find(folder / "opencode.db")
    (source,) = store.read()
    assert isinstance(source, SourceSession)
    assert len(list(source.messages)) > 1
    assert {
        path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files
    } == before
