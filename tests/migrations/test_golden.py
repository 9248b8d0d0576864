"""Every release reads the files of every release before it, to the last value."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiondb import ALL, Store
from sessiondb.engine.chain import Chain
from sessiondb.engine.sqlite import migrations

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
#: From the first schema to the present one.
FILES = sorted(
    GOLDEN.glob("*.db"), key=lambda path: int(path.stem.removeprefix("schema-"))
)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A writable copy of a golden file, and its original contents."""
    shutil.copy(request.param.with_suffix(".json"), tmp_path / "sessions.json")
    return Path(shutil.copy(request.param, tmp_path / "sessions.db"))


def test_every_schema_has_a_golden_file() -> None:
    assert [migrations.current(path) for path in FILES] == [
        p.revision for p in Chain.of().after(None)
    ]


def test_a_golden_file_is_migrated_and_every_row_is_what_was_written(
    copy: Path, lost: Callable[[dict[str, Any], Path], list[str]]
) -> None:
    migrations.upgrade(copy)
    assert lost(json.loads(copy.with_suffix(".json").read_text())["tables"], copy) == []


def test_a_golden_file_says_through_the_api_what_it_said_when_it_was_made(
    copy: Path, golden: dict[str, Any]
) -> None:
    migrations.upgrade(copy)
    with Store.open(copy) as store:
        written = json.loads(copy.with_suffix(".json").read_text())
        shown = golden["sessions"](store)
    assert known_of(shown, written["sessions"]) == written["sessions"]


def known_of(shown: Any, written: Any) -> Any:
    """Return *shown* without the keys of objects that a later release added."""
    if isinstance(shown, list) and isinstance(written, list):
        extra = shown[len(written) :]
        return [*map(known_of, shown, written), *extra]
    if isinstance(shown, dict) and isinstance(written, dict):
        return {
            key: known_of(shown[key], written[key]) for key in shown if key in written
        }
    return shown


def test_a_golden_file_is_searched_forked_and_written(copy: Path) -> None:
    migrations.upgrade(copy)
    with Store.open(copy) as store:
        (hit, *_) = store.search("loop", project=ALL)
        fork = store.fork(hit.session.id)
        assert len(store.messages(fork.id)) == len(store.messages(hit.session.id))
