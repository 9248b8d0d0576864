"""Clients whose clocks differ by hours: whatever expires does so by the server's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent

import pytest
from crew import reports_of

from sessiondb import LeaseHeldError, Store, assistant

pytestmark = pytest.mark.slow
HOUR = 3_600.0
#: The clock of a member: its first argument is by how many seconds it is ahead.
CLOCK = """
from sessiondb import LeaseHeldError
ahead, *args = args
of_the_machine = time.time_ns
time.time_ns = lambda: of_the_machine() + int(ahead * 1e9)
"""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        opened.create_session(id="s", directory="/tmp")
        yield opened


def test_a_lease_is_held_for_clients_of_any_clock(store: Store, url: str) -> None:
    try_it = """
        with Store.open(url) as store:
            begin()
            try:
                with store.lease("s", ttl=30):
                    report("taken")
            except LeaseHeldError:
                listed = [item.session.id for item in store.unfinished()]
                report(["held", listed])
    """
    with store.lease("s", ttl=30):
        message = store.append("s", assistant("…"), open=True)
        reports = reports_of(
            CLOCK + dedent(try_it), url, (-9 * HOUR,), (0.0,), (9 * HOUR,)
        )
        assert reports == [["held", []]] * 3
        store.finish("s", message)


def test_clients_that_take_turns_never_hold_a_lease_at_once(
    store: Store, url: str
) -> None:
    take_turns = """
        held = []
        with Store.open(url, durability="normal") as store:
            begin()
            end = time.monotonic() + 3
            while time.monotonic() < end:
                try:
                    with store.lease("s", ttl=0.5):
                        begun = time.monotonic()
                        time.sleep(0.02)
                        held.append((begun, time.monotonic()))
                except LeaseHeldError:
                    time.sleep(0.005)
        report(held)
    """
    clocks = (-9 * HOUR, -1.0, 2.0, 9 * HOUR)
    reports = reports_of(
        CLOCK + dedent(take_turns), url, *[(clock,) for clock in clocks]
    )
    turns = sorted(turn for held in reports for turn in held)
    assert sum(bool(held) for held in reports) > 1
    for (_, ended), (begun, _) in pairwise(turns):
        assert ended <= begun


def test_the_lease_of_a_client_that_died_ends_by_the_clock_of_the_server(
    store: Store, url: str
) -> None:
    die = """
        import os
        store = Store.open(url)
        begin()
        # One that is collected is given back.
        kept = store.lease("s", ttl=2)
        kept.__enter__()
        report(time.monotonic())
        os._exit(0)
    """
    for clock in (-9 * HOUR, 9 * HOUR):
        ((taken),) = reports_of(CLOCK + dedent(die), url, (clock,))
        while True:
            try:
                with store.lease("s"):
                    break
            except LeaseHeldError:
                time.sleep(0.02)
        assert 1.9 <= time.monotonic() - taken < 10


def test_values_expire_for_clients_of_any_clock_at_one_time(
    store: Store, url: str
) -> None:
    read = """
        with Store.open(url) as store:
            begin()
            report([
                store.value("n", "long") is not None,
                store.value("n", "short") is None,
                [value.key for value in store.values("n")],
                list(store.namespaces()),
            ])
    """
    store.set_value("n", "long", 1, ttl=600)
    store.set_value("n", "short", 1, ttl=0.01)
    time.sleep(0.1)
    for seen in reports_of(
        CLOCK + dedent(read), url, (-9 * HOUR,), (0.0,), (9 * HOUR,)
    ):
        assert seen == [True, True, ["long"], [["n"]]]
