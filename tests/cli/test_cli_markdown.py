"""Markdown of a conversation on a terminal: styled, and never another text."""

from __future__ import annotations

import re

import pytest
from command_line import Run
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant
from sessiondb.cli.markdown import styled_lines

TEXT = """# Plan
Do **this first**, *then* `a * b * c`:
- one * two * three
2. snake_case_name and 2*3*4
````python
# not a heading
```
x = **y**
````
> quoted
"""


def test_headings_code_lists_and_emphasis_have_a_style() -> None:
    spans = [span for line in styled_lines(TEXT) for span in line if span.style]
    assert spans == [
        ("# Plan", "strong"),
        ("**this first**", "strong"), ("*then*", "emphasis"), ("`a * b * c`", "code"),
        ("-", "name"), ("2.", "name"),
        ("````python", "code"), ("# not a heading", "code"), ("```", "code"),
        ("x = **y**", "code"), ("````", "code"),
        ("> quoted", "dim"),
    ]  # fmt: skip


@settings(max_examples=200)
@given(st.text("#*`~>-1. a\n_", max_size=60))
def test_styles_change_no_character(text: str) -> None:
    lines = ["".join(span.text for span in line) for line in styled_lines(text)]
    assert "\n".join(lines) == text


@pytest.mark.slow
def test_a_terminal_has_styles_and_a_pipe_the_text(
    sessiondb: Run, terminal: Run, store: Store
) -> None:
    session = store.create_session(id="styled")
    store.append(session, assistant(TEXT + "\x1b]0;owned\x07"))
    shown = terminal("show styled", width=80).out
    assert "\x1b[1m# Plan\x1b[0m" in shown
    assert "\x1b[33m`a * b * c`\x1b[0m" in shown
    assert "\x1b]0" not in shown
    piped = sessiondb("show", "styled").out
    assert "\x1b" not in piped
    assert TEXT.rstrip() in re.sub(r"\\x1b.*", "", piped)
