"""Compare the tokens that sessiondb, ccusage and agentsview count with what is stored.

    python scripts/compare_usage.py [--tools DIR] [--json] [STORES]

STORES is a folder of homes, one for each agent, each with its files in ``data``;
``SESSIONDB_FIXTURES`` unless given. The responses that they store are counted by
`comparing.responses`, and the three programs run over a copy of each home. ccusage is
installed from the npm registry and agentsview from PyPI, into DIR (a temporary folder
unless given); one that cannot be installed is left out, with the reason.
Exits 1 if sessiondb is off by a token anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from comparing.responses import COUNTERS, Count
from verifying.installing import PATIENCE, installed

#: Newer versions of ccusage than this one have no program for Linux in the registry.
CCUSAGE = "ccusage@20.0.24"
AGENTSVIEW = "agentsview==0.46.1"
#: Returns what a program counts in a home; None if it finds no usage there.
Counter = Callable[[Path], Count | None]


def main() -> int:
    """Print the table; 1 if sessiondb differs from what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    fixtures = os.environ.get("SESSIONDB_FIXTURES")
    parser.add_argument("stores", type=Path, metavar="STORES", nargs="?")
    parser.add_argument("--tools", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    stores = arguments.stores or (Path(fixtures) if fixtures else None)
    if stores is None:
        parser.error("no STORES, and SESSIONDB_FIXTURES is not set")

    with tempfile.TemporaryDirectory(prefix="compare-usage-") as temporary:
        tools = (arguments.tools or Path(temporary) / "tools").absolute()
        programs = installed_programs(tools)
        table: dict[str, dict[str, Count | None]] = {}
        for store in sorted(stores.iterdir()):
            for name, count in COUNTERS.items():
                if store.name.startswith(name):
                    counts = {"stored": count(store / "data")}
                    counts |= run_programs(programs, store, Path(temporary))
                    table[store.name] = counts

    if arguments.json:
        print(json.dumps(table, indent=1))
    else:
        print_table(table, [*programs])
    wrong = [name for name, row in table.items() if row["sessiondb"] != row["stored"]]
    if wrong or not table:
        print(f"sessiondb is off: {', '.join(wrong) or 'no stores'}", file=sys.stderr)
    return 1 if wrong or not table else 0


def installed_programs(tools: Path) -> dict[str, Counter]:
    """Return the counters of the programs that are there or can be installed."""
    programs: dict[str, Counter] = {"sessiondb": count_by_sessiondb}
    try:
        ccusage = installed(tools, ".bin/ccusage", CCUSAGE)
        run([str(ccusage), "--version"], tools)
        programs["ccusage"] = lambda home: count_by_ccusage(ccusage, home)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"left out: {CCUSAGE}: {reason(error)}", file=sys.stderr)

    try:
        agentsview = tools / "python" / "bin" / "agentsview"
        if not agentsview.exists():
            venv.create(tools / "python", with_pip=True)
            pip = str(tools / "python" / "bin" / "pip")
            run([pip, "install", "--quiet", AGENTSVIEW], tools)
        programs["agentsview"] = lambda home: count_by_agentsview(agentsview, home)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"left out: {AGENTSVIEW}: {reason(error)}", file=sys.stderr)
    return programs


def reason(error: Exception) -> str:
    """Return the last line of what a failed command wrote, else the error."""
    written = getattr(error, "stderr", None) or str(error)
    return str(written).strip().rpartition("\n")[2]


def run_programs(
    programs: Mapping[str, Counter], store: Path, temporary: Path
) -> dict[str, Count | None]:
    """Return the count of each program over a home of its own; None without any."""
    counts: dict[str, Count | None] = {}
    for program, count in programs.items():
        home = temporary / program / store.name
        shutil.copytree(store / "data", home)
        counts[program] = count(home)
    return counts


def run(command: list[str], home: Path) -> str:
    """Return what a command wrote on stdout; raises an error if it fails."""
    home.mkdir(parents=True, exist_ok=True)
    # The variables of agents name other places than the home.
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    ran = subprocess.run(
        command, env=env, cwd=home, check=True, capture_output=True, text=True,
        timeout=PATIENCE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return ran.stdout


def count_by_sessiondb(home: Path) -> Count:
    """Count by the command line of this clone."""
    sessiondb = [sys.executable, "-m", "sessiondb", "--db", str(home / "usage.db")]
    run([*sessiondb, "import", str(home)], home)
    every = ["stats", "-a", "--archived", "--subagents", "--json"]
    tokens = json.loads(run([*sessiondb, *every], home))["total"]["tokens"]
    sent = ("input", "cache_read", "cache_write")
    return Count(
        sum(tokens[name] or 0 for name in sent),
        (tokens["output"] or 0) + (tokens["reasoning"] or 0),
    )


def count_by_ccusage(program: Path, home: Path) -> Count | None:
    """Count by the sessions of all agents that ccusage finds in a home.

    Its sums by day are others; those by session are nearer to what Claude Code stored.
    """
    found = json.loads(run([str(program), "session", "--offline", "--json"], home))
    return count_of_totals(found.get("totals"))


def count_by_agentsview(program: Path, home: Path) -> Count | None:
    """Count by the days of agentsview, whose server is stopped again."""
    query = ["usage", "daily", "--all", "--offline", "--no-sync", "--json"]
    try:
        run([str(program), "sync"], home)
        found = json.loads(run([str(program), *query], home))
    finally:
        subprocess.run(
            [str(program), "serve", "stop"],
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
            check=False, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
    return count_of_totals(found.get("totals"))


def count_of_totals(totals: dict[str, Any] | None) -> Count | None:
    """Return the sum of the kinds of tokens; None if nothing was counted."""
    if not totals:
        return None
    sent = ("inputTokens", "cacheReadTokens", "cacheCreationTokens")
    count = Count(sum(totals.get(name) or 0 for name in sent), totals["outputTokens"])
    return count if any(count) else None


def print_table(table: dict[str, dict[str, Count | None]], programs: list[str]) -> None:
    """Print a Markdown table: the tokens of the input, and by how much each is off."""
    print(f"| store | stored | {' | '.join(programs)} |")
    print(f"|---|---|{'---|' * len(programs)}")
    for name, row in table.items():
        stored = row["stored"]
        assert stored is not None
        cells = [difference(row[program], stored) for program in programs]
        print(f"| {name} | {stored.input:,} | {' | '.join(cells)} |")


def difference(count: Count | None, stored: Count) -> str:
    """Return by how much the input of a count is off; of an equal one ``0``."""
    if count is None:
        return "–"
    if count.input == stored.input:
        return "0"
    return f"{100 * (count.input - stored.input) / stored.input:+.1f} %"


if __name__ == "__main__":
    sys.exit(main())
