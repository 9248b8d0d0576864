"""The transcripts of Claude Code: answers in pieces, the live path, forks, subagents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import imported
import pytest
from samples import read_into
from samples_claude import (
    PNG,
    PROJECT,
    Record,
    answered,
    aside,
    asked,
    beside,
    call,
    line,
    moment,
    result,
    session,
    uuid,
    words,
    write,
)

from sessiondb import ALL, Store
from sessiondb.formats import default_locations, find
from sessiondb.formats.claude import forks as claude_forks
from sessiondb.formats.claude.logs import HEAD_LINES, ClaudeLog
from sessiondb.maintenance import check
from sessiondb.model import Message, Problem, Session, SourceSession

U1 = asked(1, "1", None)


def taken(store: Store, folder: Path, *records: Record) -> Session:
    """Import the only session in a folder, without a problem."""
    if records:
        write(folder / PROJECT, session(1), *records)
    return imported.taken(store, folder)


def everything(store: Store, folder: Path, *records: Record) -> list[Message]:
    return list(store.messages(taken(store, folder, *records), branches=True))


def path_of(store: Store, folder: Path, *records: Record) -> list[str]:
    """Return the texts on the live path; of an answer that only calls, its role."""
    return texts(store.messages(taken(store, folder, *records)))


def texts(messages: Iterable[Message]) -> list[str]:
    return [
        (m.parts[0].text or "") if m.role == "tool" else m.text or m.role
        for m in messages
    ]


def by_source(store: Store) -> dict[str | None, Session]:
    found = store.sessions(project=ALL, subagents=True, empty=True)
    return {item.source_id: item for item in found}


# -- an answer has a line for each block --------------------------------------------


def test_an_answer_is_one_message_whose_usage_is_that_of_its_last_line(
    store: Store, tmp_path: Path
) -> None:
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    _, answer = everything(
        store, tmp_path, U1, answered(2, thinking, stop=None, output=1),
        answered(3, words("Yes"), stop=None, output=1), answered(4, call("c1"), stop="tool_use", output=9),
    )  # fmt: skip
    assert [part.type for part in answer.parts] == ["reasoning", "text", "tool"]
    assert (answer.tokens_input, answer.tokens_output) == (10, 9)
    assert (answer.tokens_cache_read, answer.tokens_cache_write) == (2, 1)
    assert (answer.id, answer.response_id) == (uuid(2), "msg_1")
    assert (answer.finish, answer.model_id) == ("tool-calls", "large")
    assert answer.time_completed == answer.time_created + 2000
    times = [part.time_created - answer.time_created for part in answer.parts]
    assert times == [0, 1000, 2000]


def test_lines_of_an_answer_may_lie_apart_and_all_results_are_on_the_path(
    store: Store, tmp_path: Path
) -> None:
    path = path_of(
        store, tmp_path, U1, answered(2, call("c1")), result(5, "c1", "one", 2),
        answered(3, call("c2"), 2), result(6, "c2", "two", 3),
        answered(4, call("c3"), 3), result(7, "c3", "three", 4), answered(8, words("All"), 7, name="msg_2"),
    )  # fmt: skip
    (only,) = by_source(store).values()
    _, answer, *results, _ = store.messages(only)
    assert path == ["1", "assistant", "one", "two", "three", "All"]
    assert [part.text for part in answer.parts] == ["one", "two", "three"]
    assert [message.role for message in results] == ["tool"] * 3


@pytest.mark.parametrize("followed", [5, 6])
def test_whichever_result_is_continued_no_other_is_lost(
    store: Store, tmp_path: Path, followed: int
) -> None:
    path = path_of(
        store, tmp_path, U1, answered(2, call("c1")), answered(3, call("c2"), 2),
        line(4, "progress", 3, data={}), result(6, "c2", "two", 4), result(5, "c1", "one", 2),
        answered(8, words("Both"), followed, name="msg_2"),
    )  # fmt: skip
    assert {"one", "two"} < set(path)
    assert path[-1] == "Both"


def test_results_without_an_answer_yet_are_on_the_path(
    store: Store, tmp_path: Path
) -> None:
    calls = (
        answered(2, call("c1")),
        result(4, "c1", "one", 2),
        answered(3, call("c2"), 2),
    )
    assert path_of(store, tmp_path, U1, *calls) == ["1", "assistant", "one"]


def test_answers_to_which_a_gateway_gives_one_id_stay_apart(
    store: Store, tmp_path: Path
) -> None:
    second = answered(4, words("Two"), name="msg_1")
    second["message"]["usage"]["input_tokens"] = 40
    third = answered(6, words("Three"), name="msg_1")
    messages = everything(
        store, tmp_path, U1, answered(2, call("c1")), result(3, "c1", "one"), second, asked(5, "And?"), third,
    )  # fmt: skip
    said = [m.text or "call" for m in messages if m.role == "assistant"]
    assert said == ["call", "Two", "Three"]
    assert sum(m.tokens_input or 0 for m in messages) == 60


def test_answers_to_two_requests_are_two(store: Store, tmp_path: Path) -> None:
    one, two = (answered(n, words(str(n)), requestId=f"req_{n}") for n in (2, 3))
    assert path_of(store, tmp_path, U1, one, two) == ["1", "2", "3"]


def test_an_answer_of_the_program_itself_has_no_usage(
    store: Store, tmp_path: Path
) -> None:
    failed = answered(2, words("API Error: 400"), model="<synthetic>", isApiErrorMessage=True)  # fmt: skip
    _, answer = everything(store, tmp_path, U1, failed)
    assert (answer.tokens, answer.model_id, answer.finish) == (None, None, "error")
    assert answer.error == {"message": "API Error: 400"}


def test_tokens_of_thoughts_are_not_output(store: Store, tmp_path: Path) -> None:
    thought = answered(2, words("Yes"), output=9)
    thought["message"]["usage"]["output_tokens_details"] = {"thinking_tokens": 7}
    odd = answered(3, words("No"), output=1, name="msg_2")
    odd["message"]["usage"]["output_tokens_details"] = {"thinking_tokens": 7}
    _, first, second = everything(store, tmp_path, U1, thought, odd)
    assert (first.tokens_output, first.tokens_reasoning) == (2, 7)
    assert (second.tokens_output, second.tokens_reasoning) == (None, None)


def test_a_compaction_by_the_provider_is_counted_beside_the_answer(
    store: Store, tmp_path: Path
) -> None:
    answer = answered(2, words("Yes"), output=9)
    answer["message"]["usage"]["iterations"] = [
        {"type": "compaction", "input_tokens": 500, "output_tokens": 60},
        {"type": "message", "input_tokens": 10, "output_tokens": 9},
        {"type": "advisor_message", "input_tokens": 7000, "output_tokens": 800}, 7,
    ]  # fmt: skip
    _, found = everything(store, tmp_path, U1, answer)
    assert (found.tokens_input, found.tokens_output) == (510, 69)
    assert (found.tokens_cache_read, found.tokens_cache_write) == (2, 1)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_tokens", "length"),
        ("end_turn", "stop"),
        ("refusal", "other"),
        (None, None),
    ],
)
def test_the_reason_of_the_last_line_is_how_an_answer_ended(
    store: Store, tmp_path: Path, reason: str | None, finish: str | None
) -> None:
    answer = answered(2, words("Yes"), stop=reason)
    assert everything(store, tmp_path, U1, answer)[1].finish == finish


def test_an_older_program_stated_the_cost(store: Store, tmp_path: Path) -> None:
    lines = answered(2, words("a"), costUSD=0.25), answered(3, words("b"), costUSD=0.25)
    assert everything(store, tmp_path, U1, *lines)[1].cost == 0.25


def test_a_prompt_that_was_queued_is_between_two_answers(
    store: Store, tmp_path: Path
) -> None:
    queued = {"type": "queued_command", "prompt": "And?", "commandMode": "prompt"}
    path = path_of(
        store, tmp_path, U1, answered(2, words("One")), line(3, "attachment", attachment=queued),
        answered(4, words("Two")),
    )  # fmt: skip
    assert path == ["1", "One", "And?", "Two"]


# -- the live path ---------------------------------------------------------------------


def test_a_branch_that_was_left_is_kept_beside_the_path(
    store: Store, tmp_path: Path
) -> None:
    again = asked(4, "other", None), answered(5, words("5"), name="msg_2")
    records = U1, answered(2, words("2")), asked(3, "3"), *again
    assert path_of(store, tmp_path, *records) == ["other", "5"]
    assert len(list(store.messages(*by_source(store).values(), branches=True))) == 5


def test_the_leaf_is_the_latest_prompt_or_answer(store: Store, tmp_path: Path) -> None:
    # A hook that ended late, beside the path; and lines that follow nothing.
    late = line(6, "progress", 2, data={})
    records = U1, answered(2, words("2")), asked(3, "3"), line(4, "system", 3, subtype="turn_duration")  # fmt: skip
    ended = beside("last-prompt", leafUuid=uuid(2))
    assert path_of(store, tmp_path, *records, late, ended) == ["1", "2", "3"]


def boundary(number: int, above: Any, **fields: Any) -> Record:
    known = {"subtype": "compact_boundary", "logicalParentUuid": above}
    return line(number, "system", None, **known, **fields)


def test_a_compaction_cuts_the_context_and_what_was_before_stays_on_the_path(
    store: Store, tmp_path: Path
) -> None:
    summary = asked(4, "All about tea", isCompactSummary=True)
    second = boundary(6, uuid(5)), asked(7, "More tea", isCompactSummary=True)
    records = U1, answered(2, words("2")), boundary(3, uuid(2)), summary, asked(5, "5")
    found = taken(store, tmp_path, *records)
    context = store.context(found)
    assert (context.summary, texts(context.messages)) == ("All about tea", ["5"])
    assert len(list(store.messages(found, branches=True))) == 5
    path = ["1", "2", "event", "All about tea", "5"]
    assert texts(store.messages(found)) == path

    found = taken(store, tmp_path, *records, *second, asked(8, "8"))
    context = store.context(found)
    assert (context.summary, texts(context.messages)) == ("More tea", ["8"])
    assert texts(store.messages(found)) == [*path, "event", "More tea", "8"]


def test_a_boundary_follows_all_results_of_the_answer_before_it(
    store: Store, tmp_path: Path
) -> None:
    calls = answered(2, call("c1")), answered(3, call("c2"), 2)
    results = result(4, "c1", "4", 2), result(5, "c2", "5", 3)
    cut = boundary(6, uuid(4)), asked(7, "S", isCompactSummary=True)
    path = path_of(store, tmp_path, U1, *calls, *results, *cut)
    assert path == ["1", "assistant", "4", "5", "event", "S"]


@pytest.mark.parametrize("above", [uuid(99), uuid(4), uuid(3), None, 7, [uuid(2)]])
def test_a_boundary_without_an_earlier_logical_parent_begins_the_path(
    store: Store, tmp_path: Path, above: Any
) -> None:
    summary = asked(4, "S", isCompactSummary=True)
    path = path_of(store, tmp_path, U1, asked(2, "2"), boundary(3, above), summary)
    assert path == ["event", "S"]


def test_a_boundary_without_a_summary_cuts_the_path(
    store: Store, tmp_path: Path
) -> None:
    records = U1, asked(2, "2"), boundary(3, uuid(2)), asked(4, "4")
    found = taken(store, tmp_path, *records)
    assert texts(store.messages(found)) == ["event", "4"]
    assert texts(store.context(found).messages) == ["4"]


@pytest.mark.parametrize("above", [2, 6])
@pytest.mark.parametrize(
    "kept",
    [
        {"preservedSegment": {"headUuid": uuid(3), "anchorUuid": uuid(6), "tailUuid": uuid(2)}},
        {"preservedMessages": {"anchorUuid": uuid(6), "uuids": [uuid(3), uuid(4), uuid(2)]}},
    ],
)  # fmt: skip
def test_messages_that_a_compaction_keeps_stay_in_the_context(
    store: Store, tmp_path: Path, kept: Record, above: int
) -> None:
    records = [
        U1, asked(3, "3", 1), answered(4, words("4"), 3), asked(2, "2", 4),
        boundary(5, uuid(1), compactMetadata=kept),
        asked(6, "S", isCompactSummary=True), asked(7, "7", above),
    ]  # fmt: skip
    context = store.context(taken(store, tmp_path, *records))
    assert (context.summary, texts(context.messages)) == ("S", ["3", "4", "2", "7"])
    path = ["1", "3", "4", "2", "event", "S", "7"]
    assert texts(store.messages(*by_source(store).values())) == path


def test_a_summary_of_the_latest_messages_makes_them_a_branch(
    store: Store, tmp_path: Path
) -> None:
    kept = {"anchorUuid": uuid(5), "uuids": [uuid(1), uuid(2)]}
    cut = {"logicalParentUuid": uuid(2), "compactMetadata": {"preservedMessages": kept}}
    found = taken(
        store, tmp_path, U1, answered(2, words("2")), asked(3, "3"), answered(4, words("4"), name="msg_2"),
        line(5, "system", None, subtype="compact_boundary", **cut), asked(6, "Sum", isCompactSummary=True), asked(7, "7"),
    )  # fmt: skip
    assert texts(store.messages(found)) == ["1", "2", "event", "Sum", "7"]
    assert [m.text for m in store.context(found).messages] == ["1", "2", "Sum", "7"]
    assert len(list(store.messages(found, branches=True))) == 7


def test_a_line_whose_parent_is_missing_follows_the_one_before_it(
    store: Store, tmp_path: Path
) -> None:
    lost = asked(3, "3", uuid(99))
    records = asked(1, "1", uuid(98)), answered(2, words("2")), lost, asked(4, "4")
    assert path_of(store, tmp_path, *records) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("above", "path"), [(3, "1234"), (4, "12")])
def test_a_cycle_of_parents_is_cut(
    store: Store, tmp_path: Path, above: int, path: str
) -> None:
    records = U1, asked(2, "2"), asked(3, "3", above), asked(4, "4", 3)
    assert path_of(store, tmp_path, *records) == list(path)
    (found,) = by_source(store).values()
    assert len(list(store.messages(found, branches=True))) == 4


def test_a_line_that_is_repeated_is_counted_once(store: Store, tmp_path: Path) -> None:
    answer = answered(2, words("2"))
    messages = everything(store, tmp_path, U1, answer, answer, asked(3, "3", 2))
    assert len(messages) == 4
    (found,) = by_source(store).values()
    assert found.tokens_input == 10
    assert [m.text for m in store.messages(found)] == ["1", "2", "3"]


# -- what lines become -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "fields", "outcome"),
    [
        ("ok", {}, None),
        ("Exit code 3", {"is_error": True}, "failed"),
        ("The user doesn't want to proceed", {"is_error": True}, "denied"),
        ("", {"toolUseResult": {"interrupted": True}}, "interrupted"),
    ],
)
def test_a_result_says_how_its_call_ended(
    store: Store, tmp_path: Path, content: str, fields: Record, outcome: str | None
) -> None:
    records = U1, answered(2, call("c1", x=1)), result(3, "c1", content, **fields)
    _, answer, message = everything(store, tmp_path, *records)
    (part,) = answer.parts
    assert (part.tool, part.input, part.text or "") == ("Bash", {"x": 1}, content)
    assert (part.outcome, message.role) == (outcome, "tool")


def test_a_result_that_is_an_image_alone_ends_its_call(
    store: Store, tmp_path: Path
) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    shown = result(3, "c1", [{"type": "image", "source": source}])
    _, answer, _ = everything(
        store, tmp_path, asked(1, "1", None), answered(2, call("c1")), shown
    )
    (part,) = answer.parts
    assert (part.status, part.outcome, part.text) == ("completed", None, None)
    assert not store.unfinished()


def test_images_are_files_in_prompts_and_in_results(
    store: Store, tmp_path: Path
) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    image = {"type": "image", "source": source}
    prompt = asked(1, [words("Look"), image], None)
    shown = result(3, "c1", [words("Seen"), image])
    first, answer, second = everything(store, tmp_path, prompt, answered(2, call("c1")), shown)  # fmt: skip
    assert first.parts[1].data["content"].startswith(b"\x89PNG")
    assert second.parts[1].data["content"] == first.parts[1].data["content"]
    # An order by hashes would change the message at each import.
    assert list(second.parts[1].data) == ["mime", "content", "in_result"]
    assert answer.parts[0].text == "Seen"
    assert PNG not in repr((first, second))


COMMAND = "<command-message>brew is running…</command-message>\n<command-name>/brew</command-name>"


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        ("", "/brew"),
        ("\n<command-args></command-args>", "/brew"),
        ("\n<command-args>green,\nhot</command-args>", "/brew green,\nhot"),
    ],
)
def test_a_command_that_the_model_was_given_is_a_prompt(
    store: Store, tmp_path: Path, arguments: str, typed: str
) -> None:
    steps = asked(2, [words("Boil water.")], isMeta=True)
    found = taken(store, tmp_path, asked(1, COMMAND + arguments, None), steps)
    assert found.title == " ".join(typed.split())
    assert [prompt.text for prompt in store.prompts(project=ALL)] == [typed]


@pytest.mark.parametrize(
    "record",
    [
        asked(1, "A reminder", None, isMeta=True),
        asked(1, "<local-command-stdout>x</local-command-stdout>", None),
        asked(1, [words("<system-reminder>x</system-reminder>")], None),
        asked(1, [words("[Request interrupted by user]")], None),
        asked(1, "<session-start-hook>x</session-start-hook>", None),
        asked(1, "<user-prompt-submit-hook>x</user-prompt-submit-hook>", None),
        asked(1, "<command-name>/clear</command-name>", None),
        asked(1, "Go on", None, origin={"kind": "auto-continuation"}),
        asked(1, COMMAND.replace("/brew", "brew"), None),
    ],
)
def test_texts_that_the_program_added_are_synthetic(
    store: Store, tmp_path: Path, record: Record
) -> None:
    (message,) = everything(store, tmp_path, record)
    assert (message.role, message.parts[0].synthetic) == ("user", True)


def test_a_prompt_that_was_typed_while_the_model_worked_is_a_prompt(
    store: Store, tmp_path: Path
) -> None:
    held = {"type": "queued_command", "prompt": "Also milk", "commandMode": "prompt"}
    note = {**held, "prompt": "<x>", "commandMode": "task-notification"}
    by_plugin = {**held, "origin": {"kind": "plugin"}}
    _, typed, added, other = everything(
        store, tmp_path, U1, line(2, "attachment", attachment=held), line(3, "attachment", attachment=note),
        line(4, "attachment", attachment=by_plugin),
    )  # fmt: skip
    assert (typed.role, typed.text) == ("user", "Also milk")
    assert typed.parts[0].data == {"plain": True}
    assert (added.parts[0].synthetic, added.parts[0].data) == (True, {"plain": True})
    assert other.parts[0].data == added.parts[0].data


def test_a_prompt_with_an_image_that_was_typed_while_the_model_worked_is_a_prompt(
    store: Store, tmp_path: Path
) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}  # fmt: skip
    held = {"type": "queued_command", "prompt": [words("Like this"), image]}
    _, typed = everything(store, tmp_path, U1, line(2, "attachment", attachment=held))
    assert (typed.role, typed.text) == ("user", "Like this")
    assert typed.parts[1].data["content"].startswith(b"\x89PNG")


def test_texts_beside_prompts_are_in_the_context(store: Store, tmp_path: Path) -> None:
    shown = [{"content": "It is Monday"}]
    date = line(2, "attachment", attachment={"type": "date"}, rendered=shown)
    found = taken(store, tmp_path, U1, date, line(3, "attachment", attachment={}))
    assert [m.text for m in store.context(found, at=uuid(2)).messages] == [
        "1",
        "It is Monday",
    ]
    kinds = [m.kind for m in store.messages(found, branches=True)]
    assert kinds == [None, "custom_message", "attachment"]


def test_an_attachment_without_a_type_is_kept(store: Store, tmp_path: Path) -> None:
    odd = line(2, "attachment", attachment={"": {"path": "a", "content": "b"}})
    found = taken(store, tmp_path, U1, odd)
    assert [m.kind for m in store.messages(found, branches=True)] == [
        None,
        "attachment",
    ]


def test_lines_of_every_type_are_kept(store: Store, tmp_path: Path) -> None:
    later = beside("never-seen", a={"b": 1})
    named = beside("usage", totalCostUSD=3)
    _, *events = everything(store, tmp_path, U1, later, named, beside("mode", mode="plan"))  # fmt: skip
    assert [event.kind for event in events] == ["never-seen", "custom", "mode_change"]
    assert events[0].data["a"] == {"b": 1}
    assert events[1].data["type"] == "usage"
    assert all(event.cost is None for event in events)


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([beside("custom-title", customTitle="Mine"), beside("ai-title", aiTitle="Its")], "Mine"),
        ([beside("ai-title", aiTitle="First"), beside("ai-title", aiTitle="Last")], "Last"),
        ([{"type": "summary", "summary": "Tea", "leafUuid": uuid(1)}], "Tea"),
        ([{"type": "summary", "summary": "Of another", "leafUuid": uuid(77)}], "1"),
        ([beside("custom-title", customTitle="Mine"), beside("custom-title", customTitle="")], "Mine"),
    ],
)  # fmt: skip
def test_a_title_is_the_last_one_of_the_strongest_kind(
    store: Store, tmp_path: Path, records: list[Record], title: str
) -> None:
    found = taken(store, tmp_path, U1, *records)
    assert (found.title, found.version) == (title, "2.1.329")
    assert found.directory == "/home/ada/tea"


def test_an_older_program_wrote_titles_into_the_next_transcript(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), U1, asked(2, "2"))
    title = {"type": "summary", "summary": "Tea", "leafUuid": uuid(2)}
    write(tmp_path / PROJECT, session(2), title, asked(8, "8", None, of=2))
    one, two = family(store, tmp_path)
    assert (one.title, two.title) == ("Tea", "8")


@pytest.mark.parametrize("count", [1, HEAD_LINES + 1])
def test_a_transcript_without_a_conversation_is_not_a_session(
    store: Store, tmp_path: Path, count: int
) -> None:
    folder = tmp_path / PROJECT
    title = {"type": "summary", "summary": "Tea", "leafUuid": uuid(1)}
    alone = write(folder, session(2), *[title] * count)
    assert read_into(store, alone) == []

    write(folder, session(1), U1)
    write(folder, session(3), *[title] * count, asked(8, "8", None, of=3))
    found = {name: of.title for name, of in imported.all_taken(store, tmp_path).items()}
    assert found == {session(1): "Tea", session(3): "8"}

    notes = beside("queue-operation", operation="dequeue"), beside("mode", mode="plan")
    write(folder, session(2), title, *notes)
    assert imported.all_taken(store, tmp_path).keys() == found.keys()

    # Nothing of a transcript that is damaged is passed over in silence.
    alone.write_bytes(alone.read_bytes() + b"{torn\n")
    assert any(isinstance(item, Problem) for item in read_into(store, alone))


@pytest.mark.parametrize("odd", ["{}", '{"type":7}', '{"type":["user"]}'])
def test_a_line_without_a_type_is_reported_in_a_transcript_without_a_conversation(
    store: Store, tmp_path: Path, odd: str
) -> None:
    title = {"type": "summary", "summary": "Tea", "leafUuid": uuid(1)}
    path = write(tmp_path / PROJECT, session(1), title)
    path.write_bytes(path.read_bytes() + f"{odd}\n".encode())
    problems = [p for p in read_into(store, path) if isinstance(p, Problem)]
    assert [(p.line, p.why) for p in problems] == [(2, "line skipped: it has no type")]


def test_a_transcript_is_not_a_session_before_its_first_line_of_conversation(
    store: Store, tmp_path: Path
) -> None:
    later = beside("of-a-later-release", value=1, timestamp="2026-02-02T02:00:00.000Z")
    early = beside("mode", mode="plan"), later
    path = write(tmp_path / PROJECT, session(1), *early)
    assert read_into(store, path) == []

    write(tmp_path / PROJECT, session(1), *early, U1)
    (found,) = imported.all_taken(store, tmp_path).values()
    assert found.directory == U1["cwd"]
    assert found.time_created > 0


def test_a_directory_and_a_time_that_come_later_replace_unknown_ones(
    store: Store, tmp_path: Path
) -> None:
    first = {k: v for k, v in U1.items() if k not in ("cwd", "timestamp")}
    path = write(tmp_path / PROJECT, session(1), first)
    read_into(store, path)
    write(tmp_path / PROJECT, session(1), first, answered(2, words("2")))
    (found,) = imported.all_taken(store, tmp_path).values()
    with Store.open(tmp_path / "fresh.db", durability="normal") as fresh:
        (whole,) = imported.all_taken(fresh, tmp_path).values()
    assert (found.directory, found.time_created, found.project_id) == (
        whole.directory,
        whole.time_created,
        whole.project_id,
    )
    assert whole.directory == U1["cwd"]
    assert whole.time_created > 0


def test_a_tag_is_the_last_one_unless_it_was_cleared(
    store: Store, tmp_path: Path
) -> None:
    found = taken(store, tmp_path, U1, beside("tag", tag="a"), beside("tag", tag="b"))
    assert found.metadata["tag"] == "b"


# -- forks --------------------------------------------------------------------------------


def family(store: Store, folder: Path) -> tuple[Session, Session]:
    read_into(store, folder)
    found = by_source(store)
    return found[session(1)], found[session(2)]


@pytest.mark.parametrize("names", [(1, 2), (2, 1)])
def test_a_fork_is_known_by_the_lines_that_it_has_in_common(
    store: Store, tmp_path: Path, names: tuple[int, int]
) -> None:
    original, fork = names
    common = U1, answered(2, words("2")), asked(3, "3")
    write(tmp_path / PROJECT, session(original), beside("queue-operation", timestamp=moment(0)), *common, asked(8, "8", 3))  # fmt: skip
    began = beside("queue-operation", timestamp=moment(9))
    write(tmp_path / PROJECT, session(fork), began, *common[:2], asked(9, "9", 2))
    read_into(store, tmp_path)
    found = by_source(store)
    of, by = found[session(original)], found[session(fork)]
    assert (of.relation, by.relation, by.parent_id) == (None, "fork", of.id)
    # After the common answer: there is a line before the first prompt.
    assert by.parent_seq == 3
    assert (of.tokens_input, by.tokens_input) == (10, None)


def test_without_other_times_the_one_with_earlier_lines_of_its_own_is_the_original(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(2), U1, asked(2, "2"), asked(3, "3"))
    write(tmp_path / PROJECT, session(1), U1, asked(9, "9", 1))
    fork, original = family(store, tmp_path)
    assert (fork.relation, fork.parent_id) == ("fork", original.id)


def test_a_fork_that_names_its_original_has_other_uuids(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), U1, answered(2, words("2")), asked(3, "3"))
    of = [{"sessionId": session(1), "messageUuid": uuid(n)} for n in (1, 2)]
    copy = asked(11, "1", None, forkedFrom=of[0]), answered(12, words("2"), forkedFrom=of[1])  # fmt: skip
    for record, number in zip(copy, (1, 2), strict=True):
        record["timestamp"] = moment(number)
    write(tmp_path / PROJECT, session(2), *copy, asked(13, "other"))
    original, fork = family(store, tmp_path)
    assert (fork.relation, fork.parent_id) == ("fork", original.id)
    assert fork.parent_seq == 2
    assert (original.tokens_input, fork.tokens_input) == (10, None)


def test_a_prompt_that_was_copied_twice_is_one_prompt(
    store: Store, tmp_path: Path
) -> None:
    def copy(number: int, of: int) -> list[Record]:
        lines = [asked(10 * number, "1", None), asked(10 * number + 1, "2")]
        for place, record in enumerate(lines, start=1):
            named = {
                "sessionId": session(number - 1),
                "messageUuid": uuid(of + place - 1),
            }
            record |= {"forkedFrom": named, "timestamp": moment(place)}
        return lines

    write(tmp_path / PROJECT, session(1), U1, asked(2, "2"))
    write(tmp_path / PROJECT, session(2), *copy(2, 1), asked(22, "two"))
    write(tmp_path / PROJECT, session(3), *copy(3, 20), asked(32, "three"))
    read_into(store, tmp_path)
    said = [prompt.text for prompt in store.prompts(project=ALL)]
    assert sorted(said) == ["1", "2", "three", "two"]
    last = by_source(store)[session(3)]
    assert [m.inherited for m in store.messages(last)] == [True, True, False]


def test_a_resumed_transcript_whose_copies_have_new_times_is_counted_once(
    store: Store, tmp_path: Path
) -> None:
    said = [U1, answered(2, words("2")), asked(3, "3"), answered(4, words("4"))]
    write(tmp_path / PROJECT, session(1), *said[:2])
    for number, length in ((2, 3), (3, 4)):
        now = {"timestamp": moment(10 * number)}
        copied = ({**line, **now} for line in said[: length - 1])
        write(tmp_path / PROJECT, session(number), *copied, said[length - 1])

    read_into(store, tmp_path)
    first, *forks = (by_source(store)[session(number)] for number in (1, 2, 3))
    assert [fork.parent_id for fork in forks] == [first.id, forks[0].id]
    assert [of.tokens_input for of in (first, *forks)] == [10, None, 10]
    assert [prompt.text for prompt in store.prompts(project=ALL)] == ["3", "1"]
    times = {m.time_created for of in (first, *forks) for m in store.messages(of)}
    assert len(times) == len(said)


def test_each_original_in_a_chain_of_forks_is_read_once_more(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    lines_of = claude_forks._lines_of

    def count(log: ClaudeLog) -> claude_forks.LinesByUuid:
        read.append(log.session)
        return lines_of(log)

    lines = [asked(number, f"{number}", number - 1 or None) for number in range(1, 9)]
    for number in range(1, 9):
        copied = {"sessionId": session(number), "timestamp": moment(20 + number)}
        write(
            tmp_path / PROJECT,
            session(number),
            *({**record, **copied} for record in lines[: number - 1]),
            lines[number - 1],
        )
    monkeypatch.setattr(claude_forks, "_lines_of", count)
    read_into(store, tmp_path)
    sessions = by_source(store)
    path = [sessions[session(number)].parent_id for number in range(2, 9)]
    assert path == [sessions[session(number)].id for number in range(1, 8)]
    assert [item.text for item in store.prompts()][::-1] == [
        str(n) for n in range(1, 9)
    ]
    # Once to know which transcript is the original of which, and once as an original.
    assert sorted(read) == sorted(
        [session(number) for number in range(1, 9)]
        + [session(number) for number in range(1, 8)]
    )


def resumed(names: str, *, same_uuids: bool) -> dict[str, list[Record]]:
    """Transcripts of 1.x by their names: "o", and "a" and "b", which continue it.

    A resume copied the lines to a transcript of its own with new times, without the
    id of the request and, before 1.0.86, with new uuids.
    """
    said = asked(1, "Hello", None), answered(2, call("c1"), requestId="r1"), result(3, "c1", "x")  # fmt: skip
    found = {"o": [*said, answered(4, words("Hi"), name="msg_2", requestId="r2")]}
    version = {"version": "1.0.86" if same_uuids else "1.0.85"}
    for number, name in ((20, "a"), (40, "b")):
        shift = 0 if same_uuids else number
        copied = [
            asked(1 + shift, [words("Hello")], None),
            answered(2 + shift, call("c1")),
            result(3 + shift, "c1", "x"),
            answered(4 + shift, words("Hi"), name="msg_2"),
        ]
        now = {"timestamp": moment(number)}
        own = asked(number + 5, "And?", 4 + shift), answered(number + 6, words(name), name=f"msg_{number}")  # fmt: skip
        found[name] = [*({**line, **now} for line in copied), *own]

    return {name: [line | version for line in found[name]] for name in names}


@pytest.mark.parametrize("same_uuids", [True, False])
@pytest.mark.parametrize("order", ["ab", "ba", *map("".join, permutations("oab"))])
def test_copies_of_a_resumed_transcript_count_once_in_each_order_of_imports(
    store: Store, tmp_path: Path, order: str, same_uuids: bool
) -> None:
    for name, records in resumed(order, same_uuids=same_uuids).items():
        # Each alone: the program removes its transcripts after a month.
        write(tmp_path / name / PROJECT, session(ord(name)), *records)
        assert not [
            p for p in read_into(store, tmp_path / name) if isinstance(p, Problem)
        ]

    found = {name: by_source(store)[session(ord(name))] for name in order}
    counted = {name: of.tokens_input for name, of in found.items()}
    oldest = "o" if "o" in order else "a"
    expected = {"o": 20, "a": 10, "b": 10}
    expected["a"] += 0 if "o" in order else 20
    assert counted == {name: expected[name] for name in order}
    prompts = {(p.text, p.session_id) for p in store.prompts(project=ALL)}
    later = {("And?", found[name].id) for name in "ab"}
    assert prompts == {("Hello", found[oldest].id), *later}
    assert len(list(store.prompts(project=ALL))) == 3
    assert len(list(store.search("Hi"))) == 1


@pytest.mark.parametrize("same_uuids", [True, False])
@pytest.mark.parametrize("order", ["oa", "ao", "ab", "ba"])
def test_a_result_of_a_resumed_transcript_is_inherited_by_its_copies(
    store: Store, tmp_path: Path, order: str, same_uuids: bool
) -> None:
    transcripts = resumed(order, same_uuids=same_uuids)
    for name in order:
        write(tmp_path / name / PROJECT, session(ord(name)), *transcripts[name])
        read_into(store, tmp_path / name)

    stored = by_source(store)
    inherited = {
        name: [
            message.inherited
            for message in store.messages(stored[session(ord(name))])
            if message.role == "tool"
        ]
        for name in order
    }
    oldest, copy = sorted(order, key="oab".index)
    assert inherited == {oldest: [False], copy: [True]}


HOOK = "<user-prompt-submit-hook>x</user-prompt-submit-hook>"


@pytest.mark.parametrize("order", ["oa", "ao"])
def test_copied_prompts_count_once_after_a_hook_and_without_an_answer(
    store: Store, tmp_path: Path, order: str
) -> None:
    said = [
        *(asked(1, "Hello", None), asked(2, HOOK), answered(3, words("Hi"))),
        *(asked(4, "And?"), asked(5, "[Request interrupted by user]")),
    ]
    now = {"timestamp": moment(20)}
    copied = [
        asked(21, [words("Hello")], None, **now), asked(22, [words(HOOK)], **now),
        answered(23, words("Hi"), **now), asked(24, [words("And?")], **now),
        asked(25, "[Request interrupted by user]", **now),
    ]  # fmt: skip
    own = asked(26, "Hello"), answered(27, words("So"), name="msg_2")
    found = {"o": said, "a": [*copied, *own]}
    for name in order:
        records = (record | {"version": "1.0.85"} for record in found[name])
        write(tmp_path / name / PROJECT, session(ord(name)), *records)
        read_into(store, tmp_path / name)

    prompts = [prompt.text for prompt in store.prompts(project=ALL)]
    assert prompts == ["Hello", "And?", "Hello"]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_fork_whose_original_is_gone_inherits_from_the_older_session(
    store: Store, tmp_path: Path, order: tuple[int, int]
) -> None:
    copied = U1, answered(2, words("2"))
    for number in order:
        began = beside("queue-operation", of=number, timestamp=moment(number - 1))
        write(tmp_path / str(number) / PROJECT, session(number), began, *copied)
        read_into(store, tmp_path / str(number))

    found = by_source(store)
    assert [found[session(n)].tokens_input for n in (1, 2)] == [10, None]
    (prompt,) = store.prompts(project=ALL)
    assert prompt.session_id == found[session(1)].id


@pytest.mark.parametrize("version", ["1.0.85", "2.1.329"])
def test_a_prompt_is_in_the_history_once_before_and_after_its_answer(
    store: Store, tmp_path: Path, version: str
) -> None:
    prompt, answer = (of | {"version": version} for of in (U1, answered(2, words("2"))))
    taken(store, tmp_path, prompt)
    taken(store, tmp_path, prompt, answer)
    assert [prompt.text for prompt in store.prompts(project=ALL)] == ["1"]


def test_a_prompt_that_got_another_answer_in_a_fork_is_one_prompt(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), U1, answered(2, words("2")))
    began = beside("queue-operation", of=2, timestamp=moment(9))
    other = answered(12, words("12"), 1, name="msg_2")
    write(tmp_path / PROJECT, session(2), began, U1, other)
    original, fork = family(store, tmp_path)
    assert [prompt.text for prompt in store.prompts(project=ALL)] == ["1"]
    assert (original.tokens_input, fork.tokens_input) == (10, 10)


def test_equal_prompts_of_two_sessions_are_two(store: Store, tmp_path: Path) -> None:
    for number in (1, 2):
        answer = answered(10 * number + 1, words("Hi"), name=f"msg_{number}")
        write(tmp_path / PROJECT, session(number), asked(10 * number, "Hello", None), answer)  # fmt: skip
    read_into(store, tmp_path)
    assert [prompt.text for prompt in store.prompts(project=ALL)] == ["Hello"] * 2


def test_an_empty_transcript_is_passed_over(store: Store, tmp_path: Path) -> None:
    write(tmp_path / PROJECT, session(1), U1)
    (tmp_path / PROJECT / f"{session(2)}.jsonl").touch()
    (only,) = read_into(store, tmp_path)
    assert not isinstance(only, Problem)


# -- subagents ----------------------------------------------------------------------------

LOOK = asked(4, "Look"), answered(5, words("Found"), name="msg_2")
STARTS = answered(2, call("c1", "Task", prompt="Look"), stop="tool_use")


def children(store: Store, folder: Path) -> tuple[Session, Session]:
    assert not [r for r in read_into(store, folder) if isinstance(r, Problem)]
    parent, child = sorted(by_source(store).values(), key=lambda s: s.relation or "")
    assert (child.relation, child.parent_id) == ("subagent", parent.id)
    assert [m.text for m in store.messages(child)] == ["Look", "Found"]
    return parent, child


@pytest.mark.parametrize("below", ["subagents", "subagents/workflows/wf_1"])
def test_a_sidecar_says_what_a_subagent_is_for(
    store: Store, tmp_path: Path, below: str
) -> None:
    write(tmp_path / PROJECT, session(1), U1, STARTS)
    folder = tmp_path / PROJECT / session(1) / below
    write(folder, "agent-a1", *aside(4, "a1", *LOOK))
    sidecar = folder / "agent-a1.meta.json"
    sidecar.write_text('{"agentType":"Explore","description":"Tea","toolUseId":"c1"}')
    _, child = children(store, tmp_path)
    assert (child.title, child.agent, child.call_id) == ("Tea", "Explore", "c1")


@pytest.mark.parametrize("starter", ["a0", "a1", "a9", ["a0"]])
def test_a_subagent_is_below_the_subagent_that_started_it(
    store: Store, tmp_path: Path, starter: Any
) -> None:
    write(tmp_path / PROJECT, session(1), U1)
    folder = tmp_path / PROJECT / session(1) / "subagents"
    write(folder, "agent-a1", *aside(4, "a1", *LOOK))
    start = answered(8, call("c1", "Agent"), name="msg_3")
    write(folder, "agent-a0", *aside(7, "a0", asked(7, "Start"), start))
    sidecar = json.dumps({"toolUseId": "c1", "parentAgentId": starter})
    (folder / "agent-a1.meta.json").write_text(sidecar)

    assert imported.all_taken(store, tmp_path).keys() == by_source(store).keys()
    found = by_source(store)
    above = session(1) + "/agent-a0" * (starter == "a0")
    child = found[f"{session(1)}/agent-a1"]
    assert (child.parent_id, child.relation) == (found[above].id, "subagent")


def test_without_a_sidecar_the_result_of_the_call_names_the_subagent(
    store: Store, tmp_path: Path
) -> None:
    other = answered(2, call("c0", "Task", prompt="Look"))
    named = result(7, "c1", "Found", 3, toolUseResult={"agentId": "a1"})
    write(tmp_path / PROJECT, session(1), U1, other, answered(3, call("c1", "Task")), named)  # fmt: skip
    write(tmp_path / PROJECT, "agent-a1", *aside(4, "a1", *LOOK))
    assert children(store, tmp_path)[1].call_id == "c1"


@pytest.mark.parametrize("agent", [None, "a1"])
def test_lines_of_a_subagent_in_the_transcript_are_a_session_of_their_own(
    store: Store, tmp_path: Path, agent: str | None
) -> None:
    ended = result(6, "c1", "Found", 2)
    write(tmp_path / PROJECT, session(1), U1, STARTS, *aside(4, agent, *LOOK), ended)
    parent, child = children(store, tmp_path)
    assert child.call_id == "c1"
    said = texts(store.messages(parent, branches=True))
    assert said == ["1", "assistant", "Found"]


@pytest.mark.parametrize("is_inside", [True, False])
def test_tokens_of_a_subagent_are_counted_on_its_answers_alone(
    store: Store, tmp_path: Path, is_inside: bool
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 4}
    stated = {"agentId": "a1", "totalTokens": 14, "usage": usage}
    ended = result(6, "c1", "Found", 2, toolUseResult=stated)
    shown = line(7, "progress", 6, data={"type": "agent_progress", "message": LOOK[1]})
    inner = aside(4, "a1", *LOOK)
    within = inner if is_inside else []
    write(tmp_path / PROJECT, session(1), U1, STARTS, *within, ended, shown)
    if not is_inside:
        folder = tmp_path / PROJECT / session(1) / "subagents"
        write(folder, "agent-a1", *inner)
    assert [found.tokens_input for found in children(store, tmp_path)] == [10, 10]


def lines_read(folder: Path, agents: int) -> int:
    """Return how many lines are read of a transcript with so many subagents."""
    tasks = []
    for number in range(100, 100 * (agents + 1), 100):
        prompt = f"Look {number}"
        said = asked(number, prompt), answered(number + 1, words("Found"))
        start = answered(number + 2, call(f"c{number}", "Task", prompt=prompt), 1)
        tasks += [start, *aside(number, None, *said)]
    write(folder / PROJECT, session(1), U1, *tasks)
    count = 0

    def note(_frame: Any, event: str, called: Any) -> None:
        nonlocal count
        count += event == "c_call" and called.__name__ == "readline"

    (found,) = find(folder)
    sys.setprofile(note)
    try:
        for item in found.read():
            assert isinstance(item, SourceSession)
            assert item.complete is not None
            assert list(item.complete().messages)
    finally:
        sys.setprofile(None)
    return count


def test_a_transcript_is_not_read_again_for_each_subagent_in_it(tmp_path: Path) -> None:
    few, many = (lines_read(tmp_path / str(n), n) for n in (10, 40))
    assert many < 5 * few


# -- where transcripts are ---------------------------------------------------------------


def test_a_transcript_a_project_and_a_home_are_stores(tmp_path: Path) -> None:
    log = write(tmp_path / ".claude" / PROJECT, session(1), U1)
    for place in (log, log.parent, tmp_path / ".claude", tmp_path):
        (found,) = find(place)
        assert found.source == "claude"
        assert len(list(found.read())) == 1


def test_a_renamed_transcript_is_the_session_that_its_lines_name(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path, "renamed", U1)
    assert taken(store, tmp_path).source_id == session(1)


def test_other_logs_in_a_folder_are_not_hidden(tmp_path: Path) -> None:
    write(tmp_path, session(1), U1)
    write(tmp_path, "other", {"type": "session", "version": 3, "id": "x", "cwd": "/"})
    assert sorted(found.source for found in find(tmp_path)) == ["claude", "pi"]


def test_a_transcript_of_qwen_code_is_left_to_its_reader(tmp_path: Path) -> None:
    said = line(1, "user", None, message={"role": "user", "parts": [{"text": "1"}]})
    event = line(2, "system", systemPayload={}, provenance="system")
    write(tmp_path / "chats", session(1), said, event)
    assert not [found for found in find(tmp_path) if found.source == "claude"]


def test_default_locations_are_the_home_and_where_it_was_moved_to() -> None:
    env = {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/srv/claude"}
    found = default_locations(env, formats=["claude"])
    assert found[:2] == [Path("/srv/claude"), Path("/home/ada/.claude")]


# -- files ---------------------------------------------------------------------------------


def outputs(store: Store, folder: Path, named: str) -> list[Any]:
    saved = f"<persisted-output>\nFull output saved to: {named}\n\nPreview"
    records = U1, answered(2, call("c1")), result(3, "c1", saved)
    *_, message = everything(store, folder, *records)
    return [part.data["content"] for part in message.parts if part.type == "file"]


def test_the_complete_output_of_a_call_is_imported(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / PROJECT / session(1) / "tool-results"
    folder.mkdir(parents=True)
    (folder / "x.txt").write_bytes(b"all of it")
    named = f"/elsewhere/{session(1)}/tool-results/x.txt"
    assert outputs(store, tmp_path, named) == [b"all of it"]


def test_an_output_that_its_program_cleaned_up_stays(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / PROJECT / session(1) / "tool-results"
    folder.mkdir(parents=True)
    (folder / "x.txt").write_bytes(b"all of it" * 1000)
    named = f"/elsewhere/{session(1)}/tool-results/x.txt"
    assert outputs(store, tmp_path, named) == [b"all of it" * 1000]

    (folder / "x.txt").unlink()
    (log,) = (tmp_path / PROJECT).glob("*.jsonl")
    with log.open("a") as file:
        file.write(json.dumps(asked(9, "And now?")) + "\n")
    read_into(store, log)
    (found,) = by_source(store).values()
    files = [
        part.data["content"]
        for message in store.messages(found, branches=True)
        for part in message.parts
        if part.type == "file"
    ]
    assert files == [b"all of it" * 1000]
    assert check(store) == []


@pytest.mark.parametrize(
    "named", ["/s/tool-results/..", "/etc/passwd", "/s/tool-results/link", "../tool-results/x"]
)  # fmt: skip
def test_no_file_outside_of_the_store_is_read(
    store: Store, tmp_path: Path, named: str
) -> None:
    folder = tmp_path / PROJECT / session(1) / "tool-results"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to("/etc/passwd")
    assert outputs(store, tmp_path, named) == []


# -- damage ----------------------------------------------------------------------------------


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    log = write(tmp_path / PROJECT, session(1), U1, answered(2, words("2")), asked(3, "3"))  # fmt: skip
    lines = log.read_text().splitlines(keepends=True)
    lines[1] = lines[1][:40] + "\n"
    log.write_text("".join(lines) + '{"type":"us')
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [2, 4]
    (only,) = by_source(store).values()
    assert [m.text for m in store.messages(only)] == ["1", "3"]


def test_values_of_other_types_are_kept(store: Store, tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, [], {}, [[1]], {"a": 1}, "x\0y", "\ud800"]
    records = [U1]
    for number, value in enumerate(odd, start=10):
        records += [
            {**asked(number, value), "parentUuid": value},
            {**answered(number + 20, words("a")), "uuid": value, "message": value},
            {**line(number + 80, "system", None, logicalParentUuid=value), "uuid": value},
            {**result(number + 40, "c1", value), "timestamp": value},
            {**answered(number + 60, {"type": "tool_use", "id": value, "name": value}), "requestId": value},
        ]  # fmt: skip
    messages = everything(store, tmp_path, *records)
    assert len(messages) > 3 * len(odd)


# -- what a model was given ------------------------------------------------------------------


def instructions(number: int, *files: Record, **fields: Any) -> Record:
    held = {"type": "instructions", "files": list(files), **fields}
    return line(
        number, "attachment", attachment=held, rendered=[{"content": f"{number}"}]
    )


def test_instructions_are_sources_of_the_context_until_they_are_given_again(
    store: Store, tmp_path: Path
) -> None:
    user, project = (
        {"path": f"/{name}/CLAUDE.md", "type": name, "content": name} for name in ("User", "Project")
    )  # fmt: skip
    memory = {
        "type": "nested_memory",
        "path": "/n",
        "content": {"path": "/n", "type": "Project", "content": "N"},
    }
    records = [
        U1, instructions(2, user, project), line(3, "attachment", attachment=memory, rendered=[{"content": "n"}]),
        instructions(4, {**project, "content": "new"}, changed=True), answered(5, words("5")),
    ]  # fmt: skip
    found = taken(store, tmp_path, *records)
    context = store.context(found)
    assert [(s.kind, s.path, s.scope, s.text) for s in context.sources] == [
        ("instructions", "/User/CLAUDE.md", "User", "User"), ("instructions", "/Project/CLAUDE.md", "Project", "Project"),
        ("nested_memory", "/n", "Project", "N"), ("instructions", "/Project/CLAUDE.md", "Project", "new"),
    ]  # fmt: skip
    assert context.system == ("2",)
    assert [m.text for m in context.messages] == ["1", "n", "4", "5"]

    found = taken(
        store,
        tmp_path,
        *records,
        instructions(6, user),
        answered(7, words("7"), name="msg_7"),
    )
    context = store.context(found)
    assert ([s.path for s in context.sources], context.system) == (
        ["/User/CLAUDE.md"],
        ("6",),
    )


def test_memories_and_skills_that_a_model_was_given_are_sources(
    store: Store, tmp_path: Path
) -> None:
    memories = {
        "type": "relevant_memories",
        "memories": [{"path": "/m", "content": "M"}],
    }
    skills = {
        "type": "invoked_skills",
        "skills": [{"name": "tea", "path": "/s", "content": "S"}],
    }
    *_, first, second = everything(
        store,
        tmp_path,
        U1,
        line(2, "attachment", attachment=memories),
        line(3, "attachment", attachment=skills),
    )
    assert [(p.type, p.title, p.input, p.text) for p in first.parts + second.parts] == [
        ("source", "/m", {"kind": "relevant_memories", "path": "/m"}, "M"),
        ("source", "tea", {"kind": "invoked_skills", "path": "/s"}, "S"),
    ]


# -- the prompt history ----------------------------------------------------------------------


def typed(text: str, number: int, **fields: Any) -> Record:
    """A line of the prompt history, typed a second after the message of that number."""
    return {
        "display": text, "pastedContents": {}, "timestamp": 1_769_997_600_000 + 1000 * number,
        "project": "/home/ada/tea", "sessionId": session(1), **fields,
    }  # fmt: skip


def prompts(store: Store, folder: Path, *history: Record) -> list[tuple[Any, ...]]:
    """Import a session with a prompt and its history; return the prompts, oldest first."""
    write(
        folder / PROJECT,
        session(1),
        asked(1, "Hello\nyou", None),
        answered(2, words("2")),
    )
    write(folder, "history", *history)
    problems = [item for item in read_into(store, folder) if isinstance(item, Problem)]
    assert problems == []
    found = store.prompts(project=ALL, limit=100)
    return sorted(
        (p.time_created, p.text, p.session_id is not None, p.directory) for p in found
    )


def test_a_prompt_is_in_the_history_once_and_commands_are_added(
    store: Store, tmp_path: Path
) -> None:
    history = (
        typed("Hello\nyou", 1),
        typed("/compact", 4),
        typed("Gone", 5, sessionId=session(9)),
    )
    found = prompts(store, tmp_path, *history)
    assert [row[1:] for row in found] == [
        ("Hello\nyou", True, "/home/ada/tea"), ("/compact", True, "/home/ada/tea"),
        ("Gone", False, "/home/ada/tea"),
    ]  # fmt: skip
    assert prompts(store, tmp_path, *history) == found


def test_pasted_text_is_in_its_place_in_the_prompt(
    store: Store, tmp_path: Path
) -> None:
    name = "0123456789abcdef"
    cache = tmp_path / "paste-cache"
    cache.mkdir()
    (cache / f"{name}.txt").write_text("long")
    pasted = {
        "1": {"id": 1, "type": "text", "content": "you"}, "2": {"id": 2, "type": "text", "contentHash": name},
        "3": {"id": 3, "type": "text", "contentHash": f"../{name}"},
    }  # fmt: skip
    both = typed(
        "[Pasted text #2 +9 lines] [Pasted text #3] [Image #1]",
        5,
        pastedContents=pasted,
    )
    found = prompts(
        store,
        tmp_path,
        typed("Hello\n[Pasted text #1 +2 lines]", 1, pastedContents=pasted),
        both,
    )
    assert [row[1] for row in found] == [
        "Hello\nyou",
        "long [Pasted text #3] [Image #1]",
    ]


def test_an_odd_line_of_the_history_is_reported_and_skipped(
    store: Store, tmp_path: Path
) -> None:
    odd: list[Record] = [
        {},
        {"display": 7},
        typed("x", 1, timestamp="soon"),
        typed("y", 1, project=[], sessionId={}),
    ]
    write(tmp_path / PROJECT, session(1), U1)
    write(tmp_path, "history", *odd, typed("z", 2, pastedContents=[7]))
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [1, 2, 3]
    assert {prompt.text for prompt in store.prompts(project=ALL)} == {"1", "y", "z"}
