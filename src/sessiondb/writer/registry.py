"""The writers of this process: one for each database, shared by all its stores.

Files are distinguished by device and inode, so two names of one file have one writer.
Before a fork(2) the writers pause: a child must not inherit an open transaction.
"""

from __future__ import annotations

import os
import threading

from sessiondb.engine.base import Identity, Target
from sessiondb.errors import DatabaseReplacedError
from sessiondb.writer.connection import WriterConnection
from sessiondb.writer.role import Writer, release_if_held

_writers: dict[Identity, Writer] = {}
_paused: list[Writer] = []
_lock = threading.RLock()


def acquire(target: Target, user: object) -> Writer:
    """Return this process's writer of a database, which must exist.

    It stays open until *user*, and every other one, is given to `release`.
    """
    identity = target.identity()
    if identity is None:
        raise DatabaseReplacedError(f"{target} does not exist any more")

    try:
        with _lock:
            writer = _writers.get(identity)
            if writer is None:
                connection = WriterConnection(target, identity)
                writer = _writers[identity] = Writer(connection)
            writer.users.add(user)
            return writer
    except BaseException:
        release_if_held(_lock)
        raise


def check_free(target: Target) -> None:
    """Refuse to open a file that replaced one that is still open in this process.

    Both would use one ``-wal`` and one ``-shm``. Raises `DatabaseReplacedError`.
    """
    identity = target.identity()
    for writer in list(_writers.values()):
        connection = writer.connection
        if connection.target == target and connection.identity != identity:
            connection.check_in_place()


def release(user: object) -> None:
    """Give back what *user* acquired; the last user closes it.

    Repeating it is harmless, and finishes what an interrupt cut short.
    """
    for writer in list(_writers.values()):
        writer.users.discard(user)
        if not writer.users:
            writer.close()
            _forget_writer(writer)


def _forget_writer(writer: Writer) -> None:
    try:
        with _lock:
            identity = writer.connection.identity
            if not writer.users and _writers.get(identity) is writer:
                del _writers[identity]
    except BaseException:
        release_if_held(_lock)
        raise


def _before_fork() -> None:
    for writer in list(_writers.values()):
        # Recorded first: what is not recorded would never be given back.
        _paused.append(writer)
        writer.pause()


def _after_fork_in_parent() -> None:
    while _paused:
        _paused.pop().resume()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _writers.clear()
    _paused.clear()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
