from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from command_line import Ran, Run, Story

from sessiondb import Store, assistant, tool, user
from sessiondb.cli.text import last_used

FIELDS = (
    "id slug title directory project_id parent_id relation root_id source source_id scope agent "
    "provider_id model_id message_count cost cost_inherited tokens time_created time_updated "
    "time_archived"
).split()


def ids(ran: Ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [session["id"] for session in ran.json["sessions"]]


def test_a_list_holds_this_projects_sessions_newest_first(
    sessiondb: Run, story: Story
) -> None:
    assert ids(sessiondb("list", "--json")) == [story.fork, story.parser]


def test_a_reversed_list_begins_with_the_oldest_page_by_page(
    sessiondb: Run, story: Story
) -> None:
    newest_first = ids(sessiondb("list", "-a", "--json"))
    assert ids(sessiondb("list", "-a", "--reverse", "--json")) == newest_first[::-1]
    for order in ("used", "created", "cost", "size"):
        words = ["list", "-a", "--sort", order, "--reverse", "--limit", "1", "--json"]
        pages, cursor = [], []
        while cursor is not None:
            page = sessiondb(*words, *cursor).json
            pages += [session["id"] for session in page["sessions"]]
            following = page["next_cursor"]
            cursor = None if following is None else ["--cursor", following]
        complete = ids(sessiondb("list", "-a", "--sort", order, "--json"))
        assert pages == complete[::-1]


def test_a_session_without_a_directory_is_in_the_list_of_all_projects(
    sessiondb: Run, store: Store, project: Path
) -> None:
    with store.effects() as fx:
        session = fx.create_session(directory=None, title="Of a server", scope="ann")
        fx.append(session, user("word"))
        fx.append(session, assistant("word"), cost=1.0)
    assert ids(sessiondb("list", "--json")) == []
    (listed,) = sessiondb("list", "-a", "--json").json["sessions"]
    assert (listed["id"], listed["directory"]) == (session.id, None)
    assert (listed["project_id"], listed["scope"]) == (None, "ann")
    # The directory of a line in a pipe is empty, and in a table a dash.
    assert sessiondb("list", "-a").lines[0][7] == ""
    assert sessiondb("stats", "-a", "--by", "project").lines[0][0] == ""
    assert sessiondb("search", "-a", "word").code == 0
    assert "scope ann" in sessiondb("show", session.id).out
    plan = sessiondb("resume", session.id, "--in", "claude", "--print", "--json").json
    assert plan["directory"] == str(project)
    assert ["cd", str(project)] in plan["commands"]
    store.update_session(session, scope=None)
    assert "scope" not in sessiondb("show", session.id).out


def test_every_project_and_subagents_on_demand(sessiondb: Run, story: Story) -> None:
    assert ids(sessiondb("list", "-a", "--json")) == [
        story.other,
        story.fork,
        story.parser,
    ]
    assert story.helper in ids(sessiondb("list", "--subagents", "--json"))


def test_a_session_has_the_fields_of_the_contract(sessiondb: Run, story: Story) -> None:
    found = sessiondb("list", "--json").json["sessions"][1]
    assert set(FIELDS) <= set(found)
    assert found["id"] == story.parser
    assert found["tokens"] == {
        "input": 100, "output": 20, "reasoning": None, "cache_read": None, "cache_write": None
    }  # fmt: skip


def test_filters_narrow_the_list(sessiondb: Run, story: Story, project: Path) -> None:
    assert ids(sessiondb("list", "--title", "PARSER", "--json")) == [story.parser]
    assert ids(sessiondb("list", "--agent", "build", "--json")) == [
        story.fork,
        story.parser,
    ]
    assert ids(sessiondb("list", "--source", "nobody", "--json")) == []
    elsewhere = project.parent / "elsewhere"
    assert ids(sessiondb("list", "--project", str(elsewhere), "--json")) == [
        story.other
    ]
    assert ids(sessiondb("list", "--since", "1h", "--until", "today", "--json")) == [
        story.fork,
        story.parser,
    ]
    assert ids(sessiondb("list", "--until", "yesterday", "--json")) == []


def test_sorting_by_cost(sessiondb: Run, story: Story) -> None:
    assert ids(sessiondb("list", "--sort", "cost", "--json")) == [
        story.parser,
        story.fork,
    ]


def test_pages_follow_each_other(sessiondb: Run, story: Story) -> None:
    first = sessiondb("list", "-a", "--limit", "2", "--json")
    assert ids(first) == [story.other, story.fork]
    cursor = first.json["next_cursor"]
    second = sessiondb("list", "-a", "--limit", "2", "--cursor", cursor, "--json")
    assert (ids(second), second.json["next_cursor"]) == ([story.parser], None)


def test_nothing_is_an_empty_list_and_a_hint(sessiondb: Run) -> None:
    ran = sessiondb("list", "--json")
    assert ran.code == 0
    assert ran.json == {"sessions": [], "next_cursor": None}
    assert "sessiondb import" in ran.err
    assert sessiondb("list", "--jsonl").out == ""
    assert sessiondb("list").out == ""


def test_a_line_each_as_jsonl(sessiondb: Run, story: Story) -> None:
    lines = sessiondb("list", "--jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [story.fork, story.parser]


def test_a_pipe_gets_fixed_columns_without_a_header(
    sessiondb: Run, story: Story, project: Path
) -> None:
    fork, parser = sessiondb("list").lines
    assert fork[0] == story.fork
    assert datetime.fromisoformat(parser[1]).tzinfo is not None
    assert parser[2:] == [
        "sessiondb",
        "build",
        "3",
        "0.25",
        "Fix the parser",
        str(project),
        "2",
        "",
        "0",
    ]
    assert fork[5] == "", "an unknown cost is nothing, not 0"


def test_hostile_titles_stay_one_line_and_harmless(
    sessiondb: Run, store: Store
) -> None:
    title = "a\tb\nc\x1b]0;pwned\x07 \u202egnp.exe \x9b31m \\"
    store.append(store.create_session(title=title), user("Hello"))
    (line,) = sessiondb("list").lines
    assert line[6] == r"a\tb\nc\x1b]0;pwned\x07 \u202egnp.exe \x9b31m \\"
    raw = sessiondb("list", "--json")
    assert raw.json["sessions"][0]["title"] == title
    assert not {"\x1b", "\x9b", "\u202e"} & set(raw.out)


def test_a_terminal_gets_an_aligned_table(
    terminal: Run, store: Store, story: Story
) -> None:
    store.append(store.create_session(title="日本語の題名 " * 20), user("Hello"))
    ran = terminal("list", width=60)
    head, newest, fork, parser, *rest = ran.out.splitlines()
    assert "USED" in head
    assert "\x1b[1m" in head
    assert newest.endswith("…")
    assert "日本語の題名" in newest
    assert fork.index("(fork) Another idea") == parser.index("Fix the parser")
    assert parser.startswith(story.parser[-6:].lower())
    assert "-a for every project" in rest[-1]


def test_no_color_is_honoured(terminal: Run, story: Story) -> None:
    assert "\x1b" not in terminal("list", NO_COLOR="1").out
    assert "\x1b" not in terminal("--color never list").out


@pytest.mark.parametrize(
    "args",
    [
        ("--json", "--jsonl"),
        ("-a", "--project", "."),
        ("--since", "someday"),
        ("--until", "32d13h"),
        ("--limit", "0"),
        ("-a", "--cursor", "garbage"),
        ("--sort", "beauty"),
        ("surplus",),
    ],
)
def test_bad_arguments_are_exit_2(sessiondb: Run, args: tuple[str, ...]) -> None:
    ran = sessiondb("list", *args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(("sessiondb: ", '{"error": '))


def test_prompts_are_listed_and_found(
    sessiondb: Run, store: Store, project: Path
) -> None:
    store.add_prompt("fix the\nparser")
    store.add_prompt("write docs")
    store.add_prompt("over there", directory=str(project.parent))
    found = sessiondb("prompts", "--json").json["prompts"]
    assert [p["text"] for p in found] == ["write docs", "fix the\nparser"]
    assert len(sessiondb("prompts", "-a", "--json").json["prompts"]) == 3
    (line,) = sessiondb("prompts", "parser").lines
    assert line[1:] == ["sessiondb", "", str(project), r"fix the\nparser"]
    assert sessiondb(
        "prompts", "--since", "today", "--until", "yesterday", "--json"
    ).json == {
        "prompts": [],
        "next_cursor": None,
    }


def local(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000).astimezone()


def test_an_until_day_includes_all_of_that_day() -> None:
    from sessiondb.cli.moments import Moment

    day = "2026-11-01"
    start = Moment().convert(day, None, None)
    end = Moment(end=True).convert(day, None, None)
    assert local(start).isoformat()[:19] == f"{day}T00:00:00"
    assert local(end).isoformat()[:19] == "2026-11-02T00:00:00"


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_span_counts_back_from_now(written: str, back: timedelta) -> None:
    from sessiondb.cli.moments import Moment

    meant = local(Moment().convert(written, None, None))
    assert abs(datetime.now().astimezone() - back - meant) < timedelta(seconds=9)


def test_iso_time_with_and_without_a_zone() -> None:
    from sessiondb.cli.moments import Moment

    assert Moment().convert("2026-11-01T12:00:00Z", None, None) == 1793534400000
    there = local(Moment().convert("2026-11-01T12:00", None, None))
    assert there.isoformat()[:19] == "2026-11-01T12:00:00"


def test_a_further_page_is_announced_unless_json_has_it(
    sessiondb: Run, story: Story
) -> None:
    cut = sessiondb("list", "-a", "--limit", "2")
    cursor = sessiondb("list", "-a", "--limit", "2", "--json").json["next_cursor"]
    assert cut.err == "2 sessions · more: `sessiondb list -a --limit 2 --cursor 2`\n"
    assert f"`sessiondb list -a --limit 2 --jsonl --cursor {cursor}`" in (
        sessiondb("list", "-a", "--limit", "2", "--jsonl").err
    )
    assert sessiondb("list", "-a", "--limit", "2", "--json").err == ""
    assert sessiondb("list", "-a").err == ""


def test_a_page_is_named_by_its_number(sessiondb: Run, store: Store) -> None:
    sessions = []
    for number in range(7):
        session = store.create_session(title=f"Session {number}").id
        store.append(session, user(f"word {number}"))
        sessions.insert(0, session)
        store.add_prompt(f"prompt {number}", session=session)

    for command, column in (("list", 0), ("search word", 0), ("prompts", 2)):
        typed = [*command.split(), "--limit", "3"]
        seen, again = [], ""
        while typed:
            ran = sessiondb(*typed)
            seen += [line[column] for line in ran.lines]
            again = re.sub(r".*`sessiondb (.*)`\n", r"\1", ran.err)
            typed = again.split()
        assert seen == sessions, command
    past = sessiondb("list", "--limit", "3", "--cursor", "4", "--json")
    assert (past.json["sessions"], past.json["next_cursor"]) == ([], None)
    exact = sessiondb("list", "--limit", "3", "--cursor", "2", "--json").json
    after = sessiondb(
        "list", "--limit", "3", "--cursor", exact["next_cursor"], "--json"
    )
    assert ids(after) == sessions[6:]


@pytest.mark.parametrize(
    "args",
    [
        ("list", "--cursor", "garbage"),
        ("list", "--cursor", "0"),
        ("search", "x", "--cursor", "garbage"),
        ("prompts", "--cursor", "garbage"),
        ("stats", "--by", "colour"),
    ],
)
def test_invalid_options_are_refused_in_an_unknown_project_too(
    sessiondb: Run, store: Store, args: tuple[str, ...]
) -> None:
    ran = sessiondb(*args)
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize(
    "command", ["list", "search x", "prompts", "stats", "export --to jsonl"]
)
def test_every_command_that_chooses_takes_every_filter(
    sessiondb: Run, command: str
) -> None:
    name, *rest = command.split()
    chosen = (
        "--source s --agent a --since 7d --until today --title t --archived --subagents"
    )
    for place in (["-a"], ["--project", "."]):
        assert sessiondb(name, *rest, *place, *chosen.split()).code == 0


def test_prompts_are_narrowed_by_who_kept_them_and_where(
    sessiondb: Run, store: Store, story: Story
) -> None:
    store.add_prompt("typed nowhere")
    for session in (story.parser, story.helper, story.other):
        store.add_prompt(f"typed in {store.session(session).title}", session=session)

    def found(*args: str) -> list[str]:
        prompts = sessiondb("prompts", "-a", *args, "--json").json["prompts"]
        return [prompt["text"] for prompt in prompts]

    usual = ["typed in Write the manual", "typed in Fix the parser", "typed nowhere"]
    assert found() == usual
    assert len(found("--subagents")) == 4
    assert found("--title", "PARSER") == found("--agent", "build") == usual[1:2]
    assert (found("--source", "sessiondb"), found("--source", "opencode")) == (
        usual,
        [],
    )
    sessiondb("archive", story.other)
    assert found() == usual[1:]
    assert found("--archived") == usual


def test_a_list_by_size_shows_the_size_of_each_session(
    sessiondb: Run, terminal: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts that enter the search index meanwhile make sessions larger.
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    for number in (10, 300_000, 2_000):
        session = store.create_session(title=f"{number}")
        words = ("word " * number)[:number]
        store.append(session, assistant(tool("sh", words), words))
    listed = sessiondb("list", "--sort", "size", "--json").json["sessions"]
    assert [session["title"] for session in listed] == ["300000", "2000", "10"]
    assert all(2 * int(s["title"]) <= s["bytes"] for s in listed)
    assert all(
        s["bytes"] == sessiondb("rm", s["id"], "--dry-run", "--json").json["bytes"]
        for s in listed
    )
    biggest = sessiondb("doctor", "--json").json["biggest_sessions"]
    assert [(s["id"], s["bytes"]) for s in biggest] == [
        (s["id"], s["bytes"]) for s in listed
    ]
    assert [int(line[-1]) for line in sessiondb("list", "--sort", "size").lines] == [
        session["bytes"] for session in listed
    ]
    assert " kB" in terminal("list --sort size").out


@pytest.mark.parametrize(
    ("month", "begins", "ends"),
    [("2026-02", "2026-02-01", "2026-02-28"), ("2026-12", "2026-12-01", "2026-12-31")],
)
def test_a_month_means_its_first_to_its_last_day(
    month: str, begins: str, ends: str
) -> None:
    from sessiondb.cli.moments import Moment

    since, until = Moment(), Moment(end=True)
    assert since.convert(month, None, None) == since.convert(begins, None, None)
    assert until.convert(month, None, None) == until.convert(ends, None, None)


def test_an_estimated_cost_is_marked_and_apart_from_a_stated_one(
    sessiondb: Run, terminal: Run, store: Store, story: Story
) -> None:
    tokens = {"input": 100_000}
    store.append(story.parser, assistant("y"), model="claude-sonnet-4-5", tokens=tokens)
    store.append(story.parser, assistant("z"), model="unheard-of", tokens={"input": 7})
    (found,) = [
        row
        for row in sessiondb("list", "--json").json["sessions"]
        if row["id"] == story.parser
    ]
    assert (found["cost"], found["tokens_unpriced"]) == (0.25, 7)
    assert found["cost_estimated"] == pytest.approx(0.3)

    shown = sessiondb("show", story.parser, "--json").json["session"]
    assert shown["cost_estimated"] == found["cost_estimated"]
    words = "cost ≥ $0.55 ($0.30 estimated) · 7 tokens without a price"
    assert words in sessiondb("show", story.parser).out
    assert "≥$0.25+~$0.30" in terminal("list").out
    assert "≥$0.25+~$0.30" in terminal(f"tree {story.parser}").out
    assert "~$ is estimated" in terminal("list").out
    # An order has what was stated alone; what also has the rest is named.
    by_cost = terminal("list --sort cost", width=120).out
    assert "`sessiondb stats -a --by session` adds estimates" in by_cost

    for form in ("html", "markdown"):
        page = sessiondb("export", story.parser, "--to", form).out
        assert "≥ $0.55 ($0.30 estimated) · 7 tokens without a price" in page, form


MINUTES, HOURS, DAYS = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (0, "now"), (5 * MINUTES, "5 min"), (23 * HOURS, "23 h"),
        (DAYS, "Tue 15:30"), (5 * DAYS, "Fri 15:30"), (6 * DAYS, "19 Nov 15:30"),
        (20 * DAYS, "05 Nov 15:30"), (180 * DAYS, "2026-05-29"), (-DAYS, "2026-11-26"),
    ],
)  # fmt: skip
def test_a_list_has_the_hour_of_what_was_used_in_the_last_half_year(
    age: int, words: str
) -> None:
    now = int(datetime(2026, 11, 25, 15, 30).timestamp() * 1000)  # noqa: DTZ001
    assert last_used(now - age, now) == words


def test_the_last_prompt_tells_sessions_of_one_title_apart(
    terminal: Run, store: Store
) -> None:
    for title, prompt in (
        ("Release plan of the kettle", "First draft"),
        ("Release plan of the kettle", "Carry on"),
        ("Tea", "How long?"),
    ):
        session = store.create_session(title=title)
        store.append(session, user("Hello"))
        store.append(session, user(prompt))
        store.append(session, assistant("Done"))
    titles = [line.split("  ")[-1] for line in terminal("list").out.splitlines()[1:4]]
    assert titles == [
        "Tea", "Release plan of… · Carry on", "Release plan of… · First draft",
    ]  # fmt: skip
