from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story


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
    assert names == {f"{story.parser}.html", f"{story.fork}.html"}


def test_subagents_are_shown_in_the_sessions_that_started_them(sessiondb: Run) -> None:
    sessiondb("import", str(SAMPLE))
    out = sessiondb(
        "export", "patient-dune-yn", "--to", "markdown", "--with-children"
    ).out
    asked, nested = out.index("<b>task</b>"), out.index("<b>Subagent</b>")
    assert asked < nested
    assert "of subagents" in out
    assert out.count("</details>") == out.count("<details>")
