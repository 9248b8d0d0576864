"""Ids are ULIDs that python-ulid makes, reads and formats."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from sessiondb import Store, ids
from sessiondb.clock import now_ms
from sessiondb.errors import InvalidInputError

#: As wide as a ULID: 48 bits of time, 80 of randomness.
YEAR = 365 * 86_400_000
VALUES = st.integers(0, (1 << 128) - 1)


@given(VALUES)
def test_an_id_is_written_and_read_as_python_ulid_does(value: int) -> None:
    text = ids.encode(value)
    assert text == str(ULID.from_int(value))
    assert ids.decode(text) == value


@given(st.lists(VALUES, min_size=2))
def test_ids_order_as_their_numbers_do(values: list[int]) -> None:
    assert sorted(map(ids.encode, values)) == list(map(ids.encode, sorted(values)))


@pytest.mark.parametrize(
    "text",
    ["", "0" * 25, "0" * 27, "8" + "0" * 25, "I" + "0" * 25, "0" * 25 + "U", "a" * 26, "٣" * 26,
     "0" * 25 + "\n", "\ud800" * 26],
)  # fmt: skip
def test_only_the_canonical_form_is_a_ulid(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a ULID"):
        ids.decode(text)


def test_a_message_id_carries_its_time_and_grows_within_the_process() -> None:
    minted = [ids.new_message_id() for _ in range(1000)]
    assert minted == sorted(set(minted))
    assert all(text.startswith("msg_") for text in minted)
    assert (
        ids.time_of(minted[0])
        <= ids.time_of(minted[-1])
        <= ids.time_of(minted[0]) + 60_000
    )


def test_a_session_id_carries_its_time_and_shrinks_within_the_process() -> None:
    minted = [ids.new_session_id() for _ in range(1000)]
    assert minted == sorted(set(minted), reverse=True)
    first, last = ids.time_of(minted[0]), ids.time_of(minted[-1])
    assert first <= last <= first + 60_000


@given(st.integers(-50 * YEAR, 50 * YEAR), st.integers(0, (1 << 80) - 1))
def test_a_new_session_comes_below_every_native_id_that_was_seen(
    ms: int, random: int
) -> None:
    mint = ids.Mint()
    when = now_ms() + ms
    seen = ids.SESSION + ids.encode((1 << 128) - 1 - (when << 80 | random))
    mint.saw_session(seen)
    assert mint.session() < seen


@pytest.mark.parametrize("lowest", ["0" * 26, ids.encode(1 << 90)])
def test_an_id_of_the_far_future_does_not_date_new_sessions(lowest: str) -> None:
    mint = ids.Mint()
    mint.saw_session(ids.SESSION + lowest)
    assert abs(ids.time_of(mint.session()) - now_ms()) < 60_000


def test_the_far_future_begins_in_2200() -> None:
    year_2200 = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)
    assert ids.encode((1 << 128) - 1 - (year_2200 << 80)) == ids.FAR_FUTURE[4:]


@pytest.mark.slow
def test_a_write_loads_no_library_of_ulids(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        store.create_session()
    code = (
        "import sys, sessiondb\n"
        "with sessiondb.Store.open(sys.argv[1]) as store:\n"
        "    store.append(store.create_session(), sessiondb.user('Hello'))\n"
        "print('ulid' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s.db")]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


@pytest.mark.parametrize(
    "other",
    ["", "ses_", "0" * 26, "ses_0123456789abcdefABCDEFGHIJ", "msg_" + "0" * 26, "@"],
)
def test_ids_of_other_programs_do_not_lower_the_floor(other: str) -> None:
    mint = ids.Mint()
    first = mint.session()
    mint.saw_session(other)
    assert ids.time_of(mint.session()) - ids.time_of(first) < 60_000


def test_two_machines_agree_on_the_id_of_an_imported_session() -> None:
    one = ids.imported_session_id("opencode", "ses_1", 1_700_000_000_000)
    assert one == ids.imported_session_id("opencode", "ses_1", 1_700_000_000_000)
    assert ids.time_of(one) == 1_700_000_000_000
    assert one != ids.imported_session_id("opencode", "ses_2", 1_700_000_000_000)
