"""Prompts that the input history has in another form, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time, tzset
from typing import NamedTuple

import pytest
from samples import new_store
from samples_aider import (
    BANNER,
    CHAT,
    INPUTS,
    answered,
    asked,
    moment,
    run,
    told,
    typed,
    write,
)

from sessiondb.formats import exporter, find
from sessiondb.model import Document, Problem, SourceMessage, SourceSession
from sessiondb.repository.sessions import ALL

TO = exporter("aider")


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    tzset()
    yield
    monkeypatch.undo()
    tzset()


class Said(NamedTuple):
    who: str
    text: str
    #: The time of the input that belongs to it, in seconds after the first run began.
    after: float


def read(folder: Path) -> tuple[list[list[Said]], list[Problem]]:
    """Return the messages of each run, and the problems."""
    items = [item for found in find(folder) for item in found.read()]
    sessions = [item for item in items if isinstance(item, SourceSession)]
    said = [
        [
            Said(
                found.draft.kind or found.draft.role,
                "|".join(part.text or "" for part in found.draft.parts),
                ((found.draft.time_created or 0) - 1769997660000) / 1000,
            )
            for found in session.messages
            if isinstance(found, SourceMessage)
        ]
        for session in sessions
    ]
    return said, [item for item in items if isinstance(item, Problem)]


def written(folder: Path) -> dict[str, bytes]:
    """Import the histories of a folder, and return those that are written of it."""
    with new_store() as store:
        for found in find(folder):
            list(store.ingest(found.read()))
        exports = [store.export(s.id, **TO.read) for s in store.sessions(project=ALL)]
        found = TO.write(exports, detail="full", together=False)
        files = (item for item in found if isinstance(item, Document))
        return {item.name: b"".join(item.encoded()) for item in files}


def bare(*prompts: str) -> str:
    """Return a run of an old release: nothing is between an answer and a prompt."""
    turns = (asked(text) + answered(f"On {text[:1]}") for text in prompts)
    return run(1, BANNER, *turns)


@pytest.mark.parametrize(
    ("prompt", "entries"),
    [
        ("b\n\nb\n  d = 1\n\n", ["{", "b", "  d = 1", "}"]),
        ("b\n}\nc", ["{tag", "b", "}", "c", "tag}"]),
        ("b\nc{}\nd", ["{", "b", "c{}", "d", "}"]),
        ("b c,\nd\ne", ["{b c,", "d", "e}"]),
        ("b\n   \nd", ["{b", "   ", "d", "}"]),
    ],
)
def test_a_prompt_between_braces_has_the_time_of_its_end(
    tmp_path: Path, prompt: str, entries: list[str]
) -> None:
    lines = [(f"2026-02-02 02:01:{10 + at}", text) for at, text in enumerate(entries)]
    inputs = typed((moment(1), "A"), *lines, (moment(3), "Z"))
    write(tmp_path, bare("A", prompt, "Z"), inputs=inputs)

    ((_, _, _, said, answer, *rest),), problems = read(tmp_path)
    recorded = prompt.removesuffix("\n")
    assert said == Said("user", recorded, 9.0 + len(entries))
    assert answer[:2] == ("assistant", "On b")
    assert rest[0] == Said("user", "Z", 120)
    assert problems == []
    assert written(tmp_path)[INPUTS] == inputs.encode()
    assert written(tmp_path)[CHAT] == bare("A", prompt, "Z").encode()


def test_text_that_was_typed_otherwise_is_not_a_prompt_between_braces(
    tmp_path: Path,
) -> None:
    entries = [(moment(1), text) for text in ["A", "{", "b", "c", "}", "Z"]]
    write(tmp_path, bare("A", "b\nd", "Z"), inputs=typed(*entries))
    ((_, _, answer, last, _),), _ = read(tmp_path)
    assert answer.text == "On A\n\n\n#### b  \n#### d  \n\nOn b"
    assert last.text == "Z"


def test_input_that_is_not_recorded_again_is_a_prompt(tmp_path: Path) -> None:
    confirmed = "Add a.py to the chat? (Y)es/(N)o/(A)ll/(S)kip all [Yes]: all"
    prompts = ["Go on", "Go on", "", "   ", confirmed, "Z"]
    entries = [(moment(0), "Old"), (moment(1), "Go on"), (moment(2), "   "), (moment(3), "Z")]  # fmt: skip
    write(tmp_path, bare(*prompts), inputs=typed(*entries))
    ((_, *said),), _ = read(tmp_path)
    assert [x for x in said if x.who != "assistant"] == [
        ("user", "Go on", 0), ("user", "Go on", 0), ("blank", "<blank>", 0), ("user", "   ", 60),
        ("confirmation", confirmed, 60), ("user", "Z", 120),
    ]  # fmt: skip


def test_a_prompt_may_repeat_the_last_one_of_the_run_before(tmp_path: Path) -> None:
    write(
        tmp_path, run(1, asked("Go on")), run(2, asked("B"), answered("1"), asked("C")),
        run(3, asked("C"), answered("2"), asked("D")),
        inputs=typed((moment(1), "Go on"), (moment(2), "B"), (moment(2), "C"), (moment(3), "D")),
    )  # fmt: skip
    (_, _, third), _ = read(tmp_path)
    assert [x.who for x in third] == ["user", "assistant", "user"]


def test_runs_have_their_input_if_the_clock_was_set_back(tmp_path: Path) -> None:
    inputs = typed((moment(5), "B"), (moment(31), "A"), (moment(51), "C"))
    runs = run(30, asked("A")), run(4, asked("B")), run(50, asked("C"))
    write(tmp_path, *runs, inputs=inputs)
    found, problems = read(tmp_path)
    assert [said.after for (said,) in found] == [1800, 240, 3000]
    assert problems == []
    assert written(tmp_path)[INPUTS] == inputs.encode()


def test_a_header_of_an_earlier_day_is_a_problem(tmp_path: Path) -> None:
    quoted = "Look:\n\n# aider chat started at 2020-01-01 00:00:00\n\nIt is a header."
    write(
        tmp_path, run(1, asked("A"), answered(quoted), told("Tokens: 1 sent, 2 received.")),
        inputs=typed((moment(2), "A")),
    )  # fmt: skip
    ((first, _), _), problems = read(tmp_path)
    assert first.after == 60
    assert [(p.line, "header" in p.why) for p in problems] == [(8, True)]


def test_a_history_may_begin_with_a_mark_of_byte_order(tmp_path: Path) -> None:
    text = "\ufeff" + run(1, BANNER, asked("A"), answered("Yes"))
    path = write(tmp_path, text, inputs=typed((moment(1), "A")))
    path.rename(tmp_path / "old.md")
    ((_, said, _),), problems = read(tmp_path)
    assert (said, problems) == (Said("user", "A", 0), [])
    assert written(tmp_path)[CHAT] == text.encode()


def test_prompts_of_a_history_in_another_encoding_have_their_input(
    tmp_path: Path,
) -> None:
    text = bare("Un café", "“Crème”", "Z").encode("cp1252")
    inputs = typed((moment(2), "Un café"), (moment(3), "“Crème”"), (moment(4), "Z"))
    path = write(tmp_path, inputs=inputs)
    path.write_bytes(text)
    ((_, *said),), _ = read(tmp_path)
    assert [x[1:] for x in said if x.who == "user"] == [
        ("Un café", 60), ("“Crème”", 120), ("Z", 180),
    ]  # fmt: skip
    assert written(tmp_path) == {CHAT: text, INPUTS: inputs.encode()}


def test_the_context_begins_after_the_history_was_cleared(tmp_path: Path) -> None:
    write(
        tmp_path,
        run(
            1, asked("A"), answered("1"), asked("/clear"), told("All chat history cleared."),
            asked("B"), answered("2"), asked("/clearly"),
        ),
    )  # fmt: skip
    (((*_, last),), _) = read(tmp_path)
    assert last.who == "command"
    with new_store() as store:
        for found in find(tmp_path):
            list(store.ingest(found.read()))
        (session,) = store.sessions(project=ALL)
        context = store.context(session.id).messages
    assert [m.text for m in context] == ["B", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [["{", *["x}"] * 20000], ["{x"] * 30000, ["{", *["x"] * 30000, "}"]])  # fmt: skip
def test_braces_that_close_late_or_never_take_linear_time(
    tmp_path: Path, lines: list[str]
) -> None:
    entries = typed(
        *((moment(1), f"{line}{at % 7}}}") for at, line in enumerate(lines))
    )
    write(tmp_path, bare("A", "b", "Z"), inputs=entries)
    begin = process_time()
    read(tmp_path)
    assert process_time() - begin < 2
