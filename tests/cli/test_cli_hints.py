"""Every command in a hint can be typed as it is: its name, its arguments, the database.

Commands in hints are written by `hints.command` alone, so that they can be found in
the source: each is parsed as the command line would, and each situation
in which one is shown is made for real and the command in the hint is run.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import SAMPLE, Ran, Run, Story

import sessiondb.cli
from sessiondb import Store, user
from sessiondb.cli.app import app
from sessiondb.hints import command, with_database, without, word

PACKAGE = Path(sessiondb.cli.__file__).parents[1]
#: Where words of a command are known at run time alone.
PLACEHOLDER = "placeholder"


def typed(text: str) -> list[list[str]]:
    """Return the words of each command in *text*, as a shell reads them."""
    found = []
    for line in re.findall(r"`(sessiondb [^`]*)`", text):
        split = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
        )
        found.append([os.fsdecode(item) for item in split.stdout.split(b"\0")[1:-1]])
    return found


# -- in the source -----------------------------------------------------------------


SOURCES = {
    str(file.relative_to(PACKAGE)): file.read_text()
    for file in sorted(PACKAGE.rglob("*.py"))
}


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the string constants of a module that are not docstrings."""
    documented = (
        ast.Module,
        ast.ClassDef,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.Assign,
    )
    for node in ast.walk(tree):
        below = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Expr) or (isinstance(node, documented) and not below):
            continue
        yield from (
            n for n in below if isinstance(n, ast.Constant) and isinstance(n.value, str)
        )


def _find_commands() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (file, function, words) of each call of `command` or `again`."""

    def below(
        file: str, node: ast.AST, function: str
    ) -> Iterator[tuple[str, str, list[str]]]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef) else function
            if isinstance(child, ast.Call):
                called = getattr(child.func, "attr", getattr(child.func, "id", ""))
                owner = getattr(getattr(child.func, "value", None), "id", "hints")
                if (called == "command" and owner == "hints") or called == "again":
                    yield file, inside, list(map(_word_of, child.args))
            yield from below(file, child, inside)

    for file, source in SOURCES.items():
        # Every process that collects tests comes here: it parses what it has to.
        if file != "hints.py" and re.search(r"\b(command|again)\(", source):
            yield from below(file, ast.parse(source), "")


def _word_of(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else PLACEHOLDER


COMMANDS = list(_find_commands())


@pytest.mark.slow
def test_commands_in_texts_are_written_by_one_function() -> None:
    wrong = [
        (file, text.lineno, text.value)
        for file, source in SOURCES.items()
        for text in _texts(ast.parse(source))
        if file != "hints.py"
        and re.search(r"`sessiondb\b|sessiondb COMMAND", text.value)
    ]
    assert not wrong


def parse(words: list[str]) -> click.Context:
    """Return the context of a command line; raises `click.UsageError` for a wrong one."""
    with app.make_context("sessiondb", list(words), obj=None) as context:
        rest = [*context._protected_args, *context.args]
        name, found, arguments = app.resolve_command(context, rest)
        assert found is not None
        return found.make_context(name, arguments, parent=context)


@pytest.mark.parametrize(("file", "function", "words"), COMMANDS)
def test_each_command_in_the_source_is_one_that_the_command_line_takes(
    file: str, function: str, words: list[str]
) -> None:
    if (
        words[:1] == [PLACEHOLDER]
        or PLACEHOLDER in words[:2]
        or words[0].startswith("-")
    ):
        return  # built from what was typed: produced below
    with contextlib.suppress(click.exceptions.Exit):  # --help
        parse(words)


# -- for real ----------------------------------------------------------------------


@dataclass
class World:
    """A database with sessions, and ways to make a mess of it."""

    run: Run
    process: Run
    store: Store
    story: Story
    project: Path
    database: Path
    monkeypatch: pytest.MonkeyPatch

    def type(self, *args: str) -> Ran:
        return self.run(*args)

    def alone(self) -> Path:
        """Return a new directory, now the current one, whose project has no session."""
        folder = self.project.parent / "alone"
        folder.mkdir()
        self.monkeypatch.chdir(folder)
        return folder

    def local(self, *, trusted: bool = True) -> Path:
        """Return a new project with a database of its own, now the current directory."""
        folder = self.alone()
        self.monkeypatch.delenv("SESSIONDB_PATH")
        assert self.run("init", "--local").code == 0
        if not trusted:
            assert self.run("trust", "--revoke").code == 0
        return folder

    def program(self, exit_code: int) -> None:
        """Put an ``opencode`` on PATH that ends so, and nothing else."""
        folder = self.project.parent / "bin"
        folder.mkdir()
        (folder / "opencode").write_text(f"#!/bin/sh\nexit {exit_code}\n")
        (folder / "opencode").chmod(0o755)
        self.monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def imported(self) -> str:
        assert self.run("import", str(SAMPLE)).code == 0
        found = self.run("list", "-a", "--source", "opencode", "--json").json[
            "sessions"
        ]
        return str(found[0]["id"])


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    names = "sessiondb process store story project database monkeypatch".split()
    return World(*map(request.getfixturevalue, names))


def nothing_here(w: World) -> Ran:
    w.alone()
    return w.type("list")


def show_nothing(w: World) -> Ran:
    w.alone()
    return w.type("show")


def unknown_folder(w: World) -> Ran:
    return w.type("relink", "/nowhere/at/all", ".")


def name_too_long(w: World) -> Ran:
    return w.type("--db", "n" * 300, "list")


def unknown_command(w: World) -> Ran:
    return w.type("lsit")


def unknown_option(w: World) -> Ran:
    return w.type("rm", "--force-it")


def defect(w: World) -> Ran:
    with w.monkeypatch.context() as broken:
        broken.setattr(Store, "sessions", lambda *_, **__: 1 / 0)
        return w.type("list", "-a", "--title", "it's `odd`")


def other_projects(w: World) -> Ran:
    w.local()
    return w.type("import", str(SAMPLE))


def wrong_path(w: World) -> Ran:
    return w.type("import", "missing")


def more_sessions(w: World) -> Ran:
    return w.type("list", "-a", "--limit", "1", "--title=e")


def more_hits(w: World) -> Ran:
    return w.type("search", "the", "--limit=1", "--", "lex*")


def more_prompts(w: World) -> Ran:
    for number in range(3):
        w.store.add_prompt(f"prompt {number}")
    return w.type("prompts", "--limit", "1")


def no_prompts(w: World) -> Ran:
    return w.type("prompts")


def no_such_prompts(w: World) -> Ran:
    return w.type("prompts", "an `odd`", "it's")


def long_line(w: World) -> Ran:
    return w.type("list", "-a", *["--limit=1"] * 200)


def no_local_database(w: World) -> Ran:
    w.alone()
    w.monkeypatch.delenv("SESSIONDB_PATH")
    return w.type("--local", "list")


def nothing_to_trust(w: World) -> Ran:
    w.alone()
    return w.type("trust")


def untrusted(w: World) -> Ran:
    w.local(trusted=False)
    return w.type("--local", "list")


def untrusted_notice(w: World) -> Ran:
    w.local(trusted=False)
    return w.type("list")


def continued(w: World) -> Ran:
    session = w.imported()
    w.store.append(session, user("and on"))
    return w.type("resume", session, "--print")


def takes_nothing_in(w: World) -> Ran:
    return w.type("resume", w.imported(), "--in", "codex")


def of_no_program(w: World) -> Ran:
    return w.type("resume", w.story.other)


def not_installed(w: World) -> Ran:
    w.monkeypatch.setenv("PATH", "/nonexistent")
    ran = w.type("resume", w.imported())
    w.monkeypatch.undo()
    w.monkeypatch.setenv("SESSIONDB_PATH", str(w.database))
    w.monkeypatch.chdir(w.project)
    return ran


def directory_gone(w: World) -> Ran:
    w.program(0)
    return w.type("resume", w.imported())


def program_fails(w: World) -> Ran:
    w.program(1)
    return w.process("resume", w.story.other, "--in", "opencode")


def pruned(w: World) -> Ran:
    return w.type("prune", "-a", "--keep", "1", "--yes")


def bundled(w: World) -> Ran:
    return w.type("rm", w.story.other, "--bundle", "an odd 'name'.jsonl", "--yes")


def removed_there(w: World) -> Ran:
    folder = w.local()
    with Store.open() as store:
        store.append(store.create_session(title="shared"), user("x"))
    assert w.type("sync").code == 0
    for file in (folder / ".sessiondb" / "sessions").glob("*.jsonl"):
        file.unlink()
    return w.type("sync")


def removed_here(w: World) -> Ran:
    w.local()
    with Store.open() as store:
        session = store.create_session(title="shared")
        store.append(session, user("x"))
    assert w.type("sync").code == 0
    assert w.type("rm", session.id, "--yes").code == 0
    return w.type("sync")


def no_local_sync(w: World) -> Ran:
    return w.type("sync")


def missing_database(w: World) -> Ran:
    return w.type("--db", "not here.db", "vacuum", "--dry-run")


def missing_to_read(w: World) -> Ran:
    return w.type("--db", "not `here`.db", "list")


def damaged(w: World) -> Ran:
    w.store.close()
    copy = w.project / "damaged.db"
    shutil.copy(w.database, copy)
    with copy.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (copy.stat().st_size - 4096))
    return w.type("--db", "damaged.db", "list")


def orphans(w: World) -> Ran:
    with contextlib.closing(sqlite3.connect(w.database)) as connection:
        connection.execute("DELETE FROM session WHERE id = ?", (w.story.parser,))
        connection.commit()
    return w.type("check")


def removed_rows(w: World) -> Ran:
    w.store.delete(w.story.other)
    w.store.close()
    # Whatever SQLite this is: its finding names a backup.
    w.monkeypatch.setattr("sessiondb.engine.sqlite.facts.WAL_RESET_FIXED", (99,))
    return w.type("doctor")


def unknown_session(w: World) -> Ran:
    return w.type("show", "nobody")


def ambiguous(w: World) -> Ran:
    return w.type("show", "ses_")


def unknown_message(w: World) -> Ran:
    return w.type("fork", w.story.parser, "--at", "999")


SITUATIONS: dict[Callable[[World], Ran], list[str]] = {
    nothing_here: ["list -a", "import"],
    show_nothing: ["list -a", "import"],
    unknown_folder: ["list -a"],
    name_too_long: ["--db nnn"],
    unknown_command: ["--help"],
    unknown_option: ["rm --help"],
    defect: ["-v list -a --title"],
    other_projects: ["--global import"],
    wrong_path: ["import"],
    more_sessions: ["list -a --limit 1 --title=e --cursor 2"],
    more_hits: ["search the --limit=1 --cursor 2"],
    more_prompts: ["prompts --limit 1 --cursor 2"],
    no_prompts: ["search --help"],
    no_such_prompts: ["search -a --role user --"],
    long_line: ["list --help"],
    no_local_database: ["init --local"],
    nothing_to_trust: ["init --local"],
    untrusted: ["trust"],
    untrusted_notice: ["trust", "list -a", "import"],
    continued: ["fork"],
    takes_nothing_in: ["resume"],
    of_no_program: ["resume"],
    not_installed: ["resume"],
    directory_gone: ["relink"],
    program_fails: ["resume"],
    pruned: ["vacuum"],
    bundled: ["rm --undo"],
    removed_there: ["rm", "export"],
    removed_here: ["import --restore"],
    no_local_sync: ["init --local"],
    missing_database: ["--db not here.db init"],
    missing_to_read: ["--db /"],
    damaged: ["--db damaged.db check", "--db damaged.db export -a"],
    orphans: ["check --repair"],
    removed_rows: ["backup", "vacuum", "doctor"],
    unknown_session: ["list -a"],
    ambiguous: ["show ses_"],
    unknown_message: ["show ses_"],
}


#: Options that let a command run without a program of its own, or a user to ask.
HARMLESS = {"resume": ["--print"], "rm": ["--dry-run"], "check": ["--dry-run"]}


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda made: made.__name__)
def test_the_command_in_a_hint_is_taken_as_it_is(
    world: World, situation: Callable[[World], Ran]
) -> None:
    ran = situation(world)
    found = typed(ran.err + ran.out)
    starts = SITUATIONS[situation]
    assert len(found) == len(starts), ran.err
    for words, start in zip(found, starts, strict=True):
        assert " ".join(words).startswith(start), ran.err
        again = world.type(*words, *HARMLESS.get(words[0], []))
        assert again.code in (0, 1, 4), (words, again.err)
        assert again.code != 1 or words[0] in ("rm", "check", "--db"), (
            words,
            again.err,
        )
        assert "defect" not in again.err


def test_each_command_named_in_a_hint_is_covered_by_a_situation() -> None:
    """A new hint needs a situation: each command name in the source is one that was met."""
    met = {next(w for w in start.split() if not w.startswith("-")) for starts in
           SITUATIONS.values() for start in starts if start != "--help"}  # fmt: skip
    met |= {"doctor", "migrate"}  # `migrate` needs an older file: see tests/migrations
    met |= {"stats"}  # of the overview: see test_cli_overview
    for file, function, words in COMMANDS:
        name = next(
            (w for w in words if not w.startswith("-") and w != PLACEHOLDER), None
        )
        assert name is None or name in met, (file, function, words)


@pytest.mark.parametrize(
    "options", [["--db", "an odd 'name' `x`.db"], ["--db", os.fsdecode(b"\xff\x01.db")], ["--global"]]
)  # fmt: skip
def test_a_hint_has_the_database_that_was_given(
    sessiondb: Run, project: Path, options: list[str]
) -> None:
    assert sessiondb(*options, "init").code == 0
    ran = sessiondb(*options, "show", "nobody")
    assert typed(ran.err) == [[*options, "list", "-a"]]
    assert sessiondb(*typed(ran.err)[0]).code == 0
    ran = sessiondb(*options, "list")
    assert typed(ran.err) == [[*options, "list", "-a"], [*options, "import"]]


@pytest.mark.parametrize(
    "text", ["plain", "two words", "it's", "`x`", "$HOME", "a\nb", "\x1b[1m", "–", "\\", "", "-x",
             os.fsdecode(b"\xff\xfe1"), "\u202e", "é'`\\"],
)  # fmt: skip
def test_a_quoted_word_is_read_back_by_a_shell(text: str) -> None:
    assert typed(command("show", text)) == [["show", text]]
    assert word(text).isprintable()


def test_only_commands_that_need_a_database_get_one() -> None:
    for words in (
        ["trust", "x"],
        ["init", "--local"],
        ["rm", "--help"],
        ["--global", "import"],
    ):
        assert with_database(command(*words), ["--db", "x"]) == command(*words)
    assert with_database(command("init"), ["--db", "x"]) == command("--db", "x", "init")


def test_a_command_does_not_advise_to_run_itself() -> None:
    hint = (
        f"{command('check')} lists the damage; restore a backup, or {command('list')}"
    )
    assert without(hint, "check") == f"restore a backup, or {command('list')}"
    assert without(hint, "show") == hint
    assert without(command("check"), "check") == ""


def test_check_of_a_damaged_file_does_not_advise_check(world: World) -> None:
    damaged(world)
    ran: Any = world.type("--db", "damaged.db", "check")
    assert ran.code == 4
    assert all(words[-1] != "check" for words in typed(ran.err + ran.out))
