"""The logs of llm: both generations, their trees, tokens, and how they break."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imported import all_taken, texts
from samples import read_into
from samples_llm import (
    OLD,
    PNG,
    Log,
    call,
    continued,
    conversations,
    log,
    newer,
    old,
    result,
    words,
)

from sessiondb import ALL, Store
from sessiondb.formats import default_locations, find
from sessiondb.model import Imported, Message, Problem, Session, Tokens

#: The time of the first response.
T0 = 1_795_191_541_250


def only(store: Store, folder: Path, write: Callable[[Log], Any]) -> Session:
    with log(folder / "logs.db") as new:
        write(new)
    ((_, session),) = all_taken(store, folder).items()
    return session


def answers(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.role == "assistant"]


# -- which files -------------------------------------------------------------------


def test_a_log_of_either_generation_is_one_store(tmp_path: Path) -> None:
    with log(tmp_path / "a.db", OLD):
        pass
    with log(tmp_path / "b.db"):
        pass
    assert [item.source for item in find(tmp_path)] == ["llm", "llm"]


def test_a_log_that_cannot_be_read_is_reported_by_its_name(
    tmp_path: Path, store: Store
) -> None:
    for name in ("logs.db", "other.db"):
        (tmp_path / name).write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    (problem,) = read_into(store, tmp_path)
    assert isinstance(problem, Problem)
    assert problem.source == str(tmp_path / "logs.db")


def test_a_log_whose_end_is_missing_is_not_half_read(
    tmp_path: Path, store: Store
) -> None:
    """The rest of a page would be zeros: an index without the rows of its table."""
    old(tmp_path)
    path = tmp_path / "logs.db"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])
    (problem,) = read_into(store, tmp_path)
    assert isinstance(problem, Problem)
    assert "its end is missing" in problem.why
    path.write_bytes(raw)
    assert len(all_taken(store, tmp_path)) == 3


def test_the_log_is_where_its_environment_says() -> None:
    def places(**env: str) -> list[str]:
        found = default_locations(env, formats=["llm"])
        return [path.as_posix() for path in found]

    assert places(LLM_USER_PATH="/l", HOME="/h") == ["/l/logs.db"]
    assert "/h/.config/io.datasette.llm/logs.db" in places(HOME="/h")
    assert places(HOME="/h", XDG_CONFIG_HOME="/x")[0] == "/x/io.datasette.llm/logs.db"
    assert places() == []


# -- 0.27 --------------------------------------------------------------------------


def test_a_response_is_up_to_four_messages(tmp_path: Path, store: Store) -> None:
    old(tmp_path)
    found = store.messages(all_taken(store, tmp_path)["c1"].id)
    assert [m.role for m in found] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    system, asked, called, results, answered, _, empty = found
    assert [p.text for p in system.parts] == ["Be brief", "You make tea"]
    assert [p.synthetic for p in asked.parts[:2]] == [True, False]
    assert asked.parts[0].data["fragment"]["source"] == "a.py"
    assert asked.parts[1].text == "How long?"
    assert called.parts[1].input == {"command": "date"}
    assert (called.parts[1].status, called.parts[1].text) == ("completed", "Monday")
    assert results.parts[0].data["instance"]["name"] == "Files"
    assert answered.text == "Two minutes"
    assert empty.parts == ()
    assert called.data["schema"] == '{"type": "object"}'


def test_files_have_their_bytes_or_their_path(tmp_path: Path, store: Store) -> None:
    old(tmp_path)
    asked = store.messages(all_taken(store, tmp_path)["c1"].id)[1]
    there, named = [p.data for p in asked.parts if p.type == "file"]
    assert (there["mime"], there["content"]) == ("image/png", PNG)
    assert (named["path"], named["filename"]) == ("/home/ada/tea.png", "tea.png")


def test_a_file_of_a_result_is_not_a_prompt(tmp_path: Path, store: Store) -> None:
    """Releases before 0.32 log it as an attachment of an empty prompt, too."""
    old(tmp_path)
    results = store.messages(all_taken(store, tmp_path)["c1"].id)[3]
    assert [p.type for p in results.parts] == ["tool-result", "file"]


def test_tokens_times_and_names_of_an_answer(tmp_path: Path, store: Store) -> None:
    old(tmp_path)
    session = all_taken(store, tmp_path)["c1"]
    found = answers(store.messages(session.id))[0]
    assert found.tokens == Tokens(input=40, output=17, reasoning=3, cache_read=60)
    assert found.time_created == T0
    assert found.time_completed == found.time_created + 500
    assert (found.model_id, found.response_id, found.finish) == (
        "large", "chatcmpl-r01", "stop",
    )  # fmt: skip
    assert (session.title, session.model_id) == ("Tea", "large")


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (None, Tokens(100, 20)),
        ("{", Tokens(100, 20)),
        ({"input_tokens_details": {"cached_tokens": 10}}, Tokens(90, 20, None, 10)),
        ({"output_tokens_details": {"reasoning_tokens": 5}}, Tokens(100, 15, 5)),
        ({"thoughtsTokenCount": 5, "cachedContentTokenCount": 1}, Tokens(99, 15, 5, 1)),
        (
            {"cache_read_input_tokens": 400, "cache_creation_input_tokens": 7},
            Tokens(100, 20, None, 400, 7),
        ),
        (
            {"prompt_tokens_details": {"cached_tokens": 101}},
            Tokens(None, 20, None, 101),
        ),
        ({"prompt_tokens_details": {"cached_tokens": [1]}}, Tokens(100, 20)),
    ],
)
def test_counts_are_disjoint_whoever_counted(
    tmp_path: Path, store: Store, details: Any, expected: Tokens
) -> None:
    stated = json.dumps(details) if isinstance(details, dict) else details

    def write(new: Log) -> None:
        new.response(1, "c1", "Hi", token_details=stated)

    session = only(store, tmp_path, write)
    (found,) = answers(store.messages(session.id))
    assert found.tokens == expected
    assert found.data["input_tokens"] == 100


def test_a_response_without_a_conversation_is_one(tmp_path: Path, store: Store) -> None:
    session = only(store, tmp_path, lambda new: new.response(1, None, "Hi"))
    assert session.source_id == "r01"
    assert texts(store.messages(session.id)) == ["Hi", "Answer 1"]


def test_responses_are_in_the_order_of_their_ids(tmp_path: Path, store: Store) -> None:
    def write(new: Log) -> None:
        for number in (3, 1, 2):
            new.response(number, "c1", f"{number}?")

    session = only(store, tmp_path, write)
    asked = [m for m in store.messages(session.id) if m.role == "user"]
    assert texts(asked) == ["1?", "2?", "3?"]


def test_an_exception_is_a_failed_result(tmp_path: Path, store: Store) -> None:
    def write(new: Log) -> None:
        new.add("tool_calls", response_id=new.response(1, "c1", "Hi"), name="bash", arguments="{", tool_call_id="x")  # fmt: skip
        new.add("tool_results", response_id=new.response(2, "c1", ""), name="bash", output="Error: no", tool_call_id="x", exception="ValueError: no")  # fmt: skip

    session = only(store, tmp_path, write)
    asked, given = [m.parts[-1] for m in store.messages(session.id)][1:3]
    assert (asked.status, asked.outcome, asked.input) == ("error", "failed", "{")
    assert given.data["exception"] == "ValueError: no"


def test_results_of_a_model_that_names_no_calls_are_in_the_order_of_these(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        first, second = (new.response(n, "c1", text) for n, text in ((1, "Hi"), (2, "")))  # fmt: skip
        for place, tool in enumerate(("ls", "cat", "ls")):
            new.add("tool_calls", response_id=first, name=tool, arguments=f'{{"n":{place}}}')  # fmt: skip
        for tool, output in (("ls", "a"), ("cat", "b"), ("rm", "of no call"), ("ls", "c")):  # fmt: skip
            new.add("tool_results", response_id=second, name=tool, output=output)

    found = store.messages(only(store, tmp_path, write).id)
    calls = [part for part in found[1].parts if part.type == "tool"]
    assert [(c.tool, c.text, c.status) for c in calls] == [("ls", "a", "completed"), ("cat", "b", "completed"), ("ls", "c", "completed")]  # fmt: skip
    given = [part.call_id for part in found[2].parts]
    assert given == [calls[0].call_id, calls[1].call_id, None, calls[2].call_id]


def test_columns_and_tables_of_older_releases_may_be_missing(
    tmp_path: Path, store: Store
) -> None:
    with log(tmp_path / "logs.db", "CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT)") as new:  # fmt: skip
        new.conversation("c1")
        new.add("responses", id="r1", prompt="Hi", response="Yes", conversation_id="c1", datetime_utc="2023-07-15T10:00:00")  # fmt: skip
    session = all_taken(store, tmp_path)["c1"]
    found = store.messages(session.id)
    assert texts(found) == ["Hi", "Yes"]
    assert found[0].time_created == 1_689_415_200_000


# -- 0.36 --------------------------------------------------------------------------


def test_a_thread_is_a_path_of_messages(tmp_path: Path, store: Store) -> None:
    newer(tmp_path)
    session = all_taken(store, tmp_path)["t-one"]
    found = store.messages(session.id)
    assert [m.role for m in found] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    asked, called, results = found[1:4]
    assert [p.text for p in asked.parts[:2]] == ["a.py says 7", "How long?"]
    assert asked.parts[0].synthetic is True
    assert asked.parts[2].data["content"] == PNG
    assert [p.type for p in called.parts] == ["reasoning", "text", "tool"]
    assert called.parts[0].data == {"redacted": True}
    assert called.parts[2].text == "a.py\n"
    assert [p.type for p in results.parts] == ["tool-result", "file"]
    assert called.tokens == Tokens(input=40, output=17, reasoning=3, cache_read=60)
    assert called.data["turn"]["tools"] == [7]
    assert session.data["tools"][0]["name"] == "bash"
    assert found[4].data["provider_metadata"] == '{"a":1}'
    assert session.time_created == asked.time_created


def test_an_empty_answer_is_a_message_of_its_own(tmp_path: Path, store: Store) -> None:
    """llm stores no message for it: what comes next continues from the prompt."""

    def write(new: Log) -> None:
        one = new.message(None, "user", words("Say nothing"))
        two = new.message(one, "user", words("Go on"))
        three = new.message(two, "assistant", words("Yes"))
        new.turn(1, "t", one, one)
        new.turn(2, "t", two, three)
        new.thread("t", three)

    session = only(store, tmp_path, write)
    found = store.messages(session.id)
    assert [m.role for m in found] == ["user", "assistant", "user", "assistant"]
    assert found[1].parts == ()
    assert found[1].tokens == found[3].tokens != None  # noqa: E711


def test_a_fork_shares_messages_and_counts_them_once(
    tmp_path: Path, store: Store
) -> None:
    with log(tmp_path / "logs.db") as new:
        one = new.message(None, "user", words("Hi"))
        two = new.message(one, "assistant", words("Yes"))
        new.turn(1, "t-b", one, two)
        three = new.message(two, "user", words("And?"))
        four = new.message(three, "assistant", words("No"))
        new.turn(2, "t-a", three, four)
        new.thread("t-b", two)
        new.thread("t-a", four, forked_from="t-b")
    read_into(store, tmp_path)
    found = {s.source_id: s for s in store.sessions(project=ALL)}
    assert found["t-a"].parent_id == found["t-b"].id
    copied, own = answers(store.messages(found["t-a"].id))
    assert copied.tokens == own.tokens
    (total,) = store.usage(project=ALL)
    assert total.tokens.input == 80


def test_messages_that_are_the_same_by_chance_are_counted_apart(
    tmp_path: Path, store: Store
) -> None:
    with log(tmp_path / "logs.db") as new:
        one = new.message(None, "user", words("Hi"))
        two = new.message(one, "assistant", words("Hello!"))
        for number in (1, 2):
            new.turn(number, f"t{number}", one, two)
            new.thread(f"t{number}", two)
    read_into(store, tmp_path)
    assert len(store.sessions(project=ALL)) == 2
    (total,) = store.usage(project=ALL)
    assert total.tokens.input == 80


def test_a_history_that_was_sent_again_is_another_path(
    tmp_path: Path, store: Store
) -> None:
    """With another system prompt all hashes differ: the old path is a branch."""

    def write(new: Log) -> None:
        one = new.message(None, "user", words("Hi"))
        two = new.message(one, "assistant", words("Yes"))
        new.turn(1, "t", one, two)
        system = new.message(None, "system", words("Be brief"))
        copied = new.message(system, "user", words("Hi"))
        copied = new.message(copied, "assistant", words("Yes"))
        three = new.message(copied, "user", words("And?"))
        four = new.message(three, "assistant", words("No"))
        new.turn(2, "t", three, four)
        new.thread("t", four)

    session = only(store, tmp_path, write)
    live = store.messages(session.id)
    assert texts(live) == ["Be brief", "Hi", "Yes", "And?", "No"]
    assert len(store.messages(session.id, branches=True)) == 7
    (total,) = store.usage(project=ALL)
    assert total.tokens.input == 80


def test_the_tip_is_live_and_not_the_newest_row(tmp_path: Path, store: Store) -> None:
    def write(new: Log) -> None:
        one = new.message(None, "user", words("Hi"))
        two = new.message(one, "assistant", words("Yes"))
        new.turn(1, "t", one, two)
        three = new.message(one, "assistant", words("No"))
        new.turn(2, "t", one, three)
        new.thread("t", two)

    session = only(store, tmp_path, write)
    assert texts(store.messages(session.id)) == ["Hi", "Yes"]


def test_a_result_of_the_provider_is_in_the_answer(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        one = new.message(None, "user", words("Hi"))
        server = {"server_executed": True}
        two = new.message(one, "assistant", call("x", **server), result("x", "found", **server))  # fmt: skip
        new.turn(1, "t", one, two)
        new.thread("t", two)

    session = only(store, tmp_path, write)
    (asked,) = store.messages(session.id)[1].parts
    assert (asked.status, asked.text) == ("completed", "found")
    assert asked.data["server_executed"] is True
    assert asked.data["result"] == {"name": "bash", "server_executed": True}


def test_newlines_between_fragments_and_a_prompt_are_of_neither(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        new.add("fragments", id=1, content="\na.py says 1")
        new.add("fragments", id=2, content="")
        pieces = [
            {"fragment": 1},
            {"literal": "\n"},
            {"fragment": 2},
            {"literal": "\n\nWhy?\n"},
        ]
        new.thread("t", new.message(None, "user", {"type": "text", "text_ref": pieces}))

    session = only(store, tmp_path, write)
    (asked,) = store.messages(session.id)
    assert [part.text for part in asked.parts] == ["\na.py says 1", "", "\nWhy?\n"]
    assert [prompt.text for prompt in store.prompts().items] == ["\nWhy?\n"]


def test_a_fragment_that_was_removed_leaves_the_reference(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        pieces = [{"fragment": 9}, {"literal": "\nWhy?"}]
        new.thread("t", new.message(None, "user", {"type": "text", "text_ref": pieces}))

    session = only(store, tmp_path, write)
    literal, rest = store.messages(session.id)[0].parts
    assert literal.text == "\nWhy?"
    assert rest.data["text_ref"][0] == {"fragment": 9}


def test_names_that_no_statement_can_look_for_are_kept(
    tmp_path: Path, store: Store
) -> None:
    pieces = [{"fragment": 1 << 63}, {"fragment": [1]}, {"literal": "Why?"}]
    file = {"type": "attachment", "attachment": {"id": "\ud800"}}

    def write(new: Log) -> None:
        asked = {"type": "text", "text_ref": pieces}
        new.thread("t", new.message(None, "user", asked, file))

    session = only(store, tmp_path, write)
    literal, rest, named = store.messages(session.id)[0].parts
    assert literal.text == "Why?"
    assert rest.data["text_ref"] == pieces
    assert named.type == "file"
    assert "attachment" in named.data


def test_a_file_of_a_part_of_another_type_is_kept(tmp_path: Path, store: Store) -> None:
    def write(new: Log) -> None:
        new.add("attachments", id="a1", type="image/png", content=PNG)
        drawn = {"type": "drawing", "attachments": [{"id": "a1"}]}
        new.thread("t", new.message(None, "user", drawn))

    session = only(store, tmp_path, write)
    drawn, file = store.messages(session.id)[0].parts
    assert (drawn.type, file.type) == ("drawing", "file")
    assert file.data["content"] == PNG


def test_roles_and_types_that_are_not_known_are_kept(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        one = new.message(None, "oracle", words("Hm"), {"type": "smell", "value": 1})
        two = new.message(one, "user", {"type": "tool", "text": "x"}, {"type": "tool_call", "name": ""})  # fmt: skip
        new.thread("t", two)

    session = only(store, tmp_path, write)
    one, two = store.messages(session.id)
    assert (one.role, one.kind) == ("event", "oracle")
    assert (one.parts[1].type, one.parts[1].data) == ("smell", {"value": 1})
    assert [p.type for p in two.parts] == ["custom", "custom"]


# -- both --------------------------------------------------------------------------


def test_a_session_in_both_generations_is_read_once(
    tmp_path: Path, store: Store
) -> None:
    continued(tmp_path)
    found = all_taken(store, tmp_path)
    assert set(found) == {"c1", "c2", "t1"}
    every = store.messages(found["c1"].id, branches=True)
    assert texts(every) == ["How long?", "Two minutes", "And coffee?", "Four"]
    assert texts(store.messages(found["c1"].id)) == texts(every)
    assert [m.tokens is not None for m in every] == [False, True, False, True]


def test_a_copy_is_known_by_its_words(tmp_path: Path, store: Store) -> None:
    """0.36 makes one text of a prompt and its fragments, and loses its files."""

    def write(new: Log) -> None:
        new.add("fragments", id=1, content="a.py says 1")
        new.add("attachments", id="a1", type="image/png", content=PNG)
        first = new.response(1, "c1", "How long?", system="You make tea")
        new.add("prompt_fragments", response_id=first, fragment_id=1, order=0)
        new.add("prompt_attachments", response_id=first, attachment_id="a1", order=0)
        new.response(2, "c1", "Say nothing", response="")
        tip = new.message(None, "system", words("You make tea"))
        tip = new.message(tip, "user", words("a.py says 1\nHow long?"))
        tip = new.message(tip, "assistant", words("Answer 1"))
        tip = new.message(tip, "user", words("Say nothing"))
        tip = new.message(tip, "user", words("Go on"))
        end = new.message(tip, "assistant", words("Yes"))
        new.turn(3, "c1", tip, end)
        new.thread("c1", end)

    session = only(store, tmp_path, write)
    every = store.messages(session.id, branches=True)
    assert [m.role for m in every] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert len(store.messages(session.id)) == len(every)


def test_a_thread_with_other_words_is_a_path_of_its_own(
    tmp_path: Path, store: Store
) -> None:
    def write(new: Log) -> None:
        new.response(1, "c1", "How long?", response="Two minutes")
        one = new.message(None, "user", words("How short?"))
        two = new.message(one, "assistant", words("One"))
        new.turn(3, "c1", one, two)
        new.thread("c1", two)

    session = only(store, tmp_path, write)
    assert texts(store.messages(session.id)) == ["How short?", "One"]
    assert len(store.messages(session.id, branches=True)) == 4


def test_a_response_that_is_a_turn_too_is_read_once(
    tmp_path: Path, store: Store
) -> None:
    """Releases between the two generations wrote both."""

    def write(new: Log) -> None:
        new.response(1, "c1", "Hi", id="t01", response="Yes")
        one = new.message(None, "user", words("Hi"))
        two = new.message(one, "assistant", words("Yes"))
        new.turn(1, "c1", one, two)
        new.thread("c1", two)

    session = only(store, tmp_path, write)
    assert texts(store.messages(session.id, branches=True)) == ["Hi", "Yes"]


def test_only_changed_sessions_are_read_again(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "logs.db"
    with log(path) as new:
        conversations(new)
        for number, name in ((11, "t-a"), (12, "t-b")):
            one = new.message(None, "user", words(f"{number}?"))
            new.turn(number, name, one, None)
            new.thread(name, one)
    assert len(all_taken(store, tmp_path)) == 5
    with log(path, "") as new:
        new.response(9, "c2", "More")
        two = new.message(one, "assistant", words("Yes"))
        new.turn(13, "t-b", one, two)
        new.db.execute(
            "UPDATE threads SET tip_message_hash = ? WHERE id = 't-b'", [two]
        )
    found = [item for item in read_into(store, tmp_path) if isinstance(item, Imported)]
    changed = {item.source_id for item in found if item.outcome == "updated"}
    assert changed == {"c2", "t-b"}


# -- damage ------------------------------------------------------------------------


def test_bad_rows_are_reported_and_skipped(tmp_path: Path, store: Store) -> None:
    with log(tmp_path / "logs.db") as new:
        conversations(new)
        new.response(20, "c2", "Bad id", id=b"\xff")
        new.response(21, "c2", "Bad numbers", input_tokens="many", duration_ms=-5, datetime_utc=7, response_json=b"{", token_details="[" * 400)  # fmt: skip
        one = new.message(None, "user", words("Hi"))
        new.db.execute("UPDATE parts SET payload = '[1]'")
        two = new.message(one, "user", words("Fine"))
        new.thread("t", two)
        new.thread("cycle-a", None, forked_from="cycle-b")
        new.thread("cycle-b", "b2:gone", forked_from="cycle-a")
        new.thread("", None)
        new.add("messages", hash="b2:x", parent_hash="b2:y", role="user")
        new.add("messages", hash="b2:y", parent_hash="b2:x", role="user")
        new.thread("round", "b2:x")
        new.turn(30, "t", "b2:gone", 5)
    problems = [item.why for item in read_into(store, tmp_path) if isinstance(item, Problem)]  # fmt: skip
    assert len(problems) == 7, problems
    for said in ("no usable id", "its own ancestor", "is missing", "payload", "''"):
        assert any(said in why for why in problems), (said, problems)
    found = {s.source_id: s for s in store.sessions(project=ALL)}
    assert {"c1", "c2", "c3", "t", "round"} <= found.keys()
    assert "Bad numbers" in texts(store.messages(found["c2"].id))
    assert "Fine" in texts(store.messages(found["t"].id))
