"""Processes that use one database at the same time, and what each of them reports."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from processes import start

#: What comes before the code of a member, which calls `begin` once and `report` last.
_PREAMBLE = """
import json, random, sys, time
from sessiondb import (
    ALL, BEGINNING, BusyError, ConflictError, NotFoundError, Store, UnavailableError,
    assistant, user,
)
url, *args = json.loads(sys.argv[1])
def begin():
    print("ready", flush=True)
    assert sys.stdin.readline() == "go\\n"
def report(value):
    print(json.dumps(value), flush=True)
"""
#: Seconds after which a member that has not ended fails its test.
PATIENCE = 100


class Crew:
    """Members that were started with a piece of code, and begin together."""

    def __init__(
        self, code: str, url: str, arguments: Iterable[tuple[Any, ...]]
    ) -> None:
        code = _PREAMBLE + textwrap.dedent(code)
        self._members = [start(code, json.dumps([url, *each])) for each in arguments]

    def prepare(self) -> None:
        """Wait until all are ready."""
        self.read("ready")

    def read(self, word: str) -> None:
        """Wait until all have written a line with *word*."""
        for member in self._members:
            assert member.stdout is not None
            line = member.stdout.readline()
            assert line == f"{word}\n", line + member.communicate()[1]

    def begin(self) -> None:
        """Let all of them continue, who wait for a line."""
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write("go\n")
            member.stdin.flush()

    @property
    def is_at_work(self) -> bool:
        """Whether one of them has not ended."""
        return any(member.poll() is None for member in self._members)

    def reports(self) -> list[Any]:
        """Wait until all have ended, and return their reports."""
        outputs = [member.communicate(timeout=PATIENCE) for member in self._members]
        for member, (_, errors) in zip(self._members, outputs, strict=True):
            assert member.returncode == 0, errors
        return [json.loads(output.splitlines()[-1]) for output, _ in outputs]

    def end(self) -> None:
        """End those that are still there."""
        for member in self._members:
            if member.poll() is None:
                member.kill()
            with member:
                pass  # its pipes are closed


@contextmanager
def crew(code: str, url: str, *arguments: tuple[Any, ...]) -> Iterator[Crew]:
    """Start a member for each of *arguments*, JSON values; those left are killed."""
    members = Crew(code, url, arguments)
    try:
        yield members
    finally:
        members.end()


def reports_of(code: str, url: str, *arguments: tuple[Any, ...]) -> list[Any]:
    """Return the reports of members to which nothing happens."""
    with crew(code, url, *arguments) as members:
        members.prepare()
        members.begin()
        return members.reports()
