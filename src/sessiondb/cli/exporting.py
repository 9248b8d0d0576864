"""``export``: sessions written in another format, to stdout, a file or a folder."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli.opening import Options, open_store, say, terminal
from sessiondb.cli.progress import counted
from sessiondb.cli.rm import chosen
from sessiondb.cli.text import count
from sessiondb.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from sessiondb.formats import Writer
    from sessiondb.model import Document, Export, Session, Tree
    from sessiondb.store import Store


@click.command("export")
@click.argument("refs", type=shared.REF, metavar="[REF]...", nargs=-1)
@shared.filters()
@click.option("--to", "form", metavar="F", required=True,
              help="html, markdown, jsonl, opencode, opencode2 or opencode-tree.",
              shell_complete=shared.one_of("WRITERS"))  # fmt: skip
@click.option("-o", "--output", "target", type=shared.PATH, metavar="FILE|DIR",
              help="Default: stdout.")  # fmt: skip
@click.option("--with-children", is_flag=True, help="Their forks and subagents too.")
@click.option("--detail", metavar="D", help="Of markdown and html: brief, normal or full.")
@click.option("--redact", is_flag=True, help="Without what looks like a key or a password.")
@click.pass_obj
def export_command(
    options: Options,
    *,
    refs: tuple[str, ...],
    where: shared.Where,
    form: str,
    target: str | None,
    with_children: bool,
    detail: str | None,
    redact: bool,
) -> None:
    """Write sessions in format F: those named, or all that the filters choose.

    One session goes to stdout or FILE, several to DIR; in our own log (jsonl)
    several are one FILE as well, compressed if it ends with .gz. What the format
    cannot hold is told on stderr. --redact knows shapes of secrets, not meanings.
    """
    from sessiondb.formats import writer

    if refs and where != shared.Where():
        raise click.UsageError("give sessions or filters, not both")
    if not refs and not where.narrows:
        raise click.UsageError("name the sessions to export, or filters that choose them")
    to = writer(form)
    if detail is not None and detail not in to.DETAILS:
        raise click.UsageError(f"--detail of {form} is one of {', '.join(to.DETAILS)}")
    with open_store(options) as store:
        name = terminal()
        named = (store.session(ref, terminal=name) for ref in refs)
        sessions = parents_first(store, named if refs else chosen(store, where), with_children)
        if not refs:
            _say_what_is_left(store, where, {session.id for session in sessions})
        exports = _exports(store, sessions, to, redact)
        single = target is not None and not _is_folder(target)
        together = to.TOGETHER and (target is None or single)
        if len(sessions) > 1 and not together and (target is None or Path(target).is_file()):
            raise click.UsageError(f"{len(sessions)} sessions need a folder: -o DIR")
        into = None if target is None or (single and (together or len(sessions) == 1)) else target
        # No bar where the documents themselves are shown.
        quiet = target is None and sys.stdout.isatty()
        with contextlib.closing(counted(exports, "export", len(sessions), quiet=quiet)) as shown:
            documents = to.write(shown, detail=detail or to.DETAILS[0], together=together)
            if into is None:
                _to_one(documents, target)
            else:
                say(f"wrote {count(_to_folder(documents, Path(into)), 'file')} to {into}")


def _say_what_is_left(store: Store, where: shared.Where, taken: set[str]) -> None:
    """Say how many sessions only ``--subagents`` and ``--archived`` would have brought too."""
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


def _exports(
    store: Store, sessions: Iterable[Session], to: Writer, redact: bool
) -> Iterator[Export]:
    from sessiondb.formats.redact import redacted

    for session in sessions:
        export = store.export(session.id, **to.READ)
        yield redacted(export) if redact else export


def parents_first(
    store: Store, sessions: Iterable[Session], with_children: bool = False
) -> list[Session]:
    """Return sessions, each once, families together and parents first.

    *with_children* brings all below them too.
    """
    wanted: dict[str, Session] = {}
    for session in sessions:
        if session.id in wanted:
            continue
        found = _below(store.tree(session), session.id) if with_children else [session]
        wanted |= {item.id: item for item in found}
    ordered: dict[str, Session] = {}
    for session in wanted.values():
        chain = [session]
        while (parent := chain[-1].parent_id) in wanted and parent not in ordered:
            chain.append(wanted[parent or ""])
        ordered |= {item.id: item for item in reversed(chain)}
    families: dict[str, list[Session]] = {}
    for session in ordered.values():
        families.setdefault(session.root_id, []).append(session)
    return [session for family in families.values() for session in family]


def _below(tree: Tree, session_id: str) -> list[Session]:
    nodes = [tree]
    for node in nodes:
        nodes += node.children
    top = [next(node for node in nodes if node.session.id == session_id)]
    for node in top:
        top += node.children
    return [node.session for node in top]


def _to_one(documents: Iterable[Any], target: str | None) -> None:
    from sessiondb.model import Loss

    names: set[str] = set()
    with contextlib.ExitStack() as stack:
        out = sys.stdout.buffer if target is None else stack.enter_context(_named(Path(target)))
        for item in documents:
            if isinstance(item, Loss):
                _tell(item)
                continue
            if names and not item.name.endswith(".jsonl"):
                raise InvalidInputError("this format makes several files", hint="add -o DIR/")
            names.add(item.name)
            _copy(item, out)


def _named(path: Path) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open the FILE that somebody named; a pipe or a device is written to, never replaced."""
    if path.exists() and not path.is_file():
        return path.open("wb")
    path = Path(os.path.realpath(path))  # what a link names is replaced, the link stays
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", hint="make it first")
    return replacing(path)


def _to_folder(documents: Iterable[Any], folder: Path) -> int:
    from sessiondb.model import Loss

    written = 0
    for item in documents:
        if isinstance(item, Loss):
            _tell(item)
            continue
        name = PurePosixPath(item.name)
        if name.is_absolute() or ".." in name.parts or "\0" in item.name:
            raise InvalidInputError(f"not a name of a file: {item.name!r}")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            _copy(item, out)
        written += 1
    return written


def _copy(item: Document, out: IO[bytes]) -> None:
    for chunk in item.chunks:
        out.write(chunk.encode("utf-8", "surrogatepass"))


def _tell(loss: Any) -> None:
    say(f"{loss.session_id}: {loss.why}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that appears whole or not at all, for its owner alone; ``.gz`` is packed."""
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if path.suffix == ".gz":
                # Without a name and a time in it: the same sessions are the same bytes.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def write_bundle(store: Store, sessions: Iterable[Session], target: str) -> None:
    """Write sessions to one log, from which an import brings them back."""
    from sessiondb.formats import writer

    to, found = writer("jsonl"), parents_first(store, sessions)
    _to_one(to.write(_exports(store, found, to, False), detail="full", together=True), target)
    say(f"wrote {count(len(found), 'session')} to {target}; `import --restore` brings them back")
