"""A long session against a short one: what is done at its end costs the same.

Floor and ours are both sessiondb, on files that differ in the length of their one
session. The commits do not wait for the disk, whose noise would hide the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from benchmarks.fixtures import built, conversation, small
from benchmarks.measure import Bench, Row, medians
from benchmarks.reading import FLAT
from sessiondb import MessageDraft, Store, assistant, tool, tool_result

SHORT, LONG = 400, 20_000
_SESSION = "ses_growing"
Act = Callable[[], object]


def _result(store: Store) -> Act:
    name = f"call {perf_counter()}"
    store.append(_SESSION, assistant(tool("bash", {"command": "ls"}, call_id=name)))
    draft = MessageDraft("tool", (tool_result(name, "done"),))
    return lambda: store.append(_SESSION, draft)


def _truncation(store: Store) -> Act:
    before = store.append(_SESSION, assistant("stays"))
    store.append(_SESSION, assistant("goes"))
    return lambda: store.truncate(_SESSION, after=before)


def _tree(store: Store) -> Act:
    return lambda: store.tree(_SESSION)


#: One function for each: it prepares the case and returns the function to time.
_WORK: dict[str, Callable[[Store], Act]] = {
    "a tool result right after its call": _result,
    "truncating the last message": _truncation,
    "tree": _tree,
}


def rows(bench: Bench) -> Iterator[Row]:
    """Yield each at the end of a session of 400 messages, and of 20,000."""
    paths = [
        built(
            bench.folder / f"{size}.db", conversation(_SESSION, size // 2, size, small)
        )
        for size in (SHORT, LONG)
    ]
    with (
        Store.open(paths[0], durability="normal") as short,
        Store.open(paths[1], durability="normal") as long,
    ):
        for name, prepare in _WORK.items():

            def pair(
                turn: int, prepare: Callable[[Store], Act] = prepare
            ) -> tuple[float, float]:
                order = (short, long) if turn % 2 else (long, short)
                taken = {store: _timed(prepare(store)) for store in order}
                return taken[short], taken[long]

            measured = medians(pair, bench.times(300), 5)
            yield Row(f"{name}: {SHORT:,} → {LONG:,} messages", *measured, goal=FLAT)


def _timed(act: Act) -> float:
    start = perf_counter()
    act()
    return (perf_counter() - start) * 1000
