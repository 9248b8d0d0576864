"""The pictures of README: what they show is what the commands print today."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from docs_console import masked
from renew_pictures import PAGE, TERMINAL, picture_of_the_terminal


def lines_of(picture: str) -> str:
    """Return the text of a picture: rich's releases may draw the same text differently."""
    lines: dict[str, str] = {}
    for y, text in re.findall(
        r'<text [^>]*? y="([\d.]+)"[^>]*>([^<]*)</text>', picture
    ):
        lines[y] = lines.get(y, "") + html.unescape(text).replace("\xa0", " ")
    return masked("\n".join(lines.values()))


@pytest.mark.slow
def test_the_picture_of_the_terminal_shows_what_the_commands_print_today(
    tmp_path: Path,
) -> None:
    """After a change on purpose: python scripts/renew_pictures.py."""
    committed = TERMINAL.read_text(encoding="utf-8")
    shown = lines_of(committed)
    assert "$ sessiondb search" in shown
    assert lines_of(picture_of_the_terminal(tmp_path)) == shown


def test_the_pictures_are_small_and_load_nothing_from_a_server() -> None:
    assert TERMINAL.stat().st_size < 50_000
    assert PAGE.stat().st_size < 150_000
    loaded = re.findall(r"(?:url\(|href=)[\"']?(?!#)[^)\s]*", TERMINAL.read_text())
    assert loaded == []
