"""Whatever a session loses on its way through a format is in the report of the export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from carrying import unreported
from samples import SAMPLES, new_store, read_into

from sessiondb import Store

#: The formats that report everything.
FORMS = ("jsonl", "event-log")


@pytest.fixture(scope="module", params=SAMPLES)
def sampled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A database with the sessions of a sample."""
    folder = tmp_path_factory.mktemp("theirs")
    with new_store() as store:
        SAMPLES[request.param].write(folder)
        read_into(store, folder)
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_a_session_loses_in_a_format_is_reported(
    sampled: Store, form: str, tmp_path: Path
) -> None:
    assert unreported(sampled, form, tmp_path) == {}
