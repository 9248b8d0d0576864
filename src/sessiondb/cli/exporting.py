"""``export``: sessions written in another format, to stdout, a file or a folder."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from sessiondb.cli import losses, redacting
from sessiondb.cli import options as shared
from sessiondb.cli.around import origin_of, with_results
from sessiondb.cli.consent import can_ask, typed_yes
from sessiondb.cli.costs import usage_until, usages_of
from sessiondb.cli.emptiness import no_sessions
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.progress import counted
from sessiondb.cli.protocol import exit_code
from sessiondb.cli.text import count, one_line, short_id, title_of
from sessiondb.dataclass import dataclass, replace
from sessiondb.engine import outputs
from sessiondb.errors import (
    UNREADABLE,
    ConflictError,
    CorruptionError,
    InvalidInputError,
    SessionDBError,
)
from sessiondb.formats.registry import writable
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.formats import Exporter
    from sessiondb.formats.redact import Redaction
    from sessiondb.model import Document, Export, Loss, Message, Session
    from sessiondb.store import Store

#: The names of stdout. A link to it cannot be replaced, and must not be.
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: The formats that ``--open`` shows.
READABLE_IN_BROWSER = ("html", "markdown")
#: The file of a folder that lists the others.
INDEX = "index.html"
#: A session of no more text is read once, a longer one twice.
HELD_CHARACTERS = 16_000_000


@click.command("export")
@click.argument("refs", type=shared.ADDRESS, metavar="[REF]...", nargs=-1)
@shared.filters
@shared.format_option("--to", "form", of=writable, required=True)
@click.option(
    "-o",
    "--output",
    "written",
    type=shared.PATH,
    metavar="FILE|DIR",
    help="Where to write (default, and -: stdout).",
)
@click.option(
    "--open", "opened", is_flag=True, help="For html, markdown: show it in the browser."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--with-children", is_flag=True, help="Include their forks and subagents."
)
@click.option(
    "--detail",
    metavar="D",
    help=f"In html, markdown: {shared.DETAIL_HELP} For codex: full or complete.",
)
@redacting.redaction
@click.pass_obj
def export_command(
    options: Options,
    *,
    refs: tuple[str, ...],
    filters: shared.FilterOptions,
    form: str,
    written: str | None,
    opened: bool,
    force: bool,
    with_children: bool,
    detail: str | None,
    removal: redacting.RedactionOptions,
) -> int:
    """Write sessions in format F: those named, or all that the filters choose.

    One session goes to stdout or FILE, several to DIR; in our own log (jsonl)
    several are one FILE as well, compressed if its name ends with .gz. Pages and
    Markdown in DIR are named by day and title, and index.html lists the pages.
    --open without -o writes to a new temporary folder. REF#M is the session as it
    was at message M: what leads to it, and nothing later. Anything the format
    cannot represent, and each session that cannot be read (exit 4), is reported
    on stderr. --redact recognises secrets by their shape, not by their meaning;
    it reports the kind, number, places and first characters of what it removed,
    with --dry-run on stdout and without writing anything.
    """
    from sessiondb.formats import exporter

    target_format = exporter(form)
    selection = shared.Selection(refs, filters, target_format.is_complete)
    selection.check("export")
    detail = target_format.details[0] if detail is None else detail
    if detail not in target_format.details:
        raise click.UsageError(
            f"--detail of {form} is one of {', '.join(target_format.details)}"
        )
    if opened and form not in READABLE_IN_BROWSER:
        raise click.UsageError(f"--open shows html and markdown, not {form}")
    to_stdout = not opened and (written is None or written in STDOUT)
    removal.check(to_stdout=to_stdout, opened=opened)
    destination = Destination.named(written, opened=opened)
    # Asked first: a session may take long to read.
    force = removal.dry_run or destination.may_replace(force)

    with open_store(options) as store:
        from sessiondb.maintenance.bundle import parents_first
        from sessiondb.maintenance.portable import portable_in

        places = list(selection.places(store))
        ends = _ends_of(store, places, with_children)
        chosen = [session for session, _ in places]
        sessions = parents_first(store, chosen, with_children)
        if not refs:
            for line in _left_out(store, selection, {s.id for s in sessions}):
                say(line)
        if not removal.dry_run:
            destination = destination.holding(len(sessions), target_format)

        redaction = removal.make_redaction()
        readable = Readable(store, sessions, ends, target_format, redaction)
        if not refs and target_format.is_complete:
            readable.left_out += _half_imported(store, filters)
        exports: Iterable[Export] = readable
        if form == "jsonl":
            exports = portable_in(readable, destination.path)
        # No bar where the documents themselves are shown.
        quiet = destination.path is None and sys.stdout.isatty()
        shown = counted(exports, "export", len(sessions), quiet=quiet)
        with contextlib.closing(shown):
            together = target_format.together and not destination.is_folder
            documents = target_format.write(shown, detail=detail, together=together)
            first = None
            if removal.dry_run:
                _read_to_the_end(documents)
            else:
                first = destination.write(documents, force)

    removal.show(redaction, readable.left_out)
    if opened and first is not None:
        show_in_browser(first)
    return exit_code(readable.left_out)


def _ends_of(
    store: Store, places: Iterable[tuple[Session, Message | None]], with_children: bool
) -> dict[str, Message]:
    """Return by session the message at which it ends, if an address named one.

    An answer keeps the results of its calls, as in a fork. Raises `click.UsageError`
    for a session with two ends, or with children that have none.
    """
    ends: dict[str, Message | None] = {}
    for session, end in places:
        if ends.setdefault(session.id, end) != end:
            raise click.UsageError(
                f"{short_id(session.id)} is exported once: name it with one end"
            )
        if end is not None and with_children:
            raise click.UsageError("REF#M and --with-children exclude each other")
        if end is not None:
            ends[session.id] = end
    return {
        name: with_results(store, name, end)
        for name, end in ends.items()
        if end is not None
    }


def _read_to_the_end(documents: Iterable[Document | Loss]) -> None:
    """Make the documents and drop them; report what the format cannot represent."""
    for document in losses.documents(documents):
        for _ in document.encoded():
            pass


def show_in_browser(path: Path) -> None:
    """Open a file in the browser of the desktop, or of BROWSER; raises an error.

    `SessionDBError` if there is no browser that takes it.
    """
    import webbrowser

    place = path.absolute()
    if not webbrowser.open(place.as_uri()):
        raise SessionDBError(
            f"no browser opened {place}", hint="set BROWSER, or open the file yourself"
        )
    say(f"opened {place}")


#: Why a session whose import was interrupted is not exported.
_NOT_CLOSED = f"its import did not end; {command('import')} completes it"


def _half_imported(store: Store, filters: shared.FilterOptions) -> list[str]:
    """Report incomplete sessions, which no list has, and return their ids.

    Their columns are not complete, so only a choice of everything includes them.
    """
    if not filters.everywhere or filters.filtered:
        return []

    incomplete = store.half_imported()
    for name in incomplete:
        say(f"left out: {name}: {_NOT_CLOSED}")
    return incomplete


def _left_out(
    store: Store, selection: shared.Selection, taken: set[str]
) -> Iterator[str]:
    """Yield a line if nothing was exported, and one on what other filters add."""
    filters = selection.filters
    if not taken:
        yield no_sessions(store, filters)
    wider = replace(filters, archived=True, subagents=True)
    if wider == filters:
        return

    every = replace(selection, filters=wider).sessions(store)
    left = Counter(session.relation for session in every if session.id not in taken)
    # A subagent that is archived too is only counted as the first.
    subagents = 0 if filters.subagents else left["subagent"]
    archived = left.total() - subagents

    left_out = {
        f"{count(subagents, 'subagent')} (--subagents)": subagents,
        f"{archived:,} archived (--archived)": archived,
    }
    if left:
        yield f"left out: {', '.join(filter(left_out.get, left_out))}"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an export goes: stdout (no *path*), a file, or a folder of files."""

    path: Path | None
    is_folder: bool = False

    @classmethod
    def named(cls, typed: str | None, *, opened: bool = False) -> Destination:
        """Return the destination that *typed* is; a folder exists or ends with a slash.

        One that is *opened* has a path: without a name a new folder of this user.
        """
        if typed is None and opened:
            return cls(Path(tempfile.mkdtemp(prefix="sessiondb-")), is_folder=True)
        if opened and typed in STDOUT:
            raise click.UsageError("--open needs a file: -o FILE, or no -o")
        if typed is None or typed in STDOUT:
            return cls(None)
        path = Path(typed)
        return cls(path, typed.endswith("/") or path.is_dir())

    def may_replace(self, force: bool) -> bool:
        """Return *force*, or True if the user agrees to replace the file.

        Asked before anything is read. Raises `ConflictError` without consent.
        """
        if self.path is None or self.is_folder or not outputs.check_place(self.path):
            return force
        return may_replace([self.path], force)

    def holding(self, number: int, target_format: Exporter) -> Destination:
        """Return the destination of *number* sessions.

        Several are a folder or one document.
        Raises `click.UsageError` if they need a folder, and this cannot be one.
        """
        if number <= 1 or self.is_folder:
            return self
        if target_format.together:
            # A name without an ending is not that of a page.
            is_page = self.path is None or self.path.suffix or self.path.exists()
            if is_page or target_format.is_complete:
                return self
        if self.path is None or self.path.is_file():
            raise click.UsageError(f"{number} sessions need a folder: -o DIR")
        return replace(self, is_folder=True)

    def write(self, documents: Iterable[Document | Loss], force: bool) -> Path | None:
        """Write the documents, and report what the format cannot represent.

        Return the file to begin with: the index of a folder, else its first file; None
        for stdout, and if there is none.
        """
        if self.path is None:
            _to_one(documents, sys.stdout.buffer)
            return None
        if not self.is_folder:
            _to_file(documents, self.path, force)
            return self.path

        names = _to_folder(documents, self.path, force)
        say(f"wrote {count(len(names), 'file')} to {self.path}")
        if not names:
            return None
        first = INDEX if INDEX in names else names[0]
        return self.path / first


class Readable:
    """The exports of sessions, each read through before its first byte is written.

    A session that cannot be read is left out completely and reported on stderr; it
    does not stop the others. ``left_out`` holds the ids of those.
    """

    def __init__(
        self,
        store: Store,
        sessions: Sequence[Session],
        ends: Mapping[str, Message],
        target_format: Exporter,
        redaction: Redaction | None,
    ) -> None:
        self._store, self._sessions, self._ends = store, sessions, ends
        self._to, self._redaction = target_format, redaction
        self.left_out: list[str] = []

    def __iter__(self) -> Iterator[Export]:
        if self._redaction is not None:
            for session in self._sessions:
                with contextlib.suppress(*UNREADABLE):
                    self._redaction.learn(self._read_completely(session))

        for session in self._sessions:
            try:
                export = self._read_completely(session)
            except UNREADABLE as error:
                self.left_out.append(session.id)
                reason = one_line(str(error))
                # A title may have a secret that is not known before all is read.
                title = "" if self._redaction else f" {title_of(session)}"
                say(f"left out: {short_id(session.id)}{title}: {reason}")
                continue
            yield export if self._redaction is None else self._redaction.redact(export)

    def _read_completely(self, session: Session) -> Export:
        """Return a session that can be read completely; raises one of `UNREADABLE`."""
        # A database of a server cannot be read past damage.
        if self._store.path is None:
            return self._read_through(session)
        damage = self._store.read_past_damage(lambda _: None)
        try:
            with damage.suspended():
                return self._read_through(session)
        except CorruptionError:
            # Part of the file is damaged; this session may still be complete.
            if not damage.is_complete(session.id):
                raise
        return self._read_through(session)

    def _read_through(self, session: Session) -> Export:
        """Return the export of a session after all of its messages were read once."""
        export = self._export(session)
        messages: list[Message] = []
        size = 0
        for message in export.messages:
            size += 1_000
            for part in message.parts:
                size += len(part.text or part.input_json or "")
            if size <= HELD_CHARACTERS:
                messages.append(message)

        if size <= HELD_CHARACTERS:
            return replace(export, messages=messages)
        # Too long to be held: it is read again while it is written.
        return self._export(session)

    def _export(self, session: Session) -> Export:
        end = self._ends.get(session.id)
        if end is not None:
            return self._export_until(session, end)
        export = self._store.export(session, **self._to.read)
        if self._to.shows_cost:
            export = replace(
                export,
                usage=usages_of(self._store, [session]).get(session.id),
                origin=origin_of(self._store, session),
                subagents=tuple(self._store.subagents(session)),
            )
        return export

    def _export_until(self, session: Session, end: Message) -> Export:
        reading = {**self._to.read, "branches": False}
        export = self._store.export(session, at=end, **reading)
        if self._to.shows_cost:
            path = self._store.export(session, at=end).messages
            seqs = {message.seq for message in path}
            usage = usage_until(self._store, export.session, seqs)
            origin = origin_of(self._store, session)
            export = replace(export, usage=usage, origin=origin)
        return export


def _to_one(documents: Iterable[Document | Loss], out: IO[bytes]) -> None:
    is_first = True
    for document in losses.documents(documents):
        # Logs can follow each other in one file; no other document can.
        if not is_first and not document.name.endswith(".jsonl"):
            raise InvalidInputError(
                "this format writes several files", hint="add -o DIR/"
            )
        is_first = False
        _copy_document(document, out)


def _to_file(documents: Iterable[Document | Loss], path: Path, force: bool) -> None:
    with (
        outputs.writing(path, replace=force) as file,
        outputs.packed(file, path) as out,
    ):
        _to_one(documents, out)


def _to_folder(
    documents: Iterable[Document | Loss], path: Path, force: bool
) -> list[str]:
    """Write a file for each document; return their names.

    Existing files are replaced with *force* or a typed yes.
    """
    names = []
    with outputs.Folder(path) as folder:
        for document in losses.documents(documents):
            with (
                folder.writing(document.name) as file,
                outputs.packed(file, Path(document.name)) as out,
            ):
                _copy_document(document, out)
            names.append(document.name)

        # All documents are complete by now: a failure above replaces no file.
        taken = folder.taken()
        folder.settle(replace=not taken or may_replace(taken, force))
    return names


def may_replace(taken: list[Path], force: bool) -> bool:
    """Return True if existing files may be replaced; raises `ConflictError` if not."""
    first, more = taken[0], len(taken) - 1
    names = f"{first} and {more} more" if more else f"{first}"
    if force or (can_ask() and typed_yes(f"replace {names}")):
        return True
    raise ConflictError(
        f"{names} already {'exist' if more else 'exists'}",
        hint="name another file, or add --force to replace it",
    )


def _copy_document(document: Document, out: IO[bytes]) -> None:
    out.writelines(document.encoded())
