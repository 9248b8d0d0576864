"""Runs of a chat history: found by a search, as the blocks have them."""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples_aider import (
    BANNER,
    THINKING,
    answered,
    asked,
    run,
    told,
    typed,
    usage,
    write,
)

from sessiondb.formats import find
from sessiondb.formats.aider.runs import Headers, runs_of
from sessiondb.formats.aider.scanner import TOP, Scanner
from sessiondb.formats.kit.lines import open_pieces
from sessiondb.model import SourceMessage, SourceSession

HEADER = "# aider chat started at 2026-02-02 02:02:02\n"
#: Lines that begin or end something, whole pieces of a history, and lines that do not.
LINES = (
    "\n", "\r\n", "\r\r\n", HEADER, f"\n{HEADER}\n", f"\r\n{HEADER}", "# aider chat started at noon\n",
    "#### x  \n", "#### x\n", "\n#### x  \n\n", "#### x  \r\n",
    "> out  \n", "> out\n", ">\n", "> Tokens: 1k sent, 2 received.\n", "\n> Tokens: 1k sent, 2 received.  \n",
    "```\n", "```python\n", "````\n", "~~~\n", "  ```\n", "``` a`b\n", "<pre>\n", "</pre>\n", "<source>\n", "\n<pre>\n\n> q  \n</pre>\n", "\n```py\ncode\n```\n",
    "text\n", "text  \n", "# comment\n", "\ufeff```\n", "\ufeff\n", f"\ufeff{HEADER}", "# aider chat st", "",
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.sampled_from(LINES), max_size=30))
@example([HEADER, "> out\n", "```\n", f"\n{HEADER}"])
@example([HEADER, "\n#### x  \n\n", "```\n", f"\n{HEADER}", "```\n", f"\n{HEADER}"])
@example([HEADER, "\n#### x  \n\n", "```\n", "\n#### x  \n\n", f"\n{HEADER}"])
@settings(max_examples=400, deadline=None)
def test_a_search_finds_the_headers_of_the_blocks(pieces: list[str]) -> None:
    text = "".join(pieces)
    with open_pieces(Path("x.md"), [text.encode()]) as lines:
        headers = Headers(lines)
        blocks = Scanner(lines, TOP, headers.end)
        found = [of.line.offset for of in blocks if of.started is not None]
        assert [of.offset for of in headers] == found
        last = text.encode().rpartition(b"\n")[2]
        is_torn = len(last) > 1 and HEADER.encode().startswith(last)
        assert headers.torn == (last if is_torn else b"")

        runs = runs_of(headers, Path("/tea"))
        places = [of.line for of in runs]
        before = [text.encode()[: of.offset] for of in places]
        assert [of.number for of in places] == [b.count(b"\n") + 1 for b in before]
        ends = [*(of.offset for of in places[1:]), headers.end]
        assert [of.end for of in runs] == ends[: len(runs)]


def calls_of(folder: Path) -> int:
    """Return how many Python functions the list of the sessions in a folder calls."""
    count = 0

    def counted(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        (session,) = (item for store in find(folder) for item in store.read())
    finally:
        sys.setprofile(None)
    assert isinstance(session, SourceSession)
    return count


def test_a_list_of_sessions_does_not_take_each_line_apart(tmp_path: Path) -> None:
    code = "```python\n" + "x = 1\n\n# y\n" * 40 + "```"
    turns = [asked("A"), answered(code), usage()] * 10
    write(tmp_path / "small", run(1, BANNER, *turns))
    write(tmp_path / "large", run(1, BANNER, *turns * 20))
    # The first look imports the readers.
    _, small, large = (calls_of(tmp_path / of) for of in ("small", "small", "large"))
    assert large < small + 50


@pytest.mark.slow
@pytest.mark.parametrize("line", ["line\n", "line\n\n"])
def test_the_time_for_an_output_grows_with_its_lines(tmp_path: Path, line: str) -> None:
    times = []
    for count in (3000, 24000):
        shown = "> commit\n" + line * count + "end  \n"
        write(tmp_path, run(1, asked("/git log"), shown))
        (session,) = (item for store in find(tmp_path) for item in store.read())
        assert isinstance(session, SourceSession)
        begin = process_time()
        _, output = session.messages
        times.append(process_time() - begin)
        assert isinstance(output, SourceMessage)
        assert (output.draft.parts[0].text or "").count("line") == count
    # Eight times the lines; by their square it was 64 times as long.
    assert times[1] < 24 * times[0]


def test_outputs_before_an_open_fence_are_searched_in_one_way(tmp_path: Path) -> None:
    # Each way to divide the outputs was tried, which took minutes for 30 of them.
    first = run(1, asked("/run"), told(*["out"] * 1000), answered("```\nx"))
    write(tmp_path, first, run(2))
    (store,) = find(tmp_path)
    assert len(list(store.read())) == 2


TAG = f"<{THINKING}>\n\n"
#: Texts that were searched again from each of their pieces.
REPEATED = {
    "tags of reasoning": (answered("{}"), TAG + "x\n\n", ""),
    "confirmations": (asked("{}"), "(Y)es/(N)o/(S)kip all[", ""),
    "a line of tildes": (answered("{}"), "~", "`"),
    "prompts after a plan": (
        answered("line\n" * 30_000) + usage() + "{}",
        asked("A"),
        "",
    ),
    "marks of byte order": ("> a\n{}\nx  \n", "\n\ufeff\n", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_text_is_read_in_a_time_that_grows_with_it(
    tmp_path: Path, name: str
) -> None:
    place, piece, end = REPEATED[name]
    text = place.replace("{}", piece * (200_000 // len(piece)) + end)
    write(tmp_path, run(1, asked("A"), text))
    begin = process_time()
    for session in next(iter(find(tmp_path))).read():
        assert isinstance(session, SourceSession)
        assert list(session.messages)
    # The fastest of them took four seconds, most of them minutes.
    assert process_time() - begin < 3


@pytest.mark.slow
def test_the_input_of_runs_of_one_second_is_read_once(tmp_path: Path) -> None:
    start = "2026-02-02 02:01:00"
    inputs = typed(*[(f"{start}.000001", "A")] * 1000)
    write(tmp_path, *[run(1, asked("A"))] * 1000, inputs=inputs)
    begin = process_time()
    for session in next(iter(find(tmp_path))).read():
        assert isinstance(session, SourceSession)
        assert len(list(session.messages)) == 1
    # All entries were read again for each run, in 44 seconds.
    assert process_time() - begin < 8


def test_facts_after_the_first_prompt_are_those_of_the_session(tmp_path: Path) -> None:
    turn = [asked("A"), answered("Yes:\n> Model: quoted"), usage()]
    write(tmp_path, run(1, *turn, asked("/model acme/b"), told("Model: acme/b"), *turn))
    (session,) = (item for store in find(tmp_path) for item in store.read())
    assert isinstance(session, SourceSession)
    assert session.complete is not None
    found = session.complete()
    assert (found.provider_id, found.model_id) == ("acme", "b")
    assert found.digest == session.digest
