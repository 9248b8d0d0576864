from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, assistant, text, tool, user
from sessiondb.cli.following import follow

pytestmark = pytest.mark.slow


def types(log: str) -> list[str]:
    return [json.loads(line)["type"] for line in log.splitlines()]


def test_one_session_goes_to_stdout(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("export", story.parser, "--to", "jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert types(ran.out)[0] == "session_meta"
    assert {json.loads(line)["session_id"] for line in ran.out.splitlines()} == {
        story.parser
    }


def test_a_family_moves_to_another_machine_in_one_file(
    sessiondb: Run, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "family.jsonl.gz"
    ran = sessiondb(
        "export", story.parser, "--to", "jsonl", "--with-children", "-o", str(bundle)
    )
    assert (ran.code, ran.out) == (0, "")
    assert bundle.stat().st_mode & 0o777 == 0o600
    before = sessiondb("show", story.fork, "--json").json
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "laptop.db"))
    imported_again = sessiondb("import", str(bundle), "--json")
    assert (imported_again.code, imported_again.json["imported"]) == (0, 3)
    after = sessiondb("show", story.fork, "--json").json
    assert after == before
    assert sessiondb("import", str(bundle), "--json").json["unchanged"] == 3
    assert sessiondb("check").code == 0


def test_several_sessions_go_to_a_folder(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    ran = sessiondb("export", "-a", "--to", "jsonl", "-o", f"{tmp_path}/out/")
    assert ran.code == 0, ran.err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        f"{name}.jsonl" for name in (story.parser, story.fork, story.other)
    }


@pytest.mark.parametrize(
    "args",
    [
        ("--to", "jsonl"),
        ("@",),
        ("@", "--to", "telegram"),
        ("@", "-a", "--to", "jsonl"),
        ("--archived", "--to", "jsonl"),
        ("@", "--to", "jsonl", "--detail", "some"),
    ],
)
def test_an_export_of_nothing_in_particular_is_refused(
    sessiondb: Run, story: Story, args: tuple[str, ...]
) -> None:
    ran = sessiondb("export", *args)
    assert (ran.code, ran.out) == (2, "")


def test_sessions_removed_with_a_bundle_can_be_restored(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "gone.jsonl")
    before = sessiondb("show", story.fork, "--json").json
    assert sessiondb("rm", story.parser, "--yes", "--bundle", bundle).code == 0
    assert sessiondb("show", story.fork).code == 3
    assert sessiondb("import", bundle, "--json").json["deleted"] == 3
    assert sessiondb("import", bundle, "--restore", "--json").json["imported"] == 3
    assert sessiondb("show", story.fork, "--json").json == before


def test_sessions_of_other_agents_keep_their_origin(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessiondb("import", str(SAMPLE))
    bundle = str(tmp_path / "all.jsonl")
    assert (
        sessiondb("export", "-a", "--subagents", "--to", "jsonl", "-o", bundle).code
        == 0
    )
    listed = sessiondb("list", "-a", "--subagents", "--json").json["sessions"]
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "laptop.db"))
    assert sessiondb("import", bundle).code == 0
    assert sessiondb("list", "-a", "--subagents", "--json").json["sessions"] == listed
    assert sessiondb("import", str(SAMPLE), "--json").json["imported"] == 0


def test_secrets_of_known_shapes_are_redacted(
    sessiondb: Run, store: Store, project: Path
) -> None:
    session = store.create_session(title="Deploy with ghp_" + "a1" * 18)
    secrets = [
        "sk-ant-api03-" + "Zz9" * 12, "AKIA" + "B2" * 8, "hunter2-long", "postgres-pw-1",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    ]  # fmt: skip
    said = f"use {secrets[0]} and {secrets[1]}, PASSWORD={secrets[2]}"
    call = tool(
        "http", {"api_key": secrets[2], "url": f"postgres://me:{secrets[3]}@db/x"}
    )
    store.append(session, user(text(said)))
    store.append(session, assistant(call, text(f"Bearer {secrets[4]}"), note={"token": secrets[2]}),
                 tokens={"input": 7})  # fmt: skip
    plain = sessiondb("export", session.id, "--to", "jsonl").out
    ran = sessiondb("export", session.id, "--to", "jsonl", "--redact")
    assert all(secret in plain for secret in secrets)
    assert not any(secret in ran.out for secret in [*secrets, "a1a1a1"])
    assert '"tokens":{"input":7}' in ran.out
    assert "postgres://" in ran.out
    assert f"{session.id}: redacted: named secret, 3 times, in #1 #2" in ran.err
    assert f"{session.id}: redacted: AWS key, 1 time, in #1" in ran.err


def test_a_redaction_that_finds_nothing_says_so(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("export", story.other, "--to", "jsonl", "--redact")
    assert ran.err == "redacted: nothing has the form of a secret\n"


@pytest.fixture
def leaky(store: Store) -> str:
    """A session with a password in its title, a prompt and a call."""
    session = store.create_session(title="Log in with hunter22x")
    store.append(session, user("DB_PASS=hunter22x"))
    store.append(session, assistant(tool("sh", {"cmd": "echo hunter22x"})))
    return session.id


def test_a_report_of_a_redaction_names_kind_number_place_and_first_characters(
    sessiondb: Run, leaky: str
) -> None:
    ran = sessiondb("export", leaky, "--to", "markdown", "--redact")
    assert "hunter22x" not in ran.out + ran.err
    assert ran.err.splitlines() == [
        f"{leaky}: redacted: repeated secret, 2 times, in title #2: hun…",
        f"{leaky}: redacted: named secret, 1 time, in #1: hun…",
    ]


def test_a_dry_run_of_a_redaction_writes_nothing_and_reports_the_same(
    sessiondb: Run, leaky: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.md"
    to = ("export", leaky, "--to", "markdown", "--redact", "-o", str(file))
    planned = sessiondb(*to, "--dry-run")
    assert (planned.code, planned.err, file.exists()) == (0, "", False)
    done = sessiondb(*to)
    assert (done.code, done.err) == (0, planned.out)
    again = sessiondb(*to, "--dry-run", "--json")
    facts = again.json
    assert file.exists()
    assert facts["left_out"] == []
    assert {item["kind"]: item["seqs"] for item in facts["redacted"]} == {
        "repeated secret": [2],
        "named secret": [1],
    }
    assert facts["redacted"][0]["fields"] == ["title"]
    assert facts == sessiondb(*to, "--force", "--json").json


def test_a_dry_run_reports_what_an_export_of_several_would_remove(
    sessiondb: Run, leaky: str, story: Story, tmp_path: Path
) -> None:
    for form in ("opencode", "html", "jsonl"):
        ran = sessiondb("export", "-a", "--to", form, "--redact", "--dry-run")
        assert ran.code == 0
        assert f"{leaky}: redacted: named secret" in ran.out
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--dry-run"], "--redact"),
        (["--redact", "--dry-run", "--open"], "exclude each other"),
        (["--json"], "needs -o or --dry-run"),
        (["--json", "-o", "-"], "needs -o or --dry-run"),
    ],
)
def test_a_report_goes_where_no_session_goes(
    sessiondb: Run, leaky: str, args: list[str], says: str
) -> None:
    ran = sessiondb("export", leaky, "--to", "html", *args)
    assert ran.code == 2
    assert says in ran.err + ran.out


def test_a_name_of_a_file_has_no_secret(
    sessiondb: Run, leaky: str, tmp_path: Path
) -> None:
    to = ("export", leaky, "--to", "html", "--redact", "-o", f"{tmp_path}/pages/")
    assert sessiondb(*to).code == 0
    (page,) = (tmp_path / "pages").iterdir()
    assert "log-in-with-redacted" in page.name


def test_a_project_syncs_through_its_folder(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    refused = sessiondb("sync")
    assert refused.code == 2
    assert "init --local" in refused.err
    assert sessiondb("init", "--local").code == 0
    with Store.open() as store:
        name = store.create_session(title="Ours").id
        store.append(name, user("hello"))
    assert sessiondb("sync", "--json").json["written"] == [name]
    assert sessiondb("sync", "--json").json["written"] == []
    assert (project / ".sessiondb" / "sessions" / f"{name}.jsonl").is_file()


def test_tail_writes_each_step_as_a_readable_log(store: Store, tmp_path: Path) -> None:
    session = store.create_session(title="Live")
    store.append(session, user("go"))
    stop = threading.Event()
    said: list[str] = []
    lines = follow(store, store.session(session), as_jsonl=True, stop=stop)
    while "user" not in types("".join(said)):
        said.append(next(lines))
    message = store.append(session, assistant(tool("bash", {}, call_id="c")), open=True)
    store.settle(session, message.parts[0].id, output="ok")
    store.finish(session, message.id)
    store.set_title(session, "Named")
    while "session_renamed" not in types("".join(said))[-1:]:
        said.append(next(lines))
    stop.set()
    found = types("".join(said))
    steps = ["assistant_started", "tool_started", "tool_finished", "assistant_finished"]
    assert [kind for kind in found if kind in steps] == steps
    (tmp_path / "live.jsonl").write_text("".join(said))
    with Store.open(tmp_path / "other.db") as other:
        from sessiondb.formats import find

        for source in find(tmp_path / "live.jsonl"):
            assert all(not hasattr(item, "why") for item in other.ingest(source.read()))
        assert other.session(session.id).title == "Named"
        assert other.messages(session.id)[-1].parts[0].text == "ok"


def test_a_family_goes_to_opencode_and_comes_back(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessiondb("import", str(SAMPLE))
    root = next(
        s for s in sessiondb("list", "-a", "--json").json["sessions"] if s["parent_id"] is None
        and s["title"].startswith("Countdown")
    )  # fmt: skip
    for form in ("opencode", "opencode2"):
        out = tmp_path / form
        ran = sessiondb(
            "export", root["id"], "--to", form, "--with-children", "-o", f"{out}/"
        )
        assert ran.code == 0
        assert "that it is a fork" in ran.err
        monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / f"{form}.db"))
        imported_again = sessiondb("import", str(out), "--json")
        assert (imported_again.code, imported_again.json["imported"]) == (0, 3)
        listed = sessiondb("list", "-a", "--subagents", "--json").json["sessions"]
        (helper,) = (s for s in listed if s["relation"] == "subagent")
        assert helper["parent_id"] == root["id"]
        monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "sessions.db"))
