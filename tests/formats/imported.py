"""The outcome of an import, for the tests of all formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from samples import read_into

from sessiondb import ALL, Store
from sessiondb.model import Imported, Message, Session


def taken(store: Store, folder: Path) -> Session:
    """Import the only session in a folder, without a problem."""
    found, *more = read_into(store, folder)
    assert isinstance(found, Imported), found
    assert more == []
    return store.session(found.id)


def all_taken(store: Store, folder: Path) -> dict[str, Session]:
    """Import a folder without a problem, and return its sessions by their ids there."""
    found = read_into(store, folder)
    assert [item for item in found if not isinstance(item, Imported)] == []
    return by_id(store)


def by_id(store: Store) -> dict[str, Session]:
    """Return all sessions by their ids in the program that they come from."""
    found = store.sessions(project=ALL, archived=True, subagents=True, empty=True)
    return {session.source_id or "": session for session in found}


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.text for message in messages]


def served(folder: Path, *unrecorded: str) -> Iterator[tuple[str, Any]]:
    """Yield the sessions of a real store: their name there, and what was served.

    Those that are labelled as one of *unrecorded* are left out: the program does not
    record every answer of them.
    """
    truth = json.loads((folder / "expected.json").read_text())["sessions"]
    for item in truth:
        if item["label"] not in unrecorded:
            name = Path(item["tool_session_id"] or "").stem
            yield name, item.get("provider_usage_sum")


def besides_times(losses: Iterable[str]) -> list[str]:
    """Return the words of losses that are not of times, which few formats have."""
    return [why for why in losses if "time" not in why and "milliseconds" not in why]


def check_tokens(session: Session, usage: dict[str, int]) -> None:
    """Check the tokens of a session, whose provider counts parts within others."""
    assert session.tokens_cache_read == usage["cached"]
    assert session.tokens_input == usage["input"] - usage["cached"]
    assert session.tokens_output == usage["output"] - usage["reasoning"]
