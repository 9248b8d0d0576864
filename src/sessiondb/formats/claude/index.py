"""The properties of a session, collected from the lines of its transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.claude import fields
from sessiondb.formats.claude.agents import add_number
from sessiondb.formats.claude.logs import is_summary
from sessiondb.formats.claude.tree import ClaudeTree
from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    fitting,
    value_at,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import Line
from sessiondb.formats.kit.texts import time_of_text

Record = dict[str, Any]
#: Lines with a title, the strongest first, and the key that has it.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


class ClaudeLeaf:
    """The line that the session continues from, as the program finds it.

    A line that no other one follows is walked back to a prompt or an answer; of those,
    the latest counts that is not beside the conversation.
    """

    def __init__(self) -> None:
        #: The prompt or answer at or above each line, in the order of the lines.
        self._nearest: dict[str | None, str | None] = {None: None}
        self._hidden: set[str | None] = set()
        self._followed: set[str | None] = {None}

    def add(self, record: Record) -> None:
        """Add the next line that is a link of the chain."""
        uuid = as_text(record.get("uuid"))
        if uuid in self._nearest:
            return

        parent = as_text(record.get("parentUuid"))
        self._followed.add(parent)
        is_message = record["type"] in fields.SAID
        self._nearest[uuid] = uuid if is_message else self._nearest.get(parent)
        # Beside the conversation: a line of a subagent, or of a team.
        if record.get("isSidechain") or record.get("teamName"):
            self._hidden.add(uuid)

    @property
    def uuid(self) -> str | None:
        """The uuid of that line; None without a prompt or an answer."""
        ends = self._nearest.keys() - self._followed
        leaves = {self._nearest[end] for end in ends}
        shown = leaves - self._hidden - {None}
        candidates = shown or leaves
        for line in reversed(self._nearest):
            if line in candidates:
                return line
        return None


@dataclass(slots=True)
class ClaudeIndex:
    """The properties of a session in the lines of its transcript; later ones win."""

    version: str | None = None
    #: The first one.
    directory: str = ""
    tree: ClaudeTree = field(default_factory=ClaudeTree)
    leaf: ClaudeLeaf = field(default_factory=ClaudeLeaf)
    #: The numbers of its records among all of the transcript, from 0.
    runs: list[list[int]] = field(default_factory=list)
    #: The tag; "" if it was cleared.
    tag: str = ""
    #: The time of its latest prompt or answer, in Unix ms.
    time_updated: int | None = None
    #: The last line of the original that a fork names.
    copied_uuid: str | None = None
    #: The first prompt that is a text.
    prompt: str = ""
    _titles: dict[str, str] = field(default_factory=dict)
    #: Titles, each with the last line of the session that it is about.
    _summaries: list[tuple[str, str]] = field(default_factory=list)

    def add(self, number: int, line: Line, record: Record) -> None:
        """Add the next line, which is record *number* of the transcript."""
        add_number(self.runs, number)
        self.tree.add(record, line)
        if "forkedFrom" in record:
            copied = value_at(record, "forkedFrom", "messageUuid")
            self.copied_uuid = fitting(copied, usable_id, self.copied_uuid)

        kind = record["type"]
        if kind in fields.CHAIN:
            self.leaf.add(record)
        if kind in fields.SAID:
            self._add_message(record)
        elif kind == "tag":
            self.tag = as_string(record.get("tag"))
        elif kind == "summary" and is_summary(record):
            self._summaries.append((record["leafUuid"], record["summary"]))
        elif kind in _TITLES:
            title = as_string(record.get(_TITLES[kind]))
            if title:
                self._titles[kind] = title

    def _add_message(self, record: Record) -> None:
        """Note version, directory and time of a line, and the first prompt."""
        self.version = fitting(record.get("version"), clean_name, self.version)
        self.directory = self.directory or as_string(record.get("cwd"))
        time = time_of_text(record.get("timestamp"))
        if time is not None and (self.time_updated is None or time > self.time_updated):
            self.time_updated = time
        if record["type"] == "user" and not self.prompt:
            self.prompt = as_string(value_at(record, "message", "content"))

    def title(self, titles: Mapping[str, str]) -> str:
        """Return the title: as the user named the session, else as the model did.

        *titles* are those that any transcript has for what ends with a line. Those of
        other sessions are in the transcript that was begun next. "" for none.
        """
        for kind in _TITLES:
            if kind in self._titles:
                return self._titles[kind]
        for leaf, title in [*reversed(self._summaries), *titles.items()]:
            if self.tree.end_of(leaf):
                return title
        return ""
