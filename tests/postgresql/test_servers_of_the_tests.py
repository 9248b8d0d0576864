"""The servers that tests and benches run for themselves."""

from __future__ import annotations

import time
from pathlib import Path

import processes
import pytest
from postgresql_server import Server
from private_cluster import __file__ as in_scripts

pytestmark = pytest.mark.slow
RUNNING = """
import sys
sys.path.insert(0, sys.argv[1])
from postgresql_server import binaries, running

with running(binaries()) as server:
    print((server.data / "postmaster.pid").read_text().split()[0], server.folder)
    sys.stdout.flush()
    sys.stdin.read()
"""
#: Seconds until a server is gone.
PATIENCE = 20.0


def test_a_server_ends_with_the_process_that_is_killed(server: Server) -> None:
    assert server.folder.is_dir()
    with processes.start(RUNNING, Path(in_scripts).parent) as child:
        assert child.stdout is not None
        number, folder = child.stdout.readline().split()
        child.kill()

    end = time.monotonic() + PATIENCE
    while Path("/proc", number).exists() or Path(folder).exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    # Nobody else's.
    assert server.run("SELECT 1") == ""
