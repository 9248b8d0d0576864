"""One process or thread at a time makes or migrates a database."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sessiondb.engine.sqlite.files import creation_lock
from sessiondb.errors import BusyError, NotADatabaseError, StorageError


def test_the_lock_excludes_other_processes(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    code = """
import sys, time
from pathlib import Path
from sessiondb.engine.sqlite.files import creation_lock
counter = Path(sys.argv[1])
for _ in range(50):
    with creation_lock(counter, 30):
        value = int(counter.read_text())
        time.sleep(0.0005)
        counter.write_text(str(value + 1))
"""
    command = [sys.executable, "-c", code, str(counter)]
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert counter.read_text() == "100"
    assert stat.S_IMODE((tmp_path / "counter.lock").stat().st_mode) == 0o600


def test_the_lock_excludes_other_threads(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "a.db", 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with creation_lock(path, 30):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0002)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)


def test_a_lock_that_is_held_is_busy_after_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with creation_lock(path, 0):
        start = time.monotonic()
        with pytest.raises(BusyError) as caught, creation_lock(path, 0.1):
            pass
        assert 0.1 <= time.monotonic() - start < 5
        assert caught.value.hint
    with creation_lock(path, 0):
        pass


def test_a_process_that_dies_lets_go_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    code = """
import sys, time
from pathlib import Path
from sessiondb.engine.sqlite.files import creation_lock
with creation_lock(Path(sys.argv[1]), 1):
    print("held", flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(BusyError), creation_lock(path, 0):
            pass
        process.kill()
        process.wait()
        with creation_lock(path, 5):
            pass


def test_a_child_forked_inside_does_not_keep_the_lock(tmp_path: Path) -> None:
    code = """
import os, sys, time
from pathlib import Path
from sessiondb.engine.sqlite.files import creation_lock
path = Path(sys.argv[1])
with creation_lock(path, 0):
    child = os.fork()
    if child == 0:
        time.sleep(60)
try:
    with creation_lock(path, 0):
        pass
finally:
    os.kill(child, 9)
"""
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], check=True, timeout=30
    )


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_planted_lock_is_refused(tmp_path: Path, kind: str) -> None:
    lock = tmp_path / "a.db.lock"
    if kind == "link":
        lock.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with (
        pytest.raises((NotADatabaseError, StorageError)),
        creation_lock(tmp_path / "a.db", 0),
    ):
        pass
    assert not (tmp_path / "target").exists()
