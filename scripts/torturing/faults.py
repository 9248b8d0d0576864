"""Faults of a machine while programs use one file; each lasts for a moment.

A file that cannot grow stands for a full disk: the limit of a process needs no file system
of its own. A program that finds another file in place of its own ends, and another begins.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
import signal
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from sessiondb import Store

SIDE_FILES = ("", "-wal", "-shm")
_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2


def obey_permissions() -> None:
    """Let the modes of files count for this thread and those it starts, also if it is root's."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    capabilities = (ctypes.c_uint32 * 6)()
    libc.capget(header, capabilities)
    capabilities[0] &= ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    libc.capset(header, capabilities)


@contextlib.contextmanager
def no_file_grows(
    path: Path, processes: Collection[int], chance: random.Random
) -> Iterator[None]:
    """Let no process write behind some place of the database or the files beside it."""
    if not hasattr(resource, "prlimit"):  # only Linux limits another process
        yield
        return
    sizes = [file.stat().st_size for file in _files_of(path)]
    limit = chance.choice([0, 4096, 1 << 15, *sizes])
    try:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(
                    process, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)
                )
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process, resource.RLIMIT_FSIZE, _UNLIMITED)


@contextlib.contextmanager
def folder_is_read_only(path: Path) -> Iterator[None]:
    """Take away the right to write to the database, and to make files beside it."""
    files = _files_of(path)
    modes = {file: file.stat().st_mode for file in files}
    try:
        for file in files:
            file.chmod(0o400)
        path.parent.chmod(0o500)
        yield
    finally:
        path.parent.chmod(0o700)
        for file, mode in modes.items():
            with contextlib.suppress(FileNotFoundError):
                file.chmod(mode)


def replace(path: Path, processes: Collection[int], folder: Path) -> Path:
    """Put a new database in place of one in use, and return where the old one is.

    The processes stand still meanwhile: files beside a database are moved with it.
    """
    old = folder / path.name
    old.parent.mkdir()
    _send(processes, signal.SIGSTOP)
    try:
        for ending in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{ending}").rename(f"{old}{ending}")
        Store.open(path).close()
    finally:
        _send(processes, signal.SIGCONT)
    return old


def _send(processes: Collection[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _files_of(path: Path) -> list[Path]:
    return [
        Path(f"{path}{ending}")
        for ending in SIDE_FILES
        if os.path.lexists(f"{path}{ending}")
    ]
