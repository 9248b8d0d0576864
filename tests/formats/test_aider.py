"""Chat histories of aider: runs, prompts, fences, and what is mined from its output."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import new_store
from samples_aider import (
    BANNER,
    CHAT,
    EDIT,
    INPUTS,
    THINKING,
    answered,
    asked,
    moment,
    run,
    told,
    typed,
    usage,
    write,
)

from sessiondb.formats import default_locations, find
from sessiondb.formats.aider.records import head_of, raw_of
from sessiondb.model import (
    Imported,
    MessageDraft,
    Problem,
    SourceMessage,
    SourceSession,
)
from sessiondb.model.bounds import COST_MOST
from sessiondb.repository.sessions import ALL


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def everything(folder: Path) -> tuple[list[SourceSession], list[Problem]]:
    found = [item for store in find(folder) for item in store.read()]
    sessions = [
        item.complete() if item.complete else item
        for item in found
        if isinstance(item, SourceSession)
    ]
    return sessions, [item for item in found if isinstance(item, Problem)]


def messages_of(session: SourceSession) -> list[MessageDraft]:
    return [m.draft for m in session.messages if isinstance(m, SourceMessage)]


def problems_of(session: SourceSession) -> list[str]:
    return [m.why for m in session.messages if isinstance(m, Problem)]


def only(folder: Path) -> list[MessageDraft]:
    (session,), problems = everything(folder)
    assert problems == []
    assert problems_of(session) == []
    return messages_of(session)


def said(messages: list[MessageDraft]) -> list[tuple[str, str]]:
    return [
        (m.kind or m.role, "|".join(p.text or "" for p in m.parts)) for m in messages
    ]


def again(folder: Path) -> bytes:
    """Return the file that the messages of its sessions were read from."""
    sessions, _ = everything(folder)
    pieces: list[str | bytes] = []
    for item in sessions:
        pieces.append(head_of(item.data))
        pieces += map(raw_of, messages_of(item))
        pieces.append(item.data.get("torn", ""))
    return b"".join(x.encode() if isinstance(x, str) else x for x in pieces)


# -- runs --------------------------------------------------------------------------


def test_runs_are_sessions_with_model_version_time_and_folder(tmp_path: Path) -> None:
    write(tmp_path, run(1, BANNER, asked("A")), run(2, asked("B")))
    first, second = everything(tmp_path)[0]
    assert (first.provider_id, first.model_id) == ("openai", "large")
    assert (first.version, first.directory) == ("0.86.2", str(tmp_path))
    assert first.time_created == 1769997660000
    assert (second.model_id, second.version) == (None, None)


def test_a_moved_project_keeps_its_ids_and_so_does_one_that_grows(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "old" / "tea", tmp_path / "new" / "tea"
    write(old, run(1, asked("A")))
    write(new, run(1, asked("A"), answered("Yes")), run(2, asked("B")))
    (first,), _ = everything(old)
    same, _ = everything(new)[0]
    assert first.source_id == same.source_id
    ids = [m.id for m in messages_of(same)]
    assert ids[0] == messages_of(first)[0].id


def test_projects_whose_runs_began_in_the_same_second_stay_apart(
    tmp_path: Path,
) -> None:
    before = asked("Before")
    write(tmp_path / "tea", before, run(1, asked("A")))
    write(tmp_path / "coffee", before, run(1, asked("A")))
    sessions, _ = everything(tmp_path)
    assert len({item.source_id for item in sessions}) == 4
    assert len({m.id for item in sessions for m in messages_of(item)}) == 4
    with new_store() as store:
        assert len([r for r in store.ingest(sessions) if isinstance(r, Imported)]) == 4
        assert len(store.sessions(project=ALL)) == 4


@pytest.mark.parametrize("place", [".", "../tea", "../link"])
def test_the_folder_has_one_name_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "tea"
    write(folder, run(1, asked("A")))
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    (here,), _ = everything(Path(place, CHAT))
    (there,), _ = everything(folder / CHAT)
    assert here.source_id == there.source_id
    assert here.directory == str(folder)


def test_a_file_of_windows_has_the_same_messages(tmp_path: Path) -> None:
    text = run(
        1, BANNER, asked("A\nb"), answered(f"Yes\n\n{EDIT}"), usage(), asked("B")
    )
    write(tmp_path / "a", text, inputs=typed((moment(1), "A\nb")))
    write(tmp_path / "b", text.replace("\n", "\r\n"), inputs=typed((moment(1), "A\nb")))
    assert said(only(tmp_path / "a")) == said(only(tmp_path / "b"))
    assert again(tmp_path / "b") == (tmp_path / "b" / CHAT).read_bytes()
    # The text is not stored twice because of its ends.
    assert not [m for m in only(tmp_path / "b") if "raw" in m.data]


def test_lines_may_have_ends_of_both_kinds(tmp_path: Path) -> None:
    text = run(1, BANNER, asked("A\nb"), answered("Yes\nand no"), usage(), asked("B"))
    mixed = text.replace("\n", "\r\n").replace("no\r", "no").replace("A  \r", "A  ")
    write(tmp_path, mixed)
    assert [m.data.get("raw") for m in only(tmp_path)].count(None) == 3
    assert again(tmp_path) == mixed.encode()


@pytest.mark.parametrize(
    "line",
    [
        "Model: gpt-4o with diff edit format", "Models: gpt-4o with udiff edit format, weak model x",
        "Main model: gpt-4o with architect edit format, 8k think tokens", "Model: gpt-4o",
        "Model: gpt-4o using whole edit format",
    ],
)  # fmt: skip
def test_the_model_is_named_in_several_ways(tmp_path: Path, line: str) -> None:
    write(tmp_path, run(1, told(line), asked("A")))
    assert everything(tmp_path)[0][0].model_id == "gpt-4o"


def test_a_prompt_that_is_torn_keeps_the_names_of_its_messages(tmp_path: Path) -> None:
    text = run(1, asked("One\ntwo\n\nthree"), answered("Yes"), usage())
    whole = write(tmp_path, text) and {m.id for m in only(tmp_path)}
    for size in range(len(run(1)), len(text)):
        write(tmp_path, text[:size])
        assert {m.id for m in only(tmp_path)} <= whole, text[:size]


def test_two_runs_of_the_same_second_are_two_sessions(tmp_path: Path) -> None:
    write(tmp_path, run(1, asked("A")), run(1, asked("B")), run(2), run(1))
    names = [item.source_id for item in everything(tmp_path)[0]]
    assert len(set(names)) == 4


def test_a_new_run_leaves_the_digests_of_the_others(tmp_path: Path) -> None:
    runs = [run(1, asked("A"), answered("1")), run(2, asked("B"))]
    write(tmp_path, *runs, inputs=typed((moment(1), "A"), (moment(2), "B")))
    before = [item.digest for item in everything(tmp_path)[0]]
    write(
        tmp_path, *runs, answered("2"), run(3, asked("C")),
        inputs=typed((moment(1), "A"), (moment(2), "B"), (moment(3), "C")),
    )  # fmt: skip
    after = [item.digest for item in everything(tmp_path)[0]]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_text_before_the_first_header_is_a_session_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, asked("Lost"), answered("Header"), run(1, asked("A")))
    first, second = everything(tmp_path)[0]
    assert said(messages_of(first)) == [("user", "Lost"), ("assistant", "Header")]
    assert said(messages_of(second)) == [("user", "A")]
    assert first.time_created is None


def test_a_header_needs_a_time_and_an_empty_line_before_it(tmp_path: Path) -> None:
    text = "See:\n# aider chat started at 2026-01-01 00:00:00\n\n# aider chat started at noon"
    write(tmp_path, run(1, asked("A"), answered(text)))
    assert said(only(tmp_path)) == [("user", "A"), ("assistant", text)]


def test_a_file_with_nothing_but_a_torn_header_has_no_session(tmp_path: Path) -> None:
    (tmp_path / CHAT).write_bytes(b"\n# aider chat st")
    assert len(everything(tmp_path)[1]) == 1
    assert everything(tmp_path)[0] == []


def test_a_torn_header_is_a_problem_until_it_is_complete(tmp_path: Path) -> None:
    text = run(1, asked("A"), answered("1")) + run(2)
    path = write(tmp_path, text[:-8])
    sessions, problems = everything(tmp_path)
    assert [p.why for p in problems] == ["the file ends inside of a header"]
    assert said(messages_of(sessions[0])) == [("user", "A"), ("assistant", "1")]
    assert again(tmp_path) == path.read_bytes()


# -- prompts -----------------------------------------------------------------------


def test_prompts_get_exact_text_and_time_from_the_input_history(tmp_path: Path) -> None:
    exact = "First\fpage  \n\n  indented \u2028line\n\n"
    write(
        tmp_path, run(1, asked(exact), answered("1"), usage(), asked("Next"), usage()),
        inputs=typed(("2026-02-02 02:01:09.250999", exact), (moment(2), "y"), (moment(3), "Next")),
    )  # fmt: skip
    first, *_, second, _ = only(tmp_path)
    assert first.parts[0].text == exact
    assert first.time_created == 1769997669250
    assert (second.parts[0].text, second.time_created) == ("Next", 1769997780000)
    assert again(tmp_path) == (tmp_path / CHAT).read_bytes()


def test_equal_prompts_have_the_entries_in_their_order(tmp_path: Path) -> None:
    write(
        tmp_path, run(1, asked("Go on"), usage(), asked("Go on"), usage()),
        inputs=typed((moment(1), "Go on"), (moment(4), "Go on")),
    )  # fmt: skip
    times = [m.time_created for m in only(tmp_path) if m.role == "user"]
    assert times == [1769997660000, 1769997840000]


def test_an_entry_of_another_run_is_not_taken(tmp_path: Path) -> None:
    write(
        tmp_path, run(1, asked("A")), run(5, asked("A")), inputs=typed((moment(6), "A"))
    )
    first, second = everything(tmp_path)[0]
    assert "typed" not in messages_of(first)[0].data
    assert messages_of(second)[0].data["typed"] == moment(6)


def test_only_two_spaces_and_an_empty_line_make_a_prompt(tmp_path: Path) -> None:
    text = "#### Heading\n\n#### Another\nText\n#### No empty line  \nEnd"
    write(tmp_path, run(1, asked("A"), answered(text), usage(), asked("B")))
    found = said(only(tmp_path))
    assert found[1] == ("assistant", text)
    assert [text for kind, text in found if kind == "user"] == ["A", "B"]


def test_a_heading_that_was_not_typed_belongs_to_the_answer(tmp_path: Path) -> None:
    text = "One\n\n#### Heading  \n\nTwo\n\n#### Next  \nThree"
    write(
        tmp_path, run(1, asked("A"), answered(text), usage(), asked("B")),
        inputs=typed((moment(1), "A"), (moment(2), "B")),
    )  # fmt: skip
    _, answer, *_ = found = only(tmp_path)
    assert answer.parts[0].text == text
    assert answer.data["ambiguous"]
    assert answer.cost == 0.01
    assert [m.parts[0].text for m in found if m.role == "user"] == ["A", "B"]


def test_without_an_input_history_such_a_prompt_is_one_problem(tmp_path: Path) -> None:
    text = "One\n\n#### Heading  \n\nTwo\n\n#### Next  \nThree"
    write(tmp_path, run(1, asked("A"), usage(), asked("B"), answered(text), usage()))
    (session,), _ = everything(tmp_path)
    assert len(problems_of(session)) == 1
    doubtful = [m for m in messages_of(session) if "ambiguous" in m.data]
    assert [m.parts[0].text for m in doubtful] == ["Heading", "Next"]


def test_a_prompt_after_an_interrupted_answer_is_not_doubted(tmp_path: Path) -> None:
    stopped = told("", "", "^C again to exit")
    write(
        tmp_path,
        run(1, asked("A"), usage(), asked("B"), stopped, answered("Half"), asked("C")),
    )
    assert [m.parts[0].text for m in only(tmp_path) if m.role == "user"] == [
        "A",
        "B",
        "C",
    ]


def test_commands_and_repeated_confirmations_are_events(tmp_path: Path) -> None:
    write(
        tmp_path,
        run(
            1, asked("/add a.py"), told("Added a.py to the chat."), asked("!ls"), asked(""),
            asked("/ask Why?"), asked("Why?"), answered("Because"),
            asked("Add file to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: all"),
        ),
    )  # fmt: skip
    kinds = [kind for kind, _ in said(only(tmp_path))]
    assert kinds == ["command", "output", "command", "blank", "command", "user", "assistant", "confirmation"]  # fmt: skip


def test_the_plan_of_an_architect_is_not_a_prompt_of_the_user(tmp_path: Path) -> None:
    plan = "Change it:\n\n```python\nx = 1  \n\ny = 2\n```"
    edit = told("Edit the files? (Y)es/(N)o [Yes]: y")
    write(
        tmp_path,
        run(
            1, asked("A"), answered(plan), usage(), edit, asked(plan), answered("Done")
        ),
    )
    assert [m.kind or m.role for m in only(tmp_path)] == ["user", "assistant", "output", "custom_message", "assistant"]  # fmt: skip


# -- answers -----------------------------------------------------------------------


def test_everything_inside_of_a_fence_is_content(tmp_path: Path) -> None:
    inside = f"# comment\n\n#### prompt  \n\n> quoted  \n\n> Tokens: 1 sent, 2 received.  \n\n# aider chat started at {moment(7)}\n\n> Aider v9  \n"
    for fence in ("```", "````markdown", "~~~"):
        close = fence.rstrip("markdown")
        text = f"Look:\n\n{fence}\n{inside}{close}\n\nAnd:\n\n{EDIT}"
        write(tmp_path, run(1, asked("A"), answered(text), usage()), run(2, asked("B")))
        first, second = everything(tmp_path)[0]
        assert messages_of(first)[1].parts[0].text == text, fence
        assert problems_of(first) == []
        assert said(messages_of(second)) == [("user", "B")]


@pytest.mark.parametrize("tag", ["source", "code", "pre", "codeblock", "sourcecode"])
def test_text_between_the_tags_that_aider_fences_with_is_content(
    tmp_path: Path, tag: str
) -> None:
    page = "```sh\nls\n\n#### Typed  \n\n> Quoted  \n\n# aider chat started at 2026-02-02 02:02:02"
    fenced = (
        f"a.md\n<{tag}>\n<<<<<<< SEARCH\n=======\n{page}\n>>>>>>> REPLACE\n</{tag}>"
    )
    write(tmp_path, run(1, asked("A"), answered(fenced), usage(), asked("B")))
    found = only(tmp_path)
    assert said(found)[:2] == [("user", "A"), ("assistant", fenced)]
    assert said(found)[-1] == ("user", "B")
    assert again(tmp_path) == (tmp_path / CHAT).read_bytes()


def test_a_tag_that_is_not_closed_ends_with_its_answer(tmp_path: Path) -> None:
    turns = [asked("A"), told("^C again to exit"), answered("<pre>\nOne"), asked("B")]
    closed = [answered("<pre>\n\n> Two  \n</pre>\n\n<pre> x\n</pre>"), usage()]
    write(
        tmp_path, run(1, *turns, *closed), run(2, asked("C")), run(3, asked("</pre>"))
    )
    found = [said(messages_of(session)) for session in everything(tmp_path)[0]]
    assert [kind for kind, _ in found[0]] == ["user", "output", "assistant", "user", "assistant", "output"]  # fmt: skip
    assert found[1:] == [[("user", "C")], [("user", "</pre>")]]


@pytest.mark.parametrize(
    "after", ["Plain", EDIT, f"{EDIT}\n\n{EDIT}", "x\n```\na\n```"]
)
def test_a_fence_that_an_interruption_left_open_ends_with_its_answer(
    tmp_path: Path, after: str
) -> None:
    half = "Look:\n\n```python\nx = 1"
    stopped = told("^C again to exit")
    write(
        tmp_path,
        run(1, BANNER, asked("A"), stopped, answered(half), asked("B"), answered(after), usage(), stopped, answered(half)),
        run(2, BANNER, asked("C"), answered(after), usage()),
    )  # fmt: skip
    first, second = everything(tmp_path)[0]
    assert [t for k, t in said(messages_of(first)) if k == "user"] == ["A", "B"]
    assert [t for k, t in said(messages_of(second)) if k == "assistant"] == [after]


def test_a_quote_is_content_and_reasoning_a_part(tmp_path: Path) -> None:
    text = "See:\n\n> quoted\n> more\n\nEnd"
    reply = f"<{THINKING}>\n\nHm\n\n# no\n\n</{THINKING}>\n\n{text}"
    write(tmp_path, run(1, asked("A"), answered(reply), usage()))
    _, answer, _ = only(tmp_path)
    assert [(p.type, p.text) for p in answer.parts] == [("reasoning", "Hm\n\n# no"), ("text", text)]  # fmt: skip


# -- what aider says -----------------------------------------------------------------


def test_an_answer_may_begin_with_a_quote(tmp_path: Path) -> None:
    write(tmp_path, run(1, asked("A"), answered("> quoted\n\nYes"), usage()))
    assert said(only(tmp_path))[:2] == [("user", "A"), ("assistant", "> quoted\n\nYes")]


def test_edits_and_commits_are_parts(tmp_path: Path) -> None:
    lines = ("Applied edit to my file.py", "Commit 1a2b3c4 feat: x", "Other")
    write(tmp_path, run(1, asked("A"), answered("Yes"), usage(), told(*lines)))
    parts = only(tmp_path)[-1].parts
    found = [(p.type, dict(p.data)) for p in parts[1:]]
    assert found == [
        ("patch", {"files": ["my file.py"]}),
        ("commit", {"hash": "1a2b3c4", "message": "feat: x"}),
        ("text", {}),
    ]


def test_output_of_several_lines_is_one_ambiguous_part(tmp_path: Path) -> None:
    several = "> first\nsecond\n\n# third\n\n- last  \n"
    padded = "> ls       \nls -l foo  \n"
    write(
        tmp_path,
        run(
            1,
            asked("A"),
            told("Before"),
            several,
            padded,
            told("After"),
            answered("Yes"),
        ),
    )
    _, event, answer = only(tmp_path)
    found = [(p.text, "ambiguous" in p.data) for p in event.parts]
    assert found == [
        ("Before", False), ("first\nsecond\n\n# third\n\n- last", True),
        ("ls       \nls -l foo".replace("ls       ", "ls     "), True), ("After", False),
    ]  # fmt: skip
    assert answer.parts[0].text == "Yes"
    assert again(tmp_path) == (tmp_path / CHAT).read_bytes()


@pytest.mark.parametrize(
    ("report", "cost", "counts"),
    [
        ("Tokens: 2.4k sent, 352 received. Cost: $0.01 message, $0.05 session.", 0.01, (None, 352, None, None)),
        ("Tokens: 900 sent, 1.2k received.", None, (900, None, None, None)),
        ("Tokens: 1,234 sent, 200 cached, 5 received. Cost: $0.0087 request, $1.00 session.", 0.0087, (1034, 5, 200, None)),
        ("Tokens: 900 sent, 100 cache write, 200 cache hit, 7 received.\nCost: $0.02 message, $0.02 session.", 0.02, (600, 7, 200, 100)),
        ("Tokens: 900 sent, 1.1k cache hit, 7 received.", None, (None, 7, None, None)),
        ("Tokens: 9 sent, 100 cache hit, 7 received.", None, (None, 7, 100, None)),
    ],
)  # fmt: skip
def test_an_answer_has_the_cost_of_its_report_and_exact_counts(
    tmp_path: Path, report: str, cost: float | None, counts: tuple[int | None, ...]
) -> None:
    write(tmp_path, run(1, BANNER, asked("A"), answered("Yes"), f"> {report}  \n"))
    *_, answer, event = only(tmp_path)
    assert answer.cost == cost
    tokens = answer.tokens
    assert tokens is not None
    assert (
        tokens.input,
        tokens.output,
        tokens.cache_read,
        tokens.cache_write,
    ) == counts
    assert (event.cost, event.tokens) == (None, None)
    assert answer.data["usage"]["received"] in report


def test_a_report_without_an_answer_counts_by_itself(tmp_path: Path) -> None:
    empty = told("Empty response received from LLM. Check your provider account?")
    write(tmp_path, run(1, asked("A"), empty, usage("0.02"), usage("0.03")))
    assert only(tmp_path)[-1].cost == 0.05


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000, "9" * 19])
def test_numbers_that_no_column_holds_stay_in_the_data(
    tmp_path: Path, digits: str
) -> None:
    report = usage(digits, digits, digits)
    write(tmp_path, run(1, asked("A"), answered("Yes"), report, asked("B"), report))
    with new_store() as store:
        results = list(store.ingest(x for s in find(tmp_path) for x in s.read()))
        assert all(isinstance(r, Imported) for r in results), results
        (session,) = store.sessions(project=ALL)
        messages = store.messages(session.id)
    assert [m.cost for m in messages] == [None] * 5
    assert messages[1].tokens is not None
    assert messages[1].tokens.output == 352


def test_costs_whose_sum_no_column_holds_are_not_added_up(tmp_path: Path) -> None:
    most = f"{COST_MOST:.0f}"
    write(tmp_path, run(1, asked("A"), usage(most, most), usage(most, most)))
    assert only(tmp_path)[-1].cost is None


def test_a_cost_that_falls_is_one_problem(tmp_path: Path) -> None:
    costs = ("0.05", "0.06", "0.01", "0.07", "0.02")
    turns = [
        asked(f"{n}") + answered("Yes") + usage("0.01", c) for n, c in enumerate(costs)
    ]
    write(tmp_path, run(1, *turns))
    (session,), _ = everything(tmp_path)
    assert [why.split(":")[0] for why in problems_of(session)] == [
        "the cost of the session falls"
    ]


def test_a_change_of_the_model_counts_from_there_on(tmp_path: Path) -> None:
    change = told("Model: gpt-4o with diff edit format")
    write(
        tmp_path,
        run(
            1,
            BANNER,
            asked("A"),
            answered("1"),
            usage(),
            asked("/model gpt-4o"),
            change,
            asked("B"),
            answered("2"),
        ),
    )
    models = [
        (m.provider_id, m.model_id) for m in only(tmp_path) if m.role == "assistant"
    ]
    assert models == [("openai", "large"), (None, "gpt-4o")]


# -- odd files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\n\n\n", b"text", b"> x", b"#### x",
        b"\n# aider chat started at 2026-99-99 00:00:00\n\n#### x  \n",
        b"\xef\xbb\xbf# aider chat started at 2026-02-02 02:02:02\r\n\r\n\r\n#### x  \r\n\r\nYes\r\n",
        b"\n# aider chat started at 2026-02-02 02:02:02\n\n#### nul \0 esc \x1b  \n> a\r\n>\n>  \n>b\nc",
        b"\n\n\n# aider chat started at 2026-02-02 02:02:02\n> x  \n# aider chat started at 2026-02-02 02:02:03\n",
        run(1, asked("A"), answered("```\nopen"), run(2)).encode().rstrip(),
    ],
)  # fmt: skip
def test_any_text_is_read_and_written_again_to_the_byte(
    tmp_path: Path, text: bytes
) -> None:
    (tmp_path / CHAT).write_bytes(text)
    assert again(tmp_path).strip(b"\n") == text.strip(b"\n")


def test_bytes_that_are_not_utf_8_are_kept_and_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, run(1, asked("A"), answered("Caf?"), asked("B")))
    path.write_bytes(path.read_bytes().replace(b"Caf?", b"Caf\xe9"))
    (session,), _ = everything(tmp_path)
    assert len(problems_of(session)) == 1
    _, answer, _ = messages_of(session)
    assert answer.parts[0].text == "Caf\ufffd"
    assert answer.data["raw"] == b"\nCaf\xe9\n\n"


def test_odd_entries_of_the_input_history_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, run(1, asked("A"), usage(), asked("B")))
    odd = b"+lost\n# never\n+A\n\xff\xfe\n# 2026-02-02 02:01:01\n\n# 2026-02-02 02:01:02\n+B"
    (tmp_path / INPUTS).write_bytes(odd)
    found = [m.data.get("typed") for m in only(tmp_path) if m.role == "user"]
    assert found == [None, "2026-02-02 02:01:02"]


def test_an_unreadable_input_history_is_a_problem_beside_the_runs(
    tmp_path: Path,
) -> None:
    write(tmp_path, run(1, asked("A")))
    (tmp_path / INPUTS).mkdir()
    sessions, problems = everything(tmp_path)
    assert [p.source for p in problems] == [str(tmp_path / INPUTS)]
    assert said(messages_of(sessions[0])) == [("user", "A")]


def test_histories_are_found_by_name_by_header_and_by_the_environment(
    tmp_path: Path,
) -> None:
    write(tmp_path / "deep" / "er", run(1, asked("A")))
    (tmp_path / "renamed.md").write_text(run(2, asked("B")))
    (tmp_path / "README.md").write_text(
        "# Tea\n\n# aider chat started at 2026-02-02 02:02:02\n"
    )
    assert len(everything(tmp_path)[0]) == 2
    env = {"HOME": "/h", "AIDER_CHAT_HISTORY_FILE": "/x/chat.md"}
    assert default_locations(env, formats=["aider"]) == [Path("/x/chat.md")]
    assert default_locations({"HOME": "/h"}, formats=["aider"]) == []


# -- the real store --------------------------------------------------------------------


def test_the_real_store_has_its_prompts_and_answers(
    real_store: Callable[[str], Path],
) -> None:
    folder = real_store("aider-0.86.2")
    truth: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    sessions, problems = everything(folder / "data")
    assert problems == []
    found = [m for item in sessions for m in messages_of(item)]
    prompts = [p["text"] for item in truth["sessions"] for p in item["user_prompts"]]
    assert [m.parts[0].text for m in found if m.role == "user"] == prompts
    assert len(sessions) == len(prompts)

    texts = [
        p.text or ""
        for m in found
        if m.role == "assistant"
        for p in m.parts
        if p.type == "text"
    ]
    # aider drops the line feed that an answer ends with.
    ends = ("", "\n")
    hashes = {
        hashlib.sha256(f"{text}{end}".encode()).hexdigest()
        for text in texts
        for end in ends
    }
    everywhere = "\n".join(p.text or "" for m in found for p in m.parts)
    for item in truth["sessions"]:
        if "interrupted" not in item:
            assert item["final_text"] in [*texts, ""]
            assert {text["sha256"] for text in item["assistant_texts"]} <= hashes
        assert all(text in everywhere for text in item["unicode_must_survive"])


def test_every_fixture_is_written_again_to_the_byte(
    real_store: Callable[[str], Path],
) -> None:
    folder = real_store("aider-0.86.2") / "data"
    (path,) = folder.rglob(CHAT)
    assert again(folder) == path.read_bytes()


def test_a_second_import_changes_nothing(tmp_path: Path) -> None:
    write(
        tmp_path, run(1, BANNER, asked("A"), answered("1"), usage()), run(2, asked("B"))
    )
    with new_store() as store:
        for outcome in ("imported", "unchanged"):
            results = list(
                store.ingest(item for found in find(tmp_path) for item in found.read())
            )
            assert {r.outcome for r in results if isinstance(r, Imported)} == {outcome}
