"""A thread that removes what expired, in intervals, until it is stopped.

It keeps neither its owner nor the database alive: the end of either ends it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from concurrent.futures import Future, InvalidStateError

from sessiondb.adapters.langgraph.items import ROOT
from sessiondb.errors import SessionDBError, StoreClosedError
from sessiondb.store import Store

_log = logging.getLogger("sessiondb")


class TTLSweeper:
    """The thread; ``future`` is done when it ends, and ends it if it is cancelled."""

    def __init__(self, owner: object, store: Store, seconds: float) -> None:
        self.future: Future[None] = Future()
        self._stopped = stopped = threading.Event()
        self.future.add_done_callback(lambda _: stopped.set())
        weakref.finalize(owner, stopped.set)
        self._thread = threading.Thread(
            target=_sweep,
            args=(weakref.ref(store), seconds, stopped, self.future),
            name="sessiondb-ttl-sweeper",
            daemon=True,
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread runs and no stop was requested."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def stop(self, seconds: float | None) -> bool:
        """Stop the thread; False if it still runs after *seconds* (None: no limit)."""
        self._stopped.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()


def _sweep(
    reference: weakref.ref[Store],
    seconds: float,
    stopped: threading.Event,
    future: Future[None],
) -> None:
    while not stopped.wait(seconds):
        store = reference()
        try:
            if store is None:
                break
            store.delete_expired(ROOT)
        except StoreClosedError:
            break
        except SessionDBError:
            # The next one may succeed, as after a file that was busy.
            _log.exception("expired items could not be removed")
        finally:
            del store
    with contextlib.suppress(InvalidStateError):  # it was cancelled
        future.set_result(None)
