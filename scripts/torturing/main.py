"""The command: rounds of torture, each with a verdict."""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sessiondb import Store
from torturing.clones import converge, surroundings
from torturing.crowd import Crowd
from torturing.verdict import Line, verdict

#: The kinds of rounds, in their order; without git there are no clones.
ROUNDS = ("crowd", "faults", "crowd", "replaced", "clones")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/torture",
        description="Let several programs use one file, kill, interrupt and cancel them, let "
        "the machine fail, put another file in place of theirs, let clones exchange their logs "
        "by git, and compare what was acknowledged with what is there. Exit 0 only if everything "
        "holds.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two minutes instead of ten"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="run for so long")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="as printed by another run"
    )
    parser.add_argument(
        "--only", choices=sorted(set(ROUNDS)), help="only rounds of this kind"
    )
    parser.add_argument(
        "--round",
        type=float,
        default=6.0,
        metavar="S",
        help="seconds of a round (default: 6)",
    )
    return parser.parse_args(arguments)


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def torture(
    kind: str, folder: Path, chance: random.Random, seconds: float
) -> tuple[list[Line], Iterable[str]]:
    """Run a round in an empty folder; return what was acknowledged and what is wrong."""
    if kind == "clones":
        return [], list(converge(folder, chance))

    # A folder of its own, which may become read-only.
    path = folder / "database" / "sessions.db"
    path.parent.mkdir()
    Store.open(path, parents=True).close()
    crowd = Crowd(path, chance, faults=kind != "crowd")
    paths = [path]
    if kind == "crowd":
        crowd.work(seconds)
    elif kind == "faults":
        crowd.suffer(seconds)
    else:
        crowd.work(seconds / 2)
        paths.append(crowd.lose_its_file(folder / "old"))
        crowd.work(seconds / 2)
    log = crowd.end()
    return log, list(verdict(paths, log))


def main(arguments: list[str] | None = None) -> int:
    """Torture for the requested time; 0 only if every check passed."""
    options = _parse(arguments)
    minutes = (
        options.minutes if options.minutes is not None else 2 if options.quick else 10
    )
    seed = (
        options.seed
        if options.seed is not None
        else random.SystemRandom().getrandbits(32)
    )
    _report(f"seed {seed}")
    # The user's own database must not be found.
    os.environ.pop("SESSIONDB_PATH", None)
    chance, wrong = random.Random(seed), 0  # noqa: S311  to be repeated
    until = time.monotonic() + minutes * 60
    kinds = itertools.cycle([options.only] if options.only else ROUNDS)
    for number, kind in enumerate(kinds, 1):
        with tempfile.TemporaryDirectory(prefix="sessiondb-torture-") as name:
            folder = Path(name).resolve()
            os.environ.update(surroundings(folder / "home"))
            log, problems = torture(kind, folder, chance, options.round)
        counts = Counter(line["kind"] for line in log)
        counted = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        _report(f"round {number}, {kind}: {counted or 'they agree'}")
        for what in [*problems][:20]:
            _report(f"  WRONG: {what}")
        wrong += len([*problems])
        if time.monotonic() > until:
            break
    _report(
        f"{wrong} wrong (seed {seed})" if wrong else f"everything holds (seed {seed})"
    )
    return 1 if wrong else 0
