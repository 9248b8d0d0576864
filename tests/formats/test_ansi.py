"""The output of commands: colours stay, all else that acts on a terminal does not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiondb import Store, assistant, event, text, tool, user
from sessiondb.cli.output import Screen
from sessiondb.cli.paint import painted
from sessiondb.formats import html, markdown
from sessiondb.formats.transcript.ansi import shown_output, styled_pieces
from sessiondb.formats.transcript.terminal import Terminal
from sessiondb.model import Document, Message

COLOR = "\x1b[0-9;]*m"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]")
SEQUENCES = st.sampled_from(
    [
        *("\x1b[31m", "\x1b[1;4m", "\x1b[0m", "\x1b[m", "\x1b[38;5;2m"),
        *("\x1b[48;2;1;2;3;35m", "\x1b[38:5:1m", "\x1b[" + "1;" * 40 + "m"),
        *("\x1b[2J", "\x1b[1A", "\x1b[K", "\x1b[1G", "\x1b[?25l", "\x1bc", "\x1b(B"),
        *("\x1b]0;pwned\x07", "\x1b]8;;https://a.b\x1b\\", "\x1bPq\x1b\\", "\x1b"),
        *("\x9b31m", "\r", "\r\n", "\n", "\x08", "\x07", "\t"),
    ]
)
OUTPUTS = st.lists(st.one_of(SEQUENCES, st.sampled_from("ab 解;m[0")), max_size=20).map(
    "".join
)


@pytest.fixture
def failure(store: Store) -> Message:
    """An answer with a call that failed; its text is to be replaced."""
    session = store.create_session()
    call = tool("bash", {"command": "make"}, error="?", outcome="failed")
    store.append(session, assistant(call))
    return store.messages(session)[0]


def output_rows(message: Message, output: str, screen: Screen, level: str) -> list[str]:
    (call,) = message.parts
    shown = replace(message, parts=(replace(call, text=output),))
    return list(painted(Terminal(level).message(shown), screen))


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("\x1b[31mred\x1b[0m plain", "[red:red] plain"),
        ("\x1b[1;32mok\x1b[22m so\x1b[m.", "[ok:green strong][ so:green]."),
        ("\x1b[91ma\n\x1b[39mb", "[a:red]\nb"),
        ("\x1b[90mgrey\x1b[0m", "[grey:dim]"),
        ("\x1b[4mu\x1b[24m \x1b[3mi\x1b[23m", "[u:underline] [i:emphasis]"),
        ("\x1b[38;5;4mb\x1b[38;5;200mx\x1b[38;2;1;2;4my", "[b:blue]xy"),
        ("\x1b[30;47mhidden\x1b[8m too", "hidden too"),
        ("10 %\r50 %\r100 %\x1b[K\ndone", "100 %\ndone"),
        ("\x1b[32m1\x1b[1G2\x1b[0m3\x1b[1G", "[2:green]3"),
        ("a\r\nb\r\r\n", "a\nb\n"),
        ("\x1b]0;npm install\x07\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\\x07", "link"),
        ("N\x08Na\x08am\x08me", "Name"),
        ("\x1b[2J\x1b[1;1H\x1b[?25l\x1bMtext\x1b(B", "text"),
    ],
)  # fmt: skip
def test_an_output_is_what_its_terminal_showed(output: str, shown: str) -> None:
    plain, styles = shown_output(output)
    said = []
    for number, line in enumerate(plain.split("\n")):
        pieces = styled_pieces(line, styles.get(number, []))
        said.append("".join(f"[{t}:{s}]" if s else t for t, s in pieces))
    assert "\n".join(said) == shown


@given(st.text(st.characters(exclude_characters="\x07\x08\x1b\r")))
def test_a_text_without_sequences_stays_as_it_is(output: str) -> None:
    assert shown_output(output) == (output, {})


@given(OUTPUTS)
def test_with_all_records_nothing_but_colours_is_dropped(output: str) -> None:
    plain, styles = shown_output(output, complete=True)
    kept = re.sub("\x1b\\[[0-9;:]{0,64}m", "", re.sub("\r+\n", "\n", output))
    assert plain.replace("\r\n", "\n") == kept.replace("\r", "\n")
    assert all(places[-1][1] <= len(plain) for places in styles.values())


def test_no_output_acts_on_a_terminal_and_no_colour_leaks(failure: Message) -> None:
    @given(OUTPUTS, st.booleans(), st.sampled_from(["normal", "full"]))
    def check(output: str, terminal: bool, level: str) -> None:
        for row in output_rows(failure, output, Screen(terminal, True, 40, 24), level):
            # What is styled ends in its row.
            unstyled = re.sub("(\x1b\\[[0-9;]+m)+[^\x1b]*\x1b\\[0m", "", row)
            assert not CONTROL.search(unstyled)
        for row in output_rows(failure, output, Screen(terminal, False, 40, 24), level):
            assert not CONTROL.search(row.replace("\n", ""))

    check()


def test_a_cut_output_keeps_its_colours(failure: Message) -> None:
    output = "\x1b[31m" + "x" * 500 + "\x1b[0m\n" + "\t\x1b[33mw\x1b[0m\n" * 20
    rows = output_rows(failure, output, Screen(False, True, 80, 24), "normal")
    assert rows[-3:] == ["  │     \x1b[33mw\x1b[0m"] * 2 + ["  │ … 13 more lines (--detail full)"]  # fmt: skip
    assert any("│ \x1b[31mxxx" in row for row in rows)


def test_a_page_has_the_colours_and_markdown_the_text(store: Store) -> None:
    session = store.create_session(title="Colours")
    output = (
        "\x1b[1;31mFAILED\x1b[0m <b> 10 %\r\x1b[31m99 %\x1b[0m &\n\x1b]0;pwned\x07end"
    )
    store.append(session, user(text("\x1b[2mnote\x1b[22m", synthetic=True)))
    store.append(session, event("notice", "\x1b[32mseen\x1b[0m"))
    store.append(session, assistant(tool("bash", {"command": "make"}, output=output)))
    pages = []
    for form in (html, markdown):
        documents = form.EXPORTER.write([store.export(session)])
        (page,) = [it for it in documents if isinstance(it, Document)]
        pages.append("".join(page.chunks))
    assert '<span class="o-red">99 %</span> &amp;\nend' in pages[0]
    assert '<span class="o-dim">note</span>' in pages[0]
    assert "99 % &\nend\n```" in pages[1]
    for page in pages:
        assert "pwned" not in page
        assert "\\x1b" not in page
        assert "seen" in page
