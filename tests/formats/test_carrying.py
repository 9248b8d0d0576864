"""Whatever a session loses on its way through a format is in the report of the export.

Each sample of a format that is read, and a session made here with everything in it, is
written in each format that is read again.
"""

from __future__ import annotations

import os
from pathlib import Path

import full_session
import pytest
from carrying import unreported
from samples import SAMPLES, new_store, read_into

from sessiondb.formats.registry import format_of_program, writable

#: The formats that are written and read, by their names.
FORMS = [form for form in writable() if form not in ("markdown", "html")]
#: Formats whose records are those of another one.
_FAMILIES = {"opencode2": "opencode"}


def is_own(form: str, name: str) -> bool:
    """Return whether a sample has sessions of the program of a format."""
    source = SAMPLES[name].format
    # The log and the database of the samples are of sessions of OpenCode.
    source = "opencode" if source in ("jsonl", "sessiondb") else source
    return _FAMILIES.get(form, format_of_program(form)) == source


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
        lost = {
            form: unreported(store, form, tmp_path / form, is_own=is_own(form, name))
            for form in FORMS
        }
    assert {form: silent for form, silent in lost.items() if silent} == {}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_a_session_that_has_everything_loses_is_reported(
    form: str, tmp_path: Path
) -> None:
    with new_store() as store:
        full_session.make(store)
        assert unreported(store, form, tmp_path) == {}
