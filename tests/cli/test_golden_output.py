"""The output of each command, byte for byte, for a session that is hard to show.

The files in ``golden`` hold what each command printed; an escape character is
written ␛ there. ``SESSIONDB_GOLDEN=write`` writes them again: look at the
difference before you commit it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import nasty_session
import pytest
from command_line import Ran, Run
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessiondb import Store, clock
from sessiondb.cli.text import wrap

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).with_name("golden")
# Read before any test begins: tests see no settings of a person.
REWRITE = os.environ.get("SESSIONDB_GOLDEN") == "write"
#: Sentences, and the line for a prompt, which have no width.
ANY_WIDTH = re.compile(
    "--cursor|--bundle|^to remove: |^[0-9]+ sessions today|^in order of what"
)
COMMANDS = (
    "",
    "status",
    "list -a --subagents",
    "list -a --sort cost --limit 2",
    "list -a --sort size",
    "show nasty1",
    "show nasty1 --detail brief",
    "show nasty1 --full --last 3",
    "show nasty1 --branches --last 4",
    "show nasty1#3 --around 1",
    "show helper4",
    "tree deep3",
    "search -a --subagents lexer",
    "search -a --all-hits 空文件",
    "search -a --count lexer",
    "stats -a --by session",
    "stats -a --by day,model",
    "stats -a --by tool",
    "diff nasty1 deep3",
    "prompts -a",
    "rm --dry-run fork",
    "prune --dry-run -a --older-than 1d",
    "sql SELECT(title)FROM(session_list)",
    "check",
)


@pytest.fixture
def nasty(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The family of `nasty_session` in the database, 3 days later, on a machine in UTC."""
    hand = SimpleNamespace(now=0)
    hand.time_ns = lambda: hand.now * 1_000_000
    monkeypatch.setattr(clock, "time", hand)
    # Sizes depend on when parts entered the search index: on a loaded machine the store
    # would be idle in between.
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with Store.open(database, durability="normal") as store:
        nasty_session.write(store, lambda ms: setattr(hand, "now", ms))
    hand.now = nasty_session.NOON + 3 * 86_400_000 + 3_600_000
    yield
    monkeypatch.undo()
    time.tzset()


def compare(name: str, rans: list[Ran]) -> None:
    """Check what `COMMANDS` printed against the golden file of that name."""
    said = ""
    for command, ran in zip(COMMANDS, rans, strict=True):
        assert ran.code == 0, ran
        assert "␛" not in ran.out
        said += f"$ sessiondb {command}\n{ran.out}\n".replace("\x1b", "␛")
    path = GOLDEN / f"{name}.txt"
    if REWRITE:
        path.write_bytes(said.encode())
    assert said.encode() == path.read_bytes()


def test_a_pipe_gets_exact_fields(nasty: None, sessiondb: Run) -> None:
    compare("pipe", [sessiondb(*command.split()) for command in COMMANDS])


@pytest.mark.parametrize(
    ("name", "width", "env"),
    [
        ("terminal-80", 80, {}),
        ("terminal-120", 120, {}),
        ("terminal-40", 40, {}),
        ("no-color-80", 80, {"NO_COLOR": "1"}),
    ],
)
def test_a_terminal_gets_lines_that_fit(
    nasty: None,
    type_lines: Callable[..., list[Ran]],
    name: str,
    width: int,
    env: dict[str, str],
) -> None:
    compare(name, type_lines(*COMMANDS, width=width, height=1000, **env))


def test_no_row_is_wider_than_the_terminal() -> None:
    for path in GOLDEN.glob("*-*.txt"):
        width = int(path.stem.rpartition("-")[2])
        lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            shown = re.sub(r"␛\[[0-9;]*m", "", line)
            if not line.startswith("$ sessiondb") and not ANY_WIDTH.search(line):
                assert cell_len(shown) <= width, line


def test_no_control_reaches_a_terminal_but_colour() -> None:
    for path in GOLDEN.glob("*.txt"):
        text = re.sub(r"␛\[[0-9;]*m", "", path.read_text(encoding="utf-8"))
        assert not re.search(
            "␛|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text
        )


@given(
    st.text(st.sampled_from("ab  \t解👩\u200d💻e\u0301\u202e🇩🇪-"), max_size=60),
    st.integers(8, 20),
)
def test_wrapped_rows_fit_and_lose_nothing_but_space(line: str, width: int) -> None:
    rows = list(wrap(line, width))
    assert all(cell_len(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(line.split())
