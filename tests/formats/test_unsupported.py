"""Agents that are recognised by their files, and named until a format reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sessiondb.errors import InvalidInputError, UnsupportedError
from sessiondb.formats import Format, registry
from sessiondb.formats.registry import REGISTRY
from sessiondb.formats.unsupported import PATHS, agents_at

PLANNED = {name for name, entry in REGISTRY.items() if entry.is_planned}
#: Its database may be anywhere, and recognising one would mean opening it.
WITHOUT_A_SIGN = {"openai-agents"}


def test_every_planned_program_is_recognised_and_no_other() -> None:
    assert set(PATHS) == PLANNED - WITHOUT_A_SIGN


@pytest.mark.parametrize("name", REGISTRY)
def test_a_name_is_read_planned_or_unknown_to_the_reader(name: str) -> None:
    if REGISTRY[name].reads or REGISTRY[name].family:
        assert isinstance(registry.reader(name), Format)
        return

    planned = UnsupportedError if name in PLANNED else InvalidInputError
    with pytest.raises(planned, match="known are opencode"):
        registry.reader(name)


@pytest.mark.parametrize("name", ["", "nothing", None, ["opencode"], 7])
def test_a_value_that_is_not_a_name_is_refused_both_ways(name: object) -> None:
    with pytest.raises(InvalidInputError, match="known are"):
        registry.reader(name)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="known are"):
        registry.exporter(name)  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_read_and_links_name_no_agent(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / ".codex")
    (tmp_path / ".codex").mkdir()
    assert agents_at(tmp_path) == []
    assert agents_at(tmp_path / "missing.jsonl") == []


def test_a_name_that_only_contains_that_of_a_folder_is_not_a_sign() -> None:
    for name, shape in PATHS.items():
        assert re.search(shape, "/home/ada/x.codex.d/my.claude") is None, name
