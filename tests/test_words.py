"""Texts in the words of people: exact whatever they contain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessiondb.words import excerpt

TEXTS = st.text(st.sampled_from("ab \t\n\u3000"), max_size=200)


@given(TEXTS, st.integers(1, 12))
def test_an_excerpt_is_the_beginning_of_the_line(text: str, width: int) -> None:
    line = " ".join(text[: width * 8].split())
    cut = f"{line[: width - 1].rstrip()}…"
    assert excerpt(text, width) == (line if len(line) <= width else cut)
