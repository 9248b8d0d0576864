"""Ctrl-C, for real: SIGINT at any moment in a process with threads and an event loop."""

from __future__ import annotations

import json
import random
import signal
import time

import pytest
from backends import Backend
from processes import start

#: Appends until it is signalled to end, in the main thread, in a thread and in a loop. Says
#: what was acknowledged, and what the handles and subscribers know of it.
PROGRAM = """
    import asyncio, json, signal, sys, threading, time
    from sessiondb import AsyncStore, Store, user

    def interrupt(number, frame):
        # On lines of the library alone: those of this program are not what is tested.
        while frame is not None:
            if "/sessiondb/" in frame.f_code.co_filename:
                raise KeyboardInterrupt
            frame = frame.f_back

    signal.signal(signal.SIGINT, interrupt)
    store = Store.open(sys.argv[1], durability="normal")
    names = ("main", "thread", "loop")
    for name in names:
        store.create_session(id=name, directory="/tmp")
    ended = threading.Event()
    done = {name: [] for name in names}
    wrong, notified = [], []
    store.on_commit(notified.extend)

    def in_thread():
        while not ended.is_set():
            handle = store.append("thread", user("x"))
            if handle.seq is None:
                wrong.append("thread: no seq")
            done["thread"].append(handle.id)

    async def in_loop():
        async with AsyncStore.open(sys.argv[1], durability="normal") as other:
            while not ended.is_set():
                handle = await asyncio.wait_for(other.append("loop", user("x")), 20)
                if handle.seq is None:
                    wrong.append("loop: no seq")
                done["loop"].append(handle.id)

    threads = [threading.Thread(target=in_thread),
               threading.Thread(target=lambda: asyncio.run(in_loop()))]
    for thread in threads:
        thread.start()
    interrupts = 0
    print("ready", flush=True)
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        try:
            unit = store._core.unit()
            handle = unit.append("main", user("x"))
            while True:
                try:
                    store.commit(unit)
                    break
                except KeyboardInterrupt:
                    interrupts += 1
                    if unit.committed and handle.seq is None:
                        wrong.append("main: committed without a seq")
            if handle.seq is None:
                wrong.append("main: no seq")
            done["main"].append(handle.id)
        except KeyboardInterrupt:
            interrupts += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended.set()
    for thread in threads:
        thread.join(20)
        if thread.is_alive():
            wrong.append("a thread waits forever")
    last = store.append("main", user("last"))
    wait = time.monotonic() + 20
    while not any(c.session_id == "main" and c.last_seq == last.seq for c in notified):
        if time.monotonic() > wait:
            wrong.append("a subscriber was not called")
            break
        time.sleep(0.001)
    # On a server several changes have one cursor while an older transaction may still
    # commit: that of a connection which an interrupt ended is open a moment longer.
    cursors = [change.cursor for change in notified]
    changes = [(change.session_id, change.last_seq) for change in notified]
    if cursors != sorted(cursors) or len(set(changes)) < len(changes):
        wrong.append("changes twice or out of order")
    store.close()
    print(json.dumps({"done": done, "wrong": wrong, "interrupts": interrupts}))
"""


@pytest.mark.slow
def test_ctrl_c_at_any_moment_loses_and_hangs_nothing(backend: Backend) -> None:
    place, seconds = backend.place(), 2.0
    process = start(PROGRAM, place, seconds)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        until = time.monotonic() + seconds * 0.9
        while time.monotonic() < until:
            process.send_signal(signal.SIGINT)
            time.sleep(random.uniform(0.0, 0.008))
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    said = json.loads(out)
    assert said["wrong"] == []
    assert said["interrupts"] > 10
    for name, acknowledged in said["done"].items():
        sql = "SELECT id FROM message WHERE session_id = ?"
        found = [i for (i,) in backend.rows(place, sql, name)]
        assert set(acknowledged) <= set(found)
    backend.assert_intact(place)
