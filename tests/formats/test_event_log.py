"""Plain logs: their answers, their spellings, and their distinction from others."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import imported
import pytest
import samples
from samples import new_store, read_into
from samples_event_log import (
    PNG,
    SOURCES,
    T0,
    Record,
    first,
    line,
    meta,
    moment,
    other_spellings,
    write,
)

from sessiondb import (
    ALL,
    ContextSource,
    PartDraft,
    Store,
    Tokens,
    assistant,
    context_source,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.model import (
    Document,
    Imported,
    Message,
    MessageDraft,
    Problem,
    Session,
    SourceMessage,
    SourceSession,
)


def taken(store: Store, folder: Path, *records: Record) -> Session:
    """Import a log of *records*, without a problem."""
    return imported.taken(store, write(folder / "log.jsonl", *records))


def said(store: Store, folder: Path, *records: Record) -> list[Message]:
    return list(store.messages(taken(store, folder, meta(), *records), branches=True))


def written(store: Store, session: Session) -> list[Record]:
    to = exporter("event-log")
    (document,) = to.write([store.export(session, **to.read)], detail="full")
    assert isinstance(document, Document)
    return [json.loads(text) for text in "".join(document.chunks).splitlines()]


# -- whose a log is -------------------------------------------------------------------

OURS = {**meta("ses_1"), "source": "mine"}
OTHERS: dict[str, list[Record]] = {
    "ours": [OURS, {**line(1, "user", message_id="m1"), "session_id": "ses_1"}],
    "ours without messages": [OURS],
    "ours, one line without a session": [
        OURS,
        line(1, "user_message", text="Hi"),
        {**line(1, "user", message_id="m1"), "session_id": "ses_1"},
    ],
    "Codex": [{"timestamp": moment(0), "type": "session_meta", "payload": {"id": "c1"}}],
    "pi": [{"type": "session", "version": 3, "id": "p1", "timestamp": moment(0)}],
    "a log of no agent": [line(1, "started"), line(2, "stopped")],
}  # fmt: skip
THEIRS: dict[str, list[Record]] = {
    "a conversation": first(),
    "times as texts": other_spellings(),
    "no message yet": [meta()],
    "a version with a name": [{**record, "schema_version": "2.0-beta"} for record in first()],
    "the session further down": [line(0, "context", sources=[]), meta(), line(1, "user_message", text="Hi")],
    "one line with a session": [meta(), {**line(1, "user_message", text="Hi"), "session_id": "s1"}, line(2, "assistant_finished", text="Ho"), line(3, "session_finished")],
}  # fmt: skip


def formats_of(path: Path) -> list[str]:
    return [found.source for found in find(path)]


@pytest.mark.parametrize("name", THEIRS)
def test_a_plain_log_is_not_another_log(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", *THEIRS[name])
    assert formats_of(path) == ["event-log"]


@pytest.mark.parametrize("name", OTHERS)
def test_another_log_is_not_a_plain_log(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", *OTHERS[name])
    assert "event-log" not in formats_of(path)


def test_our_own_log_stays_ours(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_bytes(samples.log())
    assert formats_of(tmp_path) == ["jsonl"]


def test_a_log_without_its_session_is_a_problem(store: Store, tmp_path: Path) -> None:
    records = [line(1, "user_message", text="Hi"), line(2, "assistant_started")]
    path = write(tmp_path / "log.jsonl", *records)
    (problem,) = read_into(store, path)
    assert isinstance(problem, Problem)
    assert problem.why == "the log has no session_meta with an id"


# -- what a log says -------------------------------------------------------------------


def test_the_session_is_that_of_its_first_record(store: Store, tmp_path: Path) -> None:
    found = taken(store, tmp_path, *first())
    assert (found.source, found.source_id) == ("event-log", "s1")
    assert (found.directory, found.agent) == ("/home/ada/tea", "build")
    assert (found.model_id, found.time_created) == ("large", T0)
    assert found.title == "Tea and coffee"


def test_a_fork_and_a_subagent_name_their_parent(store: Store, tmp_path: Path) -> None:
    for number, relation in enumerate(("fork", "subagent")):
        head = meta(f"s{number}", parent_session_id="s9", relation=relation)
        found = taken(store, tmp_path, head, line(1, "user_message", text="Hi"))
        assert (found.parent_source_id, found.relation) == ("s9", relation)


def test_times_are_texts_or_ms(store: Store, tmp_path: Path) -> None:
    texts = [{**line(1, "user_message", text="1"), "time": moment(7)}]
    more = [line(2, "user_message", text="2"), {**line(3, "user_message", text="3"), "time": 17}]  # fmt: skip
    times = [m.time_created for m in said(store, tmp_path, *texts, *more)]
    assert times == [T0 + 1007000 - 1000000, T0 + 2, T0]


@pytest.mark.parametrize(
    "time", [T0 + 7000.75, "2026-02-02T02:40:07", "2026-02-02 02:40:07.0001"]
)
def test_times_with_a_fraction_or_without_an_offset_are_in_utc(
    time: object, store: Store, tmp_path: Path
) -> None:
    records = [
        meta() | {"time": time},
        line(1, "user_message", text="Hi") | {"time": time},
    ]
    session = taken(store, tmp_path, *records)
    (message,) = store.messages(session)
    assert session.time_created == message.time_created == T0 + 7000
    assert written(store, session) == records


def test_a_session_was_used_when_its_last_record_was_written(
    store: Store, tmp_path: Path
) -> None:
    begun = [meta(), line(1, "user_message", text="Hi"), line(2, "assistant_started")]
    session = taken(store, tmp_path, *begun, line(9, "assistant_finished", text="Ho"))
    assert (session.time_created, session.time_updated) == (T0, T0 + 9)


def test_a_line_that_was_written_twice_counts_once(
    store: Store, tmp_path: Path
) -> None:
    records = [record for record in first() for _ in range(2)]
    session = taken(store, tmp_path / "twice", *records)
    once = taken(store, tmp_path / "once", meta("s2"), *first()[1:])
    messages = store.messages(session)
    repeated = [m for m in messages if m.kind == "repeated"]
    assert len(repeated) == len(first())
    assert session.tokens == once.tokens
    assert session.cost == once.cost
    assert [m.text for m in messages if m.kind != "repeated"] == imported.texts(
        store.messages(once)
    )
    (ending,) = [m for m in messages if m.time_completed is None]
    assert ending.id == "s1:14"
    assert written(store, session) == records


def test_an_answer_is_one_message_with_its_calls(store: Store, tmp_path: Path) -> None:
    _, _, answer, *rest = store.messages(taken(store, tmp_path, *first()))
    assert answer.role == "assistant"
    assert (answer.model_id, answer.provider_id) == ("large", "fake")
    assert (answer.finish, answer.cost) == ("stop", 0.25)
    assert answer.tokens == Tokens(10, 4, 3, 2, 1)
    assert (answer.time_created, answer.time_completed) == (T0 + 3, T0 + 10)
    calls = [
        (p.tool, p.call_id, p.status, p.outcome, p.text, p.input)
        for p in answer.parts
        if p.type == "tool"
    ]
    assert calls == [
        ("bash", "c1", "completed", None, "Monday", {"command": "date"}),
        ("read", "c2", "error", "failed", "No such file", {"path": "a"}),
        ("task", "c3", "error", "denied", "", {}),
    ]
    texts = [(p.type, p.text) for p in answer.parts if p.type != "tool"]
    assert texts == [("reasoning", "Hm"), ("text", "Two minutes.")]
    kinds = [message.kind or message.role for message in rest[:5]]
    assert kinds == ["tool", "tool", "weather", "tool", "title_change"]


def test_an_answer_that_did_not_end_is_open(store: Store, tmp_path: Path) -> None:
    *_, answer, _, _ = store.messages(taken(store, tmp_path, *first()))
    assert (answer.role, answer.model_id) == ("assistant", "small")
    assert answer.time_completed is None


def test_calls_after_the_end_of_an_answer_belong_to_it(
    store: Store, tmp_path: Path
) -> None:
    messages = said(
        store, tmp_path,
        line(1, "assistant_started"), line(2, "assistant_finished", text="Look", finish="tool_calls"),
        line(3, "tool_started", call_id="c1", name="ls"), line(4, "tool_finished", call_id="c1", output="a"),
        line(5, "assistant_started"), line(6, "assistant_finished", text="Done"),
    )  # fmt: skip
    shape = [[(p.type, p.text) for p in message.parts] for message in messages]
    look = [("text", "Look"), ("tool", "a")]
    assert shape == [look, [("tool-result", "a")], [("text", "Done")]]
    assert messages[0].finish == "tool-calls"


def test_texts_may_be_records_of_their_own(store: Store, tmp_path: Path) -> None:
    records = [
        meta(), line(1, "assistant_started"), line(2, "reasoning_finished", text="Hm"), line(3, "text_finished", text="Look"),
        line(4, "tool_started", call_id="c1", name="ls"), line(5, "tool_finished", call_id="c1", output="a"),
        line(6, "assistant_text", content="Done"), line(7, "assistant_text", content=["odd"]), line(8, "assistant_finished"),
    ]  # fmt: skip
    session = taken(store, tmp_path, *records)
    answer, _ = store.messages(session)
    shape = [(part.type, part.text) for part in answer.parts]
    said = [("reasoning", "Hm"), ("text", "Look"), ("tool", "a"), ("text", "Done")]
    assert shape == [*said, ("custom", None)]
    assert answer.time_completed == T0 + 8
    assert written(store, session) == records


def test_answers_of_two_names_are_two(store: Store, tmp_path: Path) -> None:
    messages = said(
        store, tmp_path, line(1, "assistant_started", message_id="a"),
        line(2, "assistant_finished", message_id="b", text="B"),
    )  # fmt: skip
    assert [message.id for message in messages] == ["a", "b"]


def test_a_call_without_a_name_and_a_result_without_a_call_are_kept(
    store: Store, tmp_path: Path
) -> None:
    call, result = said(
        store, tmp_path, line(1, "tool_started", call_id="c1", arguments={"a": 1}),
        line(2, "tool_finished", call_id="c9", output="found"),
    )  # fmt: skip
    assert call.parts[0].type == "custom"
    assert (result.role, result.parts[0].text) == ("tool", "found")


def test_other_spellings_say_the_same(store: Store, tmp_path: Path) -> None:
    system, asked, answer, _, more = store.messages(
        taken(store, tmp_path, *other_spellings())
    )
    assert (system.role, system.text) == ("system", "Be brief")
    assert (asked.id, asked.text) == ("m1", "Look:")
    assert asked.parts[1].data["content"] == base64.b64decode(PNG)
    assert answer.parts[0].input == {"command": "ls"}
    assert answer.parts[0].text == '{"files":["a.py"]}'
    assert [p.text for p in answer.parts[1:]] == ["Hm", "Done."]
    assert (more.text, more.model_id, more.error) == ("And more.", "small", {"message": "late"})  # fmt: skip


USAGES: dict[str, tuple[Record, Tokens | None]] = {
    "disjoint": ({"input": 5, "output": 3, "reasoning": 2}, Tokens(5, 3, 2)),
    "of Anthropic": ({"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 1}, Tokens(5, 3, None, 7, 1)),
    "of OpenAI": ({"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}, Tokens(5, 3, 2, 4)),
    "a total of two": ({"input": 9, "output": 5, "reasoning": 2, "cache_read": 4, "total": 14}, Tokens(5, 3, 2, 4)),
    "a total of all": ({"input": 5, "output": 3, "reasoning": 2, "cache_read": 4, "total": 14}, Tokens(5, 3, 2, 4)),
    "more cached than there is": ({"input_tokens": 1, "cached_input_tokens": 4}, None),
    "of Codex": ({"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 5, "reasoning_output_tokens": 2, "total_tokens": 14}, Tokens(5, 3, 2, 4)),
    "hostile": ({"input": [], "output": {}, "reasoning": -1, "total": "x"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGES)
def test_the_counts_of_an_answer_are_disjoint(
    name: str, store: Store, tmp_path: Path
) -> None:
    usage, expected = USAGES[name]
    records = [meta(), line(1, "assistant_finished", text="Yes", usage=usage)]
    session = taken(store, tmp_path, *records)
    (answer,) = store.messages(session)
    assert answer.tokens == expected
    assert written(store, session) == records


def test_the_sources_of_a_context_are_kept_and_its_text_is_system_text(
    store: Store, tmp_path: Path
) -> None:
    sources = [{**source, "content": f"{n}"} for n, source in enumerate(SOURCES)]
    records = [meta(), line(1, "context", sources=sources), line(2, "user_message", text="Hi")]  # fmt: skip
    session = taken(store, tmp_path, *records)
    assert written(store, session) == records
    event, _ = store.messages(session)
    assert (event.role, event.kind) == ("event", "context")
    assert [part.type for part in event.parts] == ["source", "source"]
    assert [part.input for part in event.parts] == SOURCES
    context = store.context(session)
    assert context.system == ("0", "1")
    assert context.sources == (
        ContextSource("file", "AGENTS.md", "project", "ab12", False, None, "0", "AGENTS.md"),
        ContextSource("file", "big.md", "user", "cd34", True, "too large", "1", "big.md"),
    )  # fmt: skip
    assert json.dumps(written(store, session)[1]["sources"]) == json.dumps(sources)


def test_the_text_of_a_context_is_system_text_and_its_sources_are_beside_it(
    store: Store, tmp_path: Path
) -> None:
    sources = [{**SOURCES[0], "text": "Be brief, please"}, SOURCES[1]]
    session = taken(store, tmp_path, meta(), line(1, "context", sources=sources, text="Be brief"),
                    line(2, "user_message", text="Hi"))  # fmt: skip
    context = store.context(session)
    assert context.system == ("Be brief",)
    assert [source.text for source in context.sources] == ["Be brief, please", None]


#: Lists of sources, and the paths of those that are understood.
SOURCE_LISTS: dict[str, tuple[Any, list[str | None]]] = {
    "other orders": ([{"content": "a", "path": "a.md", "kind": "file"}, {"x": 1, "path": "b.md", "text": "b", "y": [2]}], ["a.md", "b.md"]),
    "other spellings": ([{"type": "memory", "file": "a.md", "sha256": "ab"}, {"path": None, "file": "b.md"}], ["a.md", None]),
    "both contents": ([{"text": "a", "path": "a.md", "content": "b"}], ["a.md"]),
    "blocks": ([{"path": "a", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], ["a"]),
    "a picture": ([{"path": "a", "content": [{"type": "image", "data": PNG}]}], ["a"]),
    "nothing known": ([{}, {"content": ""}, {"x": 1}], [None, None, None]),
    "values of other types": ([{"kind": 5, "path": ["a"], "scope": {}, "hash": None, "truncated": "no", "error": {"code": 2}}], [None]),
    "other things between": ([[["a"]], {"path": "a"}, "b", None, {"path": "c"}, 5, {"path": "d\x00"}], ["a", "c", "d\x00"]),
    "only other things": (["a", ["b"], 1], []),
    "an object": ({"path": "a"}, []),
    "a text": ("a", []), "none": ([], []), "null": (None, []),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCE_LISTS)
def test_sources_are_written_in_their_order_with_the_order_of_their_keys(
    name: str, store: Store, tmp_path: Path
) -> None:
    sources, paths = SOURCE_LISTS[name]
    records = [meta(), line(1, "context", sources=sources), line(2, "user_message", text="Hi")]  # fmt: skip
    session = taken(store, tmp_path, *records)
    assert [source.path for source in store.context(session).sources] == paths
    again = written(store, session)
    assert again == records
    assert json.dumps(again[1]["sources"]) == json.dumps(sources)


def test_very_many_sources_cost_only_their_own_record(
    store: Store, tmp_path: Path
) -> None:
    sources = [{"path": f"{n}.md"} for n in range(5_000)]
    records = [meta(), line(1, "context", sources=sources), line(2, "user_message", text="Hi")]  # fmt: skip
    session = taken(store, tmp_path, *records)
    assert len(store.context(session).sources) == len(sources)
    assert written(store, session) == records


def test_the_last_name_is_the_title(store: Store, tmp_path: Path) -> None:
    names = [line(1, "user_message", text="Hi"), line(2, "session_renamed", title="B"),
             line(3, "session_renamed", name="C"), line(4, "session_renamed", title=7)]  # fmt: skip
    assert taken(store, tmp_path, meta(title="A"), *names).title == "C"
    assert taken(store, tmp_path, meta("s2", title="A"), names[0]).title == "A"


# -- bad logs ---------------------------------------------------------------------------


def test_a_number_that_is_given_twice_names_two_messages(
    store: Store, tmp_path: Path
) -> None:
    numbers = (1, 1, 5, 2, 9)
    prompts = [f"{place} {number}" for place, number in enumerate(numbers)]
    messages = said(
        store, tmp_path,
        *(line(n, "user_message", text=text) for n, text in zip(numbers, prompts, strict=True)),
    )  # fmt: skip
    assert imported.texts(messages) == prompts
    twice = [line(n, "user_message", message_id="m") for n in (1, 2)]
    other = taken(store, tmp_path / "other", meta("s2"), *twice)
    assert [message.id for message in store.messages(other)] == ["m", "s2:2"]


def test_a_bad_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", *first())
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b'{"type":"user_message"\n', b'{"type":5}\n', b'{"type":"tool_started","name":"x","n":%d}\n' % (1 << 70)]  # fmt: skip
    path.write_bytes(b"".join([*lines[:5], *bad, *lines[5:], b'{"schema_ver']))
    found = read_into(store, path)
    problems = [item for item in found if isinstance(item, Problem)]
    assert {problem.line for problem in problems} == {6, 7, 8, 21}
    (session,) = store.sessions(project=ALL)
    assert len(store.messages(session)) == 12
    assert written(store, store.session(session.id)) == first()


def test_a_mark_of_utf_8_at_the_beginning_is_skipped(
    store: Store, tmp_path: Path
) -> None:
    path = write(tmp_path / "log.jsonl", *first())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    session = imported.taken(store, path)
    assert written(store, session) == first()


def test_a_log_that_grows_completes_its_answer(store: Store, tmp_path: Path) -> None:
    records = first()
    for size in (4, 7, 9, len(records)):
        session = taken(store, tmp_path, *records[:size])
        assert written(store, session) == records[:size]
    assert len(store.messages(session)) == 12


# -- writing ----------------------------------------------------------------------------

POOL: list[Record] = [
    *first()[1:], *other_spellings()[1:],
    {"type": "user_message", "text": ""}, {"type": "user_message", "content": ["a", 1]},
    {"type": "user_message", "no": 1, "time": None}, {"type": "user", "prompt": "Hi"},
    {"type": "assistant_started", "message_id": "m9", "text": "early"},
    {"type": "assistant_finished", "model": "other", "finish": "odd", "error": "late"},
    {"type": "assistant_finished", "content": [], "usage": {}, "finish": None, "error": {}},
    {"type": "assistant_finished", "usage": {"input": 1, "input_tokens": 2}, "model": "a", "model_id": "b"},
    {"type": "assistant_finished", "message_id": "m9", "text": "a", "content": [{"type": "tool", "x": 1}], "finish_reason": "length", "cost": -1},
    {"type": "tool_started", "call_id": ["x"], "record": 1, "field": "text", "name": "bash", "arguments": '{"a":1}', "timestamp": 5},
    {"type": "tool_started", "name": "bash", "tool": "sh", "input": None},
    {"type": "tool_finished", "call_id": "c1", "output": [{"type": "text", "text": "a"}], "error": {"message": "b"}},
    {"type": "tool_finished", "output": "", "error": "bad", "is_error": True},
    {"type": "tool_started", "name": "bash", "arguments": {"a": 1}, "input": {"b": 2}},
    {"type": "user_message", "text": "a", "time": 5, "timestamp": 7}, {"type": "user_message", "text": "a", "time": 5, "ts": None},
    {"type": "context", "sources": [{"content": [{"type": "text", "text": "a"}, {"type": "image", "data": PNG}]}]},
    {"type": "context", "content": "text", "sources": [1, {"text": "a"}, {"content": "b", "text": "c"}]},
    {"type": "text_finished", "text": "a"}, {"type": "reasoning_finished", "text": ""}, {"type": "assistant_text", "content": [1]},
    {"type": "user_message", "text": "a", "no_time": 1}, {"type": "tool_started", "name": "ls", "no_time": [True]},
    {"type": "title_change", "title": "x"}, {"type": "session_meta", "session_id": "s7"},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_any_records_are_written_as_they_were(
    seed: int, store: Store, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    records = [meta(), line(1, "user_message", text="Begin")]
    for seq in range(2, 60):
        record = dict(chance.choice(POOL))
        keys = chance.sample(sorted(record), len(record))
        dropped = {k for k in keys if k not in ("type", "schema_version") and chance.random() < 0.1}  # fmt: skip
        kept = {k: v for k, v in record.items() if k not in dropped}
        records.append(kept | ({"seq": seq} if chance.random() < 0.9 else {}))
    session = taken(store, tmp_path, *records)
    assert written(store, session) == records
    again = taken(store, tmp_path / "again", *written(store, session))
    assert again.revision == session.revision


ODD: dict[str, Record] = {
    "two times": {"type": "user_message", "text": "a", "time": T0, "timestamp": T0 + 1},
    "a time and null": {"type": "user_message", "text": "a", "time": T0, "ts": None},
    "a key of ours": {"type": "weather", "no_time": True}, "a key of ours and a time": {"type": "weather", "no_time": [1], "time": T0},
    "two inputs": {"type": "tool_started", "name": "ls", "arguments": {"a": 1}, "input": {"b": 2}},
    "a source of blocks": {"type": "context", "sources": [{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
    "a source with a picture": {"type": "context", "sources": [{"content": [{"type": "image", "data": PNG}]}]},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_record_is_written_as_it_was(
    name: str, store: Store, tmp_path: Path
) -> None:
    records = [meta(), {**ODD[name], "seq": 1}]
    assert written(store, taken(store, tmp_path, *records)) == records


def test_a_session_of_another_program_is_the_same_conversation(
    store: Store, tmp_path: Path
) -> None:
    samples.SAMPLES["opencode 1.18, a database"].write(tmp_path / "theirs")
    read_into(store, tmp_path / "theirs")
    to = exporter("event-log")
    for session in store.sessions(project=ALL, subagents=True):
        out = [*to.write([store.export(session, **to.read)], detail="full")]
        (document,) = (item for item in out if isinstance(item, Document))
        path = tmp_path / "out" / document.name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(document.chunks))
    with new_store() as other:
        found = read_into(other, tmp_path / "out")
        assert all(isinstance(item, Imported) for item in found), found
        pairs = [
            (session, other.session(session.id))
            for session in store.sessions(project=ALL, subagents=True)
        ]
        for before, after in pairs:
            assert after.title == before.title
            assert _calls(other, after) == _calls(store, before)
            assert _texts(other, after) == _texts(store, before)


def back(store: Store, session: Session, folder: Path, other: Store) -> Session:
    """Import the log of a session into another database."""
    return imported.taken(other, write(folder / "log.jsonl", *written(store, session)))


def facts(message: Message) -> tuple[Any, ...]:
    """Return what a message says, but for its results, which are messages in a log."""
    stated = message.cost, message.tokens, message.finish, message.error
    parts = [
        (p.type, p.tool, p.title, p.input, p.text, p.status, p.outcome, p.time_started)
        for p in message.parts
    ]
    named = (
        message.role,
        message.kind,
        message.agent,
        message.provider_id,
        message.model_id,
        message.response_id,
    )
    return message.id, *named, *stated, message.time_completed is None, *parts


def test_a_log_holds_everything_of_a_message_of_another_program(
    store: Store, tmp_path: Path
) -> None:
    session = store.create_session(metadata={"ticket": 7}).id
    spent = {"cost": 0.5, "tokens": Tokens(10, 4, 3, 2, 1)}
    store.append(session, system(text("Be brief", section="rules")))
    store.append(
        session,
        user(
            "Look",
            text("It is late", synthetic=True),
            file("file:///a.txt", filename="a.txt", mime="text/plain"),
        ),
    )
    call = tool("bash", "date", call_id="c1", output="Monday", title="The date")
    store.append(session, assistant(reasoning("Hm"), "One", call, reasoning("So"), part("patch", text="a"), "Two", unsent=True),
                 model="large", provider="fake", agent="build", response_id="r1", finish="stop", **spent)  # fmt: skip
    store.append(
        session,
        event("compaction", "Summed up", first_kept_id="x", x=9),
        model="small",
        **spent,
    )
    store.append(
        session, event("shell", tool("bash", {"command": "ls"}, output="a.py"))
    )
    store.append(session, event("user_message", "no prompt"), error={"message": "late"})
    store.append(session, event("usage"), **spent)
    before = store.messages(session)
    with new_store() as other:
        found = back(store, store.session(session), tmp_path, other)
        after = [m for m in other.messages(found) if m.role != "tool"]
        assert [facts(m) for m in after] == [facts(m) for m in before]
        assert (
            other.context(found).summary
            == store.context(session).summary
            == "Summed up"
        )
        assert (found.cost, found.tokens) == (
            store.session(session).cost,
            store.session(session).tokens,
        )
        assert dict(found.metadata) == {"ticket": 7}
        data = [m.data for m in after]
        assert (data[2]["unsent"], data[3]["first_kept_id"]) == (True, "x")
        shown = [dict(p.data) for p in after[1].parts]
        assert after[1].parts[1].synthetic
        assert (shown[2]["url"], shown[2]["mime"], shown[2]["filename"]) == (
            "file:///a.txt",
            "text/plain",
            "a.txt",
        )


def test_an_unfinished_answer_of_another_program_is_unfinished_in_a_log(
    store: Store, tmp_path: Path
) -> None:
    draft = MessageDraft(
        "assistant", (text("One, two"),), "m1", model_id="large", cost=0.0
    )
    messages = [SourceMessage(draft, open=True)]
    list(
        store.ingest(
            [SourceSession("elsewhere", "s9", path="db", digest="1", messages=messages)]
        )
    )
    (session,) = store.sessions(project=ALL)
    with new_store() as other:
        found = back(store, store.session(session), tmp_path, other)
        *_, answer = other.messages(found)
        assert (answer.text, answer.model_id, answer.cost) == ("One, two", "large", 0.0)
        assert answer.time_completed is None


def test_the_complete_output_of_a_call_is_in_a_log(
    store: Store, tmp_path: Path
) -> None:
    session = store.create_session().id
    store.append(session, assistant(tool("bash", {}, call_id="c1", output="1 … 9")))
    result = PartDraft("tool-result", call_id="c1")
    complete = file(filename="out.txt", content=b"1 2 3 4 5 6 7 8 9")
    store.append(session, MessageDraft("tool", (result, complete)))
    with new_store() as other:
        found = back(store, store.session(session), tmp_path, other)
        files = [
            p.data["content"]
            for m in other.messages(found)
            for p in m.parts
            if p.type == "file"
        ]
        assert files == [b"1 2 3 4 5 6 7 8 9"]


def test_the_sums_at_the_end_of_a_log_are_not_counted(
    store: Store, tmp_path: Path
) -> None:
    session = taken(store, tmp_path, *first()[:11], line(11, "session_finished", cost=0.25, usage={"input": 10, "output": 4}))  # fmt: skip
    assert (session.cost, session.tokens_input) == (0.25, 10)


def _texts(store: Store, session: Any) -> list[tuple[str, str]]:
    messages = store.context(session).messages
    return [(m.role, m.text) for m in messages if m.role in ("user", "assistant")]


def _calls(store: Store, session: Any) -> list[Any]:
    parts = [part for message in store.messages(session) for part in message.parts]
    return [
        (p.tool, p.input, p.status, p.outcome, p.text)
        for p in parts
        if p.type == "tool"
    ]


def test_the_context_of_another_program_has_the_same_sources(
    store: Store, tmp_path: Path
) -> None:
    session = store.create_session().id
    given = [context_source("file", "AGENTS.md", scope="user", truncated=True, text="a"),
             context_source("skill", title="tea", error="gone"), PartDraft("source")]  # fmt: skip
    store.append(session, event("context", "Be brief", *given, name="rules"))
    store.append(session, event("custom_message", "Tea", given[1]))
    to = exporter("event-log")
    losses = []
    for item in to.write([store.export(session, **to.read)], detail="full"):
        if isinstance(item, Document):
            (tmp_path / "log.jsonl").write_text("".join(item.chunks))
        else:
            losses.append(item.why)
    with new_store() as other:
        (found,) = read_into(other, tmp_path)
        assert isinstance(found, Imported)
        before = store.context(session)
        after = other.context(found.id)
        assert after.system == before.system == ("Be brief",)
        assert after.sources == before.sources
    assert losses == []


def test_branches_that_are_not_written_are_reported(
    store: Store, tmp_path: Path
) -> None:
    session = taken(store, tmp_path, *first()[:3]).id
    first_seq = store.session(session).leaf_seq
    store.append(session, user("And coffee?"))
    to = exporter("event-log")
    whys = []
    for after in (None, first_seq):
        if after is not None:
            store.append(session, user("And milk?"), after=after)
        found = to.write([store.export(session, **to.read)], detail="full")
        for item in found:
            if isinstance(item, Document):
                list(item.chunks)
            else:
                whys.append(item.why)
    assert whys == ["1 message of branches that are not continued"]


def test_a_message_with_an_id_of_its_own_is_written_where_it_was_added(
    store: Store, tmp_path: Path
) -> None:
    session = taken(store, tmp_path, *first()[:3])
    store.append(session.id, user("Once more", id="mine"))
    store.append(session.id, assistant("Two minutes", id="yours"))
    added = written(store, store.session(session.id))[3:]
    texts = [record["text"] for record in added if "text" in record]
    assert texts == ["Once more", "Two minutes"]


def test_messages_that_were_added_here_follow(store: Store, tmp_path: Path) -> None:
    session = taken(store, tmp_path, *first()[:4], *first()[9:])
    store.append(session.id, user("Once more"))
    store.set_title(session.id, "Mine")
    added = written(store, store.session(session.id))[-2:]
    assert [record["seq"] for record in added] == [17, 18]
    assert added[0]["text"] == "Once more"
    assert (added[1]["type"], added[1]["title"]) == ("session_renamed", "Mine")


def test_the_log_of_the_documentation_is_one(store: Store, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "FORMATS.md"
    (example,) = re.findall(r"```jsonl\n(\{.*?)```", page.read_text("utf-8"), re.DOTALL)
    records = [json.loads(text) for text in example.splitlines()]
    session = taken(store, tmp_path, *records)
    assert (session.title, session.cost) == ("Tea", 0.25)
    assert written(store, session) == records
