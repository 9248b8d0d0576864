"""A file of JSON lines for each session, synced at every turn."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.peers.raw import ITEMS, items
from benchmarks.peers.turns import Turn

BLOCK_BYTES = 65536


class Peer:
    """What agents that write transcripts do, with the fsync that most of them omit."""

    def __init__(self, folder: Path, session: str) -> None:
        self.path = folder / f"{session}.jsonl"
        self.file = self.path.open("ab")

    async def append(self, turn: Turn) -> None:
        """Append the lines of a turn, and sync the file."""
        lines = [json.dumps(item) + "\n" for item in items(turn)]
        self.file.write("".join(lines).encode())
        self.file.flush()
        os.fsync(self.file.fileno())

    async def load(self) -> list[Any]:
        """Return all items."""
        with self.path.open("rb") as file:
            return [json.loads(line) for line in file]

    async def last(self, turns: int) -> list[Any]:
        """Return the items of the newest turns, read from the end of the file."""
        wanted = turns * ITEMS
        with self.path.open("rb") as file:
            start = file.seek(0, os.SEEK_END)
            tail = b""
            while start > 0 and tail.count(b"\n") <= wanted:
                size = min(BLOCK_BYTES, start)
                start = file.seek(start - size)
                tail = file.read(size) + tail
        return [json.loads(line) for line in tail.splitlines()[-wanted:]]

    async def fork(self, name: str) -> None:
        """Copy the file, and sync the copy."""
        copy = self.path.with_name(f"{name}.jsonl")
        shutil.copyfile(self.path, copy)
        with copy.open("rb+") as file:
            os.fsync(file.fileno())

    async def close(self) -> None:
        """Close the file."""
        self.file.close()
