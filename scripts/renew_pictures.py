"""Take the pictures of README: a terminal with the sample, and a page of one session.

    python scripts/renew_pictures.py

Types the commands below on a terminal of 96 columns and writes what they print to
``docs/pictures/terminal.svg``. Exports a session as a page and photographs it with
Chromium into ``docs/pictures/page.png``; without Chromium that picture stays as it is.
The sample's sessions are of a machine with the home /home/ada, and so is the picture:
the temporary home is shown under that name, and nothing else of the output is changed.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TERMINAL = ROOT / "docs" / "pictures" / "terminal.svg"
PAGE = ROOT / "docs" / "pictures" / "page.png"
COMMANDS = (
    ("import", "examples/sample-opencode"),
    ("search", "-a", "monotonic clock"),
    ("show", "c12mse"),
    ("fork", "c12mse#1", "--title", "Ask before the push"),
    ("resume", "c12mse", "--in", "claude", "--print"),
)
HOME_OF_THE_SAMPLE = "/home/ada"
COLUMNS, ROWS = 96, 60
PAGE_SESSION, PAGE_SIZE = "c12mse", "860,760"
#: A line that a progress bar draws and takes away again: this line, or the one above.
_CURSOR = re.compile(r"\x1b\[\?25[lh]")
_ERASED_ABOVE = re.compile(r"[^\n]*\n\r\x1b\[1A\x1b\[2K")
_ERASED = re.compile(r"[^\n]*\r\x1b\[2K")
COLOURS = TerminalTheme(
    (22, 27, 34), (214, 220, 228),
    [(88, 96, 105), (248, 121, 112), (106, 200, 120), (224, 180, 90),
     (110, 170, 250), (200, 150, 240), (90, 200, 210), (200, 206, 214)],
)  # fmt: skip
#: As rich has it, without the font that it loads from a server.
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace
}}
.{unique_id}-title {{ font: bold 18px system-ui, sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def typed_on_a_terminal(command: tuple[str, ...], environment: dict[str, str]) -> str:
    """Return what a command of sessiondb prints on a terminal, with its escape sequences."""
    shown, stdout = pty.openpty()
    fcntl.ioctl(stdout, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "sessiondb", *command],
        cwd=ROOT, env=environment, stdin=stdout, stdout=stdout, stderr=stdout,
    )  # fmt: skip
    os.close(stdout)
    output = read_to_the_end(shown)
    if child.wait() != 0:
        raise SystemExit(output)
    output = _CURSOR.sub("", output.replace("\r\n", "\n"))
    output = _ERASED.sub("", _ERASED_ABOVE.sub("", output))
    return output.rstrip()


def read_to_the_end(terminal: int) -> str:
    """Return what is printed on a terminal until its last program has ended."""
    output = bytearray()
    with open(terminal, "rb", buffering=0) as stream:
        while True:
            try:
                read = stream.read(65536)
            except OSError as error:  # how Linux reports the end
                if error.errno != errno.EIO:
                    raise
                break
            if not read:
                break
            output += read
    return output.decode()


def picture_of_the_terminal(home: Path) -> str:
    """Return the SVG of all commands; *home* is an empty folder."""
    environment = environment_of(home)
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(),
        force_terminal=True, color_system="truecolor", legacy_windows=False,
    )  # fmt: skip
    for command in COMMANDS:
        words = [f'"{word}"' if " " in word else word for word in command]
        prompt = Text.assemble(
            ("$ ", "green"), ("sessiondb " + " ".join(words), "bold")
        )
        output = typed_on_a_terminal(command, environment)
        output = output.replace(str(home), HOME_OF_THE_SAMPLE)
        console.print(prompt)
        for line in Text.from_ansi(output).split(allow_blank=True):
            # A terminal breaks a line at its edge, and not between words.
            console.print(*line.divide(range(COLUMNS, len(line), COLUMNS)), sep="\n")
        console.print()
    return console.export_svg(
        title="", theme=COLOURS, code_format=SVG, unique_id="terminal"
    )


def environment_of(home: Path) -> dict[str, str]:
    """Return the environment of a person at a colour terminal whose home is empty."""
    return {
        "HOME": str(home), "PATH": os.environ.get("PATH", os.defpath), "PAGER": "cat",
        "TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC",
        "PYTHONPATH": str(ROOT / "src"),
    }  # fmt: skip


def photograph_the_page(home: Path, chromium: str) -> None:
    """Write the picture of a session's page; the sample is in the database of *home*."""
    page = home / "page.html"
    export = ("export", PAGE_SESSION, "--to", "html", "-o", str(page))
    typed_on_a_terminal(export, environment_of(home))
    subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={home / 'chromium'}", f"--window-size={PAGE_SIZE}",
            f"--screenshot={PAGE}", page.as_uri(),
        ],
        env=environment_of(home), check=True, capture_output=True, timeout=120,
    )  # fmt: skip


def main() -> None:
    """Take both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        TERMINAL.write_text(picture_of_the_terminal(home), encoding="utf-8")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        if chromium is None:
            print(f"no chromium here: {PAGE.relative_to(ROOT)} stays as it is")
            return
        photograph_the_page(home, chromium)


if __name__ == "__main__":
    main()
