"""The group of all commands: finds them by name, and turns every end into an exit code.

The table below has each command's module and its one line of help, so that
``--help`` loads none of them. An exception of a command becomes a report on
stderr (`failures`) and the exit code of its error; a closed pipe is not reported.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sessiondb import __version__
from sessiondb.cli.opening import Options, scope_of
from sessiondb.cli.paths import PATH
from sessiondb.cli.protocol import (
    BROKEN_PIPE,
    COMPLETION,
    INTERRUPTED,
    exit_code,
)
from sessiondb.cli.text import visible
from sessiondb.cli.usage import exclusive, similar
from sessiondb.engine.address import without_passwords
from sessiondb.errors import abridged

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Section → command → (module, help). The module has it as ``<command>_command``.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "status": ("overview", "One line for a prompt: sessions and cost of today."),
        "list": ("listing", "Sessions of this project, newest first (-a: everywhere)."),
        "show": ("show", "One session as text (default: the last one here)."),
        "tail": ("following", "Follow a session while it is written."),
        "search": ("search", "Find words in messages, tool calls and titles."),
        "prompts": ("listing", "Typed prompts, newest first."),
        "tree": ("family", "A session with its forks and subagents, drawn."),
        "diff": ("family", "Where two sessions diverge, and how they differ."),
        "stats": ("stats", "Cost and tokens; by day, model, project, tool."),
    },
    "Change": {
        "fork": ("family", "Start a new session from a message of another."),
        "resume": ("resume", "Continue a session in its agent, or in another."),
        "title": ("marks", "Name a session."),
        "label": ("marks", "Name a message of a session."),
        "archive": ("marks", "Hide sessions from lists."),
        "unarchive": ("marks", "Show archived sessions in lists again."),
        "rm": ("rm", "Remove sessions for good, after a typed yes."),
        "prune": ("rm", "Remove old or empty sessions, or until enough is free."),
    },
    "Move": {
        "import": ("importing", "Import the sessions of other agents."),
        "export": ("exporting", "Write sessions in another format."),
        "sync": ("syncing", "Exchange sessions with a team, through git."),
        "backup": ("upkeep", "Write a consistent copy while agents keep working."),
        "copy": ("copying", "Copy a database to another engine, or to another file."),
        "relink": ("places", "Move sessions along with their directory."),
    },
    "Database": {
        "completion": ("completing", "Let your shell complete commands and sessions."),
        "path": ("places", "Print the path of the database."),
        "init": ("places", "Create a database (--local: one for this project)."),
        "trust": ("places", "Accept a database that came with a project."),
        "sql": ("sql", "Query with SQL, read-only; or open a shell."),
        "migrate": ("upkeep", "Upgrade the database to this release's schema."),
        "check": ("checking", "Verify everything (exit 4 if something is wrong)."),
        "vacuum": ("upkeep", "Give unused space back to the disk."),
        "doctor": ("doctor", "The state of the database, and what remedies it."),
    },
}
COMMANDS = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}

_EPILOG = """\
\b
REF, the name of a session: its id, the beginning or the last 4 or more
characters of it, its slug, its title, the agent's own id, @ (the last one used
in this terminal and directory), @~1 (the one before).

\b
Exit status: 0 done · 1 failed · 2 usage, or not supported · 3 not found or
ambiguous · 4 problems found · 5 busy or out of reach, try again ·
6 file needs another version · 130 interrupted
"""


class Commands(click.Group):
    """A group that imports a command's module when the command is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order of the help page."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Return the command, loading its module; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"sessiondb.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command in *args*; raises `click.UsageError` with similar names."""
        name = args[0]
        if name in COMMANDS:
            options = ctx.find_object(Options) or Options()
            options.command = name
        # Options are click's to refuse, and a shell that completes expects no error.
        elif not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(_unknown_command(name))
        return super().resolve_command(ctx, args)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return commands and options that begin with *incomplete*; loads no module."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=about)
            for name, (_, about) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the commands in their sections."""
        for title, section in SECTIONS.items():
            rows = [(name, about) for name, (_, about) in section.items()]
            with formatter.section(title):
                formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run the command line *args* (default: the process's) and exit."""
        if COMPLETION in os.environ:
            from sessiondb.cli.completing import complete

            sys.exit(complete(self))

        arguments = list(sys.argv[1:] if args is None else args)
        options = Options(argv=tuple(map(without_passwords, arguments)))
        try:
            _open_streams()
            code = self._run_command(arguments, options)
        except BaseException as error:  # noqa: BLE001  the outermost frame
            code = _end_command(error, options)
        # Before the exit code is final: the disk may be full, or the pipe closed.
        try:
            sys.stdout.flush()
        except OSError as error:
            code = code or _end_command(error, options)
            _silence_output()
        sys.exit(code)

    def _run_command(self, args: list[str], options: Options) -> int:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            with self.make_context("sessiondb", args, obj=options) as context:
                code = self.invoke(context)
        # A command returns its exit code, or None. Damage that was read past fails it.
        if isinstance(code, int) and code:
            return code
        return exit_code(options.damaged)


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name[:64], COMMANDS)
    return f"no command {abridged(name)}{similar(near)}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"sessiondb: {visible(str(message))}", err=True)


def _end_command(error: BaseException, options: Options) -> int:
    """Report an exception that is a failure; return the exit code of any."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        # The reader has seen enough, as `head` has: nothing to report.
        case BrokenPipeError():
            return _silence_output()
        case KeyboardInterrupt() | EOFError() | click.Abort() if not options.wants_json:
            click.echo(err=True)
            return INTERRUPTED
    # Not at the top: a command that succeeds starts faster without it.
    from sessiondb.cli.failures import report

    return report(error, options)


def _open_streams() -> None:
    """Replace each standard stream that is closed by the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123
            setattr(sys, name, null)


def _silence_output() -> int:
    """Discard all further output, the interpreter's last flush included."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--db", type=PATH, metavar="PATH", help="Use this database.")
@click.option("--local", is_flag=True, help="Use this project's own database.")
@click.option(
    "--global", "global_", is_flag=True, help="Use the database of this machine."
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
)
@click.option("-v", "--verbose", is_flag=True, help="Show where an error comes from.")
@click.version_option(__version__, message="sessiondb %(version)s")
@click.pass_context
def app(
    context: click.Context,
    *,
    db: str | None,
    local: bool,
    global_: bool,
    color: str,
    verbose: bool,
) -> None:
    """Find, read, fork, move and cost the sessions of your coding agents.

    Without a command: what is here, and what to type next.
    """
    options: Options = context.obj
    options.verbose, options.color = verbose, color
    exclusive({"--db": db, "--local": local, "--global": global_})
    options.db = db
    options.scope = scope_of(local=local, global_=global_)
    if context.invoked_subcommand is None:
        from sessiondb.cli.overview import write_overview

        write_overview(options)
