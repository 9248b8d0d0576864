from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from transcripts import XSS, Strict, exported, nasty, read_html, story

from sessiondb import (
    ALL,
    MessageDraft,
    StorageError,
    StorageFullError,
    Store,
    assistant,
    event,
    file,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.formats.markdown.prose import fenced, prose

RealStore = Callable[[str], Path]
#: The most trusting reader there is: it passes HTML and follows every link.
READER = (
    MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
)
READER.validateLink = lambda _: True  # type: ignore[method-assign, assignment]
#: The tags that a reader makes of Markdown, and those that we write.
TAGS = set(
    "h1 h2 h3 h4 h5 h6 p ul ol li a em strong s code pre blockquote hr br table thead tbody tr th "
    "td details summary b".split()
)
OURS = {
    "a": {"id"},
    "code": {"class"},
    "ol": {"start"},
    "th": {"style"},
    "td": {"style"},
}


def rendered(markdown: str) -> Strict:
    """Render Markdown as a trusting reader does, and check that nothing was smuggled in."""
    found = read_html(READER.render(markdown))
    for tag, attributes in found.seen:
        assert tag in TAGS, tag
        href = attributes.pop("href", None)
        assert href is None or re.match(
            r"https?://|mailto:|#s\d+-m\d+$", href, re.IGNORECASE
        ), href
        attributes.pop("title", None)
        assert attributes.keys() <= OURS.get(tag, set()), (tag, attributes)
    return found


@pytest.mark.slow
def test_nothing_that_was_said_becomes_structure(store: Store) -> None:
    name = nasty(store)
    for detail in ("brief", "normal", "full"):
        found = rendered(exported(store, "markdown", name, detail=detail))
        assert len(found.of("h1")) == 1
        assert found.text.rstrip().endswith("Times are UTC. Written by sessiondb.")


@pytest.mark.parametrize("said", XSS)
def test_hostile_prose_does_not_affect_the_markdown_around_it(said: str) -> None:
    found = rendered(f"before\n\n{prose(said)}\n\n# after\n")
    assert found.of("h1") == [{}]
    assert found.said[-2:] == ["after", "\n"]


PIECES = [
    "`", "``", "```", "~~~", "\n", "\n\n", " ", "   ", "    ", "\t", "- ", "1. ", "> ", "#", "=", "---",
    "<b>", "</details>", "<!--", "<?", "\\", "![", "[a]", "](", "]:", "javascript:x", "https://a.b/",
    ")", "&lt;", "&#60;", "|", "*", "_", "$", "word", "<https://c.d>", "\r", "\u2028", "é",
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_arbitrary_prose_does_not_affect_the_markdown_after_it(said: str) -> None:
    found = rendered(f"{prose(said)}\n\n# after\n")
    assert found.said[-2:] == ["after", "\n"]
    assert [tag for tag, _ in found.seen][-1] == "h1"


@pytest.mark.parametrize(
    "said",
    [
        "plain *text* with `code` and [a link](https://ok.example)",
        "```python\nif a < b: print('<b>')\n```",
        "1. do this:\n   ```sh\n   echo <name>\n   ```\n2. done",
        "a < b and c > d & e",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "- [x] done\n- [ ] open",
    ],
)
def test_harmless_prose_is_left_unchanged(said: str) -> None:
    assert prose(said) == said


def test_generic_types_in_code_can_be_read() -> None:
    assert (
        rendered(prose("use `Vec<String>` here")).text.strip() == "use Vec<String> here"
    )


def test_a_fence_is_longer_than_any_in_what_it_holds() -> None:
    assert fenced("````\nx\n````", "py") == "`````py\n````\nx\n````\n`````"


@pytest.mark.slow
@pytest.mark.parametrize(
    "bad", ["` " * 100_000, " ```a\n" * 30_000, "`" * 9 + "```x`` ` " * 20_000]
)
def test_a_megabyte_of_fences_and_ticks_takes_no_time(bad: str) -> None:
    assert len(prose(bad)) > 100_000


def test_a_session_reads_well_as_plain_text(store: Store) -> None:
    out = exported(store, "markdown", story(store))
    assert out.startswith(
        "# Fix the \\*parser\\*\n\n- **Agent:** sessiondb\n- **Model:** large\n"
    )
    assert "- **Cost:** $0.25\n" in out
    assert "## Prompt · 20" in out
    assert "\nFix `lexer.py`\n" in out
    assert (
        "<details><summary>! <b>bash</b> pytest · exit 3</summary>\n\n```bash\npytest\n```"
        in out
    )
    assert "*… 960 more lines left out*" in out
    assert "<summary>✗ <b>read</b> gone.py · failed</summary>" in out
    assert "-a <= b\n+a < b\n```" in out
    assert "- [ ] Run it *(in\\_progress)*" in out


def test_brief_is_prompts_and_final_answers(store: Store) -> None:
    out = exported(store, "markdown", story(store), detail="brief")
    assert "> ! **bash** pytest · exit 3\n" in out
    assert "Fixed the **bound**." in out
    assert "I look first" not in out
    assert "<details>" not in out


def test_a_result_of_its_own_is_shown_once(store: Store) -> None:
    name = store.create_session().id
    store.append(name, assistant(tool("look", {}, call_id="c1")))
    store.append(name, MessageDraft("tool", (tool_result("c1", "found it"),)))
    assert exported(store, "markdown", name).count("found it") == 1


def test_results_and_added_texts_do_not_interrupt_an_answer(store: Store) -> None:
    name = store.create_session().id
    store.append(name, assistant("First", tool("look", {}, call_id="c1")))
    log = file(content=b"lines\n", filename="log.txt")
    store.append(name, MessageDraft("tool", (tool_result("c1", "found"), log)))
    store.append(name, event("custom_message", "a reminder"))
    store.append(name, assistant("Second"))
    out = exported(store, "markdown", name)
    assert out.count("**Assistant** · ") == 1
    assert "**Tool**" not in out
    assert "<summary><b>Added by the program</b> a reminder</summary>" in out


def test_a_fork_marks_where_its_own_messages_begin(store: Store) -> None:
    name = story(store)
    fork = store.fork(name).id
    store.append(fork, user("Another way"))
    out = exported(store, "markdown", fork)
    assert "- **Origin:** fork of “Fix the" in out
    assert out.index("copied when the session was forked") < out.index("Another way")
    assert "- **Cost:** unknown, and $0.25 inherited" in out


def test_events_are_shown_where_they_happened(store: Store) -> None:
    name = store.create_session().id
    store.append(name, user("go"))
    store.append(name, event("model_change"), provider="p", model="m")
    store.append(name, event("cancelled"))
    store.append(name, event("session_init", text("quiet")))
    store.append(name, event("reset"))
    store.append(name, event("task_started"))
    store.append(name, event("compaction_failed"), error="too long")
    out = exported(store, "markdown", name)
    assert "> Model: p/m\n" in out
    assert "> ✗ Cancelled\n" in out
    assert "> Reset\n" in out
    assert "> Compaction failed\n\n> ✗ Error: too long\n" in out
    assert "Task started" not in out
    assert "> Task started\n" in exported(store, "markdown", name, detail="full")


@pytest.mark.slow
def test_a_long_session_is_written_piece_by_piece(store: Store) -> None:
    name = store.create_session().id
    with store.effects() as fx:
        for number in range(120):
            fx.append(name, user(text(f"{number} " + "x" * 10_000)))
    document = next(
        iter(exporter("markdown").write([store.export(name)], detail="normal"))
    )
    sizes = [len(chunk) for chunk in document.chunks]  # type: ignore[union-attr]
    assert sum(sizes) > 1_200_000
    assert max(sizes) < 100_000


@pytest.mark.parametrize("form", ["html", "markdown"])
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StorageFullError), (errno.EIO, StorageError)]
)
def test_a_refusing_temporary_directory_is_a_storage_error(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    number: int,
    kind: type[StorageError],
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    session = store.create_session()
    store.append(session, user("hello"))
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", refuse)
    with pytest.raises(kind, match="temporary directory") as caught:
        exported(store, form, session.id)
    assert type(caught.value) is kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["opencode-1.18.33", "opencode-2.0.15"])
def test_real_sessions_can_be_sent(
    store: Store, real_store: RealStore, kind: str
) -> None:
    for found in find(real_store(kind) / "data"):
        for _ in store.ingest(found.read()):
            pass
    names = [
        session.id for session in store.sessions(project=ALL, subagents=True, limit=100)
    ]
    assert names
    for name in names:
        rendered(exported(store, "markdown", name, detail="full"))
        read_html(exported(store, "html", name))


def test_what_a_program_added_in_a_row_is_one_fold(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("Go"))
    for number in range(3):
        store.append(session, event("custom_message", f"reminder {number}"))
    store.append(session, assistant("Done"))
    store.append(session, event("custom_message", "alone"))

    shown = exported(store, "markdown", session.id)
    folds = re.findall(r"<summary><b>([^<]*)</b>", shown)
    assert folds[0].startswith("3 injected texts")
    assert folds[1:] == ["Added by the program"] * 4, "each of the three is inside"
    complete = exported(store, "markdown", session.id, detail="full")
    assert "3 injected texts" not in complete
