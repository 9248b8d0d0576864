from __future__ import annotations

import re
import shutil
import time
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, user


@pytest.mark.parametrize(
    ("form", "start"),
    [("markdown", "# Fix the parser\n"), ("html", "<!DOCTYPE html>\n")],
)
def test_a_transcript_goes_to_stdout_or_to_a_file(
    sessiondb: Run, story: Story, tmp_path: Path, form: str, start: str
) -> None:
    ran = sessiondb("export", story.parser, "--to", form)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(start)
    file = tmp_path / "to-a-colleague"
    assert sessiondb("export", story.parser, "--to", form, "-o", str(file)).code == 0
    assert file.read_text() == ran.out
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_levels_of_detail_are_brief_normal_and_full(
    sessiondb: Run, story: Story
) -> None:
    brief, normal, full, default = (
        sessiondb("export", story.parser, "--to", "markdown", *more).out
        for more in (
            ["--detail", "brief"],
            ["--detail", "normal"],
            ["--detail", "full"],
            [],
        )
    )
    assert len(brief) < len(normal) <= len(full)
    assert default == normal
    refused = sessiondb("export", story.parser, "--to", "markdown", "--detail", "some")
    assert refused.code == 2
    assert "normal, brief, full" in refused.err
    other = sessiondb("export", story.parser, "--to", "opencode", "--detail", "brief")
    assert (other.code, other.out) == (2, "")


def test_a_family_is_one_page_or_a_folder_of_them(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    family = ("export", story.parser, "--to", "html", "--with-children")
    page = sessiondb(*family).out
    assert page.count("<!DOCTYPE") == 1
    assert page.count("<article") == 3
    assert sessiondb(*family, "-o", f"{tmp_path}/out/").code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert names == {
        f"{today}-fix-the-parser-{story.parser[-6:].lower()}.html",
        f"{today}-another-idea-{story.fork[-6:].lower()}.html",
        "index.html",
    }


def test_the_index_of_a_folder_links_to_each_page(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    folder = tmp_path / "all pages"
    # A name without an ending is a folder for several pages.
    assert sessiondb("export", "-a", "--to", "html", "-o", str(folder)).code == 0
    index = (folder / "index.html").read_text()
    links = [unquote(link) for link in re.findall(r'<li><a href="([^"]+)"', index)]
    assert len(links) == 3
    assert {*links, "index.html"} == {path.name for path in folder.iterdir()}
    for title in ("Fix the parser", "Another idea", "Write the manual"):
        assert f">{title}</a>" in index
    markdown = tmp_path / "texts"
    assert sessiondb("export", "-a", "--to", "markdown", "-o", str(markdown)).code == 0
    assert len(list(markdown.glob("20*-*.md"))) == len(list(markdown.iterdir())) == 3


def test_a_name_with_an_ending_is_still_one_page_of_several(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    page = tmp_path / "all.html"
    assert sessiondb("export", "-a", "--to", "html", "-o", str(page)).code == 0
    assert page.read_text().count("<article") == 3
    log = tmp_path / "all"
    assert sessiondb("export", "-a", "--to", "jsonl", "-o", str(log)).code == 0
    assert log.is_file()


@pytest.mark.parametrize(
    "title",
    ["", "../../etc/passwd", "a/b\\c\0d\n", "…", "漢字 " * 80, "CON", ".", "<b>"],
)
def test_any_title_is_a_safe_name_of_a_file(
    sessiondb: Run, store: Store, tmp_path: Path, title: str
) -> None:
    for _ in range(2):
        session = store.create_session(title=title.replace("\0", ""))
        store.append(session, user("x"))
    folder = tmp_path / "pages"
    assert sessiondb("export", "-a", "--to", "html", "-o", f"{folder}/").code == 0
    names = [path.name for path in folder.iterdir()]
    assert len(names) == 3
    for name in names:
        assert re.fullmatch(r"(\d{4}-\d\d-\d\d-[\w.-]*\w|index)\.html", name), name
        assert len(name.encode()) < 240


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A browser that notes the addresses it is given, in the file that is returned."""
    program, seen = tmp_path / "browser", tmp_path / "seen"
    program.write_text(f'#!/bin/sh\necho "$1" >> {seen}\n')
    program.chmod(0o755)
    # The standard library finds browsers once in a process.
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    return seen


@pytest.mark.parametrize("to", ["html", "markdown"])
def test_open_shows_the_page_or_the_index(
    sessiondb: Run, story: Story, browser: Path, tmp_path: Path, to: str
) -> None:
    one = ("export", story.other, "--to", to, "--open")
    assert sessiondb(*one, "-o", f"{tmp_path}/a page.html").code == 0
    assert sessiondb(*one).code == 0
    assert sessiondb("export", "-a", "--to", to, "--open").code == 0
    shown = [Path(unquote(urlsplit(line).path)) for line in browser.read_text().split()]
    assert shown[0] == tmp_path / "a page.html"
    assert "write-the-manual" in shown[1].name
    assert shown[1].parent.stat().st_mode & 0o777 == 0o700
    assert (shown[2].name == "index.html") == (to == "html")
    for path in shown:
        assert path.is_file()
        if path.parent != tmp_path:
            shutil.rmtree(path.parent)


def test_without_a_browser_the_page_is_named(
    sessiondb: Run, story: Story, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    page = tmp_path / "page.html"
    ran = sessiondb("export", story.other, "--to", "html", "--open", "-o", str(page))
    assert (ran.code, page.is_file()) == (1, True)
    assert f"no browser opened {page}" in ran.err


@pytest.mark.parametrize("args", [["--to", "jsonl"], ["--to", "html", "-o", "-"]])
def test_open_needs_a_page_in_a_file(
    sessiondb: Run, story: Story, args: list[str]
) -> None:
    ran = sessiondb("export", story.other, "--open", *args)
    assert (ran.code, ran.out) == (2, "")
    assert "--open" in ran.err


def test_subagents_are_shown_in_the_sessions_that_started_them(sessiondb: Run) -> None:
    sessiondb("import", str(SAMPLE))
    out = sessiondb(
        "export", "patient-dune-yn", "--to", "markdown", "--with-children"
    ).out
    asked, nested = out.index("<b>task</b>"), out.index("<b>Subagent</b>")
    assert asked < nested
    assert "of subagents" in out
    assert out.count("</details>") == out.count("<details>")
