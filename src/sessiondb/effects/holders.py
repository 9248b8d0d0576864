"""Holders of leases: a name that shows which process, and whether it is this one."""

from __future__ import annotations

import os

from sessiondb.errors import LeaseHeldError

#: A random name of each process; a forked child, which inherits it, has another pid.
_processes: dict[int, str] = {}


def _process_id() -> str:
    pid = os.getpid()
    return _processes.get(pid) or _processes.setdefault(pid, os.urandom(6).hex())


def new_holder() -> str:
    """Return a name for a holder: host, process id and a random part."""
    # Not from `socket`, which takes long to load, and a verb may not import anything.
    host = os.uname().nodename if hasattr(os, "uname") else os.environ["COMPUTERNAME"]
    return f"{host}:{os.getpid()}:{_process_id()}{os.urandom(4).hex()}"


def of_this_process(holder: str) -> bool:
    """Return whether `new_holder` of this process made *holder*."""
    return holder.rpartition(":")[2].startswith(_process_id())


def held(session_id: str, holder: str, milliseconds: int) -> LeaseHeldError:
    """Return the error that names the *holder*, with the *milliseconds* it has left."""
    return LeaseHeldError(
        f"session {session_id} is being written by {holder}",
        hint=f"wait, or try again in {(milliseconds + 999) // 1000} s",
    )
