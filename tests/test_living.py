"""Threads open and close stores while another one goes through those that are open."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Generator

import pytest

from sessiondb.living import LivingObjects
from sessiondb.writer.asyncio_loop import running_loop
from sessiondb.writer.loop import wake_late


class Thing:
    """An object that can be referred to weakly."""


@pytest.fixture
def restless_threads() -> Generator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def while_others(act: Callable[[], object], work: Callable[[], object]) -> None:
    """Call *work* for a third of a second while two threads *act*."""
    ended = threading.Event()

    def others() -> None:
        while not ended.is_set():
            act()

    threads = [threading.Thread(target=others) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            work()
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_only_objects_that_others_refer_to_are_there() -> None:
    living: LivingObjects[Thing] = LivingObjects()
    kept, left, gone = Thing(), Thing(), Thing()
    living.add(kept)
    living.add(kept)
    living.add(left)
    living.add(gone)
    living.discard(left)
    living.discard(left)
    del gone
    gc.collect()
    assert list(living) == [kept]
    living.clear()
    assert list(living) == []


@pytest.mark.usefixtures("restless_threads")
def test_objects_may_come_and_go_during_an_iteration() -> None:
    living: LivingObjects[Thing] = LivingObjects()
    kept = [Thing() for _ in range(50)]
    for thing in kept:
        living.add(thing)

    def come_and_go() -> None:
        things = [Thing() for _ in range(20)]
        for thing in things:
            living.add(thing)
        living.discard(things[0])

    def go_through() -> None:
        assert len(list(living)) >= len(kept)

    while_others(come_and_go, go_through)


async def seen() -> None:
    running_loop()


@pytest.mark.usefixtures("restless_threads")
def test_loops_may_begin_and_end_while_all_are_woken() -> None:
    kept = [asyncio.new_event_loop() for _ in range(20)]
    for loop in kept:
        loop.run_until_complete(seen())

    def begin_and_end() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(seen())
        loop.close()

    while_others(begin_and_end, wake_late)
    for loop in kept:
        loop.close()
