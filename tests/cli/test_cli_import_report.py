"""The report of an import: the stores that it finds, and what became of each agent's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import samples_openai_agents as openai_agents
from command_line import SAMPLE, Run
from samples import permissions_hold

from sessiondb.cli import losses
from sessiondb.cli.import_report import Report, problem_line
from sessiondb.errors import BusyError
from sessiondb.formats import discovery, in_projects
from sessiondb.model import Document, Imported, Loss, Problem

AIDER = (
    "\n# aider chat started at 2026-01-02 03:04:05\n\n#### Boil the water\n\nDone.\n"
)


def pi_log(home: Path, name: str, text: str = "Hello", folder: str = ".pi") -> Path:
    logs = home / folder / "agent" / "sessions" / "--tea--"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"2026-01-02T03-04-05-000Z_{name}.jsonl"
    when = "2026-01-02T03:04:05.000Z"
    records: list[Any] = [
        {"type": "session", "version": 3, "id": name, "timestamp": when, "cwd": "/tea"},
        {
            "type": "message", "id": "0a0a0a0a", "parentId": None, "timestamp": when,
            "message": {"role": "user", "content": text, "timestamp": 1},
        },
    ]  # fmt: skip
    log.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return log


def opencode(home: Path) -> Path:
    return shutil.copytree(SAMPLE, home / ".local" / "share" / "opencode")


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_path_each_store_is_announced_and_each_agent_has_a_row(
    sessiondb: Run, home: Path
) -> None:
    store = opencode(home)
    pi_log(home, "p1")
    pi_log(home, "p2")
    ran = sessiondb("import")
    assert ran.code == 0
    assert f"found OpenCode: {store}" in ran.err
    assert f"found pi: {home / '.pi' / 'agent'}" in ran.err
    head, first, second, total = ran.out.splitlines()
    assert head.split() == ["AGENT", "NEW", "UPDATED", "UNCHANGED", "PROBLEMS"]
    assert first.split() == ["OpenCode", "4", "0", "0", "0"]
    assert second.split() == ["pi", "2", "0", "0", "0"]
    assert total == "6 imported · 2 stores"


def test_the_report_is_available_as_json(sessiondb: Run, home: Path) -> None:
    log = pi_log(home, "p1")
    pi_log(home, "p2")
    pi_log(home, "o1", folder=".omp")
    sessiondb("import")
    pi_log(home, "p3")
    with log.open("a") as file:
        file.write(log.read_text().splitlines()[1].replace("0a0a0a0a", "0b0b0b0b"))
        file.write("\n{garbage\n")
    ran = sessiondb("import", "--json")
    assert ran.json["stores"] == [
        {"agent": "pi", "path": str(home / ".pi" / "agent")},
        {"agent": "oh-my-pi", "path": str(home / ".omp" / "agent")},
    ]
    none = {"deleted": 0, "diverged": 0}
    assert ran.json["agents"] == [
        {"agent": "pi", "source": "pi", "new": 1, "updated": 1, "unchanged": 1,
         **none, "problems": 1},
        {"agent": "oh-my-pi", "source": "oh-my-pi", "new": 0, "updated": 0,
         "unchanged": 1, **none, "problems": 0},
    ]  # fmt: skip
    assert "found" not in ran.err


def test_rare_counts_have_a_row_only_if_they_are_not_zero(
    sessiondb: Run, home: Path
) -> None:
    pi_log(home, "p1")
    sessiondb("import")
    assert "DELETED" not in sessiondb("import").out
    sessiondb("rm", "p1", "--yes")
    head, row, _ = sessiondb("import").out.splitlines()
    assert dict(zip(head.split(), row.split(), strict=True))["DELETED"] == "1"


def test_one_agent_that_was_named_is_one_line(
    sessiondb: Run, home: Path, tmp_path: Path
) -> None:
    pi_log(home, "p1")
    ran = sessiondb("import", str(home))
    assert (ran.out, ran.err) == ("1 imported · 1 store\n", "")
    opencode(home)
    assert sessiondb("import", str(home)).out.startswith("AGENT")


def test_a_store_of_another_format_is_named(sessiondb: Run, home: Path) -> None:
    pi_log(home, "p1")
    ran = sessiondb("import", str(home), "--from", "codex", "--from", "claude")
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == (
        f"  {home}: no sessions of Codex or Claude Code; without --from, those of pi "
        "are imported"
    )
    for name in ("a2", "fedcba9876543210"):
        pi_log(home, name, folder="both")
    ran = sessiondb("import", str(home / "both"), "--from", "xcsh")
    assert ran.code == 4
    assert "those of oh-my-pi, pi are imported" in ran.err
    (home / "empty").mkdir()
    ran = sessiondb("import", str(home / "empty"), "--from", "codex")
    assert ran.err.splitlines()[-1] == f"  {home / 'empty'}: no sessions of Codex"


def test_an_exported_plain_log_is_named_and_not_read_as_the_log_of_its_program(
    sessiondb: Run, home: Path, tmp_path: Path
) -> None:
    pi_log(home, "p1")
    sessiondb("import", str(home))
    log = tmp_path / "p1.jsonl"
    sessiondb("export", "p1", "--to", "event-log", "-o", str(log))
    ran = sessiondb("import", "--from", "pi", str(log))
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == (
        f"  {log}: no sessions of pi; without --from, those of plain log are imported"
    )


def test_a_file_whose_header_is_damaged_is_not_called_a_database_without_sessions(
    sessiondb: Run, tmp_path: Path
) -> None:
    openai_agents.plain(tmp_path)
    (file,) = tmp_path.glob("*.db")
    file.write_bytes(b"\0" * 100 + file.read_bytes()[100:])
    ran = sessiondb("import", str(file))
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == (
        f"  {file}: no sessions of a known agent: not a SQLite database, or its "
        "beginning is damaged"
    )


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (["pi"], {"p1", "a1", "a2"}),
        (["oh-my-pi"], {"o1", "0123456789abcdef", "fedcba9876543210"}),
        (
            ["pi", "oh-my-pi"],
            {"p1", "a1", "a2", "o1", "0123456789abcdef", "fedcba9876543210"},
        ),
        (["xcsh"], set()),
        (["xcsh", "codex", "jsonl"], set()),
    ],
)
def test_programs_that_share_a_format_are_named_one_by_one(
    sessiondb: Run, home: Path, named: list[str], found: set[str]
) -> None:
    pi_log(home, "p1")
    pi_log(home, "o1", folder=".omp")
    pi_log(home, "a1", folder="one")
    pi_log(home, "0123456789abcdef", folder="two")
    for name in ("a2", "fedcba9876543210"):
        pi_log(home, name, folder="both")
    chosen = [word for name in named for word in ("--from", name)]
    for ran in (sessiondb("import", "--json", *chosen, str(home)),
                sessiondb("import", "--json", *chosen)):  # fmt: skip
        sessions = [session["id"] for session in ran.json["sessions"]]
        assert len(set(sessions)) == len(sessions)
    ids = {of["source_id"] for of in sessiondb("list", "-a", "--json").json["sessions"]}
    assert ids == found

    ran = sessiondb("import", *chosen)
    assert ("found pi" in ran.err, "found oh-my-pi" in ran.err) == (
        "pi" in named,
        "oh-my-pi" in named,
    )


def test_a_log_of_our_own_has_sessions_of_any_program(
    sessiondb: Run, home: Path, tmp_path: Path
) -> None:
    pi_log(home, "o1", folder=".omp")
    sessiondb("import")
    log = str(tmp_path / "all.jsonl")
    sessiondb("export", "-a", "--to", "jsonl", "-o", log)
    other = ("--db", str(tmp_path / "other.db"))
    ran = sessiondb(*other, "import", "--from", "pi", "--from", "jsonl", log, "--json")
    assert ran.json["imported"] == 1


def test_a_place_that_cannot_be_read_is_a_problem_of_its_agent(
    sessiondb: Run, home: Path
) -> None:
    pi_log(home, "p1", folder=".omp")
    chats = home / ".gemini" / "tmp" / "tea"
    chats.mkdir(parents=True)
    chats.chmod(0)
    try:
        with permissions_hold():
            agents = sessiondb("import", "--json").json["agents"]
    finally:
        chats.chmod(0o700)
    found = {item["agent"]: (item["new"], item["problems"]) for item in agents}
    assert found == {"oh-my-pi": (1, 0), "Gemini CLI": (0, 1)}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BusyError("busy")])
def test_an_import_that_ends_early_reports_its_sessions(
    sessiondb: Run, home: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    add = Report.add

    def failing(report: Report, result: Imported | Problem) -> None:
        if report.written:
            raise error
        add(report, result)

    pi_log(home, "p1")
    pi_log(home, "p2")
    with monkeypatch.context() as patched:
        patched.setattr(Report, "add", failing)
        ran = sessiondb("import", "--from", "pi")
    assert ran.code in (130, 5)
    note = "1 session imported before it stopped; the same command imports the rest"
    assert note in ran.err.splitlines()

    again = sessiondb("import", "--json").json
    assert again["imported"] + again["unchanged"] == 2


def test_equal_losses_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(losses, "say", said.append)
    one, other = (Document(name, iter(())) for name in "ab")
    dropped = [Loss("s1", "a result of call c1", str(number)) for number in range(3)]
    answers = [
        Loss("s1", "the cost of 81 answers", "m1", "assistant", "cost", 81),
        Loss("s1", "the agent of 3 answers", "m1", "assistant", "agent", 3),
    ]
    whole = [
        Loss("s1", "2 thoughts in answers", "m1", "assistant/reasoning", "", 2),
        Loss("s1", "its version", None, "session", "version"),
    ]

    found = losses.documents([one, *dropped, *answers, *whole, other])

    assert next(found) is one
    assert said == []
    assert next(found) is other
    assert said == [
        "s1: lost: 2 thoughts in answers, its version",
        "s1: lost: cost and agent (3) of 81 answers",
        "s1: lost: a result of call c1 (3 times)",
    ]
    assert list(found) == []
    assert len(said) == 3


def test_an_agent_that_cannot_be_read_is_named(sessiondb: Run, home: Path) -> None:
    (home / ".cursor" / "chats").mkdir(parents=True)
    ran = sessiondb("import")
    assert ran.code == 0
    assert f"Cursor: not supported yet ({home / '.cursor'})" in ran.err
    found = sessiondb("import", "--json").json["unsupported"]
    assert found == [{"agent": "Cursor", "path": str(home / ".cursor")}]
    assert sessiondb("import", "--from", "pi", "--json").json["unsupported"] == []


# -- stores that live in projects --------------------------------------------------------


def history(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ".aider.chat.history.md"
    file.write_text(AIDER)
    return file


def test_projects_below_the_current_folder_are_searched(
    sessiondb: Run, project: Path
) -> None:
    histories = [history(project), history(project / "a" / "b")]
    history(project / ".venv")
    history(project / "node_modules" / "x")
    history(project.parent / "beside")
    ran = sessiondb("import", "--json")
    assert [store["path"] for store in ran.json["stores"]] == list(map(str, histories))
    assert ran.json["agents"][0]["agent"] == "aider"
    assert ran.json["agents"][0]["new"] == len(ran.json["sessions"]) > 0
    again = sessiondb("import", "--json").json
    assert (again["imported"], again["updated"]) == (0, 0)
    assert sessiondb("import", "--from", "pi", "--json").json["stores"] == []


def test_a_machine_without_stores_gets_the_next_command(
    sessiondb: Run, home: Path
) -> None:
    ran = sessiondb("import")
    assert (ran.code, ran.out) == (0, "no sessions · 0 stores\n")
    assert ran.err.splitlines() == [
        "no store of a known agent is in its usual place",
        "  `sessiondb import PATH` imports one from another place",
    ]


def test_many_stores_of_one_agent_are_announced_in_one_line(
    sessiondb: Run, project: Path
) -> None:
    for name in ("one", "two", "three"):
        history(project / name)
    assert sessiondb("import", "--dry-run").err.count("found aider: ") == 3
    history(project / "four")
    said = sessiondb("import", "--dry-run").err.splitlines()
    assert said == [f"found aider: 4 stores below {project}"]
    assert len(sessiondb("import", "--json").json["stores"]) == 4


def test_a_file_of_the_agents_sdk_is_found_in_a_project(
    sessiondb: Run, project: Path
) -> None:
    (project / "bot").mkdir()
    (project / "other").mkdir()
    openai_agents.write(
        project / "bot" / "conversations.db", {"s1": [openai_agents.prompt("Tea?")]}
    )
    (project / "other" / "conversations.db").write_bytes(b"another program's")
    ran = sessiondb("import")
    assert ran.code == 0
    assert ran.err == f"found OpenAI Agents SDK: {project}/bot/conversations.db\n"


def test_a_reason_does_not_repeat_the_place() -> None:
    problem = Problem("/a/b", "cannot read /a/b: Permission denied")
    assert problem_line(problem) == "/a/b: cannot be read: Permission denied"


def test_the_search_is_bounded_and_reports_it(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = history(project / "near")
    far = history(project / "a" / "b" / "c" / "d")
    monkeypatch.setattr(discovery, "MAX_ENTRIES", 4)
    ran = sessiondb("import", "--json")
    assert [store["path"] for store in ran.json["stores"]] == [str(near)]
    assert "not all of it was searched" in ran.err

    monkeypatch.setattr(discovery, "MAX_ENTRIES", 1000)
    assert in_projects(project) == ([near, far], True)
    monkeypatch.setattr(discovery, "MAX_PROJECT_DEPTH", 3)
    assert in_projects(project) == ([near], True)


def test_links_and_unreadable_folders_are_passed_over(project: Path) -> None:
    found = history(project / "real")
    (project / "link").symlink_to(project / "real")
    (project / "loop").symlink_to(project)
    assert in_projects(project) == ([found], True)
    assert in_projects(project / "missing") == ([], True)


def test_problems_that_are_only_counted_are_part_of_the_number_of_problems(
    sessiondb: Run, home: Path
) -> None:
    with pi_log(home, "p1").open("a") as file:
        file.write("{garbage\n" * 1_200)
    ran = sessiondb("import", str(home))
    head, *_, last = ran.err.splitlines()
    assert head == "1,200 problems, everything else was imported:"
    assert last == "  … 1,180 more (--json has 1,001 of them)"
    (row,) = sessiondb("import", "--json").json["agents"]
    assert row["problems"] == 1_200
