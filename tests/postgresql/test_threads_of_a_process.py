"""Threads of one process that write at once: each waits for the outcome of its unit alone."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sessiondb import Store, user

pytest.importorskip("psycopg")

from waiting import PATIENCE

THREADS = 8


def test_no_thread_waits_for_the_lock_of_one_that_is_about_to_write(url: str) -> None:
    with Store.open(url) as store, ThreadPoolExecutor(THREADS + 1) as pool:
        session = store.create_session()
        writer = store._core.writer
        is_taken, may_write = threading.Event(), threading.Event()

        def be_about_to_write() -> None:
            with writer._role:
                is_taken.set()
                assert may_write.wait(PATIENCE)
            writer._pass_on()

        about_to_write = pool.submit(be_about_to_write)
        assert is_taken.wait(PATIENCE)
        writing = [
            pool.submit(store.append, session, user(str(number)))
            for number in range(THREADS)
        ]
        end = time.monotonic() + PATIENCE
        while [job.turn for job in writer._queue].count(None) or (
            len(writer._queue) < THREADS
        ):
            assert time.monotonic() < end
            time.sleep(0.01)
        may_write.set()

        about_to_write.result()
        assert len({made.result().seq for made in writing}) == THREADS
