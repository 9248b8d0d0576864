"""Chat histories that are written: aider's own to the byte, others so that aider restores them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from imported import besides_times
from samples import new_store
from samples_aider import (
    BANNER,
    CHAT,
    INPUTS,
    answered,
    asked,
    moment,
    project,
    run,
    told,
    typed,
    usage,
    write,
)

from sessiondb import Store, assistant, event, file, reasoning, text, tool, user
from sessiondb.formats import exporter, find
from sessiondb.model import Document, Imported, Loss, MessageDraft, Session
from sessiondb.repository.sessions import ALL

TO = exporter("aider")


def imported(store: Store, folder: Path) -> list[Session]:
    results = list(store.ingest(x for found in find(folder) for x in found.read()))
    assert all(isinstance(r, Imported) for r in results), results
    return store.sessions(project=ALL, limit=1000)


def exported(
    store: Store, *sessions: Session, together: bool = False
) -> tuple[dict[str, bytes], list[str]]:
    exports = [store.export(item.id, **TO.read) for item in sessions]
    files, losses = {}, []
    for item in TO.write(exports, detail="full", together=together):
        if isinstance(item, Document):
            files[item.name] = b"".join(item.encoded())
        else:
            assert isinstance(item, Loss)
            losses.append(item.why)
    return files, losses


def restored(history: str) -> list[tuple[str, str]]:
    """Return the conversation as aider's ``split_chat_history_markdown`` restores it."""
    found: list[tuple[str, str]] = []
    group: list[str] = []
    last = ""

    def flush() -> None:
        if "".join(group).strip() and last in ("user", "assistant"):
            found.append((last, "".join(group)))
        group.clear()

    for line in history.splitlines(keepends=True):
        if line.startswith("# "):
            continue
        role = {"> ": "tool", "#### ": "user"}.get(
            line[:2] if line.startswith("> ") else line[:5], "assistant"
        )
        if role != last:
            flush()
            last = role
        group.append(line[5:] if role == "user" else line)
    flush()
    return [(role, said.strip()) for role, said in found]


def test_the_restorer_of_these_tests_restores_as_aider_does() -> None:
    text = asked("One\ntwo") + answered("Yes\n# dropped\n#### You?\n> tool") + told("x")
    assert restored(text) == [
        ("user", "One  \ntwo"),
        ("assistant", "Yes"),
        ("user", "You?"),
    ]


def test_every_history_is_written_again_to_the_byte(
    tmp_path: Path, real_store: Callable[[str], Path]
) -> None:
    project(tmp_path)
    for folder in (tmp_path, real_store("aider-0.86.2") / "data"):
        (path,) = folder.rglob(CHAT)
        with new_store() as store:
            sessions = imported(store, folder)
            files, losses = exported(store, *sessions)
            assert files[CHAT] == path.read_bytes()
            assert files[INPUTS] == path.with_name(INPUTS).read_bytes()
            assert losses == []
            assert list(exported(store, *sessions, together=True)[0]) == [CHAT]


def test_odd_histories_are_written_again_to_the_byte(tmp_path: Path) -> None:
    path = write(
        tmp_path, asked("Before"), answered("  x  \n"), run(1, asked("A  "), "\n\n\n"),
        run(1, "> a\nb\n\nc  \n", "\n\nno spaces\n"), run(1, asked("/x"), told("", "y")), run(2)[:-9],
    )  # fmt: skip
    path.write_bytes(
        path.read_bytes().replace(b"no spaces\n", b"no\r\n\0\x1b\r \xe2\x80\xa8\n")
    )
    with new_store() as store:
        results = list(
            store.ingest(x for found in find(tmp_path) for x in found.read())
        )
        assert len(results) == 5  # four runs, and the torn header
        sessions = store.sessions(project=ALL, empty=True, limit=1000)
        assert exported(store, *sessions)[0][CHAT] == path.read_bytes()


@pytest.mark.parametrize("end", [b"", b"\n# aider chat star"])
def test_bytes_that_are_not_utf_8_are_written_again_as_they_were(
    tmp_path: Path, end: bytes
) -> None:
    path = write(
        tmp_path, "caf? before\n", run(1, "> caf?  \n", asked("caf?"), answered("caf?")),
        run(2, asked("B"), usage()), run(3, told("caf?", "Applied edit to caf?")),
    )  # fmt: skip
    path.write_bytes(path.read_bytes().replace(b"?", b"\xe9") + end)
    with new_store() as store:
        list(store.ingest(x for found in find(tmp_path) for x in found.read()))
        sessions = store.sessions(project=ALL, empty=True, limit=1000)
        files, losses = exported(store, *sessions)
        assert (files[CHAT], losses) == (path.read_bytes(), [])

        # Also by way of a log, which is text.
        write_log = exporter("jsonl").write
        exports = [store.export(session.id, branches=True) for session in sessions]
        log = tmp_path / "logs.jsonl"
        with log.open("wb") as file:
            for item in write_log(exports, detail="full", together=True):
                if isinstance(item, Document):
                    file.writelines(item.encoded())
        with new_store() as other:
            list(other.ingest(x for found in find(log) for x in found.read()))
            again = other.sessions(project=ALL, empty=True, limit=1000)
            assert exported(other, *again)[0][CHAT] == path.read_bytes()


def test_answers_to_questions_stay_in_the_input_history(tmp_path: Path) -> None:
    entries = [
        (f"2026-02-02 02:0{n}:00.5", t)
        for n, t in enumerate(["y", "A", "n\nn", "B"], 1)
    ]
    path = write(
        tmp_path, run(1, asked("A")), run(4, asked("B")), inputs=typed(*entries)
    )
    with new_store() as store:
        sessions = imported(store, tmp_path)
        assert exported(store, *sessions)[0] == {
            name: path.with_name(name).read_bytes() for name in (CHAT, INPUTS)
        }


def test_runs_of_two_folders_are_two_files(tmp_path: Path) -> None:
    for name in ("a/tea", "b/tea"):
        write(
            tmp_path / name,
            run(1 if name == "a/tea" else 2, asked("A")),
            inputs=typed((moment(3), "A")),
        )
    with new_store() as store:
        files, _ = exported(store, *imported(store, tmp_path))
    assert sorted(files) == [
        f"{place}/{name}" for place in ("tea-2", "tea") for name in (CHAT, INPUTS)
    ]


def test_a_written_history_has_its_ids_in_a_folder_of_the_same_name(
    tmp_path: Path,
) -> None:
    project(tmp_path / "old")
    with new_store() as store:
        before = imported(store, tmp_path / "old")
        files, _ = exported(store, *before)
    for place in ("tea", "coffee"):
        (tmp_path / "new" / place).mkdir(parents=True)
        (tmp_path / "new" / place / CHAT).write_bytes(files[CHAT])

    ids = {item.source_id for item in before}
    for place, expected in (("tea", ids), ("coffee", set())):
        with new_store() as store:
            after = imported(store, tmp_path / "new" / place)
        assert {item.source_id for item in after} & ids == expected


def test_text_that_markdown_cannot_hold_is_lost_only_without_input_history(
    tmp_path: Path,
) -> None:
    exact = "a\fb\n\n"
    write(tmp_path, run(1, asked(exact)), inputs=typed((moment(1), exact)))
    with new_store() as store:
        sessions = imported(store, tmp_path)
        assert exported(store, *sessions)[1] == []
        _, (loss,) = exported(store, *sessions, together=True)
    assert "spaces" in loss


def other(store: Store, *drafts: MessageDraft, **session: str) -> Session:
    session_id = store.create_session(**session).id
    for draft in drafts:
        store.append(session_id, draft)
    return store.session(session_id)


def test_another_session_is_restored_by_aider_and_read_again(tmp_path: Path) -> None:
    said = ["Fix it\n\n    please  \f\n", "# a\n#### b\n> c", "Third"]
    replies = ["Done.\n\n```python\nx = 1\n```", "Two", "Three"]
    with new_store() as store:
        turns = [
            m
            for pair in zip(map(user, said), map(assistant, replies), strict=True)
            for m in pair
        ]
        session = other(store, *turns)
        files, losses = exported(store, session)
    assert besides_times(losses) == []
    found = restored(files[CHAT].decode())
    assert [text for role, text in found if role == "assistant"] == replies
    prompts = [text for role, text in found if role == "user"]
    assert [p.split() for p in prompts] == [s.split() for s in said]

    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with new_store() as store:
        (again,) = imported(store, tmp_path)
        messages = store.messages(again.id)
    assert [m.text for m in messages if m.role == "user"] == said
    assert [m.text for m in messages if m.role == "assistant"] == replies


def test_ends_of_lines_inside_of_a_text_are_written_and_read_as_they_are(
    tmp_path: Path,
) -> None:
    asks, says = "One\r\ntwo\rthree", "a\r\nb\r\n\r\nc\rd\n```py\r\nx\r\n```\r\nend"
    with new_store() as store:
        session = other(
            store, user(asks), assistant(says), user("\r"), assistant("Yes")
        )
        files, losses = exported(store, session)
    assert besides_times(losses) == []
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with new_store() as store:
        (again,) = imported(store, tmp_path)
        shown = store.messages(again.id)
        assert [m.text for m in shown if m.role == "user"][:1] == [asks]
        assert [m.text for m in shown if m.role == "assistant"] == [says, "Yes"]
        assert exported(store, again)[0] == files


def test_lines_that_aider_would_take_for_its_own_are_moved_by_a_space() -> None:
    reply = "See:\n```\n# comment\n```\n#### H\n> q\u2028# z\nEnd"
    with new_store() as store:
        files, losses = exported(store, other(store, user("A"), assistant(reply)))
    assert len(besides_times(losses)) == 1
    found = restored(files[CHAT].decode())
    assert [role for role, _ in found] == ["user", "assistant"]
    assert (
        found[1][1].replace(" #", "#").replace(" >", ">").replace("\u2028 ", "\u2028")
        == reply
    )


@pytest.mark.parametrize("first", ["#### H", "> q", "# h", "  # h"])
def test_the_first_line_of_an_answer_is_moved_like_any_other(first: str) -> None:
    with new_store() as store:
        files, _ = exported(store, other(store, user("A"), assistant(f"{first}\nEnd")))
    found = restored(files[CHAT].decode())
    assert [(role, text.split()) for role, text in found] == [
        ("user", ["A"]), ("assistant", [*first.split(), "End"]),
    ]  # fmt: skip


def test_answers_in_a_row_stay_apart_and_calls_are_named(tmp_path: Path) -> None:
    with new_store() as store:
        session = other(
            store, user(text("A"), file("https://x.example/a.png")), assistant(text("One"), tool("bash", {"command": "ls\n"}, call_id="c1", output="a.py")),
            assistant(reasoning("Hm"), text("Two")), event("compaction", text("Sum")), title="Tea",
        )  # fmt: skip
        files, losses = exported(store, session)
    assert besides_times(losses) == [
        "its title", "1 file in prompts", "1 call in answers", "1 compaction",
    ]  # fmt: skip
    (tmp_path / CHAT).write_bytes(files[CHAT])
    assert b'> bash {"command":"ls\\n"}  \n' in files[CHAT]
    with new_store() as store:
        (again,) = imported(store, tmp_path)
        answers = [m for m in store.messages(again.id) if m.role == "assistant"]
    assert [m.text for m in answers] == ["One", "Two"]
    assert [p.text for p in answers[1].parts] == ["Hm", "Two"]


def test_model_cost_and_counts_are_read_again(tmp_path: Path) -> None:
    counts = {
        "input": 12345,
        "output": 7,
        "reasoning": 3,
        "cache_read": 1000,
        "cache_write": 20,
    }
    with new_store() as store:
        session = store.create_session()
        for cost in (0.0123, 1e-07):
            store.append(session, user("A"))
            store.append(
                session,
                assistant("B"),
                model="large",
                provider="fake",
                cost=cost,
                tokens=counts,
            )
        files, _ = exported(store, store.session(session.id))
    (tmp_path / CHAT).write_bytes(files[CHAT])
    with new_store() as store:
        (again,) = imported(store, tmp_path)
        answers = [m for m in store.messages(again.id) if m.role == "assistant"]
    assert [m.cost for m in answers] == [0.0123, 1e-07]
    assert {(m.provider_id, m.model_id) for m in answers} == {("fake", "large")}
    tokens = answers[0].tokens
    assert tokens is not None
    assert (tokens.input, tokens.output) == (12345, 10)
    assert (tokens.cache_read, tokens.cache_write) == (1000, 20)


@pytest.mark.parametrize("more", [False, True])
def test_a_run_that_was_continued_here_is_continued_in_the_file(
    tmp_path: Path, more: bool
) -> None:
    path = write(tmp_path, run(1, BANNER, asked("A"), answered("1"), usage()))
    with new_store() as store:
        (session,) = imported(store, tmp_path)
        if more:
            store.append(session.id, user("B"))
        files, _ = exported(store, session)
    assert files[CHAT] == path.read_bytes() + (asked("B").encode() if more else b"")


def test_title_lists_and_labels_that_a_run_was_given_here_are_lost(
    tmp_path: Path,
) -> None:
    write(tmp_path, run(1, asked("A"), answered("B"), usage()))
    with new_store() as store:
        (session,) = imported(store, tmp_path)
        store.set_title(session, "Tea")
        store.label(session, 1, "begin")
        store.set_todos(session, ["Brew"])
        _, losses = exported(store, store.session(session.id))
    assert losses == ["its title", "label begin", "its todo list"]
