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
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from sessiondb.cli import losses, output
from sessiondb.cli import options as shared
from sessiondb.cli.around import origin_of, with_results
from sessiondb.cli.opening import (
    Options,
    current,
    find_place,
    open_store,
    remember,
    rows_of,
    say,
)
from sessiondb.cli.resume_model import with_model
from sessiondb.cli.resume_plan import Plan
from sessiondb.cli.text import count, short_id
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import replace
from sessiondb.errors import (
    AmbiguousIdError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    SessionDBError,
    abridged,
)
from sessiondb.formats import registry
from sessiondb.hints import command, word

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from sessiondb.formats.protocol import Written
    from sessiondb.model import Document, Loss, Message, Session
    from sessiondb.store import Store


class Tool(click.ParamType):  # type: ignore[type-arg]
    """A program that continues sessions: those that it has, or that we write for it."""

    name = "TOOL"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name of a program that is known."""
        names = _agent_names()
        if value not in names:
            self.fail(f"{value!r} is not one of {', '.join(names)}.", param, ctx)
        return value

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names that begin with *incomplete*."""
        from click.shell_completion import CompletionItem

        names = _agent_names()
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


#: Answers and calls of a session.
_CONTINUED = """
SELECT (SELECT count(*) FROM message WHERE session_id = :id AND role = 'assistant'),
       (SELECT count(*) FROM part WHERE session_id = :id AND type = 'tool')
"""


def _agent_names() -> list[str]:
    return sorted({*registry.resume_commands(), *registry.handover_targets()})


@click.command("resume")
@click.argument("ref", type=shared.ADDRESS, required=False)
@click.option(
    "--source",
    metavar="S",
    help="The last session of this program here, instead of REF.",
)
@click.option(
    "--in",
    "into",
    metavar="TOOL",
    type=Tool(),
    help="Take it to this program and continue there.",
)
@click.option(
    "--print", "printing", is_flag=True, help="Print the commands, run nothing."
)
@click.option("-v", "--verbose", is_flag=True, help="Name everything that stays here.")
@shared.as_json
@click.pass_obj
def resume_command(
    options: Options,
    *,
    ref: str | None,
    source: str | None,
    into: str | None,
    printing: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Continue session REF (default: the last one used here) where it came from.

    A fork that was made here continues in the program of its original. --in TOOL
    takes any session to another program, as a new session in that program's own
    store; this one stays as it is, and an import adds to it what was said there. TOOL
    is opencode, opencode2, claude, codex, pi, oh-my-pi, xcsh or goose; gemini, qwen
    and llm continue only their own sessions. --in opencode keeps the generation of
    OpenCode that a session has, else it is 1.x; --in opencode2 is OpenCode 2. --json
    prints the same as --print, as JSON. The model of the session is passed on, unless
    another program continues it, or the program has no option for it (goose).

    REF#M continues after message M, in a fork that ends there.
    """
    exclusive({"REF": ref, "--source": source})
    options.verbose = options.verbose or verbose
    with open_store(options) as store:
        place = None
        if source is None:
            session, place = find_place(store, ref)
        else:
            session = _last_of(store, source)
        if place is not None:
            if printing or as_json:
                raise click.UsageError(
                    "REF#M makes a fork, and --print nothing: "
                    f"{command('fork', str(ref))}, then resume that"
                )
            session = _fork_at(store, session, place)
        plan = with_model(store, _make_plan(store, session, into))
        database = str(store.path or store.location)
        steps = list(plan.steps(database, plan.program))
    if printing or as_json:
        _print_plan(plan, steps, as_json)
    else:
        _become_program(plan)


def _fork_at(store: Store, parent: Session, last: Message) -> Session:
    """Return a new fork that ends at a message, with the results of its calls."""
    fork = store.session(store.fork(parent, at=with_results(store, parent, last)))
    remember(store, fork)
    say(f"fork {short_id(fork.id)} ends at #{last.seq} of {short_id(parent.id)}")
    return fork


def _last_of(store: Store, source: str) -> Session:
    """Return the session of a program that was used last in this project."""
    from sessiondb.repository.sessions import HERE

    page = store.sessions(project=HERE, source=source, limit=1)
    if not page.items:
        raise NotFoundError(
            f"no session of {abridged(source)} in this project",
            hint=f"{command('list', '-a', '--source', source)} shows those elsewhere",
        )
    (session,) = page.items
    remember(store, session)
    return session


def _make_plan(store: Store, session: Session, into: str | None) -> Plan:
    if into is None and session.time_imported is None:
        origin = _origin_program(store, session)
        # A session made here from one of a program continues there.
        into = origin if origin in registry.handover_targets() else None
    if into is None or _has_it(session, into):
        continues = _resume_command(store, session)
        if session.namespace:
            _check_only(store, session)
        if session.time_detached is not None:
            say(
                f"messages were added here that {session.source} does not see; "
                f"{_hint_copy(session, session.source)}"
            )
        return Plan(session, session.source, continues)

    # A format that sessiondb writes and a program that takes it are both needed.
    if into not in registry.handover_targets():
        agent = registry.agent_name(into)
        raise InvalidInputError(
            f"sessiondb reads sessions of {agent}, and cannot write them: "
            f"{into} continues only its own",
            hint=_hint_elsewhere(store, session),
        )
    if _is_relative(session, into):
        raise InvalidInputError(
            f"the log of {session.source} would be a second session of the same name",
            hint=_hint_copy(session, into),
        )
    if _is_from(session, into):
        _check_name(store, session)
    return _plan_transfer(store, session, into)


def _has_it(session: Session, program: str) -> bool:
    """Return whether a session came from *program*, which still has it, if known."""
    if not _is_from(session, program):
        return False
    if program not in registry.handover_targets():
        return True
    holds = registry.exporter(program).holds
    return holds is None or holds(session.source_id or "", os.environ)


def _is_from(session: Session, program: str) -> bool:
    return session.source == program and session.time_imported is not None


def _is_relative(session: Session, program: str) -> bool:
    """Return whether a session is the log of a program that *program* descends from."""
    if session.time_imported is None or session.source == program:
        return False
    return session.source in registry.related_programs(program)


def _hint_elsewhere(store: Store, session: Session, refused: str | None = None) -> str:
    """Return a hint with the command that continues a session in another program.

    Of the programs that take it, without the one that *refused* it: one that is
    installed rather than another, and then the one that it, or its original, came from.
    """
    origin = _origin_program(store, session)
    commands = registry.resume_commands()
    ranked: list[tuple[bool, bool, int, str]] = []
    for name in registry.handover_targets():
        # OpenCode 2 has the name of OpenCode: which one is installed is not known.
        if name == refused or name not in commands:
            continue
        if _is_relative(session, name):
            continue
        if _is_from(session, name) and not _has_usable_name(session):
            continue
        is_installed = shutil.which(commands[name].split()[0]) is not None
        ranked.append((not is_installed, name != origin, len(ranked), name))
    program = min(ranked)[-1]
    return f"{command('resume', session.id, '--in', program)} continues it there"


def _origin_program(store: Store, session: Session) -> str:
    """Return the program of the nearest session above this one that was imported."""
    return origin_of(store, session).source


def _hint_copy(session: Session, program: str) -> str:
    """Return a hint with the command that makes a copy, for *program* if possible."""
    copies = command("fork", session.id)
    if program in registry.handover_targets():
        return f"{copies} makes a copy that --in {program} can take there"
    return f"{copies} makes a copy that --in can take to another program"


def _check_only(store: Store, session: Session) -> None:
    """Raise `ConflictError` if the program may know another session by that name.

    Its ids are unique in one store alone, and only one of two stores is its own.
    """
    try:
        store.session(str(session.source_id))
    except AmbiguousIdError as error:
        raise ConflictError(
            f"{len(error.candidates)} sessions have the id "
            f"{abridged(session.source_id)}: {session.source} continues the one in "
            "its own store",
            hint=_hint_copy(session, session.source),
        ) from None


def _resume_command(store: Store, session: Session) -> list[str]:
    """Return the command that continues a session where it came from.

    Raises `InvalidInputError`.
    """
    if session.source_id is None or session.time_imported is None:
        raise InvalidInputError(
            f"{short_id(session.id)} was not imported from another program",
            hint=_hint_elsewhere(store, session),
        )

    _check_name(store, session)
    words = registry.resume_commands()[session.source].split()
    return _fill_words(words, "{}", session.source_id)


def _check_name(store: Store, session: Session) -> None:
    """Raise `InvalidInputError` if its program cannot continue a session by its id."""
    is_continued = session.source in registry.resume_commands()
    if not is_continued or not _has_usable_name(session):
        raise InvalidInputError(
            f"{session.source} has no command that continues "
            f"{abridged(session.source_id)}",
            hint=_hint_elsewhere(store, session),
        )


def _has_usable_name(session: Session) -> bool:
    """Return whether the id that a session has in its program can be typed there."""
    # From other people's files: it must not be read as an option, or as a path.
    name = session.source_id or ""
    return not name.startswith("-") and "/" not in name


def _fill_words(words: Iterable[str], blank: str, value: str) -> list[str]:
    """Return *words* with *value* for each that is *blank*."""
    return [value if word == blank else word for word in words]


def _plan_transfer(store: Store, session: Session, form: str) -> Plan:
    """Return the plan that takes a session to a program that does not have it."""
    from sessiondb.formats.protocol import FILE

    target_format = registry.exporter(form)
    assert target_format.take_in is not None, f"{form} is one of the targets"
    detail = target_format.taken or target_format.details[0]
    export = store.export(session, **target_format.read)
    if session.directory is None:
        # Programs look for their sessions by directory: it is continued in this one.
        session = replace(session, directory=str(Path.cwd()))
        export = replace(export, session=session)
    exports = [export]
    # A program is given one file. It is read before the next item: losses grow with it.
    lost: dict[str, list[Loss]] = {}
    written_items = target_format.write(exports, detail=detail)
    files = losses.documents(written_items, lost.__setitem__)
    (written,) = [_write_document(session.required_directory, file) for file in files]
    _report_subagents(store, session)

    try:
        taken = target_format.take_in(written, os.environ)
    except InvalidInputError as error:
        error.hint = error.hint or _hint_elsewhere(store, session, form)
        raise
    if not taken.take_in and taken.place is None:
        say(f"already there, so it is continued: {registry.agent_name(form)}")
        if current().verbose:
            _report_continued(store, session, lost)
        return Plan(session, form, taken.resume)

    file = str(Path(tempfile.gettempdir()) / f"sessiondb-{session.id}.json")
    if taken.place is not None:
        file = str(taken.place)
    transfer = _fill_words(taken.take_in, FILE, file)
    elsewhere = _hint_elsewhere(store, session, form)
    plan = Plan(
        session,
        form,
        taken.resume,
        transfer,
        file,
        written.text,
        target_format.taken,
        elsewhere,
    )
    if taken.place is not None and plan.is_taken():
        plan = Plan(session, form, taken.resume)
        if not current().verbose:
            return plan
    _report_continued(store, session, lost)
    return plan


def _report_continued(
    store: Store, session: Session, lost: dict[str, list[Loss]]
) -> None:
    """Say what a program continues, prompts, answers and calls, and what stays here."""
    ((answers, calls),) = rows_of(store, _CONTINUED, id=session.id)
    counts = ((session.prompt_count, "prompt"), (answers, "answer"), (calls, "call"))
    facts = [count(number, noun) for number, noun in counts if number]
    if facts:
        say(f"continues: {', '.join(facts)}")
    for session_id, losses_of_session in lost.items():
        _report_lost(session_id, losses_of_session)


def _report_lost(session_id: str, lost: list[Loss]) -> None:
    """Say what a program does not get: what a reader misses, or all of it with -v."""
    if current().verbose:
        losses.report(session_id, lost)
        return
    from sessiondb.formats.kit.loss_words import is_of_conversation

    missed = [loss for loss in lost if is_of_conversation(loss)]
    kinds = list(losses.lines_of(missed))
    if len(missed) < len(lost):
        kinds.append("records of its program")
    further = "" if len(missed) == len(lost) else " (-v: all of it)"
    say(f"stays here: {', '.join(kinds)}{further}")


def _report_subagents(store: Store, session: Session) -> None:
    """Report the subagents that a session started: they are sessions of their own."""
    from sessiondb.maintenance.bundle import parents_first

    sessions = parents_first(store, [session], with_children=True)
    started = [
        s for s in sessions if (s.relation, s.parent_id) == ("subagent", session.id)
    ]
    if started:
        say(f"left out: {count(len(started), 'subagent')} of this session")


def _write_document(directory: str, document: Document) -> Written:
    from sessiondb.formats.protocol import Written

    text = b"".join(document.encoded()).decode("utf-8", "surrogatepass")
    return Written(document.name, text, directory)


def _print_plan(plan: Plan, steps: list[list[str]], as_json: bool) -> None:
    if as_json:
        from sessiondb.model import session_json

        facts = {"session": session_json(plan.session), "directory": plan.directory}
        output.write_json(facts | {"commands": steps})
        return
    lines = [" ".join(word(argument) for argument in step) for step in steps]
    output.write(" &&\n".join(lines) + "\n")


def _become_program(plan: Plan) -> NoReturn:
    """Become the program; raises `SessionDBError` if it or the directory is missing."""
    program = plan.command[0]
    if shutil.which(program) is None:
        raise SessionDBError(
            f"{program} is not installed: it is not on PATH",
            hint=plan.elsewhere
            or f"install it; {current().again('--print')} shows what would be run",
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
        _import_document(plan)
    elif plan.file:
        plan.place()
    sys.stdout.flush()
    os.execvp(program, plan.command)  # noqa: S606  no shell is meant


def _import_document(plan: Plan) -> None:
    """Let the program import the session, from a file that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix="sessiondb-", suffix=".json")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(plan.content)
        transfer = _fill_words(plan.transfer, plan.file, name)
        ended = subprocess.run(transfer, stdout=sys.stderr, check=False)  # noqa: S603
    finally:
        Path(name).unlink()

    if ended.returncode:
        failed = f"`{' '.join(plan.transfer[:-1])}` failed"
        raise SessionDBError(
            f"{failed} with exit code {ended.returncode}", hint=_other_way(plan)
        )


def _other_way(plan: Plan) -> str:
    """Return a hint for a session that its program did not import."""
    if plan.transfer[0] != "opencode":
        return plan.elsewhere

    # "session import" is a command of the second generation.
    other = "opencode" if "session" in plan.transfer else "opencode2"
    tries = command("resume", plan.session.id, "--in", other)
    return f"another generation may be installed: {tries}"
