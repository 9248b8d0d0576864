"""README, the cookbook and the page of the command line: commands and their output, queries and their rows, Python that runs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import EXAMPLES, Block, blocks, page
from docs_console import fresh_terminal, masked, run, typed
from loopback_model import Script

import sessiondb.errors
from sessiondb import ALL, Store
from sessiondb.cli.app import COMMANDS, Commands, app
from sessiondb.cli.protocol import INTERRUPTED, PROBLEMS_FOUND
from sessiondb.formats.registry import REGISTRY, handover_targets, importable_programs

README, COOKBOOK, CLI = (
    page(name) for name in ("README.md", "docs/COOKBOOK.md", "docs/CLI.md")
)
#: The pages for a person at a terminal.
PAGES = README + COOKBOOK + CLI
QUERIES = blocks(README, "sql") + blocks(COOKBOOK, "sql")
Rows = list[dict[str, Any]]


def _descending(rows: Rows, name: str) -> bool:
    values = [row[name] for row in rows]
    return values == sorted(values, reverse=True)


#: A check of the rows of each query, by the first words of the sentence before it.
SENSIBLE: dict[str, Callable[[Rows], bool]] = {
    "The file is made": lambda rows: (
        _descending(rows, "updated") and bool(rows[0]["title"])
    ),
    "One transcript": lambda rows: rows[0]["role"] == "user" and _ascending_seq(rows),
    "Cost by model": lambda rows: _descending(rows, "usd") and rows[0]["messages"] > 0,
    "Slowest tool": lambda rows: (
        _descending(rows, "seconds") and rows[0]["seconds"] > 0
    ),
    "Failed tools": lambda rows: all(
        row["outcome"] and row["last_output"] for row in rows
    ),
    "Biggest": lambda rows: _descending(rows, "bytes") and rows[0]["bytes"] > 2_000,
    "The tree": lambda rows: any(
        row["relation"] == "fork" and row["title"].startswith("  ") for row in rows
    ),
    "Search": lambda rows: all("[" in row["found"] for row in rows),
    "Everything I": lambda rows: _descending(rows, "time") and bool(rows[0]["prompt"]),
    "The files": lambda rows: "/" in rows[0]["file"] and _descending(rows, "changes"),
}


def _ascending_seq(rows: Rows) -> bool:
    seqs = [row["seq"] for row in rows]
    return seqs == sorted(seqs) and len(set(seqs)) > 1


def _ask(shell: str, path: Path, sql: str) -> Rows:
    done = subprocess.run(
        [shell, "-readonly", "-json", str(path), sql],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), sql
    return json.loads(done.stdout or "[]")  # type: ignore[no-any-return]


def _check_queries(shell: str, path: Path, word: str) -> None:
    for query in QUERIES:
        sql = query.text.replace("'timer'", f"'{word}'")
        assert "data" not in re.findall(r"\w+", sql), "no query needs MessagePack"
        rows = _ask(shell, path, sql)
        (sensible,) = (
            check for name, check in SENSIBLE.items() if query.before.startswith(name)
        )
        assert rows, query.before
        assert sensible(rows), (query.before, rows)


def test_every_query_answers_in_the_plain_shell(
    sqlite3_shell: str, sample: Path
) -> None:
    assert len(QUERIES) == len(SENSIBLE) >= 8
    _check_queries(sqlite3_shell, sample, "timer")


def test_every_query_answers_on_sessions_of_the_real_opencode(
    sqlite3_shell: str,
    database: Callable[[Path], Path],
    real_store: Callable[[str], Path],
) -> None:
    path = database(real_store("opencode-1.18.33") / "data")
    with Store.open(path, read_only=True) as store:
        newest = store.sessions(project=ALL, source="opencode", limit=1).items[0]
        texts = (message.text for message in store.walk(newest))
        word = next(
            word for text in texts for word in re.findall(r"[^\W\d_]{4,}", text)
        )
    _check_queries(sqlite3_shell, path, word)


@pytest.mark.parametrize(
    "name", ["opencode-0.5.29", "opencode-1.18.33", "opencode-2.0.15"]
)
def test_the_files_that_were_edited_are_found_whichever_agent_edited_them(
    name: str,
    sqlite3_shell: str,
    database: Callable[[Path], Path],
    real_store: Callable[[str], Path],
) -> None:
    path = database(real_store(name) / "data")
    (query,) = (query for query in QUERIES if query.before.startswith("The files"))
    rows = _ask(sqlite3_shell, path, query.text)
    assert [row["file"] for row in rows] == ["/home/dev/projects/acme/src/greet.py"]


@pytest.mark.parametrize("name", ["README.md", "docs/COOKBOOK.md"])
def test_the_commands_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    """After a change on purpose: python tests/docs/docs_console.py README.md docs/COOKBOOK.md."""
    shown = typed(page(name))
    pairs = [(c, output) for c, output in shown if not c.startswith("python")]
    assert len(pairs) >= 6
    with fresh_terminal(tmp_path / "sessions.db"):
        for command, output in pairs:
            assert masked(run(command)) == masked(output), command


def test_every_command_has_its_line_and_no_line_names_another() -> None:
    table = re.findall(r"(?m)^\| (`sessiondb .*?`) \|", README)
    listed = re.findall(r"`sessiondb ([a-z]+)", " ".join(table))
    assert sorted(listed) == sorted(COMMANDS)
    assert set(
        re.findall(r"sessiondb (?:--\S+ )*([a-z]+)\b(?=[^a-z])", _code(PAGES))
    ) <= {*COMMANDS}


def test_every_name_of_a_session_that_the_page_shows_finds_it(sample: Path) -> None:
    table = CLI.partition("| REF | example |")[2].partition("\n\n")[0]
    names = [n for n in re.findall(r"`([^`]+)`", table) if not n.startswith("@")]
    assert len(names) >= 5
    with Store.open(sample, read_only=True) as store:
        assert all(store.session(name).source_id for name in names)


def test_the_table_of_agents_says_what_is_read_continued_and_taken_there() -> None:
    table = README.partition("| agent | read |")[2].partition("\n\n")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:]
    ]
    shown = {
        name: tuple(cell == "✓" for cell in cells)
        for agents, *cells in rows
        for name in re.sub(" [\\d.].*", "", agents).split(", ")
    }
    programs = {REGISTRY[name].agent: name for name in importable_programs()}
    for agent, row in shown.items():
        name = programs[agent]
        is_target = name in handover_targets()
        assert row == (True, bool(REGISTRY[name].resume), is_target), agent
    left_out = {"sessiondb", "sessiondb's log", "plain log", "OpenOxide"}
    assert shown.keys() == programs.keys() - left_out


def test_the_exit_codes_are_those_of_the_errors() -> None:
    table = CLI.partition("| code | meaning |")[2].partition("\n\n")[0]
    codes = {int(code) for code in re.findall(r"\b\d+\b", table)}
    errors = vars(sessiondb.errors).values()
    stated = {error.exit_code for error in errors if hasattr(error, "exit_code")}
    assert codes == stated | {0, PROBLEMS_FOUND, INTERRUPTED, INTERRUPTED + 13}


def test_every_option_that_the_page_names_is_in_the_help_of_some_command() -> None:
    assert isinstance(app, Commands)
    known = {"--help", "--version"}
    for command in (
        app,
        *filter(None, (app.get_command(_context(), name) for name in COMMANDS)),
    ):
        for parameter in command.params:
            known |= {*parameter.opts, *parameter.secondary_opts}
    named = re.findall(r"(?<!\S)--[a-z-]+", re.sub(r"[`\[\]]", " ", _code(PAGES)))
    assert set(named) <= known


def _context() -> Any:
    return app.make_context("sessiondb", ["list"], resilient_parsing=True)


def _code(text: str) -> str:
    """Return the code on a page: `spans`, and lines that are typed."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```$", "", text))
    lines = [command for command, _ in typed(text)]
    return "\n".join([*spans, *lines, ""])


def _is_complete(block: Block) -> bool:
    return not block.before.startswith("<!-- examples/")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/LIBRARY.md"])
def test_the_python_of_a_page_runs(
    name: str, reader: Path, model: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    complete = [block for block in blocks(page(name), "python") if _is_complete(block)]
    assert complete
    for block in complete:
        exec(
            compile(block.text, f"{name}:{block.line}", "exec"), {"__name__": "reader"}
        )
    printed = capsys.readouterr().out
    if name == "README.md":
        (shown,) = blocks(README, "text")
        assert printed == shown.text
    else:
        # The agent asked twice: the second time with the result of its call.
        assert printed.startswith("The tests say: 3 passed\n")
        kinds = [
            [item.get("type", item.get("role")) for item in sent["input"]]
            for sent in model.requests
        ]
        said = ["user", "reasoning", "function_call", "function_call_output"]
        assert kinds == [said[:1], said]


def test_an_excerpt_of_an_example_is_contained_in_its_source() -> None:
    shown = [block for block in blocks(PAGES, "python") if not _is_complete(block)]
    sources = {re.search(r"examples/\w+\.py", block.before)[0] for block in shown}  # type: ignore[index]
    assert sources == {f"examples/{name}.py" for name in EXAMPLES}
    for block in shown:
        source = page(re.search(r"examples/\w+\.py", block.before)[0])  # type: ignore[index]
        indents = {" " * n for n in range(0, 20, 4)}
        assert any(_indented(block.text, by) in source for by in indents), block.text


def _indented(text: str, by: str) -> str:
    return re.sub(r"(?m)^(?=.)", by, text)


def test_the_first_page_is_short_enough_to_be_read() -> None:
    assert len(README.split()) <= 2_000
