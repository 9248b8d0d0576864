"""The properties of a session, collected from the lines of its transcript."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.agents import add_number
from sessiondb.formats.claude.logs import is_summary
from sessiondb.formats.claude.tree import Leaf, Tree
from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    filled,
    fitting,
    time,
    within,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import Line
from sessiondb.formats.kit.texts import time_of_text

Record = dict[str, Any]


@dataclass(slots=True)
class Index:
    """The properties of a session in the lines of its transcript; later ones win.

    ``runs`` are the numbers of its records among all of the transcript, from 0.
    """

    version: str | None = None
    directory: str = ""
    tree: Tree = field(default_factory=Tree)
    leaf: Leaf = field(default_factory=Leaf)
    runs: list[list[int]] = field(default_factory=list)
    tag: str = ""
    last: int | None = None
    copied: str | None = None
    prompt: str = ""
    _titles: dict[str, str] = field(default_factory=dict)
    _summaries: list[tuple[str, str]] = field(default_factory=list)

    def add(self, number: int, line: Line, record: Record) -> None:
        """Look at the next line, which is record *number* of the transcript."""
        add_number(self.runs, number)
        self.tree.add(record, line)
        if "forkedFrom" in record:
            copied = within(record, "forkedFrom", "messageUuid")
            self.copied = fitting(copied, usable_id, self.copied)

        note = _NOTES.get(record["type"])
        if note is not None:
            note(self, record)

    def asked(self, record: Record) -> None:
        """Record the first prompt."""
        self.said(record)
        self.prompt = self.prompt or as_string(within(record, "message", "content"))

    def said(self, record: Record) -> None:
        """Record version, directory and time."""
        self.leaf.add(record)
        self.version = fitting(record.get("version"), clean_name, self.version)
        self.directory = self.directory or as_string(record.get("cwd"))
        times = self.last, time_of_text(record.get("timestamp"))
        self.last = max(filter(time, times), default=None)

    def linked(self, record: Record) -> None:
        """Record a link of the chain that is neither a prompt nor an answer."""
        self.leaf.add(record)

    def tagged(self, record: Record) -> None:
        """Record the tag; an empty one clears it."""
        self.tag = as_string(record.get("tag"))

    def summed_up(self, record: Record) -> None:
        """Record a title, and the line that it is about."""
        if is_summary(record):
            self._summaries.append((record["leafUuid"], record["summary"]))
        else:
            self.named(record)

    def named(self, record: Record) -> None:
        """Record the title of a line."""
        kind = record["type"]
        self._titles |= filled({kind: as_text(record.get(_TITLES[kind]))})

    def title(self, about: Mapping[str, str]) -> str:
        """Return the title: as the user named the session, else as the model did.

        *about* are the titles that any transcript has for what ends with a line. Those
        of other sessions are in the transcript that was begun next.
        """
        own = filter(None, map(self._titles.get, _TITLES))
        known = chain(reversed(self._summaries), about.items())
        here = (title for leaf, title in known if self.tree.end_of(leaf))
        return next(chain(own, here), "")


#: Lines with a title, the strongest first, and where it is.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
#: How the lines of each type change the index.
_NOTES: Mapping[str, Callable[[Index, Record], None]] = {
    **dict.fromkeys(fields.CHAIN, Index.linked),
    **dict.fromkeys(_TITLES, Index.named),
    "summary": Index.summed_up,
    "tag": Index.tagged,
    "user": Index.asked,
    "assistant": Index.said,
}
