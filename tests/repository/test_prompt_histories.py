"""The histories that programs keep of their own: each prompt once, in its session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from foreign_sessions import SOURCE, T0, session_of, take_in
from test_prompts_of_imports import message, typed

from sessiondb import ALL, Store, ids
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.model import Problem, Prompt, SourceHistory, SourcePrompt


def line(text: str, at: int = 0, session: Any = "s", **fields: Any) -> SourcePrompt:
    return SourcePrompt(text, T0 + at, session, **fields)


def history(*lines: Any, digest: str | None = None) -> SourceHistory:
    digest = digest or repr(lines)
    return SourceHistory(SOURCE, "/elsewhere/history.jsonl", digest, lines)


def read(store: Store, *found: Any, **how: Any) -> list[str]:
    """Import it, and return the problems."""
    return [x.why for x in store.ingest(found, **how) if isinstance(x, Problem)]


def prompts(store: Store) -> list[Prompt]:
    return list(store.prompts(project=ALL))[::-1]


def test_a_prompt_of_a_message_is_not_added_again(store: Store) -> None:
    session = session_of("s", message("a", at=1), message("b", at=2))
    lines = [line("a"), line("/status", 5), line("b", 70_000)]
    assert read(store, session, history(*lines)) == []
    assert sorted(typed(store)) == ["/status", "a", "b"]
    command = next(prompt for prompt in prompts(store) if prompt.text == "/status")
    (known,) = {p.session_id for p in prompts(store)}
    assert (command.session_id, command.source) == (known, SOURCE)
    assert command.directory == "/elsewhere/project"
    assert command.time_created == T0 + 5


def test_spaces_at_the_ends_of_lines_make_no_second_prompt(store: Store) -> None:
    session = session_of("s", message("m", "a \t\nb  \n", at=1))
    read(store, session, history(line("a\nb"), line("a\n b", 5)))
    assert typed(store) == ["a \t\nb  \n", "a\n b"]


def test_a_command_that_was_repeated_is_kept_each_time(store: Store) -> None:
    texts = ["/status", "/status", "/diff", "/status"]
    lines = [line(text, at) for at, text in enumerate(texts, 1)]
    for more in ([], [line("/diff", 9)]):
        read(store, session_of("s", message("a")), history(*lines, *more))
    assert typed(store) == ["a", "/status", "/diff", "/status", "/diff"]


def test_a_prompt_is_linked_to_its_session_once_that_is_imported(
    store: Store,
) -> None:
    lines = history(line("a"), line("/status", 1))
    read(store, lines)
    assert [(p.text, p.session_id) for p in prompts(store)] == [("a", None), ("/status", None)]  # fmt: skip

    # The history did not change, its session is new.
    (done,) = take_in(store, session_of("s", message("a", at=2)))
    read(store, session_of("s", message("a", at=2), message("b", at=3)), lines)
    found = [(p.text, p.session_id) for p in prompts(store)]
    assert sorted(found) == [("/status", done.id), ("a", done.id), ("b", done.id)]


def test_a_history_is_linked_to_sessions_that_were_imported_without_it(
    store: Store,
) -> None:
    """A log was imported alone, or the import was killed before the history."""
    lines = history(line("a"), line("/status", 1))
    read(store, lines)
    session = session_of("s", message("a", at=2))
    (done,) = take_in(store, session)
    read(store, session, lines)
    found = [(p.text, p.session_id) for p in prompts(store)]
    assert sorted(found) == [("/status", done.id), ("a", done.id)]


def test_a_history_is_read_again_for_other_projects(store: Store) -> None:
    lines = history(line("a", directory="/mine"), line("b", 1, directory="/b"))
    for how in ({"project_root": "/mine"}, {}, {"project_root": "/b"}):
        read(store, lines, **how)
        assert typed(store) == (["a"] if "/mine" in how.values() else ["a", "b"])


def test_an_unchanged_history_is_not_read_again(store: Store) -> None:
    def lines() -> Iterator[SourcePrompt]:
        yield line("a")
        count.append(1)

    count: list[int] = []
    for digest in ("1", "1", "2"):
        read(
            store, SourceHistory(SOURCE, "/elsewhere/history.jsonl", digest, [*lines()])
        )
    given = SourceHistory(SOURCE, "/elsewhere/history.jsonl", "2", lines())
    before = len(count)
    read(store, given)
    assert len(count) == before
    assert typed(store) == ["a"]

    # Nor after the history of another home, or an import that changed no session.
    session = session_of("s", message("c"))
    read(store, session, history(line("c"), digest="1"))
    time.sleep(0.002)
    for path in ("/elsewhere/history.jsonl", "/b/history.jsonl") * 2:
        read(store, session, SourceHistory(SOURCE, path, "2", [*lines()]))
    before = len(count)
    read(store, session, SourceHistory(SOURCE, "/b/history.jsonl", "2", lines()))
    read(store, session, SourceHistory(SOURCE, given.path, "2", lines()))
    assert len(count) == before


def test_prompts_of_a_deleted_session_are_not_imported_again(store: Store) -> None:
    (done,) = take_in(store, session_of("s", message("a")))
    store.delete(done.id)
    store.reap()
    before = typed(store)
    read(store, history(line("a"), line("/status", 1)))
    assert typed(store) == before


def test_without_a_session_equal_texts_of_one_minute_are_one_prompt(
    store: Store,
) -> None:
    session = session_of("s", message("a", at=1))
    near, late = line("a", 9_000, None), line("a", 90_000, None, directory="/elsewhere")
    read(store, session, history(near, line("/diff", 80_000), late))
    first, _, last = prompts(store)
    assert (first.time_created, last.time_created) == (T0 + 1, T0 + 90_000)
    assert (last.session_id, last.directory) == (None, "/elsewhere")
    assert last.project_id is not None


@pytest.mark.parametrize("session", [None, "s"])
def test_a_history_whose_lines_have_one_time_is_read_quickly(
    store: Store, session: str | None
) -> None:
    """Rows that were made by a migration all have its time."""
    lines = [line(f"/{at % 2}", at, session) for at in range(1500)]
    begun = time.process_time()
    assert read(store, session_of("s", message("a")), history(*lines)) == []
    assert time.process_time() - begun < 1.5
    assert len(store.prompts(project=ALL, limit=2000)) == 1501


def test_prompts_match_up_to_a_minute_in_either_direction(store: Store) -> None:
    """Near is what differs by a minute at most, in either direction."""
    start = -T0 % 60_000
    for at in (start - 1, start, start + 59_999):
        session = session_of(f"s{at}", message(f"a{at}", at=at))
        near = [line(f"a{at}", at + by, None) for by in (-60_000, 60_000)]
        far = [line(f"a{at}", at + by, None) for by in (-60_001, 60_001)]
        read(store, session, history(*near))
        assert typed(store).count(f"a{at}") == 1
        read(store, session, history(far[0], line("/x", at, None), far[1]))
        assert typed(store).count(f"a{at}") == 3


def test_a_history_limited_to_a_project_has_no_prompts_of_others(store: Store) -> None:
    mine = session_of("s", message("a"), directory="/mine")
    lines = [line("b", 1), line("c", 2, "other"), line("d", 3, None, directory="/mine"), line("e", 4, None, directory="/b")]  # fmt: skip
    read(store, mine, history(*lines), project_root="/mine")
    assert typed(store) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text": 1}, "text must be a string"),
        ({"time_created": None}, "time_created"),
        ({"time_created": 1 << 70}, "time_created"),
        ({"session": ["x"]}, "session"),
        ({"session": "a\0b"}, "session"),
        ({"directory": 7}, "directory must be a string"),
    ],
)
def test_a_line_that_cannot_be_stored_is_reported_and_skipped(
    store: Store, fields: dict[str, Any], why: str
) -> None:
    bad = SourcePrompt(**{"text": "x", "time_created": T0, **fields})
    (problem,) = read(store, history(line("a"), bad, line("b", 1)))
    assert why in problem
    assert typed(store) == ["a", "b"]


def test_a_history_that_cannot_be_read_to_its_end_is_read_again(store: Store) -> None:
    def lines() -> Iterator[SourcePrompt | Problem]:
        yield line("a")
        yield Problem("/elsewhere/history.jsonl", "torn", 2)
        raise OSError("gone")

    for _ in range(2):
        given = SourceHistory(SOURCE, "/elsewhere/history.jsonl", "1", lines())
        assert len(read(store, given)) == 2
    assert typed(store) == ["a"]
    odd: Any = [7, line(" \n"), line("x" * 40_000)]
    assert len(read(store, history(*odd))) == 1
    assert typed(store) == ["a"]


def test_a_dry_run_writes_no_history(store: Store) -> None:
    assert read(store, history(line("a")), dry_run=True) == []
    assert typed(store) == []


def test_the_sessions_of_all_lines_of_a_batch_are_read_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(self: Transaction, statement: Statement, **params: Any) -> Any:
        made.append(statement)
        return run(self, statement, **params)

    def statements(names: int, digest: str) -> int:
        lines = [line(f"/{digest}", at, ids.new_session_id()) for at in range(names)]
        made.clear()
        assert read(store, history(*lines, digest=digest)) == []
        return len(made)

    run, made = Transaction.run, list[Statement]()
    monkeypatch.setattr(Transaction, "run", counted)
    monkeypatch.setattr(Transaction, "one", lambda *a, **k: counted(*a, **k).fetchone())
    assert statements(300, "x") == statements(3, "y")
