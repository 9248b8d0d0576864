"""``export``: sessions written in another format, to stdout, a file or a folder."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli.damage import PROBLEMS_FOUND, say_unreadable
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.opening import Options, open_store, say, terminal, typed_yes
from sessiondb.cli.progress import counted
from sessiondb.cli.rm import chosen
from sessiondb.cli.text import count
from sessiondb.engine import outputs
from sessiondb.engine.outputs import check_place
from sessiondb.errors import (
    UNREADABLE,
    ConflictError,
    CorruptionError,
    InvalidInputError,
)
from sessiondb.formats.registry import writable

if TYPE_CHECKING:
    from sessiondb.formats import Exporter
    from sessiondb.model import Document, Export, Message, Session
    from sessiondb.store import Store

#: The names of stdout. A link to it cannot be replaced, and must not be.
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: A session of no more text is read once, a longer one twice.
HELD_CHARACTERS = 16_000_000


@click.command("export")
@click.argument("refs", type=shared.REF, metavar="[REF]...", nargs=-1)
@shared.filters()
@click.option("--to", "form", metavar="F", required=True,
              help=f"{shared.either(writable())}.",
              shell_complete=shared.one_of(writable))  # fmt: skip
@click.option("-o", "--output", "target", type=shared.PATH, metavar="FILE|DIR",
              help="Default, and -: stdout.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--with-children", is_flag=True, help="Their forks and subagents too.")
@click.option(
    "--detail", metavar="D", help="Of markdown and html: brief, normal or full."
)
@click.option(
    "--redact", is_flag=True, help="Without what looks like a key or a password."
)
@click.pass_obj
def export_command(
    options: Options,
    *,
    refs: tuple[str, ...],
    where: shared.Where,
    form: str,
    target: str | None,
    force: bool,
    with_children: bool,
    detail: str | None,
    redact: bool,
) -> int:
    """Write sessions in format F: those named, or all that the filters choose.

    One session goes to stdout or FILE, several to DIR; in our own log (jsonl)
    several are one FILE as well, compressed if it ends with .gz. What the format
    cannot hold, and each session that cannot be read (exit 4), is reported on
    stderr. --redact knows shapes of secrets, not meanings.
    """
    from sessiondb.formats import exporter

    if refs and where != shared.Where():
        raise click.UsageError("give sessions or filters, not both")
    if not refs and not where.narrows:
        raise click.UsageError(
            "name the sessions to export, or filters that choose them"
        )
    to = exporter(form)
    if detail is not None and detail not in to.details:
        raise click.UsageError(f"--detail of {form} is one of {', '.join(to.details)}")
    if target in STDOUT:
        target = None
    file = None if target is None or _is_folder(target) else Path(target)
    if file is not None and check_place(file):
        force = may_replace([file], force)
    with open_store(options) as store:
        from sessiondb.maintenance.bundle import parents_first
        from sessiondb.maintenance.portable import portable_in

        name = terminal()
        named = (store.session(ref, terminal=name) for ref in refs)
        sessions = parents_first(
            store, named if refs else chosen(store, where), with_children
        )
        if not refs:
            _say_what_is_left(store, where, {session.id for session in sessions})
        together = to.together and (target is None or file is not None)
        several = len(sessions) > 1 and not together
        if several and (target is None or (file is not None and file.is_file())):
            raise click.UsageError(f"{len(sessions)} sessions need a folder: -o DIR")
        readable = Readable(store, sessions, to, redact)
        # No bar where the documents themselves are shown.
        quiet = target is None and sys.stdout.isatty()
        found = readable if form != "jsonl" else portable_in(readable, target)
        with contextlib.closing(
            counted(found, "export", len(sessions), quiet=quiet)
        ) as shown:
            documents = to.write(
                shown, detail=detail or to.details[0], together=together
            )
            if target is None:
                _to_one(documents, sys.stdout.buffer)
            elif file is None or several:
                written = _to_folder(documents, Path(target), force)
                say(f"wrote {count(written, 'file')} to {target}")
            else:
                _to_file(documents, file, force)
    return PROBLEMS_FOUND if readable.left_out else 0


def _say_what_is_left(store: Store, where: shared.Where, taken: set[str]) -> None:
    """Say how many sessions only ``--subagents`` and ``--archived`` would have added."""
    for line in [] if taken else unknown_names(store, where):
        say(line)
    wider = replace(where, archived=True, subagents=True)
    if wider == where:
        return
    left = [session for session in chosen(store, wider) if session.id not in taken]
    subagents = sum(s.relation == "subagent" and not where.subagents for s in left)
    archived = len(left) - subagents
    found = [f"{count(subagents, 'subagent')} (--subagents)"] if subagents else []
    found += [f"{archived:,} archived (--archived)"] if archived else []
    if found:
        say(f"left out: {', '.join(found)}")


def _is_folder(target: str) -> bool:
    return target.endswith("/") or Path(target).is_dir()


class Readable:
    """The exports of sessions, each read through before the first byte of it is written.

    So one that cannot be read is left out completely, and named on stderr; the
    others are written. ``left_out`` holds the ids of those.
    """

    def __init__(
        self, store: Store, sessions: Iterable[Session], to: Exporter, redact: bool
    ) -> None:
        self._store, self._sessions = store, sessions
        self._to, self._redact = to, redact
        self.left_out: list[str] = []

    def __iter__(self) -> Iterator[Export]:
        from sessiondb.formats.redact import redacted

        for session in self._sessions:
            try:
                export = self._read(session)
            except UNREADABLE as error:
                say_unreadable(session, error)
                self.left_out.append(session.id)
                continue
            yield redacted(export) if self._redact else export

    def _read(self, session: Session) -> Export:
        """Return a session that can be read completely; raises one of `UNREADABLE`."""
        damage = self._store.read_past_damage(lambda _: None)
        try:
            with damage.suspended():
                return self._read_through(session)
        except CorruptionError:
            if not damage.copy().is_complete(session.id):
                raise
        return self._read_through(session)

    def _read_through(self, session: Session) -> Export:
        export = self._store.export(session, **self._to.read)
        held: list[Message] = []
        size = 0
        for message in export.messages:
            size += 1_000 + sum(
                len(part.text or part.input_json or "") for part in message.parts
            )
            if size <= HELD_CHARACTERS:
                held.append(message)
        if size <= HELD_CHARACTERS:
            return replace(export, messages=held)
        return self._store.export(session, **self._to.read)


def _to_one(documents: Iterable[Any], out: IO[bytes]) -> None:
    from sessiondb.model import Loss

    names: set[str] = set()
    for item in documents:
        if isinstance(item, Loss):
            _tell(item)
            continue
        if names and not item.name.endswith(".jsonl"):
            raise InvalidInputError(
                "this format makes several files", hint="add -o DIR/"
            )
        names.add(item.name)
        _copy(item, out)


def _to_file(documents: Iterable[Any], path: Path, replace: bool) -> None:
    with (
        outputs.writing(path, replace=replace) as file,
        outputs.packed(file, path) as out,
    ):
        _to_one(documents, out)


def _to_folder(documents: Iterable[Any], path: Path, force: bool) -> int:
    """Write a file for each document; return how many. Existing ones need *force* or a yes."""
    from sessiondb.model import Loss

    with outputs.Folder(path) as folder:
        for item in documents:
            if isinstance(item, Loss):
                _tell(item)
                continue
            with (
                folder.writing(item.name) as file,
                outputs.packed(file, Path(item.name)) as out,
            ):
                _copy(item, out)
        taken = folder.taken()
        replace = not taken or may_replace(taken, force)
        return folder.settle(replace=replace)


def may_replace(taken: list[Path], force: bool) -> bool:
    """Return True if existing files may be replaced; raises `ConflictError` if not."""
    more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
    if force or (sys.stdin.isatty() and typed_yes(f"replace {taken[0]}{more}")):
        return True
    exist = "exist" if more else "exists"
    raise ConflictError(
        f"{taken[0]}{more} already {exist}",
        hint="name another file, or add --force to replace it",
    )


def _copy(item: Document, out: IO[bytes]) -> None:
    for chunk in item.chunks:
        out.write(chunk.encode("utf-8", "surrogatepass"))


def _tell(loss: Any) -> None:
    say(f"{loss.session_id}: {loss.why}")
