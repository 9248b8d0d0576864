"""All pages together: links lead somewhere, and what they name exists."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from docs_blocks import PAGES, ROOT, page

import sessiondb
from sessiondb import AsyncStore, Store
from sessiondb.cli.app import COMMANDS
from sessiondb.codec import BLOB_BYTES, MAX_DEPTH
from sessiondb.database.core import Core
from sessiondb.effects.delete import REAP_ROWS
from sessiondb.effects.session import MAX_CHAIN
from sessiondb.formats.jsonl.records import END_FIELDS, MESSAGE_FIELDS
from sessiondb.formats.registry import REGISTRY
from sessiondb.ids import MAX_ID_BYTES
from sessiondb.importing.units import MAX_RECORDS
from sessiondb.model.draft import MessageFields
from sessiondb.repository.search import WINDOW
from sessiondb.streaming.stream import FLUSH_SECONDS

NUMBERS = {
    "docs/CLI.md": (
        f"at most {MAX_ID_BYTES} bytes, a chain of parents {MAX_CHAIN} sessions, "
        f"nesting {MAX_DEPTH} levels",
        f"the newest {WINDOW:,} matches",
    ),
    "docs/FORMAT.md": (
        f"of {BLOB_BYTES:,} bytes or more",
        f"at most {MAX_ID_BYTES} bytes",
        f"at most {MAX_DEPTH} deep",
    ),
    "docs/DESIGN.md": (
        f"after {FLUSH_SECONDS * 1000:.0f} ms or 4 KB",
        f"at most {REAP_ROWS:,} rows or 4 MB",
        f"at most {MAX_RECORDS} records or 4 MB",
        f"the newest {WINDOW:,}",
    ),
}


def _anchors(text: str) -> set[str]:
    bare = re.sub(r"(?ms)^```.*?^```$", "", text)
    titles = re.findall(r"(?m)^#+ (.*)$", bare)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page(name))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    for link in (link for link in links if "://" not in link):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target.read_text(encoding="utf-8")), link


def test_files_and_scripts_that_pages_name_exist() -> None:
    for name in PAGES:
        for path in re.findall(
            r"`((?:scripts|tests|examples|docs|src)/[\w./-]+)`", page(name)
        ):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_the_library_page_names_every_verb_and_read_and_no_other() -> None:
    text = page("docs/LIBRARY.md")
    public = {name for name in dir(Store) if not name.startswith("_")}
    for name in public - {"open", "close", "closed", "path", "location"}:
        assert re.search(rf"`(\w+\.)?{name}(\(|`)", text), f"{name} is not on the page"
    rows = re.findall(r"(?m)^\| (`[^|]*) \|", text)
    named = set(re.findall(r"`(\w+)\(", " ".join(rows)))
    assert named <= public | {*sessiondb.__all__}


def test_the_library_page_has_the_arguments_that_the_code_has() -> None:
    text = page("docs/LIBRARY.md")
    for name, given in re.findall(r"`(\w+)\(([^`]*)\)`", text):
        verb = getattr(Store, name, None)
        if verb is None:
            continue
        known = set(inspect.signature(verb).parameters)
        arguments = {part.strip(" *").partition("=")[0] for part in given.split(",")}
        arguments = {part for part in arguments if part.isidentifier()}
        assert arguments <= known, name


def test_the_library_page_has_the_fields_that_an_append_takes() -> None:
    (named,) = re.findall(r"fields: `([\w ]+)`", page("docs/LIBRARY.md"))
    assert sorted(named.split()) == sorted(MessageFields.__annotations__)


def test_the_page_about_jsonl_has_the_fields_of_a_message() -> None:
    (cell,) = re.findall(
        r"(?m)^\| `user`, `system`.* \| (.*) \|$", page("docs/JSONL.md")
    )
    missing = {*MESSAGE_FIELDS, *END_FIELDS} - set(re.findall(r"`(\w+)`", cell))
    assert missing == set()


def test_every_format_is_in_the_table_and_has_its_section() -> None:
    text = page("docs/FORMATS.md")
    table = text.partition("|---")[2].partition("\n\n")[0]
    rows = re.findall(r"(?m)^\| ([^|`]+) \| (`.*)$", table)
    titles = re.findall(r"(?m)^## (.*)$", text)
    assert [agent for agent, _ in rows if agent not in titles] == []
    named = {name for _, names in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert named == {name for name, entry in REGISTRY.items() if not entry.is_planned}


def test_both_facades_take_the_same_arguments() -> None:
    names = [name for name in dir(Store) if not name.startswith("_")]
    for name in names:
        ours, theirs = getattr(Store, name), getattr(AsyncStore, name, None)
        if theirs is not None and callable(ours):
            parameters = [
                [
                    (item.name, item.kind, item.default)
                    for item in found.parameters.values()
                ]
                for found in (inspect.signature(ours), inspect.signature(theirs))
            ]
            assert parameters[0] == parameters[1], name


def test_every_way_of_opening_takes_the_arguments_of_the_database() -> None:
    expected = [*inspect.signature(Core).parameters.values()]
    for way in (Store, Store.open, AsyncStore.open):
        assert [*inspect.signature(way).parameters.values()] == expected


def test_both_facades_have_the_names_that_the_page_promises() -> None:
    names = [
        {n for n in dir(cls) if not n.startswith("_")} for cls in (Store, AsyncStore)
    ]
    only = names[0] ^ names[1]
    text = page("docs/LIBRARY.md")
    for name in only:
        assert re.search(rf"`{name}\([^|]*\|[^|]*`Store` only", text), name


def test_the_design_page_lists_the_packages_in_the_enforced_order() -> None:
    source = (ROOT / "tests/test_layers.py").read_text()
    (order,) = re.findall(r"(?s)^ORDER = \(\s*(.*?)\s*\)\.split", source, re.MULTILINE)
    order = ast.literal_eval(f"({order})")
    rows = re.findall(r"(?m)^\| ((?:`\w+` ?)+)\|", page("docs/DESIGN.md"))
    shown = re.findall(r"`(\w+)`", " ".join(rows))
    assert shown == [room for room in order.split() if room in shown]
    package = ROOT / "src" / "sessiondb"
    rooms = {
        p.stem
        for p in package.iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert {*shown} == rooms - {"__init__", "__main__"}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_on_a_page_are_those_of_the_code(name: str) -> None:
    text = re.sub(r"\s+", " ", page(name))
    assert [phrase for phrase in NUMBERS[name] if phrase not in text] == []


def test_the_changelog_names_the_commands_and_views_that_there_are() -> None:
    text = page("CHANGELOG.md")
    (commands,) = re.findall(r"(?s)command `sessiondb`.*?`([a-z ]+[\sa-z]+)`", text)
    assert set(commands.split()) == set(COMMANDS)


def test_pages_are_finished_and_name_no_place_of_one_machine() -> None:
    for name in PAGES:
        assert not re.search(r"/tmp/|TODO|FIXME", page(name)), name
