"""The process of one store: performs the work of a module, and prints its times.

    python -m benchmarks.adapters.timing FRAMEWORK theirs|ours FOLDER

Prints {operation: [seconds of the clock, seconds of the processor]}, medians of the
calls, and the bytes of files under "bytes". Processor time is that of all threads.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time


class Timings:
    """The times of operations by name, and the size of the files."""

    def __init__(self) -> None:
        self._spent: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._bytes = 0

    @contextmanager
    def of(self, operation: str, calls: int = 1) -> Iterator[None]:
        """Time the block, in which the operation is performed *calls* times."""
        started, worked = perf_counter(), process_time()
        yield
        worked, started = process_time() - worked, perf_counter() - started
        self._spent[operation].append((started / calls, worked / calls))

    def bytes(self, path: Path) -> None:
        """Add the size of a file, or of all files of a folder; stores are closed."""
        files = path.rglob("*") if path.is_dir() else [path]
        self._bytes += sum(file.stat().st_size for file in files if file.is_file())

    def json(self) -> dict[str, list[float] | int]:
        """Return the medians of each operation, and the bytes."""
        medians: dict[str, list[float] | int] = {
            operation: [
                statistics.median(column) for column in zip(*spent, strict=True)
            ]
            for operation, spent in self._spent.items()
        }
        return {**medians, "bytes": self._bytes}


def main() -> None:
    """Run one kind of store of one framework."""
    framework, kind, folder = sys.argv[1:]
    timings = Timings()
    module = import_module(f"benchmarks.adapters.{framework}")
    asyncio.run(module.run(kind, Path(folder), timings))
    measured = timings.json()
    missing = {*module.OPERATIONS} - measured.keys()
    if missing:
        sys.exit(f"{framework}, {kind}: {', '.join(sorted(missing))} not measured")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
