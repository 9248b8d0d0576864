"""Sessions that were written for a program, continued by it, and compared with what a model is sent."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sessiondb import Session, Store
from sessiondb.formats import exporter, find
from sessiondb.formats.protocol import Handover, Written
from sessiondb.model import Document, Imported
from verifying.installing import PATIENCE
from verifying.provider import ANSWER, Provider
from verifying.stores import fill, sessions_of, stores

PROMPT = "Now continue."
#: The outcomes of a session; anything else is an error.
CONTINUED, LEFT_OUT = "continued", "left out: the program continues no such session"


class Continued(NamedTuple):
    """A log that a program has continued, and the text that was written for it.

    ``unsent`` are the characters that it takes out of texts, or adds, before it sends them.
    """

    log: Path
    written: str
    unsent: re.Pattern[str] = re.compile(r"(?!)")
    #: Whether it is sent nothing of a prompt but what was typed.
    is_typed: bool = False
    #: Whether the program composes the characters of texts (NFC).
    is_composed: bool = False

    def sent(self, text: str) -> str:
        """Return a text as the program sends it."""
        visible = self.unsent.sub("", text)
        return unicodedata.normalize("NFC", visible) if self.is_composed else visible


class Program(Protocol):
    """A real program in a home of its own, with a provider on loopback."""

    def resume(self, store: Store, session: Session) -> Continued | str | None:
        """Write a session, and continue it with `PROMPT`.

        Returns the reason if that fails, None if the program continues no such session.
        """


def run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a program in *folder*; return what it printed if it failed."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return "" if ran.returncode == 0 else (ran.stderr or ran.stdout)[-300:]


class Given(NamedTuple):
    """A session that is written for a program: how it continues it, where it looks for it."""

    handover: Handover
    place: Path
    text: str

    def put(self) -> None:
        """Write the session there."""
        self.place.parent.mkdir(parents=True, exist_ok=True)
        self.place.write_text(self.text, encoding="utf-8")


def given(
    store: Store, session: Session, form: str, directory: str, env: dict[str, str]
) -> Given:
    """Return a session as a program in *env* is given it; nothing is written yet."""
    name, text = document(store, session, form)
    take_in = exporter(form).take_in
    assert take_in is not None
    taken = take_in(Written(name, text, directory), env)
    assert taken.place is not None
    return Given(taken, taken.place, text)


def document(store: Store, session: Session, form: str) -> tuple[str, str]:
    """Return the name and the text of a session that is written in a format."""
    to = exporter(form)
    found, *_ = (
        (item.name, "".join(item.chunks))
        for item in to.write(
            [store.export(session, **to.read)], detail=to.taken or to.details[0]
        )
        if isinstance(item, Document)
    )
    return found


def verify(program: Program, store: Store, session: Session, sent: list[str]) -> str:
    """Return what is wrong with the log of a session, `CONTINUED` if nothing is."""
    del sent[:]
    done = program.resume(store, session)

    if done is None:
        return LEFT_OUT
    if isinstance(done, str):
        return f"NOT CONTINUED: {done}"
    if not sent:
        return "NOT CONTINUED: no request"
    # Not as text: the ends of lines inside of a log stay as they are.
    if not done.log.read_bytes().startswith(done.written.encode()):
        return "THE LOG WAS CHANGED"

    request = done.sent("\n".join(texts_in(json.loads(sent[-1]))))
    expected = said(store, session, is_typed=done.is_typed)
    texts = (done.sent(as_sent(text)) for text in expected)
    missing = [text for text in texts if text not in request]
    if missing:
        return f"{len(missing)} TEXTS WERE NOT SENT: {missing[0][:80]!r}"
    return came_back(done.log)


def said(store: Store, session: Session, *, is_typed: bool) -> list[str]:
    """Return the texts that a model must be sent: those of prompts and complete answers.

    With *is_typed* those that a program added to a prompt are left out.
    """
    complete = ("stop", "tool-calls", "length", None)
    return [
        part.text
        for message in store.context(session).messages
        if message.role in ("user", "assistant") and message.finish in complete
        for part in message.parts
        if part.type == "text" and part.text and part.text.strip()
        if not (is_typed and part.data.get("synthetic"))
    ]


def came_back(log: Path) -> str:
    """Import a continued log; return what is wrong with it, else `CONTINUED`."""
    with Store.open(":memory:") as store:
        found = [item for read in find(log) for item in store.ingest(read.read())]
        if len(found) != 1 or not isinstance(found[0], Imported):
            return f"DID NOT COME BACK: {found}"
        messages = store.messages(found[0].id)
        answers = [message.text for message in messages if message.role == "assistant"]
    last = answers[-1:]
    return CONTINUED if last == [ANSWER] else f"DID NOT COME BACK: {last}"


def as_sent(text: str) -> str:
    """Return a text as programs send it: stripped, with halves of characters replaced."""
    return text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts of a request, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def arguments() -> argparse.Namespace:
    """Return the arguments of a script: where to install, and which stores to take."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tools", type=Path, help="keep the installed program here, for the next run"
    )
    parser.add_argument(
        "stores", nargs="*", type=Path, help="stores to take instead of those found"
    )
    return parser.parse_args()


def continue_all(prepare: Callable[[Path, Path, Provider], Program]) -> int:
    """Continue every session; 1 if one of them cannot be.

    *prepare* makes the program of a folder with its installation, a home that is empty
    and a provider.
    """
    asked = arguments()
    found: Counter[bool] = Counter()
    provider = Provider()
    with contextlib.ExitStack() as stack:
        temporary = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-"))
        )
        stack.enter_context(provider.serving())
        home = temporary / "home"
        home.mkdir()
        program = prepare(asked.tools or temporary / "tools", home, provider)
        for number, (name, path) in enumerate(stores(asked.stores, "*")):
            store = stack.enter_context(Store.open(temporary / f"{number}.db"))
            fill(store, path)
            for session in sessions_of(store):
                outcome = verify(program, store, session, provider.sent)
                print(f"{name:20}  {session.id:32}  {outcome}", flush=True)
                if outcome != LEFT_OUT:
                    found[outcome == CONTINUED] += 1
    print(f"\n{found[True]} continued, {found[False]} not")
    return 1 if found[False] else 0
