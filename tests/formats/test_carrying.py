"""Whatever a session loses on its way through a format is in the report of the export.

Each sample of a format that is read, and a session made here with everything in it, is
written in each format that is read again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import full_session
import pytest
from carrying import Place, unreported
from samples import SAMPLES, new_store, read_into

from sessiondb import Store
from sessiondb.formats.registry import format_of_program, writable

#: The formats that are written and read, by their names.
FORMS = [form for form in writable() if form not in ("markdown", "html")]
#: Real stores, with the format of their programs.
STORES = {
    "aider-0.86.2": "aider",
    "claude-code-2.1.329": "claude",
    "codex-0.169.0": "codex",
    "gemini-cli-0.61.0": "gemini",
    "goose-1.34.0": "goose",
    "llm-0.27.1": "llm",
    "llm-0.36": "llm",
    "oh-my-pi-18.2.3": "pi",
    "openai-agents-0.24.0": "openai-agents",
    "opencode-0.5.29": "opencode",
    "opencode-1.1.65": "opencode",
    "opencode-1.18.33": "opencode",
    "opencode-2.0.15": "opencode",
    "opencode-migrated-1.2.27": "opencode",
    "opencode-upgraded-2.0.15": "opencode",
    "pi-0.87.1": "pi",
    "qwen-code-0.24.4": "qwen",
}
#: Formats whose records are those of another one.
_FAMILIES = {"opencode2": "opencode"}


def is_own(form: str, source: str) -> bool:
    """Return whether a store of the format *source* is of the program of *form*."""
    # The log and the database of the samples are of sessions of OpenCode.
    source = "opencode" if source in ("jsonl", "sessiondb") else source
    return _FAMILIES.get(form, format_of_program(form)) == source


def unreported_by_format(
    store: Store, source: str, forms: list[str], folder: Path
) -> dict[str, dict[str, list[Place]]]:
    """Return what sessions lose in silence, by the formats in which they do."""
    lost = {}
    for form in forms:
        own = is_own(form, source)
        if silent := unreported(store, form, folder / form, is_own=own):
            lost[form] = silent
    return lost


def tried() -> list[str]:
    """Return a sample of each format; all of them in a long run."""
    if os.environ.get("SESSIONDB_LONG"):
        return list(SAMPLES)
    return list({sample.format: name for name, sample in SAMPLES.items()}.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", tried())
def test_what_a_session_loses_in_a_format_is_reported(
    name: str, tmp_path: Path
) -> None:
    with new_store() as store:
        SAMPLES[name].write(tmp_path / "theirs")
        read_into(store, tmp_path / "theirs")
        source = SAMPLES[name].format
        assert unreported_by_format(store, source, FORMS, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_what_a_real_session_loses_in_a_format_is_reported(
    name: str, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    forms = FORMS if os.environ.get("SESSIONDB_LONG") else ["claude", "codex"]
    with new_store() as store:
        read_into(store, real_store(name) / "data")
        assert unreported_by_format(store, STORES[name], forms, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_a_session_that_has_everything_loses_is_reported(
    form: str, tmp_path: Path
) -> None:
    with new_store() as store:
        full_session.make(store)
        assert unreported(store, form, tmp_path) == {}
