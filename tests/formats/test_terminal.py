"""The terminal look: the output of `show` and `tail`, before width and colours."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, islice, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from transcripts import exported, nasty

from sessiondb import (
    MessageDraft,
    PartDraft,
    Store,
    assistant,
    context_source,
    event,
    file,
    part,
    reasoning,
    text,
    tool,
    user,
)
from sessiondb.cli.output import Screen
from sessiondb.cli.paint import painted
from sessiondb.cli.show import _shown_lines as shown_lines
from sessiondb.formats.transcript.terminal import (
    Span,
    Terminal,
    TerminalLine,
    preview_of,
)
from sessiondb.formats.transcript.terminal_head import head_lines

NOON = 1_770_000_000_000
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def lines(store: Store, session: str, *, full: bool = False) -> list[TerminalLine]:
    look = Terminal("full" if full else "normal")
    labels = {label.seq: [label.label] for label in store.labels(session)}
    found = head_lines(store.session(session))
    for message in store.messages(session):
        found += look.message(message, labels.get(message.seq, ()))
    return found + look.tail()


def said(found: list[TerminalLine]) -> str:
    return "\n".join(painted(found, Screen(False, False, 80, 24)))


@pytest.mark.parametrize("full", [False, True])
def test_no_line_contains_a_control_character(store: Store, full: bool) -> None:
    for line in lines(store, nasty(store), full=full):
        assert not CONTROL.search(line.text), line
        for span in line.spans:
            assert not {"\t", "\n"} & {*span.text}
        assert line.text == "".join(span.text for span in line.styled_spans())


def test_an_edit_is_a_coloured_diff_and_its_line_counts(store: Store) -> None:
    session = store.create_session().id
    edit = {"filePath": "lexer.py", "oldString": "a <= b", "newString": "a < b"}
    store.append(session, assistant(tool("edit", edit, output="ok")))
    found = lines(store, session)
    assert "▸ edit ✓ lexer.py +1 −1\n" in said(found)
    rows = list(painted(found, Screen(False, True, 80, 24)))
    red, green, dim = "\x1b[31m", "\x1b[32m", "\x1b[2m"
    assert f"  {red}-a <= b\x1b[0m" in rows
    assert f"  {green}+a < b\x1b[0m" in rows
    assert f"  {dim}@@ -1 +1 @@\x1b[0m" in rows
    assert not any("---" in row for row in rows), "the line of the call names the file"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("color", [False, True])
def test_each_line_of_a_text_is_behind_its_indent(terminal: bool, color: bool) -> None:
    screen = Screen(terminal, color, 20, 24)
    text = TerminalLine("one\n\ntwo", "good", Span("│ ", "dim"))
    rows = "\n".join(painted([text, TerminalLine()], screen)).split("\n")
    assert [re.sub("\x1b\\[[0-9;]*m", "", row) for row in rows] == [
        "│ one",
        "│ ",
        "│ two",
        "",
    ]
    assert color == ("\x1b[32mtwo" in rows[2])


def test_the_line_of_a_call_does_not_repeat_what_is_below_it(store: Store) -> None:
    session = store.create_session().id
    store.append(session, assistant(tool("bash", {"command": "ls"}, output="ls")))
    store.append(session, assistant(tool("read", {"path": "ls"}, output="ls -l")))
    out = said(lines(store, session, full=True))
    assert "▸ bash ✓\n  $ ls\n  │ ls\n" in out
    assert "▸ read ✓ ls\n  path: ls\n  │ ls -l" in out


def test_a_conversation_has_a_line_for_each_call_and_why_it_failed(
    store: Store,
) -> None:
    session = store.create_session().id
    store.append(session, user("go"))
    done = tool("bash", {"command": "ls"}, output="a.py")
    failed = tool("bash", {"command": "lss"}, error="lss: not found", outcome="denied")
    store.append(session, assistant(reasoning("Hm\n\nwell"), "Look:", done), model="m")
    store.append(session, assistant(failed), model="m")
    store.append(session, assistant("Done."), model="m")
    _, _, shown = said(lines(store, session)).rpartition(" · m\n")
    assert shown == (
        "· thought: Hm well\nLook:\n▸ bash ✓ ls\n"
        "▸ bash ✗ denied lss #3\n  │ lss: not found\n── #4\nDone."
    )


def test_a_brief_conversation_has_what_a_brief_page_has(store: Store) -> None:
    session = store.create_session(title="Turns").id
    for number in range(2):
        store.append(session, user(f"prompt {number}"))
        call = tool("bash", {"command": f"call {number}"}, output="result")
        store.append(session, assistant(f"early {number}", call))
        store.append(session, assistant(reasoning("hm"), f"last {number}"))
        store.append(session, assistant(part("step-start")))
    expected = [f"{word} {n}" for n in range(2) for word in ("prompt", "call", "last")]
    look = Terminal("brief")
    shown = said(list(chain(*look.conversation(store.messages(session), {}))))
    page = exported(store, "markdown", session, detail="brief")
    for words in (shown, page):
        assert re.findall(r"\b(?:prompt|early|last|call) \d\b", words) == expected
        assert not {"hm", "result"} & {*words.split()}
    whole = said(list(chain(*Terminal().conversation(store.messages(session), {}))))
    assert whole.count("early") == 2


def test_a_pause_or_another_model_gives_an_answer_its_heading_again(
    store: Store,
) -> None:
    session = store.create_session().id
    for time, model in ((10, "m"), (20, "m"), (90, "m"), (95, "n")):
        answer = assistant("So")
        store.append(session, answer, model=model, time=1_770_000_000_000 + time * 1000)
    shown = said(lines(store, session))
    headings = re.findall(r"^── (#\d)( answer)?", shown, re.MULTILINE)
    assert headings == [("#1", " answer"), ("#2", ""), ("#3", " answer"), ("#4", " answer")]  # fmt: skip


def test_long_texts_are_folded_and_full_shows_all_of_them(store: Store) -> None:
    session = store.create_session().id
    numbers = "\n".join(map(str, range(30)))
    wide = "x" * 500
    store.append(session, assistant(tool("seq", {"wide": wide}, error=numbers)))
    folded, full = (said(lines(store, session, full=full)) for full in (False, True))
    assert folded.endswith("  │ 7\n  │ … 22 more lines (--detail full)")
    assert wide not in folded
    assert "  │ 29" in full
    assert wide in full


def test_an_answer_of_which_nothing_is_shown_is_counted(store: Store) -> None:
    session = store.create_session().id
    store.append(session, user("go"))
    store.append(session, assistant(part("step-start")))
    assert said(lines(store, session)).endswith(
        "\ngo\n\n… 1 empty answer (--detail full)"
    )
    assert "── #2 answer" in said(lines(store, session, full=True))


def test_events_with_nothing_to_read_are_folded_and_counted(store: Store) -> None:
    session = store.create_session().id
    for kind in ("task_started", "reset", "thinking_level_change", "usage"):
        store.append(session, event(kind))
    store.append(session, event("checkpoint"))
    store.label(session, 5, "before")
    store.append(session, event("note", text("to read")))
    store.append(session, event("failed"))

    shown = said(lines(store, session))
    numbers = re.findall(r"^── #(\d)", shown, re.MULTILINE)
    assert numbers == ["5", "7"]
    assert shown.endswith("\n… 5 bookkeeping records (--detail full)")

    full = said(lines(store, session, full=True))
    assert re.findall(r"^── #(\d)", full, re.MULTILINE) == list("1234567")
    assert "\nTask started\n" in full
    assert "(--detail full)" not in full


def test_an_event_shows_its_parts_whatever_they_are(store: Store) -> None:
    session = store.create_session().id
    store.append(session, event("mode_change", part("mode", text="plan")))
    store.append(session, event("checkpoint", part("commit", text="abc")))
    out = said(lines(store, session, full=True))
    assert "\nMode: plan\n" in out
    assert "\nCheckpoint\n[Commit]\n  │ abc" in out


def test_the_line_of_a_call_names_what_it_was_about(store: Store) -> None:
    session = store.create_session(directory="/home/ada/tea").id
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"
    files = patch.replace("*** End", "*** Add File: b.py\n+x\n*** End")
    command = {"description": "Brew it", "command": "make\n tea"}
    calls = [
        replace(
            tool("bash", command, output="ok"),
            time_started=NOON,
            time_ended=NOON + 3200,
        ),
        tool("Read", {"file_path": "/home/ada/tea/pot.py"}, output="x"),
        tool("Read", {"file_path": "/home/ada/teapot"}, output="x"),
        tool("edit", {"path": "c.py", "before": "a", "after": "b"}, output="ok"),
        tool("apply_patch", patch, output="ok"),
        tool("apply_patch", {"input": files}, output="ok"),
    ]
    plan = {"plan": [{"step": "Brew", "status": "completed"}, {"step": "Drink"}]}
    store.append(session, assistant(*calls, tool("update_plan", plan, output="ok")))
    look = Terminal(directory="/home/ada/tea")
    _, _, *shown = said(look.message(store.messages(session)[0])).split("\n")
    assert shown == [
        "▸ bash ✓ Brew it $ make tea 3.2 s",
        "▸ Read ✓ pot.py",
        "▸ Read ✓ /home/ada/teapot",
        "▸ edit ✓ c.py +1 −1", "  @@ -1 +1 @@", "  -a", "  +b",
        "▸ apply_patch ✓ src/a.py +1 −1", "  @@", "  -a", "  +b",
        "▸ apply_patch ✓ src/a.py, b.py +2 −1", *["  " + row for row in files.split("\n")],
        "▸ update_plan ✓", "  [x] Brew", "  [ ] Drink",
    ]  # fmt: skip


def test_a_narrow_screen_keeps_the_seconds_and_the_number_of_a_call(
    store: Store,
) -> None:
    session = store.create_session().id
    long = {"command": "make " + "tea " * 40}
    for number in range(2):
        call = replace(
            tool("bash", long, output="ok"), time_started=NOON, time_ended=NOON + 3200
        )
        store.append(session, assistant(call), time=NOON + number)
    look, screen = Terminal(), Screen(True, False, 40, 24)
    *_, last = painted(chain(*map(look.message, store.messages(session))), screen)
    assert last.endswith("… 3.2 s #2")
    assert cell_len(last) <= 40


def test_a_result_and_a_summary_have_no_heading_of_their_own(store: Store) -> None:
    session = store.create_session().id
    store.append(session, user("go"))
    output = file(content=b"lines\n", filename="log.txt")
    store.append(session, MessageDraft("tool", (output,)))
    store.append(session, event("compaction", "So far"))
    shown = said(lines(store, session))
    assert shown.endswith("go\n── #3 [Context compacted]\n\n… 1 result (--detail full)")


def test_prompts_off_the_live_path_are_counted(store: Store) -> None:
    session = store.create_session().id
    store.append(session, user("one"))
    for text_ in ("two", "three"):
        store.append(session, user(text_), after=1)
    rows = chain(*Terminal().conversation(store.messages(session), {}, prompts=3))
    assert said(list(rows)).endswith(
        "three\n\n… 1 prompt off the live path (--branches)"
    )


def test_a_context_source_is_a_line(store: Store) -> None:
    session = store.create_session().id
    sources = [
        context_source("file", "AGENTS.md", scope="project", truncated=True),
        context_source("memory", title="tea", error="no such file", text="Green"),
        PartDraft("source", input=[1]),
    ]
    store.append(session, event("context", "Be brief", *sources))
    store.append(session, event("context", *sources))
    assert said(lines(store, session)).endswith("\n… 2 injected texts (--detail full)")
    shown = said(lines(store, session, full=True))
    assert shown.count("[Source file AGENTS.md project · truncated]\n") == 2
    assert shown.count("[Source memory tea · error: no such file]\n  │ Green\n") == 2
    assert shown.count("[Source]") == 2


def test_the_record_of_an_error_is_shown_in_full_alone(store: Store) -> None:
    session = store.create_session().id
    error = {"name": "Overloaded", "retry": 3}
    store.append(session, assistant("oh"), error=error, finish="error")
    folded, full = (said(lines(store, session, full=full)) for full in (False, True))
    assert "Error: Overloaded" in folded
    assert "retry" not in folded
    assert '"retry": 3' in full


def test_a_file_is_named_with_its_address(store: Store) -> None:
    session = store.create_session().id
    store.append(session, user(file("file:///a/b.py", filename="b.py")))
    store.append(session, user(file("file:///c.png", mime="image/png")))
    out = said(lines(store, session))
    assert "[File b.py · file:///a/b.py]" in out
    assert "[Image file:///c.png · image/png]" in out


def test_a_preview_is_one_line(store: Store) -> None:
    session = store.create_session().id
    store.append(session, assistant(text("a\nb\x1b[2J")))
    store.append(session, assistant(tool("bash", {"command": "ls"}, error="no")))
    first, second = store.messages(session)
    assert preview_of(first) == r"a b\x1b[2J"
    assert preview_of(second) == "▸ bash ls [failed]"


def test_a_session_is_shown_while_it_is_read(store: Store) -> None:
    session = store.create_session(title="Endless")
    store.append(session, user("again"))
    endless = repeat(store.messages(session)[0])
    found = shown_lines(store, store.session(session), endless, "normal")
    shown = list(islice(chain.from_iterable(found), 10_000))
    assert said(shown).count("again") > 3_000


SPANS = st.builds(
    Span,
    st.text(st.sampled_from("ab 解👩e\u0301-"), max_size=30),
    st.sampled_from(["", "bad", "dim", "name"]),
)


@given(
    st.lists(SPANS, min_size=1, max_size=4).map(tuple),
    st.booleans(),
    st.integers(16, 40),
)
def test_colours_change_no_character(
    spans: tuple[Span, ...], cut: bool, width: int
) -> None:
    text = "".join(span.text for span in spans)
    line = TerminalLine(text, "", Span("── ", "dim"), Span("   "), cut, spans)
    plain, coloured = (
        list(painted([line], Screen(True, color, width, 24))) for color in (False, True)
    )
    assert [re.sub("\x1b\\[[0-9;]*m", "", row) for row in coloured] == plain
    assert all(cell_len(row) <= width for row in plain)
    (piped,) = painted([line], Screen(False, False, width, 24))
    assert piped == "── " + "".join(span.text for span in spans)
    assert not cut or len(plain) == 1
    if not cut:
        assert "".join("".join(plain).split()) == "".join(piped.split())
