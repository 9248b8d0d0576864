"""Our exports, imported, exported again, listed and continued by the real OpenCode.

Called by `verify-opencode`. Every session of every store is written for both generations.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verifying.continuing import PROMPT, arguments
from verifying.differences import KNOWN, differences
from verifying.provider import ANSWER, Provider
from verifying.stores import fill, sessions_of, stores
from verifying.tool import Tool

from sessiondb import Store
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.v2.writer import WriterV2

WRITE: dict[str, Callable[..., WriterV1 | WriterV2]] = {
    "1.x": WriterV1,
    "2.x": WriterV2,
}


@dataclass
class Seen:
    """The outcome of the sessions of one store in one version."""

    tool: Tool
    store: str
    sent: list[str]
    equal: int = 0
    refused: int = 0
    changed: int = 0
    known: Counter[str] = field(default_factory=Counter)
    roots: dict[str, dict[str, Any]] = field(default_factory=dict)

    def report(self, name: str, what: str) -> None:
        """Print a line of the table."""
        print(f"{self.tool.generation}  {self.store:26}  {name:30}  {what}", flush=True)

    def session(self, document: dict[str, Any], losses: Losses) -> None:
        """Send one session through the tool."""
        name = document["info"]["id"]
        refused = self.tool.import_session(name, document)
        found = refused or self.tool.export(name)
        if isinstance(found, str):
            self.refused += 1
            self.report(name, f"REFUSED: {found}")
            return
        if "parentID" not in document["info"]:
            self.roots[name] = found
        known, other = differences(self.tool.generation, document, found)
        self.known.update(known)
        self.changed += bool(other)
        self.equal += not other
        number = len(document["messages"])
        what = (
            f"CHANGED: {', '.join(sorted(other))}"
            if other
            else f"equal, {number} messages"
        )
        lost = len(list(losses))
        self.report(name, f"{what}, {lost} losses" if lost else what)

    def continues(self, store: Store) -> bool:
        """Check the list, continue the longest session and import it back; False is a failure."""
        missing = self.roots.keys() - self.tool.listed()
        self.report(
            "list", f"MISSING: {missing}" if missing else f"all {len(self.roots)} roots"
        )
        name = max(
            self.roots, key=lambda name: len(self.roots[name]["messages"]), default=None
        )
        if name is None:
            return not missing
        before = self.roots[name]["messages"]
        del self.sent[:]
        self.tool.continue_session(name, PROMPT)
        found = self.tool.export(name)
        after = [] if isinstance(found, str) else found["messages"]
        said = json.dumps(last_prompt(before), ensure_ascii=False)[1:-1]
        history = any(said in sent and PROMPT in sent for sent in self.sent)
        grown = after[: len(before)] == before and ANSWER in str(after[len(before) :])
        continued = history and grown
        self.report(
            name,
            f"{'continued' if continued else 'NOT CONTINUED'}: the model received its "
            f"history {history}, the answer follows it {grown}",
        )
        return continued and not missing and self._comes_back(store, name)

    def _comes_back(self, store: Store, name: str) -> bool:
        """Import the tool's own database: no session is duplicated, one is continued."""
        before = len(sessions_of(store))
        fill(store, self.tool.data)
        came = ANSWER in str([message.text for message in store.messages(name, last=3)])
        same = len(sessions_of(store)) == before
        self.report(name, f"{'came back' if came and same else 'DID NOT COME BACK'}: the answer "
                  f"was imported {came}, no session is duplicated {same}")  # fmt: skip
        return came and same


def last_prompt(messages: list[dict[str, Any]]) -> str:
    """Return the last prompt in an export of either generation; "" if there is none."""
    for message in reversed(messages):
        if message.get("type") == "user" and message["text"]:
            return str(message["text"])
        if message.get("info", {}).get("role") == "user":
            texts = [
                p
                for p in message["parts"]
                if p["type"] == "text" and not p.get("synthetic")
            ]
            if texts:
                return str(texts[-1]["text"])
    return ""


def report(rows: list[Seen]) -> None:
    """Print the changes that the tool itself makes, and the totals of each store."""
    for generation, reasons in KNOWN.items():
        print(f"\nChanged by OpenCode {generation} itself:")
        for place, why in reasons.items():
            number = sum(
                row.known[place] for row in rows if row.tool.generation == generation
            )
            print(f"  {place:34} {number:4} sessions  {why}")
    print()
    for row in rows:
        sums = f"{row.equal:3} equal  {row.changed:3} changed  {row.refused:3} refused"
        print(f"{row.tool.generation}  {row.store:26}  {sums}")


def main() -> int:
    """Run everything; 1 if a session came back changed, was refused or did not continue."""
    asked = arguments()
    rows: list[Seen] = []
    well = True
    provider = Provider()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-"))
        stack.enter_context(provider.serving())
        temporary = Path(folder)
        for number, (name, path) in enumerate(stores(asked.stores, "opencode-*")):
            for generation, write in WRITE.items():
                store = stack.enter_context(
                    Store.open(temporary / f"{number}-{generation}.db")
                )
                fill(store, path)
                home = temporary / f"home-{number}-{generation}"
                tools = asked.tools or temporary / "tools"
                tool = Tool(generation, tools, home, provider.config())
                with contextlib.closing(tool):
                    rows.append(Seen(tool, name, provider.sent))
                    for session in sessions_of(store):
                        losses = Losses()
                        export = store.export(session.id)
                        document = write(export, list(export.messages), losses).json()
                        rows[-1].session(document, losses)
                    well = rows[-1].continues(store) and well
    report(rows)
    return 0 if well and not any(row.changed or row.refused for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
