"""Small chat histories as aider writes them, for the tests that hold for all formats."""

from __future__ import annotations

from pathlib import Path

from sample import LARGE, PIECE, Sample

CHAT, INPUTS = ".aider.chat.history.md", ".aider.input.history"
THINKING = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"


def moment(number: int) -> str:
    """Return the local time of a run; runs are a minute apart."""
    return f"2026-02-02 02:{number:02}:00"


def run(number: int, *blocks: str) -> str:
    """Return a run that begins as aider's do."""
    return "".join([f"\n# aider chat started at {moment(number)}\n\n", *blocks])


def asked(text: str) -> str:
    lines = "  \n#### ".join(text.splitlines() or ["<blank>"])
    return f"\n#### {lines}".rstrip() + "  \n"


def answered(text: str) -> str:
    return f"\n{text}\n\n"


def told(*lines: str) -> str:
    return "".join(f"> {line}".rstrip() + "  \n" for line in lines)


def usage(message: str = "0.01", session: str = "0.01", sent: str = "2.4k") -> str:
    costs = f"Cost: ${message} message, ${session} session."
    return told(f"Tokens: {sent} sent, 352 received. {costs}")


def typed(*entries: tuple[str, str]) -> str:
    """Return an input history of times and texts."""
    return "".join(
        f"\n# {when}\n" + "".join(f"+{line}\n" for line in text.split("\n"))
        for when, text in entries
    )


BANNER = told(
    "Aider v0.86.2",
    "Main model: openai/large with diff edit format",
    "Weak model: openai/small",
    "Git repo: .git with 3 files",
)
EDIT = "a.py\n```python\n<<<<<<< SEARCH\n# old\n=======\n# new\n>>>>>>> REPLACE\n```"


def write(folder: Path, *runs: str, inputs: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CHAT
    path.write_bytes("".join(runs).encode())
    if inputs is not None:
        (folder / INPUTS).write_bytes(inputs.encode())
    return path


RUNS = (
    run(
        1, BANNER, asked("/add a.py"), told("Added a.py to the chat."),
        asked("How long?\n\nIn minutes."), answered(f"<{THINKING}>\n\nHm\n\n</{THINKING}>\n\nTwo.\n\n#### Why\nIt is green.\n\n{EDIT}"),
        usage(), told("Applied edit to a.py", "Commit 1a2b3c4 feat: tea"),
    ),
    run(2, BANNER, asked("Go on"), told("", "", "^C again to exit"), answered("One, two"), asked("Stop"), answered("Yes."), usage()),
    run(3, BANNER, asked("Another one"), answered("Yes"), usage("0.0073", "0.0073", "22")),
)  # fmt: skip
ENTRIES = (
    ("2026-02-02 02:01:10.000001", "/add a.py"),
    ("2026-02-02 02:01:20.500000", "How long?\n\nIn minutes."),
    ("2026-02-02 02:02:05.000000", "Go on"),
    ("2026-02-02 02:02:30.000000", "Stop"),
    ("2026-02-02 02:03:05.000000", "Another one"),
)


def project(folder: Path) -> None:
    """Three runs of a project, with what was typed."""
    write(folder / "tea", *RUNS, inputs=typed(*ENTRIES))


def projects(folder: Path) -> None:
    """The same runs in two projects, which are written back to folders of their own."""
    write(folder / "tea", *RUNS[:2], inputs=typed(*ENTRIES[:4]))
    write(folder / "coffee", RUNS[2], inputs=typed(ENTRIES[4]))


def bare(folder: Path) -> None:
    """Runs without an input history, in two folders."""
    write(folder / "a", run(1, asked("A"), answered("1"), usage()), run(2, asked("B")))
    write(folder / "b", run(3, BANNER, asked("C"), answered("3"), usage()))


def large(folder: Path) -> None:
    folder.mkdir(parents=True)
    with (folder / CHAT).open("w", encoding="utf-8", newline="\n") as file:
        file.write(run(1, BANNER))
        for number in range(LARGE // PIECE + 2):
            text = "\n".join([f"{number} ".ljust(79, "x")] * (PIECE // 80))
            file.write(asked(f"Number {number}") + answered(text) + usage())


SAMPLES = {
    "aider, two projects": Sample("aider", projects, large=large),
    "aider, without what was typed": Sample("aider", bare),
}
REAL: dict[str, str] = {}
