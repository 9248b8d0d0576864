"""Agents that are recognised by their files, and named until a format reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sessiondb.errors import InvalidInputError, UnsupportedError
from sessiondb.formats import Format, registry
from sessiondb.formats.registry import REGISTRY
from sessiondb.formats.unsupported import PATHS, PLACES, agents_at, agents_of

DOCS = Path(__file__).parents[2] / "docs"
PLANNED = {name for name, entry in REGISTRY.items() if entry.is_planned}
#: Its database may be anywhere, and recognising one would mean opening it.
WITHOUT_A_SIGN = {"openai-agents"}


def test_every_planned_program_is_recognised_and_no_other() -> None:
    assert set(PATHS) == PLANNED - WITHOUT_A_SIGN
    page = " ".join((DOCS / "FORMATS.md").read_text("utf-8").split())
    assert [name for name in PLANNED if REGISTRY[name].agent not in page] == []


@pytest.mark.parametrize("name", REGISTRY)
def test_a_name_is_read_planned_or_unknown_to_the_reader(name: str) -> None:
    if REGISTRY[name].reads or REGISTRY[name].family:
        assert isinstance(registry.format_named(name), Format)
        return

    planned = UnsupportedError if name in PLANNED else InvalidInputError
    with pytest.raises(planned, match="known are opencode"):
        registry.format_named(name)


@pytest.mark.parametrize("name", ["", "nothing", None, ["opencode"], 7])
def test_a_value_that_is_not_a_name_is_refused_both_ways(name: object) -> None:
    with pytest.raises(InvalidInputError, match="known are"):
        registry.format_named(name)  # type: ignore[arg-type]
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


def placed(place: str, home: Path) -> Path:
    """Make a place of the table, as it is on Linux."""
    base, _, below = place.partition("/")
    folders = {
        "home": home,
        "here": home,
        "data": home / ".local" / "share",
        "settings": home / ".config",
        "editor": home / ".config" / "Code" / "User" / "globalStorage",
    }
    path = folders[base] / below
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix:
        path.touch()
    else:
        path.mkdir(exist_ok=True)
    return path


@pytest.mark.parametrize("name", PLACES)
def test_a_store_that_cannot_be_read_is_named_wherever_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, place in enumerate(PLACES[name]):
        home = tmp_path / str(number)
        path = placed(place, home)
        monkeypatch.chdir(home)
        assert agents_of({"HOME": str(home)}) == [(REGISTRY[name].agent, path)]

        # The same if a copy of it is named.
        file = path if path.suffix else path / "session.json"
        file.touch()
        assert agents_at(home) == [REGISTRY[name].agent]


def test_the_folders_of_other_systems_and_editors_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert agents_of({}) == []
    tasks = "User/globalStorage/saoudrizwan.claude-dev/tasks"
    home, settings = tmp_path / "home", tmp_path / "settings"
    for place, env in (
        (home / "Library/Application Support/Code - Insiders", {"HOME": str(home)}),
        (settings / "Windsurf", {"XDG_CONFIG_HOME": str(settings)}),
        (tmp_path / "roaming/Cursor", {"APPDATA": str(tmp_path / "roaming")}),
        (tmp_path / "there/.vscode-server/data", {"HOME": str(tmp_path / "there")}),
    ):
        (place / tasks).mkdir(parents=True)
        assert ("Cline", place / tasks) in agents_of(env)
