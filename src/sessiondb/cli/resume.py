"""``resume``: continue a session in the program it came from, or take it to another.

The program replaces this process, in the session's own directory. Its arguments are
ids that came from other people's files, so an id that could be read as an option is
refused, and no shell is involved.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, current, find, open_store, say
from sessiondb.cli.text import short_id
from sessiondb.errors import InvalidInputError, NotFoundError, SessionDBError, abridged
from sessiondb.formats.registry import resumable
from sessiondb.hints import command, word

if TYPE_CHECKING:
    from sessiondb.model import Session
    from sessiondb.store import Store

#: Where a session can be taken: a format that we write, and the program imports.
TARGETS = ("opencode", "opencode2")


@dataclass(frozen=True, slots=True)
class Plan:
    """Run *command* in *directory*, after *transfer* has imported *text* in *file*.

    *file* and *transfer* are empty if the program has the session already.
    """

    session: Session
    directory: str
    command: list[str]
    transfer: list[str] = field(default_factory=list)
    file: str = ""
    text: str = ""

    def steps(self, database: Path, form: str) -> Iterator[list[str]]:
        """Yield the lines that a user would type to do all this by hand."""
        if self.transfer:
            ours = ["sessiondb", "--db", str(database), "export", self.session.id]
            yield [*ours, "--to", form, "-o", self.file]
        yield ["cd", self.directory]
        if self.transfer:
            yield self.transfer
        yield self.command


@click.command("resume")
@click.argument("ref", type=shared.REF, required=False)
@click.option(
    "--in",
    "into",
    metavar="TOOL",
    type=click.Choice(sorted({*resumable(), *TARGETS})),
    help="Take it to this program (opencode, opencode2) and continue there.",
)
@click.option(
    "--print", "printing", is_flag=True, help="Print the commands, run nothing."
)
@shared.as_json
@click.pass_obj
def resume_command(
    options: Options,
    *,
    ref: str | None,
    into: str | None,
    printing: bool,
    as_json: bool,
) -> None:
    """Continue session REF (default: the last one used here) where it came from.

    --in opencode takes any session to OpenCode, in the generation that it has
    there, else 1.x; --in opencode2 to OpenCode 2. It becomes a new session there,
    and this one stays as it is. --json prints the same as --print, as JSON.
    """
    with open_store(options) as store:
        session = find(store, ref)
        plan = _planned(store, session, into)
        steps = list(plan.steps(file_of(store), into or session.source))
    if printing or as_json:
        _print(plan, steps, as_json)
    else:
        _run(plan)


def _planned(store: Store, session: Session, into: str | None) -> Plan:
    came_from_there = into == session.source and session.time_imported is not None
    if into is None or came_from_there:
        if session.time_detached is not None:
            copies = command("fork", session.id)
            say(
                f"it was continued here, which {session.source} does not see; "
                f"{copies} makes a copy that --in can take there"
            )
        return Plan(session, session.directory, _command(session))

    # A format that sessiondb writes and a program that imports are both needed.
    if into not in TARGETS:
        raise InvalidInputError(
            f"sessiondb cannot write sessions that {into} imports",
            hint=_elsewhere(session),
        )
    return _transferred(store, session, into)


def _elsewhere(session: Session) -> str:
    return f"{command('resume', session.id, '--in', TARGETS[0])} continues it there"


def _command(session: Session) -> list[str]:
    """Return the command that continues a session where it came from.

    Raises `InvalidInputError`.
    """
    name = session.source_id
    if name is None or session.time_imported is None:
        raise InvalidInputError(
            f"{short_id(session.id)} was not imported from another program",
            hint=_elsewhere(session),
        )

    pattern = resumable().get(session.source)
    # From other people's files: it must not be read as an option, or as a path.
    if pattern is None or name.startswith("-") or "/" in name:
        raise InvalidInputError(
            f"{session.source} has no command that continues {abridged(name)}",
            hint=_elsewhere(session),
        )
    return _filled(pattern.split(), "{}", name)


def _filled(words: Iterable[str], blank: str, value: str) -> list[str]:
    """Return *words* with *value* for each that is *blank*."""
    return [value if word == blank else word for word in words]


def _transferred(store: Store, session: Session, form: str) -> Plan:
    """Return the plan that takes a session to OpenCode."""
    from sessiondb.formats import exporter
    from sessiondb.formats.protocol import FILE
    from sessiondb.model import Document

    to = exporter(form)
    assert to.take_in is not None, f"{form} is one of TARGETS"
    text = ""
    for item in to.write([store.export(session, **to.read)], detail=to.details[0]):
        if isinstance(item, Document):
            text = "".join(item.chunks)
        else:
            say(f"{item.session_id}: {item.why}")

    taken = to.take_in(text, session.directory)
    file = str(Path(tempfile.gettempdir()) / f"sessiondb-{session.id}.json")
    transfer = _filled(taken.take_in, FILE, file)
    return Plan(session, session.directory, taken.resume, transfer, file, text)


def _print(plan: Plan, steps: list[list[str]], as_json: bool) -> None:
    if as_json:
        from sessiondb.model import session_json

        found = {"session": session_json(plan.session), "directory": plan.directory}
        output.write_json(found | {"commands": steps})
        return
    output.write(" &&\n".join(" ".join(map(word, step)) for step in steps) + "\n")


def _run(plan: Plan) -> NoReturn:
    """Become the program; raises `SessionDBError` if it or the directory is missing."""
    program = plan.command[0]
    if shutil.which(program) is None:
        raise SessionDBError(
            f"{program} is not installed: it is not on PATH",
            hint=f"install it; {current().again('--print')} shows what would be run",
        )
    try:
        os.chdir(plan.directory)
    except OSError as error:
        moves = command("relink", plan.directory, ".")
        raise NotFoundError(
            f"the directory of the session cannot be entered: {plan.directory}",
            hint=f"if it was moved here, {moves} moves its sessions along",
        ) from error

    # Some programs trust PWD more than getcwd(), to keep symbolic links as typed.
    os.environ["PWD"] = plan.directory
    if plan.transfer:
        _transfer(plan)
    sys.stdout.flush()
    os.execvp(program, plan.command)  # noqa: S606  no shell is meant


def _transfer(plan: Plan) -> None:
    """Let the program import the session, from a file that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix="sessiondb-", suffix=".json")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(plan.text.encode("utf-8", "surrogatepass"))
        transfer = _filled(plan.transfer, plan.file, name)
        ended = subprocess.run(transfer, stdout=sys.stderr, check=False)  # noqa: S603
    finally:
        Path(name).unlink()

    if ended.returncode:
        # "session import" is a command of the second generation.
        other = TARGETS[0] if "session" in plan.transfer else TARGETS[1]
        tries = command("resume", plan.session.id, "--in", other)
        failed = f"`{' '.join(plan.transfer[:-1])}` failed"
        raise SessionDBError(
            f"{failed} with exit code {ended.returncode}",
            hint=f"another generation may be installed: {tries}",
        )
