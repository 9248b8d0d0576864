"""A search gives each file to one format, and reports what it cannot give to any."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
import samples_llm
import samples_openai_agents
import samples_openoxide
from ownership_of_files import imported, written_in
from samples import OWN, SAMPLES, content, new_store, read_into
from samples_codex import home_of_2026
from samples_pi import pi_home

from sessiondb import Store
from sessiondb.errors import SourceError
from sessiondb.formats import find
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.formats.registry import REGISTRY, Entry
from sessiondb.model import Problem, SourceItem, SourceSession


def read_from(*stores: ForeignStore) -> list[SourceItem]:
    return [item for store in stores for item in store.read()]


# -- files ---------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_for_one_program_passes_over_the_plain_log_of_its_session(
    tmp_path: Path,
) -> None:
    home_of_2026(tmp_path / ".codex")
    with new_store() as store:
        imported(store, tmp_path)
        logs = written_in("event-log", store, tmp_path / "logs")
    for log in logs:
        assert list(find(log, formats=["codex"])) == []
        assert [found.source for found in find(log)] == ["event-log"]
    assert list(find(tmp_path / "logs", formats=["codex"])) == []


@pytest.mark.slow
def test_a_plain_log_among_the_logs_of_a_program_is_not_read_as_one_of_them(
    tmp_path: Path,
) -> None:
    SAMPLES["claude 2.1, a home"].write(tmp_path)
    with new_store() as store:
        imported(store, tmp_path)
        content_before = content(store)
        project = next((tmp_path / ".claude" / "projects").iterdir())
        logs = written_in("event-log", store, project)
        problems = [
            item for item in read_into(store, tmp_path) if isinstance(item, Problem)
        ]
        assert content(store) == content_before
    plain = {str(log) for log in logs if log.name.startswith("ses_")}
    assert {problem.source for problem in problems} == plain


@pytest.fixture
def two_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register two formats that both recognise any file with the ending ``.tea``."""
    for name in ("kettle", "samovar"):

        def read(path: Path, source: str = name) -> Iterator[SourceSession]:
            yield SourceSession(source, "s1", str(path), "d", ())

        def at(
            path: Path,
            source: str = name,
            read: Callable[[Path], Iterator[SourceSession]] = read,
        ) -> ForeignStore | None:
            return ForeignStore(source, path, read) if path.suffix == ".tea" else None

        module = ModuleType(name)
        module.FORMAT = Format(frozenset({".tea"}), at)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(REGISTRY, name, Entry(name.title(), reads=name))


@pytest.mark.usefixtures("two_formats")
def test_a_file_that_two_formats_recognise_is_read_once_and_reported(
    tmp_path: Path,
) -> None:
    file = tmp_path / "green.tea"
    file.touch()
    for place in (file, tmp_path):
        problem, session = read_from(*find(place))
        assert problem == Problem(
            str(file), "read as Kettle; it looks like Samovar, too"
        )
        assert isinstance(session, SourceSession)
        assert session.source == "kettle"
        # The owner is the same whatever the search is for.
        assert list(find(place, formats=["samovar"])) == []
        assert len(read_from(*find(place, formats=["kettle"]))) == 2


# -- folders -------------------------------------------------------------------


def test_a_folder_with_the_stores_of_two_programs_is_read_file_by_file(
    tmp_path: Path,
) -> None:
    """Neither program hides the logs of the other, and no log is read twice."""
    backup = tmp_path / "backup"
    home_of_2026(backup)
    pi_home(tmp_path)
    (tmp_path / ".pi" / "agent" / "sessions" / "--home-ada-tea--").rename(
        backup / "sessions" / "--home-ada-tea--"
    )
    stores = list(find(backup))
    (problem,) = read_from(stores[0])
    assert problem == Problem(
        str(backup),
        "the folder is of Codex and pi: its files are read one by one, without those beside them",
    )
    names = [
        (item.source, item.source_id)
        for item in read_from(*stores)
        if isinstance(item, SourceSession)
    ]
    assert len(names) == len(set(names)) == 6
    assert {source for source, _ in names} == {"codex", "pi"}
    assert list(find(backup, formats=["goose"])) == []
    limited = read_from(*find(backup, formats=["pi"]))
    assert [type(item) for item in limited] == [Problem, *[SourceSession] * 3]


# -- files that cannot be read ---------------------------------------------------


DATABASES = {
    "goose": SAMPLES["goose, schema 17"].write,
    "llm": samples_llm.old,
    "openai-agents": samples_openai_agents.plain,
    "opencode": SAMPLES["opencode 1.18, a database"].write,
    "openoxide": samples_openoxide.three,
}


def history_of_prompts(folder: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "history.db")) as db, db:
        db.execute("CREATE TABLE history (prompt TEXT, created_at INTEGER)")
        db.executemany("INSERT INTO history VALUES (?, ?)", [("x" * 500, 1)] * 200)


@pytest.mark.parametrize("name", [*DATABASES, "oh-my-pi"])
@pytest.mark.parametrize("size", [0.5, 110])
def test_a_database_that_is_cut_off_is_reported_whatever_its_name(
    name: str, size: float, tmp_path: Path
) -> None:
    DATABASES.get(name, history_of_prompts)(tmp_path / "theirs")
    (database,) = (tmp_path / "theirs").rglob("*.db")
    raw = database.read_bytes()
    for file in (database, tmp_path / "copies" / "any.sqlite"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(raw[: int(len(raw) * size) if size < 1 else int(size)])
        for place in (file, file.parent):
            (store,) = find(place)
            with pytest.raises(
                SourceError, match=f"cannot read .*{file.name}: .*malformed"
            ):
                list(store.read())


def test_a_file_that_is_complete_again_is_read_without_another_search(
    tmp_path: Path,
) -> None:
    samples_openai_agents.plain(tmp_path)
    (file,) = tmp_path.iterdir()
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2])
    (store,) = find(tmp_path)
    file.write_bytes(raw)
    assert len([item for item in store.read() if isinstance(item, SourceSession)]) == 3


def test_files_that_are_no_databases_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "thumbs.db").write_bytes(b"pictures " * 1000)
    (tmp_path / "empty.db").touch()
    assert list(find(tmp_path)) == []


def test_a_damaged_database_of_ours_is_reported_only_if_it_is_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / OWN
    with Store.open(path, durability="normal") as store:
        store.create_session(title="one")
    path.write_bytes(path.read_bytes()[:5000])
    assert list(find(tmp_path)) == []
    (found,) = find(path)
    with pytest.raises(SourceError, match=OWN):
        list(found.read())
