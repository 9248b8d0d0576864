"""The report of a command that failed: two lines, or one of JSON, and an exit code.

Every failed command ends with one `Failure`: an error of sessiondb, of click, of
SQLite, of the system, or a defect. A hint names the command to type, with the database
that was given, and never the command that has just failed.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from sessiondb import hints
from sessiondb.cli.opening import Options, split
from sessiondb.cli.protocol import INTERRUPTED
from sessiondb.cli.text import ago, cell, short_id, shortened, title_of, visible
from sessiondb.cli.usage import similar
from sessiondb.dataclass import dataclass, replace
from sessiondb.errors import AmbiguousIdError, SessionDBError

if TYPE_CHECKING:
    from sessiondb.model import Session

_PATH_HINT = "check the path, its owner and its mode"
_FULL_HINT = "free some disk space and try again"
_OS_HINTS: dict[int | None, str] = {
    errno.ENOSPC: _FULL_HINT,
    errno.EDQUOT: _FULL_HINT,
    errno.EFBIG: _FULL_HINT,
}

#: Options that go before the command, with the number of their values.
_BEFORE = {
    "--db": 1,
    "--local": 0,
    "--global": 0,
    "--color": 1,
    "-v": 0,
    "--verbose": 0,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command ended; *candidates* are the sessions of an ambiguous REF."""

    type: str
    message: str
    hint: str | None
    exit_code: int
    candidates: Sequence[Session] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of text: the failure, the candidates, what to do next."""
        yield f"sessiondb: {_on_one_line(self.message)}"
        for session in self.candidates:
            names = f"{short_id(session.id)}  {session.id}"
            yield f"  {names}  {ago(session.time_updated)}  {title_of(session)}"
        if self.hint:
            yield f"  {_on_one_line(self.hint)}"

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` writes; only an ambiguous REF has ``candidates``."""
        names = ("type", "message", "hint", "exit_code")
        error: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.candidates:
            error["candidates"] = [
                {"id": s.id, "title": s.title, "time_updated": s.time_updated}
                for s in self.candidates
            ]
        return {"error": error}


def report(error: BaseException, options: Options) -> int:
    """Report on stderr why the command failed; return the exit code."""
    if options.verbose:
        from traceback import print_exception

        print_exception(error)
    failure = explain(error, options)
    if options.wants_json:
        from sessiondb.cli.output import dumps

        click.echo(dumps(failure.as_json()), err=True)
    else:
        for line in failure.lines():
            click.echo(line, err=True)
    return failure.exit_code


def explain(error: BaseException, options: Options) -> Failure:
    """Return the failure that an exception is."""
    error = _translate_error(error)
    failure = _failure_of(error, options)
    hint = failure.hint
    if hint is not None:
        hint = shortened(hints.with_database(hint, options.database))
    return replace(failure, message=shortened(failure.message), hint=hint)


def _failure_of(error: BaseException, options: Options) -> Failure:
    if isinstance(error, SessionDBError):
        return _of_sessiondb(error, options)
    if isinstance(error, click.ClickException):
        return _of_click(error, options)
    if isinstance(error, OSError):
        prefix = f"{error.filename}: " if error.filename else ""
        hint = _OS_HINTS.get(error.errno, _PATH_HINT)
        return Failure("StorageError", f"{prefix}{error.strerror or error}", hint, 1)
    if isinstance(error, KeyboardInterrupt | EOFError | click.Abort):
        return Failure("Interrupted", "interrupted", None, INTERRUPTED)

    kind = type(error).__name__
    hint = f"this is a defect of sessiondb; {_verbose_command(options)} shows where"
    return Failure(kind, f"{kind}: {error}", hint, 1)


def _of_sessiondb(error: SessionDBError, options: Options) -> Failure:
    hint = _useful_hint(error.hint, options) or _default_hint(error.exit_code, options)
    candidates = error.sessions if isinstance(error, AmbiguousIdError) else ()
    # Without the place of the effect in its unit: a command is one effect.
    message = str(error.args[0])
    return Failure(type(error).__name__, message, hint, error.exit_code, candidates)


def _of_click(error: click.ClickException, options: Options) -> Failure:
    message = " ".join(error.format_message().split()).rstrip(".")
    hint = getattr(error, "hint", None) or _help_hint(options)
    if isinstance(error, click.NoSuchOption):
        # Without click's own question, which would follow in another sentence.
        message = error.message.rstrip(".") + similar(error.possibilities or ())
        if options.command in ("search", "prompts"):
            hint = "quote a query with a dash: 'red -green', '\"--flag\"'"
        if moved := _moved_option(error.option_name, options):
            message, hint = f"{error.option_name} goes before the command", moved
    return Failure("UsageError", message, hint, error.exit_code)


def _translate_error(error: BaseException) -> BaseException:
    """Return our error for one of an engine's driver; any other unchanged."""
    # No engine is loaded for this: one that is not loaded raised no error.
    module = sys.modules.get("sessiondb.engine.default")
    for engine in module.loaded_engines() if module else ():
        if isinstance(error, engine.Error):
            return cast("SessionDBError", engine.translate(error))
    return error


def _useful_hint(hint: str | None, options: Options) -> str | None:
    """Return *hint* without advice to run the command that has just failed."""
    # Other words than these would make it another command, which may help.
    bare = {options.command, "--json", "--jsonl", "-v", *options.database}
    if hint is None or options.command is None or not bare.issuperset(options.argv):
        return hint
    return hints.without(hint, options.command) or None


def _default_hint(exit_code: int, options: Options) -> str:
    if exit_code == 2:
        return _help_hint(options)
    # Not found, or ambiguous: the list has the names.
    if exit_code == 3 and options.command != "list":
        return f"{hints.command('list', '-a')} shows every session"
    if options.command != "doctor":
        return f"{hints.command('doctor')} shows the disk and the database"
    return f"{_verbose_command(options)} shows where it failed"


def _moved_option(option: str, options: Options) -> str | None:
    """Return the typed command with an option of `sessiondb` itself at its place.

    None if *option* is another one.
    """
    values = _BEFORE.get(option)
    argv = split(options.argv, option)
    if values is None or option not in argv or options.is_long:
        return None
    index = argv.index(option)
    end = index + 1 + values
    return hints.command(*argv[index:end], *argv[:index], *argv[end:])


def _verbose_command(options: Options) -> str:
    """Return the command that was typed, with ``-v`` before it."""
    if options.is_long:
        return "the same command with the option -v before it"
    return hints.command("-v", *options.argv)


def _help_hint(options: Options) -> str:
    if options.command is None:
        return f"{hints.command('--help')} lists the commands"
    return f"{hints.command(options.command, '--help')} describes its arguments"


def _on_one_line(text: str) -> str:
    return visible(text) if {"\n", "\t"}.isdisjoint(text) else cell(text)
