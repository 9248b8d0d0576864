"""What is a prompt, an answer, an injected text: the same in Python and in SQL."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from full_session import make
from samples import SAMPLES, new_store, read_into

from sessiondb import Store, assistant, event, part, system, text, tool, user
from sessiondb.cli.costs import usages_of
from sessiondb.cli.output import Screen
from sessiondb.cli.paint import painted
from sessiondb.formats import markdown
from sessiondb.formats.transcript.facts import spent_text
from sessiondb.formats.transcript.terminal import Terminal
from sessiondb.formats.transcript.terminal_head import head_lines
from sessiondb.model import Document, Session
from sessiondb.model.purposes import BOOKKEEPING, INJECTED, PROMPT, PURPOSES
from sessiondb.repository.sessions import ALL
from sessiondb.words import count, tokens

EVERYTHING = {"project": ALL, "archived": True, "subagents": True, "empty": True}
#: Real stores, with what their users typed beyond the ground truth: a prompt of a session
#: that was compacted, which it leaves out.
REAL = {
    "aider-0.86.2": 0,
    "claude-code-2.1.329": 0,
    "codex-0.169.0": 0,
    "gemini-cli-0.61.0": 0,
    "goose-1.34.0": 0,
    "llm-0.27.1": 0,
    "llm-0.36": 0,
    "oh-my-pi-18.2.3": 0,
    "openai-agents-0.24.0": 0,
    "opencode-0.5.29": 1,
    "opencode-1.1.65": 0,
    "opencode-1.18.33": 0,
    "opencode-2.0.15": 0,
    "opencode-migrated-1.2.27": 0,
    "opencode-upgraded-2.0.15": 0,
    "pi-0.87.1": 0,
    "qwen-code-0.24.4": 1,
}


def compare(store: Store) -> None:
    """Compare the purposes of all messages, and the prompts that sessions count."""
    with closing(sqlite3.connect(store.path)) as shell:
        for session in store.sessions(**EVERYTHING, limit=1000):
            messages = store.messages(session, branches=True)
            purposes = {m.seq: m.purpose for m in messages}
            assert session.prompt_count == Counter(purposes.values())[PROMPT]

            rows = shell.execute(
                "SELECT DISTINCT seq, purpose FROM transcript WHERE session_id = ?",
                (session.id,),
            )
            for seq, purpose in rows:
                assert purpose == purposes[seq], (session.source, seq)
            listed = shell.execute(
                "SELECT prompt_count FROM session_list WHERE id = ?", (session.id,)
            )
            assert listed.fetchone() == (session.prompt_count,)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_messages_of_every_format_have_one_purpose(name: str, tmp_path: Path) -> None:
    with new_store() as store:
        SAMPLES[name].write(tmp_path / "theirs")
        read_into(store, tmp_path / "theirs")
        compare(store)


def test_a_message_has_the_purpose_of_what_it_says(store: Store) -> None:
    session = store.create_session()
    for draft, purpose in (
        (user("go"), "prompt"),
        (user(text("<env>", synthetic=True)), "injected"),
        (user(text("<env>", synthetic=True), "go on"), "prompt"),
        (user(part("compaction")), "injected"),
        (user(), "injected"),
        (assistant("Well"), "answer"),
        (assistant(), "answer"),
        (system("Be brief"), "injected"),
        (event("compaction", "So far"), "summary"),
        (event("branch_summary", "So far"), "summary"),
        (event("custom_message", "reminder"), "injected"),
        (event("shell", tool("bash", {"command": "ls"})), "command"),
        (event("usage"), "bookkeeping"),
        (event("reset", "now"), "bookkeeping"),
    ):
        store.append(session, draft)
        assert store.messages(session)[-1].purpose == purpose
        assert purpose in PURPOSES
    compare(store)


def test_a_session_that_has_everything_has_every_purpose_in_sql(store: Store) -> None:
    make(store)
    compare(store)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_prompts_of_a_real_store_are_what_was_typed(
    name: str, real_store: Callable[[str], Path]
) -> None:
    folder = real_store(name)
    truth = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    with new_store() as store:
        read_into(store, folder / "data")
        prompts = 0
        for session in store.sessions(**EVERYTHING, limit=1000):
            messages = store.messages(session, branches=True)
            own = [m for m in messages if not m.inherited]
            prompts += sum(message.purpose == PROMPT for message in own)
            _check_conversation(store, session.id)
            _check_numbers(store, session)
    assert prompts == truth["totals"]["user_prompts"] + REAL[name]


def _check_conversation(store: Store, session_id: str) -> None:
    """Check a session as a terminal shows it: it is a conversation.

    A heading is above something, the first prompt is near the top, and of all lines
    few are about what a program records for itself.
    """
    look = Terminal()
    rows = list(painted(head_lines(store.session(session_id)), SCREEN))
    first, asides = None, 0
    for message in store.messages(session_id):
        rows_of_message = list(painted(look.message(message), SCREEN))
        if first is None and message.purpose == PROMPT:
            first = len(rows)
        rows += rows_of_message
        # How an answer ended is of the conversation.
        is_ending = message.kind in ("failed", "cancelled")
        if message.purpose in (BOOKKEEPING, INJECTED) and not is_ending:
            asides += sum(map(bool, rows_of_message))
        elif rows_of_message:
            is_heading = re.fullmatch("── #\\d+( .* · \\d{4}-.*)?", rows_of_message[-1])
            assert is_ending or not is_heading, (session_id, message.seq)

    left_out = list(painted(look.tail(), SCREEN))
    assert first is None or first < 12
    asides += sum(map(bool, left_out))
    lines = sum(map(bool, rows + left_out))
    # A session of which nothing else is shown has the line that counts alone.
    assert asides <= max(1, 0.15 * lines), session_id


def _check_numbers(store: Store, session: Session) -> None:
    """Check that a session has the same numbers in lists, `show`, a page and SQL."""
    with closing(sqlite3.connect(store.path)) as shell:
        (messages,) = shell.execute(
            "SELECT count(*) FROM message WHERE session_id = ?", (session.id,)
        ).fetchone()
        (prompts,) = shell.execute(
            "SELECT count(DISTINCT seq) FROM transcript "
            "WHERE session_id = ? AND purpose = 'prompt'",
            (session.id,),
        ).fetchone()
        listed = shell.execute(
            "SELECT message_count, prompt_count, cost, tokens FROM session_list "
            "WHERE id = ?",
            (session.id,),
        ).fetchone()
    assert (session.message_count, session.prompt_count) == (messages, prompts)
    columns = session.tokens.columns()
    total = sum([number or 0 for number in columns])
    assert listed == (messages, prompts, session.cost, total)

    usage = usages_of(store, [session]).get(session.id)
    export = replace(store.export(session), usage=usage)
    (page,) = [
        it for it in markdown.EXPORTER.write([export]) if isinstance(it, Document)
    ]
    texts = (
        "".join(page.chunks),
        "\n".join(painted(head_lines(session, usage), SCREEN)),
    )
    facts = [
        count(messages, "message"),
        count(prompts, "prompt"),
        tokens(columns),
        spent_text(session, usage),
    ]
    for text_ in texts:
        assert all(fact in text_.replace("\\~", "~") for fact in facts), facts


SCREEN = Screen(False, False, 80, 24)
