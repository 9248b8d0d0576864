"""Stores that OpenCode wrote: our export is its own export, and can be imported back.

The reports of 1.1.65 are also those of the database that 1.2.27 made from its tree: it
migrates without changing a value. Of 0.5.29 there are none, it cannot export.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opencode_writing import import_store

from sessiondb import ALL, Session, Store
from sessiondb.formats import exporter, find
from sessiondb.model import Document, Imported, Problem

RealStore = Callable[[str], Path]
#: A store, and where the reports about it are; None is nowhere.
STORES = {
    "opencode-0.5.29/data": None,
    "opencode-1.1.65/data": "opencode-1.1.65/reports",
    "opencode-migrated-1.2.27/data": "opencode-1.1.65/reports",
    "opencode-1.18.33/data": "opencode-1.18.33/reports",
    "opencode-2.0.15/data": "opencode-2.0.15/reports",
    "opencode-2.0.15/data-wal": "opencode-2.0.15/data-wal",
    "opencode-upgraded-2.0.15/data": "opencode-upgraded-2.0.15/reports",
}
#: The fields of an imported session that an export of it must reproduce.
SAME = ("title", "directory", "agent", "model_source", "time_created", "time_updated")


@dataclass(frozen=True)
class Real:
    """A store of OpenCode in our database, with the exports of it."""

    folder: Path
    store: Store
    second: bool
    written: dict[str, Any]
    truths: dict[str, Any]


def documents(store: Store, form: str = "opencode") -> dict[str, Any]:
    exports = (store.export(session.id) for session in sessions_of(store))
    written = (
        d
        for d in exporter(form).write(exports, detail="full")
        if isinstance(d, Document)
    )
    values = (json.loads("".join(document.chunks)) for document in written)
    return {value["info"]["id"]: value for value in values}


def sessions_of(store: Store) -> list[Session]:
    hidden: Any = {"archived": True, "subagents": True, "empty": True}
    return list(store.sessions(project=ALL, limit=100, **hidden))


@pytest.fixture(params=STORES, scope="module")
def real(
    request: pytest.FixtureRequest,
    real_store: RealStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Real]:
    name, _, below = request.param.partition("/")
    folder = real_store(name)
    reports = STORES[request.param]
    files = sorted((folder.parent / reports).glob("*export-*.out")) if reports else []
    truths = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    path = tmp_path_factory.mktemp("real") / "own.db"
    with Store.open(path, durability="normal") as store:
        import_store(store, folder / below)
        exported = documents(store)
        yield Real(
            folder,
            store,
            "2.0.15" in name,
            exported,
            {item["info"]["id"]: item for item in truths},
        )


def written_to(folder: Path, real: Real) -> Path:
    folder.mkdir()
    for name, document in real.written.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_session_is_exported_as_opencode_exports_it(real: Real) -> None:
    assert {name: real.written[name] for name in real.truths} == real.truths
    unsettled = {
        "ses_e061d2785ffenPMbPyWcHGQUYd"
    }  # its server was killed after the reports
    assert not real.truths or set(real.written) - set(real.truths) <= unsettled


@pytest.mark.slow
def test_a_session_of_version_2_is_the_same_where_version_2_is_asked_for(
    real: Real,
) -> None:
    made = documents(real.store, "opencode2")
    assert made.keys() == real.written.keys()
    second = {
        name: item for name, item in real.written.items() if "location" in item["info"]
    }
    assert {name: made[name] for name in second} == second
    assert bool(second) == real.second
    assert all("location" in item["info"] for item in made.values())


@pytest.mark.slow
def test_an_export_is_an_import_in_a_database_that_never_saw_the_store(
    real: Real, tmp_path: Path
) -> None:
    out = written_to(tmp_path / "out", real)
    with Store.open(tmp_path / "fresh.db", durability="normal") as fresh:
        ids = import_store(fresh, out)
        assert documents(fresh) == real.written
        for session in sessions_of(real.store):
            assert session.source_id is not None
            again = fresh.session(ids[session.source_id])
            assert again.id == session.id
            assert [getattr(again, f) for f in SAME] == [
                getattr(session, f) for f in SAME
            ]
            if (
                session.model_source != "derived"
            ):  # an export leaves unfinished answers out
                assert again.model_id == session.model_id
            if session.relation == "subagent":
                assert (again.relation, again.parent_id) == (
                    "subagent",
                    session.parent_id,
                )
        ingested(
            fresh, out
        )  # a fork that was read before its original has its place now
        assert {item.outcome for item in ingested(fresh, out)} == {"unchanged"}
        assert documents(fresh) == real.written


def ingested(store: Store, path: Path) -> list[Imported]:
    items = [item for place in find(path) for item in store.ingest(place.read())]
    assert not [item for item in items if isinstance(item, Problem)]
    return [item for item in items if isinstance(item, Imported)]


def test_an_export_that_comes_back_changes_nothing(real: Real, tmp_path: Path) -> None:
    def facts() -> list[tuple[Any, ...]]:
        return [
            (
                s.id,
                s.relation,
                s.parent_id,
                s.message_count,
                s.cost,
                s.cost_inherited,
                s.tokens,
            )
            for s in sessions_of(real.store)
        ]

    before = facts()
    done = ingested(real.store, written_to(tmp_path / "out", real))
    assert {item.source_id for item in done} == real.written.keys()
    assert facts() == before
    assert documents(real.store) == real.written
