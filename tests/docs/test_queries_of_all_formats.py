"""The queries of the cookbook have the rows that the library has, for stores of every agent."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import blocks, page

from sessiondb import ALL, Message, Part, Session, Store
from sessiondb.formats import find
from sessiondb.model.tools import files_changed

pytestmark = pytest.mark.slow

STORES = [
    "aider-0.86.2", "claude-code-2.1.329", "codex-0.169.0", "gemini-cli-0.61.0",
    "goose-1.34.0", "llm-0.36", "oh-my-pi-18.2.3", "openai-agents-0.24.0",
    "opencode-0.5.29", "opencode-1.18.33", "opencode-2.0.15", "pi-0.87.1",
    "qwen-code-0.24.4",
]  # fmt: skip
QUERIES = blocks(page("docs/COOKBOOK.md"), "sql")
Rows = list[dict[str, Any]]


class Imported:
    """A real store, as the library reads it and as SQL does."""

    def __init__(self, store: Store) -> None:
        self.path = store.path
        self.sessions: list[Session] = list(
            store.sessions(
                project=ALL, archived=True, subagents=True, empty=True, limit=1000
            )
        )
        self.messages: list[tuple[Session, Message]] = [
            (session, message)
            for session in self.sessions
            for message in store.messages(session, branches=True)
        ]

    def own(self) -> Iterator[tuple[Session, Message]]:
        """Yield the messages that no fork copied."""
        for session, message in self.messages:
            if not message.inherited:
                yield session, message

    def calls(self) -> Iterator[Part]:
        """Yield the calls that no fork copied."""
        for _, message in self.own():
            yield from (part for part in message.parts if part.type == "tool")

    def ask(self, first_words: str, **changed: str) -> Rows:
        """Return the rows of the query after a sentence, without its limit."""
        (query,) = (q for q in QUERIES if q.before.startswith(first_words))
        sql = re.sub(r" LIMIT (10|20);", ";", query.text)
        for old, new in changed.items():
            assert old in sql
            sql = sql.replace(old, new)
        with closing(sqlite3.connect(self.path)) as shell:
            shell.row_factory = sqlite3.Row
            return [dict(row) for row in shell.execute(sql)]


@pytest.mark.parametrize("name", STORES)
def test_every_query_is_right_for_the_store_of_every_agent(
    name: str, tmp_path: Path, real_store: Callable[[str], Path]
) -> None:
    folder = real_store(name)
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        for source in find(folder / "data"):
            list(store.ingest(source.read()))
        imported = Imported(store)
        assert imported.sessions
        check_transcript(imported)
        check_costs(imported)
        check_calls(imported)
        check_sizes(imported)
        check_tree(imported)
        check_prompts(imported)
        check_files(imported)
    # A store that is closed has put its newest parts into the index.
    check_search(imported)


def check_transcript(imported: Imported) -> None:
    rows = imported.ask("One transcript")
    newest = max(imported.sessions, key=lambda session: session.time_updated)
    parts = [
        (message.seq, part.tool or part.type)
        for session, message in imported.messages
        if session.id == newest.id
        for part in message.parts
        if not part.type.startswith("step-")
    ]
    shown = [(row["seq"], row["part"]) for row in rows]
    assert [row for row in shown if row[1] is not None] == parts


def check_costs(imported: Imported) -> None:
    messages: Counter[str | None] = Counter()
    tokens: Counter[str | None] = Counter()
    cost: dict[str | None, float] = {}
    for _, message in imported.own():
        if message.cost is not None or message.tokens is not None:
            model = message.model_id
            messages[model] += 1
            cost[model] = cost.get(model, 0) + (message.cost or 0)
            if message.tokens is not None:
                tokens[model] += message.tokens.output or 0
    rows = imported.ask("Cost by model", now="2000-01-01")
    assert {row["model_id"]: row["messages"] for row in rows} == messages
    for row in rows:
        assert (row["output"] or 0) == tokens[row["model_id"]]
        assert (row["usd"] or 0) == pytest.approx(cost[row["model_id"]], abs=1e-4)


def check_calls(imported: Imported) -> None:
    timed: list[float] = []
    failed: Counter[tuple[str | None, str | None]] = Counter()
    for call in imported.calls():
        if call.time_started is not None and call.time_ended is not None:
            timed.append((call.time_ended - call.time_started) / 1000)
        if call.status == "error":
            failed[call.tool, call.outcome] += 1
    slowest = [row["seconds"] for row in imported.ask("Slowest tool")]
    assert slowest == pytest.approx(sorted(timed, reverse=True))
    rows = imported.ask("Failed tools")
    assert {(row["tool"], row["outcome"]): row["times"] for row in rows} == failed


def check_sizes(imported: Imported) -> None:
    sizes: Counter[str] = Counter()
    for session in imported.sessions:
        parts = [
            part
            for of, message in imported.messages
            if of.id == session.id
            for part in message.parts
        ]
        answered = {part.call_id for part in parts if part.type == "tool" and part.text}
        for part in parts:
            sizes[session.id[-6:]] += len((part.input_json or "").encode())
            # The library repeats the result of a call in the record of the result.
            if part.type != "tool-result" or part.call_id not in answered:
                # NUL is stored as a visible character of three bytes.
                text = (part.text or "").replace("\0", "␀")
                sizes[session.id[-6:]] += len(text.encode("utf-8", "replace"))
    for row in imported.ask("Biggest sessions"):
        assert row["bytes"] == sizes[row["ref"]]


def check_tree(imported: Imported) -> None:
    rows = imported.ask("The tree")
    assert Counter(row["title"].strip() for row in rows) == Counter(
        session.title.strip() for session in imported.sessions
    )


def check_prompts(imported: Imported) -> None:
    typed = [
        (part.text or "")[:80]
        for _, message in imported.own()
        if message.purpose == "prompt"
        for part in message.parts
        if part.type == "text" and not part.synthetic
    ]
    rows = imported.ask("Everything I typed")
    assert Counter(row["prompt"] or "" for row in rows) == Counter(typed)


def check_search(imported: Imported) -> None:
    words = Counter(
        word.lower()
        for _, message in imported.own()
        for part in message.parts
        if part.type == "text"
        for word in re.findall(r"\b[a-z]{5,}\b", part.text or "")
    )
    ((word, _),) = words.most_common(1)
    rows = imported.ask("Search; an", timer=word)
    found = Counter((row["title"], row["seq"]) for row in rows)
    assert found == Counter(
        (session.title, message.seq)
        for session, message in imported.own()
        for part in message.parts
        if has_word(part, word)
    )
    assert all("[" in row["found"] for row in rows)


def has_word(part: Part, word: str) -> bool:
    """Return whether a part has a word where it is searched."""
    # The result of a call is found at the call.
    text = "" if part.type == "tool-result" else part.text or ""
    texts = [text, part.input_json or "", part.title or ""]
    is_word = re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE)
    return any(is_word.search(text) for text in texts)


def check_files(imported: Imported) -> None:
    changes: Counter[str] = Counter()
    sessions: dict[str, set[str]] = {}
    last: dict[str, int] = {}
    for session, message in imported.own():
        for part in message.parts:
            for file in files_of(session, message, part):
                changes[file] += 1
                sessions.setdefault(file, set()).add(session.id)
                time = part.time_started or part.time_created
                last[file] = max(last.get(file, 0), time)
    rows = imported.ask("The files that were changed")
    assert {row["file"]: row["changes"] for row in rows} == changes
    for row in rows:
        assert row["sessions"] == len(sessions[row["file"]])
        assert (
            row["last"]
            == f"{datetime.fromtimestamp(last[row['file']] // 1000, UTC):%F %T}"
        )


def files_of(session: Session, message: Message, part: Part) -> Iterator[str]:
    """Yield the absolute paths that a call, or an answer of aider, changed."""
    if part.type == "tool" and part.status != "error":
        files = files_changed(part.tool or "", part.input, None)
    elif part.type == "text" and message.role == "assistant":
        files = files_changed(None, None, part.text)
    else:
        return
    for file in files:
        yield str(Path(session.directory or "", file))
